"""Delta over documents and seeds: the formulas against plain loops, and the error rate on worlds where H0 is true."""

import numpy as np
import pytest
from scipy import optimize, stats

from nonmember.stats import crossed as two_way_module
from nonmember.stats.correlation import rank_correlation
from nonmember.stats.crossed import two_way

METRICS = ["spearman", "kendall"]


def audit(reference, target, distilled, clusters=None, *, seed=0, **settings):
    settings = {"metric": "spearman", "num_resamples": 1, "alpha": 0.05, **settings}
    clusters = range(len(target)) if clusters is None else clusters
    return two_way(reference, target, distilled, clusters, rng=np.random.default_rng(seed), **settings)


def scores_of(seed, num_documents=60, num_seeds=3, decimals=8):
    """Reference, target and distilled references that agree with the target less, each in its own way."""
    rng = np.random.default_rng(seed)
    target, first = rng.normal(size=(2, num_documents))
    noise = rng.normal(size=(num_seeds, num_documents))
    return (
        (target + 0.5 * first).round(decimals),
        target.round(decimals),
        (target + first + 0.5 * noise).round(decimals),
    )


CLUSTERS = np.random.default_rng(5).permutation(np.repeat(np.arange(14), np.arange(14) % 4 + 3)[:60])


# --- the formulas ---


@pytest.mark.parametrize("metric", METRICS)
def test_delta_is_the_mean_over_seeds(metric):
    reference, target, distilled = scores_of(0)
    result = audit(reference, target, distilled, metric=metric)
    own = rank_correlation(reference, target, metric)
    expected = [own - rank_correlation(item, target, metric) for item in distilled]
    assert result.deltas == pytest.approx(expected, abs=1e-12)
    assert result.statistic == pytest.approx(np.mean(expected), abs=1e-12)
    assert result.rho_reference_target == pytest.approx(own, abs=1e-12)
    assert own - result.rho_distilled_target == pytest.approx(expected, abs=1e-12)
    assert (result.num_documents, result.num_clusters, result.num_seeds) == (60, 60, 3)


def left_out(reference, target, distilled, clusters, metric):
    """[G] rho of the reference and [S, G] of the distilled ones without each cluster in turn, by a loop."""
    without = [np.asarray(clusters) != item for item in dict.fromkeys(clusters)]
    return (
        np.array([rank_correlation(reference[kept], target[kept], metric) for kept in without]),
        np.array([[rank_correlation(item[kept], target[kept], metric) for kept in without] for item in distilled]),
    )


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("decimals", [0, 8])
def test_variance_is_that_of_the_table_of_pseudo_values(metric, decimals):
    """(MS of clusters + MS of seeds - MS of both) / (G S), the seeds' MS from the Delta_s themselves."""
    reference, target, distilled = scores_of(1, decimals=decimals)
    result = audit(reference, target, distilled, CLUSTERS.tolist(), metric=metric)
    own_G, others_SG = left_out(reference, target, distilled, CLUSTERS.tolist(), metric)
    num_seeds, num_clusters = others_SG.shape
    pseudo_SG = num_clusters * result.deltas[:, None] - (num_clusters - 1) * (own_G - others_SG)
    by_cluster_G, by_seed_S, mean = pseudo_SG.mean(axis=0), pseudo_SG.mean(axis=1), pseudo_SG.mean()
    of_clusters = num_seeds * ((by_cluster_G - mean) ** 2).sum() / (num_clusters - 1)
    residual_SG = pseudo_SG - by_cluster_G - by_seed_S[:, None] + mean
    of_both = (residual_SG**2).sum() / ((num_clusters - 1) * (num_seeds - 1))
    documents = (of_clusters - of_both) / (num_clusters * num_seeds)
    seeds = np.var(result.deltas, ddof=1) / num_seeds
    assert documents > 0
    assert result.variance_documents == pytest.approx(documents, rel=1e-9)
    assert result.variance_seeds == pytest.approx(seeds, rel=1e-9)
    assert result.standard_error == pytest.approx(np.sqrt(documents + seeds), rel=1e-9)
    assert result.share_of_seeds == pytest.approx(seeds / (documents + seeds), rel=1e-9)
    jackknife = of_clusters / (num_clusters * num_seeds)
    df = (documents + seeds) ** 2 / (jackknife**2 / (num_clusters - 1) + seeds**2 / (num_seeds - 1))
    assert result.df == pytest.approx(df, rel=1e-9)


