"""Texts of different layout make a comparison invalid; texts that are cut are said to be."""

from __future__ import annotations

import numpy as np
import pytest

import tiny
from nonmember.audits.preconditions import cut_warnings, require_one_layout
from nonmember.methods import DocumentGroup, ScoredDocuments
from nonmember.methods import TestOutcome as Outcome
from nonmember.observations import Scored
from nonmember.scores import Loss

WORDS = tiny.random_texts(30, seed=3)
BROKEN = [text.replace(" ", "\n", 2) for text in tiny.random_texts(30, seed=4)]
CLAIM = Outcome(
    statistic=1.0,
    p_value=0.001,
    ci_low=0.5,
    ci_high=1.5,
    alpha=0.05,
    verdict="evidence_of_membership",
    allowed_claim="It was read.",
)


def groups(suspect, heldout):
    return {
        name: ScoredDocuments(tuple(map(str, range(len(texts)))), {"loss": np.zeros(len(texts))}, texts=tuple(texts))
        for name, texts in (("suspect", suspect), ("heldout", heldout))
    }


def test_another_layout_is_invalid_with_its_number():
    found = require_one_layout(CLAIM, groups(WORDS, BROKEN), 0.7, seed=1)
    assert found.verdict == "invalid"
    assert found.details.to_json()["layout_auc"]["heldout"] > 0.9
    assert "tells the suspect from the held-out set with an AUC of" in found.warnings[-1]
    assert "nothing may be concluded" in found.allowed_claim


@pytest.mark.parametrize(("suspect", "heldout"), [(WORDS, tiny.random_texts(30, seed=5)), (BROKEN[:15], BROKEN[15:])])
def test_the_same_layout_passes_and_is_recorded(suspect, heldout):
    found = require_one_layout(CLAIM, groups(suspect, heldout), 0.7, seed=1)
    assert (found.verdict, found.warnings) == ("evidence_of_membership", ())
    assert found.details.to_json()["layout_auc"]["heldout"] <= 0.7


def test_without_a_bound_or_anything_to_compare_nothing_is_looked_at():
    assert require_one_layout(CLAIM, groups(WORDS, BROKEN), None, seed=1) is CLAIM
    assert require_one_layout(CLAIM, {"suspect": groups(WORDS, BROKEN)["suspect"]}, 0.7, seed=1) is CLAIM


def test_documents_that_are_cut_are_counted(tmp_path):
    builder, corpus = tiny.builder(tmp_path), tiny.texts("moss fern", "moss " * 40)

    def warnings(max_tokens):
        measured = {"target": Scored("target", tiny.scratch(0), corpus, Loss(), max_tokens)}
        return cut_warnings({"suspect": DocumentGroup(corpus, measured)}, builder)

    (warning,) = warnings(16)
    assert warning.startswith("1 of 2 documents of the suspect set are longer than 16 tokens")
    assert warnings(1000) == []
