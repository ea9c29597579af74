"""Texts of different layout make a comparison invalid; texts that are cut are said to be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tiny
from nonmember.audits.preconditions import cut_warnings, require_alike, require_documents
from nonmember.audits.question import Audit
from nonmember.methods import DifferenceInDifferences, DocumentGroup, ScoredDocuments
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


def test_another_layout_is_invalid_with_its_number(tmp_path):
    found = require_alike(CLAIM, groups(WORDS, BROKEN), 0.7, 1, tiny.builder(tmp_path))
    assert found.verdict == "invalid"
    assert found.details.to_json()["layout_auc"]["heldout"] > 0.9
    assert "tells the suspect from the held-out set with an AUC of" in found.warnings[0]
    assert "nothing may be concluded" in found.allowed_claim


@pytest.mark.parametrize(
    ("suspect", "heldout"),
    [
        (WORDS, tiny.random_texts(30, seed=5)),
        (BROKEN, [text.replace(" ", "\n", 2) for text in tiny.random_texts(30, seed=7)]),
    ],
)
def test_the_same_layout_passes_and_is_recorded(suspect, heldout, tmp_path):
    found = require_alike(CLAIM, groups(suspect, heldout), 0.7, 1, tiny.builder(tmp_path))
    assert (found.verdict, found.warnings) == ("evidence_of_membership", ())
    assert found.details.to_json()["layout_auc"]["heldout"] <= 0.7


def test_other_words_are_invalid_too(tmp_path):
    """Laid out alike, about other things: the blind baseline says what layout cannot."""
    others = [text.replace("moss", "ledger").replace("fern", "invoice") for text in tiny.random_texts(30, seed=5)]
    found = require_alike(CLAIM, groups(WORDS, others), 0.7, 1, tiny.builder(tmp_path))
    assert found.verdict == "invalid"
    assert found.details.to_json()["blind_auc"]["words"] > 0.8
    assert "distinguishes the suspect from the held-out set with an AUC of" in found.warnings[-1]


def test_near_copies_are_refused_with_the_number_of_texts(tmp_path):
    """Twelve texts in ten copies each that differ by a page number: p below .05 in half of such audits, unread."""
    copies = [f"page {page} {text}" for text in tiny.random_texts(12, seed=1, words=60) for page in range(10)]
    method = DifferenceInDifferences(Loss(), num_permutations=99, alpha=0.05, max_tokens=64)
    heldout = tiny.texts(*tiny.random_texts(40, seed=2, words=60))
    asked = {"heldout": heldout, "heldout_label": "others", "corpus_label": "copies"}
    audit = Audit(tiny.scratch(0), tiny.scratch(1), tiny.texts(*copies), method, seed=0, **asked)
    with pytest.raises(ValueError, match="120 documents or clusters and only 12 different texts"):
        require_documents(audit, tiny.builder(tmp_path))
    rows = [replace(item, cluster_id=str(index // 10)) for index, item in enumerate(audit.suspect.documents)]
    require_documents(replace(audit, suspect=replace(audit.suspect, documents=tuple(rows))), tiny.builder(tmp_path))


def test_without_a_bound_or_anything_to_compare_nothing_is_looked_at(tmp_path):
    builder = tiny.builder(tmp_path)
    assert require_alike(CLAIM, groups(WORDS, BROKEN), None, 1, builder) is CLAIM
    assert require_alike(CLAIM, {"suspect": groups(WORDS, BROKEN)["suspect"]}, 0.7, 1, builder) is CLAIM


def test_documents_that_are_cut_are_counted(tmp_path):
    builder, corpus = tiny.builder(tmp_path), tiny.texts("moss fern", "moss " * 40)

    def warnings(max_tokens):
        measured = {"target": Scored("target", tiny.scratch(0), corpus, Loss(), max_tokens)}
        return cut_warnings({"suspect": DocumentGroup(corpus, measured)}, builder)

    (warning,) = warnings(16)
    assert warning.startswith("1 of 2 documents of the suspect set are longer than 16 tokens")
    assert warnings(1000) == []
