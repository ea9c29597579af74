"""Reports as data: what templates, axes and sections mean, and what is said where they mean nothing."""

from __future__ import annotations

from pathlib import Path

import made_up
import pytest
from reading import runs_of

from nonmember.reports.core.grid import FALSE
from nonmember.reports.core.published import read
from nonmember.reports.core.worlds import Scope, World
from nonmember.reports.declared.cells import CellTemplate, computed
from nonmember.reports.declared.facts import chosen
from nonmember.reports.declared.report import DeclaredReport, read_sections
from nonmember.reports.declared.tables import FactAxis, TableSpec
from nonmember.reports.render.markdown import cell_text

TABLE = {"rows": ["domain"], "columns": "target", "cell": "{value}"}
FIGURE = {"rows": ["domain"], "x": "target", "cell": "{value}", "numbers": ["v"], "title": "", "labels": "", "alt": ""}
WORLD = World(
    "micro", "Micro world", "Small.", "make sweep SWEEP={sweep}", "target", "member", targets={"member": "read"}
)


def scope(*results):
    return Scope(WORLD, tuple(runs_of(*results)), {"here": ["table2"]}, {})


@pytest.mark.parametrize(
    ("template", "printed"),
    [
        ("{value}", "0.250"),
        ("{value:+.1}", "+0.2"),
        ("{value:.1%} percent", "25.0 percent"),
        ("{p_value:p}", "0.020"),
        ("{p_value:tested}", f"0.020{FALSE}"),
        ("{num_tokens:n}", "12,000"),
        ("{num_tokens/num_documents:.1}", "80.0"),
        ("{statistics.details.rho_reference_target}", "0.850"),
        ("{health.before.ce}", "–"),
        ("{value:.2} ({value:.2,lowest} to {value:.2,highest})", "0.25 (0.25 to 0.25)"),
        ("{cleared} of {count}", "1 of 1"),
        ("{significant} of {with_p}, {decided}", "1 of 1, 1"),
        ("{details.rho_reference_target}", "0.850"),
        ("{value@member-untouched}", None),
    ],
)
def test_what_a_template_prints(template, printed):
    result = made_up.result(p_value=0.02, truth="member", num_tokens=12_000)
    if printed is None:
        with pytest.raises(ValueError, match="after @ stands untouched, member or untouched-member"):
            CellTemplate(template).quantities  # noqa: B018
    else:
        here = scope(result)
        assert cell_text(CellTemplate(template).cell(here.runs, here)).replace("\\", "") == printed


def test_a_tested_p_does_not_look_equal_to_its_level():
    here = scope(made_up.result(p_value=0.0498))
    assert cell_text(CellTemplate("{p_value:tested}").cell(here.runs, here)) == "0.0498"


def test_a_table_by_a_fact_that_no_result_has_is_refused():
    here = scope(made_up.result(), made_up.result())
    with pytest.raises(ValueError, match="'here' goes by 'metric', which none of its 2 results has"):
        TableSpec(["metric"], "target", "{value}", sweep="here").block(here)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{loss}", "There is no 'loss' in a result"),
        ("{value:.x}", "A number has the form p, tested, n, .3"),
        ("{value:.3,worst}", "after the comma stands lowest, highest, uniform, first or range"),
    ],
)
def test_a_field_that_is_none(template, message):
    with pytest.raises(ValueError, match=message):
        CellTemplate(template).quantities  # noqa: B018


def test_a_computed_cell_tells_its_results_with_the_first_number():
    made = computed("{} / {:+.1} ({:.2})", [0.25, float("nan"), "none"], "micro", ["a", "b"], "of two")
    assert cell_text(made) == "0.250 / – (none)"
    assert (made.ours[0].runs, made.ours[0].note, made.ours[2].runs) == (("a", "b"), "of two", ())
    assert computed("{} / {}", [], "micro").missing


def test_facts_are_chosen_by_value_and_relation():
    here = scope(*(made_up.result(data={"draw": draw}) for draw in (0, 1, 4)), made_up.result(data={"draw": None}))

    def draws(wanted):
        return [run.get("draw") for run in chosen(here.runs, {"draw": wanted}, here)]

    assert draws(4) == [4]
    assert draws([0, 1]) == [0, 1]
    assert draws({"not": 4}) == [0, 1, None]
    assert draws({"above": 0, "below": 4}) == [1]
    assert draws({"from": 1}) == [1, 4]


def test_rows_columns_and_what_is_said():
    """Two p-values, adjusted as one family by hand: 2 x .01, then .04."""
    here = scope(
        made_up.result(target="target", p_value=0.01), made_up.result(target="member", p_value=0.04, truth="member")
    )
    table = TableSpec(
        ["target"], "domain", "{p_value:tested}", ["p"], sweep="here", names={"domain": {"scipy": "SciPy"}}
    )
    (block,) = table.blocks(here)
    assert (block.key, block.corner, block.columns) == ("here-micro", "target", ("SciPy",))
    assert {row.name: row.cells[0].ours[0].adjusted for row in block.rows} == {"read": "0.040", "target": "0.020"}
    assert "2 p-values, Holm-adjusted as one family" in block.notes[0]
    assert table.blocks(scope(made_up.result(sweep="another"))) == [], "no results of this table"


