"""PRISM: evidence that a dataset was *not* used, from rank correlations (PRISM, sections 3 and 4).

Documents are ranked by one score under the target T, a reference R that never saw them, and the distilled reference D:
R trained on them with CE + KL to T. If T had read them, T should agree with D at least as much as with R.
Delta = rho(R, T) - rho(D, T); evidence of non-membership where Delta > margin by a bootstrap over documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np

from nonmember.checks import Number
from nonmember.methods.base import (
    INVALID_CLAIM,
    DocumentGroup,
    Roles,
    SampledMethod,
    ScoredDocuments,
    TestOutcome,
    Verdict,
    on_suspect,
    require_score,
)
from nonmember.methods.details import Details, Gate
from nonmember.methods.gates import Finding, as_details, failures
from nonmember.methods.prism.gates import Power, PrismGates
from nonmember.models import ModelSpec, label_of
from nonmember.records.groups import SUSPECT, THIRD
from nonmember.records.requirements import Access, Requirements
from nonmember.scores import Score
from nonmember.stats.bootstrap import CorrelationDifference, bootstrap_p_value, difference_of_dependent_correlations
from nonmember.stats.correlation import RankMetric, rank_correlation
from nonmember.training import Trained
from nonmember.training.recipes import Distillation, require_distillation

FEW_DOCUMENTS = 150  # figure 3: the p-value is stable from here on
MANY_DOCUMENTS = 1000  # tables 8 and 9: effects as small as those of some trained models become significant
MAX_UNDEFINED = 0.01
SENSITIVITY_MARGIN = 0.1
SCORED = ("target", "reference", "distilled")
UNGATED = (
    "No gate was applied (gates=off): this is the paper's test, which clears a set also where distillation ruined the "
    "reference."
)

NEAR = (
    "The reference started near the target and distillation moved it away: then a single reading may not show in "
    "Delta. In the micro world references as near, distilled from the target, would have cleared all sets that were "
    "read once without the gate target_gain (docs/studies/prism_power.md)."
)

CLAIMS: dict[Verdict, str] = {
    "evidence_of_non_membership": (
        "There is statistical evidence that the target was not trained on this dataset as a whole. Sets that were read "
        "once or twice often pass as well: the test's error on read sets is measured, not guaranteed. It says nothing "
        "about single documents, and partial inclusion is outside the test's model."
    ),
    "inconclusive": (
        "The test found no evidence of non-membership. This is not evidence that the dataset was used for training."
    ),
    "invalid": INVALID_CLAIM,
}


def distilled_reference(roles: Roles, distillation: Distillation) -> Trained:
    """The reference trained on the suspect documents with the target as teacher."""
    return Trained(
        base=roles.reference,
        training=distillation,
        corpus=roles.suspect,
        teacher=roles.target,
        seed=roles.seed,
        label=f"distilled-{label_of(roles.reference)}-from-{label_of(roles.target)}",
    )


@dataclass(frozen=True, kw_only=True)
class PrismDetails(Details):
    """Of an unfit reference only the first number and the gates are told."""

    rho_reference_target: float  # rank correlation of the scores under reference and target
    rho_distilled_target: float | None = None  # under distilled reference and target
    rho_distilled_reference: float | None = None  # under distilled reference and reference
    # With a margin of 0.1.
    p_value_at_larger_margin: float | None = field(metadata={"key": "p_value_at_margin_0.1"}, default=None)
    num_resamples: int | None = None  # drawn in all: more than were asked for where p lay near alpha
    num_undefined_resamples: int | None = None  # resamples of constant scores
    num_tied_scores: Mapping[str, int] | None = None  # role -> documents less different scores
    gates: Mapping[str, Gate] | None = None  # name of a gate -> what was found; left out where none was applied
    power: Power | None = None  # whether the test could have cleared the set; left out where that was not looked at


@dataclass(frozen=True)
class Prism(SampledMethod):
    score: Annotated[Score, require_score]  # per-document score (the paper's is Min-K%++)
    distillation: Annotated[Distillation, require_distillation]  # how the distilled reference is made
    rank_metric: RankMetric  # spearman or kendall
    num_resamples: int  # B
    alpha: float
    # Delta must exceed it; 0 is the paper's test.
    margin: Annotated[float, Number("[0, 2)", hint="It is a difference of rank correlations.")]
    max_tokens: int
    # What must hold before a verdict of non-membership; None: nothing, as in the paper.
    gates: PrismGates | None = field(default=None, kw_only=True)

    name = "prism"
    statistic_name = "Delta"
    statistic_bounds = (-2.0, 2.0)
    claim = "non_membership"
    guarantee = "asymptotic"
    null_hypothesis = (
        "The target ranks the suspect documents at least as much like the distilled reference as like the "
        "reference (Delta is at most the margin), as a model that read them would."
    )
    picture = "ranks"
    details_type = PrismDetails
    requirements = Requirements(
        access=Access.FULL_LOGITS, documents=30, inputs=("reference", "general"), passes=3, tuned=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.gates == "off":  # as in method.gates=off, which Hydra takes for a word
            object.__setattr__(self, "gates", None)
        if self.gates is not None and not isinstance(self.gates, PrismGates):
            raise ValueError(
                f"gates must be PRISM's gates or off; got {self.gates!r}. Choose gates=standard or gates=off."
            )

    def settings(self) -> dict[str, Any]:
        """Gates only where there are any, so that keys of what was stored before they came are the same."""
        settings = super().settings()
        return {name: value for name, value in settings.items() if name != "gates" or value is not None}

    @property
    def is_gated(self) -> bool:
        return self.gates is not None

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        models: dict[str, ModelSpec] = {"target": roles.target, "reference": roles.reference}
        if roles.obstacle:
            return on_suspect(roles, self.score, self.max_tokens, models)
        distilled = self.distilled(roles)
        models["distilled"] = distilled
        groups = on_suspect(roles, self.score, self.max_tokens, models)
        if self.gates is None:
            return groups
        gated = self.gates.groups(roles, distilled, self.gates.third(roles), self.max_tokens)
        suspect = DocumentGroup(roles.suspect, {**groups[SUSPECT].measured, **gated[SUSPECT].measured})
        third = gated[THIRD]
        if self.gates.looks_at_power:
            scored = on_suspect(replace(roles, suspect=third.corpus), self.score, self.max_tokens, models)
            third = replace(third, measured={**scored[SUSPECT].measured, **third.measured})
        return {SUSPECT: suspect, THIRD: third}

    def distilled(self, roles: Roles) -> Trained:
        return distilled_reference(roles, self.distillation)

    def distilled_roles(self) -> Mapping[str, Sequence[str]]:
        return {"target": ("distilled",)}

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        scores = documents[SUSPECT]
        if "distilled" not in scores.values:
            return self._without_distillation(scores)
        if few := self.too_few_clusters(documents):
            return TestOutcome.invalid(few, alpha=self.alpha)
        reference, target, distilled = (scores.values[role] for role in ("reference", "target", "distilled"))
        difference = difference_of_dependent_correlations(
            reference,
            target,
            distilled,
            metric=self.rank_metric,
            num_resamples=self.num_resamples,
            alpha=self.alpha,
            margin=self.margin,
            rng=rng,
            clusters=self.clusters(documents),
        )
        verdict, power, gates, reasons = self._decided(documents, difference)
        return TestOutcome(
            statistic=difference.statistic,
            p_value=difference.p_value,
            p_error=difference.p_error,
            ci_low=difference.ci_low,
            ci_high=difference.ci_high,
            alpha=self.alpha,
            verdict=verdict,
            allowed_claim=CLAIMS[verdict],
            warnings=(*reasons, *self._warnings(difference)),
            details=PrismDetails(
                rho_reference_target=difference.rho_reference_target,
                rho_distilled_target=difference.rho_distilled_target,
                rho_distilled_reference=rank_correlation(distilled, reference, self.rank_metric),
                p_value_at_larger_margin=bootstrap_p_value(difference.distribution, SENSITIVITY_MARGIN),
                num_resamples=difference.num_resamples,
                num_undefined_resamples=difference.num_undefined,
                num_tied_scores={
                    role: difference.num_documents - len(np.unique(scores.values[role])) for role in SCORED
                },
                gates=gates,
                power=power,
            ),
            distribution=difference.distribution,
        )

    def _decided(
        self, documents: Mapping[str, ScoredDocuments], difference: CorrelationDifference
    ) -> tuple[Verdict, Power | None, Mapping[str, Gate] | None, list[str]]:
        """What p says, as far as the gates let it; what they found, and why they do not."""
        verdict: Verdict = "evidence_of_non_membership" if difference.p_value < self.alpha else "inconclusive"
        if self.too_few(difference.num_documents) or difference.undefined_fraction > MAX_UNDEFINED:
            verdict = "invalid"
        if self.gates is None:
            return verdict, None, None, []
        findings, power = self._findings(self.gates, documents), self.gates.of_power(documents, self.rank_metric)
        if failed := failures(findings):
            verdict = "invalid"
        elif verdict != "invalid":
            delta = difference.statistic if verdict == "evidence_of_non_membership" else None
            findings += self.gates.of_clearance(delta, documents[SUSPECT], documents[THIRD])
            if failed := failures(findings):
                verdict = "inconclusive"
        gates = as_details(findings)
        if power is not None and verdict != "invalid" and (why := self.gates.why_no_power(power, self.score.name)):
            # Else another score, tried where this one has no power, would be a second test at the same level.
            verdict = "inconclusive"
            failed.append(why)
        if verdict == "evidence_of_non_membership" and (gates["kl"]["value"] or 0.0) <= self.gates.min_kl_gain:
            failed.append(NEAR)
        return verdict, power, gates, failed

    def _warnings(self, difference: CorrelationDifference) -> Iterator[str]:
        """Of the number of documents, and of scores that hardly differ."""
        n = difference.num_documents
        if few := self.too_few(n):
            yield from few
        elif n < FEW_DOCUMENTS:
            yield f"{n} documents: below {FEW_DOCUMENTS} the p-value is unstable (PRISM, figure 3)."
        elif n > MANY_DOCUMENTS:
            yield (
                f"{n} documents: above {MANY_DOCUMENTS} the small positive Delta of models that did read the documents "
                f"can become significant (PRISM, tables 8 and 9); see the p-value at margin {SENSITIVITY_MARGIN}."
            )
        if difference.undefined_fraction > MAX_UNDEFINED:
            yield (
                f"{difference.undefined_fraction:.1%} of the resamples have no rank correlation (constant scores); "
                f"at most {MAX_UNDEFINED:.0%} may."
            )
        if self.gates is None:
            yield UNGATED

    def _findings(self, gates: PrismGates, documents: Mapping[str, ScoredDocuments]) -> list[Finding]:
        suspect, third = documents[SUSPECT], documents[THIRD]
        return [
            *gates.of_training("distilled", suspect, third),
            *gates.of_models(suspect, third),
            *gates.of_scores(suspect, SCORED, self.rank_metric),
        ]

    def _without_distillation(self, scores: ScoredDocuments) -> TestOutcome:
        """Where the reference is unfit: what can be said of it without a distilled one."""
        rho = rank_correlation(scores.values["reference"], scores.values["target"], self.rank_metric)
        findings = [] if self.gates is None else self.gates.of_scores(scores, SCORED[:2], self.rank_metric)
        details = PrismDetails(rho_reference_target=rho, gates=as_details(findings))
        return TestOutcome.invalid(failures(findings), alpha=self.alpha, details=details)
