import math

import numpy as np
import pytest

from nonmember.stats.multiplicity import holm


def test_holm_by_hand():
    """p sorted: .01 x 4, .02 x 3, .03 x 2 = .06 (kept above .06), .5."""
    assert holm([0.5, 0.01, 0.03, 0.02]) == pytest.approx([0.5, 0.04, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]


@pytest.mark.parametrize("seed", range(5))
def test_holm_rejects_what_stepping_down_rejects(seed):
    p_values = np.random.default_rng(seed).uniform(size=9) ** 3
    stepped = 0
    for k, p in enumerate(np.sort(p_values)):
        if p > 0.05 / (9 - k):
            break
        stepped += 1
    adjusted = holm(p_values.tolist())
    assert sum(p <= 0.05 for p in adjusted) == stepped


def test_adjustment_keeps_order_and_never_lowers():
    p_values = np.random.default_rng(3).uniform(size=40)
    adjusted = np.array(holm(p_values.tolist()))
    assert (np.diff(adjusted[np.argsort(p_values)]) >= 0).all()
    assert (adjusted >= p_values).all()
    assert (adjusted <= 1).all()
    assert holm([]) == []
    assert holm([0.3]) == [0.3]


@pytest.mark.parametrize("bad", [math.nan, -0.1, 1.1])
def test_an_undefined_p_is_no_test(bad):
    with pytest.raises(ValueError, match="Leave out tests without a p-value"):
        holm([0.1, bad])
