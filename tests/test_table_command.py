"""The closing table: one per method, the statistic under its own name, nothing cut, labels as they are."""

from __future__ import annotations

import io
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from nonmember.cli.table import show
from nonmember.reports.core.numbers import mark_of
from nonmember.reports.index_page.write import entry_of
from nonmember.results.load import Run
from nonmember.results.outcomes import outcome_paths, without_parts
from nonmember.results.result import RESULT, Failure

sys.path.insert(0, str(Path(__file__).parent / "reporting"))
import made_up

T = {"ci_low": None, "ci_high": None, "rho_reference_target": None, "rho_distilled_target": None}
PRISM = made_up.result(corpus="docs")
LLM_DI = made_up.result(method="llm_di", corpus="docs", statistic=2.5, **T)
KDS = made_up.result(method="kds", corpus="docs", statistic=0.5, p_value=None, verdict="score_only", **T)


def said(*cells, terminal=False, width=80):
    stream = io.StringIO()
    show(cells, console=Console(file=stream, force_terminal=terminal, width=width, no_color=True))
    return stream.getvalue()


def headings(text):
    lines = [line for line in text.splitlines() if line.startswith("┃")]
    return [[cell.strip() for cell in line.strip("┃").split("┃")] for line in lines]


def names(text):
    return [line.split("│")[1].strip() for line in text.splitlines() if line.startswith("│")]


def test_each_method_has_its_own_table_and_only_its_own_columns():
    text = said(PRISM, LLM_DI, KDS, Failure("other", "No room.", "OSError"))
    assert headings(text) == [
        ["audit", "n", "rho_RT", "rho_DT", "Delta [95% interval]", "p", "answer", "truth"],
        ["audit", "n", "median t", "p", "answer", "truth"],
        ["audit", "n", "KDS", "answer", "truth"],
        ["audit", "answer"],
    ]
    assert "failed  other: No room." in text


def test_one_audit_names_its_gates():
    gates = {"ce": {"value": 2.99998, "bound": 3.0, "upper": False, "passed": False}}
    gates["kl_third"] = {"value": -0.15, "bound": 0.2, "upper": True, "passed": True}
    result = made_up.result(details={"gates": gates})
    lines = [line for line in said(result).splitlines() if "gate" in line]
    assert lines[:2] == [
        "1 of 2 gates passed",
        "gate FAILED  fall of the distilled reference's cross-entropy on the set: 2.99998, must be above 3",
    ]
    assert "gate " not in said(result, result), "of many audits the pages tell"


def test_a_training_that_made_it_worse_is_marked_in_every_table():
    worse = made_up.result(corpus="worse", health={"ce_before": 4.0, "ce_after": 4.2, "kl_before": 2.0, "kl_after": 1})
    assert worse.unlearned == "cross-entropy on the documents"
    assert made_up.result(health={"kl_before": 2.0, "kl_after": float("nan")}).unlearned == "divergence from the target"
    text = said(PRISM, worse)
    assert [line.count("⊖") for line in text.splitlines() if line.startswith("│")] == [0, 1]
    assert "⊖ training of the distilled reference did not lower what it should" in text
    assert mark_of(0.01, [Run(worse, "", "")]) == "⊖"
    assert entry_of(worse, Path("a/result.json"), Path())["unlearned"] == worse.unlearned


def test_where_the_truth_is_known_it_is_said_first():
    unread = made_up.result(corpus="a", truth="non_member", verdict="evidence_of_non_membership")
    wrong = made_up.result(corpus="b", truth="member", verdict="evidence_of_non_membership")
    right = made_up.result(corpus="c", truth="member", verdict="inconclusive")
    told = "prism answered 'not used' for 1 of 1 sets that were not read and 1 of 2 sets that were read (wrongly)."
    assert said(unread, wrong, right).startswith(f"By what is known, {told}")
    # One result in two folders is one; two of one set are two audits.
    again = made_up.result(corpus="b", truth="member", verdict="inconclusive", cell="again", keys={"audit": "1"})
    moved = made_up.result(corpus="b", truth="member", verdict="inconclusive", cell="b", keys={"audit": "1"}, sweep="b")
    assert "answered 'not used' for 1 of 2 audits of sets that were read (wrongly)." in said(wrong, again, moved)
    read = {"method": "llm_di", "verdict": "evidence_of_membership", **T}
    right, wrong = (made_up.result(corpus=truth, truth=truth, **read) for truth in ("member", "non_member"))
    told = "llm_di answered 'used' for 1 of 1 sets that were not read (wrongly) and 1 of 1 sets that were read."
    assert said(right, wrong).startswith(f"By what is known, {told}")
    assert "By what is known" not in said(KDS, KDS) + said(made_up.result(truth=None), made_up.result(truth=None))


def test_a_p_value_that_just_misses_alpha_does_not_look_equal_to_it():
    said_of = {p: said(made_up.result(p_value=p)) for p in (0.04996, 0.05, 0.3, 1e-5)}
    printed = {0.04996: " 0.04996 ", 0.05: " 0.0500 ", 0.3: " 0.3000 ", 1e-5: " 1.0e-05 "}
    assert all(printed[p] in text for p, text in said_of.items())


