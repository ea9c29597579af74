"""The scores on plain arrays are the classes' scores of tables, to the last digit of float64."""

from __future__ import annotations

import numpy as np
import pytest

import nonmember as nm

rng = np.random.default_rng(0)
TEXTS = [-rng.exponential(size=length) for length in (7, 1, 12)]


def test_one_text_and_many():
    many = nm.scores.loss([*TEXTS, []])
    np.testing.assert_allclose(many[:3], [text.mean() for text in TEXTS], rtol=1e-15)
    assert np.isnan(many[3]), "no token, no score"
    for text, expected in zip(TEXTS, many, strict=False):
        assert nm.scores.loss(text) == nm.scores.loss(list(text)) == expected
    assert np.isnan(nm.scores.loss([]))
    np.testing.assert_array_equal(nm.scores.loss(np.array([TEXTS[0], TEXTS[0]])), [many[0]] * 2)


def test_the_least_likely_tokens():
    """Against the formulas of the papers, written out."""
    for text in TEXTS:
        number = max(1, int(0.5 * len(text)))
        means, stds = np.full(len(text), -3.0), np.full(len(text), 2.0)
        assert nm.scores.min_k(text, 0.5) == pytest.approx(np.sort(text)[:number].mean(), abs=1e-14)
        assert nm.scores.max_k(text, 0.5) == pytest.approx(np.sort(text)[-number:].mean(), abs=1e-14)
        expected = (np.sort(text)[:number].mean() + 3) / 2
        assert nm.scores.min_k_plus_plus(text, means, stds, 0.5) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize(
    "scored",
    [
        lambda: nm.scores.loss([1.0, 3.0]),
        lambda: nm.scores.min_k([[-1.0], [2.0, 1.0]], 0.5),
        lambda: nm.scores.min_k_plus_plus([-1.0, -2.0], [1.0, 1.0], [1.0, 1.0], 0.5),
        lambda: nm.scores.reference_difference([-1.0, -2.0], [1.0, 2.0]),
        lambda: nm.scores.recall([-1.0], [0.5]),
    ],
)
def test_losses_are_no_log_probabilities(scored):
    with pytest.raises(ValueError, match=r"logarithms of probabilities, 0 or less.* Of losses pass the negative"):
        scored()


def test_a_token_without_a_probability():
    """Its logarithm is floored at -100; NaN, which sorts last, would be left out of Min-K unseen."""
    assert nm.scores.loss([-np.inf, -2.0]) == nm.scores.loss([-200.0, -2.0]) == -51.0
    assert nm.scores.min_k_plus_plus([-np.inf, -2.0], [-1.0, -1.0], [1.0, 1.0], 0.5) == -99.0
    for arguments in (([np.nan, -1.0], [-1.0] * 2, [1.0] * 2), ([-1.0] * 2, [np.nan, -1.0], [1.0] * 2)):
        with pytest.raises(ValueError, match="got NaN"):
            nm.scores.min_k_plus_plus(*arguments, 0.5)
    assert np.isnan(nm.scores.perturbed([1e-9], [-1.0], "loss_ratio")), "a loss below 0 by rounding"


def test_what_does_not_fit_together_is_refused():
    with pytest.raises(ValueError, match=r"Expected a mean for every token, \[7\] of them; got \[1\]"):
        nm.scores.min_k_plus_plus(TEXTS[0], TEXTS[1], TEXTS[0], 0.2)
    with pytest.raises(ValueError, match="one number per token"):
        nm.scores.loss([[TEXTS[0]]])
    with pytest.raises(ValueError, match="an array of reference for each of the 1 texts; got 2"):
        nm.scores.reference_difference(TEXTS[:1], TEXTS[:2])
    with pytest.raises(ValueError, match="token ids of 0 and more; got -1"):
        nm.scores.dc_pdd([-1.0, -2.0], token_ids=[1, -1], counts=[3, 4], a=10.0)
    with pytest.raises(ValueError, match="k must be"):
        nm.scores.min_k(TEXTS[0], 2)
