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
class MeasuredFeatures:
    """What was measured of an audit's models. target: its features.   controls: of each its dose, what it read of
    related text, and its features."""

    target: Features
    controls: Sequence[tuple[float, float, Features]]

    def of(self, names: Sequence[str]) -> list[Control]:
        """The controls, by these features."""
        return [Control(dose, related, np.array([of[name] for name in names])) for dose, related, of in self.controls]


@dataclass(frozen=True)
class RereadAudit:
    run: Run
    reading: DoseReading  # what the meter says now
    alpha: float  # the level of the audit

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


def measured(run: Run) -> MeasuredFeatures | None:
    """As the result holds it; None where a feature is missing."""
    details = run.statistics.details
    target, controls = details.get("features"), details.get("controls")
    if not isinstance(target, Mapping) or not controls:
        return None
    every = [target, *(item["features"] for item in controls)]
    if any(number_in(item, name) is None for item in every for name in target):
        return None
    of_controls = [(float(item["dose"]), float(item["related"]), item["features"]) for item in controls]
    return MeasuredFeatures(target, of_controls)


def read_again(
    run: Run, of: MeasuredFeatures, names: Sequence[str], shape: FloatArray | None, between: Between | None = None
) -> RereadAudit | None:
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
    return RereadAudit(run, reading, alpha)


# ------------------------------------------------------------------------------------------- other features


@dataclass(frozen=True)
class Pooled:
    """Sums of products of the controls' errors, and their degrees of freedom, by library. names: of the features."""

    names: tuple[str, ...]
    sums: Mapping[str, tuple[FloatArray, int]]

    def shape(self, names: Sequence[str], without: str) -> FloatArray | None:
        """Of the errors of these features, over all libraries but one; None where there is no other."""
        others = [item for library, item in self.sums.items() if library != without]
        if not others:
            return None
        indices = [self.names.index(name) for name in names]
        total = np.sum([products for products, _ in others], axis=0) / sum(df for _, df in others)
        return np.asarray(total[np.ix_(indices, indices)])


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


def measured_on(run: Run, values: DocumentValues, num_documents: int, skip: int = 0) -> MeasuredFeatures | None:
    """The features on so many documents of the set after the first `skip`, in the order of the SHA-256 of their ids;
    the third text whole. None where the set is smaller, or where the scores do not give the features that the result
    holds."""
    whole, of = measured(run), _quantities(run)
    if whole is None or set(of) != set(whole.target):
        return None
    chosen = {group: _defined(values, group) for group in (SUSPECT, THIRD)}
    order = sorted(chosen[SUSPECT], key=lambda index: hashlib.sha256(values.ids[SUSPECT][index].encode()).digest())
    if len(order) < skip + num_documents:
        return None
    scores = {name: _score_of(values, chosen, quantity, whole.target[name]) for name, quantity in of.items()}
    if None in scores.values():
        return None
    chosen[SUSPECT] = order[skip : skip + num_documents]

    def features(role: str) -> Features:
        return {name: _feature(values, chosen, role, scores[name], quantity) for name, quantity in of.items()}

    controls: Any = run.statistics.details["controls"]
    of_controls = [(float(item["dose"]), float(item["related"]), features(item["role"])) for item in controls]
    return MeasuredFeatures(features(TARGET), of_controls)


def _quantities(run: Run) -> dict[str, Any]:
    """By feature."""
    features = _panel(run).get("features")
    return {name: item["quantity"] for name, item in features.items()} if isinstance(features, Mapping) else {}


def _panel(run: Run) -> Mapping[str, Any]:
    panel = run.question.settings.get("panel")
    return panel if isinstance(panel, Mapping) else {}


def _defined(values: DocumentValues, group: str) -> list[int]:
    """Indices of the documents that have every score."""
    if not values.num_documents(group):
        return []
    return list(np.nonzero(np.isfinite(np.array(list(values.columns[group].values()))).all(axis=0))[0])


def _score_of(values: DocumentValues, chosen: Mapping[str, list[int]], quantity: Any, wanted: float) -> str | None:
    """The score that gives the target's feature as the result holds it; settings do not tell scores apart."""
    for column in values.columns.get(SUSPECT, ()):
        role, _, score = column.partition("/")
        if role == TARGET and math.isclose(
            _feature(values, chosen, role, score, quantity), wanted, rel_tol=1e-6, abs_tol=1e-9
        ):
            return score
    return None


def _feature(
    values: DocumentValues, chosen: Mapping[str, list[int]], role: str, score: str | None, quantity: Any
) -> float:
    """chosen: indices of the documents, by group."""

    def scores(group: str) -> Scores:
        columns, indices = values.columns[group], chosen[group]
        return Scores(columns[f"{role}/{score}"][indices], columns[f"{REFERENCE}/{score}"][indices])

    return quantity_of(quantity, scores(SUSPECT), scores(THIRD))


def panel_shape(run: Run) -> FloatArray | None:
    """That the audit was made with; None: its controls' own."""
    shape = _panel(run).get("shape")
    return None if shape is None else np.asarray(shape, dtype=np.float64)


def panel_between(run: Run) -> Between | None:
    """Between bases, where the target's is another than the controls'."""
    between = _panel(run).get("between")
    if run.statistics.details.get("own_base") is not False or between is None:
        return None
    covariance = np.asarray(between["covariance"], dtype=np.float64)
    return Between(covariance, float(between["relative"]), float(between["df"]))
