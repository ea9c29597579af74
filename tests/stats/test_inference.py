import numpy as np
import pytest
import torch
from scipy import stats

from nonmember.stats.inference import CURVE_SIZES, combine_splits, dataset_inference, fit_logistic, two_sample_t_less

SUSPECT, VALIDATION = [-0.5, 0.1, -0.2, 0.0], [0.3, 0.2, -0.1, 0.4]
SETTINGS = {
    "outliers": "mean",
    "tail_fraction": 0.05,
    "fit_size": 1000,
    "num_splits": 1,
    "learning_rate": 0.01,
    "num_steps": 100,
    "compat": False,
}


def infer(suspect, heldout, *, seed=0, **settings):
    return dataset_inference(suspect, heldout, rng=np.random.default_rng(seed), **{**SETTINGS, **settings})


def two_sets(seed=0, num_suspect=200, num_heldout=200, num_features=6, shift=0.0):
    """Heavy-tailed features on different scales; `shift` moves the first of the held-out set up."""
    rng = np.random.default_rng(seed)
    draws = rng.standard_t(4, size=(num_suspect + num_heldout, num_features))
    draws[num_suspect:, 0] += shift
    draws = draws * 10.0 ** np.arange(num_features) + 5
    return draws[:num_suspect], draws[num_suspect:]


def torch_logits(train, labels, tests, *, learning_rate, num_steps):
    """Logits of a linear layer started at zeros, trained by torch's Adam in double precision."""
    layer = torch.nn.Linear(train.shape[1], 1, dtype=torch.float64)
    torch.nn.init.zeros_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    optimizer = torch.optim.Adam(layer.parameters(), lr=learning_rate)
    for _ in range(num_steps):
        optimizer.zero_grad()
        logits = layer(torch.from_numpy(train)).squeeze(1)
        torch.nn.functional.binary_cross_entropy_with_logits(logits, torch.from_numpy(labels)).backward()
        optimizer.step()
    with torch.no_grad():
        return layer.weight.numpy()[0], [layer(torch.from_numpy(test)).squeeze(1).numpy() for test in tests]


# --- the t-test ---


def test_t_of_the_worked_example() -> None:
    test = two_sample_t_less(SUSPECT, VALIDATION)
    assert test.statistic == pytest.approx(-2.049390, abs=1e-6)
    assert test.p_value == pytest.approx(0.043157, abs=1e-6)
    assert test.mean_difference == pytest.approx(-0.35)
    assert test.warning == ""


def test_t_is_the_textbook_formula() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=20), rng.normal(size=50) * 3
    variances = x.var(ddof=1), y.var(ddof=1)
    pooled = (19 * variances[0] + 49 * variances[1]) / 68
    student = (x.mean() - y.mean()) / np.sqrt(pooled * (1 / 20 + 1 / 50))
    test = two_sample_t_less(x, y)
    assert test.statistic == pytest.approx(student, rel=1e-12)
    assert test.p_value == pytest.approx(stats.t.cdf(student, 68), rel=1e-9)
    back = two_sample_t_less(y, x)
    assert back.p_value == pytest.approx(1 - test.p_value)


@pytest.mark.parametrize(("y", "p_value"), [(0.3, 1.0), (0.2, 1.0), (0.4, 0.0)])
def test_t_without_variation_is_decided_by_sign_with_a_warning(y, p_value) -> None:
    test = two_sample_t_less([0.1 + 0.2] * 3, [y] * 4)  # 0.3 up to rounding
    assert test.p_value == p_value
    assert np.isnan(test.statistic)
    assert "Neither sample varies" in test.warning


def test_t_where_one_sample_varies_is_a_t() -> None:
    test = two_sample_t_less([1.0, 1.0, 1.0], [1.0, 2.0, 3.0])
    assert test.warning == ""
    assert 0 < test.p_value < 0.1


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [([1, np.nan], [1, 2], "`x`; 1 of 2 are NaN"), ([1, 2], [1], "got 2 and 1"), ([1, 2], [1, np.inf], "finite")],
)
def test_t_refuses_bad_input(x, y, message) -> None:
    with pytest.raises(ValueError, match=message):
        two_sample_t_less(x, y)


# --- the combination ---


