"""The report of the red team: the right word for every outcome, and what stopped what."""

from __future__ import annotations

import re

import made_up
import pytest
from made_up_red_team import attacked, everything
from reading import built, check_written, runs_of, text

from nonmember.reports.core import formats
from nonmember.reports.core.grid import FALSE, INVALID, MISSED
from nonmember.reports.declared.sections import read_sections
from nonmember.reports.render.figures import COLOURS
from nonmember.reports.render.markdown import cell_text
from nonmember_papers.red_team import failed_gates, outcome, without_gates

DASH = formats.DASH
CLEARS, SILENT, INVALID_VERDICT = "evidence_of_non_membership", "inconclusive", "invalid"


@pytest.mark.parametrize(
    ("verdict", "read", "word"),
    [
        (CLEARS, True, "fooled"),
        (SILENT, True, "right"),
        (INVALID_VERDICT, True, "refused"),
        ("evidence_of_membership", True, "right"),
        (CLEARS, False, "right"),
        (SILENT, False, "no power"),
        (INVALID_VERDICT, False, "refused"),
        ("evidence_of_membership", False, "fooled"),
    ],
)
def test_the_word_for_an_outcome(verdict, read, word):
    assert outcome(attacked(verdict=verdict, read=read)) == word


@pytest.mark.parametrize(
    ("p", "read", "word"),
    [(0.01, True, "fooled"), (0.06, True, "right"), (0.01, False, "right"), (0.06, False, "no power")],
)
def test_a_baseline_that_only_scores_is_told_by_its_p_value(p, read, word):
    assert outcome(attacked("paired_t", verdict="score_only", p_value=p, read=read)) == word


def test_what_a_refused_audit_would_have_said_without_its_gates():
    def refused(**more):
        return attacked(**{"verdict": INVALID_VERDICT, "statistic": 0.2, "p_value": 0.01} | more)

    assert without_gates(refused()) == "fooled"
    assert without_gates(refused(read=False)) == "right"
    assert without_gates(refused(statistic=0.05)) == "right", "not above the margin"
    assert without_gates(refused(p_value=0.2)) == "right"
    assert without_gates(refused(p_value=0.2, read=False)) == "no power"
    assert without_gates(refused(method="prism")) == ""


def test_gates_that_failed_and_shams_that_passed():
    assert failed_gates(attacked(verdict=SILENT)) == []
    assert failed_gates(attacked(verdict=INVALID_VERDICT)) == ["ce"]
    passed = {"shams": {"sham_noise": {"refused": False}, "sham_unrelated": {"refused": True}}}
    assert failed_gates(attacked(verdict=INVALID_VERDICT, details=passed)) == ["ce", "sham_noise passed"]


def test_one_word_where_sets_agree_else_the_numbers_of_sets(red_team_paper):
    results = [
        attacked("prism", verdict=CLEARS),
        attacked("prism", verdict=CLEARS, of="numpy-small"),
        attacked(verdict=INVALID_VERDICT),
        attacked(verdict=SILENT, of="numpy-small"),
        attacked(verdict=CLEARS, read=False),
        attacked("prism", "unheard_of"),
    ]
    found = built(red_team_paper, *results)["verdicts"].figures[0].numbers
    assert found.columns[:4] == ("PRISM, read", "PRISM, not read", "Clearance, read", "Clearance, not read")
    assert [row.name for row in found.rows] == ["sham", "unheard_of"]
    assert text(found, "sham", "PRISM, read") == "fooled"
    assert text(found, "sham", "Clearance, read") == "refused 1, right 1"
    assert text(found, "sham", "Clearance, not read") == "right"
    assert text(found, "sham", "Paired t, read") == DASH
    cell = found.rows[0].cells[2].ours[0]
    assert cell.note == "scipy-small: refused; numpy-small: right"
    assert len(cell.runs) == 2
    assert found.rows[0].cells[0].ours[0].value == 1


