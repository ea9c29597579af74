"""PRISM's printed tables under margins: the numbers by direct formulas, what the print leaves open, and the report."""

from __future__ import annotations

import csv
import itertools
import math
import re
from dataclasses import replace

import pytest
from reading import check_written, text
from scipy import stats

from nonmember.reports.core import published
from nonmember.reports.core.grid import FALSE, MISSED, UNDECIDED
from nonmember_papers.published_margins import rereading
from nonmember_papers.published_margins.report import p_cell
from nonmember_papers.published_margins.rereading import (
    PRINTED,
    RereadCell,
    count,
    everything,
    held_out,
    weak_references,
    with_intervals,
)

MARGINS = (0, 0.05, 0.1, 0.15)


def one(cells, target, suspect, reference=None):
    (found,) = [
        cell
        for cell in cells
        if (cell.target, cell.suspect) == (target, suspect) and reference in (None, cell.reference)
    ]
    return found


@pytest.fixture
def document(margins_paper):
    return margins_paper.build([])


def block(document, section, key):
    (found,) = [block for item in document.sections if item.key == section for block in item.blocks if block.key == key]
    return found


# ---------------------------------------------------------------------------------------------- arithmetic


def test_a_cell_with_an_interval_by_hand():
    """HN: .404 - .384, [-.080, .121]."""
    cell = one(with_intervals(), "410m-CPT", "HN")
    error = 0.201 / (2 * stats.norm.ppf(0.975))
    assert cell.delta == (pytest.approx(0.02), pytest.approx(0.02))
    assert cell.error[0] == pytest.approx(error)
    for margin in MARGINS:
        assert cell.p_value(margin)[0] == pytest.approx(stats.norm.sf((0.02 - margin) / error))
    assert cell.limit[0] == pytest.approx(0.02 - stats.norm.ppf(0.95) * error)
    assert cell.member
    assert cell.reference == "1b"


def test_intervals_tell_the_p_that_table_2_prints():
    """The approximation is worth nothing if it does not give back what the paper has."""
    for cell in with_intervals():
        computed = max(cell.p_value(0)[0], rereading.FLOOR)
        assert computed == pytest.approx(published.number(cell.printed), abs=0.0065), cell


def test_every_cell_is_there_once_and_says_where_it_is_printed():
    cells = everything()
    assert len(cells) == 40 + 8 + 16
    assert sum(cell.member for cell in cells) == 8 + 8
    assert len({(cell.target, cell.reference, cell.suspect, cell.tables == (3,)) for cell in cells}) == len(cells)
    for cell in cells:
        if 5 in cell.tables:
            printed = PRINTED["table5"].get(cell.reference, cell.suspect)
            assert cell.printed == printed[cell.target == "410m-CPT"], "the row of 1b is table 2's"


def test_cells_of_p_alone_span_the_errors_of_their_set():
    cell = one(weak_references(), "410m-CPT", "CC", "160m")
    errors = [one(with_intervals(), row, "CC").error[0] for row in PRINTED["table8"].rows]
    assert cell.error == (min(errors), max(errors))
    zs = [stats.norm.isf(p) for p in (4.05e-4, 3.95e-4)]
    assert cell.z == pytest.approx(tuple(zs))
    for margin in MARGINS:
        corners = [stats.norm.sf(z - margin / error) for z in zs for error in errors]
        assert cell.p_value(margin) == pytest.approx((min(corners), max(corners)))


def test_a_p_at_the_floor_bounds_from_one_side_only():
    cell = one(held_out(), "410m-CPT", "Enron")
    assert math.isinf(cell.z[1])
    assert cell.z[0] == pytest.approx(stats.norm.isf(1.05e-4))
    assert cell.p_value(0.1)[0] == 0
    assert [cell.cleared(margin) for margin in MARGINS] == [True, True, True, None]
    assert not any(cell.cleared(margin) is False for cell in held_out() if math.isinf(cell.z[1]) for margin in MARGINS)


@pytest.mark.parametrize(
    ("printed", "low", "high"), [("0.01", 0.005, 0.015), ("0.858", 0.8575, 0.8585), ("2.0e-4", 1.95e-4, 2.05e-4)]
)
def test_a_printed_p_stands_for_all_that_round_to_it(printed, low, high):
    assert rereading.z_of(printed) == pytest.approx((stats.norm.isf(high), stats.norm.isf(low)))


def test_clearing_and_p_agree():
    for cell in everything():
        for margin in (*MARGINS, 0.02, 0.07, 0.2):
            low, high = cell.p_value(margin)
            decided = True if high < 0.05 else False if low >= 0.05 else None
            assert cell.cleared(margin) is decided, (cell, margin)


def test_a_larger_margin_never_clears_more():
    for cells in ([cell for cell in everything() if cell.member], held_out(), with_intervals()):
        found = [count(cells, margin) for margin in (*MARGINS, 0.3, 1)]
        assert all(a.least >= b.least and a.most >= b.most for a, b in itertools.pairwise(found))


