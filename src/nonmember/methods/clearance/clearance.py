"""Calibrated clearance: PRISM's Delta against the Deltas of models known to have read the documents.

PRISM rejects Delta <= 0, but Delta <= 0 is not what a model that read the documents shows: trained models of its own
tables 8 and 9 have Delta > 0. Here the null is measured. Planted controls read the suspect set at stated doses, each
gets distilled references of its own, and their Deltas on these very documents say how large Delta may be for a model
that read them so: the margin. The target is cleared of a reading where its Delta lies above that margin, where the
distilled references pass their gates, and where shams do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, TypedDict

import numpy as np

from nonmember.checks import Distinct, Number, require_seed
from nonmember.corpora import CorpusSpec, Part
from nonmember.methods.base import (
    INVALID_CLAIM,
    Access,
    DocumentGroup,
    Measurement,
    Method,
    Roles,
    Scored,
    ScoredDocuments,
    TestOutcome,
    Verdict,
    require_score,
    units,
)
from nonmember.methods.clearance.controls import PlantedControls
from nonmember.methods.clearance.gates import Gates
from nonmember.methods.details import Details, Gate
from nonmember.methods.gates import LIKELIHOOD, LOSS, Finding, as_details, failures, health_measurements
from nonmember.models import ModelSpec, Noised, label_of
from nonmember.records.exposure import Exposure
from nonmember.records.groups import HELDOUT, SUSPECT, THIRD
from nonmember.records.requirements import Requirements
from nonmember.scores import Score
from nonmember.stats.bootstrap import CorrelationDifference, difference_of_dependent_correlations
from nonmember.stats.correlation import RankMetric, rank_correlation
from nonmember.stats.crossed import TwoWay, two_way
from nonmember.stats.detection import DetectionCurve, detection_curve
from nonmember.stats.margins import Margin, margin
from nonmember.training import Trained
from nonmember.training.recipes import Distillation, require_distillation

TARGET, REFERENCE, DISTILLED = "target", "reference", "distilled"
STAND_IN = "stand_in"
SHAM_UNRELATED, SHAM_NOISE = "sham_unrelated", "sham_noise"
HALVES = "halves of the third text"  # a salt that no recipe of a text has drawn by: else one half would have all
POWER = 0.95  # at which a dose counts as detectable

INCONCLUSIVE = (
    "The target agrees with the distilled references no worse than models that read the documents do. This is not "
    "evidence that the dataset was used for training."
)


class MarginDetails(TypedDict):
    bound: float  # above which Delta must be
    # mean, spread, df: of the controls' Delta
    mean: float
    spread: float
    df: int


class Sham(TypedDict):
    """Whether the gates refused what only passes for a distilled reference."""

    refused: bool
    gates: Mapping[str, Gate]


class PrismNumbers(TypedDict):
    """The paper's test, unchanged."""

    statistic: float
    p_value: float


class DetectionReading(TypedDict):
    """One planted reading (`stats.detection.DetectionPoint`)."""

    share: float
    exposures: float
    mean: float
    num_controls: int
    p_value: float
    noticed: bool
    p_at_least: float
    noticed_at_least: bool
    p_monotone: float
    power: float
    power_at_least: float
    counted_power: float


class Detection(TypedDict):
    points: Sequence[DetectionReading]
    # noticed, detectable: share of the set -> the smallest number of readings that is; None: none is
    noticed: Mapping[str, float | None]
    detectable: Mapping[str, float | None]


