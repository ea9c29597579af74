"""The dose meter: how often did the target read the suspect set? One scale that clears, convicts and estimates.

Controls are planted: the same base continued with the suspect set read 0, 1, 2, 4 ... times, and with related text read
where the set was not. Of each model a fixed panel of features is taken on the set and on a third text that nobody read,
and combined to one number. The controls' numbers give a curve of readings, the target's is read off it, with what one
more model would scatter about it (`stats.dose_curve`). No reference is distilled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from nonmember.checks import require_number
from nonmember.corpora import CorpusSpec
from nonmember.methods.base import (
    Access,
    Claim,
    DocumentGroup,
    Measurement,
    Method,
    Picture,
    Roles,
    Scored,
    ScoredDocuments,
    TestOutcome,
    Verdict,
    require_resamples,
    units,
)
from nonmember.methods.dose.controls import ControlModel, DoseControls
from nonmember.methods.dose.gates import DoseGates, Finding, as_details, failures
from nonmember.methods.dose.panel import Panel, Scores
from nonmember.methods.dose.words import claim_of, readings_of
from nonmember.models import ModelSpec
from nonmember.records import Corpus, FloatArray
from nonmember.records.exposure import Exposure
from nonmember.stats.dose_curve import Control, DoseCurve, DoseReading, dose_curve
from nonmember.stats.partial_use import PartialUse, partial_use

TARGET, REFERENCE = "target", "reference"
SUSPECT, THIRD = "suspect", "third"
CURVE_POINTS = 41  # of the curve, kept in the result for its picture


@dataclass(frozen=True)
class Dose(Method):
    """controls: the planted ones.   panel: features and their weights.   third: text prepared like the suspect set that
    no model here has read.   exclude: a verdict of non-membership is given where so many readings, or fewer, are
    excluded.   gates: what must hold.   num_resamples: of documents, for the interval of a share.
    """

    controls: DoseControls
    panel: Panel
    third: CorpusSpec
    exclude: float
    gates: DoseGates
    num_resamples: int
    alpha: float
    max_tokens: int

    name: ClassVar[str] = "dose"
    statistic_name: ClassVar[str] = "readings"
    claim: ClassVar[Claim] = "non_membership"
    null_hypothesis: ClassVar[str] = (
        "The target is one more model that read the suspect set as often as is to be excluded, or more often."
    )
    picture: ClassVar[Picture] = "dose"
    target_access: ClassVar[Access] = Access.FULL_LOGITS
    min_documents: ClassVar[int] = 30

    def __post_init__(self) -> None:
        super().__post_init__()
        require_resamples(self.num_resamples, self.alpha)
        heaviest = self.controls.doses[-1]
        require_number(self.exclude, f"(0, {heaviest}]", "exclude", hint="It is a number of readings that was planted.")

    # What is measured ---------------------------------------------------------------------------------------------

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        models: dict[str, ModelSpec] = {REFERENCE: roles.reference, TARGET: roles.target}
        models |= {control.role: control.model for control in self._controls(roles.suspect)}
        return {
            name: DocumentGroup(corpus, self._scored(models, corpus))
            for name, corpus in ((SUSPECT, roles.suspect), (THIRD, self.third))
        }

    def _scored(self, models: Mapping[str, ModelSpec], corpus: CorpusSpec) -> dict[str, Measurement]:
        return {
            _column(role, name): Scored(role, model, corpus, score, self.max_tokens)
            for name, score in self.panel.scores.items()
            for role, model in models.items()
        }

    def control_exposures(self) -> dict[str, Exposure]:
        return {control.role: control.exposure for control in self._controls(self.third)}

    def alike_tokenized(self, roles: Roles) -> Sequence[tuple[ModelSpec, ModelSpec]]:
        """A level is a mean over tokens, and so comparable over the same tokens only."""
        return [(self.controls.base, roles.target), (self.controls.base, roles.reference)]

    def check(self, corpora: Mapping[str, Corpus]) -> None:
        suspect = {document.text for document in corpora[SUSPECT].documents}
        if shared := sum(document.text in suspect for document in corpora[THIRD].documents):
            raise ValueError(
                f"method.third must be text that no model read; {shared} of its {len(corpora[THIRD])} documents are in "
                "the suspect set. Leave them out of it."
            )

    def _controls(self, suspect: CorpusSpec) -> list[ControlModel]:
        """Their roles do not depend on the set."""
        return self.controls.models(suspect)

    # What it means ------------------------------------------------------------------------------------------------

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        """statistic and interval: readings.   p_value: of `exclude` readings or more."""
        suspect, third = documents[SUSPECT], documents[THIRD]
        controls = self._controls(self.third)
        features = {role: self._features(role, documents) for role in (TARGET, *(one.role for one in controls))}
        values = {role: self.panel.combined(found) for role, found in features.items()}
        curve = dose_curve(
            [Control(one.exposure.exposures, one.related.exposures, values[one.role]) for one in controls]
        )
        between = self.controls.between
        reading = curve.read(values[TARGET], wanted=self.exclude, alpha=self.alpha, between=between)
        findings = self._findings(suspect, third, curve, controls)
        reasons = [*failures(findings), *self._reasons(reading, len(suspect.doc_ids))]
        knows_related = any(one.related.exposures and not one.exposure.exposures for one in controls)
        verdict = self._verdict(reading, bool(reasons), knows_related)
        return TestOutcome(
            statistic=reading.estimate,
            p_value=reading.p_cleared,
            ci_low=reading.low,
            ci_high=math.nan if reading.high is None else reading.high,
            alpha=self.alpha,
            verdict=verdict,
            allowed_claim=claim_of(verdict, reading, self.exclude, curve.doses[-1]),
            warnings=tuple(reasons) if reasons else tuple(self._warnings(reading, knows_related)),
            details={
                "readings": readings_of(reading, curve.doses[-1]),
                "cleared_dose": reading.cleared_dose,
                "p_value_of_no_reading": reading.p_member,
                "p_value_below_no_reading": reading.p_below,
                "excluded_dose": self.exclude,
                "value": values[TARGET],
                "features": features[TARGET],
                "weights": {name: feature.weight for name, feature in self.panel.features.items()},
                "panel": self.panel.version,
                "own_base": self.controls.own_base,
                "spread": curve.spread,
                "df": curve.df,
                "related_effect": curve.related_effect,
                "curve": self._told_curve(curve),
                "controls": [
                    {"role": one.role, "dose": one.exposure.exposures, "related": one.related.exposures,
                     "value": values[one.role], "features": features[one.role]}
                    for one in controls
                ],
                "partial_use": [asdict(one) for one in self._partial_use(suspect, third, controls, rng)],
                "gates": as_details(findings),
            },
        )  # fmt: skip

    def _features(self, role: str, documents: Mapping[str, ScoredDocuments]) -> dict[str, float]:
        suspect, third = (
            {
                name: Scores(documents[group].values[_column(role, name)],
                             documents[group].values[_column(REFERENCE, name)])
                for name in self.panel.scores
            }
            for group in (SUSPECT, THIRD)
        )  # fmt: skip
        return self.panel.of(suspect, third)

    def _findings(
        self, suspect: ScoredDocuments, third: ScoredDocuments, curve: DoseCurve, controls: Sequence[ControlModel]
    ) -> list[Finding]:
        score = next(iter(self.panel.scores))
        profiles = {
            role: third.values[_column(role, score)] - third.values[_column(REFERENCE, score)]
            for role in (TARGET, *(one.role for one in controls))
        }
        return [
            *self.gates.of_curve(curve, self.alpha),
            *(self.gates.of_base(profiles.pop(TARGET), list(profiles.values())) if self.controls.own_base else ()),
            *self.gates.of_texts(suspect.texts, third.texts),
        ]

    def _reasons(self, reading: DoseReading, num_documents: int) -> Iterator[str]:
        """Against any verdict."""
        if num_documents < self.min_documents:
            yield f"{num_documents} documents are left; the test needs at least {self.min_documents}."
        if math.isnan(reading.low):
            yield (
                f"The target's value lies below that of models that read nothing (p = {reading.p_below:.2g}). That is "
                "no sign of innocence: no model has read less than nothing, but one may have been changed on this set "
                "(unlearning, suppression, noise in what is served) or have read it in another layout."
            )

    def _verdict(self, reading: DoseReading, refused: bool, knows_related: bool) -> Verdict:
        if refused:
            return "invalid"
        if reading.p_member < self.alpha:
            return "evidence_of_membership" if knows_related else "score_only"
        return "evidence_of_non_membership" if reading.p_cleared < self.alpha else "inconclusive"

    def _warnings(self, reading: DoseReading, knows_related: bool) -> Iterator[str]:
        if not knows_related and reading.p_member < self.alpha:
            yield (
                "The target's value lies above that of models that read nothing, but no control read related text and "
                "not the set, so related text may be the reason. Give some as method.controls.related."
            )
        if reading.p_member < self.alpha and reading.p_cleared < self.alpha:
            yield (
                f"Both 'nothing was read' and '{self.exclude:g} or more whole readings' are rejected: a part of the "
                "set may have been read; see partial_use."
            )

    def _told_curve(self, curve: DoseCurve) -> dict[str, Any]:
        doses = np.expm1(np.linspace(0, math.log1p(curve.doses[-1]), CURVE_POINTS))
        scale, _ = curve.scale(doses, 0.0, self.controls.between)
        return {"dose": doses.tolist(), "value": curve.at(doses).tolist(), "standard_deviation": scale.tolist()}

    def _partial_use(
        self, suspect: ScoredDocuments, third: ScoredDocuments, controls: Sequence[ControlModel],
        rng: np.random.Generator,
    ) -> list[PartialUse]:  # fmt: skip
        score = next(iter(self.panel.scores))

        def gain(role: str) -> FloatArray:
            column = _column(role, score)
            return np.asarray(suspect.values[column] - third.values[column].mean())

        by_dose: dict[int, list[FloatArray]] = {}
        for one in controls:
            by_dose.setdefault(one.exposure.exposures, []).append(gain(one.role))
        means = {dose: np.mean(gains, axis=0) for dose, gains in by_dose.items()}
        squares = sum(((np.array(gains) - means[dose]) ** 2).sum() for dose, gains in by_dose.items())
        df = sum(len(gains) - 1 for gains in by_dose.values()) * len(suspect.doc_ids)
        scatter = math.sqrt(squares / df * (1 + 1 / len(by_dose[0])))
        return partial_use(
            gain(TARGET) - means[0],
            {float(dose): mean - means[0] for dose, mean in sorted(means.items()) if dose},
            np.full(len(suspect.doc_ids), scatter), units(suspect, SUSPECT),
            num_resamples=self.num_resamples, alpha=self.alpha, rng=rng,
        )  # fmt: skip


def _column(role: str, score: str) -> str:
    return f"{role}/{score}"