@pytest.mark.parametrize("margin", [-0.05, 0.0, 0.1])
def test_p_is_a_t_test_on_fishers_scale(margin):
    """One seed and unlike clusters: a jackknife by hand, and the margin on that scale by search."""
    reference, target, distilled = scores_of(2, num_seeds=1)
    result = audit(reference, target, distilled, CLUSTERS.tolist())
    own_G, (other_G,) = left_out(reference, target, distilled, CLUSTERS.tolist(), "spearman")

    def beyond(own, other):
        total = np.arctanh(own) + np.arctanh(other)
        missing = lambda w: np.tanh((total + w) / 2) - np.tanh((total - w) / 2) - margin  # noqa: E731
        return np.arctanh(own) - np.arctanh(other) - optimize.brentq(missing, -5, 5, xtol=1e-14)

    whole = beyond(result.rho_reference_target, result.rho_distilled_target[0])
    without_G = np.array([beyond(own, other) for own, other in zip(own_G, other_G, strict=True)])
    pseudo_G = own_G.size * whole - (own_G.size - 1) * without_G
    expected = stats.ttest_1samp(pseudo_G, 0, alternative="greater").pvalue
    assert result.p_value(margin) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("margin", [-0.3, 0.0, 0.1, 0.7])
def test_seeds_enter_by_the_slope_of_that_scale(margin):
    step = 1e-6
    rise = two_way_module._beyond(0.8, 0.6 + step, margin) - two_way_module._beyond(0.8, 0.6 - step, margin)
    assert two_way_module._slope(0.8, 0.6, margin) == pytest.approx(-rise / (2 * step), rel=1e-6)


@pytest.mark.parametrize("metric", METRICS)
def test_distribution_is_a_plain_loop_over_the_same_draws(metric):
    reference, target, distilled = scores_of(3)
    clusters = CLUSTERS.tolist()
    result = audit(reference, target, distilled, clusters, seed=7, num_resamples=40, metric=metric)
    members = [np.flatnonzero(item == CLUSTERS) for item in dict.fromkeys(clusters)]
    rng = np.random.default_rng(7)
    seeds_BS = rng.integers(3, size=(40, 3))
    expected = []
    for seeds, drawn in zip(seeds_BS, rng.integers(14, size=(40, 14)), strict=True):
        rows = np.concatenate([members[item] for item in drawn])
        rho = [rank_correlation(distilled[seed][rows], target[rows], metric) for seed in seeds]
        expected.append(rank_correlation(reference[rows], target[rows], metric) - np.mean(rho))
    assert result.distribution == pytest.approx(np.array(expected), abs=1e-12)
    assert (result.num_resamples, result.num_undefined) == (40, 0)


@pytest.mark.slow
def test_many_documents_are_done_in_blocks():
    reference, target, distilled = scores_of(4, num_documents=1200)
    clusters = [f"book {index % 600}" for index in range(1200)]
    result = audit(reference, target, distilled, clusters, num_resamples=900)
    own_G, others_SG = left_out(reference, target, distilled, clusters, "spearman")
    assert result.jackknife.without_reference_G == pytest.approx(own_G, abs=1e-12)
    assert result.jackknife.without_distilled_SG == pytest.approx(others_SG, abs=1e-12)
    assert np.unique(result.distribution).size == 900
    assert result.distribution.std() == pytest.approx(result.standard_error, rel=0.3)


# --- what must hold ---


def test_only_order_counts_and_documents_may_come_in_any_order():
    reference, target, distilled = scores_of(6)
    item = audit(reference, target, distilled, CLUSTERS.tolist())
    shuffled = np.random.default_rng(0).permutation(60)
    other = audit(
        np.exp(reference[shuffled]), -1 / np.exp(target[shuffled]), distilled[:, shuffled], CLUSTERS[shuffled].tolist()
    )
    assert other.p_value(0.05) == pytest.approx(item.p_value(0.05), rel=1e-9)
    assert (other.ci_low, other.ci_high) == pytest.approx((item.ci_low, item.ci_high), abs=1e-9)


