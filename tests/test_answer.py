"""The answer of an audit: what it says for each verdict, and that all views say the same."""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parent / "reporting"))
import made_up

import tiny
from nonmember.api.results import facts_of
from nonmember.audits.answer import UNREAD, answer_of
from nonmember.audits.question import Audit
from nonmember.cli.table import show
from nonmember.methods import DifferenceInDifferences, RankAgreement
from nonmember.methods import TestOutcome as Outcome
from nonmember.methods.prism.prism import PrismDetails
from nonmember.reports.audit_page.write import write_page
from nonmember.reports.index_page.write import entry_of
from nonmember.results.mirror import summary_of
from nonmember.results.result import RESULT, SCORES, AuditResult
from nonmember.scores import Loss

METHOD = DifferenceInDifferences(Loss(), num_permutations=99, alpha=0.05, max_tokens=64)
QUESTION = Audit(tiny.scratch(0), tiny.scratch(1), tiny.SUSPECT, METHOD, seed=0, corpus_label="articles")
KEYS = {"target": "a1b2c3d4e5", "corpus": "9f8e7d6c5b", "audit": "first"}


def answered(tmp_path, audit: Audit = QUESTION, keys=KEYS, **changes):
    decision = changes.pop("verdict", "inconclusive")
    found = {"statistic": 0.4, "p_value": 0.2, "ci_low": 0.1, "ci_high": 0.7, "alpha": 0.05, "allowed_claim": "."}
    outcome = Outcome(**(found | changes), verdict=decision)
    result = made_up.result(corpus="articles", p_value=outcome.p_value, num_documents=60)
    statistics = replace(result.statistics, value=0.4, ci_low=0.1, ci_high=0.7)
    return answer_of(audit, outcome, result.question, statistics, keys, tiny.builder(tmp_path))


def test_each_verdict_has_one_sentence_why_and_what_next(tmp_path):
    used = answered(tmp_path, verdict="evidence_of_membership", p_value=0.0052)
    assert used.sentence.startswith('There is evidence that the target "target" was trained on these 60 documents')
    assert "(p = 0.0052)" in used.sentence
    assert (used.conclusion, used.p, used.guarantee) == ("used", 0.0052, "exact")
    none = answered(tmp_path)
    assert none.sentence.startswith("No evidence either way")
    assert none.because == (
        "p is 0.2, and an answer needs less than 0.05.",
        "60 documents are few; from 150 on tests decide more often.",
    )
    assert none.next == UNREAD
    invalid = answered(tmp_path, verdict="invalid", warnings=("The reference is the target.",))
    assert (invalid.p, invalid.because) == (None, ("The reference is the target.",))
    hidden = answered(tmp_path, p_value=0.03, warnings=("No power here, because the ranks are noise.",))
    assert hidden.because[0].startswith("No power"), "p below alpha is no reason for no answer"
    alone = replace(QUESTION, method=RankAgreement(Loss(), "spearman", 60, alpha=0.05, max_tokens=64))
    assert answered(tmp_path, alone, verdict="score_only").p is None


def test_no_remedy_names_what_was_done_already(tmp_path):
    given = replace(QUESTION, heldout=tiny.GENERAL, heldout_label="others")
    assert answered(tmp_path, given).next != UNREAD
    gates = {"spread": {"value": 0.0, "bound": 0.02, "upper": False, "passed": False}}
    details = PrismDetails(rho_reference_target=0.5, gates=gates)
    assert answered(tmp_path, verdict="invalid", details=details, warnings=("A reason.",)).next, "the score is loss"


def test_other_looks_at_the_same_question_are_counted(tmp_path):
    looks = [answered(tmp_path, keys=KEYS | {"audit": name}).other_looks for name in ("first", "second", "first")]
    assert looks == [0, 1, 1]
    assert answered(tmp_path, keys=KEYS | {"corpus": "another"}).other_looks == 0


TEST = {"method": "dose", "p_value": 0.01, "verdict": "inconclusive", "because": "it is far", "result": "parts/dose/r"}
OF_METHODS = {
    "prism": {},
    "dose": {"controls": [], "readings": "about 2 readings", "heaviest_dose": 4.0},
    "difference_in_differences": {},
    "auto": {"tests": {"membership": TEST}, "lacking": {"non_membership": "a reference"}, "passed_over": {}},
}


@pytest.mark.parametrize("method", OF_METHODS)
@pytest.mark.parametrize(
    "decision", ["evidence_of_membership", "evidence_of_non_membership", "inconclusive", "invalid", "score_only"]
)
def test_every_view_says_the_same(decision, method, tmp_path):
    result: AuditResult = made_up.result(verdict=decision, method=method, details=OF_METHODS[method])
    answer = result.answer
    result.save(tmp_path / RESULT)
    pq.write_table(
        pa.table({"doc_id": list("abc"), "target": np.arange(3.0), "reference": np.ones(3)}), tmp_path / SCORES
    )
    page = write_page(tmp_path).read_text()
    for width in (80, 160):
        terminal = io.StringIO()
        show([result], console=Console(file=terminal, width=width, force_terminal=True, color_system=None))
        said = " ".join(terminal.getvalue().split())
        assert answer.sentence in said
        assert said.endswith(answer.lines()[-1]), "the last lines of a terminal are the answer"
    for view in (page, summary_of(result)["answer"], facts_of(result)["sentence"]):
        assert answer.sentence in view
    assert all(text in page for _, text in answer.parts)
    entry = entry_of(result, tmp_path / RESULT, tmp_path)
    assert answer.sentence in entry["claim"]
    assert entry["written"] == answer.finished[:19].replace("T", " ")
    assert facts_of(result)["conclusion"] == answer.conclusion
