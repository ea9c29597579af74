"""Shares of trials in two kinds of clusters."""

from __future__ import annotations

import numpy as np
import pytest

from nonmember.stats.classification import tpr_at_fpr
from nonmember.stats.clusters import _exceeded_by, clustered_share, clustered_tpr_at_fpr
from nonmember.stats.proportions import exact_interval


def share(hits, first, second, seed=0):
    rng = np.random.default_rng(seed)
    return clustered_share(hits, first, second, alpha=0.05, num_resamples=2000, rng=rng)


def width(found):
    return found.interval.high - found.interval.low


@pytest.mark.parametrize("hits", [[1, 0, 0, 0, 0, 0, 0, 0], [1, 1, 1, 0, 0, 1, 0, 1], [1] * 7 + [0]])
def test_the_interval_holds_the_share(hits):
    found = share(hits, "aabbccdd", "wxyzwxyz")
    assert found.share == sum(hits) / len(hits)
    assert found.interval.low <= found.share <= found.interval.high
    assert found.exact == exact_interval(sum(hits), len(hits), 0.05)


def test_copies_of_a_trial_are_no_trials_of_their_own():
    """Forty trials of forty sets, and forty that are ten sets four times over, a model each."""
    hits, models = [1, 0] * 20, list(range(40))
    alone, copies = share(hits, models, models), share(np.repeat([1, 0] * 5, 4), np.repeat(range(10), 4), models)
    assert copies.share == alone.share
    assert width(copies) > 1.3 * width(alone)
    assert copies.exact == alone.exact
    assert width(copies) > copies.exact.high - copies.exact.low


def test_either_kind_of_clusters_counts():
    hits, each, shared = np.repeat([1, 0] * 5, 4), list(range(40)), np.repeat(range(10), 4)
    assert width(share(hits, each, shared)) == pytest.approx(width(share(hits, shared, each)), abs=0.05)


@pytest.mark.parametrize(("hit", "ends"), [(0, exact_interval(0, 3, 0.05)), (1, exact_interval(3, 3, 0.05))])
def test_where_all_agree_there_are_as_many_trials_as_first_clusters(hit, ends):
    found = share([hit] * 12, "aaaabbbbcccc", "wxyzwxyzwxyz")
    assert found.interval == ends
    assert found.num_clusters == 3


@pytest.mark.parametrize(("hits", "first"), [([], ""), ([1, 0], "a")])
def test_every_trial_needs_its_clusters(hits, first):
    with pytest.raises(ValueError, match="each with a cluster of either kind"):
        share(hits, first, first)


# ------------------------------------------------------------------------------ at a false-positive rate


def tpr(scores, labels, first, second, fpr=0.05):
    rng = np.random.default_rng(0)
    return clustered_tpr_at_fpr(scores, labels, first, second, fpr=fpr, alpha=0.05, num_resamples=2000, rng=rng)


@pytest.mark.parametrize("fpr", [0.0, 0.05, 0.1, 0.5])
def test_with_whole_weights_the_threshold_is_that_of_the_roc_curve(fpr):
    """Ties included; a trial that was drawn twice is two trials."""
    rng = np.random.default_rng(1)
    negatives, positives = rng.integers(0, 9, 40).astype(float), rng.integers(3, 12, 30).astype(float)
    weights = rng.integers(0, 3, (40, 5)).astype(float)
    for weight, threshold in zip(weights.T, _exceeded_by(negatives, weights, fpr), strict=True):
        drawn = np.repeat(negatives, weight.astype(int))
        expected = tpr_at_fpr(np.r_[drawn, positives], np.repeat([0, 1], [len(drawn), 30]), fpr, "<=")
        assert (positives > threshold).mean() == expected


def test_the_uncertainty_of_the_threshold_is_in_the_interval():
    """Positives that are all alike: what differs between resamples is where the threshold lies."""
    scores, labels = np.r_[np.arange(20.0), np.full(20, 18.5), 0.0], np.repeat([0, 1], [20, 21])
    found = tpr(scores, labels, list(range(41)), list(range(41)))
    assert found.share == 20 / 21
    assert found.interval.low < 0.1  # in a resample with 19 in it several times nothing is found
    assert found.interval.high == 1.0


def test_noise_is_found_as_often_as_it_is_falsely_found():
    rng = np.random.default_rng(2)
    labels = np.repeat([0, 1], 400)
    found = tpr(rng.normal(size=800), labels, list(range(800)), list(range(800)))
    assert found.interval.low < 0.05 < found.interval.high


@pytest.mark.parametrize(("scores", "ends"), [([0, 0, 1, 1], (2, 2)), ([1, 1, 1, 1], (0, 2))])
def test_positives_on_one_side_are_as_many_trials_as_their_first_clusters(scores, ends):
    found = tpr(scores, [0, 0, 1, 1], "abab", "wxyz")
    assert found.interval == exact_interval(*ends, 0.05)
