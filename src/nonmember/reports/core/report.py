"""Base class of reports: sections of text, tables and figures, filled per world.

A report is a subclass with its texts; its labels and worlds come from conf/report/NAME.yaml.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from nonmember.reports.core.grid import MARKS, Block, Figure, Numeral, ReportDocument, Section, TableCell, TableRow
from nonmember.reports.core.worlds import Scope, World, scopes_of
from nonmember.results.load import Run


@dataclass(frozen=True)
class Filled:
    """What one world has for a section. notes: what must be said of it besides.   nothing: said where there is none."""

    nothing: str
    blocks: tuple[Block, ...] = ()
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()

    def remarks(self, world: str) -> tuple[str, ...]:
        found = self.blocks or self.figures or self.notes
        return self.notes if found else (f"{world}: {self.nothing}",)


def tables(
    *found: Block | Figure | None, nothing: str = "no results for this table yet.", notes: Sequence[str] = ()
) -> Filled:
    """Those that there are."""
    blocks = tuple(item for item in found if isinstance(item, Block))
    return Filled(nothing, blocks, tuple(item for item in found if isinstance(item, Figure)), tuple(notes))


figures = partial(tables, nothing="no results for this figure yet.")


@dataclass(frozen=True)
class ReportPart:
    """What a section says and what fills it.

    lead: what it shows and how to read it.   paper: what the paper found.   fill: its tables and figures of one world.
    made_by: keys of the report's sweeps.   published: the paper's own tables.   notes: said in any case.
    """

    key: str
    title: str
    lead: str
    paper: str = ""
    fill: Callable[[Scope], Filled] | None = None
    made_by: tuple[str, ...] = ()
    published: Callable[[], Iterable[Block]] | None = None
    notes: tuple[str, ...] = ()

    def section(self, scopes: Sequence[Scope]) -> Section:
        """World by world, the published tables last."""
        scopes = [scope for scope in scopes if scope.can_fill(self.made_by)]
        filled = [(scope.world.title, self.fill(scope)) for scope in scopes] if self.fill is not None else []
        published = tuple(self.published()) if self.published is not None else ()
        found = published or self.notes or any(item.blocks or item.figures or item.notes for _, item in filled)
        return Section(
            key=self.key,
            title=self.title,
            lead=self.lead,
            blocks=(*(block for _, item in filled for block in item.blocks), *published),
            figures=tuple(figure for _, item in filled for figure in item.figures),
            commands=tuple(dict.fromkeys(scope.command(key) for scope in scopes for key in self.made_by)),
            paper=self.paper,
            notes=(*self.notes, *(note for world, item in filled for note in item.remarks(world))),
            is_empty=self.fill is not None and not found,
        )


@dataclass(frozen=True)
class Glance:
    """The few numbers to see first. cells: of one world, below the columns.   note: how to read them."""

    columns: tuple[str, ...]
    cells: Callable[[Scope], Iterable[TableCell]]
    note: str

    def block(self, scopes: Sequence[Scope]) -> Block:
        """A row a world, the number of its results first."""
        rows = tuple(TableRow(scope.world.title, (_number_of_results(scope), *self.cells(scope))) for scope in scopes)
        return Block(
            "glance", "", "At a glance", "world", ("results", *self.columns), rows, ("count", "of"), notes=(self.note,)
        )


def _number_of_results(scope: Scope) -> TableCell:
    number = len(scope.runs)
    return TableCell((Numeral(str(number), float(number), scope.world.name),))


@dataclass(frozen=True)
class Report:
    """sweeps: table or figure -> the sweeps that may fill it, best first.   names: kind of label (scores ...) -> label
    in the results -> printed name.   worlds: in the order they are shown; results of further worlds follow with their
    labels as they are.

    methods: whose results it is about, all others are left out.   parts, glance, notes, marks: what it says and shows,
    whatever results there are.
    """

    name: str
    title: str
    subtitle: str
    sweeps: Mapping[str, Sequence[str]]
    names: Mapping[str, Mapping[str, str]]
    worlds: Sequence[World]

    methods: ClassVar[tuple[str, ...]]
    parts: ClassVar[tuple[ReportPart, ...]]
    glance: ClassVar[Glance]
    notes: ClassVar[tuple[str, ...]]
    marks: ClassVar[Mapping[str, str]] = MARKS

    def build(self, runs: Sequence[Run]) -> ReportDocument:
        """All sections, from results alone."""
        scopes = self.scopes(runs)
        return ReportDocument(
            name=self.name,
            title=self.title,
            subtitle=self.subtitle,
            worlds={scope.world.title: scope.world.about for scope in scopes},
            sections=tuple(part.section(scopes) for part in self.all_parts()),
            glance=glance.block(scopes) if scopes and (glance := self.first_numbers()) else None,
            notes=tuple(self.notes),
            marks=self.marks,
        )

    def all_parts(self) -> tuple[ReportPart, ...]:
        return self.parts

    def first_numbers(self) -> Glance | None:
        return self.glance

    def scopes(self, runs: Sequence[Run]) -> list[Scope]:
        """The worlds that have results of these methods; if none has, those of any, which then have nothing to show."""
        ours = [run for run in runs if run.question.method in self.methods]
        found = scopes_of(ours, self.worlds, self.sweeps, self.names)
        return found or [replace(item, runs=()) for item in scopes_of(runs, self.worlds, self.sweeps, self.names)]
