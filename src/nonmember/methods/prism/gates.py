"""PRISM's gates: preconditions for a verdict of non-membership.

Delta rises with whatever moves the distilled reference away from the target: a ruinous learning rate, noise, other
text. And p-values of scores that hardly differ are about rounding. So no verdict of non-membership is given unless
distillation did what it is for, the reference is another model, and the documents can be ranked.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, TypedDict

import numpy as np

from nonmember.checks import Checked, Count, Number
from nonmember.corpora import CorpusSpec, LibraryDocs, Neutral
from nonmember.methods.base import DocumentGroup, Roles, ScoredDocuments, units
from nonmember.methods.gates import Finding, above, below, kinds_told_apart
from nonmember.models import ModelSpec
from nonmember.observations import Diverged, Measurement, Scored
from nonmember.records.groups import SUSPECT, THIRD
from nonmember.scores import Loss
from nonmember.stats.correlation import RankMetric, rank_correlation
from nonmember.stats.two_groups import mean_difference

LOSS, KL = "loss", "kl"  # columns: loss/<role>, kl/<role>
LIKELIHOOD = Loss()
ONE_SIDED = 0.05  # level of the bound on what the target gains
Bound = Annotated[float, Number("(-inf, inf)", "To apply no gate: gates=off.")]

NO_POWER = "No power here, because "  # as a warning begins where the test could not have cleared the set
LEARNT_IN_GENERAL = (
    f"{NO_POWER}the distilled reference learnt from the documents how the target differs in general: on "
    "third text, which it was not trained on, it agrees with the target better than the reference does (rank "
    "correlations {rho_distilled_target:.3f} and {rho_reference_target:.3f}). So even a set that was never read would "
    "hardly be cleared. If the reference is no sibling of the target, which differs from it in nothing but the "
    "documents, take one for PRISM (model@reference=own_sibling)."
)
RANKS_ARE_NOISE = (
    f"{NO_POWER}target and reference rank even third text too differently by this score (rank correlation "
    "{rho_reference_target:.3f}): single tokens decide, as where a model is nearly certain of many. So even a set that "
    "was never read would hardly be cleared. For PRISM take a reference nearer to the target{or_losses}."
)

TARGET_GAINS = (
    "What the target may gain on the reference in cross-entropy on the suspect set, less the same on the third text "
    "(upper end of a 95% interval; a reading of the set leaves such a gain, for which difference_in_differences tests; "
    "so does other text of its kind, where the reference has read none: then take a sibling as the reference)"
)
OTHER_KIND = (
    "The AUC at which layout or words distinguish the suspect set from the third text (what the target gains on the "
    "set differs with the kind of text: give unread text of the same draw as data.heldout.path=FILE)"
)


class Power(TypedDict):
    """Whether the test could have cleared the set: whether reference and target rank texts alike at all, and whether
    what the distilled reference learnt is of the documents, and not how the target differs from the reference in
    general."""

    rho_reference_target: float  # rank correlation of the scores under reference and target, on the third text
    rho_distilled_target: float  # under distilled reference and target, there
    kl_fall: float  # of the divergence from the target by distillation, on the documents, in nats per token
    kl_fall_third: float  # the same on the third text
    has_power: bool


@dataclass(frozen=True)
class PrismGates(Checked):
    """Bounds (docs/gates.md says where they come from).

    The third text is the audit's held-out text, which is of the suspect set's own kind; else its general text, else
    docstrings of the installed packages named in `docstrings`, without whatever shares a passage with the suspect set:
    at most num_documents documents of min_characters or more, cut to max_characters.
    """

    min_ce_gain: Bound  # by how much it must find the suspect set more likely than the reference does
    # By how much it must have come closer to the target there; below 0: how much farther away it may be.
    min_kl_gain: Bound
    max_kl_rise: Bound  # how much farther from the target it may be on a third text
    max_nll_rise: Bound  # how much less likely it may find the third text
    max_rank_correlation: Bound  # of the reference's scores with the target's; above it they are the same model
    # How much more likely than the target, in nats per token, the reference may find the suspect set, less the same
    # difference on the third text; a reference above it knows the set, or was swapped with the target.
    max_reference_gain: Bound
    min_distinct: Bound  # number of different sets of words as a share of the documents
    min_spread: Bound  # standard deviation of the score over documents as a share of its mean, under each model
    min_delta: Bound  # a significant Delta below it decides nothing
    num_documents: Annotated[int, Count(30)]  # as many as PRISM itself needs
    min_characters: Annotated[int, Count(1)]
    max_characters: Annotated[int, Count(1)]
    docstrings: Sequence[str]
    # As near the target as this none has to come closer: one that starts nearer may move away as far as this. None: all
    # must come closer.
    near_kl: Bound | None = field(default=None, kw_only=True)
    # As `max_reference_gain`, the other way round; above it reading has left the target its trace, and a significant
    # Delta decides nothing, as it may only say that distillation left more. None: not looked at.
    max_target_gain: Bound | None = field(default=None, kw_only=True)
    # That gain as a share of the reference's divergence from the target on the set, which says how far training moves
    # it at all: where that is little, a reading leaves little too. None: whatever that is.
    max_gain_of_start: Bound | None = field(default=None, kw_only=True)
    # How well layout, or words, may distinguish the third text from the suspect set; above it what the target gains
    # says more of kinds of text than of reading, and a significant Delta decides nothing. None: not looked at.
    max_third_auc: Bound | None = field(default=None, kw_only=True)
    # Of Delta on the third text; where it lies below, the distilled reference has learnt what moved the target in
    # general, and the test has no power. None: not looked at.
    min_third_delta: Bound | None = field(default=None, kw_only=True)
    # Of the rank correlation of reference and target there; below it, ranks by this score are mostly noise, and it has
    # none either.
    min_third_agreement: Bound | None = field(default=None, kw_only=True)

    fields_called = "gates.{field}"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "docstrings", tuple(self.docstrings))

    # What is measured ---------------------------------------------------------------------------------------------

    def neutral(self, roles: Roles, half: str, num_documents: int | None) -> CorpusSpec:
        """Text on neither side; the halves "third" and "practice" share no document. null: as many as are suspect."""
        return Neutral(
            roles.general or LibraryDocs(tuple(self.docstrings)),
            roles.suspect,
            half=half,
            num_documents=num_documents,
            min_characters=self.min_characters,
            max_characters=self.max_characters,
        )

    def third(self, roles: Roles) -> CorpusSpec:
        """Unread text of the set's own draw, where there is some."""
        if roles.heldout is not None:
            return roles.heldout
        return self.neutral(roles, THIRD, self.num_documents)

    def groups(
        self, roles: Roles, distilled: ModelSpec, third: CorpusSpec, max_tokens: int
    ) -> dict[str, DocumentGroup]:
        """Health of a distilled reference on the roles' suspect set and on the third text, and how the target does."""
        corpora = {SUSPECT: roles.suspect, THIRD: third}
        return {
            name: DocumentGroup(corpus, _measured(roles, distilled, corpus, max_tokens))
            for name, corpus in corpora.items()
        }

    # What is judged -----------------------------------------------------------------------------------------------

    def of_training(self, role: str, suspect: ScoredDocuments, third: ScoredDocuments) -> list[Finding]:
        """Of the distilled reference by its role; `values` of both groups hold the columns of `_health`."""
        return [
            above(
                "ce",
                -_change(suspect, LOSS, role),
                self.min_ce_gain,
                "The fall of the distilled reference's cross-entropy on the suspect set",
            ),
            above(
                "kl",
                -_change(suspect, KL, role),
                self._least_kl_gain(suspect),
                "The fall of the distilled reference's divergence from the target on the suspect set",
            ),
            below(
                "kl_third",
                _change(third, KL, role),
                self.max_kl_rise,
                "The rise of the distilled reference's divergence from the target on the third text",
            ),
            below(
                "nll_third",
                _change(third, LOSS, role),
                self.max_nll_rise,
                "The rise of the distilled reference's loss on the third text",
            ),
        ]

    def _least_kl_gain(self, suspect: ScoredDocuments) -> float:
        if self.near_kl is None:
            return self.min_kl_gain
        return min(self.min_kl_gain, _start_of(suspect) - self.near_kl)

    def of_models(self, suspect: ScoredDocuments, third: ScoredDocuments) -> list[Finding]:
        """Of reference and target: has the reference read the suspect set?"""
        what = (
            "What the reference gains on the target in cross-entropy on the suspect set, less the same on the third "
            "text (has the reference read the set, were the two models swapped, or is the third text of another kind "
            "than the set? Then give world.general.path=FILE)"
        )
        return [below("reference_gain", _reference_gain(suspect, third), self.max_reference_gain, what)]

    def of_clearance(self, delta: float | None, suspect: ScoredDocuments, third: ScoredDocuments) -> list[Finding]:
        """Of a set that may be cleared. delta: where it is significant, and then it must be large enough; and the
        target may not know the set better than other text of its kind, as it would after reading it: nor by as much as
        the documents at hand allow, the upper end of a one-sided 95% interval."""
        findings = [] if delta is None else [above("delta", delta, self.min_delta, "Delta")]
        if self.max_target_gain is not None:
            bound = self.max_target_gain
            if self.max_gain_of_start is not None:
                bound = min(bound, self.max_gain_of_start * _start_of(suspect))
            findings.append(below("target_gain", _largest_target_gain(suspect, third), bound, TARGET_GAINS))
        if self.max_third_auc is not None:
            auc = kinds_told_apart(suspect.texts, third.texts)
            findings.append(below("third_kind", auc, self.max_third_auc, OTHER_KIND))
        return findings

    def of_scores(self, suspect: ScoredDocuments, roles: Sequence[str], metric: RankMetric) -> list[Finding]:
        """Of the documents and their scores under models by role."""
        rho = rank_correlation(suspect.values["reference"], suspect.values["target"], metric)
        values = {role: suspect.values[role] for role in roles}
        # Standard deviation over |mean|; 0 for scores that are all the same.
        spreads = {role: float(np.std(x)) / max(abs(float(np.mean(x))), 1e-12) for role, x in values.items()}
        least = min(spreads, key=lambda role: spreads[role])
        return [
            below(
                "rank_correlation",
                rho if np.isfinite(rho) else 1.0,
                self.max_rank_correlation,
                "The rank correlation of reference and target, which is 1 if they are the same model,",
            ),
            above(
                "distinct",
                _distinct(suspect.texts),
                self.min_distinct,
                "The number of documents with different words as a share of all",
            ),
            above(
                "spread",
                spreads[least],
                self.min_spread,
                f"The standard deviation of the score under the {least} model as a share of its mean",
            ),
        ]

    def of_power(self, documents: Mapping[str, ScoredDocuments], metric: RankMetric) -> Power | None:
        """Whether the test could have cleared the set."""
        if not self.looks_at_power:
            return None
        suspect, third = documents[SUSPECT], documents[THIRD]
        rho = [
            rank_correlation(third.values[role], third.values["target"], metric) for role in ("reference", "distilled")
        ]
        return {
            "rho_reference_target": rho[0],
            "rho_distilled_target": rho[1],
            "kl_fall": -_change(suspect, KL, "distilled"),
            "kl_fall_third": -_change(third, KL, "distilled"),
            "has_power": self._ranks_agree(rho[0]) and bool(rho[0] - rho[1] > _least(self.min_third_delta)),
        }

    def why_no_power(self, power: Power, by: str) -> str:
        """What an inconclusive result begins with; empty where the test had power. by: name of the score."""
        if power["has_power"]:
            return ""
        why = LEARNT_IN_GENERAL if self._ranks_agree(power["rho_reference_target"]) else RANKS_ARE_NOISE
        or_losses = "" if by == "loss" else ", or a score of all tokens alike (score@method.score=loss)"
        return (
            f"{why.format(**power, or_losses=or_losses)} Methods that have power here: difference_in_differences, dose."
        )

    @property
    def looks_at_power(self) -> bool:
        return self.min_third_delta is not None or self.min_third_agreement is not None

    def _ranks_agree(self, rho: float) -> bool:
        return bool(rho > _least(self.min_third_agreement))


