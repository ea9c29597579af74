import numpy as np
import pytest
from sklearn import metrics

from nonmember.stats.classification import best_balanced_accuracy, roc_auc, roc_points, tpr_at_fpr

# Members .9 .7 .4, non-members .6 .5 .3: seven of nine pairs are in order.
TRAP = ([0.9, 0.7, 0.4, 0.6, 0.5, 0.3], [1, 1, 1, 0, 0, 0])


def test_auc_is_not_best_balanced_accuracy() -> None:
    assert roc_auc(*TRAP) == pytest.approx(7 / 9, abs=1e-15)
    assert best_balanced_accuracy(*TRAP) == pytest.approx(5 / 6, abs=1e-15)  # at .7: two of three, none wrong


def test_ties_count_one_half() -> None:
    """Members 3 2 2, non-members 2 1: of six pairs four are won and two tied."""
    assert roc_auc([3, 2, 2, 2, 1], [1, 1, 1, 0, 0]) == pytest.approx((4 + 2 / 2) / 6, abs=1e-15)
    assert roc_auc([1, 1, 1, 1], [True, False, True, False]) == 0.5


def test_tied_documents_change_sides_together() -> None:
    points = roc_points([3, 2, 2, 2, 1], [1, 1, 1, 0, 0])
    np.testing.assert_array_equal(points.tpr, [0, 1 / 3, 1, 1])
    np.testing.assert_array_equal(points.fpr, [0, 0, 1 / 2, 1])
    assert best_balanced_accuracy([3, 2, 2, 2, 1], [1, 1, 1, 0, 0]) == (1 + 1 - 0.5) / 2
    assert tpr_at_fpr([3, 2, 2, 2, 1], [1, 1, 1, 0, 0], 0.4, "<=") == 1 / 3
    assert tpr_at_fpr([3, 2, 2, 2, 1], [1, 1, 1, 0, 0], 0.5, "<=") == 1


def test_higher_means_member() -> None:
    scores, labels = np.arange(6), [0, 0, 0, 1, 1, 1]
    assert (roc_auc(scores, labels), best_balanced_accuracy(scores, labels)) == (1, 1)
    assert (roc_auc(-scores, labels), best_balanced_accuracy(-scores, labels)) == (0, 0.5)
    assert tpr_at_fpr(scores, labels, 0.05, "<") == 1


def test_the_two_conventions_differ_exactly_at_the_bound() -> None:
    """Twenty non-members, the best of them between the two members: 1/20 is 0.05 to the bit."""
    scores = [30, 10, *range(20, 0, -1)]
    scores[1] = 19.5
    labels = [1, 1] + [0] * 20
    assert tpr_at_fpr(scores, labels, 0.05, "<=") == 1.0
    assert tpr_at_fpr(scores, labels, 0.05, "<") == 0.5
    assert tpr_at_fpr(scores, labels, 0.0, "<=") == 0.5


@pytest.mark.parametrize("decimals", [0, 8])
def test_agrees_with_scikit_learn(decimals) -> None:
    rng = np.random.default_rng(0)
    labels = rng.random(300) < 0.4
    scores = (rng.normal(size=300) + labels).round(decimals)
    assert roc_auc(scores, labels) == pytest.approx(metrics.roc_auc_score(labels, scores), abs=1e-12)
    fpr, tpr, _ = metrics.roc_curve(labels, scores, drop_intermediate=False)
    assert tpr_at_fpr(scores, labels, 0.05, "<=") == tpr[fpr <= 0.05][-1]
    assert tpr_at_fpr(scores, labels, 0.05, "<") == tpr[fpr < 0.05][-1]
    assert best_balanced_accuracy(scores, labels) == pytest.approx(((tpr + 1 - fpr) / 2).max(), abs=1e-12)


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        ([1, np.nan], [0, 1], "NaN"),
        ([1, 2, 3], [0, 1], "one label per score"),
        ([1, 2], [0, 2], "got also 2"),
        ([1, 2], [1, 1], "2 members among 2"),
        ([1, 2], [0, 0], "0 members among 2"),
    ],
)
@pytest.mark.parametrize("measure", [roc_auc, best_balanced_accuracy])
def test_refuses_bad_input(measure, scores, labels, message) -> None:
    with pytest.raises(ValueError, match=message):
        measure(scores, labels)


@pytest.mark.parametrize(("fpr", "convention"), [(0.0, "<"), (5, "<="), (-0.1, "<="), (0.05, "=<")])
def test_refuses_an_impossible_bound(fpr, convention) -> None:
    with pytest.raises(ValueError, match="Expected"):
        tpr_at_fpr(*TRAP, fpr, convention)
