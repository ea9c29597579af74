"""A further report is tables and texts: what all reports share, seen on one that exists nowhere else."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import made_up
import pytest
from reading import runs_of

from nonmember.reports.core.grid import PUBLISHED, Block, Numeral, TableCell, TableRow
from nonmember.reports.core.numbers import STATISTIC, counted, detail, field, number
from nonmember.reports.core.report import Filled, Glance, Report, ReportPart, figures, tables
from nonmember.reports.core.worlds import Scope, World
from nonmember.reports.render.markdown import cell_text

METHOD = "novel"


def block(key, world, value):
    return Block(key, world, key, "set", ("score",), (TableRow("a", (TableCell((value,)),)),), ("score",))


def scores(scope: Scope) -> Filled:
    runs = scope.of("scores")
    return tables(block("scores", scope.world.name, number(runs, scope.world.name, STATISTIC)) if runs else None)


def notes_only(scope: Scope) -> Filled:
    return figures(notes=[f"{scope.world.title}: {scope.names['scores']['plain']}"])


class NovelReport(Report):
    methods: ClassVar = (METHOD,)
    parts: ClassVar = (
        ReportPart(
            "scores",
            "Scores",
            "How large they are.",
            fill=scores,
            made_by=("scores", "more"),
            notes=("Always.",),
            published=lambda: [block("printed", PUBLISHED, Numeral(".5", 0.5, PUBLISHED))],
        ),
        ReportPart("picture", "A picture", "None.", fill=lambda _: figures()),
        ReportPart("told", "Only notes", "Told.", fill=notes_only),
        ReportPart("empty", "Nothing", "Nothing to regenerate."),
    )
    glance: ClassVar = Glance(("high",), lambda scope: [counted(1, len(scope.runs), scope.world.name)], "How to read.")
    notes: ClassVar = ("A note.",)


@pytest.fixture
def report():
    plain = World("micro", "Micro world", "Small.", "make sweep SWEEP={sweep}", "target", "member")
    worlds = [plain, replace(plain, name="pile", title="Pile world", command="world=pile {sweep}")]
    sweeps = {"scores": ["first", "second"], "more": ["first"]}
    return NovelReport("novel", "Novel", "Nothing", sweeps, {"scores": {"plain": "as printed"}}, worlds)


def novel(**given):
    return made_up.result(method=METHOD, **{"sweep": "second"} | given)


def test_sections_are_filled_world_by_world_and_the_published_stand_last(report):
    document = report.build(runs_of(novel(world="pile", statistic=0.5), novel(statistic=0.25)))
    section, picture, only_notes, empty = document.sections
    assert [item.world for item in section.blocks] == ["micro", "pile", PUBLISHED], "in the order of the worlds"
    assert [cell_text(item.rows[0].cells[0]) for item in section.blocks] == ["0.250", "0.500", ".5"]
    assert section.notes == ("Always.",)
    assert section.commands == ("make sweep SWEEP=first", "world=pile first"), "each once"
    assert picture.notes == tuple(f"{world}: no results for this figure yet." for world in document.worlds)
    assert only_notes.notes == ("Micro world: as printed", "Pile world: as printed")
    assert (empty.blocks, empty.figures, empty.notes, empty.commands) == ((), (), (), ())
    shown = document.without_empty_sections()
    assert [item.key for item in shown.sections] == ["scores", "told", "empty"], "which waits for no results"
    assert shown.notes == ("A note.", "Left out, for want of results: A picture.")


def test_results_of_other_methods_do_not_count(report):
    document = report.build(runs_of(novel(), made_up.result(), made_up.result(world="pile")))
    assert list(document.worlds) == ["Micro world"]
    assert [cell_text(cell) for cell in document.glance.rows[0].cells] == ["1", "1 of 1"]


def test_without_any_result_of_its_own_it_says_what_is_missing(report):
    document = report.build(runs_of(made_up.result(world="pile")))
    section = document.sections[0]
    assert [item.world for item in section.blocks] == [PUBLISHED]
    assert section.notes == ("Always.", "Pile world: no results for this table yet.")
    assert [cell_text(cell) for cell in document.glance.rows[0].cells] == ["0", "–"]


def test_a_world_that_no_yaml_knows_is_shown_after_the_others(report):
    document = report.build(runs_of(novel(world="mine"), novel()))
    assert list(document.worlds) == ["Micro world", "mine"]


def test_numbers_of_a_result_by_name():
    result = made_up.result(details={"auc": {"words": 0.5, "kind": "words", "sure": True}}, num_tokens=7)
    assert detail("auc", "words")(result) == 0.5
    assert field("num_tokens")(result) == 7
    for path in (("auc", "kind"), ("auc", "sure"), ("auc", "none", "deeper"), ("auc",)):
        assert detail(*path)(result) is None, path
