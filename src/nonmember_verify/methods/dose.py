"""The dose meter: how often was the set read?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from nonmember_verify.bundle import Audit, FloatArray
from nonmember_verify.known import claim
from nonmember_verify.methods.curve import Between, Control, Curve, Reading
from nonmember_verify.report import Report
from nonmember_verify.resampling import correlation
from nonmember_verify.verdicts import MEMBERSHIP, NON_MEMBERSHIP, Conclusion, gates_hold

MIN_DOCUMENTS = 30
TAIL = 0.1
TOLERANCE = 1e-6


def recompute(audit: Audit, report: Report) -> Conclusion:
    settings, details, alpha = audit.settings, audit.details, audit.alpha
    told = {one["role"]: one for one in details["controls"]}
    _check_exposures(audit, told, report)
    features = {role: _features(audit, role) for role in ("target", *told)}
    controls = {
        role: Control(one["dose"], one["related"], np.array(list(features[role].values())))
        for role, one in told.items()
    }
    shape = None if settings["panel"]["shape"] is None else np.array(settings["panel"]["shape"])
    curve = Curve(list(controls.values()), shape)
    # Of audits before there was such a dose, membership was claimed against no reading at all.
    wanted, exceed, heaviest = settings["exclude"], settings.get("exceed", 0.0), float(curve.doses[-1])
    reading = curve.read(np.array(list(features["target"].values())), wanted, alpha, _between(settings), exceed)
    left_out = {role: _left_out(role, controls, shape, alpha) for role in controls}
    report.numbers(
        "features",
        {
            "of the target": (details["features"], features["target"]),
            "of the controls": ([one["features"] for one in told.values()], [features[role] for role in told]),
        },
        "from the scores",
    )
    _check_reading(audit, curve, reading, exceed, report)
    report.numbers(
        "controls left out in turn",
        {"readings": ([one["reading"] for one in told.values()], [left_out[role] for role in told])},
        "by a second implementation", tolerance=TOLERANCE,
    )  # fmt: skip
    report.ok("p and interval, by other draws", "they are made without draws: no seed changes them.")
    report.unchecked("partial use", "the shares that may have been read are taken as stated; no verdict rests on them")
    orders = left_out
    if "exceed" in settings:  # since then the order is that of the meter made of all controls
        orders = {role: curve.read(one.features, wanted, alpha).estimate for role, one in controls.items()}
    gates: dict[str, float | None] = {"separation": curve.separation, "fit": reading.p_fit}
    if known := [(told[role]["dose"], one) for role, one in orders.items() if one is not None]:
        doses, estimates = np.array(known, dtype=np.float64).T
        gates["order"] = correlation(doses, estimates, "spearman")
    if settings["controls"]["own_base"]:
        gates |= _of_base(audit, list(told))
        if settings["gates"].get("max_weight_ratio") is not None and "weights" not in details["gates"]:
            report.unchecked("gate weights", "the target's weights were not at hand, so it was not asked")
    holds, taken = gates_hold(audit, gates, _expected(settings), report)
    knows_related = any(one.related and not one.dose for one in controls.values())
    decision = _decision(audit, reading, holds, knows_related)
    return Conclusion(decision, _words(reading, wanted, exceed, heaviest), taken)


def _between(settings: Mapping[str, Any]) -> Between | None:
    other = settings["panel"]["between"]
    if settings["controls"]["own_base"] or not other:
        return None
    return Between(np.array(other["covariance"]), other["relative"], other["df"])


def _check_reading(audit: Audit, curve: Curve, reading: Reading, exceed: float, report: Report) -> None:
    details, stated, heaviest = audit.details, audit.statistics, float(curve.doses[-1])
    pairs = {
        "readings": (stated["value"], reading.estimate),
        "low": (stated["ci_low"], reading.low),
        "high": (stated["ci_high"], reading.high),
        "p": (stated["p_value"], reading.p_at_least),
        "p of no reading": (details["p_value_of_no_reading"], reading.p_none),
        "p of fit": (details["p_value_of_fit"], reading.p_fit),
        "cleared dose": (details["cleared_dose"], reading.cleared),
        "separation": (details["separation"], curve.separation),
        "in words": (details["readings"], readings_of(reading, heaviest)),
        "doses": (
            [details["excluded_dose"], details.get("exceeded_dose", exceed), details["heaviest_dose"]],
            [audit.settings["exclude"], exceed, heaviest],
        ),
    }
    if "exceed" in audit.settings:
        pairs["p of the exceeded dose"] = (details["p_value_of_exceeded"], reading.p_at_most)
    report.numbers(
        "statistic, interval and p", pairs, "from the features, by a second implementation of the curve",
        tolerance=TOLERANCE,
    )  # fmt: skip


def _expected(settings: Mapping[str, Any]) -> set[str]:
    names = {"separation", "fit"}
    if settings["controls"]["own_base"]:
        names |= {"base"} | ({"shift"} if settings["gates"]["max_shift"] is not None else set())
    return names | ({"layout"} if settings["gates"]["max_layout_auc"] is not None else set())


def _check_exposures(audit: Audit, told: Mapping[str, Mapping[str, Any]], report: Report) -> None:
    """That each control's doses are those of the model in the result."""
    models = audit.question["models"]
    wrong = [
        role
        for role, one in told.items()
        if not models[role]["control"] or models[role]["exposure"]["exposures"] != one["dose"]
        or f"-{one['dose']}x" not in role
        or ("related" in role) != bool(one["related"])
        or (one["related"] and f"related-{one['related']}x" not in role)
    ]  # fmt: skip
    missing = [role for role, model in models.items() if model["control"] and role not in told]
    report.require(
        "doses of the controls", not wrong and not missing, f"those of the {len(told)} models.",
        f"{', '.join([*wrong, *missing][:3])}: what it read is told otherwise, or it was left out.",
    )  # fmt: skip