def test_interval_holds_what_is_not_rejected():
    for seed in range(5):
        result = audit(*scores_of(seed), CLUSTERS.tolist(), alpha=0.1)
        assert result.ci_low < result.statistic < result.ci_high
        assert result.p_value(result.ci_low) == pytest.approx(0.05, abs=1e-6)
        assert result.p_value(result.ci_high) == pytest.approx(0.95, abs=1e-6)
        wider = audit(*scores_of(seed), CLUSTERS.tolist(), alpha=0.01)
        assert wider.ci_low < result.ci_low < result.ci_high < wider.ci_high


def test_p_grows_with_the_margin():
    result = audit(*scores_of(7))
    p_values = [result.p_value(margin) for margin in np.linspace(0, 0.5, 40)]
    assert (np.diff(p_values) > 0).all()


def test_correlations_close_to_one_exceed_no_margin_they_cannot():
    rng = np.random.default_rng(8)
    target, noise = rng.normal(size=(2, 200))
    result = audit(target + 0.5 * noise, target, [target + 0.02 * noise])
    assert result.rho_distilled_target[0] > 0.99
    assert min(result.p_value(margin) for margin in (0.0, 0.005, 0.01, 0.015, 0.02, 0.1, 1.9)) > 0.99
    assert result.ci_low < result.statistic < result.ci_high < 0


def test_a_correlation_of_one_is_not_tested():
    _, target, distilled = scores_of(8)
    result = audit(target, target, distilled)
    assert result.statistic > 0
    assert result.p_value(0.0) == 1.0
    assert np.isnan([result.ci_low, result.ci_high]).all()


def test_one_seed_says_that_it_is_one():
    reference, target, distilled = scores_of(9)
    item, several = audit(reference, target, distilled[:1]), audit(reference, target, distilled)
    assert np.isnan([item.variance_seeds, item.share_of_seeds]).all()
    assert item.standard_error == np.sqrt(item.variance_documents)
    assert item.df == 59
    assert any("this distilled reference alone" in warning for warning in item.warnings)
    assert several.warnings == ()


def test_few_clusters_say_that_they_are_few():
    result = audit(*scores_of(10), [index // 20 for index in range(60)])
    assert any("3 clusters" in warning for warning in result.warnings)


def test_nothing_to_test_gives_one():
    reference, target, _ = scores_of(11)
    same = audit(reference, target, [reference, reference])
    assert (same.statistic, same.p_value(0.0)) == (0.0, 1.0)
    assert np.isnan(same.share_of_seeds)
    constant = audit(reference, target, [np.ones(60), np.ones(60)])
    assert np.isnan(constant.statistic)
    assert np.isnan([constant.ci_low, constant.ci_high, constant.standard_error]).all()
    assert constant.p_value(0.0) == 1.0
    assert constant.num_undefined == constant.num_resamples


def test_same_generator_same_numbers():
    item, other = (audit(*scores_of(12), seed=3, num_resamples=50) for _ in range(2))
    np.testing.assert_array_equal(item.distribution, other.distribution)
    assert not np.array_equal(item.distribution, audit(*scores_of(12), seed=4, num_resamples=50).distribution)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"reference": [1, 2, 3, np.nan]}, "`reference`; 1 of 4 are NaN"),
        ({"distilled": [[1, 2, 3]]}, "distilled 0 3"),
        ({"distilled": []}, "at least one distilled reference"),
        ({"clusters": ["a"] * 4}, "at least 2 clusters"),
        ({"clusters": ["a", "b"]}, "got 2 for 4 documents"),
        ({"metric": "pearson"}, "got 'pearson'"),
        ({"num_resamples": 0}, "num_resamples=0"),
        ({"alpha": 5}, "alpha=5"),
    ],
)
def test_refuses_bad_input(changed, message):
    arguments = {"reference": [1, 2, 3, 4], "target": [1, 3, 2, 4], "distilled": [[2, 1, 3, 4]], **changed}
    with pytest.raises(ValueError, match=message):
        audit(**arguments)