def test_documents_until_members_are_cleared():
    """docs: about 740 (Enron), 940 (ArXiv), 2,000 (Ubuntu), 5,200 (CC), 8,900 (HN)."""
    sizes = {"Enron": (359, 740), "ArXiv": (500, 940), "Ubuntu": (688, 2000), "CC": (500, 5200), "HN": (500, 8900)}
    for suspect, (size, about) in sizes.items():
        cell = one(with_intervals(), "410m-CPT", suspect)
        assert rereading.documents_until_cleared(cell, 0, size) == pytest.approx(about, rel=0.015)
        assert math.isinf(rereading.documents_until_cleared(cell, 0.1, size))
    with_all = one(with_intervals(), "410m-CPT", "Enron")
    needed = rereading.documents_until_cleared(with_all, 0.05, 359)
    scaled = replace(with_all, error=(with_all.error[0] * math.sqrt(359 / needed),) * 2)
    scaled = replace(scaled, z=(with_all.delta[0] / scaled.error[0],) * 2)
    assert scaled.p_value(0.05)[0] == pytest.approx(0.05)


# ---------------------------------------------------------------------------------------------- the report


@pytest.mark.slow
def test_the_glance_counts_by_table_and_margin(document):
    """By plain loops over the printed numbers of tables 8 and 9."""
    cleared = {("member", margin): 0 for margin in MARGINS} | {("other", margin): 0 for margin in MARGINS}
    for table in (PRINTED["table8"], PRINTED["table9"]):
        for row, _, texts in table.cells():
            rho, distilled, low, high = map(float, texts)
            for margin in MARGINS:
                limit = rho - distilled - 1.644854 * (high - low) / 3.919928
                cleared["member" if row == "410m-CPT" else "other", margin] += limit > margin
    row = {column: text(document.glance, "Table 2 (tables 8 and 9)", column) for column in document.glance.columns}
    for margin in MARGINS:
        assert row[f"members, {margin:g}"] == f"{cleared['member', margin]} of 8"
        assert row[f"non-members, {margin:g}"] == f"{cleared['other', margin]} of 32"
    assert [text(document.glance, "Table 5", f"members, {margin:g}") for margin in MARGINS] == [
        "6 of 12",
        "1 to 2 of 12",
        "0 of 12",
        "0 of 12",
    ]
    assert text(document.glance, "Table 3", "members, 0") == "–"
    assert text(document.glance, "all, each cell once", "non-members, 0") == "46 of 48"


@pytest.mark.slow
def test_p_values_carry_what_they_mean_and_what_is_printed(document):
    found = block(document, "table2", "table2-published")
    assert text(found, "410m-CPT, margin 0", "HN") == "0.348 (0.354)"
    assert text(found, "410m, margin 0", "HN") == "\\< 1.0e-4 (1.0e-4)"
    assert text(found, "1b, margin 0.15", "HN") == f"0.076{MISSED}"
    weak = block(document, "table5", "table5-published")
    assert text(weak, "160m, 410m-CPT, margin 0", "CC") == f"4.0e-4{FALSE}"
    assert text(weak, "160m, 410m-CPT, margin 0.05", "CC") == f"0.010 to 0.018{FALSE}"
    assert text(weak, "70m, 410m-CPT, margin 0.05", "HN") == f"0.023 to 0.058{UNDECIDED}"
    assert text(weak, "160m, 410m, margin 0.1", "CC").startswith("≤ 0.11")
    assert UNDECIDED in document.marks


def test_a_range_that_does_not_decide_is_no_decision():
    cell = RereadCell((5,), "410m", "70m", "HN", False, (1.0, 5.0), (0.04, 0.05), "0.1")
    assert p_cell(cell, 0.05).ours[-1].mark == UNDECIDED


@pytest.mark.slow
def test_the_largest_margin_without_loss_is_between_the_classes(document):
    (section,) = [item for item in document.sections if item.key == "table2"]
    assert "+0.077 (Enron)" in section.notes[0]
    assert "+0.210 (1b, HN)" in section.notes[0]


@pytest.mark.slow
@pytest.mark.pictures
def test_the_command_needs_no_results(written):
    folder = written("published_margins")
    assert check_written(folder)["num_results"] == 0
    html = (folder / "report.html").read_text()
    assert re.search(r'id="runs"[^>]* hidden', html), "no results, no explorer of them"
    with (folder / "tables" / "table5.csv").open() as stream:
        rows = [row for row in csv.DictReader(stream) if row["row"] == "160m, 410m-CPT, margin 0.05"]
    assert {row["column"] for row in rows} == {"PubMed", "HN", "ArXiv", "CC"}
    assert all(float(row["value"]) >= 0 for row in rows)


@pytest.mark.parametrize("margins", [[0.05, 0.1], [], [0, 0.1, 0.05]])
def test_margins_must_begin_with_the_papers_own(margins_paper, margins):
    with pytest.raises(ValueError, match="must begin with 0 and ascend"):
        replace(margins_paper, margins=margins)