def test_combination_of_the_worked_examples() -> None:
    assert combine_splits([0.01, 0.20, 0.03]) == pytest.approx(0.231760, abs=1e-12)
    assert combine_splits([0.01] * 10) == pytest.approx(0.0956, abs=1e-4)
    assert combine_splits([0.3]) == pytest.approx(0.3, abs=1e-15)


def test_combination_is_exact_at_the_ends() -> None:
    assert combine_splits([1e-30] * 10) == pytest.approx(1e-29, rel=1e-12, abs=0)  # 1 - 1 the naive way
    assert combine_splits([0.0, 0.0]) == 0.0
    assert combine_splits([0.1, 1.0]) == 1.0


@pytest.mark.parametrize("p_values", [[], [0.1, np.nan], [-0.1], [1.1]])
def test_combination_refuses_what_is_no_p(p_values) -> None:
    with pytest.raises(ValueError, match="Expected"):
        combine_splits(p_values)


# --- the fit ---


@pytest.mark.slow
@pytest.mark.parametrize("num_steps", [1, 50, 1000])
def test_fit_agrees_with_torch(num_steps) -> None:
    rng = np.random.default_rng(1)
    features, labels = rng.normal(size=(60, 5)), np.repeat([0.0, 1.0], [25, 35])
    features[:25, 2] -= 1
    model = fit_logistic(features, labels, learning_rate=0.01, num_steps=num_steps)
    weights, (logits,) = torch_logits(features, labels, [features], learning_rate=0.01, num_steps=num_steps)
    np.testing.assert_allclose(model.weights, weights, rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.logits(features), logits, rtol=0, atol=1e-10)
    assert model.weights[2] > 0


def test_fit_converges_to_the_maximum_of_the_likelihood() -> None:
    rng = np.random.default_rng(2)
    features = rng.normal(size=(300, 3))
    labels = (rng.random(300) < 1 / (1 + np.exp(-features @ [1.0, -0.5, 0.0] - 0.3))).astype(float)
    model = fit_logistic(features, labels, learning_rate=0.01, num_steps=3000)
    residual = 1 / (1 + np.exp(-model.logits(features))) - labels
    assert features.T @ residual == pytest.approx(np.zeros(3), abs=1e-4)
    assert residual.sum() == pytest.approx(0, abs=1e-4)


# --- the whole test, against a plain one written another way ---


def plain_tails(column, mode, tail):
    """The outliers of one feature of one set by rank, as the authors' program finds them."""
    order, column = np.argsort(column, kind="stable"), column.copy()
    low, high = order[:tail], order[len(order) - tail :]
    if mode == "clip" and tail:
        column[low], column[high] = column[low[-1]], column[high[0]]
    elif mode == "mean":
        column[np.r_[low, high]] = column.mean()
    return column