def _decision(audit: Audit, reading: Reading, holds: bool, knows_related: bool) -> str:
    if not holds or len(audit.groups["suspect"]) < MIN_DOCUMENTS:
        return "invalid"
    if reading.p_at_most < audit.alpha:
        return MEMBERSHIP if knows_related else "score_only"
    return NON_MEMBERSHIP if reading.p_at_least < audit.alpha else "inconclusive"


# Features -------------------------------------------------------------------------------------------------------------


def _features(audit: Audit, role: str) -> dict[str, float]:
    suspect, third = (audit.groups[name].values for name in ("suspect", "third"))
    found = {}
    for name, feature in audit.settings["panel"]["features"].items():
        columns = [f"{one}/{feature['score']}" for one in (role, "reference")]
        own, other = ([values[column] for column in columns] for values in (suspect, third))
        if feature["quantity"] == "rank_correlation":
            found[name] = correlation(own[1], own[0], "spearman")
        else:
            found[name] = _of_delta(feature["quantity"], *own) - _of_delta(feature["quantity"], *other)
    return found


def _of_delta(quantity: str, model: FloatArray, reference: FloatArray) -> float:
    delta = (model - reference).tolist()
    mean = math.fsum(delta) / len(delta)
    if quantity == "level":
        return mean
    if quantity == "spread":
        return math.sqrt(math.fsum((one - mean) ** 2 for one in delta) / (len(delta) - 1))
    if quantity == "upper_tail":
        highest = sorted(delta)[-max(1, round(TAIL * len(delta))) :]
        return math.fsum(highest) / len(highest) - float(np.median(delta))
    return float(np.polyfit(reference, model - reference, 1)[0])


def _left_out(
    role: str, controls: Mapping[str, Control], shape: FloatArray | None, alpha: float
) -> float | None:  # fmt: skip
    others = [one for name, one in controls.items() if name != role]
    doses = [one.dose for one in others]
    if min(doses) > 0 or max(doses) < max(one.dose for one in controls.values()):
        return None
    try:
        return Curve(others, shape).read(controls[role].features, max(doses), alpha).estimate
    except ValueError:
        return None


def _of_base(audit: Audit, roles: list[str]) -> dict[str, float | None]:
    third = audit.groups["third"].values
    score = next(iter(audit.settings["panel"]["features"].values()))["score"]
    profiles = {role: third[f"{role}/{score}"] - third[f"reference/{score}"] for role in ("target", *roles)}
    means = {role: float(one.mean()) for role, one in profiles.items()}
    centred = {role: one - means[role] for role, one in profiles.items()}

    def distance(role: str, others: list[str]) -> float:
        middle = sum(centred[one] for one in others) / len(others)
        return math.sqrt(float(((centred[role] - middle) ** 2).mean()))

    among = max(distance(role, [one for one in roles if one != role]) for role in roles)
    own = [means[role] for role in roles]
    spread = float(np.std(own, ddof=1)) * math.sqrt(1 + 1 / len(own))
    return {"base": distance("target", roles) / among, "shift": abs(means["target"] - float(np.mean(own))) / spread}


# Words ----------------------------------------------------------------------------------------------------------------


def readings_of(reading: Reading, heaviest: float) -> str:
    if reading.low == 0:
        return "any number of readings" if reading.high is None else f"fewer than {_told(reading.high)} readings"
    if reading.low >= heaviest:
        return f"{_told(heaviest)} readings or more"
    end = "or more" if reading.high is None else f"to {_told(reading.high)}"
    unit = "reading" if _told(reading.estimate) == "1" else "readings"
    return f"about {_told(reading.estimate)} {unit} ({_told(reading.low)} {end})"


def claim_of(decision: str, reading: Reading, exclude: float, exceed: float, heaviest: float) -> str:
    return claim("dose", decision, **_words(reading, exclude, exceed, heaviest))


def _words(reading: Reading, exclude: float, exceed: float, heaviest: float) -> dict[str, Any]:
    return {
        "said": readings_of(reading, heaviest),
        "times": "once" if exclude == 1 else f"{exclude:g} times",
        "fewest": f"{exceed:g} readings or fewer" if exceed else "none",
        "p_at_least": reading.p_at_least,
        "p_at_most": reading.p_at_most,
    }


def _told(dose: float) -> str:
    return f"{dose:.2g}" if dose < 10 else f"{dose:.0f}"