def test_attacks_are_in_the_order_of_the_report_with_paraphrases_of_another_sweep(red_team_paper):
    results = [
        attacked(attack="weak"),
        attacked(attack="none"),
        attacked(attack="paraphrases", sweep="red_team_paraphrases"),
    ]
    found = built(red_team_paper, *results)["verdicts"].figures[0].numbers
    assert [row.name for row in found.rows] == ["no attack", "paraphrases", "a weak reference"]


def test_numbers_by_set_with_marks_against_the_truth(red_team_paper):
    results = [
        attacked("prism", verdict=CLEARS, statistic=0.3, p_value=0.001),
        attacked(verdict=INVALID_VERDICT),
        attacked(verdict=SILENT, read=False),
        attacked("prism", verdict=SILENT, of="numpy-small"),
    ]
    read, unread = built(red_team_paper, *results)["numbers"].blocks
    assert text(read, "sham, scipy-small", "PRISM: Delta") == "+0.300"
    assert text(read, "sham, scipy-small", "PRISM: p") == f"0.001{FALSE}"
    assert text(read, "sham, scipy-small", "Clearance: p") == f"0.600{INVALID}"
    assert text(read, "sham, scipy-small", "margin") == "+0.100"
    assert text(read, "sham, numpy-small", "PRISM: p") == "0.600"
    assert text(read, "sham, numpy-small", "margin") == DASH
    assert text(unread, "sham, scipy-small", "Clearance: p") == f"0.600{MISSED}"


def test_what_stopped_it(red_team_paper):
    results = [
        attacked(verdict=INVALID_VERDICT, statistic=0.3, p_value=0.01),
        attacked(attack="none"),
        attacked(verdict=CLEARS, read=False),
    ]
    (found,) = built(red_team_paper, *results)["gates"].blocks
    assert [row.name for row in found.rows] == ["sham, scipy-small"]
    assert text(found, "sham, scipy-small", "Clearance, read") == "ce; else fooled"
    assert text(found, "sham, scipy-small", "Clearance, not read") == DASH
    none = built(red_team_paper, attacked(attack="none"))["gates"]
    assert none.blocks == ()
    assert "The study's world: no audit was refused." in none.notes


def test_the_glance_counts_attacked_audits_alone(red_team_paper):
    results = [
        attacked("prism", verdict=CLEARS),
        attacked("prism", verdict=SILENT, of="numpy-small"),
        attacked("prism", "none", verdict=CLEARS),
        attacked(verdict=INVALID_VERDICT),
        attacked("prism", verdict=SILENT, read=False),
        attacked(verdict=CLEARS, read=False),
    ]
    (row,) = red_team_paper.build(runs_of(*results)).glance.rows
    assert [cell_text(item) for item in row.cells] == ["6", "1 of 2", "0 of 1", "1 of 1", "0 of 1", "1 of 1"]


def test_every_attack_of_the_report_is_described(red_team_paper):
    (text, *_) = read_sections(red_team_paper.path / "sections.md")
    assert len(text.notes) == len(red_team_paper.names["attacks"]) - 1, "all but no attack"


def test_nothing_is_there_without_results(red_team_paper):
    sections = built(red_team_paper, made_up.result())
    assert all(section.blocks == section.figures == () for section in sections.values())


@pytest.mark.slow
@pytest.mark.pictures
def test_the_command_writes_a_page_tables_and_a_grid_that_says_what_the_table_says(written):
    folder = written("red_team", *everything())
    check_written(folder, "tables/verdicts.csv", "figures/grid-study.svg")
    picture = (folder / "figures/grid-study.svg").read_text()
    shown = re.findall(r">(fooled|refused|right|no power)[ ,0-9a-z]*<", picture)
    assert len(shown) == 5 * 6 + 3
    for place in (0, 1, 2):
        assert COLOURS[place] in picture, "as a variable of the page, or plainly"