def plain_splits(suspect, heldout, seed, num_splits, fit_size):
    rng = np.random.default_rng(seed)
    for _ in range(num_splits):
        orders = rng.permutation(len(suspect)), rng.permutation(len(heldout))
        yield [(order[:size], order[size:]) for order, size in zip(orders, fit_size, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["mean", "clip"])
def test_compat_treats_and_scales_whole_sets_before_the_split(mode) -> None:
    suspect, heldout = two_sets(3, 120, 90, shift=1.0)
    result = infer(suspect, heldout, outliers=mode, compat=True, num_splits=2, fit_size=50, seed=5)
    treated = [
        np.stack([plain_tails(column, mode, int(len(x) * 0.05 / 2)) for column in x.T], axis=1)
        for x in (suspect, heldout)
    ]
    centre, deviation = treated[0].mean(axis=0), treated[0].std(axis=0)
    suspect, heldout = ((x - centre) / deviation for x in treated)
    labels, weights = np.repeat([0.0, 1.0], [50, 45]), []
    for split, (s, h) in enumerate(plain_splits(suspect, heldout, 5, 2, (50, 45))):
        train = np.concatenate([suspect[s[0]], heldout[h[0]]])
        item, logits = torch_logits(train, labels, [suspect[s[1]], heldout[h[1]]], learning_rate=0.01, num_steps=100)
        expected = stats.ttest_ind(*logits, alternative="less")
        assert result.statistics[split] == pytest.approx(expected.statistic, abs=1e-8)
        assert result.p_values[split] == pytest.approx(expected.pvalue, abs=1e-8)
        curve = [stats.ttest_ind(logits[0][:n], logits[1][:n], alternative="less").pvalue for n in (2, 5, 10, 20)]
        assert result.curve_p_values[split] == pytest.approx(np.array(curve), abs=1e-8)
        weights.append(item)
    assert result.weights == pytest.approx(np.mean(weights, axis=0), abs=1e-8)


@pytest.mark.parametrize("mode", ["mean", "clip"])
def test_otherwise_everything_is_fitted_on_the_first_part(mode) -> None:
    suspect, heldout = two_sets(4, 120, 90, shift=1.0)
    result = infer(suspect, heldout, outliers=mode, tail_fraction=0.1, fit_size=50, seed=6)
    ((s, h),) = plain_splits(suspect, heldout, 6, 1, (50, 45))
    fit = np.concatenate([suspect[s[0]], heldout[h[0]]])
    in_order, tail = np.sort(fit, axis=0), int(95 * 0.1 / 2)
    assert tail == 4

    def treat(x):
        if mode == "clip":
            return np.clip(x, in_order[3], in_order[-4])
        inside = (x >= in_order[4]) & (x <= in_order[-5])
        return np.where(inside, x, fit.mean(axis=0))

    treated = treat(suspect[s[0]])
    suspect, heldout = ((treat(x) - treated.mean(axis=0)) / treated.std(axis=0) for x in (suspect, heldout))
    train, labels = np.concatenate([suspect[s[0]], heldout[h[0]]]), np.repeat([0.0, 1.0], [50, 45])
    weights, logits = torch_logits(train, labels, [suspect[s[1]], heldout[h[1]]], learning_rate=0.01, num_steps=100)
    expected = stats.ttest_ind(*logits, alternative="less")
    assert result.statistics[0] == pytest.approx(expected.statistic, abs=1e-8)
    assert result.p_values[0] == pytest.approx(expected.pvalue, abs=1e-8)
    assert result.weights == pytest.approx(weights, abs=1e-8)


def test_a_treatment_never_sees_the_document_it_is_tested_on() -> None:
    """One test document becomes extreme: without compat no other number of the fit moves."""
    suspect, heldout = two_sets(5)
    tested = np.random.default_rng(0).permutation(200)[-1]
    changed = suspect.copy()
    changed[tested] = 1e9
    for compat in (False, True):
        plain, moved = (infer(x, heldout, compat=compat, tail_fraction=0.0) for x in (suspect, changed))
        assert np.array_equal(plain.weights, moved.weights) == (not compat)
        assert plain.statistics[0] != moved.statistics[0]


@pytest.mark.parametrize("compat", [False, True])
def test_no_outliers_where_the_tails_are_empty(compat) -> None:
    """j = 0: 19 documents of a set and 5%, where the original replaces everything or fails."""
    sets = two_sets(7, 19, 19)
    kept = infer(*sets, tail_fraction=0.0, compat=compat)
    for mode in ("mean", "clip"):
        assert infer(*sets, outliers=mode, compat=compat).statistics[0] == kept.statistics[0]


# --- splits, curve, summary ---


def test_summary_of_the_splits() -> None:
    result = infer(*two_sets(9, shift=0.3), num_splits=5)
    assert result.p_values.size == np.unique(result.p_values).size == 5
    assert result.combined_p_value == pytest.approx(1 - np.prod(1 - result.p_values), abs=1e-12)
    assert result.median_p_value == np.median(result.p_values)
    assert result.num_undefined == 0
    assert not result.times_dropped.any()
    assert result.p_values == pytest.approx(stats.t.cdf(result.statistics, 198), abs=1e-12)


@pytest.mark.parametrize(
    ("num_suspect", "fit_size", "fitted"), [(100, 30, 30), (100, 50, 50), (100, 51, 50), (101, 1000, 50), (8, 9, 4)]
)
def test_at_most_half_of_a_set_is_fitted_on(num_suspect, fit_size, fitted) -> None:
    result = infer(*two_sets(10, num_suspect, 200), fit_size=fit_size, num_steps=5)
    freedom = num_suspect - fitted + 200 - min(fit_size, 100) - 2  # of what is left to test on
    assert result.p_values == pytest.approx(stats.t.cdf(result.statistics, freedom), abs=1e-12)


def test_curve_stops_where_the_smaller_set_does() -> None:
    result = infer(*two_sets(11, 300, 240), num_steps=5, num_splits=3)  # 150 and 120 to test on
    assert result.curve_sizes.tolist() == [2, 5, 10, 20, 50, 100]
    assert result.curve_p_values.shape == (3, 6)
    exact = infer(*two_sets(11, 200, 200), num_steps=5)  # 100 and 100: the last point is the test itself
    assert exact.curve_sizes[-1] == 100
    assert exact.curve_p_values[0, -1] == exact.p_values[0]
    large = infer(*two_sets(11, 2500, 2500, 1), num_steps=1)
    assert tuple(large.curve_sizes) == CURVE_SIZES
    assert large.curve_sizes[[0, -1]].tolist() == [2, 1000]


# --- orientation, level, power ---


@pytest.mark.parametrize("shift", [2.0, -2.0])
@pytest.mark.parametrize("compat", [False, True])
def test_any_difference_gives_a_small_p(shift, compat) -> None:
    """Suspect below held-out or above: the model learns which, and its logit is lower for suspect documents."""
    result = infer(*two_sets(13, shift=shift), num_splits=10, compat=compat)
    assert result.statistics.max() < -5
    assert result.combined_p_value < 1e-6
    assert np.sign(result.weights[0]) == np.sign(shift)
    assert np.abs(result.weights[0]) > np.abs(result.weights[1:]).max()


def test_a_difference_that_turns_around_gives_a_large_p() -> None:
    """What tells the sets apart in part A points the other way in part B."""
    order = np.random.default_rng(0)
    suspect, heldout = np.zeros((200, 1)), np.zeros((200, 1))
    for values, sign in ((suspect, -1), (heldout, 1)):
        place = order.permutation(200)
        values[place[:100], 0], values[place[100:], 0] = sign, -sign
        values += np.random.default_rng(1).normal(size=values.shape) * 0.1
    result = infer(suspect, heldout, tail_fraction=0.0)
    assert result.statistics[0] > 10
    assert result.p_values[0] > 0.999


@pytest.fixture(scope="module")
def null_worlds() -> dict[str, np.ndarray]:
    """p of 300 worlds without a difference, by kind of treatment."""
    kinds = {"plain": {}, "compat": {"compat": True}}
    return {
        name: np.array(
            [
                infer(*two_sets(100 + seed, 80, 80, 10), seed=seed, num_steps=60, **settings).p_values[0]
                for seed in range(300)
            ]
        )
        for name, settings in kinds.items()
    }


@pytest.mark.slow
def test_p_is_uniform_where_nothing_differs(null_worlds) -> None:
    p_values = null_worlds["plain"]
    low, high = stats.binom.interval(0.999, 300, 0.05)
    assert low <= np.sum(p_values <= 0.05) <= high
    assert stats.kstest(p_values, "uniform").pvalue > 0.001


@pytest.mark.slow
def test_compat_finds_differences_where_there_are_none(null_worlds) -> None:
    """Each set treated by its own bounds, test documents among them."""
    assert np.mean(null_worlds["compat"] <= 0.05) > 0.1


# --- features that do not vary ---


@pytest.mark.parametrize("compat", [False, True])
def test_a_feature_that_does_not_vary_is_dropped_and_counted(compat) -> None:
    suspect, heldout = two_sets(14, shift=1.0)
    constant = [np.full((len(x), 1), 0.1) for x in (suspect, heldout)]
    constant[0][::3] = np.nextafter(0.1, 1)  # up to rounding
    constant[1] += 1  # even where it would give the sets away
    plain = infer(suspect, heldout, num_splits=3, compat=compat)
    wider = infer(np.hstack([constant[0], suspect]), np.hstack([constant[1], heldout]), num_splits=3, compat=compat)
    np.testing.assert_array_equal(wider.p_values, plain.p_values)
    np.testing.assert_array_equal(wider.weights[1:], plain.weights)
    assert np.isnan(wider.weights[0])
    assert wider.times_dropped.tolist() == [3, 0, 0, 0, 0, 0, 0]
    assert not plain.times_dropped.any()


def test_weights_are_averaged_over_the_splits_that_used_them() -> None:
    """One suspect document differs in the second feature: some first parts have it, some do not."""
    suspect, heldout = two_sets(15, 40, 40, 2)
    suspect[:, 1] = 0.0
    suspect[3, 1] = 1.0
    results = infer(suspect, heldout, tail_fraction=0.0, num_splits=8)
    assert 0 < results.times_dropped[1] < 8
    singles = np.random.default_rng(0)
    weights = [
        dataset_inference(suspect, heldout, rng=singles, **{**SETTINGS, "tail_fraction": 0.0}).weights for _ in range(8)
    ]
    np.testing.assert_allclose(results.weights, np.nanmean(weights, axis=0), rtol=1e-12)


@pytest.mark.parametrize("compat", [False, True])
def test_equal_documents_give_no_evidence(compat) -> None:
    result = infer(np.full((20, 3), 0.7), np.full((30, 3), 0.7), num_splits=4, compat=compat)
    assert (result.p_values == 1).all()
    assert (result.combined_p_value, result.median_p_value, result.num_undefined) == (1, 1, 4)
    assert np.isnan(result.statistics).all()
    assert np.isnan(result.weights).all()
    assert result.times_dropped.tolist() == [4, 4, 4]
    assert (result.curve_p_values == 1).all()


def test_a_feature_of_few_values_is_not_flattened() -> None:
    """Nine in ten zeros: the lowest value is no outlier because so many have it."""
    rng = np.random.default_rng(16)
    suspect, heldout = (rng.random((100, 1)) < share for share in (0.1, 0.4))
    for mode in ("mean", "clip"):
        result = infer(suspect, heldout, outliers=mode)
        assert not result.times_dropped.any()
        assert result.p_values[0] == infer(suspect, heldout, tail_fraction=0.0).p_values[0] < 0.05


# --- what is refused ---


def with_one(value):
    features = np.arange(20.0).reshape(10, 2)
    features[3, 1] = value
    return features


GOOD = np.arange(20.0).reshape(10, 2)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"suspect": with_one(np.nan)}, "`suspect`; 1 of 20 are NaN or infinite, the first in row 3, column 1"),
        ({"heldout": with_one(-np.inf)}, "`heldout`; 1 of 20 are NaN or infinite"),
        ({"suspect": GOOD[:7]}, "at least 8 documents in `suspect`.*got 7"),
        ({"heldout": GOOD[:0]}, "at least 8 documents in `heldout`.*got 0"),
        ({"suspect": GOOD[:, 0]}, r"one column per feature; got shape \(10,\)"),
        ({"suspect": GOOD[:, :0]}, r"got shape \(10, 0\)"),
        ({"heldout": GOOD[:, :1]}, "got 2 columns for suspect and 1 for heldout"),
    ],
)
def test_refuses_bad_input(changed, message) -> None:
    with pytest.raises(ValueError, match=message):
        infer(**{"suspect": GOOD, "heldout": GOOD, **changed})


