"""The report of the dose study: what counts as an error, intervals by clusters, audits read again, the protocol."""

from __future__ import annotations

import pytest
from made_up_dose import audit, study
from reading import block, built, cell, text

from nonmember.reports.core.grid import FALSE
from nonmember.results.load import Run
from nonmember.stats.proportions import exact_interval
from nonmember_papers.dose import HALVES

REPORTED = HALVES["reported"]


def counted(found, row, column):
    """How many of how many."""
    return text(found, row, column).split(" \\[")[0].split(" [")[0]


def test_errors_are_counted_against_what_was_read(dose_paper):
    results = [
        audit(1, verdict="cleared"),
        audit(1, verdict="found"),
        audit(2, verdict="found"),
        audit(4, verdict="invalid"),
        audit(12, verdict="cleared", share=0.5),  # a part of the set: no error to clear of a whole reading
        audit(0, verdict="cleared"),
        audit(0, 3, verdict="cleared"),
        audit(0, 2, verdict="found"),
        audit(0, 4, verdict="cleared"),
        audit(0, 12, verdict="found"),
        audit(0, 4, verdict="invalid"),
    ]
    found = block(built(dose_paper, *results)["errors"], "errors")
    told = {row.name: counted(found, row.name, REPORTED) for row in found.rows}
    assert told == {
        "false clearance, read once or more": f"1{FALSE} of 4",
        "false clearance, read once": f"1{FALSE} of 2",
        "power, without related reading": "2 of 3",
        "power, with related reading": "1 of 3",
        "false membership, without related reading": f"1{FALSE} of 3",
        "false membership, with related reading": f"1{FALSE} of 3",
        "membership found, read 1x": "1 of 2",
        "membership found, read 2x": "1 of 1",
        "membership found, read 4x": "0 of 1",
        "invalid": "2 of 11",
    }


def test_targets_of_other_bases_and_of_the_other_half_are_told_apart(dose_paper):
    results = [
        audit(1, verdict="cleared"),
        audit(1, verdict="found", base="olmo"),
        audit(1, sweep="dose_aligned"),
        audit(1, sweep="dose_again"),
        audit(1, verdict="found", sweep="dose_chosen"),
        audit(1, verdict="cleared", sweep="red_team"),
    ]
    found = block(built(dose_paper, *results)["errors"], "errors")
    assert found.columns == tuple(HALVES.values())
    assert any(note.startswith(f"Panels of features: {REPORTED}: v1; ") for note in found.notes)
    row = "false clearance, read once"
    assert [counted(found, row, item) for item in found.columns] == [f"1{FALSE} of 1", "0 of 1", "0 of 1", "0 of 1"]


def test_intervals_go_by_sets_and_models(dose_paper):
    """Of three sets one is special: four models are wrong about it, and about no other."""
    results = [
        audit(1, verdict="cleared" if name == "scipy-a" else "found", name=name, model=f"m{model}")
        for name in ("scipy-a", "sympy-a", "torch-a")
        for model in range(4)
    ]
    found = block(built(dose_paper, *results)["errors"], "errors")
    num, of, low, high = cell(found, "false clearance, read once", REPORTED).ours
    assert (num.value, of.value) == (4, 12)
    assert low.value <= 4 / 12 <= high.value
    exact = exact_interval(4, 12, 0.05)
    assert (low.value, high.value) == (0.0, 1.0)
    assert f"{exact.low:.1%} to {exact.high:.1%}; 3 sets" in num.note


def test_without_an_error_there_are_as_many_trials_as_sets(dose_paper):
    results = [audit(1, verdict="found", name=name, model=f"m{model}") for name in ("a-a", "b-a") for model in range(9)]
    found = block(built(dose_paper, *results)["errors"], "errors")
    assert cell(found, "false clearance, read once", REPORTED).ours[3].value == exact_interval(0, 2, 0.05).high


