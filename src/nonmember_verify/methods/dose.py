"""The dose meter: how often was the set read?

The curve of `stats.dose_curve` and a target read off it are written down a second time, with least squares by a
singular value decomposition.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import interpolate, optimize, stats

from nonmember_verify.bundle import Audit, FloatArray
from nonmember_verify.report import Report
from nonmember_verify.resampling import correlation
from nonmember_verify.verdicts import MEMBERSHIP, NON_MEMBERSHIP, Conclusion, gates_hold

MIN_DOCUMENTS = 30
TAIL = 0.1
TOLERANCE = 1e-6
DOSES, RELATED = 241, 13  # places of the curve
PRIOR_DF = 4  # degrees of freedom of a given shape of errors
Spread = Mapping[str, Any]


def recompute(audit: Audit, report: Report) -> Conclusion:
    settings, details, alpha = audit.settings, audit.details, audit.alpha
    stated = {item["role"]: item for item in details["controls"]}
    if len(stated) < len(details["controls"]):
        report.failed("controls", "a role is listed twice.")
    _check_exposures(audit, stated, report)
    features = {role: _features(audit, role) for role in ("target", *stated)}
    controls = {
        role: Control(item["dose"], item["related"], np.array(list(features[role].values())))
        for role, item in stated.items()
    }
    shape = None if settings["panel"]["shape"] is None else np.array(settings["panel"]["shape"])
    curve = Curve(list(controls.values()), shape)
    wanted, exceed, heaviest = settings["exclude"], settings["exceed"], float(curve.doses[-1])
    if not 0 <= exceed < wanted <= heaviest:
        report.failed(
            "doses", f"exceed {exceed}, exclude {wanted} and the heaviest dose {heaviest:g} must rise from 0."
        )
    own_base, between = settings["controls"]["own_base"], settings["panel"]["between"]
    target = np.array(list(features["target"].values()))
    reading = curve.read(target, wanted, alpha, None if own_base else between, exceed)
    left_out = {role: _left_out(role, controls, shape, alpha) for role in controls}
    pairs: dict[str, tuple[Any, Any]] = {
        "of the target": (details["features"], features["target"]),
        "of the controls": ([item["features"] for item in stated.values()], [features[role] for role in stated]),
    }
    report.numbers("features", pairs, "from the scores")
    _check_reading(audit, curve, reading, exceed, report)
    estimates = [None if item is None else item.estimate for item in map(left_out.get, stated)]
    pairs = {"readings": ([item["reading"] for item in stated.values()], estimates)}
    report.numbers("controls left out in turn", pairs, "by a second implementation", tolerance=TOLERANCE)
    known = [(stated[role]["dose"], item) for role, item in left_out.items() if item is not None]
    outside = sum(not item.low <= dose <= (math.inf if item.high is None else item.high) for dose, item in known)
    doses = np.array([item.dose for item in controls.values()], dtype=np.float64)
    read = np.array([curve.read(item.features, wanted, alpha).estimate for item in controls.values()])
    gates: dict[str, float | None] = {
        "separation": curve.separation,
        "fit": reading.p_fit,
        "order": correlation(doses, read, "spearman"),
        "left_out": float(stats.binom.sf(outside - 1, len(known), alpha)),
    }
    expected = set(gates)
    if own_base:
        gates |= _of_base(audit, list(stated))
        expected |= {"base"} | ({"shift"} if settings["gates"]["max_shift"] is not None else set())
        if settings["gates"].get("max_weight_ratio") is not None and "weights" not in details["gates"]:
            report.unchecked("gate weights", "the target's weights were not at hand, so it was not asked")
    expected |= {"layout"} if settings["gates"]["max_layout_auc"] is not None else set()
    holds, taken = gates_hold(audit, gates, expected, report)
    if not holds or len(audit.groups["suspect"]) < MIN_DOCUMENTS:
        decision = "invalid"
    elif reading.p_at_most < alpha:
        knows_related = any(item.related and not item.dose for item in controls.values())
        decision = MEMBERSHIP if knows_related else "score_only"
    else:
        decision = NON_MEMBERSHIP if reading.p_at_least < alpha else "inconclusive"
    return Conclusion(decision, words_of(reading, wanted, exceed, heaviest), taken)


def _check_reading(audit: Audit, curve: Curve, reading: Reading, exceed: float, report: Report) -> None:
    details, heaviest = audit.details, float(curve.doses[-1])
    p = reading.p_at_most if reading.p_at_most < audit.alpha else reading.p_at_least  # of the test that decides
    pairs = audit.beside(readings=reading.estimate, low=reading.low, high=reading.high, p=p) | {
        "p of the excluded dose": (details["p_value_of_excluded"], reading.p_at_least),
        "p of the exceeded dose": (details["p_value_of_exceeded"], reading.p_at_most),
        "p of no reading": (details["p_value_of_no_reading"], reading.p_none),
        "p of fit": (details["p_value_of_fit"], reading.p_fit),
        "cleared dose": (details["cleared_dose"], reading.cleared),
        "separation": (details["separation"], curve.separation),
        "in words": (details["readings"], readings_of(reading, heaviest)),
        "doses": (
            [details[f"{name}_dose"] for name in ("excluded", "exceeded", "heaviest")],
            [audit.settings["exclude"], exceed, heaviest],
        ),
    }
    origin = "from the features, by a second implementation of the curve"
    report.numbers("statistic, interval and p", pairs, origin, tolerance=TOLERANCE)


def _check_exposures(audit: Audit, controls: Mapping[str, Mapping[str, Any]], report: Report) -> None:
    """That each control's doses are those of the model in the result."""
    models = audit.question["models"]
    wrong = [
        role
        for role, item in controls.items()
        if not models[role]["control"]
        or models[role]["exposure"]["exposures"] != item["dose"]
        or f"-{item['dose']}x" not in role
        or ("related" in role) != bool(item["related"])
        or (item["related"] and f"related-{item['related']}x" not in role)
    ]
    asked = [role for role in audit.described["identity"]["parts"] if role.startswith("control-")]
    missing = [role for role in asked if role not in controls]
    missing += [role for role, model in models.items() if model["control"] and role not in controls]
    report.require(
        "doses of the controls",
        not wrong and not missing,
        f"those of the {len(controls)} models.",
        f"{', '.join([*wrong, *missing][:3])}: what it read is stated differently, or it was left out.",
    )


