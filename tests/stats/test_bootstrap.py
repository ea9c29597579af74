import itertools

import numpy as np
import pytest
from scipy import stats

from nonmember.stats import bootstrap as module
from nonmember.stats.bootstrap import (
    bootstrap_correlation,
    bootstrap_p_value,
    count_draws,
    difference_of_dependent_correlations,
    draw_counts,
)
from nonmember.stats.correlation import Ordering, correlations_of_counts

REFERENCE, TARGET, DISTILLED = [1, 2, 3, 4, 5], [1.2, 2.5, 2.1, 4.4, 5.0], [2, 1, 5, 3, 4]
SCIPY = {"spearman": stats.spearmanr, "kendall": stats.kendalltau}


def bootstrap(reference, target, distilled, *, seed=0, **settings):
    settings = {"metric": "spearman", "num_resamples": 400, "alpha": 0.05, "margin": 0.0, **settings}
    rng = np.random.default_rng(seed)
    return difference_of_dependent_correlations(reference, target, distilled, rng=rng, **settings)


def noisy_copies(seed, num_documents, reference_noise, distilled_noise):
    rng = np.random.default_rng(seed)
    target, first, second = rng.normal(size=(3, num_documents))
    return target + reference_noise * first, target, target + distilled_noise * second


# --- the worked example ---


def test_statistic_of_the_worked_example() -> None:
    result = bootstrap(REFERENCE, TARGET, DISTILLED)
    assert result.rho_reference_target == pytest.approx(0.9, abs=1e-12)
    assert result.rho_distilled_target == pytest.approx(0.2, abs=1e-12)
    assert result.statistic == pytest.approx(0.7, abs=1e-12)
    assert (result.num_documents, result.num_resamples) == (5, 400)


def test_every_resample_of_the_worked_example() -> None:
    counts = count_draws(np.array(list(itertools.product(range(5), repeat=5))), 5)
    others = Ordering.of(np.array(REFERENCE, float)), Ordering.of(np.array(DISTILLED, float))
    by_reference, by_distilled = correlations_of_counts(counts, others, Ordering.of(np.array(TARGET)), "spearman")
    differences = by_reference - by_distilled
    assert differences.size == 3125
    assert np.isnan(differences).sum() == 5
    assert bootstrap_p_value(differences, 0.0) == (1 + 515) / (3125 + 1)


def test_p_converges_to_the_full_enumeration() -> None:
    result = bootstrap(REFERENCE, TARGET, DISTILLED, num_resamples=200_000, seed=8)
    assert result.p_value == pytest.approx(515 / 3125, abs=4 * np.sqrt(0.165 * 0.835 / 200_000))
    assert result.undefined_fraction == pytest.approx(5 / 3125, abs=4 * np.sqrt(0.0016 / 200_000))


# --- p-value ---


def test_p_counts_zero_against_rejection_and_the_data_as_one_more() -> None:
    differences = [0.12, 0.05, -0.01, 0.20, 0.00, 0.08, 0.15, 0.03, 0.11]
    assert bootstrap_p_value(differences, 0.0) == pytest.approx(0.3, abs=1e-15)
    assert bootstrap_p_value(np.ones(10_000), 0.0) == pytest.approx(9.999e-5, abs=1e-9)


def test_p_counts_undefined_against_rejection() -> None:
    assert bootstrap_p_value([0.1, np.nan, 0.2], 0.0) == 2 / 4
    assert bootstrap_p_value([np.nan, np.nan], 0.0) == 1.0


def test_p_is_blind_to_rounding_at_the_margin() -> None:
    assert bootstrap_p_value([1e-16, -1e-16], 0.0) == 1.0
    assert bootstrap_p_value([0.3 - 0.2], 0.1) == bootstrap_p_value([0.1], 0.1) == 1.0
    assert bootstrap_p_value([1e-9], 0.0) == 0.5


def test_margin_moves_the_null() -> None:
    scores = noisy_copies(4, 100, 0.4, 1.0)
    plain, demanding = bootstrap(*scores), bootstrap(*scores, margin=0.1)
    np.testing.assert_array_equal(plain.distribution, demanding.distribution)
    assert demanding.p_value == (1 + np.sum(demanding.distribution <= 0.1)) / 401
    assert plain.p_value < demanding.p_value


# --- the distribution ---


@pytest.mark.parametrize("metric", ["spearman", "kendall"])
@pytest.mark.parametrize("decimals", [0, 8])
def test_a_plain_loop_over_the_same_draws_agrees(metric, decimals) -> None:
    reference, target, distilled = (x.round(decimals) for x in noisy_copies(5, 80, 0.5, 1.0))
    result = bootstrap(reference, target, distilled, metric=metric, num_resamples=50, seed=11)
    counts = np.empty((80, 50))
    draw_counts(np.random.default_rng(11), out=counts)
    for column, got in zip(counts.T.astype(int), result.distribution[:50], strict=True):
        drawn = np.repeat(np.arange(80), column)
        rho_reference = SCIPY[metric](reference[drawn], target[drawn]).statistic
        rho_distilled = SCIPY[metric](distilled[drawn], target[drawn]).statistic
        assert got == pytest.approx(rho_reference - rho_distilled, abs=1e-12)