def test_a_margin_that_no_difference_has():
    """A few widely spread controls can put one above 2: it is not exceeded, and the audit goes on."""
    item = audit(*scores_of(0))
    assert item.p_value(2.5) == item.p_value(2.0) == 1.0 > item.p_value(1.9)
    with pytest.raises(ValueError, match=r"got -2\.0"):
        item.p_value(-2.0)


# --- the error rate ---


def pearson_of(spearman):
    return 2 * np.sin(np.pi / 6 * np.asarray(spearman))


def null_world(rng, *, clusters, size, num_seeds, margin, seed_sd, own, within=0.3, rho=0.85):
    """Scores whose population Spearman's rho(reference, target) is `rho` and whose rho(distilled_s, target) is normal
    around rho - margin with standard deviation `seed_sd`: a Gaussian copula, so that pearson = 2 sin(pi rho / 6).

    within: part of the variance of everything that documents share with the others of their cluster.   own: part of
    what the distilled references do not share with target and reference that differs from seed to seed.
    """
    if size == 1:
        within = 0.0

    def normal(*shape):
        shared, alone = rng.normal(size=(*shape, clusters)), rng.normal(size=(*shape, clusters * size))
        return np.sqrt(within) * np.repeat(shared, size, axis=-1) + np.sqrt(1 - within) * alone

    target, of_reference, of_all, of_each = normal(), normal(), normal(), normal(num_seeds)
    first = pearson_of(rho)
    rhos_S = pearson_of(np.minimum(rho - margin + seed_sd * rng.normal(size=num_seeds), 0.99))[:, None]
    reference = first * target + np.sqrt(1 - first**2) * of_reference
    rest = np.sqrt(0.5) * of_reference + np.sqrt(0.5) * (np.sqrt(1 - own) * of_all + np.sqrt(own) * of_each)
    return reference, target, rhos_S * target + np.sqrt(1 - rhos_S**2) * rest, np.repeat(np.arange(clusters), size)


def rejected(num_worlds, *, margin, judge=lambda *world: audit(*world), seed=0, **world):
    """How many of the worlds are cleared at .05, though their Delta is `margin`."""
    rng = np.random.default_rng(seed)
    worlds = (null_world(rng, margin=margin, **world) for _ in range(num_worlds))
    return sum(judge(*item).p_value(margin) < 0.05 for item in worlds)


NUM_WORLDS = 300
LOW, HIGH = stats.binom.interval(0.999, NUM_WORLDS, 0.05)
WORLD = {"clusters": 30, "size": 10, "within": 0.7, "num_seeds": 3, "margin": 0.1, "seed_sd": 0.05, "own": 0.2}


@pytest.mark.slow  # its parts are tested above
def test_rejects_a_true_margin_as_often_as_it_says():
    assert LOW <= rejected(NUM_WORLDS, **WORLD) <= HIGH


def clusters_ignored(reference, target, distilled, clusters):
    return audit(reference, target, distilled)


def seeds_ignored(reference, target, distilled, clusters):
    return audit(reference, target, distilled[:1], clusters)


@pytest.mark.slow
@pytest.mark.parametrize(("judge", "within"), [(clusters_ignored, 0.85), (seeds_ignored, 0.3)])
def test_that_rate_tells_a_broken_variance(judge, within):
    """What the test before this one would catch."""
    assert rejected(NUM_WORLDS, judge=judge, **WORLD | {"within": within}) > HIGH


@pytest.mark.slow
@pytest.mark.parametrize(
    ("margin", "num_seeds", "seed_sd", "own"), [(0.0, 3, 0.03, 0.0), (0.1, 1, 0.0, 0.0), (0.1, 3, 0.03, 0.2)]
)
@pytest.mark.parametrize(("clusters", "size"), [(100, 1), (500, 1), (10, 10), (50, 10)])
def test_error_rate(clusters, size, margin, num_seeds, seed_sd, own):
    """At a nominal 5%, with a standard error of half a percent."""
    world = {"clusters": clusters, "size": size, "num_seeds": num_seeds, "seed_sd": seed_sd, "own": own}
    assert 0.03 < rejected(2000, margin=margin, **world) / 2000 < 0.07