# Features -------------------------------------------------------------------------------------------------------------


def _features(audit: Audit, role: str) -> dict[str, float]:
    suspect, third = (audit.groups[name].values for name in ("suspect", "third"))
    found = {}
    for name, feature in audit.settings["panel"]["features"].items():
        columns = [f"{item}/{feature['score']}" for item in (role, "reference")]
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
        return math.sqrt(math.fsum((item - mean) ** 2 for item in delta) / (len(delta) - 1))
    if quantity == "upper_tail":
        highest = sorted(delta)[-max(1, round(TAIL * len(delta))) :]
        return math.fsum(highest) / len(highest) - float(np.median(delta))
    return float(np.polyfit(reference, model - reference, 1)[0])


def _left_out(role: str, controls: Mapping[str, Control], shape: FloatArray | None, alpha: float) -> Reading | None:
    others = [item for name, item in controls.items() if name != role]
    doses = [item.dose for item in others]
    if min(doses) > 0 or max(doses) < max(item.dose for item in controls.values()):
        return None
    try:
        return Curve(others, shape).read(controls[role].features, max(doses), alpha)
    except ValueError:
        return None


def _of_base(audit: Audit, roles: list[str]) -> dict[str, float | None]:
    third = audit.groups["third"].values
    score = next(iter(audit.settings["panel"]["features"].values()))["score"]
    profiles = {role: third[f"{role}/{score}"] - third[f"reference/{score}"] for role in ("target", *roles)}
    means = {role: float(item.mean()) for role, item in profiles.items()}
    centred = {role: item - means[role] for role, item in profiles.items()}

    def distance(role: str, others: list[str]) -> float:
        middle = sum(centred[item] for item in others) / len(others)
        return math.sqrt(float(((centred[role] - middle) ** 2).mean()))

    among = max(distance(role, [item for item in roles if item != role]) for role in roles)
    own = [means[role] for role in roles]
    spread = float(np.std(own, ddof=1)) * math.sqrt(1 + 1 / len(own))
    return {"base": distance("target", roles) / among, "shift": abs(means["target"] - float(np.mean(own))) / spread}


