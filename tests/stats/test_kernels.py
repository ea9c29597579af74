"""Kernel divergence against the printed formula, and its median against NumPy's; what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from nonmember.stats.kernels import kernel_divergence, squared_distances


def points(number, width, *, seed=0):
    points_ND = np.random.default_rng(seed).normal(size=(number, width))
    return points_ND / np.linalg.norm(points_ND, axis=1, keepdims=True)


def pair(number, width, *, moved=0.05, seed=0):
    before_ND = points(number, width, seed=seed)
    after_ND = before_ND + moved * points(number, width, seed=seed + 1)
    return before_ND, after_ND / np.linalg.norm(after_ND, axis=1, keepdims=True)


def printed_formula(before_ND, after_ND, gamma=None, gamma_after=None):
    """S = -(1/E) sum |K log(K / K')|, as docs/methods/kds.md has it, over the whole matrices."""
    before, after = squareform(pdist(before_ND)), squareform(pdist(after_ND))
    upper = np.triu_indices(len(before_ND), k=1)
    gamma = gamma or 1 / np.median(before[upper])
    gamma_after = gamma_after or 1 / np.median(after[upper])
    kernel, kernel_after = np.exp(-gamma * before**2), np.exp(-gamma_after * after**2)
    return -np.abs(kernel * np.log(kernel / kernel_after)).sum() / math.sqrt(kernel.sum())


@pytest.mark.slow
@pytest.mark.parametrize(("number", "width"), [(3, 2), (4, 3), (64, 5), (65, 40)])
def test_it_is_the_printed_formula(number, width):
    before_ND, after_ND = pair(number, width)
    found = kernel_divergence(before_ND, after_ND, bandwidth="per_kernel_median")
    assert found.score == pytest.approx(printed_formula(before_ND, after_ND), abs=1e-10)
    assert found.score < 0
    assert found.problem == ""


def test_bandwidths():
    before_ND, after_ND = pair(50, 8, moved=0.5)
    medians = [np.median(pdist(each)) for each in (before_ND, after_ND)]
    own = kernel_divergence(before_ND, after_ND, bandwidth="per_kernel_median")
    assert [own.gamma_before, own.gamma_after] == pytest.approx([1 / median for median in medians], abs=1e-12)
    pre = kernel_divergence(before_ND, after_ND, bandwidth="pre_only")
    assert pre.gamma_before == pre.gamma_after == own.gamma_before
    assert pre.score == pytest.approx(printed_formula(before_ND, after_ND, 1 / medians[0], 1 / medians[0]), abs=1e-10)
    fixed = kernel_divergence(before_ND, after_ND, bandwidth="fixed", gamma=2.5)
    assert (fixed.gamma_before, fixed.gamma_after) == (2.5, 2.5)
    assert fixed.score == pytest.approx(printed_formula(before_ND, after_ND, 2.5, 2.5), abs=1e-10)
    assert len({own.score, pre.score, fixed.score}) == 3


def test_three_documents_by_hand():
    """A right angle each before; afterwards one pair has become opposite. gamma = 1: K = exp(-2) off the diagonal."""
    before_ND = np.eye(3)
    after_ND = np.array([[1.0, 0, 0], [-1.0, 0, 0], [0, 0, 1.0]])
    found = kernel_divergence(before_ND, after_ND, bandwidth="fixed", gamma=1.0)
    kernel = math.exp(-2)
    assert found.normalizer == pytest.approx(math.sqrt(3 + 6 * kernel), abs=1e-14)
    assert found.score == pytest.approx(-2 * kernel * (4 - 2) / math.sqrt(3 + 6 * kernel), abs=1e-14)
    assert found.kernel_before == pytest.approx((kernel, kernel), abs=1e-14)
    assert found.kernel_after == pytest.approx((math.exp(-4), kernel), abs=1e-14)


def test_the_normalizer_is_of_the_kernel_before():
    before_ND, after_ND = pair(20, 6, moved=1.0)
    found = kernel_divergence(before_ND, after_ND, bandwidth="pre_only")
    kernel = np.exp(-found.gamma_before * squareform(pdist(before_ND)) ** 2)
    assert found.normalizer == pytest.approx(math.sqrt(kernel.sum()), abs=1e-12)


def test_a_kernel_that_underflows_is_no_division_by_zero():
    before_ND, after_ND = pair(10, 4, moved=1.0)
    with np.errstate(all="raise", under="ignore"):
        found = kernel_divergence(before_ND, after_ND, bandwidth="fixed", gamma=1e6)
    assert found.score == pytest.approx(0, abs=1e-12)
    assert found.normalizer == pytest.approx(math.sqrt(10))


def test_the_order_of_documents_and_a_rotation_do_not_matter():
    before_ND, after_ND = pair(40, 6)
    score = kernel_divergence(before_ND, after_ND, bandwidth="per_kernel_median").score
    order = np.random.default_rng(1).permutation(40)
    rotation, _ = np.linalg.qr(np.random.default_rng(2).normal(size=(6, 6)))
    shuffled = kernel_divergence(before_ND[order], after_ND[order] @ rotation, bandwidth="per_kernel_median").score
    assert shuffled == pytest.approx(score, abs=1e-11)


def test_what_moves_more_scores_lower():
    scores = [kernel_divergence(*pair(60, 8, moved=m), bandwidth="per_kernel_median").score for m in (0.01, 0.1, 0.5)]
    assert scores == sorted(scores, reverse=True)


def test_a_small_movement_is_not_lost_in_rounding():
    """Near-duplicates as float32, as models give them, moved by 1e-5: in single precision the noise is as large."""
    rng = np.random.default_rng(0)
    centre = points(1, 256)
    before_ND = centre + 1e-2 * points(300, 256, seed=1)
    after_ND = before_ND + 1e-5 * rng.normal(size=before_ND.shape)
    both = [(each / np.linalg.norm(each, axis=1, keepdims=True)).astype(np.float32) for each in (before_ND, after_ND)]
    exact = printed_formula(*(each.astype(np.float64) for each in both))
    assert kernel_divergence(*both, bandwidth="per_kernel_median").score == pytest.approx(exact, rel=1e-6)


def test_distances_are_each_once_and_never_below_zero_over_several_blocks(monkeypatch):
    monkeypatch.setattr("nonmember.stats.kernels.ROWS", 7)
    points_ND = np.repeat(points(5, 3), 4, axis=0).astype(np.float32)
    found = squared_distances(points_ND)
    assert found.min() >= 0
    np.testing.assert_allclose(found, pdist(points_ND.astype(np.float64), "sqeuclidean"), rtol=0, atol=1e-14)


# What there is no score of ----------------------------------------------------------------------------------


def test_problems_are_named():
    before_ND, after_ND = pair(10, 4)
    same, none = np.repeat(points(1, 4), 10, axis=0), before_ND.copy()
    none[3] = 0
    for given, told in (
        ((before_ND[:2], after_ND[:2]), "2 documents are too few: a kernel over documents needs at least 3"),
        ((before_ND[:0], after_ND[:0]), "0 documents are too few"),
        ((none, after_ND), "1 of 10 embeddings are zero"),
        ((before_ND, none), "1 of 10 embeddings are zero"),
        ((same, after_ND), "the same embedding before tuning"),
        ((before_ND, same), "the same embedding after tuning"),
    ):
        found = kernel_divergence(*given, bandwidth="per_kernel_median")
        assert told in found.problem
        assert math.isnan(found.score)
    assert kernel_divergence(before_ND, same, bandwidth="pre_only").problem == ""


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"bandwidth": "median"}, "bandwidth must be one of per_kernel_median, pre_only, fixed; got 'median'"),
        ({"bandwidth": "fixed"}, "gamma of bandwidth=fixed must be a number above 0; got null"),
        ({"bandwidth": "fixed", "gamma": 0.0}, "a number above 0; got 0.0"),
        ({"bandwidth": "pre_only", "gamma": 1.0}, "gamma is for bandwidth=fixed"),
    ],
)
def test_bandwidths_are_refused_in_a_sentence(given, told):
    with pytest.raises(ValueError, match=told):
        kernel_divergence(*pair(5, 3), **given)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ((points(5, 3), points(4, 3)), "of the same documents before and after"),
        ((points(5, 3), 2 * points(5, 3)), "Expected embeddings of length 1"),
        ((points(5, 3), points(5, 3) * np.nan), "Expected embeddings of length 1"),
    ],
)
def test_embeddings_are_refused_in_a_sentence(given, told):
    with pytest.raises(ValueError, match=told):
        kernel_divergence(*given, bandwidth="per_kernel_median")
