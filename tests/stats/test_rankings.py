import numpy as np
import pytest
from sklearn import metrics

from nonmember.stats.classification import (
    best_threshold,
    cluster_counts,
    honest_accuracy,
    ranking,
    resampled,
    roc_auc,
    tpr_at_fpr,
)


def drawn(counts: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.repeat(values, counts.astype(int))


@pytest.mark.slow
@pytest.mark.parametrize("decimals", [0, 1, 8])
def test_resampled_measures_are_those_of_the_drawn_documents(decimals) -> None:
    """Ties included: each resample against scikit-learn on the documents written out."""
    rng = np.random.default_rng(1)
    is_member = rng.random(60) < 0.5
    scores = (rng.normal(size=60) + is_member).round(decimals)
    counts = cluster_counts(range(60), 40, rng)
    aucs, tprs = resampled(scores, is_member, counts)
    for b in range(40):
        some, labels = drawn(counts[:, b], scores), drawn(counts[:, b], is_member)
        assert aucs[b] == pytest.approx(metrics.roc_auc_score(labels, some), abs=1e-12)
        assert tprs[b] == pytest.approx(tpr_at_fpr(some, labels, 0.05, "<="), abs=1e-12)


def test_by_hand_with_ties() -> None:
    """Members 3 2 2, non-members 2 1, each drawn once: four wins and two ties of six."""
    scores, is_member = np.array([3.0, 2, 2, 2, 1]), np.array([True, True, True, False, False])
    counts = np.array([[1, 1, 1, 1, 1], [1, 0, 2, 1, 1], [1, 1, 1, 0, 0]], dtype=float).T
    aucs, tprs = resampled(scores, is_member, counts)
    # Members 3, 2, 2 again (the second copy of the third): the same numbers.
    np.testing.assert_allclose(aucs[:2], 5 / 6)
    np.testing.assert_allclose(tprs[:2], 1 / 3)
    assert np.isnan([aucs[2], tprs[2]]).all(), "a resample without non-members has no AUC"


def test_infinite_scores_tie() -> None:
    """Members inf inf, non-members inf 0: two ties and two wins of four, nobody within 5% of false positives."""
    aucs, tprs = resampled(np.array([np.inf, np.inf, np.inf, 0]), np.array([True, True, False, False]), np.ones((4, 1)))
    assert (aucs[0], tprs[0]) == (0.75, 0.0)


def test_clusters_are_drawn_whole() -> None:
    counts = cluster_counts(["a", "b", "a", "c", "b"], 500, np.random.default_rng(0))
    np.testing.assert_array_equal(counts[0], counts[2])
    np.testing.assert_array_equal(counts[1], counts[4])
    assert set((counts[0] + counts[1] + counts[3]).tolist()) == {3.0}, "three clusters, three draws"


def test_clusters_widen_the_interval() -> None:
    """Twenty documents told five times each: a hundred rows know no more than twenty."""
    rng = np.random.default_rng(3)
    is_member = np.tile([True, False], 10)
    scores = rng.normal(size=20) + 0.5 * is_member
    fivefold, labels, clusters = np.repeat(scores, 5), np.repeat(is_member, 5), np.repeat(np.arange(20), 5)
    nobody = np.zeros(100, dtype=bool)

    def width(ids) -> float:
        found = ranking(fivefold, labels, cluster_counts(ids, 2000, np.random.default_rng(0)), nobody, alpha=0.05)
        return found.auc_high - found.auc_low

    assert width(clusters.tolist()) > 1.8 * width(range(100))


@pytest.mark.slow  # worlds by the hundred
def test_the_interval_covers() -> None:
    """Members N(1, 1), others N(0, 1): AUC = Phi(1 / sqrt 2) = .7602."""
    rng = np.random.default_rng(5)
    held = []
    for _ in range(200):
        is_member = np.repeat([True, False], 60)
        counts = cluster_counts(range(120), 300, rng)
        found = ranking(rng.normal(size=120) + is_member, is_member, counts, np.zeros(120, dtype=bool), alpha=0.1)
        held.append(found.auc_low <= 0.76025 <= found.auc_high)
    assert 0.84 < np.mean(held) < 0.96


def test_threshold_from_one_part_and_accuracy_on_the_other() -> None:
    scores = np.array([5.0, 4, 2, 3, 1, 9, 3.9, 4.1, 0])
    is_member = np.array([1, 1, 1, 0, 0, 1, 1, 0, 0], dtype=bool)
    validation = np.array([1, 1, 1, 1, 1, 0, 0, 0, 0], dtype=bool)
    # Validation: at 4 two of three members and no other (5/6); at 2 all members and one of two (3/4).
    assert best_threshold(scores[validation], is_member[validation]) == 4
    # Test: 9 is called a member and 3.9 not; 4.1 is called one wrongly and 0 not.
    assert honest_accuracy(scores, is_member, validation) == (4, 0.5)
    found = ranking(scores, is_member, np.ones((9, 3)), validation, alpha=0.05)
    assert (found.threshold, found.balanced_accuracy) == (4, 0.5)
    assert found.best_balanced_accuracy > found.balanced_accuracy
    assert found.auc == found.auc_low == found.auc_high == roc_auc(scores, is_member)


def test_of_equally_good_thresholds_the_highest() -> None:
    assert best_threshold(np.array([3.0, 2, 1]), np.array([True, False, True])) == 3
    assert best_threshold(np.array([1.0, 2]), np.array([True, False])) == float("inf")


@pytest.mark.parametrize("validation", [[0, 0, 0, 0], [1, 1, 1, 1], [1, 1, 0, 0]])
def test_no_honest_accuracy_without_both_kinds_on_both_sides(validation) -> None:
    threshold, accuracy = honest_accuracy(
        np.arange(4.0), np.array([True, True, False, False]), np.array(validation, dtype=bool)
    )
    assert np.isnan([threshold, accuracy]).all()


def test_the_two_conventions_are_named() -> None:
    """The best of twenty others between two members: 1/20 is at the bound and not below it."""
    scores = np.array([30, 19.5, *range(20, 0, -1)], dtype=float)
    is_member = np.array([True] * 2 + [False] * 20)
    found = ranking(scores, is_member, np.ones((22, 2)), np.zeros(22, dtype=bool), alpha=0.05)
    assert (found.tpr_at_5pct_fpr, found.tpr_below_5pct_fpr) == (1.0, 0.5)
    assert found.tpr_low == found.tpr_high == 1.0
