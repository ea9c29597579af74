"""What a score says of sets of which a known share was read: does it rise with the share, and how small a difference
between two shares does it show?

Shapes: D draws, L levels. A level is the share c of a set that was read; a draw is one sample of documents, of which
there is a set for each level.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from nonmember.stats._arrays import FloatArray
from nonmember.stats.correlation import rank_correlation


@dataclass(frozen=True, eq=False)
class LevelCorrelation:
    """Correlation of a score with the level.

    NaN where the score does not vary.

    Attributes:
        spearman: Spearman's, of the mean over draws.
        pearson: Pearson's, of the mean over draws.
        spearman_by_draw: [D] Spearman's of each draw by itself; with its mean and sample standard deviation, NaN for a
            single draw.
        pearson_by_draw: [D] Pearson's, likewise.
    """

    spearman: float
    pearson: float
    spearman_by_draw: FloatArray
    pearson_by_draw: FloatArray

    @property
    def spearman_mean(self) -> float:
        return float(self.spearman_by_draw.mean())

    @property
    def spearman_sd(self) -> float:
        return _sd(self.spearman_by_draw)

    @property
    def pearson_mean(self) -> float:
        return float(self.pearson_by_draw.mean())

    @property
    def pearson_sd(self) -> float:
        return _sd(self.pearson_by_draw)


@dataclass(frozen=True, eq=False)
class Consistency:
    """How alike draws of one level score, against how far apart levels are.

    Attributes:
        mean: [L] over draws.
        sd: [L] over draws, with D - 1.
        variation: [L] sd / |mean|, NaN where the mean is 0.
        pooled_sd: Root of the mean variance.
        degrees_of_freedom: Of `pooled_sd`, L (D - 1).
        gaps: [G] distances between levels, ascending.
        p_values: [G] the largest one-sided p of two draws at that distance whose scores are the means of their levels.
        smallest_gap: The least distance from which on each p is below alpha; NaN where there is none.
    """

    mean: FloatArray
    sd: FloatArray
    variation: FloatArray
    pooled_sd: float
    degrees_of_freedom: int
    gaps: FloatArray
    p_values: FloatArray
    smallest_gap: float


def level_correlation(levels_L: npt.ArrayLike, scores_DL: npt.ArrayLike) -> LevelCorrelation:
    """Spearman and Pearson between levels and scores: of the means over draws, and of each draw.

    Args:
        levels_L: [L] share of a set that was read, in any order.
        scores_DL: [D, L] score of each draw at each level.

    Returns:
        Both correlations, in [-1, 1]; NaN where a score does not vary.

    Raises:
        ValueError: For shapes that do not fit, NaN, fewer than two levels, and levels that come twice.

    Source: KDS, section 4, which does not say whether seeds are averaged before or after correlating.

    >>> level_correlation([0.0, 0.5, 1.0], [[-3.0, -2.0, -1.0], [-3.0, -1.0, -2.0]]).spearman_by_draw
    array([1. , 0.5])
    """
    levels, scores = _as_levels(levels_L, scores_DL)
    mean = scores.mean(axis=0)
    return LevelCorrelation(
        spearman=rank_correlation(levels, mean, "spearman"),
        pearson=_pearson(levels, mean),
        spearman_by_draw=np.array([rank_correlation(levels, row, "spearman") for row in scores]),
        pearson_by_draw=np.array([_pearson(levels, row) for row in scores]),
    )


def consistency(levels_L: npt.ArrayLike, scores_DL: npt.ArrayLike, *, alpha: float) -> Consistency:
    """Spread over draws at each level, and the smallest gap between levels that tells two draws apart.

    Two draws, one of each level, differ by the difference of the levels' means give or take the standard deviation of
    a draw, twice; pooled over the levels, this is t = (mean of the higher - mean of the lower) / (sd sqrt(2)),
    one-sided for a score that rises with the level. Of all pairs at one distance the hardest counts.

    Args:
        levels_L: As in `level_correlation`.
        scores_DL: As in `level_correlation`.
        alpha: Level of the test of two draws.

    Returns:
        Means and deviations [L] in units of the score, and p by gap.

    Raises:
        ValueError: As `level_correlation`, and for fewer than two draws.

    Source: Ours; docs/methods/kds.md.

    >>> found = consistency([0.0, 0.5, 1.0], [[-3.0, -2.0, -1.0], [-3.1, -2.1, -1.1]], alpha=0.05)
    >>> found.smallest_gap
    0.5
    """
    levels, scores = _as_levels(levels_L, scores_DL)
    if len(scores) < 2:
        raise ValueError(f"Expected at least 2 draws to see how they differ; got {len(scores)}. Run more of them.")
    mean, sd = scores.mean(axis=0), scores.std(axis=0, ddof=1)
    pooled_sd = float(np.sqrt(np.square(sd).mean()))
    degrees_of_freedom = scores.shape[1] * (len(scores) - 1)
    lower, higher = np.triu_indices(len(levels), k=1)
    rise = mean[higher] - mean[lower]
    with np.errstate(divide="ignore", invalid="ignore"):
        p_values = scipy.stats.t.sf(rise / (pooled_sd * np.sqrt(2)), degrees_of_freedom)
    p_values = np.where(np.isnan(p_values), 1.0, p_values)  # no rise, and no spread either
    distance = np.round(levels[higher] - levels[lower], 9)
    gaps = np.unique(distance)
    hardest = np.array([p_values[distance == gap].max() for gap in gaps])
    separated = np.flatnonzero(np.minimum.accumulate((hardest < alpha)[::-1])[::-1])
    return Consistency(
        mean=mean,
        sd=sd,
        variation=np.divide(sd, np.abs(mean), out=np.full(len(mean), np.nan), where=mean != 0),
        pooled_sd=pooled_sd,
        degrees_of_freedom=degrees_of_freedom,
        gaps=gaps,
        p_values=hardest,
        smallest_gap=float(gaps[separated[0]]) if len(separated) else float("nan"),
    )


def _as_levels(levels_L: npt.ArrayLike, scores_DL: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Levels in ascending order, and the scores with them."""
    levels, scores = np.asarray(levels_L, np.float64), np.asarray(scores_DL, np.float64)
    if levels.ndim != 1 or scores.ndim != 2 or scores.shape[1] != len(levels) or not scores.size:
        raise ValueError(
            f"Expected scores [draws, levels] for levels [levels]; got shapes {scores.shape} and {levels.shape}."
        )
    if not np.isfinite(scores).all() or not np.isfinite(levels).all():
        raise ValueError("Expected a finite score for each draw at each level; leave a draw without one out.")
    if len(levels) < 2 or len(np.unique(levels)) < len(levels):
        raise ValueError(f"Expected at least 2 levels, each of them once; got {levels.tolist()}.")
    order = np.argsort(levels)
    return levels[order], scores[:, order]


def _pearson(levels: FloatArray, scores: FloatArray) -> float:
    return float(scipy.stats.pearsonr(levels, scores).statistic) if np.ptp(scores) > 0 else float("nan")


def _sd(values: FloatArray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")
