"""How well a score separates members from non-members.

Scores point the member way (higher = more member-like); labels are true for members. A document is called a
member where its score is at least the threshold; thresholds are the scores and one above all of them. `ranking` gives
intervals over clusters of documents, and a threshold chosen on one part of them and judged on the other.

Shapes: N documents, B resamples, G groups of tied documents.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from nonmember.stats._arrays import BoolArray, FloatArray, as_scores, numbered
from nonmember.stats.bootstrap import draw_counts, percentile_interval

FprConvention = Literal["<=", "<"]


class RocPoints(NamedTuple):
    """True- and false-positive rates [thresholds], from calling nobody a member to calling everybody one."""

    tpr: FloatArray
    fpr: FloatArray


def roc_auc(scores: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    """Area under the ROC curve: P(member scores above non-member), a tie counted one half.

    Args:
        scores: [N], higher = more likely a member.
        labels: [N], 1 or true for members.

    Returns:
        The Mann-Whitney statistic over the number of pairs, in [0, 1]; 0.5 is chance, below it the score points the
        wrong way. DE-COP's "AUC" is not this but `best_balanced_accuracy`.

    Raises:
        ValueError: On NaN scores, unequal lengths, labels other than 0 and 1, and if a class is empty.

    Source: Hanley and McNeil, Radiology 143, 1982; docs/methods/conventions.md.

    >>> roc_auc([0.9, 0.4, 0.6, 0.1], [1, 1, 0, 0])
    0.75
    """
    ranks, labels = _ranked(scores, labels)
    num_wins = scipy.stats.mannwhitneyu(ranks[labels], ranks[~labels], method="asymptotic").statistic
    num_members = np.count_nonzero(labels)
    return float(num_wins / (num_members * (labels.size - num_members)))


def tpr_at_fpr(scores: npt.ArrayLike, labels: npt.ArrayLike, fpr: float, convention: FprConvention) -> float:
    """Largest true-positive rate at a threshold whose false-positive rate is within a bound; no interpolation.

    Args:
        scores: [N] as in `roc_auc`.
        labels: [N] as in `roc_auc`.
        fpr: The bound, in [0, 1].
        convention: "<=", of Min-K%++, or "<", of the programs of Min-K%, FSD, DC-PDD and mimir.

    Returns:
        A rate in [0, 1].

    Raises:
        ValueError: As `roc_auc`, for another convention, and if no threshold can meet the bound.

    Source: Min-K%++ (Zhang et al., 2025); docs/methods/conventions.md.

    >>> tpr_at_fpr([0.9, 0.4, 0.6, 0.1], [1, 1, 0, 0], 0.05, "<=")
    0.5
    """
    if convention not in ("<=", "<"):
        raise ValueError(f"Expected the convention '<=' or '<'; got {convention!r}. Name one of them.")
    if not 0 <= fpr <= 1 or (fpr == 0 and convention == "<"):
        raise ValueError(
            f"Expected a false-positive rate in [0, 1], above 0 for '<'; got fpr={fpr} with {convention!r}. "
            "Pass 0.05 for TPR at 5% FPR."
        )
    points = roc_points(scores, labels)
    allowed = points.fpr <= fpr if convention == "<=" else points.fpr < fpr
    return float(points.tpr[allowed].max())


def best_balanced_accuracy(scores: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    """Largest (TPR + 1 - FPR) / 2 over all thresholds.

    Args:
        scores: [N] as in `roc_auc`.
        labels: [N] as in `roc_auc`.

    Returns:
        A share in [0.5, 1]. The threshold is chosen on the very data it is scored on, so this is optimistic; report it
        under this name only.

    Raises:
        ValueError: As `roc_auc`.

    Source: "accuracy" of the programs of Min-K%, FSD and DC-PDD, "AUC" of DE-COP; docs/methods/conventions.md.

    >>> best_balanced_accuracy([0.9, 0.4, 0.6, 0.1], [1, 1, 0, 0])
    0.75
    """
    points = roc_points(scores, labels)
    return float(((points.tpr + 1 - points.fpr) / 2).max())


def roc_points(scores: npt.ArrayLike, labels: npt.ArrayLike) -> RocPoints:
    """The ROC curve, one point per distinct score and the origin. Tied documents change sides together.

    Args:
        scores: [N] as in `roc_auc`.
        labels: [N] as in `roc_auc`.

    Returns:
        True- and false-positive rates, [thresholds] each, ascending.

    Raises:
        ValueError: As `roc_auc`.

    Source: docs/methods/conventions.md; scikit-learn's roc_curve.

    >>> roc_points([0.9, 0.4, 0.6, 0.1], [1, 1, 0, 0]).tpr
    array([0. , 0.5, 0.5, 1. , 1. ])
    """
    from sklearn.metrics import roc_curve  # takes a while to import

    ranks, labels = _ranked(scores, labels)
    fpr, tpr, _ = roc_curve(labels, ranks, drop_intermediate=False)
    return RocPoints(tpr, fpr)


def _ranked(scores: npt.ArrayLike, labels: npt.ArrayLike) -> tuple[FloatArray, BoolArray]:
    """Ranks of the scores, on which alone these curves depend, infinite ones among them; and who is a member."""
    scores, labels = as_scores("scores", scores), np.asarray(labels)
    if labels.shape != scores.shape:
        raise ValueError(
            f"Expected one label per score; got shapes {labels.shape} and {scores.shape}. "
            "Join labels and scores on the document id first."
        )
    if not np.isin(labels, (0, 1)).all():
        raise ValueError(
            "Expected labels 1 or true (member) and 0 or false (non-member); "
            f"got also {np.setdiff1d(labels, (0, 1))[0]}. Recode the labels."
        )
    members = labels.astype(np.bool_)
    if members.all() or not members.any():
        raise ValueError(
            f"Expected members and non-members; got {np.count_nonzero(members)} members among {members.size} "
            "documents. Add the other kind: with one kind alone there is nothing to compare."
        )
    return scipy.stats.rankdata(scores), members


# With intervals over clusters -----------------------------------------------------------------------------------------


FPR = 0.05
_BLOCK_ELEMENTS = 2**21  # documents times resamples of a block: 16 MiB an array


@dataclass(frozen=True, eq=False)
class Ranking:
    """How a score ranks members above non-members.

    Attributes:
        auc: Ties count one half.
        auc_low: Lower end of the percentile interval of `auc` over resampled clusters.
        auc_high: Its upper end.
        tpr_at_5pct_fpr: At FPR <= 5%.
        tpr_low: Lower end of the interval of `tpr_at_5pct_fpr`.
        tpr_high: Its upper end.
        tpr_below_5pct_fpr: At FPR < 5% (Min-K%, FSD, mimir).
        best_balanced_accuracy: Its threshold is chosen on the very documents it is scored on: optimistic.
        balanced_accuracy: By the `threshold` chosen on the validation documents, on the others; NaN without both kinds
            on both sides.
        distribution: [B] resampled AUC, NaN where a resample lacks a kind.
    """

    auc: float
    auc_low: float
    auc_high: float
    tpr_at_5pct_fpr: float
    tpr_low: float
    tpr_high: float
    tpr_below_5pct_fpr: float
    best_balanced_accuracy: float
    balanced_accuracy: float
    threshold: float
    distribution: FloatArray = field(repr=False)


def ranking(
    scores: npt.ArrayLike, is_member: BoolArray, counts_NB: FloatArray, validation: BoolArray, *, alpha: float
) -> Ranking:
    """All measures of how one score ranks members above non-members.

    Args:
        scores: [N], higher = more likely a member.
        is_member: [N].
        counts_NB: How often each resample draws each document (`cluster_counts`): the same for scores that are to be
            compared.
        validation: [N] documents on which the threshold is chosen.
        alpha: Intervals are of level 1 - alpha.

    Returns:
        AUC, TPR at 5% FPR and balanced accuracies, in [0, 1], with intervals of the first two.

    Raises:
        ValueError: On NaN scores, if a kind is missing, and for an alpha below 0 or above 2.

    Source: docs/methods/conventions.md and fsd.md.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> is_member = np.repeat([True, False], 50)
    >>> scores = rng.normal(loc=is_member)
    >>> counts = cluster_counts(range(100), 200, rng)
    >>> found = ranking(scores, is_member, counts, rng.random(100) < 0.3, alpha=0.05)
    >>> found.auc_low < round(found.auc, 2) < found.auc_high
    True
    """
    scores = as_scores("scores", scores)
    aucs_B, tprs_B = resampled(scores, is_member, counts_NB)
    threshold, accuracy = honest_accuracy(scores, is_member, validation)
    return Ranking(
        roc_auc(scores, is_member),
        *percentile_interval(aucs_B, alpha),
        tpr_at_fpr(scores, is_member, FPR, "<="),
        *percentile_interval(tprs_B, alpha),
        tpr_at_fpr(scores, is_member, FPR, "<"),
        best_balanced_accuracy(scores, is_member),
        accuracy,
        threshold,
        aucs_B,
    )


def cluster_counts(clusters: Sequence[Hashable], num_resamples: int, rng: np.random.Generator) -> FloatArray:
    """How often each document is drawn where whole clusters are drawn with replacement, as many as there are.

    Args:
        clusters: [N] what documents belong together (book, author); `range(N)` where each stands alone.
        num_resamples: B.
        rng: Of the draws.

    Returns:
        [N, B] counts.

    Raises:
        ValueError: For a negative number of resamples.
        ZeroDivisionError: Without documents.

    Source: the cluster bootstrap; docs/methods/pitfalls.md, item 3.

    >>> import numpy as np
    >>> cluster_counts(["a", "a", "b"], 4, np.random.default_rng(0)).shape
    (3, 4)
    """
    cluster_of = numbered(clusters)
    counts = np.empty((cluster_of.max(initial=-1) + 1, num_resamples))
    draw_counts(rng, out=counts)
    return counts[cluster_of]


def resampled(scores: FloatArray, is_member: BoolArray, counts_NB: FloatArray) -> tuple[FloatArray, FloatArray]:
    """ROC AUC and TPR at FPR <= 5% with each document counted as often as it was drawn.

    Sorted once: no table of pairs.

    Returns:
        Both [B], NaN where a resample lacks a kind.
    """
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    starts = np.concatenate([[True], ordered[1:] != ordered[:-1]]).nonzero()[0]  # infinite ones tie too
    num_resamples = counts_NB.shape[1]
    aucs_B, tprs_B = np.empty(num_resamples), np.empty(num_resamples)
    step = max(1, _BLOCK_ELEMENTS // max(1, scores.size))
    for start in range(0, num_resamples, step):
        block = slice(start, start + step)
        aucs_B[block], tprs_B[block] = _measures(counts_NB[order, block], is_member[order], starts)
    return aucs_B, tprs_B


def _measures(
    counts_NB: FloatArray, is_member: BoolArray, starts: npt.NDArray[np.intp]
) -> tuple[FloatArray, FloatArray]:
    """counts_NB, is_member: highest score first.   starts: where each group of ties begins."""
    members_GB: FloatArray = np.add.reduceat(np.where(is_member[:, None], counts_NB, 0.0), starts, axis=0)
    others_GB: FloatArray = np.add.reduceat(np.where(is_member[:, None], 0.0, counts_NB), starts, axis=0)
    passed_GB = np.cumsum(others_GB, axis=0)  # non-members scored as high or higher
    num_members_B, num_others_B = members_GB.sum(axis=0), passed_GB[-1]
    won_B = (members_GB * (num_others_B - passed_GB + 0.5 * others_GB)).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        auc_B = won_B / (num_members_B * num_others_B)
        tpr_GB = np.cumsum(members_GB, axis=0) / num_members_B
        allowed_GB = passed_GB / num_others_B <= FPR
    tpr_B = np.where(allowed_GB, tpr_GB, 0.0).max(axis=0)
    return auc_B, np.where(np.isnan(auc_B), np.nan, tpr_B)


def best_threshold(scores: npt.ArrayLike, is_member: npt.ArrayLike) -> float:
    """The score from which on documents are called members for the largest balanced accuracy; of several the highest.

    Infinity where calling nobody a member is as good as anything.
    """
    points = roc_points(scores, is_member)
    best = int(np.argmax(points.tpr - points.fpr))
    return float("inf") if best == 0 else float(np.unique(scores)[-best])


def honest_accuracy(scores: FloatArray, is_member: BoolArray, validation: BoolArray) -> tuple[float, float]:
    """(threshold, balanced accuracy): chosen on the validation documents, judged on the others.

    NaN where either part lacks members or non-members.
    """
    for part in (validation, ~validation):
        if is_member[part].all() or not is_member[part].any():
            return float("nan"), float("nan")
    threshold = best_threshold(scores[validation], is_member[validation])
    called, truly = scores[~validation] >= threshold, is_member[~validation]
    return threshold, float((called[truly].mean() + 1 - called[~truly].mean()) / 2)
