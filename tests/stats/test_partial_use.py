"""How many of the documents were read: recovered from mixtures that are known."""

from __future__ import annotations

import numpy as np
import pytest

from nonmember.stats.dose_curve import partial_use

N = 300
EXPECTED = {dose: np.full(N, level) for dose, level in ((1.0, 0.5), (4.0, 1.5))}


def found(share: float, dose: float, seed: int = 0):
    rng = np.random.default_rng(seed)
    read = rng.random(N) < share
    gain = np.where(read, EXPECTED[dose], 0.0) + 0.4 * rng.standard_normal(N)
    return {
        item.dose: item
        for item in partial_use(
            gain, EXPECTED, np.full(N, 0.4), [str(i) for i in range(N)], num_resamples=300, alpha=0.05, rng=rng
        )
    }


@pytest.mark.parametrize(("share", "dose"), [(0.25, 4.0), (0.5, 4.0), (1.0, 1.0), (0.0, 4.0), (1.0, 4.0)])
def test_the_share_is_found_and_the_dose_told(share: float, dose: float):
    entry = found(share, dose)[dose]
    assert entry.share == pytest.approx(share, abs=0.08)
    assert entry.low - 0.01 <= share <= entry.high + 0.01
    assert entry.compatible


def test_a_quarter_read_often_is_not_all_read_once():
    """Their means are alike; document by document they differ."""
    by_dose = found(0.3, 4.0)
    assert not by_dose[1.0].compatible
    assert by_dose[4.0].compatible


@pytest.mark.filterwarnings("error")
def test_controls_that_scarcely_scatter_leave_numbers():
    """A document then lies a hundred standard deviations from one of the two, whose likelihood is no float."""
    gain = np.r_[np.zeros(30), np.full(10, 1.5)]
    (entry,) = partial_use(
        gain,
        {4.0: np.full(40, 1.5)},
        np.full(40, 0.01),
        [str(i) for i in range(40)],
        num_resamples=200,
        alpha=0.05,
        rng=np.random.default_rng(0),
    )
    assert entry.share == 0.25
    assert 0.1 < entry.low < 0.25 < entry.high < 0.42
    assert np.isfinite(entry.log_likelihood)


def test_intervals_cover_and_shrink_with_clusters_held_together():
    rng = np.random.default_rng(1)
    read = np.repeat(rng.random(30) < 0.5, 10)
    gain = np.where(read, EXPECTED[4.0], 0.0) + 0.4 * rng.standard_normal(N)
    settings = {"num_resamples": 300, "alpha": 0.05}
    alone = partial_use(
        gain,
        {4.0: EXPECTED[4.0]},
        np.full(N, 0.4),
        [str(i) for i in range(N)],
        rng=np.random.default_rng(2),
        **settings,
    )[0]
    held = partial_use(
        gain,
        {4.0: EXPECTED[4.0]},
        np.full(N, 0.4),
        [str(i // 10) for i in range(N)],
        rng=np.random.default_rng(2),
        **settings,
    )[0]
    assert alone.share == held.share
    assert held.high - held.low > 1.5 * (alone.high - alone.low)


@pytest.mark.parametrize(
    ("expected", "scatter", "alpha"),
    [
        *(({1.0: np.zeros(2)}, np.ones(3), 0.05), ({1.0: [0.0, 0.0, np.nan]}, np.ones(3), 0.05)),
        *(({}, np.ones(3), 0.05), ({1.0: np.zeros(3)}, np.zeros(3), 0.05), ({1.0: np.zeros(3)}, np.ones(3), 2.0)),
    ],
)
def test_what_has_no_share_is_refused(expected, scatter, alpha):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"^Expected"):
        partial_use(np.zeros(3), expected, scatter, ["a", "b", "c"], num_resamples=100, alpha=alpha, rng=rng)
