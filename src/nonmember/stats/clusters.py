"""Proportions of two-way clustered trials (audits that share a set, audits that share a model); also true-positive
rates at a false-positive rate.

Both kinds of clusters are resampled with replacement, independently, and a trial counts as often as its two clusters
were drawn together: the pigeonhole bootstrap (A. B. Owen, Annals of Applied Statistics 1, 2007, 386-411), whose
variance errs on the large side. With few hits, or few clusters, the interval is rough.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nonmember.stats._arrays import FloatArray, numbered
from nonmember.stats.bootstrap import draw_counts, percentile_interval
from nonmember.stats.classification import cluster_counts, tpr_at_fpr
from nonmember.stats.proportions import Interval, exact_interval


class ClusteredShare(NamedTuple):
    """A share of hits with its intervals.

    Attributes:
        interval: By clusters.
        exact: As if all trials were independent (Clopper and Pearson).
        num_clusters: Of the first kind.
    """

    share: float
    interval: Interval
    exact: Interval
    num_clusters: int


def clustered_share(
    hits: npt.ArrayLike,
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    *,
    alpha: float,
    num_resamples: int,
    rng: np.random.Generator,
) -> ClusteredShare:
    """Share of hits with an interval of level 1 - alpha.

    Where all trials agree, resampling says nothing: the interval is then the exact one of as many trials as there are
    first clusters.

    Args:
        hits: [N] true or false, one trial at least.
        first: [N] the cluster of each trial, of the first kind.
        second: [N] the cluster of each trial, of the second kind.

    >>> rng = np.random.default_rng(0)
    >>> found = clustered_share([1, 1, 0, 0], "aabb", "xyxy", alpha=0.05, num_resamples=200, rng=rng)
    >>> found.share, found.interval
    (0.5, Interval(low=0.0, high=1.0))
    """
    hits_N = np.asarray(hits, dtype=bool)
    if not len(hits_N) or not len(hits_N) == len(first) == len(second):
        raise ValueError(
            f"Expected one trial or more, each with a cluster of either kind; got {len(hits_N)} trials, {len(first)} "
            f"and {len(second)} clusters."
        )
    first_N, second_N = numbered(first), numbered(second)
    shape = (int(first_N.max()) + 1, int(second_N.max()) + 1)
    trials, found = np.zeros(shape), np.zeros(shape)
    np.add.at(trials, (first_N, second_N), 1.0)
    np.add.at(found, (first_N, second_N), hits_N.astype(float))
    num_hits, num_trials, num_clusters = int(hits_N.sum()), len(hits_N), shape[0]
    exact = exact_interval(num_hits, num_trials, alpha)
    if num_hits in (0, num_trials):
        interval = exact_interval(num_clusters if num_hits else 0, num_clusters, alpha)
        return ClusteredShare(num_hits / num_trials, interval, exact, num_clusters)
    drawn_first, drawn_second = (np.empty((number, num_resamples)) for number in shape)
    draw_counts(rng, out=drawn_first)
    draw_counts(rng, out=drawn_second)
    weight = (drawn_first * (trials @ drawn_second)).sum(axis=0)
    shares = np.full(num_resamples, np.nan)
    np.divide((drawn_first * (found @ drawn_second)).sum(axis=0), weight, out=shares, where=weight > 0)
    return ClusteredShare(num_hits / num_trials, Interval(*percentile_interval(shares, alpha)), exact, num_clusters)


def clustered_tpr_at_fpr(
    scores: npt.ArrayLike,
    labels: npt.ArrayLike,
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    *,
    fpr: float,
    alpha: float,
    num_resamples: int,
    rng: np.random.Generator,
) -> ClusteredShare:
    """Share of the positives above the threshold that at most a share `fpr` of the negatives exceed.

    It comes with an interval of level 1 - alpha; the threshold is found anew in each resample, so that its own
    uncertainty is in the interval.

    Where all positives lie on one side, the interval is the exact one of as many trials as they have first clusters.

    Args:
        scores: [N].
        labels: [N], true for positives.
        first: [N] the cluster of each trial, of the first kind.
        second: [N] the cluster of each trial, of the second kind.

    Raises:
        ValueError: As `tpr_at_fpr`.

    >>> rng = np.random.default_rng(0)
    >>> found = clustered_tpr_at_fpr([0, 1, 2, 3], [0, 0, 1, 1], "abab", "wxyz", fpr=0.05, alpha=0.05,
    ...                              num_resamples=200, rng=rng)
    >>> found.share, found.num_clusters
    (1.0, 2)
    """
    share = tpr_at_fpr(scores, labels, fpr, "<=")
    scores_N, labels_N = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=bool)
    num_positives = int(labels_N.sum())
    num_clusters = len({cluster for cluster, positive in zip(first, labels_N, strict=True) if positive})
    num_hits = round(share * num_positives)
    exact = exact_interval(num_hits, num_positives, alpha)
    if num_hits in (0, num_positives):
        interval = exact_interval(num_clusters if num_hits else 0, num_clusters, alpha)
        return ClusteredShare(share, interval, exact, num_clusters)
    weights_NB = cluster_counts(first, num_resamples, rng) * cluster_counts(second, num_resamples, rng)
    threshold_B = _exceeded_by(scores_N[~labels_N], weights_NB[~labels_N], fpr)
    hits_NB = weights_NB[labels_N] * (scores_N[labels_N, None] > threshold_B)
    weight_B, shares_B = weights_NB[labels_N].sum(axis=0), np.full(num_resamples, np.nan)
    np.divide(hits_NB.sum(axis=0), weight_B, out=shares_B, where=(weight_B > 0) & np.isfinite(threshold_B))
    return ClusteredShare(share, Interval(*percentile_interval(shares_B, alpha)), exact, num_clusters)


def _exceeded_by(scores_N: FloatArray, weights_NB: FloatArray, share: float) -> FloatArray:
    """[B] the least score that at most this share of the weight lies above; infinite where there is no weight."""
    negated_N, place_N = np.unique(-scores_N, return_inverse=True)
    by_score_NB = np.zeros((len(negated_N), weights_NB.shape[1]))
    np.add.at(by_score_NB, place_N, weights_NB)
    above_NB, total_B = np.cumsum(by_score_NB, axis=0) - by_score_NB, by_score_NB.sum(axis=0)
    last_B = (above_NB <= share * total_B + 1e-9).sum(axis=0) - 1
    return np.where(total_B > 0, -negated_N[last_B], np.inf)
