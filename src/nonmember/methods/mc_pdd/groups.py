"""MC-PDD beside scores of single documents, on equal terms: all over groups of documents, and all over documents.

The paper's table VII puts an AUC over five groups of 150 documents beside AUCs over single documents of its rivals,
which do not compare; and its three disjoint groups of unseen documents need more of these than there are. Here groups
are disjoint, every score is averaged over the same groups, and the document-level numbers stand by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, TypedDict

import numpy as np
import numpy.typing as npt

from nonmember.checks import Count
from nonmember.methods.base import (
    INVALID_WITHOUT_TEST,
    DocumentGroup,
    Method,
    Roles,
    ScoredDocuments,
    TestOutcome,
    Verdict,
)
from nonmember.methods.comparison import Folds, Penalty, blind_between, kinds_of
from nonmember.methods.details import Details
from nonmember.methods.mc_pdd.mc_pdd import HITS, McPdd, hits_of
from nonmember.observations import Measurement
from nonmember.records import Corpus, FloatArray
from nonmember.records.groups import HELDOUT, SUSPECT, set_of
from nonmember.records.requirements import Access
from nonmember.scores import Score
from nonmember.stats.blind import INTERPRETABLE_UP_TO, BlindBaseline
from nonmember.stats.classification import best_balanced_accuracy, roc_auc
from nonmember.stats.proportions import difference_of_rates
from nonmember.stats.two_groups import ResampledSpread

NAME = "mc_pdd"  # among the scores
CLAIM = (
    "None about these documents: the AUCs say how well scores tell two labelled sets apart, over groups and over "
    "single documents. AUCs of the two kinds do not compare."
)

Indices = npt.NDArray[np.int64]


class GroupedScore(TypedDict):
    """group_auc, group_best_balanced_acc: over groups of documents.   auc, best_balanced_acc: over single ones."""

    group_auc: ResampledSpread
    group_best_balanced_acc: ResampledSpread
    auc: float
    best_balanced_acc: float


@dataclass(frozen=True, kw_only=True)
class GroupDetails(Details):
    scores: Mapping[str, GroupedScore]  # name of a score -> how it tells groups, and documents, apart
    decision_accuracy: ResampledSpread  # share of groups that MC-PDD's test decides rightly
    num_member_groups: int  # of one repetition
    num_nonmember_groups: int  # of one repetition
    auroc_blind: float  # the largest AUC from text alone
    blind: Mapping[str, float]  # kind of features -> AUC from text alone
    num_members: int  # documents of the suspect set
    num_nonmembers: int  # documents of the held-out set


@dataclass(frozen=True)
class McPddGroups(Method):
    """The suspect set are documents that the target has read, the held-out set others; both labels are given."""

    # How documents are asked about, and the test of a group; a group that is found to be read, or not found to be
    # unread where its reference is `member`, is called one of members.
    mc_pdd: McPdd
    scores: Sequence[Score]  # its rivals, by log-probabilities
    # group_size, num_reference: documents of a group and of the reference corpus, drawn without overlap
    group_size: Annotated[int, Count(1)]
    num_reference: Annotated[int, Count(1)]
    num_repetitions: Annotated[int, Count(1)]  # of the draw
    # num_folds, inverse_penalty, num_blind_resamples: of the blind baseline
    num_folds: Folds
    inverse_penalty: Penalty
    num_blind_resamples: int
    alpha: float
    max_tokens: int

    name = "mc_pdd_groups"
    statistic_name = "AUC"
    statistic_bounds = (0.0, 1.0)
    picture = "answers"
    details_type = GroupDetails
    requirements = replace(
        McPdd.requirements, access=Access.FULL_LOGITS, inputs=("heldout", "reference", "general", "titles", "follows")
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mc_pdd.control:
            raise ValueError("Groups are compared without random words: use method.mc_pdd.control=false.")

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        return {name: self._with_scores(group, roles) for name, group in self.mc_pdd.groups(roles).items()}

    def _with_scores(self, group: DocumentGroup, roles: Roles) -> DocumentGroup:
        scored: dict[str, Measurement] = {
            score.name: roles.scored(score, group.corpus, self.max_tokens) for score in self.scores
        }
        return replace(group, measured={**group.measured, **scored})

    def check(self, corpora: Mapping[str, Corpus]) -> None:
        self.mc_pdd.check(corpora)
        for name, corpus in corpora.items():
            self._require(name, len(corpus))

    def _require(self, name: str, num_documents: int) -> None:
        """Enough documents of a set for one group, and for the reference corpus where it is taken from this set."""
        needed = self.group_size + (self.num_reference if name == self._referred else 0)
        if num_documents < needed:
            raise ValueError(
                f"One group of the {set_of(name)} needs {needed} documents with an answer and all scores, but there "
                f"are {num_documents}. Give more documents, or lower method.group_size or method.num_reference."
            )

    @property
    def _referred(self) -> str:
        """The set that the reference corpus is taken from."""
        return SUSPECT if self.mc_pdd.reference == "member" else HELDOUT

    # What it means ------------------------------------------------------------------------------------------------

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        """The statistic is the AUC of MC-PDD over groups, its mean over the repetitions."""
        for name, group in documents.items():
            self._require(name, len(group.doc_ids))
        members, others = documents[SUSPECT], documents[HELDOUT]
        names = {NAME: HITS} | {score.name: score.name for score in self.scores}
        repetitions = [self._repetition(documents, names, rng) for _ in range(self.num_repetitions)]
        is_member = np.repeat([True, False], [len(members.doc_ids), len(others.doc_ids)])
        whole = {name: np.concatenate([members.values[key], others.values[key]]) for name, key in names.items()}
        blind = blind_between(
            members, others, rng, self.num_folds, self.inverse_penalty, self.num_blind_resamples, self.alpha
        )
        reasons = self.mc_pdd.reasons_against(documents)
        verdict: Verdict = "invalid" if reasons else "score_only"
        aucs = {name: [item[name]["auc"] for item in repetitions] for name in names}
        scores: dict[str, GroupedScore] = {
            name: {
                "group_auc": _mean_sd(aucs[name]),
                "group_best_balanced_acc": _mean_sd([item[name]["best_balanced_acc"] for item in repetitions]),
                "auc": roc_auc(values, is_member),
                "best_balanced_acc": best_balanced_accuracy(values, is_member),
            }
            for name, values in whole.items()
        }
        return TestOutcome(
            statistic=float(np.mean(aucs[NAME])),
            alpha=self.alpha,
            verdict=verdict,
            allowed_claim=INVALID_WITHOUT_TEST if reasons else CLAIM,
            warnings=(*reasons, *_confounded(blind)),
            details=GroupDetails(
                scores=scores,
                decision_accuracy=_mean_sd([item[NAME]["decided_right"] for item in repetitions]),
                num_member_groups=int(repetitions[0][NAME]["num_member_groups"]),
                num_nonmember_groups=int(repetitions[0][NAME]["num_nonmember_groups"]),
                auroc_blind=blind.largest_auc,
                blind={name: kind.auc for name, kind in kinds_of(blind).items()},
                num_members=len(members.doc_ids),
                num_nonmembers=len(others.doc_ids),
            ),
        )

    def _repetition(
        self, documents: Mapping[str, ScoredDocuments], names: Mapping[str, str], rng: np.random.Generator
    ) -> dict[str, dict[str, float]]:
        """One draw: of each score its AUC over groups, of MC-PDD its decisions too."""
        drawn = {name: rng.permutation(len(group.doc_ids)) for name, group in documents.items()}
        reference, drawn[self._referred] = np.split(drawn[self._referred], [self.num_reference])
        groups = [(name, indices) for name in (SUSPECT, HELDOUT) for indices in self._cut(drawn[name])]
        is_member = np.array([name == SUSPECT for name, _ in groups])
        found: dict[str, dict[str, float]] = {}
        for score, key in names.items():
            means = np.array([documents[name].values[key][indices].mean() for name, indices in groups])
            found[score] = {
                "auc": roc_auc(means, is_member),
                "best_balanced_acc": best_balanced_accuracy(means, is_member),
            }
        decided = [
            self._called_member(_part(documents[name], indices), _part(documents[self._referred], reference), rng)
            for name, indices in groups
        ]
        found[NAME] |= {
            "decided_right": float(np.mean(np.array(decided) == is_member)),
            "num_member_groups": int(is_member.sum()),
            "num_nonmember_groups": int((~is_member).sum()),
        }
        return found

    def _cut(self, indices: Indices) -> list[Indices]:
        """Disjoint groups, as many as there are documents for."""
        number = len(indices) // self.group_size
        return np.split(indices[: number * self.group_size], number)

    def _called_member(self, group: ScoredDocuments, reference: ScoredDocuments, rng: np.random.Generator) -> bool:
        hits, of_reference = hits_of(group, SUSPECT), hits_of(reference, HELDOUT)
        by_members = self.mc_pdd.reference == "member"
        less, more = (hits, of_reference) if by_members else (of_reference, hits)
        found = difference_of_rates(
            less, more, num_resamples=self.mc_pdd.num_resamples, alpha=self.mc_pdd.alpha, rng=rng
        )
        return (found.p_value < self.mc_pdd.alpha) != by_members


def _part(documents: ScoredDocuments, indices: Indices) -> ScoredDocuments:
    """Some of the documents, with what they answered."""
    return ScoredDocuments(
        doc_ids=tuple(documents.doc_ids[index] for index in indices),
        values={},
        cluster_ids=tuple(documents.cluster_ids[index] for index in indices),
        answers={HITS: tuple(documents.answers[HITS][index] for index in indices)},
    )


def _mean_sd(values: Sequence[float]) -> ResampledSpread:
    """Over the repetitions."""
    found: FloatArray = np.array(values, dtype=np.float64)
    return ResampledSpread(float(found.mean()), float(found.std(ddof=1)) if len(found) > 1 else np.nan)


def _confounded(blind: BlindBaseline) -> list[str]:
    if blind.interpretable:
        return []
    return [
        f"Text alone tells the two sets apart with an AUC of {blind.largest_auc:.3f}, above {INTERPRETABLE_UP_TO}: no "
        "AUC here can be read as membership."
    ]
