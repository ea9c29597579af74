"""How well a score ranks members above non-members, with intervals over clusters of documents.

Scores point the member way; labels are true for members. The measures themselves are in `classification`; here they
are resampled, and a threshold is chosen on one part of the documents and judged on the other.

Shapes: N documents, B resamples, G groups of tied documents.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nonmember.stats._arrays import BoolArray, FloatArray, as_scores
from nonmember.stats.bootstrap import draw_counts, percentile_interval
from nonmember.stats.classification import best_balanced_accuracy, roc_auc, roc_points, tpr_at_fpr

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
    distribution: FloatArray


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
    number: dict[Hashable, int] = {}
    cluster_of = np.array([number.setdefault(item, len(number)) for item in clusters], dtype=np.int64)
    counts = np.empty((len(number), num_resamples))
    draw_counts(rng, out=counts)
    return counts[cluster_of]


def resampled(scores: FloatArray, is_member: BoolArray, counts_NB: FloatArray) -> tuple[FloatArray, FloatArray]:
    """ROC AUC and TPR at FPR <= 5% with each document counted as often as it was drawn.

    Sorted once: no table of pairs.

    Returns:
        Both [B], NaN where a resample lacks a kind.
    """
    order = np.argsort(-scores, kind="stable")
    starts = np.concatenate([[True], np.diff(scores[order]) != 0]).nonzero()[0]
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


def best_threshold(scores: FloatArray, is_member: BoolArray) -> float:
    """The score from which on documents are called members for the largest balanced accuracy; of several the highest.

    Infinity where calling nobody a member is as good as anything.
    """
    points = roc_points(scores, is_member)
    best = int(np.argmax(points.tpr - points.fpr))
    return float("inf") if best == 0 else float(-np.unique(-scores)[best - 1])


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