def test_each_part_of_a_result_and_the_family_of_one_column():
    scores = {"zlib": {"auc": 0.6, "p": 0.4}, "loss": {"auc": 0.7, "p": 0.5}}
    curve = [{"size": size, "p": size / 100} for size in (5, 1)]
    here = scope(made_up.result(details={"scores": scores, "curve": curve}, p_value=0.01, truth=None))
    columns = {"AUC": "{details.each.auc}", "p": "{p_value:tested}"}
    block = TableSpec(["each"], columns, sweep="here", each="scores", names={"each": {"zlib": "Zlib"}}).block(here)
    assert [[row.name, *map(cell_text, row.cells)] for row in block.rows] == [
        ["Zlib", "0.600", "0.010 \\[Holm 0.020\\]"],
        ["loss", "0.700", "0.010 \\[Holm 0.020\\]"],
    ]
    assert block.notes[0] == "2 p-values, Holm-adjusted as one family.", "nothing of errors where no truth is known"
    block = TableSpec(["domain?"], "each", "{details.each.p:p}", sweep="here", each="curve.size").block(here)
    assert block.columns == ("1", "5")
    named = {"first": "scores.zlib", "none": "scores.other"}
    block = TableSpec(["each"], {"AUC": "{details.each.auc}"}, sweep="here", each=named).block(here)
    assert [row.name for row in block.rows] == ["first"]


def test_labels_of_an_axis():
    here = scope(*(made_up.result(data={"draw": draw}) for draw in (4, 0)), made_up.result(data={"draw": None}))
    axis = FactAxis("draw", {0: "the first", "other": "draw {}", "none": "no draw"})
    assert list(axis.labels(here, here.runs, "here").values()) == ["the first", "draw 4", "no draw"]
    assert list(FactAxis("draw", "{} times").labels(here, here.runs, "here").values()) == ["0 times", "4 times"]
    mixed = scope(*(made_up.result(data={"draw": draw}) for draw in ("all", 10, 4)))  # as of results of two hands
    assert list(FactAxis("draw", "{}").labels(mixed, mixed.runs, "here").values()) == ["4", "10", "all"]


def test_sections_are_read_and_a_heading_that_is_none_is_named(tmp_path: Path):
    path = tmp_path / "sections.md"
    path.write_text(
        "## One {#one}\n\nFirst\nlead.\n\nMore.\n\n> The paper\n> says.\n\n- A note\n  goes on.\n- Another.\n"
    )
    (text,) = read_sections(path)
    assert (text.key, text.title, text.lead) == ("one", "One", "First lead. More.")
    assert (text.paper, text.notes) == ("The paper says.", ("A note goes on.", "Another."))
    path.write_text("## One\n")
    with pytest.raises(ValueError, match=r"a section begins '## Title \{#key\}', not '## One'"):
        read_sections(path)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tables": {"one": {"rows": ["domain"], "colums": "target"}}}, "one: TableSpec got an unexpected .* 'colums'"),
        ({"tables": {"one": {"rows": ["domain"]}}}, "tables.one: .* missing 1 required positional argument: 'columns'"),
        ({"figures": {"one": {"rows": ["domain"]}}}, "figures.one: .* missing 6 required positional arguments"),
        ({"folder": "nowhere"}, r"there is no sections.md in nowhere"),
        ({"figures": {"oen": FIGURE}}, r"figures.oen.sweep .* must be one of one; got 'oen'. Did you mean one\?"),
        ({"tables": {"one": TABLE | {"section": "two"}}}, r"one.section .*sections.md, must be one of one; got 'two'"),
        ({"tables": {"one": TABLE | {"has_controls": True}}}, "needs of report.sweeps must be one of one; got 'contr"),
        ({"tables": {"one": TABLE | {"cell": "{value:.3"}}}, r"report.tables.one: '{value:.3' cannot be read"),
        ({"tables": {"one": TABLE | {"published": "eno"}}}, r"tables.one: a table of .*published.txt must be one of"),
        ({"made_by": {"one": ["two"]}}, "report.made_by.one, of report.sweeps, must be one of one; got 'two'"),
        ({"published": {"one": {"numbers": ["p"], "section": "two"}}}, "published.one.section, of .*; got 'two'"),
        ({"published": {"one": {"numbers": ["p"]}}}, r"\[one\], row 'r', column 'b' has 2 numbers \(1/2\), where"),
    ],
)
def test_a_report_says_what_is_wrong_with_it(given, message, tmp_path):
    (tmp_path / "sections.md").write_text("## One {#one}\n\nLead.\n")
    (tmp_path / "published.txt").write_text("[one]\na b\nr | . 1/2\n")
    fields = {
        "name": "x",
        "title": "X",
        "subtitle": "",
        "sweeps": {"one": ["table2"]},
        "worlds": [WORLD],
        "folder": str(tmp_path),
        "methods": ["prism"],
    }
    with pytest.raises(ValueError, match=message):
        DeclaredReport(**fields | given).build(runs_of(made_up.result()))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("r | 1", r"^published.txt, row 'r' must have a cell for each of the 2 columns \(a, b\).*; got 1"),
        ("r | 1 x", "^published.txt, row 'r': 'x' is no number"),
    ],
)
def test_a_published_row_that_is_none(row, message):
    with pytest.raises(ValueError, match=message):
        read(f"a b\n{row}", "published.txt")