# Words ----------------------------------------------------------------------------------------------------------------


def readings_of(reading: Reading, heaviest: float) -> str:
    if reading.low == 0:
        return "any number of readings" if reading.high is None else f"fewer than {_shown(reading.high)} readings"
    if reading.low >= heaviest:
        return f"{_shown(heaviest)} readings or more"
    end = "or more" if reading.high is None else f"to {_shown(reading.high)}"
    unit = "reading" if _shown(reading.estimate) == "1" else "readings"
    return f"about {_shown(reading.estimate)} {unit} ({_shown(reading.low)} {end})"


def words_of(reading: Reading, exclude: float, exceed: float, heaviest: float) -> dict[str, Any]:
    """What a claim is completed with."""
    return {
        "said": readings_of(reading, heaviest),
        "times": "once" if exclude == 1 else f"{exclude:g} times",
        "fewest": f"{exceed:g} readings or fewer" if exceed else "none",
        "p_at_least": reading.p_at_least,
        "p_at_most": reading.p_at_most,
    }


def _shown(dose: float) -> str:
    return f"{dose:.2g}" if dose < 10 else f"{dose:.0f}"


# The curve ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Control:
    dose: float
    related: float
    features: FloatArray


@dataclass(frozen=True)
class Reading:
    estimate: float
    low: float
    high: float | None
    cleared: float | None
    p_at_least: float
    p_at_most: float
    p_none: float
    p_fit: float