def test_nothing_that_is_invalid_shows_a_p():
    invalid = made_up.result(verdict="invalid", p_value=0.0123)
    assert "0.0123" not in said(invalid) + said(invalid, PRISM)
    assert entry_of(invalid, Path("a/result.json"), Path())["p_printed"] == "–"


def test_rows_come_in_the_order_of_the_numbers_in_their_names():
    results = [made_up.result(corpus="docs", cell=str(k), settings={"k": k}) for k in (100, 9, 20)]
    assert names(said(*results)) == ["k=9", "k=20", "k=100"]


def test_of_one_audit_a_failed_gate_is_said_once():
    gates = {"kl": {"value": 0.01, "bound": 0.02, "upper": False, "passed": False}}
    warnings = ["The fall of the divergence on the set is 0.010, and must be above 0.020.", "Another thing."]
    text = said(made_up.result(details={"gates": gates}, warnings=warnings))
    assert text.count("must be above") == 1
    assert "warning: Another thing." in text


def test_the_parts_of_auto_are_not_counted_beside_it(tmp_path):
    joined = tmp_path / "auto-docs"
    for folder in (joined, joined / "parts/prism", tmp_path / "prism-docs"):
        folder.mkdir(parents=True)
        PRISM.save(folder / RESULT)
    paths = without_parts(outcome_paths(tmp_path))
    assert [path.parent.name for path in paths] == ["auto-docs", "prism-docs"]
    (part,) = without_parts(outcome_paths(joined / "parts"))
    assert part.parent.name == "prism", "asked for by itself it is there"


def test_readings_are_told_without_a_sign_and_p_says_of_what_it_is():
    read = made_up.result(
        method="dose",
        statistic=3.14,
        ci_low=2.2,
        ci_high=None,
        p_value=0.2,
        rho_reference_target=None,
        rho_distilled_target=None,
        details={"excluded_dose": 1.0},
    )
    text = said(read, width=120)
    assert headings(text) == [["audit", "n", "readings [95% interval]", "p", "answer", "truth"]]
    assert "3.1 [2.2, -]" in text


def test_one_method_alone_keeps_its_failures_beside_the_others():
    (heading,) = headings(text := said(PRISM, Failure("other", "No room.", "OSError")))
    assert "rho_RT" in heading
    assert text.count("failed") == 2


@pytest.mark.parametrize("terminal", [False, True])
def test_no_verdict_is_cut_at_80_columns(terminal):
    text = said(PRISM, made_up.result(corpus="a" * 90), terminal=terminal)
    assert len(re.findall("(?<!')not used(?!')", text)) == 2
    assert "a" * 90 in text
    assert "…" not in text


def test_audits_in_folders_with_a_hash_are_told_apart_by_their_settings():
    alike = [
        made_up.result(corpus="docs", cell=f"prism-docs-{mark}", settings={"distillation": {"lambda_": rate}, "k": 0.2})
        for mark, rate in (("1a2b", 0.3), ("3c4d", 0.7))
    ]
    text = said(*alike)
    assert names(text) == ["lambda=0.3", "lambda=0.7"]


def test_labels_of_a_table_hold_what_differs_in_it_alone():
    """Not what tells it from the table of another method; a label that is said once in its table stays short."""
    swept = [made_up.result(corpus="docs", cell=f"docs-{rate}", settings={"rate": rate}) for rate in (1 / 3, 0.5)]
    other = made_up.result(corpus="docs", method="fsd", cell="fsd-1a2b", settings={"splits": 10})
    assert names(said(*swept, other)) == ["rate=0.3333", "rate=0.5", "docs under target"]


def test_a_failure_is_named_as_results_are():
    """By what was given for it in its sweep, else by its subject; the folder's hash where nothing else tells."""
    swept = [made_up.result(corpus="docs", cell=f"prism-docs-{seed}", swept={"seed": str(seed)}) for seed in (1, 2)]
    failed = {"error": "No room.", "kind": "OSError"}
    given = {"seed": "3", "method.rate": "0.1234567"}
    third = Failure("prism-docs-3c4d", subject="docs under target", swept=given, **failed)
    assert names(said(*swept, third)) == ["seed=1", "seed=2", "seed=3 rate=0.1235"]
    alone = Failure("prism-other-1a2b", subject="other under target", **failed)
    assert names(said(*swept, alone)) == ["seed=1", "seed=2", "other under target"]
    assert "failed  other under target: No room." in said(*swept, alone)
    assert names(said(alone, replace(alone, cell="second"), Failure("third", **failed))) == [
        "prism-other-1a2b",
        "second",
        "third",
    ]


def test_labels_with_markup_stay_what_they_are():
    text = said(made_up.result(corpus="[/x] [draft] docs"))
    assert "[/x] [draft] docs under target" in text
    assert "About [/x] [draft] docs and target" in text