def _least(bound: float | None) -> float:
    return -math.inf if bound is None else bound


def _reference_gain(suspect: ScoredDocuments, third: ScoredDocuments) -> float:
    """By how much the reference leads the target on the suspect set, less the same on the third text, in nats."""
    own, other = (
        float(np.mean(group.values[f"{LOSS}/reference"] - group.values[f"{LOSS}/target"])) for group in (suspect, third)
    )
    return own - other


def _largest_target_gain(suspect: ScoredDocuments, third: ScoredDocuments) -> float:
    """Upper end of a one-sided 95% interval of what the target leads by on the suspect set, less the same on the third
    text, in nats per token, with variances by clusters."""
    own, other = (group.values[f"{LOSS}/target"] - group.values[f"{LOSS}/reference"] for group in (suspect, third))
    found = mean_difference(own, other, units(suspect, SUSPECT), units(third, THIRD), alpha=2 * ONE_SIDED)
    return found.difference if math.isnan(found.ci_high) else found.ci_high


def _measured(roles: Roles, distilled: ModelSpec, corpus: CorpusSpec, max_tokens: int) -> dict[str, Measurement]:
    measured: dict[str, Measurement] = {
        f"{LOSS}/target": Scored("target", roles.target, corpus, LIKELIHOOD, max_tokens),
        **_health("reference", roles.reference, roles.target, corpus, max_tokens),
        **_health("distilled", distilled, roles.target, corpus, max_tokens),
    }
    return measured


def _distinct(texts: Sequence[str]) -> float:
    return len({frozenset(text.lower().split()) for text in texts}) / len(texts) if texts else 1.0


def _start_of(suspect: ScoredDocuments) -> float:
    """The reference's own divergence from the target on the set, nats per token."""
    return float(np.mean(suspect.values[f"{KL}/reference"]))


def _health(
    role: str, model: ModelSpec, target: ModelSpec, corpus: CorpusSpec, max_tokens: int
) -> dict[str, Measurement]:
    """What the gates look at in a model by its role: its loss on a text and its divergence from the target there."""
    return {
        f"{LOSS}/{role}": Scored(role, model, corpus, LIKELIHOOD, max_tokens),
        f"{KL}/{role}": Diverged(model, corpus, role, target, max_tokens),
    }


def _change(documents: ScoredDocuments, what: str, role: str) -> float:
    """Mean change from the reference to the model, of a loss (from its score, minus the loss) or a divergence."""
    sign = -1.0 if what == LOSS else 1.0
    return sign * float(np.mean(documents.values[f"{what}/{role}"] - documents.values[f"{what}/reference"]))
