"""How many of the documents were read: recovered from mixtures that are known."""

from __future__ import annotations

import numpy as np
import pytest

from nonmember.stats.partial_use import PartialUse, partial_use

N = 100
NAMES = [f"document {number}" for number in range(N)]
GAINS = {1.0: 0.5, 2.0: 0.9, 4.0: 1.5, 8.0: 2.3}  # of a document, in standard deviations of a model, times its own


def found(
    rng: np.random.Generator, share: float, dose: float, *, scale: float = 1.0, clusters: list[str] = NAMES
) -> dict[float, PartialUse]:
    """What two controls a dose say of a target that read a share of the documents so often."""
    own = scale * np.clip(rng.normal(1, 0.5, N), 0, None)
    controls = {0.0: rng.standard_normal((2, N))}
    controls |= {dose: own * gain + rng.standard_normal((2, N)) for dose, gain in GAINS.items()}
    read = rng.permutation(N) < share * N
    if clusters is not NAMES:
        read = np.repeat(rng.random(N // 10) < share, 10)
    target = np.where(read, own * GAINS[dose], 0) + rng.standard_normal(N)
    regions = partial_use(target, controls, clusters, num_resamples=200, alpha=0.05, rng=rng)
    return {item.dose: item for item in regions}


@pytest.mark.parametrize(("share", "dose"), [(0.0, 1.0), (1.0, 1.0), (0.5, 4.0), (1.0, 4.0)])
@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_intervals_cover_the_share_whatever_a_reading_leaves(share: float, dose: float, scale: float):
    """Of thirty worlds at 95% fewer than 25 holds one time in 500."""
    rng = np.random.default_rng(7)
    entries = [found(rng, share, dose, scale=scale)[dose] for _ in range(30)]
    assert sum(item.low <= share <= item.high for item in entries) >= 25


def test_of_a_set_that_nobody_read_no_part_is_said_to_be():
    """With level and gain taken for known it was in more than half of such worlds (0.25 deviations a reading)."""
    rng = np.random.default_rng(3)
    worlds = [found(rng, 0.0, 1.0, scale=0.5) for _ in range(30)]
    said = [all(item.low > 0 and item.high < 1 for item in by_dose.values() if item.compatible) for by_dose in worlds]
    assert sum(said) <= 2


def test_half_read_often_is_not_all_read_once():
    """Their means are alike; document by document they differ."""
    by_dose = found(np.random.default_rng(0), 0.5, 8.0, scale=2.0)
    assert not by_dose[1.0].compatible
    assert by_dose[8.0].compatible
    assert by_dose[8.0].share == pytest.approx(0.5, abs=0.1)


@pytest.mark.filterwarnings("error")
def test_controls_that_scarcely_scatter_leave_numbers():
    """A document then lies a hundred standard deviations from one of the two, whose likelihood is no float."""
    rng = np.random.default_rng(0)
    noise = 0.01 * rng.standard_normal((2, 2, 40))
    target = np.r_[np.zeros(30), np.full(10, 1.5)]
    (entry,) = partial_use(target, {0: noise[0], 4: 1.5 + noise[1]}, NAMES[:40], num_resamples=200, alpha=0.05, rng=rng)
    assert entry.share == 0.25
    assert 0.1 < entry.low < 0.25 < entry.high < 0.42
    assert np.isfinite(entry.log_likelihood)


def test_clusters_are_drawn_as_a_whole():
    works = [f"work {number // 10}" for number in range(N)]
    alone, held = (
        found(np.random.default_rng(1), 0.5, 8.0, scale=2.0, clusters=names)[8.0] for names in ([*NAMES], works)
    )
    assert alone.share == held.share
    assert held.high - held.low > 1.5 * (alone.high - alone.low)


@pytest.mark.parametrize(
    ("controls", "alpha"),
    [
        ({0: np.zeros((2, 2)), 1: np.zeros((2, 3))}, 0.05),
        ({0: np.zeros((2, 3)), 1: np.full((2, 3), np.nan)}, 0.05),
        ({0: np.zeros((2, 3))}, 0.05),
        ({1: np.zeros((2, 3)), 2: np.zeros((2, 3))}, 0.05),
        ({0: np.zeros((2, 3)), 1: np.ones((2, 3))}, 2.0),
    ],
)
def test_what_has_no_share_is_refused(controls, alpha):
    with pytest.raises(ValueError, match=r"^Expected"):
        partial_use(np.zeros(3), controls, list("abc"), num_resamples=9, alpha=alpha, rng=np.random.default_rng(0))


def test_controls_that_do_not_differ_say_nothing():
    controls = {0: np.zeros((2, 3)), 1: np.ones((2, 3))}
    assert (
        partial_use(np.zeros(3), controls, list("abc"), num_resamples=9, alpha=0.05, rng=np.random.default_rng(0)) == []
    )
