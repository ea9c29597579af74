"""The whole test on worlds where the null is true by construction.

Reference and distilled scores are equally noisy copies of the target's: exchangeable given it, so Delta is
symmetric around zero and p should be uniform. The bootstrap comes close, a little on the careful side.
"""

import numpy as np
import pytest
from scipy import stats

from marks import slow
from nonmember.stats.bootstrap import difference_of_dependent_correlations

NUM_WORLDS = 500


@pytest.fixture(scope="module", params=["spearman", slow("kendall")])
def p_values(request) -> np.ndarray:
    rng = np.random.default_rng(20)
    p_values = []
    for _ in range(NUM_WORLDS):
        target, first, second = rng.normal(size=(3, 200))
        result = difference_of_dependent_correlations(
            target + 0.7 * first,
            target,
            target + 0.7 * second,
            metric=request.param,
            num_resamples=199,
            alpha=0.05,
            margin=0.0,
            rng=rng,
        )
        p_values.append(result.p_value)
    return np.array(p_values)


@pytest.mark.slow
def test_rejects_as_often_as_it_says(p_values) -> None:
    low, high = stats.binom.interval(0.999, NUM_WORLDS, 0.05)
    assert low <= np.sum(p_values <= 0.05) <= high


@pytest.mark.slow
def test_is_as_calibrated_at_the_other_tail(p_values) -> None:
    low, high = stats.binom.interval(0.999, NUM_WORLDS, 0.05)
    assert low <= np.sum(p_values >= 0.95) <= high


@pytest.mark.slow
def test_p_is_uniform(p_values) -> None:
    assert stats.kstest(p_values, "uniform", alternative="greater").pvalue > 0.001  # no surplus of small p
    assert stats.kstest(p_values, "uniform").pvalue > 0.001
