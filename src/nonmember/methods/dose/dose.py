"""The dose meter: how often did the target read the suspect set? An estimate, and tests in both directions.

Controls are planted: the same base continued with the suspect set read 0, 1, 2, 4 ... times, and with related text read
where the set was not. Of each model a fixed panel of features is taken, on the set and on a third text that nobody
read. The controls' features give a curve over readings of the set and of related text; the target is read off it, with
what one more model would scatter about it (`stats.dose_curve`). No reference is distilled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import numpy as np

from nonmember.checks import require_number
from nonmember.corpora import CorpusSpec
from nonmember.methods.base import (
    INVALID_CLAIM,
    Claim,
    DocumentGroup,
    Method,
    Roles,
    ScoredDocuments,
    TestOutcome,
    Verdict,
)
from nonmember.methods.details import Details, Gate
from nonmember.methods.dose.controls import ControlModel, DoseControls
from nonmember.methods.dose.gates import DoseGates
from nonmember.methods.dose.panel import Panel, Scores
from nonmember.methods.gates import Finding, as_details, failures
from nonmember.models import ModelSpec
from nonmember.observations import Measurement, Scored
from nonmember.records import Corpus, FloatArray
from nonmember.records.exposure import Exposure
from nonmember.records.groups import SUSPECT, THIRD
from nonmember.records.requirements import Access, Requirements
from nonmember.stats.dose_curve import Between, Control, DoseCurve, DoseReading, dose_curve

TARGET, REFERENCE = "target", "reference"
UNSEEN_WEIGHTS = (
    "The target's weights are not at hand, so how far they moved from the base was not compared with the controls'. A "
    "target that was trained at a lower rate, by an adapter, or on other text afterwards has read the set more often "
    "than estimated."
)

OTHER_BASE = (
    "Controls are of another base than the target, and nothing shows whether it was trained as they were. A target "
    "that was trained at a lower rate, by an adapter, on more text, or on other text afterwards has read the set "
    "more often than estimated."
)
EXCEEDED = "The target is one more model that read the suspect set {:g} times or less."
OWN_SHAPE = (
    "The panel gives no shape of its features' errors, so it was estimated from these controls: p-values are too "
    "small and intervals too narrow (docs/methods/dose.md). Measure a shape on other sets, or take one feature."
)


class DoseControl(TypedDict):
    role: str
    # dose, related: how often it read the set, and related text
    dose: float
    related: float
    reading: float | None  # what the meter made of the others says of it; None where these end at a lighter dose
    features: Mapping[str, float]  # by name


@dataclass(frozen=True, kw_only=True)
class DoseDetails(Details):
    """Doses are numbers of readings."""

    readings: str  # the estimate in words
    cleared_dose: float | None  # the least dose from which on all are excluded; None where none is
    p_value_of_no_reading: float  # of the target's having read nothing of the set
    p_value_of_exceeded: float  # of `exceeded_dose` or fewer readings, low where the set was read
    p_value_of_excluded: float  # of `excluded_dose` or more readings, low where it was not
    p_value_of_fit: float  # of the target's being like some model that read so or so often
    related_readings: float  # estimated readings of related text
    excluded_dose: float  # the dose that a verdict of non-membership excludes
    exceeded_dose: float  # the dose above which a target is said to have read
    heaviest_dose: float  # the heaviest one planted
    panel: str  # version of the panel of features
    own_base: bool  # whether controls are of the target's own base
    separation: float  # between unread and heaviest, in standard deviations of single models
    features: Mapping[str, float]  # of the target, by name
    controls: Sequence[DoseControl]  # the planted ones
    gates: Mapping[str, Gate]  # name of a gate -> what was found


@dataclass(frozen=True)
class Dose(Method):
    controls: DoseControls  # the planted ones
    panel: Panel  # features, and how their errors go together
    third: CorpusSpec  # text prepared like the suspect set that no model here has read
    exclude: float  # a verdict of non-membership is given where so many readings, or more, are excluded
    # One of membership where so many, or fewer, are; above 0, since near 0 the curve is not as exact as the test of
    # "nothing at all" is sharp.
    exceed: float
    gates: DoseGates  # what must hold
    alpha: float
    max_tokens: int

    name = "dose"
    statistic_name = "readings"
    claim = "non_membership"
    guarantee = "model-based"
    null_hypothesis = (
        "The target is one more model that read the suspect set as often as is to be excluded, or more often."
    )
    picture = "dose"
    details_type = DoseDetails
    requirements = Requirements(
        access=Access.FULL_LOGITS, documents=30, inputs=("base", "general"), passes=12, controls=10
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        heaviest = self.controls.doses[-1]
        require_number(self.exclude, f"(0, {heaviest}]", "exclude", hint="It is a number of readings that was planted.")
        require_number(self.exceed, f"[0, {self.exclude:g})", "exceed", hint="It is a number of readings.")
        if not self.controls.own_base and self.panel.between is None:
            raise ValueError(
                f"The panel {self.panel.version} does not say how far targets of another base lie from controls, so "
                "these must be made of the target's own base: method.controls.own_base=true, or a panel that says so."
            )

    def settings(self) -> dict[str, Any]:
        return {**vars(self), "panel": self.panel.described()}

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

    def related(self, roles: Roles) -> CorpusSpec | None:
        return self.controls.related_text

    def alike_tokenized(self, roles: Roles) -> Sequence[tuple[ModelSpec, ModelSpec]]:
        """A level is a mean over tokens, and so comparable over the same tokens only."""
        return [(self.controls.base, roles.target), (self.controls.base, roles.reference)]

    def moved_from(self, roles: Roles) -> tuple[ModelSpec, Mapping[str, ModelSpec]] | None:
        if not self.controls.own_base or self.gates.max_weight_ratio is None:
            return None
        return self.controls.base, {control.role: control.model for control in self._controls(roles.suspect)}

    def judged_by_weights(self, outcome: TestOutcome, target: float | None, others: Mapping[str, float]) -> TestOutcome:
        if target is None:
            return replace(outcome, warnings=(*outcome.warnings, UNSEEN_WEIGHTS))
        finding = self.gates.of_weights(target, list(others.values()))
        assert isinstance(outcome.details, DoseDetails)
        gates = {**outcome.details.gates, **as_details([finding])}
        details = replace(outcome.details, weight_changes={TARGET: target, **others}, gates=gates)
        outcome = replace(outcome, details=details)
        reasons = failures([finding])
        return outcome.made_invalid([*reasons, *outcome.warnings]) if reasons else outcome

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
        models = self._controls(self.third)
        features = {role: self._features(role, documents) for role in (TARGET, *(item.role for item in models))}
        controls = {
            item.role: Control(item.exposure.exposures, item.related.exposures, _vector(features[item.role]))
            for item in models
        }
        curve = dose_curve(list(controls.values()), self._shape)
        reading = self._read(curve, features[TARGET], self._between)
        left_out = {role: self._left_out(role, controls) for role in controls}
        findings = [
            *self.gates.of_curve(
                curve.separation, [(item.dose, self._estimate(curve, item)) for item in controls.values()]
            ),
            self.gates.of_left_out(
                [_holds(item, controls[role].dose) for role, item in left_out.items() if item is not None], self.alpha
            ),
            *(self._of_base(third, models) if self.controls.own_base else ()),
            self.gates.of_fit(reading),
            *self.gates.of_texts(suspect.texts, third.texts),
        ]
        reasons = [*failures(findings), *self.too_few(len(suspect.doc_ids))]
        knows_related = any(item.related and not item.dose for item in controls.values())
        verdict = self._verdict(reading, bool(reasons), knows_related)
        # The test of the verdict; the other one's p stands in the details.
        read = reading.p_at_most < self.alpha
        return TestOutcome(
            statistic=reading.estimate,
            p_value=reading.p_at_most if read else reading.p_at_least,
            claim="membership" if read else "non_membership",
            null_hypothesis=EXCEEDED.format(self.exceed) if read else self.null_hypothesis,
            ci_low=reading.low,
            ci_high=math.nan if reading.high is None else reading.high,
            alpha=self.alpha,
            verdict=verdict,
            allowed_claim=claim_of(verdict, reading, self.exclude, self.exceed, curve.doses[-1]),
            warnings=tuple(reasons or self._warnings(reading, knows_related)),
            details=DoseDetails(
                readings=readings_of(reading, curve.doses[-1]),
                cleared_dose=reading.cleared_dose,
                p_value_of_no_reading=reading.p_none,
                p_value_of_exceeded=reading.p_at_most,
                p_value_of_excluded=reading.p_at_least,
                p_value_of_fit=reading.p_fit,
                related_readings=reading.related,
                excluded_dose=self.exclude,
                exceeded_dose=self.exceed,
                heaviest_dose=float(curve.doses[-1]),
                panel=self.panel.version,
                own_base=self.controls.own_base,
                separation=curve.separation,
                features=features[TARGET],
                controls=[
                    _described(role, control, left_out[role], features[role]) for role, control in controls.items()
                ],
                gates=as_details(findings),
            ),
        )

    @property
    def _shape(self) -> FloatArray | None:
        return None if self.panel.shape is None else np.asarray(self.panel.shape, dtype=np.float64)

    @property
    def _between(self) -> Between | None:
        between = self.panel.between
        if self.controls.own_base or between is None:
            return None
        return Between(np.asarray(between.covariance, dtype=np.float64), between.relative, between.df)

    def _read(self, curve: DoseCurve, features: Mapping[str, float], between: Between | None) -> DoseReading:
        return curve.read(
            _vector(features), wanted=self.exclude, exceeded=self.exceed, alpha=self.alpha, between=between
        )

    def _estimate(self, curve: DoseCurve, control: Control) -> float:
        return curve.read(control.values, wanted=self.exclude, alpha=self.alpha).estimate

    def _left_out(self, role: str, controls: Mapping[str, Control]) -> DoseReading | None:
        """What the meter would say of a control, made of the others; None where these end at a lighter dose."""
        others = [control for name, control in controls.items() if name != role]
        doses = [control.dose for control in others]
        if min(doses) > 0 or max(doses) < max(control.dose for control in controls.values()):
            return None
        try:
            curve = dose_curve(others, self._shape)
            return curve.read(controls[role].values, wanted=max(doses), alpha=self.alpha)
        except ValueError:  # too few are left to tell how much controls differ
            return None

    def _features(self, role: str, documents: Mapping[str, ScoredDocuments]) -> dict[str, float]:
        suspect, third = (
            {
                name: Scores(
                    documents[group].values[_column(role, name)], documents[group].values[_column(REFERENCE, name)]
                )
                for name in self.panel.scores
            }
            for group in (SUSPECT, THIRD)
        )
        return self.panel.of(suspect, third)

    def _of_base(self, third: ScoredDocuments, controls: Sequence[ControlModel]) -> list[Finding]:
        score = next(iter(self.panel.scores))
        profiles = {
            role: third.values[_column(role, score)] - third.values[_column(REFERENCE, score)]
            for role in (TARGET, *(item.role for item in controls))
        }
        return self.gates.of_base(profiles.pop(TARGET), list(profiles.values()))

    @classmethod
    def p_values(cls, p_value: float | None, details: Mapping[str, Any]) -> Mapping[Claim, float]:
        """Of membership too, where controls read related text and not the set."""
        if p_value is None:
            return {}
        tests: dict[Claim, float] = {"non_membership": details["p_value_of_excluded"]}
        if any(item["related"] and not item["dose"] for item in details["controls"]):
            tests["membership"] = details["p_value_of_exceeded"]
        return tests

    def _verdict(self, reading: DoseReading, refused: bool, knows_related: bool) -> Verdict:
        if refused:
            return "invalid"
        if reading.p_at_most < self.alpha:
            return "evidence_of_membership" if knows_related else "score_only"
        return "evidence_of_non_membership" if reading.p_at_least < self.alpha else "inconclusive"

    def _warnings(self, reading: DoseReading, knows_related: bool) -> Iterator[str]:
        if not knows_related and reading.p_at_most < self.alpha:
            yield (
                "The target shows more than models that read nothing, but no control read related text and not the "
                "set, so related text may be the reason. Give some as method.controls.related."
            )
        if self.panel.shape is None and len(self.panel.features) > 1:
            yield OWN_SHAPE
        if not self.controls.own_base:
            yield OTHER_BASE
        if reading.p_at_most < self.alpha and reading.p_at_least < self.alpha:
            yield (
                f"Both '{self.exceed:g} readings or fewer' and '{self.exclude:g} or more whole readings' are rejected: "
                "a part of the set may have been read."
            )


def _described(role: str, control: Control, left_out: DoseReading | None, features: Mapping[str, float]) -> DoseControl:
    reading = None if left_out is None else left_out.estimate
    return {"role": role, "dose": control.dose, "related": control.related, "reading": reading, "features": features}


def _holds(reading: DoseReading, dose: float) -> bool:
    """Whether the interval holds the dose."""
    return reading.low <= dose <= (math.inf if reading.high is None else reading.high)


def _vector(features: Mapping[str, float]) -> FloatArray:
    return np.array(list(features.values()), dtype=np.float64)


def _column(role: str, score: str) -> str:
    return f"{role}/{score}"


# What a reading says --------------------------------------------------------------------------------------------------


def readings_of(reading: DoseReading, heaviest: float) -> str:
    """As an instrument shows it: "about 3 readings (2.2 to 4.1)", "fewer than 0.6 readings"."""
    if reading.low == 0:
        return "any number of readings" if reading.high is None else f"fewer than {_formatted(reading.high)} readings"
    if reading.low >= heaviest:
        return f"{_formatted(heaviest)} readings or more"
    upper = "more" if reading.high is None else _formatted(reading.high)
    unit = "reading" if _formatted(reading.estimate) == "1" else "readings"
    interval = f"{_formatted(reading.low)} {'or' if upper == 'more' else 'to'} {upper}"
    return f"about {_formatted(reading.estimate)} {unit} ({interval})"


def claim_of(verdict: Verdict, reading: DoseReading, exclude: float, exceed: float, heaviest: float) -> str:
    readings = readings_of(reading, heaviest)
    if verdict == "invalid":
        return INVALID_CLAIM
    if verdict == "evidence_of_non_membership":
        times = "once" if exclude == 1 else f"{exclude:g} times"
        return (
            f"There is statistical evidence that the target did not read this dataset {times} or more, in the way the "
            f"planted controls did: {readings} (p = {reading.p_at_least:.2g} for {times} or more). A small part of it "
            "may have been read. It says nothing about single documents."
        )
    if verdict == "evidence_of_membership":
        fewest = f"{exceed:g} readings or fewer" if exceed else "none"
        return (
            f"There is statistical evidence that the target read this dataset, or text that is more closely related to "
            f"it than what the controls read, or such text more often than they did: {readings} "
            f"(p = {reading.p_at_most:.2g} for {fewest}). It says nothing about single documents."
        )
    if verdict == "score_only":
        return f"None beyond the number: {readings}."
    return f"The audit does not tell whether the dataset was read ({readings}). This is not evidence either way."


def _formatted(dose: float) -> str:
    return f"{dose:.2g}" if dose < 10 else f"{dose:.0f}"
