"""Shared by methods that compare two sets of works: by a value of each, and by their texts alone.

A unit is a book, a paper, a thread, or the document by itself where it has no such cluster. Questions about one unit
are not independent of each other, so nothing is ever tested over single questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypedDict

import numpy as np

from nonmember.checks import Count, Number, require_count
from nonmember.methods.base import Method, ScoredDocuments, TestOutcome, Verdict, units
from nonmember.methods.details import Details
from nonmember.records import FloatArray
from nonmember.records.groups import HELDOUT, SUSPECT, set_of
from nonmember.stats._arrays import numbered
from nonmember.stats.blind import BlindAuc, BlindBaseline, blind_baseline
from nonmember.stats.monte_carlo import PermutationP
from nonmember.stats.two_groups import (
    GroupComparison,
    ResampledSpread,
    compare_groups,
    mean_difference,
    permuted_mean_difference,
)

FEWEST_UNITS = 5  # of a group, below which nothing is tested
NO_COMMITMENT = (
    "No commitment was given, so nothing shows others that the published variants were chosen before the target's "
    "answers were known. Give the hash that was made public: data.commitment=HASH."
)

Folds = Annotated[int, Count(2, 1_000)]  # of a cross-validation
Penalty = Annotated[float, Number("(0, inf)")]  # C of a logistic regression, inverse


def by_unit(documents: ScoredDocuments, name: str, group: str) -> tuple[list[str], FloatArray]:
    """(labels, values): of every unit, in the order in which they come, the mean of its documents' values of the
    measurement `name`."""
    return mean_by(units(documents, group), documents.values[name])


def mean_by(labels: Sequence[str], values: FloatArray) -> tuple[list[str], FloatArray]:
    """The different labels in the order in which they come, and the mean value of each."""
    rows = numbered(labels)
    return list(dict.fromkeys(labels)), np.bincount(rows, values) / np.bincount(rows)


class TakesFew(Method):
    """A method whose paper took the first few of the resamples."""

    num_resamples: int
    num_few: int

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count(
            self.num_few, 2, "num_few", at_most=self.num_resamples, hint="They are the first of num_resamples."
        )

    def compared(self, first: FloatArray, second: FloatArray, rng: np.random.Generator) -> GroupComparison:
        """The values of two sets' units."""
        return compare_groups(
            first, second, num_resamples=self.num_resamples, num_few=self.num_few, alpha=self.alpha, rng=rng
        )


class Comparison(TypedDict):
    """Of two groups of works."""

    mean_suspect: float
    mean_heldout: float
    num_suspect_works: int
    num_heldout_works: int
    welch_t: float
    welch_degrees_of_freedom: float
    p_value_greater: float
    best_balanced_acc: float
    threshold: float  # on the share of right answers, of the best balanced accuracy
    roc_auc: float
    roc_auc_interval: Sequence[float]  # [low, high]
    few_resamples: Mapping[str, ResampledSpread]  # measure -> over the first few resamples


def comparison(found: GroupComparison) -> Comparison:
    return {
        "mean_suspect": found.mean_first,
        "mean_heldout": found.mean_second,
        "num_suspect_works": found.num_first,
        "num_heldout_works": found.num_second,
        "welch_t": found.t,
        "welch_degrees_of_freedom": found.degrees_of_freedom,
        "p_value_greater": found.p_value_greater,
        "best_balanced_acc": found.best_balanced_accuracy,
        "threshold": found.threshold,
        "roc_auc": found.roc_auc,
        "roc_auc_interval": [found.auc_low, found.auc_high],
        "few_resamples": {_FEW[name]: few for name, few in found.few.items()},
    }


_FEW = {"best_balanced_accuracy": "best_balanced_acc", "roc_auc": "roc_auc", "mean_first": "mean_suspect"}


def in_words(found: GroupComparison, num_few: int) -> str:
    few = found.few["best_balanced_accuracy"]
    welch = (
        f"Welch t = {found.t:.2f} ({found.degrees_of_freedom:.0f} degrees of freedom), p = {found.p_value:.2e}"
        if np.isfinite(found.p_value)
        else "Welch t undefined"
    )
    return (
        f"mean share of right answers {found.mean_first:.3f} in {found.num_first} suspect works, "
        f"{found.mean_second:.3f} in {found.num_second} clean ones; {welch}; best balanced accuracy "
        f"{found.best_balanced_accuracy:.3f} (of {num_few} resamples {few.mean:.3f}, sd {few.sd:.3f}), "
        f"area under the ROC curve {found.roc_auc:.3f} [{found.auc_low:.3f}, {found.auc_high:.3f}]"
    )


