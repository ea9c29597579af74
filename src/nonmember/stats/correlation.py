"""Rank correlation of two scores over the same documents."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import scipy

from nonmember.stats._arrays import as_paired_scores

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
