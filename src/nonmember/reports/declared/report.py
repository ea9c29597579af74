"""A report whose sections, tables and figures stand in files: conf/report/NAME.yaml and a folder of texts."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from nonmember.checks import require_choice
from nonmember.reports.core.grid import (
    DOUBTED,
    MARKS,
    PUBLISHED,
    Block,
    Figure,
    Numeral,
    ReportDocument,
    Section,
    TableCell,
    TableRow,
    dash,
)
from nonmember.reports.core.numbers import counted, mark
from nonmember.reports.core.published import ALPHA, PAPERS, PublishedTable, number, published_number, published_tables
from nonmember.reports.core.worlds import Scope, World, scopes_of
from nonmember.reports.declared.cells import CellTemplate
from nonmember.reports.declared.facts import chosen
from nonmember.reports.declared.plots import Plot
from nonmember.reports.declared.tables import TableSpec
from nonmember.results.load import Run

SECTIONS, PRINTED_NUMBERS = "sections.md", "published.txt"
HEADING = re.compile(r"## (?P<title>.+) \{#(?P<key>[\w.-]+)\}")


@dataclass(frozen=True)
class Filled:
    """What one world has for a section. notes: what must be said of it besides.   nothing: said where there is none."""

    nothing: str
    blocks: tuple[Block, ...] = ()
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.blocks or self.figures or self.notes)


def tables(
    *found: Block | Figure | None, nothing: str = "no results for this table yet.", notes: Sequence[str] = ()
) -> Filled:
    """Those that there are."""
    blocks = tuple(item for item in found if isinstance(item, Block))
    return Filled(nothing, blocks, tuple(item for item in found if isinstance(item, Figure)), tuple(notes))


figures = functools.partial(tables, nothing="no results for this figure yet.")


@dataclass(frozen=True)
class Glance:
    """The few numbers to see first. cells: of one world, below the columns.   note: how to read them."""

    columns: tuple[str, ...]
    cells: Callable[[Scope], Iterable[TableCell]]
    note: str

    def block(self, scopes: Sequence[Scope]) -> Block:
        """A row a world, the number of its results first."""

        def row(scope: Scope) -> TableRow:
            number = Numeral(str(len(scope.runs)), float(len(scope.runs)), scope.world.name)
            return TableRow(scope.world.title, (TableCell((number,)), *self.cells(scope)))

        columns, rows = ("results", *self.columns), tuple(map(row, scopes))
        return Block("glance", "", "At a glance", "world", columns, rows, ("count", "of"), notes=(self.note,))


@dataclass(frozen=True)
class Printed:
    """A paper's own table, shown after ours, with marks where its p-values contradict the truth."""

    numbers: Sequence[str]  # what the numbers of a cell are
    title: str = ""  # where it is not "Published: table N"
    corner: str = ""  # what its rows are, where not what ours are
    template: str = ""  # how the numbers of a cell stand together, where not as ours do
    # Rows whose target has read the sets; p-values of all others are of targets that have not.
    members: Sequence[str] = ()
    truths: Sequence[str] = ()  # the truth of each number of a cell, where it is the same in all rows
    claim: str = "non_membership"  # what a small p speaks for
    # Row -> the columns whose numbers are probably slips of the paper.
    doubted: Mapping[str, Sequence[str]] = field(default_factory=dict)
    notes: Sequence[str] = ()  # sentences below it

    def block(self, key: str, table: PublishedTable, ours: TableSpec | None) -> Block:
        corner, template = (ours.head, ours.template) if ours else ("", "{}")

        def cell(row: str, column: str, texts: Sequence[str]) -> TableCell:
            numbers = tuple(map(published_number, texts, self._marks(row, column, texts)))
            joined = "{}" if len(numbers) == 1 else self.template or template
            table.fitting(row, column, joined)
            return TableCell(numbers or (dash(PUBLISHED),), (), joined)

        return Block(
            f"{key}-published",
            PUBLISHED,
            self.title or f"Published: table {key.removeprefix('table')}",
            self.corner or corner,
            table.columns,
            tuple(
                TableRow(row, tuple(cell(row, column, cells[column]) for column in table.columns))
                for row, cells in table.rows.items()
            ),
            tuple(self.numbers),
            notes=tuple(self.notes),
        )

    def _marks(self, row: str, column: str, texts: Sequence[str]) -> Sequence[str]:
        if self.doubted:
            return [DOUBTED if column in self.doubted.get(row, ()) else ""] * len(texts)
        if not texts or not (self.members or self.truths):
            return [""] * len(texts)
        truths = self.truths or ["member" if row in self.members else "non_member"] * len(texts)
        return [mark(number(text) < ALPHA, truth, self.claim) for text, truth in zip(texts, truths, strict=True)]