def test_estimates_by_dose(dose_paper):
    results = [
        audit(2, estimate=3.0, low=2.5, high=4.0),
        audit(2, estimate=3.1, low=1.5),
        audit(2, estimate=1.3, high=1.9),
        audit(2, estimate=9.0, verdict="invalid"),
        audit(0, estimate=0.1, high=0.3, cleared=0.3),
        audit(0, cleared=0.5, high=0.5),
        audit(0, low=0.1, cleared=None),
    ]
    found = block(built(dose_paper, *results)["dose"], "dose-reported")
    audits, middle, near, holds, cleared = found.columns
    assert [text(found, "2x", item) for item in (audits, middle, cleared)] == ["3", "3.00", "–"]
    assert [counted(found, "2x", item) for item in (near, holds)] == ["1 of 3", "1 of 3"]
    assert [text(found, "nothing", item) for item in (audits, middle, near, cleared)] == ["3", "0.00", "–", "0.50"]
    assert counted(found, "nothing", holds) == "2 of 3"
    assert counted(found, "all", holds) == "3 of 6"
    none = block(built(dose_paper, audit(0))["dose"], "dose-reported")
    assert text(none, "nothing", cleared) == "none"


@pytest.mark.slow
def test_figures_have_a_panel_for_other_bases(dose_paper):
    results = [*study(), audit(1, verdict="found", base="olmo", sweep="dose_stand_in")]
    sections = built(dose_paper, *results)
    (power,), (readings,) = sections["power"].figures, sections["readings"].figures
    assert [row.name.partition(", ")[2] for row in power.numbers.rows] == ["own base"] * 2 + ["other bases"] * 2
    assert counted(power.numbers, "evidence of membership, other bases", "1x") == "1 of 1"
    assert counted(power.numbers, "evidence of membership, own base", "1x") == "0 of 12"
    assert text(readings.numbers, "sibling set read 4 times or more", "1x") == "1.00 (1.00 to 1.00)"


def test_targets_of_other_bases(dose_paper):
    results = [
        audit(4, verdict="cleared", sweep="dose_stand_in", base="olmo", estimate=0.5, high=1.0),
        audit(4, verdict="found", sweep="dose_stand_in", base="olmo", estimate=3.5),
        audit(0, verdict="found", sweep="dose_stand_in", base="olmo"),
        audit(4, verdict="invalid", sweep="dose_stand_in", base="s2"),
        audit(12, sweep="dose_stand_in", base="s2", share=0.25),
    ]
    others = block(built(dose_paper, *results)["stand-in"], "stand-in")
    assert [row.name for row in others.rows] == [
        "olmo, nothing",
        "olmo, 4x",
        "s2, 4x",
        "s2, a part or unknown",
        "all of these, nothing",
        "all of these, 4x",
        "all of these, a part or unknown",
    ]
    of_olmo = [counted(others, "olmo, 4x", item) for item in others.columns]
    assert of_olmo == ["2", f"1{FALSE} of 2", "1 of 2", "0", "0", "2.00", "1 of 2"]
    assert counted(others, "olmo, nothing", "read") == f"1{FALSE} of 1"
    assert counted(others, "s2, 4x", "invalid") == "1"
    assert counted(others, "s2, a part or unknown", "no verdict") == "1"


def test_absent_sweeps_leave_their_parts_empty(dose_paper):
    sections = built(dose_paper, audit(1, verdict="found", sweep="dose_chosen"))
    empty = {key for key, section in sections.items() if section.is_empty}
    assert empty == {"power", "readings", "stand-in"}
    assert all("yet" in note for key in empty for note in sections[key].notes)


# ------------------------------------------------------------------------------------------- read again


def test_at_a_glance(dose_paper):
    results = [audit(1, verdict="found"), audit(0, verdict="cleared"), audit(0, 4, verdict="found")]
    glance = dose_paper.build([Run(item, f"{index}/result.json", "") for index, item in enumerate(results)]).glance
    (row,) = glance.rows
    told = [[number.text for number in item.ours[:2]] for item in row.cells]
    assert told == [["3"], ["0", "1"], ["1", "1"], ["0", "1"], ["1", "1"], ["1", "1"]]
