"""Shares of trials in two kinds of clusters."""

from __future__ import annotations

import numpy as np
import pytest

from nonmember.stats.clusters import clustered_share
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


def test_it_is_the_same_every_time():
    hits = [1, 0, 1, 1, 0, 1]
    assert share(hits, "aabbcc", "xyxyxy") == share(hits, "aabbcc", "xyxyxy")


@pytest.mark.parametrize(("hits", "first"), [([], ""), ([1, 0], "a")])
def test_every_trial_needs_its_clusters(hits, first):
    with pytest.raises(ValueError, match="each with a cluster of either kind"):
        share(hits, first, first)
