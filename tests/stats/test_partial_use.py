"""How many of the documents were read: recovered from mixtures that are known."""

from __future__ import annotations

import numpy as np
import pytest

from nonmember.stats.dose_curve import duci, partial_use

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


# DUCI -----------------------------------------------------------------------------------------------------------------


def by_duci(share: float, dose: float, seed: int = 0, clusters: list[str] | None = None):
    rng = np.random.default_rng(seed)
    read = rng.random(N) < share
    gain = np.where(read, EXPECTED[dose], 0.0) + 0.4 * rng.standard_normal(N)
    unread = 0.4 * rng.standard_normal((3, N))
    controls = {level: EXPECTED[level] + 0.4 * rng.standard_normal((2, N)) for level in EXPECTED}
    names = clusters or [str(i) for i in range(N)]
    return {item.dose: item for item in duci(gain, unread, controls, names, num_resamples=300, alpha=0.05, rng=rng)}


def test_duci_by_hand():
    """Of ten documents 4 look read; 8 of 10 do that were, and 2 of 10 that were not: (.4 - .2) / (.8 - .2)."""
    read, unread = np.r_[np.ones(8), np.zeros(2)], np.r_[np.ones(2), np.zeros(8)]
    gain, names = np.r_[np.ones(4), np.zeros(6)], [str(i) for i in range(10)]
    settings = {"num_resamples": 50, "alpha": 0.05, "rng": np.random.default_rng(0)}
    (entry,) = duci(gain, unread[None], {2.0: read[None]}, names, **settings)
    assert entry.share == pytest.approx(1 / 3)
    assert (entry.true_positive_rate, entry.false_positive_rate) == (0.8, 0.2)
    assert duci(gain, read[None], {2.0: unread[None]}, names, **settings) == [], "no threshold tells them apart"


@pytest.mark.parametrize(("share", "dose"), [(0.25, 4.0), (0.5, 4.0), (1.0, 1.0), (0.0, 4.0), (1.0, 4.0), (0.5, 1.0)])
def test_duci_finds_the_share(share: float, dose: float):
    entry = by_duci(share, dose)[dose]
    assert entry.share == pytest.approx(share, abs=0.15 if dose == 1 else 0.08)
    assert entry.low - 0.02 <= share <= entry.high + 0.02


@pytest.mark.slow
def test_intervals_of_duci_cover_and_grow_with_clusters():
    inside = [(item := by_duci(0.5, 1.0, seed)[1.0]).low <= 0.5 <= item.high for seed in range(60)]
    assert np.mean(inside) >= 0.85
    alone, held = by_duci(0.5, 4.0)[4.0], by_duci(0.5, 4.0, clusters=[str(i // 10) for i in range(N)])[4.0]
    assert alone.share == held.share
    assert (alone.low, alone.high) != (held.low, held.high)


@pytest.mark.parametrize("unread", [np.zeros((1, 2)), np.zeros((0, 3)), [[0.0, 0.0, np.nan]]])
def test_duci_refuses_other_lengths_and_what_is_no_number(unread):
    with pytest.raises(ValueError, match="each document"):
        duci(np.zeros(3), unread, {}, ["a"] * 3, num_resamples=9, alpha=0.5, rng=np.random.default_rng(0))
