"""The model of a table: blocks (one per world, one as published) of cells, which know where their numbers are from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nonmember.reports.core.formats import DASH

PUBLISHED = "published"


@dataclass(frozen=True)
class Numeral:
    """One printed number."""

    text: str
    value: float | None
    world: str  # micro, pile, pythia, own ..., or `published`
    runs: tuple[str, ...] = ()  # anchors of the results it is from (several: a median)
    adjusted: str = ""  # the Holm-adjusted p, printed
    mark: str = ""  # see `MARKS`, or `DOUBTED`
    note: str = ""  # what a reader must know about this number

    @property
    def missing(self) -> bool:
        return self.text == DASH


# How the numbers of one cell stand together.
PAIR, INTERVAL, RANGE = "{} / {}", "{} [{}, {}]", "{} ({} to {})"

FALSE, MISSED, INVALID, UNLEARNED = "†", "‡", "⊘", "⊖"
WHY_UNLEARNED = "training of the distilled reference did not lower what it should"  # said where the mark stands
DOUBTED = "⁇"  # probably a slip of the paper: shown as printed, not to be matched
MARKS = {
    FALSE: "significant, though the truth says otherwise",
    MISSED: "not significant, though there was something to find",
    INVALID: "a precondition of the test failed",
}


def dash(world: str) -> Numeral:
    return Numeral(DASH, None, world)


@dataclass(frozen=True)
class TableCell:
    """Our numbers, and the published ones beside them where the models are the paper's."""

    ours: tuple[Numeral, ...]
    published: tuple[Numeral, ...] = ()
    template: str = "{}"  # how the numbers stand together, with {} for each

    @property
    def numbers(self) -> tuple[Numeral, ...]:
        return (*self.ours, *self.published)

    @property
    def missing(self) -> bool:
        return all(number.missing for number in self.ours)

    def pieces(self, numbers: tuple[Numeral, ...]) -> Iterator[str | Numeral]:
        """The template's text and the numbers in turn; one dash where no number exists."""
        if all(number.missing for number in numbers):
            yield numbers[0]
            return
        text, *others = self.template.split("{}")
        yield text
        for number, text in zip(numbers, others, strict=True):
            yield number
            yield text


@dataclass(frozen=True)
class TableRow:
    name: str
    cells: tuple[TableCell, ...]


@dataclass(frozen=True)
class Block:
    """A rectangle of cells."""

    key: str
    world: str  # whose numbers these are
    title: str
    corner: str  # what the row names are
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    quantities: tuple[str, ...]  # what the numbers of one cell are, in their order
    footer: tuple[TableRow, ...] = ()  # rows that qualify the columns (controls)
    notes: tuple[str, ...] = ()  # sentences

    def cells(self) -> Iterator[tuple[TableRow, str, TableCell]]:
        for row in self.rows:
            for column, cell in zip(self.columns, row.cells, strict=True):
                yield row, column, cell

    def numbers(self) -> Iterator[Numeral]:
        for row in (*self.rows, *self.footer):
            for cell in row.cells:
                yield from cell.numbers

    @property
    def num_cells(self) -> int:
        return sum(len(row.cells) for row in self.rows)

    def missing(self) -> list[tuple[str, str]]:
        """(row, column) of the cells without any number of ours."""
        return [(row.name, column) for row, column, cell in self.cells() if cell.missing]


@dataclass(frozen=True)
class Figure:
    """A picture with the numbers it shows."""

    name: str  # of its files
    world: str
    title: str
    alt: str  # what it shows, in words
    svg: str
    png: bytes
    numbers: Block | None = None
    # The files beside results that it is drawn from, path -> SHA-256.
    read: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """One table or figure of the paper with all that belongs to it."""

    key: str
    title: str
    lead: str  # what it shows and how to read it
    blocks: tuple[Block, ...] = ()
    figures: tuple[Figure, ...] = ()
    commands: tuple[str, ...] = ()  # what makes its results
    paper: str = ""  # what the paper found
    notes: tuple[str, ...] = ()
    is_empty: bool = False  # it waits for results, and has nothing else to show

    def used(self) -> set[str]:
        """Anchors of the results that stand in it."""
        blocks = [*self.blocks, *(figure.numbers for figure in self.figures if figure.numbers)]
        return {anchor for block in blocks for number in block.numbers() for anchor in number.runs}


@dataclass(frozen=True)
class ReportDocument:
    """A whole report."""

    name: str
    title: str
    subtitle: str
    worlds: dict[str, str]  # name -> what it is
    sections: Sequence[Section]
    glance: Block | None = None  # the few numbers to see first
    notes: tuple[str, ...] = field(default=())
    marks: Mapping[str, str] = field(default_factory=lambda: MARKS)  # those that are explained

    def without_empty_sections(self) -> ReportDocument:
        """As a reader sees it; which sections were left out is said."""
        empty = [section.title.partition(". ")[0] for section in self.sections if section.is_empty]
        if not empty:
            return self
        return replace(
            self,
            sections=tuple(section for section in self.sections if not section.is_empty),
            notes=(*self.notes, f"Left out, for want of results: {', '.join(empty)}."),
        )