@dataclass(frozen=True, kw_only=True)
class DeclaredReport:
    """A report told as data; what no table or figure can say is code, `special` of a subclass."""

    name: str
    title: str
    subtitle: str
    # Has sections.md, and published.txt where a paper's numbers stand beside ours. Of this program's papers the name
    # alone.
    folder: str
    methods: Sequence[str]  # whose results it is about, all others are left out
    sweeps: Mapping[str, Sequence[str]]  # table or figure -> the sweeps that may fill it, best first
    worlds: Sequence[
        World
    ]  # in the order they are shown; results of further worlds follow with their labels as they are
    # Kind of label (scores ...) -> label in the results -> printed name.
    names: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # tables, figures: name -> fields of `TableSpec` or `Plot`, in the order in which they stand in their sections;
    # `sweep` is the name where it is not given
    tables: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)
    published: Mapping[str, Any] = field(default_factory=dict)  # key of a table of published.txt -> fields of `Printed`
    # Section -> keys of the sweeps that fill it, where not its own.
    made_by: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # Column of the first table -> `of`, the facts of the results that count, and `decision`, the verdict of those among
    # them that are counted; or `cell`, what of them stands there.
    glance: Mapping[str, Any] = field(default_factory=dict)
    glance_note: str = ""  # how to read it
    notes: Sequence[str] = ()  # sentences above everything
    marks: Mapping[str, str] = field(default_factory=lambda: MARKS)  # those that are explained

    special: ClassVar[Mapping[str, Callable[[Scope], Filled]]] = {}  # section -> what else stands in it

    def build(self, runs: Sequence[Run]) -> ReportDocument:
        """All sections, from results alone. Raises ValueError where the report names what is nowhere."""
        for section, sweeps in self.made_by.items():
            self._require_section(section, "made_by")
            for sweep in sweeps:
                require_choice(sweep, self.sweeps, f"report.made_by.{section}, of report.sweeps,")
        for key, fields in self.published.items():
            self._published(key, f"published.{key}")
            self._require_section(fields.get("section", key), f"published.{key}.section")
        scopes = self.scopes(runs)
        return ReportDocument(
            name=self.name,
            title=self.title,
            subtitle=self.subtitle,
            worlds={scope.world.title: scope.world.about for scope in scopes},
            sections=tuple(self._section(text, scopes) for text in self.texts.values()),
            glance=glance.block(scopes) if scopes and (glance := self.first_numbers()) else None,
            notes=tuple(self.notes),
            marks=self.marks,
        )

    def scopes(self, runs: Sequence[Run]) -> list[Scope]:
        """The worlds that have results of these methods; if none has, those of any, which then have nothing to show."""
        ours = [run for run in runs if run.question.method in self.methods]
        found = scopes_of(ours, self.worlds, self.sweeps, self.names)
        return found or [replace(item, runs=()) for item in scopes_of(runs, self.worlds, self.sweeps, self.names)]

    @cached_property
    def path(self) -> Path:
        """Raises ValueError where there is no such folder."""
        for path in (Path(self.folder), PAPERS / self.folder):
            if (path / SECTIONS).is_file():
                return path
        raise ValueError(f"report.folder: there is no {SECTIONS} in {self.folder}.")

    @cached_property
    def all_tables(self) -> list[TableSpec]:
        def table(name: str, fields: Mapping[str, Any]) -> TableSpec:
            keys = fields.get("published", [])
            found = [self._published(key, f"tables.{name}") for key in ([keys] if isinstance(keys, str) else keys)]
            beside = functools.reduce(operator.or_, found) if found else None
            return self._made(TableSpec, f"tables.{name}", {"sweep": name, **fields, "published": beside})

        return [table(*item) for item in self.tables.items()]

    @cached_property
    def all_figures(self) -> list[Plot]:
        return [self._made(Plot, f"figures.{name}", {"sweep": name, **of}) for name, of in self.figures.items()]

    @cached_property
    def texts(self) -> Mapping[str, Section]:
        return {text.key: text for text in read_sections(self.path / SECTIONS)}

    def _made(self, kind: Any, name: str, fields: Mapping[str, Any]) -> Any:
        spec = made(kind, name, fields)
        wanted = f"report.{name}.sweep (its own name, where none is given), of report.sweeps,"
        require_choice(spec.sweep, self.sweeps, wanted)
        if getattr(spec, "has_controls", False):
            require_choice("controls", self.sweeps, f"What report.{name}.has_controls needs of report.sweeps")
        self._require_section(spec.section or spec.sweep, f"{name}.section (its sweep, where none is given)")
        return spec

    def _require_section(self, key: str, name: str) -> None:
        require_choice(key, self.texts, f"report.{name}, of {self.path / SECTIONS},")

    def _published(self, key: str, name: str) -> PublishedTable:
        known = published_tables(path := self.path / PRINTED_NUMBERS)
        if not known:
            raise ValueError(f"report.{name}: there is no table in {path}, or no such file.")
        require_choice(key, known, f"report.{name}: a table of {path}")
        return known[key]

    def _section(self, text: Section, scopes: Sequence[Scope]) -> Section:
        """World by world, the published tables last."""
        ours = [table for table in self.all_tables if (table.section or table.sweep) == text.key]
        plots = [plot for plot in self.all_figures if (plot.section or plot.sweep) == text.key]
        special = self.special.get(text.key)

        def fill(scope: Scope) -> Filled:
            own = special(scope) if special else tables() if ours else figures()
            blocks = chain.from_iterable(table.blocks(scope) for table in ours)
            drawn = tuple(figure for plot in plots if (figure := plot.figure(scope)) is not None)
            return replace(own, blocks=(*blocks, *own.blocks), figures=(*drawn, *own.figures))

        is_filled = bool(ours or plots or special)
        made_by = self.made_by.get(text.key, (text.key,) if text.key in self.sweeps else ())
        scopes = [scope for scope in scopes if scope.can_fill(made_by)]
        filled = [(scope.world.title, fill(scope)) for scope in scopes if is_filled]
        published = self._printed(text.key)
        said = [(f"{world}: {item.nothing}",) if item.is_empty else item.notes for world, item in filled]
        return replace(
            text,
            blocks=(*(block for _, item in filled for block in item.blocks), *published),
            figures=tuple(figure for _, item in filled for figure in item.figures),
            commands=tuple(dict.fromkeys(scope.command(key) for scope in scopes for key in made_by)),
            notes=(*text.notes, *chain.from_iterable(said)),
            is_empty=is_filled and not (published or text.notes) and all(item.is_empty for _, item in filled),
        )

    def _printed(self, section: str) -> list[Block]:
        """The paper's own tables of a section: those that a table of it names, and those whose key it is."""
        blocks = []
        for key, fields in self.published.items():
            name = fields.get("section", key)
            if name == section:
                printed = made(Printed, f"published.{key}", {k: v for k, v in fields.items() if k != "section"})
                ours = next((table for table in self.all_tables if (table.section or table.sweep) == section), None)
                blocks.append(printed.block(key, self._published(key, f"published.{key}"), ours))
        return blocks

    def first_numbers(self) -> Glance | None:
        if not self.glance:
            return None

        def cells(scope: Scope) -> Iterable[TableCell]:
            for column in self.glance.values():
                of = chosen(scope.runs, column["of"], scope)
                if "cell" in column:
                    yield CellTemplate(column["cell"]).cell(of, scope)
                else:
                    found = sum(run.verdict.decision == column["decision"] for run in of)
                    yield counted(found, len(of), scope.world.name)

        return Glance(tuple(self.glance), cells, self.glance_note)