def blind_between(
    members: ScoredDocuments,
    others: ScoredDocuments,
    rng: np.random.Generator,
    num_folds: int,
    inverse_penalty: float,
    num_resamples: int = 1,
    alpha: float = 0.05,
) -> BlindBaseline:
    """The blind baseline of two sets; folds are of clusters, where all documents have one and there are enough.

    num_resamples, alpha: of intervals, where these are asked for.
    """
    clusters = [group.cluster_ids for group in (members, others)]
    by_cluster = all(all(ids) and len(set(ids)) >= 2 * num_folds for ids in clusters)
    return blind_baseline(
        members.texts,
        others.texts,
        num_folds=num_folds,
        inverse_penalty=inverse_penalty,
        num_resamples=num_resamples,
        alpha=alpha,
        rng=rng,
        member_clusters=clusters[0] if by_cluster else None,
        nonmember_clusters=clusters[1] if by_cluster else None,
    )


def kinds_of(blind: BlindBaseline) -> dict[str, BlindAuc]:
    """By the kind of features."""
    return {"words": blind.words, "characters": blind.characters, "years": blind.years}


def most_telling(kinds: Mapping[str, BlindAuc]) -> str:
    """The kind that tells the sets apart best. Texts without a year leave that classifier at .5 exactly, which is no
    finding."""
    telling = [name for name, kind in kinds.items() if not np.all(kind.fold_aucs == 0.5)] or list(kinds)
    return max(telling, key=lambda name: kinds[name].auc)


# Means of documents, by permutation of their clusters -----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class GainDetails(Details):
    t: float  # Welch's, with variances by clusters; p is of its permutations
    degrees_of_freedom: float  # of that t in the interval, which is Welch's
    effect_size: float  # of the difference, in standard deviations of single documents
    mean: Mapping[str, float]  # group -> mean gain over the reference, or score, in its units
    num_clusters: Mapping[str, int]  # group -> number of its clusters
    num_heldout: int  # documents of the held-out set


def permuted_means(
    method: Method,
    documents: Mapping[str, ScoredDocuments],
    num_permutations: int,
    claims: Mapping[Verdict, str],
    min_clusters: int,
    rng: np.random.Generator,
    strata: Sequence[str] | None = None,
) -> TestOutcome:
    """The outcome for the mean of suspect documents less that of held-out ones, whole clusters changing sets.

    A document's value is the target's, less the reference's where there is one. p is of `permuted_mean_difference`, as
    `strata` is.
    """
    groups = [documents[group] for group in (SUSPECT, HELDOUT)]
    suspect, heldout = map(_gains, groups)
    clusters = [units(group, name) for group, name in zip(groups, (SUSPECT, HELDOUT), strict=True)]
    numbers = [len(set(names)) for names in clusters]
    few = _too_few(method, groups, numbers, min_clusters)
    if min(numbers) < 2:
        return TestOutcome.invalid([few], alpha=method.alpha)
    test = mean_difference(suspect, heldout, *clusters, alpha=method.alpha)
    varies = not np.isnan(test.p_value)
    permuted = PermutationP(np.nan)
    if varies:
        permuted = permuted_mean_difference(
            suspect, heldout, *clusters, num_permutations=num_permutations, alpha=method.alpha, rng=rng, strata=strata
        )
    verdict: Verdict = "evidence_of_membership" if permuted.p_value < method.alpha else "inconclusive"
    if not varies:
        what = "score less the reference's" if "reference" in groups[0].values else "score"
        few = f"The target's {what} is alike for all documents, and t is undefined."
    if few:
        verdict = "invalid"
    return TestOutcome(
        statistic=test.difference,
        p_value=permuted.p_value,
        p_error=permuted.p_error,
        ci_low=test.ci_low,
        ci_high=test.ci_high,
        alpha=method.alpha,
        verdict=verdict,
        allowed_claim=claims[verdict],
        warnings=[few] if few else [],
        details=GainDetails(
            t=test.t,
            degrees_of_freedom=test.degrees_of_freedom,
            effect_size=test.effect_size,
            mean={SUSPECT: float(suspect.mean()), HELDOUT: float(heldout.mean())},
            num_clusters=dict(zip((SUSPECT, HELDOUT), test.num_clusters, strict=True)),
            num_heldout=len(heldout),
        ),
    )


def _too_few(method: Method, groups: Sequence[ScoredDocuments], num_clusters: Sequence[int], min_clusters: int) -> str:
    """What is left where documents could not be scored."""
    least = method.requirements.documents
    for name, group, number in zip((SUSPECT, HELDOUT), groups, num_clusters, strict=True):
        if len(group.doc_ids) < least or number < min_clusters:
            return (
                f"{len(group.doc_ids)} documents of {number} clusters are left of the {set_of(name)}; the test needs "
                f"{least} documents and {min_clusters} clusters."
            )
    return ""


def _gains(documents: ScoredDocuments) -> FloatArray:
    """[documents] of the target, over the reference where there is one."""
    values = documents.values
    return values["target"] - values["reference"] if "reference" in values else values["target"]