@dataclass(frozen=True, kw_only=True)
class ClearanceDetails(Details):
    rho_reference_target: float  # rank correlation of the scores under reference and target
    rho_distilled_target: float  # under the first distilled reference and target
    excluded_reading: str  # label of the reading that is to be excluded
    margin: float  # the largest bound
    margins: Mapping[str, MarginDetails]  # label of a reading -> the bound of Delta and what it is made of
    p_value_beyond_margin: float  # of Delta's being at most the margin, over documents and seeds
    prism: PrismNumbers  # Delta and p of PRISM with the first seed
    deltas_by_seed: Sequence[float]  # of the target
    standard_error: float  # of Delta, over documents and seeds
    share_of_seeds: float  # of the variance of Delta, what seeds contribute
    control_deltas: Mapping[str, Sequence[float]]  # label of a reading -> Delta of each control
    heldout_delta: float | None  # of the stand-in on held-out text; None without
    gates: Mapping[str, Gate]  # name of a gate -> what was found
    shams: Mapping[str, Sham]  # name of a sham -> what the gates say of it
    detection: Detection  # which readings were, or would be, noticed


@dataclass(frozen=True)
class Clearance(Method):
    """score, distillation, rank_metric, num_resamples, max_tokens: as of PRISM."""

    score: Annotated[Score, require_score]
    distillation: Annotated[Distillation, require_distillation]
    # One distilled reference per seed, of the target and of every control.
    distillation_seeds: Annotated[Sequence[int], Distinct("different whole numbers", require_seed)]
    controls: PlantedControls  # the planted ones
    exclude: Exposure  # the lightest reading that a clearance is to exclude; heavier ones go with it
    # Text of the same preparation that is not the suspect set; half of it is for the gates, half for a sham.
    third: CorpusSpec
    gates: Gates  # their bounds
    shams: bool  # whether shams are put to them
    # On the weights of one of the shams, as a share of the standard deviation of each weight tensor.
    noise: Annotated[float, Number("(0, inf)")]
    rank_metric: RankMetric
    num_resamples: int
    alpha: float
    # content, confidence: of the tolerance bound that the margin is: so large a share of models with that reading lies
    # below it, with this confidence; confidence null: the prediction bound for one more such model
    content: Annotated[float, Number("(0.5, 1)", hint="For an error of 5% it is 0.95.")]
    confidence: Annotated[float | None, Number("[0.5, 1)")]
    max_tokens: int

    name = "clearance"
    statistic_name = "Delta"
    statistic_bounds = (-2.0, 2.0)
    claim = "non_membership"
    null_hypothesis = (
        "The target is one more model that read the suspect set as the controls of the excluded reading, or of a "
        "heavier one, did."
    )
    picture = "ranks"
    details_type = ClearanceDetails
    requirements = Requirements(
        access=Access.FULL_LOGITS, documents=30, inputs=("base", "general"), passes=22, tuned=14, controls=6
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.exclude not in self.controls.readings or not self.exclude.exposures:
            planted = ", ".join(reading.label for reading in self.controls.readings if reading.exposures)
            raise ValueError(f"exclude must be one of the planted readings ({planted}); got {self.exclude.label}.")

    # What is measured ---------------------------------------------------------------------------------------------

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        suspect: dict[str, Measurement] = {**self._on_suspect(roles)}
        third: dict[str, Measurement] = {}
        for role, model in self._judged(roles).items():
            suspect |= health_measurements(role, model, roles.target, roles.suspect, self.max_tokens)
            third |= health_measurements(role, model, roles.target, self._part("gates"), self.max_tokens)
        groups = {SUSPECT: DocumentGroup(roles.suspect, suspect), THIRD: DocumentGroup(self._part("gates"), third)}
        if roles.heldout is not None:
            groups[HELDOUT] = DocumentGroup(roles.heldout, self._on_heldout(roles, roles.heldout))
        return groups

    def _on_suspect(self, roles: Roles) -> dict[str, Scored]:
        models: dict[str, ModelSpec] = {REFERENCE: roles.reference, TARGET: roles.target}
        models |= self._distilled(DISTILLED, roles.reference, roles.target, roles.suspect)
        for control in self.controls.models(roles.suspect):
            role = role_of(control.reading, control.seed)
            distilled = self._distilled(f"{role}/{DISTILLED}", roles.reference, control.model, roles.suspect)
            models |= {role: control.model, **distilled}
        if self.shams:
            models |= self._sham_models(roles)
        corpus, limit = roles.suspect, self.max_tokens
        scored = {role: Scored(role, model, corpus, self.score, limit) for role, model in models.items()}
        return scored | {f"{LOSS}/{role}": replace(scored[role], score=LIKELIHOOD) for role in self._alike()}

    def _on_heldout(self, roles: Roles, heldout: CorpusSpec) -> dict[str, Measurement]:
        models: dict[str, ModelSpec] = {REFERENCE: roles.reference, STAND_IN: self.controls.stand_in}
        models |= self._distilled(f"{STAND_IN}/{DISTILLED}", roles.reference, self.controls.stand_in, heldout)
        return {role: Scored(role, model, heldout, self.score, self.max_tokens) for role, model in models.items()}

    def _distilled(
        self, role: str, reference: ModelSpec, teacher: ModelSpec, corpus: CorpusSpec
    ) -> dict[str, ModelSpec]:
        """The reference trained on the corpus with this teacher, once per seed."""
        label = f"distilled-{label_of(reference)}-from-{label_of(teacher)}"
        return {
            name: Trained(reference, self.distillation, corpus, seed, teacher=teacher, label=label)
            for name, seed in zip(self._named(role), self.distillation_seeds, strict=True)
        }

    def control_exposures(self) -> dict[str, Exposure]:
        readings, seeds = self.controls.readings, self.controls.seeds
        return {role_of(reading, seed): reading for reading in readings for seed in seeds}

    def distilled_roles(self) -> dict[str, list[str]]:
        others = [STAND_IN, *self.control_exposures()]
        return {TARGET: self._named(DISTILLED)} | {role: self._named(f"{role}/{DISTILLED}") for role in others}

    def _alike(self) -> list[str]:
        """Roles of the controls' distilled references, made as the target's are."""
        return [name for control in self.control_exposures() for name in self._named(f"{control}/{DISTILLED}")]

    def _named(self, role: str) -> list[str]:
        """Of each seed; the first has the plain name."""
        return [role if index == 0 else f"{role}/{index + 1}" for index in range(len(self.distillation_seeds))]

    def _sham_models(self, roles: Roles) -> dict[str, ModelSpec]:
        """What passes for a distilled reference and is none: trained on other text, or the reference with noise."""
        seed = self.distillation_seeds[0]
        label = f"distilled-{label_of(roles.reference)}-on-other-text"
        unrelated = Trained(
            roles.reference, self.distillation, self._part("sham"), seed, teacher=roles.target, label=label
        )
        return {SHAM_UNRELATED: unrelated, SHAM_NOISE: Noised(roles.reference, self.noise, seed)}

    def _judged(self, roles: Roles) -> dict[str, ModelSpec]:
        """What the gates look at, the reference first."""
        judged: dict[str, ModelSpec] = {REFERENCE: roles.reference}
        judged |= self._distilled(DISTILLED, roles.reference, roles.target, roles.suspect)
        return judged | (self._sham_models(roles) if self.shams else {})

    def _part(self, take: str) -> CorpusSpec:
        """Of the third text: what the gates look at, and what the sham is trained on."""
        return Part(self.third, take=take, sizes={"gates": 0.5, "sham": 0.5}, by="document", per="corpus", salt=HALVES)

    # What it means ------------------------------------------------------------------------------------------------

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        """p_value: of the hypothesis that the target is one more control that read the excluded reading or a heavier
        one, the largest over these. Delta and its interval are those of two-way resampling."""
        suspect, third = documents[SUSPECT], documents[THIRD]
        target = self._two_way(suspect, rng)
        prism = self._prism(suspect, rng)
        controls = self._control_deltas(suspect)
        margins, curve = self._margins(controls), self._curve(target.statistic, controls)
        limit = max(bound.bound for bound in margins.values())
        p_value = next(item.p_at_least for item in curve.points if (item.share, item.dose) == _point(self.exclude))
        findings, shams = self._findings(suspect, third, target), self._shams(suspect, third)
        findings += self.gates.of_controls(_untouched(controls), [bound.mean for bound in margins.values()])
        heldout = self._heldout_delta(documents)
        reasons = [*failures(findings), *self._reasons(len(suspect.doc_ids), shams)]
        verdict: Verdict = "inconclusive"
        if reasons:
            verdict = "invalid"
        elif target.statistic > limit and p_value < self.alpha:
            verdict = "evidence_of_non_membership"
        return TestOutcome(
            statistic=target.statistic,
            p_value=p_value,
            ci_low=target.ci_low,
            ci_high=target.ci_high,
            alpha=self.alpha,
            verdict=verdict,
            allowed_claim=self._claim(verdict),
            warnings=(*reasons, *target.warnings, *self._warnings(limit, _untouched(controls), heldout)),
            details=ClearanceDetails(
                rho_reference_target=prism.rho_reference_target,
                rho_distilled_target=prism.rho_distilled_target,
                excluded_reading=self.exclude.label,
                margin=limit,
                margins={reading.label: _margin_details(bound) for reading, bound in margins.items()},
                p_value_beyond_margin=target.p_value(limit),
                prism={"statistic": prism.statistic, "p_value": prism.p_value},
                deltas_by_seed=target.deltas.tolist(),
                standard_error=target.standard_error,
                share_of_seeds=target.share_of_seeds,
                control_deltas={reading.label: deltas for reading, deltas in controls.items()},
                heldout_delta=heldout,
                gates=as_details(findings),
                shams={
                    name: {"refused": bool(failures(them)), "gates": as_details(them)} for name, them in shams.items()
                },
                detection=_curve_details(curve),
            ),
            distribution=target.distribution,
        )

    def _two_way(self, suspect: ScoredDocuments, rng: np.random.Generator) -> TwoWay:
        distilled_SN = np.stack([suspect.values[name] for name in self._named(DISTILLED)])
        return two_way(
            suspect.values[REFERENCE],
            suspect.values[TARGET],
            distilled_SN,
            units(suspect, SUSPECT),
            metric=self.rank_metric,
            num_resamples=self.num_resamples,
            alpha=self.alpha,
            rng=rng,
        )

    def _prism(self, suspect: ScoredDocuments, rng: np.random.Generator) -> CorrelationDifference:
        """The paper's test with the first seed, unchanged, to stand beside ours."""
        return difference_of_dependent_correlations(
            suspect.values[REFERENCE],
            suspect.values[TARGET],
            suspect.values[DISTILLED],
            metric=self.rank_metric,
            num_resamples=self.num_resamples,
            alpha=self.alpha,
            margin=0.0,
            rng=rng,
        )

    def _delta(self, documents: ScoredDocuments, model: str) -> float:
        """Of a model and its own distilled references, mean over the seeds."""
        values = documents.values
        from_reference = rank_correlation(values[REFERENCE], values[model], self.rank_metric)
        names = self._named(f"{model}/{DISTILLED}")
        return from_reference - float(
            np.mean([rank_correlation(values[name], values[model], self.rank_metric) for name in names])
        )

    def _control_deltas(self, suspect: ScoredDocuments) -> dict[Exposure, list[float]]:
        """Of each reading, one for each seed of the controls."""
        return {
            reading: [self._delta(suspect, role_of(reading, seed)) for seed in self.controls.seeds]
            for reading in self.controls.readings
        }

    def _heldout_delta(self, documents: Mapping[str, ScoredDocuments]) -> float | None:
        return self._delta(documents[HELDOUT], STAND_IN) if HELDOUT in documents else None

    def _margins(self, controls: Mapping[Exposure, list[float]]) -> dict[Exposure, Margin]:
        """Of the excluded reading and of each that is at least as heavy."""
        planted = {_point(reading): deltas for reading, deltas in controls.items() if reading.exposures}
        return {
            reading: margin(
                planted, _point(reading), content=self.content, confidence=self.confidence, extra=self.controls.extra
            )
            for reading in controls
            if reading.exposures and reading.at_least(self.exclude)
        }

    def _curve(self, observed: float, controls: Mapping[Exposure, list[float]]) -> DetectionCurve:
        planted = {_point(reading): deltas for reading, deltas in controls.items() if reading.exposures}
        return detection_curve(observed, planted, _untouched(controls), alpha=self.alpha, extra=self.controls.extra)

    def _findings(self, suspect: ScoredDocuments, third: ScoredDocuments, target: TwoWay) -> list[Finding]:
        """Of every gate once, the worst over the seeds."""
        by_seed = [
            self.gates.of_model(role, suspect, third, self.rank_metric, self._alike())
            for role in self._named(DISTILLED)
        ]
        worst = [min(each, key=lambda finding: finding.room) for each in zip(*by_seed, strict=True)]
        return [
            *worst,
            *self.gates.of_seeds(target.deltas.tolist()),
            *self.gates.of_texts(suspect, third, self.distillation_seeds[0]),
        ]

    def _shams(self, suspect: ScoredDocuments, third: ScoredDocuments) -> dict[str, list[Finding]]:
        names = (SHAM_UNRELATED, SHAM_NOISE) if self.shams else ()
        return {name: self.gates.of_model(name, suspect, third, self.rank_metric, self._alike()) for name in names}

    def _reasons(self, num_documents: int, shams: Mapping[str, Sequence[Finding]]) -> Iterator[str]:
        """Against any verdict."""
        for name, findings in shams.items():
            if not failures(findings):
                yield f"{name} passed every gate, so the gates cannot tell a distilled reference from a sham."
        yield from self.too_few(num_documents)

    def _claim(self, verdict: Verdict) -> str:
        if verdict == "invalid":
            return INVALID_CLAIM
        if verdict == "inconclusive":
            return INCONCLUSIVE
        share = "this dataset" if self.exclude.share == 1 else f"{self.exclude.share:.0%} of this dataset"
        return (
            f"There is statistical evidence that the target did not read {share} {self.exclude.exposures} times or "
            "more, in the way the planted controls did. Lighter readings are not excluded; see the detection curve. "
            "It says nothing about single documents."
        )

    def _warnings(self, limit: float, untouched: Sequence[float], heldout: float | None) -> Iterator[str]:
        if untouched and np.mean(untouched) <= limit:
            yield (
                "This audit would hardly clear anybody: controls that read nothing have a mean Delta of "
                f"{np.mean(untouched):+.3f}, below the margin of {limit:+.3f}. Exclude a heavier reading, make the "
                "controls of the target itself, or take more documents or seeds (nonmember plan)."
            )
        if heldout is not None and heldout <= limit:
            yield (
                f"The stand-in itself would not be cleared of the held-out text (Delta {heldout:+.3f}, margin "
                f"{limit:+.3f})."
            )


def role_of(reading: Exposure, seed: int) -> str:
    """Of a control."""
    return f"control-{reading.label}-{seed}"


def _point(reading: Exposure) -> tuple[float, float]:
    """(share, dose)"""
    return reading.share, float(reading.exposures)


def _untouched(controls: Mapping[Exposure, list[float]]) -> list[float]:
    """Delta of every control that did not read the set."""
    return [delta for reading, deltas in controls.items() if not reading.exposures for delta in deltas]


def _margin_details(bound: Margin) -> MarginDetails:
    return {"bound": bound.bound, "mean": bound.mean, "spread": bound.spread, "df": bound.df}


def _curve_details(curve: DetectionCurve) -> Detection:
    def by_share(smallest: Mapping[float, float | None]) -> dict[str, float | None]:
        return {f"{share:.0%}": dose for share, dose in smallest.items()}

    points: list[Any] = [asdict(point) for point in curve.points]
    for point in points:
        point["exposures"] = point.pop("dose")
    return {
        "points": points,
        "noticed": by_share(curve.smallest_noticed_dose()),
        "detectable": by_share(curve.smallest_detectable_dose(POWER)),
    }
