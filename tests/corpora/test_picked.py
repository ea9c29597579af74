"""Picked documents: the ones asked for, and by what models say of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr

import tiny
from nonmember.corpora import Part
from nonmember.generated.picked import Picked
from nonmember.models.exposure import truth_about
from nonmember.observations import TokenStatistics
from nonmember.records import Corpus, Document
from nonmember.scores import Loss, MinKPlusPlus, ReferenceRatio, ScoreInputs
from nonmember.training import Trained

TARGET = Trained(tiny.scratch(1), tiny.pretraining(), tiny.GENERAL, seed=1, label="target")
SPEC = Picked(tiny.SUSPECT, TARGET, tiny.scratch(2), Loss(), "least_likely", num_documents=5, max_tokens=64)
FIVE = Corpus(tuple(Document(f"d{index}", "x") for index in range(5)), {"empty": 2})


def picked(by, target, reference, number=2) -> tuple[str, ...]:
    spec = replace(SPEC, by=by, num_documents=number)
    return spec.pick(FIVE, np.array(target, float), np.array(reference, float)).doc_ids


def test_least_likely_under_the_target_compared_with_the_reference():
    assert picked("least_likely", [-1, -9, -3, -3, -2], [-2, -9, -1, -5, -1]) == ("d2", "d4")


def test_agreeing_in_rank():
    assert picked("agreeing", [10, 20, 30, 40, 50], [1, 5, 3, 2, 4]) == ("d0", "d2")


def test_documents_without_a_score_are_not_picked_and_dropped_is_the_bases():
    assert picked("least_likely", [-9, np.nan, -1, -1, -8], [-1, -1, np.nan, -1, -1]) == ("d0", "d4")
    assert SPEC.pick(FIVE, np.arange(5.0), np.arange(5.0)).dropped == {"empty": 2}
    with pytest.raises(ValueError, match="needs 2 documents, but of 5 only 1 have a score"):
        picked("agreeing", [np.nan] * 4 + [1], [1] * 5)


def test_a_workshop_picks_by_what_the_models_say(tmp_path):
    shop = tiny.builder(tmp_path)
    score = MinKPlusPlus(0.5)
    spec = replace(SPEC, score=score, by="agreeing", num_documents=12)
    scores = [score(observed(shop, model)).values for model in (spec.target, spec.reference)]
    apart = np.abs(rankdata(scores[0]) - rankdata(scores[1]))
    expected = set(np.argsort(apart, kind="stable")[:12].tolist())
    assert [document.doc_id for document in shop.get(spec).documents] == [
        document.doc_id for index, document in enumerate(tiny.SUSPECT.documents) if index in expected
    ]
    chosen = sorted(expected)
    assert spearmanr(scores[0][chosen], scores[1][chosen]).statistic > spearmanr(*scores).statistic
    num_tokens = shop.counters.tokens_observed
    half = Part(spec, take="a", sizes={"a": 6}, by="document", per="corpus", salt="s")
    assert set(shop.get(half).doc_ids) < set(shop.get(spec).doc_ids)
    assert truth_about(shop, TARGET, spec) == "non_member"
    assert shop.counters.tokens_observed == num_tokens, "found, not made again"


def observed(shop, model) -> ScoreInputs:
    return ScoreInputs(shop.get(TokenStatistics(model, tiny.SUSPECT, view="original", max_tokens=64)))


def test_all_that_decides_is_in_its_identity():
    others = [
        replace(SPEC, base=tiny.GENERAL),
        replace(SPEC, target=tiny.scratch(3)),
        replace(SPEC, by="agreeing"),
        replace(SPEC, reference=tiny.scratch(3)),
        replace(SPEC, score=MinKPlusPlus(0.2)),
        replace(SPEC, score=MinKPlusPlus(0.3)),
        replace(SPEC, num_documents=6),
        replace(SPEC, max_tokens=9),
    ]
    assert len({repr(item.identity()) for item in [SPEC, *others]}) == 1 + len(others)
    assert replace(SPEC, target=replace(TARGET, label="other")).identity() == SPEC.identity()


def test_what_cannot_be():
    with pytest.raises(ValueError, match="`by` of Picked must be one of"):
        replace(SPEC, by="luck")
    with pytest.raises(ValueError, match="one model and the original text only; got ref_ratio"):
        replace(SPEC, score=ReferenceRatio())
