"""What a setting is called in tables."""

from __future__ import annotations

import pytest

from nonmember.runtime.naming import short_setting


@pytest.mark.parametrize(
    ("setting", "short"),
    [
        ("data.domain=scipy", "domain=scipy"),
        ("method.distillation.lambda_=0.3", "lambda=0.3"),
        ("score@method.score=loss", "score=loss"),
        ("method.scores=_a,b_", "scores=_a,b_"),
        ("method.rate=0.2532155603031139", "rate=0.2532"),
    ],
)
def test_a_setting_is_shown_in_short(setting, short):
    assert short_setting(setting) == short
