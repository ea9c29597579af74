"""Numbers that hang on draws: honest ones agree with the verifier's own, chosen ones do not."""

from __future__ import annotations

import numpy as np
import pytest
from made_up_audits import bundled, checked, gathered
from made_up_questions import every

from nonmember_verify import resampling as draws

NUMBER = 2_000


def ends(distribution: np.ndarray, alpha: float = 0.05) -> tuple[float, float]:
    low, high = np.quantile(distribution, (alpha / 2, 1 - alpha / 2))
    return float(low), float(high)


def test_an_interval_of_other_draws_agrees_and_a_narrower_one_does_not():
    own = np.random.default_rng(0).normal(size=draws.OWN_RESAMPLES)
    for seed in range(30):
        found = ends(np.random.default_rng([1, seed]).normal(size=NUMBER))
        assert draws.ends_agree(found, own, 0.05, NUMBER)
    low, high = ends(own)
    assert not draws.ends_agree((0.7 * low, high), own, 0.05, NUMBER)
    assert not draws.ends_agree((low, 0.7 * high), own, 0.05, NUMBER)
    assert not draws.ends_agree((None, high), own, 0.05, NUMBER)
    assert draws.ends_agree((None, None), np.full(10, np.nan), 0.05, NUMBER)


def test_a_p_of_other_draws_agrees_and_one_of_many_tries_does_not():
    rng = np.random.default_rng(0)
    own = 0.2
    for p in (1 + rng.binomial(NUMBER, own, size=200)) / (NUMBER + 1):
        assert abs(p - own) <= draws.room_of_p(p, NUMBER)
    assert abs(0.04 - own) > draws.room_of_p(0.04, NUMBER)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("dose", "p and interval, by other draws"),
        ("decop", "interval, by other draws"),
        ("mc_pdd", "p, by other draws"),
    ],
)
def test_each_method_says_what_other_draws_say(name, what, tmp_path):
    bundled([gathered(dict(every())[name], tmp_path / "run")], tmp_path / "bundle")
    found = [line for line in checked(tmp_path / "bundle").lines if line.what == what]
    assert len(found) == 1
    assert found[0].kind != "FAILED"
