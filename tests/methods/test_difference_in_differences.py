"""Difference in differences: what is measured, the verdict, and what each of the two differences takes away."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import tiny
from nonmember.methods import DifferenceInDifferences, Roles, ScoredDocuments
from nonmember.models import Pretrained
from nonmember.records import Corpus, Document
from nonmember.scores import Loss

METHOD = DifferenceInDifferences(Loss(), num_permutations=999, alpha=0.05, max_tokens=64)
ROLES = Roles(Pretrained("the/target"), Pretrained("the/reference"), tiny.SUSPECT, 9)


def scored(seed, *, hard=0.0, kind=0.0, read=0.0, clusters=(), n=60):
    """hard: of the texts, under both models.   kind: what the target knows of texts of this kind.   read: of these."""
    rng = np.random.default_rng(seed)
    texts = rng.normal(-3.0, 1.0, n) - hard
    values = {"target": texts + kind + read + rng.normal(0, 0.1, n), "reference": texts + rng.normal(0, 0.1, n)}
    return ScoredDocuments(tuple(f"d{index}" for index in range(n)), values, clusters or ("",) * n)


def concluded(suspect, heldout):
    return METHOD.test({"suspect": suspect, "heldout": heldout}, np.random.default_rng(0))


def test_both_sets_are_scored_under_both_models():
    groups = METHOD.groups(replace(ROLES, heldout=tiny.GENERAL))
    for name, corpus in (("suspect", tiny.SUSPECT), ("heldout", tiny.GENERAL)):
        models = {role: item.model for role, item in groups[name].measured.items()}
        assert models == {"target": ROLES.target, "reference": ROLES.reference}
        assert all(item.corpus is corpus for item in groups[name].measured.values())
    with pytest.raises(ValueError, match="compares the suspect set with text of the same kind"):
        METHOD.groups(ROLES)


def test_a_read_set_is_found_where_neither_difference_alone_would_show_it():
    read, unread = scored(1, hard=0.3, kind=0.5, read=0.1), scored(2, kind=0.5)
    found = concluded(read, unread)
    assert found.verdict == "evidence_of_membership"
    assert found.ci_low < 0.1 < found.ci_high
    assert read.values["target"].mean() < unread.values["target"].mean(), "the target's scores point the other way"
    assert "draws from one distribution and the reference has read neither" in found.allowed_claim
    assert json.loads(json.dumps(found.details.to_json(), allow_nan=False)) == found.details.to_json()


def test_harder_texts_and_a_target_that_knows_their_kind_are_no_evidence():
    nothing = concluded(scored(1, hard=-1.0, kind=0.5), scored(2, kind=0.5))
    assert (nothing.verdict, nothing.p_value > 0.05) == ("inconclusive", True)
    assert "not evidence that the dataset was not used" in nothing.allowed_claim


def test_clusters_count_once():
    few = tuple(f"work{index % 12}" for index in range(60))
    by_document, by_work = (concluded(scored(1, read=0.02, clusters=item), scored(2)) for item in ((), few))
    assert by_document.details.to_json()["num_clusters"] == {"suspect": 60, "heldout": 60}
    assert by_work.details.to_json()["num_clusters"] == {"suspect": 12, "heldout": 60}
    assert by_work.statistic == by_document.statistic
    assert by_work.details.to_json()["degrees_of_freedom"] < by_document.details.to_json()["degrees_of_freedom"]


def test_what_it_cannot_work_with():
    """Nothing that varies is invalid, and so is too little that could be scored; too few works are refused before
    anything is scored."""
    same = scored(1)
    same = replace(same, values={role: np.ones(60) for role in same.values})
    outcome = concluded(same, same)
    assert (outcome.verdict, outcome.details.to_json()["t"]) == ("invalid", None)
    assert "is alike for all documents" in outcome.warnings[0]
    for left, number in ((scored(1, read=9.0, n=12), 12), (scored(1, read=9.0, clusters=("w", "x") * 30), 2)):
        outcome = concluded(left, scored(2))
        assert (outcome.verdict, outcome.p_value < 0.05) == ("invalid", True), "read, but by too few documents to say"
        assert f"of {number} clusters are left of the suspect set" in outcome.warnings[0]
    alone = concluded(scored(1, clusters=("w",) * 60), scored(2))
    assert (alone.verdict, np.isnan(alone.p_value)) == ("invalid", True)
    works = Corpus(tuple(Document(f"d{index}", f"text {index}", f"work{index % 4}") for index in range(40)))
    plain = Corpus(tuple(Document(f"e{index}", f"text {index}") for index in range(40)))
    METHOD.check({"suspect": plain, "heldout": plain})
    with pytest.raises(ValueError, match="at least 10 clusters in each set; the held-out set has 4"):
        METHOD.check({"suspect": plain, "heldout": works})
    with pytest.raises(ValueError, match="score"):
        replace(METHOD, score=None)
