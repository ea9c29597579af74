"""CoDeC: what is measured on which text, and its numbers by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tiny
from nonmember import scores
from nonmember.methods import Codec, Roles, ScoredDocuments
from nonmember.models import Pretrained

METHOD = Codec(scores.Codec(4), alpha=0.05, max_tokens=64)
ROLES = Roles(Pretrained("the/target"), Pretrained("the/reference"), tiny.SUSPECT, 9)


def shares(*values):
    return ScoredDocuments(tuple(map(str, range(len(values)))), {"target": np.array(values)})


def test_each_set_gives_its_own_contexts():
    groups = METHOD.groups(replace(ROLES, heldout=tiny.GENERAL))
    for name, corpus in (("suspect", tiny.SUSPECT), ("heldout", tiny.GENERAL)):
        (item,) = groups[name].measured.values()
        assert (item.corpus, item.model) == (corpus, ROLES.target)
        assert item.observations()["behind_another"].corpus is corpus
    with pytest.raises(ValueError, match="codec compares the suspect set with held-out text"):
        METHOD.groups(ROLES)


def test_the_number_and_its_control():
    outcome = METHOD.test({"suspect": shares(1, 0.75, 0.5), "heldout": shares(0.5, 0.25)}, np.random.default_rng(0))
    assert (outcome.verdict, outcome.statistic) == ("score_only", 0.75)
    # Of six pairs five are won and one tied.
    expected = {"heldout": 0.375, "less_heldout": 0.375, "auc": 5.5 / 6, "num_heldout": 2}
    assert outcome.details.to_json() == pytest.approx(expected)
    assert np.isnan(outcome.p_value)
    assert outcome.warnings == ("Held-out text, the control: 0.375; only the difference, +0.375, counts.",)
