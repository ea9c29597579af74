"""Rank correlation of two scores over the same documents, and of many resamples at once, without sorting any of them.

A resample with replacement is a vector of counts: how often each document was drawn. The order of the
documents and their ties never change, so they are found once; within a resample the rank of a document
follows from how many draws lie before it, a running sum of counts along the fixed order. All sums are over
whole numbers no larger than n^3 and float64 holds whole numbers up to 2^53, so up to 200,000 documents no sum
is ever rounded and no result depends on how the resamples are cut into blocks.

Shapes: N documents, B resamples, R rows of a panel. Documents come first: a step along the order is a contiguous row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import scipy

from nonmember.stats._arrays import FloatArray, IntArray, as_paired_scores

RankMetric = Literal["spearman", "kendall"]


def check_metric(metric: str) -> None:
    """`ValueError` unless `metric` is a `RankMetric`."""
    if metric not in get_args(RankMetric):
        raise ValueError(
            f"Expected a rank correlation out of {', '.join(get_args(RankMetric))}; got {metric!r}. Name one of them."
        )


def rank_correlation(x: npt.ArrayLike, y: npt.ArrayLike, metric: RankMetric) -> float:
    """Spearman's rho or Kendall's tau-b of two scores over the same documents.

    Spearman is the Pearson correlation of average ranks (the shortcut 1 - 6 sum d^2 / (n^3 - n) is wrong with
    ties); Kendall is tau-b, which corrects for ties on either side.

    Args:
        x: [N] scores. Infinite ones are allowed: only order counts.
        y: [N] scores of the same documents in the same order, likewise.
        metric: "spearman" or "kendall".

    Returns:
        A number in [-1, 1], positive where both scores order the documents alike; NaN where a side is constant and so
        orders nothing.

    Raises:
        ValueError: On NaN, on unequal lengths, on fewer than two documents and on an unknown metric.

    Source: the correlations of PRISM, tables 2 and 3 (Spearman) and 12 (Kendall).

    >>> rank_correlation([1, 2, 3, 4], [1, 3, 2, 4], "spearman")
    0.8
    """
    check_metric(metric)
    x, y = as_paired_scores(x=x, y=y)
    if metric == "kendall":
        return float(scipy.stats.kendalltau(x, y, variant="b").statistic)
    # Twice the centred average ranks are whole numbers, so the three sums below carry no rounding.
    x_rank = 2 * scipy.stats.rankdata(x) - (x.size + 1)
    y_rank = 2 * scipy.stats.rankdata(y) - (y.size + 1)
    scale = np.sqrt((x_rank @ x_rank) * (y_rank @ y_rank))
    return float(x_rank @ y_rank / scale) if scale > 0 else float("nan")


# Many resamples at once -----------------------------------------------------------------------------------------------


_PANEL_ROWS = 128  # rows of the sign matrix held at once


@dataclass(frozen=True, eq=False)
class Ordering:
    """The order a score puts documents in.

    Attributes:
        order: [N] documents by ascending score.
        level: [N] place of each document among the distinct values.
        tied: The sets of two or more documents with equal scores.
    """

    order: IntArray
    level: IntArray
    tied: tuple[IntArray, ...]

    @classmethod
    def of(cls, scores: FloatArray) -> Ordering:
        """Sort once. `scores` [N] without NaN."""
        _, level, sizes = np.unique(scores, return_inverse=True, return_counts=True)
        order = np.argsort(level, kind="stable")
        groups = np.split(order, np.cumsum(sizes)[:-1])
        return cls(order, level.astype(np.int64), tuple(group for group in groups if group.size > 1))


def correlations_of_counts(
    counts_NB: FloatArray, others: Sequence[Ordering], target: Ordering, metric: RankMetric
) -> list[FloatArray]:
    """Correlation of each of `others` with `target` in every resample, one array [B] each, NaN if undefined.

    Equal to repeating every document as often as it was drawn and calling `rank_correlation`.

    Args:
        counts_NB: [documents, resamples] float64 whole numbers. Copies of a document always tie with each other.
    """
    if metric == "spearman":
        return _spearman(counts_NB, others, target)
    return _kendall(counts_NB, others, target)


def _spearman(counts_NB: FloatArray, others: Sequence[Ordering], target: Ordering) -> list[FloatArray]:
    """Weighted Pearson correlation of average ranks, as a ratio of whole numbers.

    With b draws before a group of g tied draws and n in all, the average rank is b + (g + 1)/2, and twice its
    distance to the mean rank is 2b + g - n, or 2u - g - n with u = b + g draws up to and with the group.
    """
    num_drawn_B = counts_NB.sum(axis=0)
    weighted_NB, upto_NB = np.empty((2, *counts_NB.shape))  # the two large arrays; memory is most of the time

    group_NB = _group_counts(counts_NB, target)
    _draws_up_to(counts_NB, target, out=weighted_NB)
    weighted_NB *= 2
    weighted_NB -= group_NB
    weighted_NB -= num_drawn_B
    weighted_NB *= counts_NB  # from here on: counts times centred ranks, which sum to zero
    target_squares_B = _sum_of_squares(counts_NB, group_NB, num_drawn_B)

    correlations = []
    for other in others:
        group_NB = _group_counts(counts_NB, other)
        _draws_up_to(counts_NB, other, out=upto_NB)
        products_B = 2 * _dot(weighted_NB, upto_NB) - _dot(weighted_NB, group_NB)  # n drops out
        squares_B = _sum_of_squares(counts_NB, group_NB, num_drawn_B)
        correlations.append(_ratio(products_B, squares_B, target_squares_B))
    return correlations


def _draws_up_to(counts_NB: FloatArray, ordering: Ordering, out: FloatArray) -> None:
    """Draws whose score is at most that of each document, into `out` [N, B]."""
    counts, upto = list(counts_NB), list(out)
    running_B = np.zeros(counts_NB.shape[1])
    for document in ordering.order.tolist():
        running_B = np.add(running_B, counts[document], upto[document])
    for group in ordering.tied:
        out[group] = out[group[-1]]


def _sum_of_squares(counts_NB: FloatArray, group_NB: FloatArray, num_drawn_B: FloatArray) -> FloatArray:
    """Squares of twice the centred ranks, summed over draws [B]: (n^3 - sum over groups of g^3) / 3."""
    cubes_B: FloatArray = np.einsum("nb,nb,nb->b", counts_NB, group_NB, group_NB)
    return (num_drawn_B**3 - cubes_B) / 3


def _group_counts(counts_NB: FloatArray, ordering: Ordering) -> FloatArray:
    """How many draws tie with each document, its own copies included [N, B]."""
    if not ordering.tied:
        return counts_NB
    group_NB = counts_NB.copy()
    for group in ordering.tied:
        group_NB[group] = counts_NB[group].sum(axis=0)
    return group_NB


def _kendall(counts_NB: FloatArray, others: Sequence[Ordering], target: Ordering) -> list[FloatArray]:
    target_untied_B = _untied_pairs(counts_NB, target)
    return [
        _ratio(_concordance(counts_NB, other, target), _untied_pairs(counts_NB, other), target_untied_B)
        for other in others
    ]


def _untied_pairs(counts_NB: FloatArray, ordering: Ordering) -> FloatArray:
    """Ordered pairs of draws that the score tells apart [B]: n^2 - sum over groups of g^2."""
    num_drawn_B: FloatArray = counts_NB.sum(axis=0)
    return num_drawn_B**2 - _dot(counts_NB, _group_counts(counts_NB, ordering))


def _concordance(counts_NB: FloatArray, x: Ordering, y: Ordering) -> FloatArray:
    """sum_ij c_i c_j sign(x_i - x_j) sign(y_i - y_j) [B]: concordant minus discordant ordered pairs of draws.

    The product with the sign matrix runs in float32, where it is exact: no entry exceeds the number of draws,
    far below 2^24.
    """
    narrow_NB = counts_NB.astype(np.float32)
    total_B = np.zeros(counts_NB.shape[1])
    for start in range(0, len(counts_NB), _PANEL_ROWS):
        rows = slice(start, start + _PANEL_ROWS)
        signs_RN = _signs(x.level, rows) * _signs(y.level, rows)
        lead_RB = (signs_RN.astype(np.float32) @ narrow_NB).astype(np.float64)
        total_B += _dot(counts_NB[rows], lead_RB)
    return total_B


def _signs(level: IntArray, rows: slice) -> np.ndarray[tuple[int, int], np.dtype[np.int8]]:
    """sign(level_i - level_j) for i in `rows` and every j, as int8."""
    above = level[rows, None] > level
    below = level[rows, None] < level
    return above.view(np.int8) - below.view(np.int8)


def _dot(left_NB: FloatArray, right_NB: FloatArray) -> FloatArray:
    """Sum over documents of the product [B]."""
    product_B: FloatArray = np.einsum("nb,nb->b", left_NB, right_NB)
    return product_B


def _ratio(numerator_B: FloatArray, left_B: FloatArray, right_B: FloatArray) -> FloatArray:
    """numerator / sqrt(left right), exact if left = right (root of a square); NaN where one is 0."""
    with np.errstate(invalid="ignore"):
        return numerator_B / np.sqrt(left_B * right_B)
