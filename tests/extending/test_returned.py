"""What a class of the user's own returns is looked at where it is called: nothing wrong goes on as a number."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import tiny
from nonmember.audits.question import Audit
from nonmember.audits.run import run_audit
from nonmember.methods import RankAgreement, TestOutcome
from nonmember.scores import Loss

DOCUMENTS = tiny.texts(*tiny.random_texts(30, seed=3))
METHOD = RankAgreement(Loss(), "spearman", num_resamples=100, alpha=0.05, max_tokens=64)


@dataclass(frozen=True)
class OwnScore(Loss):
    """Does to the scores what `change` says."""

    change: str = ""

    def __call__(self, inputs):
        found = super().__call__(inputs)
        match self.change:
            case "array":
                return found.values
            case "other order":
                return replace(found, doc_ids=found.doc_ids[::-1])
            case "one too few":
                return replace(found, values=found.values[1:])
            case "no reason":
                return replace(found, values=np.full(len(found.values), np.nan))
        raise AssertionError(self.change)


@dataclass(frozen=True)
class OwnMethod(RankAgreement):
    change: str = ""

    def groups(self, roles):
        return [*super().groups(roles)] if self.change == "list" else super().groups(roles)

    def test(self, documents, rng):
        usual = {"statistic": 0.5, "alpha": 0.05, "allowed_claim": "", "verdict": "score_only"}
        changes = {"verdict": {"verdict": "member"}, "p": {"p_value": 1.5}}
        return usual if self.change == "dict" else TestOutcome(**usual | changes[self.change])


@dataclass(frozen=True)
class OwnDocuments(type(DOCUMENTS)):
    def build(self, builder):
        return [item.text for item in super().build(builder).documents]


def own(change: str, **more) -> OwnMethod:
    return OwnMethod(Loss(), "spearman", num_resamples=100, alpha=0.05, max_tokens=64, change=change)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"method": replace(METHOD, score=OwnScore("array"))}, "OwnScore must return DocumentScores; it returned nd"),
        ({"method": replace(METHOD, score=OwnScore("other order"))}, "of other documents than it was given"),
        ({"method": replace(METHOD, score=OwnScore("one too few"))}, "30 documents need as many scores"),
        ({"method": replace(METHOD, score=OwnScore("no reason"))}, "NaN exactly for the documents that have a reason"),
        ({"method": own("list")}, "OwnMethod must return dict; it returned list"),
        ({"method": own("dict")}, "OwnMethod must return TestOutcome; it returned dict"),
        ({"method": own("verdict")}, "verdict of a TestOutcome must be one of"),
        ({"method": own("p")}, r"p_value of a TestOutcome must lie in \[0, 1\]"),
        ({"suspect": OwnDocuments(**vars(DOCUMENTS))}, "OwnDocuments must return Corpus or Stream; it returned list"),
    ],
)
def test_it_is_refused_by_name(changed, sentence, tmp_path):
    audit = Audit(tiny.scratch(1), tiny.scratch(2), DOCUMENTS, METHOD, seed=5, corpus_label="texts")
    with pytest.raises(ValueError, match=sentence):
        run_audit(replace(audit, **changed), tiny.builder(tmp_path / "store"), tmp_path / "one")
