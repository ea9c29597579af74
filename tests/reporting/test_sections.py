"""A further report is tables and texts: what all reports share, seen on one that exists nowhere else."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import made_up
import pytest
from reading import runs_of

from nonmember.reports.core.grid import PUBLISHED, Block, TableCell, TableRow
from nonmember.reports.core.numbers import STATISTIC, detail, field, number
from nonmember.reports.core.worlds import Scope, World
from nonmember.reports.declared.report import DeclaredReport, Filled, figures, tables
from nonmember.reports.render.markdown import cell_text

METHOD = "novel"
SECTIONS = """## Scores {#scores}\n\nHow large they are.\n\n- Always.
## A picture {#picture}\n\nNone.
## Only notes {#told}\n\nTold.
## Nothing {#empty}\n\nNothing to regenerate.
"""


def scores(scope: Scope) -> Filled:
    if not (runs := scope.of("scores")):
        return tables()
    row = TableRow("a", (TableCell((number(runs, scope.world.name, STATISTIC),)),))
    return tables(Block("scores", scope.world.name, "scores", "set", ("score",), (row,), ("score",)))


class NovelReport(DeclaredReport):
    special: ClassVar = {
        "scores": scores,
        "picture": lambda scope: figures(),
        "told": lambda scope: figures(notes=[f"{scope.world.title}: {scope.names['scores']['plain']}"]),
    }


@pytest.fixture
def report(tmp_path):
    (tmp_path / "sections.md").write_text(SECTIONS)
    (tmp_path / "published.txt").write_text("[printed]\nscore\na | .5\n")
    plain = World("micro", "Micro world", "Small.", "make sweep SWEEP={sweep}", "target", "member")
    return NovelReport(
        name="novel",
        title="Novel",
        subtitle="Nothing",
        folder=str(tmp_path),
        methods=[METHOD],
        sweeps={"scores": ["first", "second"], "more": ["first"]},
        worlds=[plain, replace(plain, name="pile", title="Pile world", command="world=pile {sweep}")],
        names={"scores": {"plain": "as printed"}},
        made_by={"scores": ["scores", "more"]},
        published={"printed": {"numbers": ["score"], "section": "scores"}},
        glance={"high": {"of": {"method": METHOD}, "decision": "evidence_of_non_membership"}},
        notes=["A note."],
    )


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
