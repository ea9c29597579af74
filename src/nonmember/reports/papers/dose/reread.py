"""Audits read once more from what their results hold: with other features, and on fewer documents. Gates aside."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonmember.methods.dose.panel import Scores, quantity_of
from nonmember.records import FloatArray
from nonmember.records.groups import SUSPECT, THIRD
from nonmember.reports.core.documents import DocumentValues
from nonmember.reports.core.numbers import number_in
from nonmember.results.load import Run
from nonmember.stats.dose_curve import Between, Control, DoseReading, dose_curve, residual_covariance

TARGET, REFERENCE = "target", "reference"
Features = Mapping[str, float]


@dataclass(frozen=True)
class Measured:
    """What was measured of an audit's models. target: its features.   controls: of each its dose, what it read of
    related text, and its features."""

    target: Features
    controls: Sequence[tuple[float, float, Features]]

    def of(self, names: Sequence[str]) -> list[Control]:
        """The controls, by these features."""
        return [
            Control(dose, related, np.array([features[name] for name in names]))
            for dose, related, features in self.controls
        ]


@dataclass(frozen=True)
class Reread:
    """reading: what the meter says now.   alpha: the level of the audit."""

    run: Run
    reading: DoseReading
    alpha: float

    @property
    def found(self) -> bool:
        """To be a member; as the method decides, where controls read related text."""
        return self.reading.p_at_most < self.alpha

    @property
    def cleared(self) -> bool:
        return not self.found and self.reading.p_at_least < self.alpha

    @property
    def cleared_dose(self) -> float:
        return math.inf if self.reading.cleared_dose is None else self.reading.cleared_dose


def measured(run: Run) -> Measured | None:
    """As the result holds it; None where a feature is missing."""
    details = run.statistics.details
    target, controls = details.get("features"), details.get("controls")
    if not isinstance(target, Mapping) or not controls:
        return None
    every = [target, *(one["features"] for one in controls)]
    if any(number_in(one, name) is None for one in every for name in target):
        return None
    return Measured(target, [(float(one["dose"]), float(one["related"]), one["features"]) for one in controls])


def read_again(
    run: Run, of: Measured, names: Sequence[str], shape: FloatArray | None, between: Between | None = None
) -> Reread | None:
    """With these features. shape: of their errors; None: the controls' own. None where the controls allow no curve."""
    alpha, settings = run.question.alpha, run.question.settings
    exclude, exceed = number_in(settings, "exclude"), number_in(settings, "exceed")
    target = np.array([of.target[name] for name in names])
    try:
        reading = dose_curve(of.of(names), shape).read(
            target, wanted=exclude or 1.0, exceeded=exceed or 0.0, alpha=alpha, between=between
        )
    except (ValueError, np.linalg.LinAlgError):
        return None
    return Reread(run, reading, alpha)


# ------------------------------------------------------------------------------------------- other features


@dataclass(frozen=True)
class Pooled:
    """Sums of products of the controls' errors, and their degrees of freedom, by library. names: of the features."""

    names: tuple[str, ...]
    sums: Mapping[str, tuple[FloatArray, int]]

    def shape(self, names: Sequence[str], without: str) -> FloatArray | None:
        """Of the errors of these features, over all libraries but one; None where there is no other."""
        others = [one for library, one in self.sums.items() if library != without]
        if not others:
            return None
        places = [self.names.index(name) for name in names]
        total = np.sum([products for products, _ in others], axis=0) / sum(df for _, df in others)
        return np.asarray(total[np.ix_(places, places)])


def pooled(runs: Iterable[Run], names: Sequence[str]) -> Pooled:
    """Over sets; the controls of a set are the same in all of its audits, and count once."""
    one_per_set = {run.question.corpus: run for run in runs}
    sums: dict[str, tuple[FloatArray, int]] = {}
    for run in one_per_set.values():
        if (found := measured(run)) is None:
            continue
        try:
            products, df = residual_covariance(found.of(names))
        except (ValueError, np.linalg.LinAlgError):
            continue
        before, df_before = sums.get(run.domain, (np.zeros_like(products), 0))
        sums[run.domain] = (before + products, df_before + df)
    return Pooled(tuple(names), sums)


# ------------------------------------------------------------------------------------------ fewer documents


def measured_on(run: Run, values: DocumentValues, num_documents: int, skip: int = 0) -> Measured | None:
    """The features on so many documents of the set after the first `skip`, in the order of the SHA-256 of their ids;
    the third text whole. None where the set is smaller, or where the scores do not give the features that the result
    holds."""
    whole, of = measured(run), _quantities(run)
    if whole is None or set(of) != set(whole.target):
        return None
    defined = {group: _defined(values, group) for group in (SUSPECT, THIRD)}
    order = sorted(defined[SUSPECT], key=lambda place: hashlib.sha256(values.ids[SUSPECT][place].encode()).digest())
    if len(order) < skip + num_documents:
        return None
    scores = {name: score for name, quantity in of.items()
              if (score := _score_of(values, defined, quantity, whole.target[name])) is not None}  # fmt: skip
    if len(scores) < len(of):
        return None
    places = {SUSPECT: order[skip : skip + num_documents], THIRD: defined[THIRD]}

    def features(role: str) -> Features:
        return {name: _feature(values, places, role, scores[name], quantity) for name, quantity in of.items()}

    controls: Any = run.statistics.details["controls"]
    return Measured(features(TARGET), [(float(one["dose"]), float(one["related"]), features(one["role"]))
                                       for one in controls])  # fmt: skip


def _quantities(run: Run) -> dict[str, Any]:
    """By feature."""
    panel = run.question.settings.get("panel")
    features = panel.get("features") if isinstance(panel, Mapping) else None
    return {name: one["quantity"] for name, one in features.items()} if isinstance(features, Mapping) else {}


def _defined(values: DocumentValues, group: str) -> list[int]:
    """Places of the documents that have every score."""
    if not values.num_documents(group):
        return []
    return list(np.nonzero(np.isfinite(np.array(list(values.columns[group].values()))).all(axis=0))[0])


def _score_of(
    values: DocumentValues, places: Mapping[str, list[int]], quantity: Any, wanted: float
) -> str | None:  # fmt: skip
    """The score that gives the target's feature as the result holds it; settings do not tell scores apart."""
    names = [column.partition("/")[2] for column in values.columns.get(SUSPECT, ()) if column.startswith(f"{TARGET}/")]
    return next(
        (name for name in names if math.isclose(_feature(values, places, TARGET, name, quantity), wanted,
                                                rel_tol=1e-6, abs_tol=1e-9)),
        None,
    )  # fmt: skip


def _feature(values: DocumentValues, places: Mapping[str, list[int]], role: str, score: str, quantity: Any) -> float:
    suspect, third = (
        Scores(values.columns[group][f"{role}/{score}"][places[group]],
               values.columns[group][f"{REFERENCE}/{score}"][places[group]])
        for group in (SUSPECT, THIRD)
    )  # fmt: skip
    return quantity_of(quantity, suspect, third)


def panel_shape(run: Run) -> FloatArray | None:
    """That the audit was made with; None: its controls' own."""
    panel: Any = run.question.settings.get("panel")
    shape = panel.get("shape")
    return None if shape is None else np.asarray(shape, dtype=np.float64)


def panel_between(run: Run) -> Between | None:
    """Between bases, where the target's is another than the controls'."""
    panel: Any = run.question.settings.get("panel")
    between = panel.get("between")
    if run.statistics.details.get("own_base") is not False or between is None:
        return None
    covariance = np.asarray(between["covariance"], dtype=np.float64)
    return Between(covariance, float(between["relative"]), float(between["df"]))