def test_interval_leaves_undefined_resamples_out_and_p_does_not() -> None:
    result = bootstrap(REFERENCE, TARGET, DISTILLED, num_resamples=3000, alpha=0.1)
    assert result.num_undefined == np.isnan(result.distribution).sum() > 0
    assert result.p_value == (1 + np.sum(~(result.distribution > 1e-12))) / 3001
    expected = np.nanpercentile(result.distribution, [5, 95])
    assert (result.ci_low, result.ci_high) == pytest.approx(tuple(expected), abs=1e-15)


@pytest.mark.parametrize("metric", ["spearman", "kendall"])
def test_block_size_changes_no_number(metric, monkeypatch) -> None:
    scores = noisy_copies(6, 70, 0.5, 1.0)
    whole = bootstrap(*scores, metric=metric, num_resamples=300)
    assert np.unique(whole.distribution).size > 250
    for block_size in (1, 7, 299, 1000):
        monkeypatch.setattr(module, "_SMALLEST_BLOCK", block_size)
        monkeypatch.setattr(module, "_BLOCK_ELEMENTS", 0)
        cut = bootstrap(*scores, metric=metric, num_resamples=300)
        np.testing.assert_array_equal(cut.distribution, whole.distribution)
        assert (cut.p_value, cut.ci_low, cut.ci_high) == (whole.p_value, whole.ci_low, whole.ci_high)


@pytest.mark.parametrize("metric", ["spearman", "kendall"])
def test_whole_clusters_are_drawn(metric) -> None:
    """Documents that are there three times, as clusters, are what they are once; singly they seem to be more."""
    scores = noisy_copies(6, 40, 0.5, 1.0)
    once = bootstrap(*scores, metric=metric, num_resamples=200)
    alone = bootstrap(*scores, metric=metric, num_resamples=200, clusters=range(40))
    np.testing.assert_array_equal(alone.distribution, once.distribution)
    copies = [np.repeat(item, 3) for item in scores]
    together = bootstrap(*copies, metric=metric, num_resamples=200, clusters=np.repeat(range(40), 3).tolist())
    np.testing.assert_allclose(together.distribution, once.distribution, atol=1e-12)
    singly = bootstrap(*copies, metric=metric, num_resamples=200)
    assert singly.ci_high - singly.ci_low < 0.7 * (once.ci_high - once.ci_low)
    with pytest.raises(ValueError, match="a cluster for each document; got 3 for 40"):
        bootstrap(*scores, metric=metric, num_resamples=20, clusters="abc")


def test_draws_are_one_stream() -> None:
    """Wider than a batch, cut anywhere, the counts are those of one call to the generator."""
    whole, cut = np.empty((300, 700)), np.empty((300, 700))
    draw_counts(np.random.default_rng(1), out=whole)
    rng = np.random.default_rng(1)
    for part in np.split(cut, [1, 222, 500], axis=1):
        draw_counts(rng, out=part)
    np.testing.assert_array_equal(whole, cut)
    np.testing.assert_array_equal(whole, count_draws(np.random.default_rng(1).integers(300, size=(700, 300)), 300))


def test_draws_take_as_many_documents_as_there_are() -> None:
    counts = np.empty((50, 20_000))
    draw_counts(np.random.default_rng(2), out=counts)
    assert (counts.sum(axis=0) == 50).all()
    assert counts.mean(axis=1) == pytest.approx(np.ones(50), abs=0.04)  # standard error .007
    assert counts.var() == pytest.approx(1 - 1 / 50, abs=0.01)