# --- clusters ---


def test_copies_in_a_cluster_are_what_they_are_once() -> None:
    """Learnt from and tested as the documents by themselves are (p by Welch's freedom, not the pooled one)."""
    suspect, heldout = two_sets(num_suspect=60, num_heldout=60, shift=1.0)
    settings = {"tail_fraction": 0.0, "num_splits": 3}
    once = infer(suspect, heldout, fit_size=30, **settings)
    copies = [np.repeat(item, 3, axis=0) for item in (suspect, heldout)]
    clusters = (np.repeat(range(60), 3).tolist(),) * 2
    together = infer(*copies, fit_size=90, clusters=clusters, **settings)
    np.testing.assert_allclose(together.statistics, once.statistics, rtol=1e-6)
    with pytest.raises(ValueError, match="at least 4 clusters in each set, to learn from and to test on; got 3"):
        infer(*copies, clusters=(np.repeat(range(3), 60).tolist(), clusters[1]))


@pytest.mark.slow
def test_sets_of_works_are_not_found_apart_by_chance() -> None:
    """Fifteen works of ten documents that are alike within a work: by document most such worlds are rejected."""
    rejected = {"cluster": 0, "document": 0}
    for seed in range(200):
        rng = np.random.default_rng(seed)
        sets = [np.repeat(rng.normal(size=(15, 4)), 10, axis=0) + rng.normal(size=(150, 4)) for _ in range(2)]
        works = (np.repeat(range(15), 10).tolist(),) * 2
        for unit in rejected:
            found = infer(*sets, seed=seed, clusters=works if unit == "cluster" else None)
            rejected[unit] += found.combined_p_value < 0.05
    assert rejected["cluster"] <= 20 < 30 < rejected["document"]