def read_sections(path: Path) -> tuple[Section, ...]:
    """The texts of a report from Markdown: a heading `## Title {#key}`, paragraphs of what is shown and how to read it,
    quoted what the paper found, as a list notes. Raises ValueError with the line where a heading is none."""
    sections: list[Section] = []
    for chunk in re.split(r"^(?=## )", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        head, _, body = chunk.partition("\n")
        if not (found := HEADING.fullmatch(head.strip())):
            raise ValueError(f"{path}: a section begins '## Title {{#key}}', not {head.strip()!r}.")
        parts = [" ".join(line.strip() for line in part.splitlines()) for part in re.split(r"\n\s*\n", body.strip())]
        paper = [text.replace("> ", "", 1).replace(" > ", " ") for text in parts if text.startswith("> ")]
        notes = [note for text in parts if text.startswith("- ") for note in text[2:].split(" - ")]
        lead = " ".join(text for text in parts if text and not text.startswith(("> ", "- ")))
        sections.append(Section(found["key"], found["title"], lead, paper=" ".join(paper), notes=tuple(notes)))
    return tuple(sections)


def made(kind: Any, name: str, fields: Mapping[str, Any]) -> Any:
    """Raises ValueError for a field that the kind does not have, or is refused by it."""
    try:
        return kind(**fields)
    except (TypeError, ValueError) as error:
        raise ValueError(f"report.{name}: {str(error).replace('.__init__()', '')}") from error
