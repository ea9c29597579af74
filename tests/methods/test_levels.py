"""Levels of scores: what is measured on which text, and the differences by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tiny
from nonmember.methods import Levels, Roles, ScoredDocuments
from nonmember.models import Pretrained
from nonmember.scores import Loss, Zlib

LEVELS = Levels(scores=[Loss(), Zlib()], referenced=[Loss()], alpha=0.05, max_tokens=64)
ROLES = Roles(Pretrained("the/target"), Pretrained("the/reference"), tiny.SUSPECT, 9)
RNG = np.random.default_rng(0)


def scored(**values):
    columns = {name.replace("_", "/"): np.array(numbers) for name, numbers in values.items()}
    return ScoredDocuments(tuple(f"d{index}" for index in range(2)), columns)


SUSPECT = scored(target_loss=[-1.0, -2.0], target_zlib=[-0.5, -0.5], reference_loss=[-3.0, -3.0])
HELDOUT = scored(target_loss=[-4.0, -1.5], target_zlib=[-0.25, -0.25], reference_loss=[-4.5, -2.0])


def test_held_out_text_is_measured_where_it_is_given_and_the_reference_where_it_is_wanted():
    (alone,) = LEVELS.groups(ROLES).values()
    assert {name: item.model for name, item in alone.measured.items()} == {
        "target/loss": ROLES.target,
        "target/zlib": ROLES.target,
        "reference/loss": ROLES.reference,
    }
    beside = LEVELS.groups(replace(ROLES, heldout=tiny.GENERAL))
    assert list(beside) == ["suspect", "heldout"]
    assert all(item.corpus is tiny.GENERAL for item in beside["heldout"].measured.values())


def test_the_differences():
    outcome = LEVELS.test({"suspect": SUSPECT, "heldout": HELDOUT}, RNG)
    told = outcome.details.to_json()
    assert (outcome.verdict, outcome.statistic) == ("score_only", -1.5)
    assert told["means"] == {"loss": -1.5, "zlib": -0.5}
    assert told["less_reference"] == {"loss": 1.5}
    assert told["less_heldout"] == {"loss": 1.25, "zlib": -0.25}
    assert told["less_both"] == {"loss": 1.0}
    assert told["auc"] == {"loss": 0.75, "zlib": 0.0}
    assert "less_heldout" not in LEVELS.test({"suspect": SUSPECT}, RNG).details.to_json()


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match=r"referenced must be a subset of scores; got zlib"):
        replace(LEVELS, scores=[Loss()], referenced=[Zlib()])
