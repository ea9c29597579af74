"""The dose meter: how often was the set read?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from nonmember_verify.bundle import Audit, FloatArray
from nonmember_verify.methods.conclusion import INVALID, MEMBERSHIP, NON_MEMBERSHIP, Conclusion, gates_hold
from nonmember_verify.methods.curve import Between, Control, Curve, Reading
from nonmember_verify.methods.draws import FEW, OWN_RESAMPLES, ends_agree, generator
from nonmember_verify.ranks import correlation
from nonmember_verify.report import Report

MIN_DOCUMENTS = 30
TAIL, WITHIN = 0.1, 1.92
GRID = 0.01  # of the shares of partial use
TOLERANCE = 1e-6
TAKEN = {
    "layout": "it looks at the layout of the documents, and the bundle holds no text",
    "weights": "it looks at weights, and the bundle holds none",
}


def recompute(audit: Audit, report: Report) -> Conclusion:
    settings, details, stated = audit.settings, audit.details, audit.statistics
    panel, wanted, alpha = settings["panel"], settings["exclude"], audit.alpha
    told = {one["role"]: one for one in details["controls"]}
    _check_exposures(audit, told, report)
    features = {role: _features(audit, role) for role in ("target", *told)}
    controls = {
        role: Control(one["dose"], one["related"], np.array(list(features[role].values())))
        for role, one in told.items()
    }
    shape = None if panel["shape"] is None else np.array(panel["shape"])
    curve = Curve(list(controls.values()), shape)
    between = None
    if not settings["controls"]["own_base"] and panel["between"]:
        other = panel["between"]
        between = Between(np.array(other["covariance"]), other["relative"], other["df"])
    # Of audits before there was such a dose, membership was claimed against no reading at all.
    exceed = settings.get("exceed", 0.0)
    reading = curve.read(np.array(list(features["target"].values())), wanted, alpha, between, exceed)
    heaviest = float(curve.doses[-1])
    left_out = {role: _left_out(role, controls, shape, alpha) for role in controls}
    report.numbers(
        "features",
        {"of the target": (details["features"], features["target"]),
         "of the controls": ([one["features"] for one in told.values()], [features[role] for role in told])},
        "from the scores",
    )  # fmt: skip
    report.numbers(
        "statistic, interval and p",
        {
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
                [wanted, exceed, heaviest],
            ),
        },
        "from the features, by a second implementation of the curve",
        tolerance=TOLERANCE,
    )
    report.numbers(
        "controls left out in turn",
        {"readings": ([one["reading"] for one in told.values()], [left_out[role] for role in told])},
        "by a second implementation",
        tolerance=TOLERANCE,
    )
    _check_partial_use(audit, {role: one.dose for role, one in controls.items()}, report)
    gates: dict[str, float | None] = {"separation": curve.separation, "fit": reading.p_fit}
    said = left_out
    if "exceed" in settings:  # since then the order is that of the meter made of all controls
        said = {role: curve.read(one.features, wanted, alpha).estimate for role, one in controls.items()}
        report.numbers(
            "p of the exceeded dose", {"p": (details["p_value_of_exceeded"], reading.p_at_most)}, "from the features",
            tolerance=TOLERANCE,
        )  # fmt: skip
    known = [(told[role]["dose"], one) for role, one in said.items() if one is not None]
    if known:
        gates["order"] = correlation(
            np.array([a for a, _ in known], float), np.array([b for _, b in known]), "spearman"
        )
    if settings["controls"]["own_base"]:
        gates |= _of_base(audit, list(told))
    holds, taken = gates_hold(audit, gates, report, TAKEN)
    expected = _expected(settings) - set(details["gates"])
    if expected:
        report.failed("gates", f"{', '.join(sorted(expected))} is missing, though the question has its bound.")
    asks_weights = settings["controls"]["own_base"] and settings["gates"].get("max_weight_ratio") is not None
    if asks_weights and "weights" not in details["gates"]:
        report.unchecked("gate weights", "the target's weights were not at hand, so it was not asked")
    knows_related = any(one.related and not one.dose for one in controls.values())
    decision = _decision(audit, reading, holds, knows_related)
    return Conclusion(decision, claim_of(decision, reading, wanted, exceed, heaviest), taken)


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


# Partial use ----------------------------------------------------------------------------------------------------------


def _check_partial_use(audit: Audit, doses: Mapping[str, float], report: Report) -> None:
    """doses: by role of the controls."""
    number, stated = audit.settings["num_resamples"], audit.details["partial_use"]
    report.numbers(
        "partial use", {"shares and doses": (stated, partial_use(audit, doses, audit.rng(), number)[0])},
        f"from the scores, {number:,} resamples with the seed", tolerance=TOLERANCE,
    )  # fmt: skip
    target = audit.groups["suspect"].values
    _, own = partial_use(audit, doses, generator(*target.values()), OWN_RESAMPLES)
    agree = all(
        ends_agree((one["low"], one["high"]), own[one["dose"]], audit.alpha, number, GRID) for one in stated
    )  # fmt: skip
    report.require(
        "partial use, by other draws", agree or number < FEW,
        "the intervals of the shares are those of draws of the verifier's own.",
        "the intervals of the shares are not those of draws of the verifier's own: the seed was chosen, or the numbers "
        "were changed.",
    )  # fmt: skip
    report.ok("p and interval, by other draws", "they are made without draws: no seed changes them.")


def partial_use(
    audit: Audit, doses: Mapping[str, float], rng: np.random.Generator, num_resamples: int
) -> tuple[list[dict[str, Any]], dict[float, FloatArray]]:  # fmt: skip
    """For each planted dose the share of documents that were read so often, by maximum likelihood, and the share in
    each resample. doses: by role of the controls."""
    suspect, third = audit.groups["suspect"], audit.groups["third"].values
    score = next(iter(audit.settings["panel"]["features"].values()))["score"]
    gains = {
        role: suspect.values[f"{role}/{score}"] - third[f"{role}/{score}"].mean() for role in ("target", *doses)
    }  # fmt: skip
    by_dose = {dose: [gains[role] for role in doses if doses[role] == dose] for dose in sorted(set(doses.values()))}
    means = {dose: np.mean(ones, axis=0) for dose, ones in by_dose.items()}
    squares = sum(float(((one - means[dose]) ** 2).sum()) for dose, ones in by_dose.items() for one in ones)
    df = sum(len(ones) - 1 for ones in by_dose.values()) * len(suspect)
    scatter = math.sqrt(squares / df * (1 + 1 / len(by_dose[0])))
    own, shares = gains["target"] - means[0], np.linspace(0, 1, round(1 / GRID) + 1)
    units = np.unique(suspect.units, return_inverse=True)[1]
    number = int(units.max()) + 1
    draws = rng.multinomial(number, [1 / number] * number, size=num_resamples)
    tables = {}
    for dose in [one for one in by_dose if one]:
        read = -0.5 * ((own - means[dose] + means[0]) / scatter) ** 2
        unread = -0.5 * (own / scatter) ** 2
        with np.errstate(divide="ignore"):
            parts = np.logaddexp(np.log(shares) + read[:, None], np.log1p(-shares) + unread[:, None])
        tables[dose] = parts - math.log(scatter)
    best = max(float(table.sum(axis=0).max()) for table in tables.values())
    found, shares_drawn = [], {}
    for dose, table in tables.items():
        by_unit = np.zeros((number, len(shares)))
        np.add.at(by_unit, units, table)
        shares_drawn[float(dose)] = drawn = shares[(draws @ by_unit).argmax(axis=1)]
        low, high = np.quantile(drawn, [audit.alpha / 2, 1 - audit.alpha / 2])
        sums = table.sum(axis=0)
        place = int(sums.argmax())
        found.append({
            "dose": float(dose), "share": float(shares[place]), "low": float(low), "high": float(high),
            "log_likelihood": float(sums[place]), "compatible": bool(best - sums[place] <= WITHIN),
        })  # fmt: skip
    return found, shares_drawn


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
    fewest = f"{exceed:g} readings or fewer" if exceed else "none"
    said, times = readings_of(reading, heaviest), "once" if exclude == 1 else f"{exclude:g} times"
    return {
        "invalid": INVALID,
        NON_MEMBERSHIP: (
            f"There is statistical evidence that the target did not read this dataset {times} or more, in the way the "
            f"planted controls did: {said} (p = {reading.p_at_least:.2g} for {times} or more). A small part of it may "
            "have been read. It says nothing about single documents."
        ),
        MEMBERSHIP: (
            "There is statistical evidence that the target read this dataset, or text that is more closely related to "
            f"it than the related text the controls read, or such text more often: {said} "
            f"(p = {reading.p_at_most:.2g} for {fewest}). It says nothing about single documents."
        ),
        "score_only": f"None beyond the number: {said}.",
        "inconclusive": (
            f"The audit does not tell whether the dataset was read ({said}). This is not evidence either way."
        ),
    }[decision]


def _told(dose: float) -> str:
    return f"{dose:.2g}" if dose < 10 else f"{dose:.0f}"