def test_seeds_matter_and_repeat() -> None:
    scores = noisy_copies(7, 50, 0.5, 1.0)
    first, again, other = (bootstrap(*scores, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.distribution, again.distribution)
    assert not np.array_equal(first.distribution, other.distribution)


# --- symmetries ---


@pytest.mark.parametrize("metric", ["spearman", "kendall"])
def test_only_the_order_of_each_score_counts(metric) -> None:
    reference, target, distilled = noisy_copies(8, 60, 0.5, 1.0)
    plain = bootstrap(reference, target, distilled, metric=metric)
    bent = bootstrap(np.exp(reference), target**3 - 5, stats.rankdata(distilled), metric=metric)
    np.testing.assert_array_equal(plain.distribution, bent.distribution)
    turned = bootstrap(-reference, -target, -distilled, metric=metric)
    np.testing.assert_array_equal(plain.distribution, turned.distribution)


def test_swapping_the_models_turns_the_sign() -> None:
    reference, target, distilled = noisy_copies(9, 60, 0.5, 0.6)
    forth, back = bootstrap(reference, target, distilled), bootstrap(distilled, target, reference)
    np.testing.assert_array_equal(forth.distribution, -back.distribution)
    assert forth.statistic == -back.statistic > 0
    assert forth.p_value + back.p_value == pytest.approx(1 + 1 / 401)


def test_near_alpha_draws_go_on_until_chance_does_not_decide() -> None:
    """Of these data p is .0288 (a million resamples): 400 cannot say on which side of .05 it lies."""
    reference, target, distilled = noisy_copies(9, 60, 0.5, 0.8)
    few = [bootstrap(reference, target, distilled, seed=seed, alpha=1e-9).p_value for seed in range(40)]
    assert any(p >= 0.05 for p in few)
    found = [bootstrap(reference, target, distilled, seed=seed) for seed in range(10)]
    assert all(item.p_value < 0.05 for item in found)
    assert all(abs(item.p_value - 0.05) > 4 * item.p_error for item in found)
    assert max(item.num_resamples for item in found) > 3000


def test_equal_models_differ_by_exactly_nothing() -> None:
    reference, target, _ = noisy_copies(10, 60, 0.5, 0.5)
    result = bootstrap(reference, target, np.exp(reference))
    assert (result.distribution == 0).all()
    assert (result.statistic, result.p_value, result.ci_low, result.ci_high) == (0, 1, 0, 0)


def test_points_the_right_way() -> None:
    """A reference that agrees better with the target than the distilled model does is evidence."""
    assert bootstrap(*noisy_copies(11, 200, 0.3, 1.5)).p_value == pytest.approx(1 / 401)
    assert bootstrap(*noisy_copies(11, 200, 1.5, 0.3)).p_value == 1.0


# --- what cannot be tested ---


@pytest.mark.parametrize("metric", ["spearman", "kendall"])
@pytest.mark.parametrize("constant", range(3))
def test_a_constant_score_is_undefined_and_never_rejects(metric, constant) -> None:
    scores = [x.copy() for x in noisy_copies(12, 40, 0.5, 1.0)]
    scores[constant][:] = 1.5
    result = bootstrap(*scores, metric=metric)
    assert np.isnan([result.statistic, result.ci_low, result.ci_high]).all()
    assert (result.num_undefined, result.undefined_fraction, result.p_value) == (400, 1.0, 1.0)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"reference": [1, 2, 3, 4, np.nan]}, "`reference`; 1 of 5 are NaN"),
        ({"distilled": [1, 2]}, "got reference 5, target 5, distilled 2"),
        ({"metric": "pearson"}, "got 'pearson'"),
        ({"alpha": 95}, "alpha=95"),
        ({"margin": -0.1}, "margin=-0.1"),
        ({"margin": np.nan}, "margin=nan"),
    ],
)
def test_refuses_bad_input(changed, message) -> None:
    arguments = {"reference": REFERENCE, "target": TARGET, "distilled": DISTILLED, **changed}
    with pytest.raises(ValueError, match=message):
        bootstrap(**arguments)


# --- the interval of one correlation ---


def interval(x, y, *, seed=0, **settings):
    settings = {"metric": "spearman", "num_resamples": 400, "alpha": 0.05, **settings}
    return bootstrap_correlation(x, y, rng=np.random.default_rng(seed), **settings)


@pytest.mark.parametrize("metric", ["spearman", "kendall"])
def test_one_correlation_shares_its_draws_with_the_difference(metric) -> None:
    reference, target, distilled = noisy_copies(14, 60, 0.5, 1.0)
    difference = bootstrap(reference, target, distilled, metric=metric, seed=4)
    by_reference = interval(reference, target, metric=metric, seed=4)
    by_distilled = interval(distilled, target, metric=metric, seed=4)
    np.testing.assert_array_equal(difference.distribution, by_reference.distribution - by_distilled.distribution)
    assert by_reference.statistic == difference.rho_reference_target


def test_one_correlation_leaves_undefined_resamples_out_of_its_interval() -> None:
    result = interval(REFERENCE, TARGET, num_resamples=3000, alpha=0.1)
    assert np.isnan(result.distribution).any()
    expected = np.nanpercentile(result.distribution, [5, 95])
    assert (result.ci_low, result.ci_high) == pytest.approx(tuple(expected), abs=1e-15)


@pytest.mark.parametrize("metric", ["spearman", "kendall"])
def test_one_correlation_with_a_constant_score_is_undefined(metric) -> None:
    result = interval([1.0, 1.0, 1.0], [1, 2, 3], metric=metric)
    assert np.isnan([result.statistic, result.ci_low, result.ci_high]).all()
    assert np.isnan(result.distribution).all()


@pytest.mark.slow
def test_one_correlation_is_covered_as_often_as_promised() -> None:
    """A bivariate normal has Spearman 6/pi arcsin(rho/2)."""
    rng, covered = np.random.default_rng(16), 0
    for seed in range(200):
        x, noise = rng.normal(size=(2, 150))
        result = interval(x, 0.6 * x + 0.8 * noise, alpha=0.1, seed=seed)
        covered += result.ci_low <= 6 / np.pi * np.arcsin(0.3) <= result.ci_high
    low, high = stats.binom.interval(0.999, 200, 0.9)
    assert low <= covered <= high