class Curve:
    """Raises ValueError where the controls do not make one."""

    def __init__(self, controls: list[Control], shape: FloatArray | None):
        dose = np.array([item.dose for item in controls], dtype=np.float64)
        related = np.array([item.related for item in controls], dtype=np.float64)
        features = np.array([item.features for item in controls], dtype=np.float64)
        self.doses = np.unique(dose)
        self.most_related = float(related.max())
        design = np.column_stack([dose[:, None] == self.doses, self.share(dose, related)]).astype(np.float64)
        left, singular, right = np.linalg.svd(design, full_matrices=False)
        kept = singular > singular.max() * max(design.shape) * np.finfo(np.float64).eps
        inverse = (right[kept].T / singular[kept]) @ left[:, kept].T
        self.inverse = (right[kept].T / singular[kept] ** 2) @ right[kept]
        estimates = inverse @ features
        errors = features - design @ estimates
        df = len(features) - int(kept.sum())
        if df < 1 or (np.abs(errors).max(axis=0) <= 1e-12).any():
            raise ValueError("too few controls")
        counts = design[:, :-1].sum(axis=0)
        rises = np.where(estimates[-2] >= estimates[0], 1.0, -1.0)
        ordered = (optimize.isotonic_regression(column, weights=counts).x for column in (rises * estimates[:-1]).T)
        self.monotone = rises * np.column_stack(list(ordered))
        self.effect = estimates[-1]
        self.covariance, self.df = _covariance(errors, df, shape)
        self.grid = _even(float(self.doses[-1]), DOSES)
        self.related_grid = _even(self.most_related, RELATED) if self.most_related else np.zeros(1)

    def share(self, dose: FloatArray, related: FloatArray) -> FloatArray:
        most = math.log1p(self.most_related) or 1.0
        return np.asarray((np.log1p(dose + related) - np.log1p(dose)) / most)

    @property
    def separation(self) -> float:
        rise = self.monotone[-1] - self.monotone[0]
        return math.sqrt(float(rise @ np.linalg.inv(self.covariance) @ rise))

    def read(
        self, features: FloatArray, wanted: float, alpha: float, between: Spread | None = None, exceeded: float = 0.0
    ) -> Reading:
        """between: covariance, relative and df of what other targets differ by; None: of the controls' own base."""
        means = interpolate.PchipInterpolator(self.doses, self.monotone)(self.grid)
        squared = self._distances(features, means, between)
        by_dose = squared.min(axis=1)
        best = int(by_dose.argmin())
        df = min(self.df, between["df"]) if between else self.df
        roots = np.sign(self.grid[best] - self.grid) * np.sqrt(np.maximum(by_dose - by_dose[best], 0.0))
        at_least, at_most = stats.t.cdf(roots, df), stats.t.cdf(-roots, df)
        kept = [index for index in range(DOSES) if min(at_least[index], at_most[index]) > alpha / 2]
        cleared = [index for index in range(DOSES) if at_least[index] >= alpha]
        after = cleared[-1] + 1 if cleared else 0
        index = int(squared[best].argmin())
        free = (0 < best < DOSES - 1) + (0 < index < len(self.related_grid) - 1)
        beyond = 0.0
        if best == DOSES - 1:
            error = features - means[-1] - float(self.share(self.grid[-1:], self.related_grid[index])[0]) * self.effect
            rise = self.monotone[-1] - self.monotone[-2]
            inverse = np.linalg.inv(self._covariances(means, between)[-1, index])
            along = float(rise @ inverse @ error)
            beyond = along**2 / float(rise @ inverse @ rise) if along > 0 else 0.0
        spare = max(1, len(features) - free - (beyond > 0))
        return Reading(
            float(self.grid[best]),
            float(self.grid[kept[0]]),
            None if kept[-1] == DOSES - 1 else float(self.grid[kept[-1]]),
            float(self.grid[after]) if after < DOSES else None,
            max([float(np.interp(wanted, self.grid, at_least)), *at_least[self.grid >= wanted].tolist()]),
            max([float(np.interp(exceeded, self.grid, at_most)), *at_most[self.grid <= exceeded].tolist()]),
            float(at_most[0]),
            float(stats.f.sf((float(by_dose[best]) - beyond) / spare, spare, df)),
        )

    def _distances(self, features: FloatArray, means: FloatArray, between: Spread | None) -> FloatArray:
        """[doses, related]"""
        share = self.share(self.grid[:, None], self.related_grid[None])
        errors = features - means[:, None] - share[..., None] * self.effect
        inverse = np.linalg.inv(self._covariances(means, between))
        return np.asarray((errors[..., None, :] @ inverse @ errors[..., None])[..., 0, 0])

    def _covariances(self, means: FloatArray, between: Spread | None) -> FloatArray:
        """[doses, related, F, F] of one more model."""
        share = self.share(self.grid[:, None], self.related_grid[None])
        right = np.clip(np.searchsorted(self.doses, self.grid, side="right"), 1, len(self.doses) - 1)
        part = (self.grid - self.doses[right - 1]) / (self.doses[right] - self.doses[right - 1])
        weights = np.zeros((*share.shape, len(self.doses) + 1))
        for index, (after, of_after) in enumerate(zip(right, part, strict=True)):
            weights[index, :, after - 1], weights[index, :, after] = 1 - of_after, of_after
        weights[..., -1] = share
        leverage = ((weights @ self.inverse) * weights).sum(axis=-1)
        covariance = self.covariance * (1 + leverage)[..., None, None]
        if between:
            rise = means - means[0]
            more = np.array(between["covariance"]) + between["relative"] ** 2 * rise[:, :, None] * rise[:, None, :]
            covariance = covariance + more[:, None]
        return np.asarray(covariance)


def _even(most: float, number: int) -> FloatArray:
    return np.asarray(np.minimum(np.expm1(np.linspace(0, math.log1p(most), number)), most))


def _covariance(errors: FloatArray, df: int, shape: FloatArray | None) -> tuple[FloatArray, int]:
    number = errors.shape[1]
    products, given = errors.T @ errors, shape is not None
    if shape is None:
        spread = np.sqrt(np.diag(products) / df)
        correlation = products / df / np.outer(spread, spread)
        shape = (df * correlation + number * np.eye(number)) / (df + number) * np.outer(spread, spread)
    scaled = shape * float(np.trace(np.linalg.inv(shape) @ products)) / (number * df)
    if not given:
        return np.asarray(scaled), number * df
    return np.asarray((PRIOR_DF * scaled + products) / (PRIOR_DF + df)), max(1, PRIOR_DF + df - number + 1)
