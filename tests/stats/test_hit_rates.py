"""The bootstrap of MC-PDD: small cases in full, the paper's own tables, the large-sample check, false positives."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from nonmember.stats.proportions import Hits, difference_of_rates

B = 50_000


def hits(number, of):
    """One question a document."""
    return Hits(np.repeat([1, 0], [number, of - number]), np.ones(of, np.int64))


def rate(percent):
    """A corpus of the given rate, whatever its size: for draws of a number of their own."""
    return hits(round(100 * percent), 10_000)


def difference(less, more, seed=0, num_resamples=B, alpha=0.05, size=None):
    rng = np.random.default_rng(seed)
    return difference_of_rates(less, more, num_resamples=num_resamples, alpha=alpha, rng=rng, size=size)


def everything(less, more):
    """P(Delta >= 0) over all resamples, counted one by one; of units with any numbers of hits and questions."""

    def draws(side):
        pairs = list(zip(side.hits.tolist(), side.asked.tolist(), strict=True))
        return [np.sum(draw, axis=0) for draw in itertools.product(pairs, repeat=len(pairs))]

    both = list(itertools.product(draws(less), draws(more)))
    return sum(a[0] * b[1] >= b[0] * a[1] for a, b in both) / len(both)


# ------------------------------------------------------------------------------------- small cases in full


@pytest.mark.parametrize(("less", "more", "exact"), [((0, 1), (1, 1), 4 / 16), ((0, 0, 1), (1, 0, 1), 233 / 729)])
def test_the_specified_vectors(less, more, exact):
    """docs/methods/checks.md, TV3."""
    sides = [Hits(np.array(side), np.ones(len(side), np.int64)) for side in (less, more)]
    assert everything(*sides) == pytest.approx(exact)
    assert difference(*sides).p_value == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / B))


def test_documents_are_resampled_and_not_masks():
    """Three documents of two questions each: whole documents are drawn, so hits in one come together."""
    less, more = Hits([0, 0, 2], [2, 2, 2]), Hits([2, 2, 0], [2, 2, 1])
    exact = everything(less, more)
    assert abs(exact - difference(hits(2, 6), hits(4, 5)).p_value) > 0.05
    assert difference(less, more).p_value == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / B))


def test_p_is_never_zero_and_ties_count():
    assert difference(hits(0, 20), hits(20, 20), num_resamples=199).p_value == 1 / 200
    same = difference(hits(20, 20), hits(20, 20), num_resamples=99)
    assert (same.p_value, same.difference, same.upper) == (1.0, 0.0, 0.0)
    assert np.isnan(same.z)


def test_a_tie_is_a_tie_in_exact_arithmetic():
    """1/3 of 3 and 33/99: as quotients of floats they may differ; here every resample ties."""
    less, more = Hits([1], [3]), Hits([33], [99])
    assert difference(less, more, num_resamples=9).p_value == 1.0


def test_the_same_seed_gives_the_same_numbers():
    item, two = (difference(hits(3, 10), hits(5, 12), seed=7, num_resamples=500) for _ in range(2))
    assert item.distribution.tolist() == two.distribution.tolist()
    assert difference(hits(3, 10), hits(5, 12), seed=8, num_resamples=500).p_value != item.p_value


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(ValueError, match="nothing to compare"):
        Hits([], [])
    with pytest.raises(ValueError, match="num_resamples must be a whole number"):
        difference(hits(1, 2), hits(1, 2), num_resamples=0)


def test_many_kinds_of_units_are_drawn_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    asked = rng.integers(1, 60, size=40)
    side = Hits(rng.integers(0, asked + 1), asked)
    whole = difference(side, side, num_resamples=2000)
    monkeypatch.setattr("nonmember.stats.proportions._BLOCK_ELEMENTS", 100)
    blocks = difference(side, side, num_resamples=2000)
    assert blocks.p_value == pytest.approx(whole.p_value, abs=0.06)
    assert len(blocks.distribution) == 2000


# ------------------------------------------------------------------------------------------ the paper's tables

# docs/methods/mc_pdd.md. Hits of closed models in table VI fit 444 non-members and 422 members ([D]).
TABLE_VI = {
    "LLaMA-3.1-8B": ((153, 422), (227, 468), 0.0001, -0.07),
    "Claude-3-Haiku": ((180, 444), (230, 422), 0.0001, -0.08),
    "DeepSeek-V3": ((221, 444), (261, 422), 0.0005, -0.07),
    "GPT-4o-mini": ((165, 444), (195, 422), 0.0033, -0.04),
    "LLaMA-3-70B": ((195, 444), (245, 422), 0.0001, -0.09),
}
SIZES = (400, 350, 300, 250, 200, 150, 100, 50)
TABLE_XI = {  # non-members %, members %, p by size, upper bound by size
    "Claude-3-Haiku": (
        40.54,
        54.50,
        (0.00006, 0.00016, 0.0003, 0.00112, 0.00314, 0.00888, 0.02792, 0.09776),
        (-0.0825, -0.0771, -0.0733, -0.068, -0.06, -0.0466, -0.02, 0.02),
    ),
    "DeepSeek-V3": (
        49.77,
        61.85,
        (0.00026, 0.00074, 0.00172, 0.00392, 0.00828, 0.01954, 0.04798, 0.12998),
        (-0.0625, -0.06, -0.0533, -0.048, -0.04, -0.0266, -0.01, 0.04),
    ),
    "GPT-4o-mini": (
        37.16,
        46.21,
        (0.00502, 0.00774, 0.0135, 0.02088, 0.03554, 0.0622, 0.10874, 0.20576),
        (-0.035, -0.0286, -0.0233, -0.02, -0.01, 0, 0.02, 0.08),
    ),
    "LLaMA-3-70B": (
        43.92,
        58.06,
        (0.00006, 0.00012, 0.00024, 0.0009, 0.0029, 0.00796, 0.02668, 0.09344),
        (-0.0825, -0.08, -0.0733, -0.068, -0.06, -0.0467, -0.03, 0.02),
    ),
    "Gemini-1.5-Flash": (
        44.37,
        46.32,
        (0.30466, 0.31838, 0.33274, 0.35146, 0.37, 0.38984, 0.41948, 0.46362),
        (0.0375, 0.0429, 0.0467, 0.056, 0.065, 0.0733, 0.1, 0.14),
    ),
}


def monte_carlo_error(p):
    """Five standard errors of two independent bootstraps, theirs and ours, and the last printed digit."""
    return 5 * np.sqrt(2 * max(p, 4 / B) / B) + 1e-5


@pytest.mark.parametrize("model", TABLE_VI)
def test_table_6_is_reproduced(model):
    (hits_less, of_less), (hits_more, of_more), p, upper = TABLE_VI[model]
    found = difference(hits(hits_less, of_less), hits(hits_more, of_more))
    assert found.p_value == pytest.approx(p, abs=monte_carlo_error(p) + 5e-5)  # printed to four decimals
    assert found.upper == pytest.approx(upper, abs=0.01)  # printed in whole percent, some cut and some rounded


@pytest.mark.slow
@pytest.mark.parametrize("model", TABLE_XI)
def test_table_11_is_reproduced(model):
    """Upper bounds within one step of 1 / n and what their four digits hide; p within Monte-Carlo error."""
    less, more, p_values, bounds = TABLE_XI[model]
    exact = 0
    for size, p, upper in zip(SIZES, p_values, bounds, strict=True):
        found = difference(rate(less), rate(more), size=size)
        assert found.p_value == pytest.approx(p, abs=monte_carlo_error(p)), size
        assert found.upper == pytest.approx(upper, abs=1 / size + 1e-4), size
        exact += abs(found.upper - upper) <= 1e-4
    assert exact >= 5


def test_table_13_is_reproduced_for_one_mask():
    found = difference(hits(153, 422), hits(227, 468))
    assert found.p_value == pytest.approx(0.00016, abs=monte_carlo_error(0.00016))


@pytest.mark.parametrize(
    ("less", "more", "printed"), [(289 / 844, 394 / 936, (34.24, 42.09)), (415 / 1266, 547 / 1404, (32.78, 38.96))]
)
def test_table_13_counts_hits_of_all_masks(less, more, printed):
    assert [round(100 * less, 2), round(100 * more, 2)] == list(printed)


@pytest.mark.slow
def test_table_13_did_not_draw_masks_by_themselves():
    """Three masks a document: p is printed as .00104, 52 of 50,000. Masks drawn by themselves give half of that;
    documents in which masks go together a little (a correlation of .08) give about as much."""
    masks = difference(hits(415, 1266), hits(547, 1404), num_resamples=1_000_000)
    assert stats.binom.sf(51, B, masks.p_value) < 1e-5
    with_documents = stats.norm.cdf(masks.z / np.sqrt(1 + 2 * 0.08))
    assert with_documents == pytest.approx(0.00104, abs=monte_carlo_error(0.00104) / 3)


# --------------------------------------------------------------------------------------------- large samples


@pytest.mark.parametrize(("less", "more"), [((153, 422), (227, 468)), ((197, 444), (195, 422)), ((30, 150), (60, 90))])
def test_z_is_that_of_two_proportions_unpooled(less, more):
    found = difference(hits(*less), hits(*more), num_resamples=10)
    (a, n), (b, m) = less, more
    p, q = a / n, b / m
    z = (p - q) / np.sqrt(p * (1 - p) / n + q * (1 - q) / m)
    assert (found.z, found.z_p_value) == pytest.approx((z, stats.norm.cdf(z)))
    assert found.distribution.std() >= 0


def test_the_bootstrap_agrees_with_z_in_large_samples():
    found = difference(hits(3000, 8000), hits(3100, 8000))
    assert found.distribution.std() == pytest.approx(abs(found.difference / found.z), rel=0.02)
    assert found.p_value == pytest.approx(found.z_p_value, rel=0.1)


def test_z_of_clusters_has_the_spread_of_their_bootstrap():
    rng = np.random.default_rng(3)
    asked = rng.integers(1, 5, size=400)
    sides = [Hits(rng.binomial(asked, rng.beta(a, 2, size=400)), asked) for a in (1, 2)]
    found = difference(*sides)
    assert found.distribution.std() == pytest.approx(abs(found.difference / found.z), rel=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("true_rate", [0.05, 0.4])
def test_one_in_twenty_corpora_is_a_false_alarm(true_rate):
    """600 pairs of 150 documents of one rate; the binomial error of .05 is .009."""
    rng = np.random.default_rng(1)
    p_values = [
        difference(hits(a, 150), hits(b, 150), seed=seed, num_resamples=999).p_value
        for seed, (a, b) in enumerate(rng.binomial(150, true_rate, size=(600, 2)))
    ]
    assert np.mean(np.array(p_values) < 0.05) == pytest.approx(0.05, abs=0.025)
