"""The model of a table: blocks (one per world, one as published) of cells, which know where their numbers are from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nonmember.reports.core.formats import DASH

PUBLISHED = "published"


@dataclass(frozen=True)
class Numeral:
    """One printed number.

    world: micro, pile, pythia, own ..., or `published`.   runs: anchors of the results it is from (several: a median).
    adjusted: the Holm-adjusted p, printed.   mark: see `MEANINGS`.   note: what a reader must know about this number.
    """

    text: str
    value: float | None
    world: str
    runs: tuple[str, ...] = ()
    adjusted: str = ""
    mark: str = ""
    note: str = ""

    @property
    def missing(self) -> bool:
        return self.text == DASH


# How the numbers of one cell stand together.
PAIR, INTERVAL, RANGE = "{} / {}", "{} [{}, {}]", "{} ({} to {})"

FALSE, MISSED, INVALID, DOUBTED, UNDECIDED = "†", "‡", "⊘", "⁇", "◇"
MARKS = {
    FALSE: "significant, though the truth says otherwise",
    MISSED: "not significant, though there was something to find",
    INVALID: "a precondition of the test failed",
}
MEANINGS = MARKS | {
    DOUBTED: "probably a slip of the paper: shown as printed, not to be matched",
    UNDECIDED: "undecided: it depends on what the paper does not print",
}


def dash(world: str) -> Numeral:
    return Numeral(DASH, None, world)


@dataclass(frozen=True)
class TableCell:
    """Our numbers, and the published ones beside them where the models are the paper's.

    template: how the numbers stand together, with {} for each.
    """

    ours: tuple[Numeral, ...]
    published: tuple[Numeral, ...] = ()
    template: str = "{}"

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
class RowChoice:
    """Rows are chosen by the words of a column. is_rising: each of the values includes those before it, and a row stays
    up to the chosen one.   is_list: cells hold lists with commas, and a row stays whose entries have all been chosen.
    """

    column: str
    values: tuple[str, ...]
    is_rising: bool = False
    is_list: bool = False


@dataclass(frozen=True)
class Block:
    """A rectangle of cells. world: whose numbers these are.   corner: what the row names are.   quantities: what the
    numbers of one cell are, in their order.   footer: rows that qualify the columns (controls).   notes: sentences.
    choices: by which the page lets one choose rows.
    """

    key: str
    world: str
    title: str
    corner: str
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    quantities: tuple[str, ...]
    footer: tuple[TableRow, ...] = ()
    notes: tuple[str, ...] = ()
    choices: tuple[RowChoice, ...] = ()

    def cells(self) -> Iterator[tuple[TableRow, str, TableCell]]:
        for row in self.rows:
            for column, cell in zip(self.columns, row.cells, strict=True):
                yield row, column, cell

    def numbers(self) -> Iterator[Numeral]:
        for row in (*self.rows, *self.footer):
            for cell in row.cells:
                yield from cell.numbers

    @property
    def is_tested(self) -> bool:
        return any(number.adjusted for number in self.numbers())

    @property
    def num_cells(self) -> int:
        return sum(len(row.cells) for row in self.rows)

    def missing(self) -> list[tuple[str, str]]:
        """(row, column) of the cells without any number of ours."""
        return [(row.name, column) for row, column, cell in self.cells() if cell.missing]


@dataclass(frozen=True)
class Figure:
    """A picture with the numbers it shows. name: of its files.   alt: what it shows, in words.   read: the files beside
    results that it is drawn from, path -> SHA-256.
    """

    name: str
    world: str
    title: str
    alt: str
    svg: str
    png: bytes
    numbers: Block | None = None
    read: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """One table or figure of the paper with all that belongs to it.

    commands: what makes its results.   lead: what it shows and how to read it.   paper: what the paper found.
    is_empty: it waits for results, and has nothing else to show.
    """

    key: str
    title: str
    lead: str
    blocks: tuple[Block, ...] = ()
    figures: tuple[Figure, ...] = ()
    commands: tuple[str, ...] = ()
    paper: str = ""
    notes: tuple[str, ...] = ()
    is_empty: bool = False

    def used(self) -> set[str]:
        """Anchors of the results that stand in it."""
        blocks = [*self.blocks, *(figure.numbers for figure in self.figures if figure.numbers)]
        return {anchor for block in blocks for number in block.numbers() for anchor in number.runs}


@dataclass(frozen=True)
class ReportDocument:
    """A whole report. worlds: name -> what it is.   glance: the few numbers to see first.
    own: one's own audits, which come before everything else.   marks: those that are explained.
    lists_used: the page's list of results has those alone that some number is from.
    """

    name: str
    title: str
    subtitle: str
    worlds: dict[str, str]
    sections: Sequence[Section]
    glance: Block | None = None
    notes: tuple[str, ...] = field(default=())
    marks: Mapping[str, str] = field(default_factory=lambda: MARKS)
    own: Block | None = None
    lists_used: bool = False

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
