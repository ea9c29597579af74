"""The report of PRISM's printed tables 2, 3, 5, 8 and 9 under margins: whom would the paper have cleared? No result of
ours is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from nonmember.reports.core import formats, published
from nonmember.reports.core.grid import (
    FALSE,
    MEANINGS,
    MISSED,
    PUBLISHED,
    UNDECIDED,
    Block,
    Numeral,
    ReportDocument,
    Section,
    TableCell,
    TableRow,
    dash,
)
from nonmember.reports.core.numbers import mark
from nonmember.reports.render.blocks import cross_table
from nonmember.results.load import Run
from nonmember_papers.published_margins import figures as pictures
from nonmember_papers.published_margins.rereading import (
    FLOOR,
    PRINTED,
    CellCount,
    RereadCell,
    count,
    documents_until_cleared,
    everything,
    held_out,
    weak_references,
    with_intervals,
)

Select = Callable[[RereadCell], bool]

TABLES: dict[str, Select] = {
    "Table 2 (tables 8 and 9)": lambda cell: 2 in cell.tables,
    "Table 3": lambda cell: 3 in cell.tables,
    "Table 5": lambda cell: 5 in cell.tables,
    "Table 8": lambda cell: 8 in cell.tables,
    "Table 9": lambda cell: 9 in cell.tables,
    "all, each cell once": lambda cell: True,
}
KINDS: dict[str, Select] = {"members": lambda cell: cell.member, "non-members": lambda cell: not cell.member}

NOTES = (
    "A cell is cleared under a margin where the lower 95% limit of its Delta lies above the margin; margin 0 is the "
    "paper’s own test. Members are the cells of 410m-CPT in tables 2 and 5; in table 3 it is tested on what it did not "
    "read. A cleared member is a false clearance.",
    "Tables 8 and 9: the standard error is the width of the printed 95% interval over 3.92, and Delta is taken as "
    "normal. The intervals are of documents alone: seeds of the distillation are in none of them.",
    "Tables 3 and 5 print p alone. Delta over its error follows from p, with its rounding; the error itself is taken "
    "to lie between the smallest and the largest that tables 8 and 9 print for the same set. A p of 1.0e-4 is the "
    "least that 10,000 resamples can give and bounds Delta from below only. So there are ranges, and cells that the "
    "print does not decide. Were an error larger than these, Delta and its limit would be larger in proportion.",
    "Not in the ranges: that a printed p is itself an estimate from 10,000 resamples, and rounding in tables 8 and 9.",
)


@dataclass(frozen=True)
class PublishedMargins:
    name: str
    title: str
    subtitle: str
    margins: Sequence[float]  # of Delta, ascending from 0

    methods: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if not self.margins or list(self.margins) != sorted({0.0, *self.margins}):
            raise ValueError(f"margins must begin with 0 and ascend, such as [0, 0.05, 0.1]; got {self.margins}.")

    def build(self, runs: Sequence[Run]) -> ReportDocument:
        """From the printed numbers alone."""
        assert not runs
        return ReportDocument(
            name=self.name,
            title=self.title,
            subtitle=self.subtitle,
            worlds={},
            sections=(self.exact(), self.held_out(), self.weak_references(), self.all_margins(), self.documents()),
            glance=self.glance(),
            notes=NOTES,
            marks={mark: MEANINGS[mark] for mark in (FALSE, MISSED, UNDECIDED)},
        )

    def glance(self) -> Block | None:
        cells = everything()
        columns = {f"{kind}, {margin:g}": (of, margin) for kind, of in KINDS.items() for margin in self.margins}

        def cell(among: Select, column: tuple[Select, float]) -> TableCell:
            of_kind, margin = column
            return counted(count([cell for cell in cells if among(cell) and of_kind(cell)], margin))

        notes = (
            "How many cells are cleared, by margin. Members: false clearances. Non-members: power. “1 to 2” where the "
            "print does not decide. Table 5 counts its row of reference 1b, which is the same as in table 2.",
        )
        quantities = ("at least", "at most", "of")
        return cross_table("glance", "", "Cleared, by margin", "table", TABLES, columns, quantities, notes, cell)

    # ------------------------------------------------------------------------------------------- sections

    def exact(self) -> Section:
        cells = with_intervals()
        members = [cell for cell in cells if cell.member]
        worst, least = max(members, key=_delta), min((cell for cell in cells if not cell.member), key=_delta)
        apart = max(abs(cell.p_value(0)[0] - published.number(cell.printed)) for cell in cells)
        return Section(
            key="table2",
            title="Tables 2, 8 and 9",
            lead="Each cell of table 2 with its Delta and the lower 95% limit of it: the largest margin under which it "
            "is cleared. Below, p of “Delta is not above the margin”; at margin 0 the printed p stands beside it.",
            blocks=(self._limits(cells), self._p_values("table2", "target", cells, lambda cell: cell.target)),
            figures=(pictures.with_intervals(cells, self.margins),),
            notes=(
                f"The largest Delta of a member is {formats.signed(_delta(worst))} ({worst.suspect}), the smallest of "
                f"a non-member {formats.signed(_delta(least))} ({least.target}, {least.suspect}).",
                f"At margin 0 the normal approximation is within {formats.decimals(apart)} of the printed p in all "
                f"{len(cells)} cells.",
            ),
        )

    def held_out(self) -> Section:
        return Section(
            key="table3",
            title="Table 3. Held-out halves under the trained target",
            lead="What 410m-CPT did not read, of the same kind as what it read: these should be cleared.",
            blocks=(self._p_values("table3", "margin", held_out(), lambda cell: ""),),
        )

    def weak_references(self) -> Section:
        return Section(
            key="table5",
            title="Table 5. Weak references",
            lead="With a reference of 70m or 160m. The figure shows table 3 beside it: where the lower 95% limit of "
            "Delta lies, as far as the print tells.",
            blocks=(
                self._p_values(
                    "table5", "reference, target", weak_references(), lambda cell: f"{cell.reference}, {cell.target}"
                ),
            ),
            figures=(pictures.by_p_alone(held_out(), weak_references(), self.margins),),
        )

    def all_margins(self) -> Section:
        return Section(
            key="margins",
            title="What a margin buys and costs",
            lead="The share of cells that are cleared, against the margin. Left: members, which should not be. Right: "
            "non-members, which should. Bands where the print does not decide.",
            figures=(pictures.against_margin(with_intervals(), held_out(), weak_references(), self.margins),),
        )

    def documents(self) -> Section:
        """Of the members of table 2: when they would have been cleared."""
        members = [cell for cell in with_intervals() if cell.member]
        rows = tuple(
            TableRow(f"margin {margin:g}", tuple(_until_cleared(cell, margin) for cell in members))
            for margin in self.margins
        )
        block = Block(
            "documents-published",
            PUBLISHED,
            "Documents with which a member would be cleared",
            "margin",
            tuple(cell.suspect for cell in members),
            rows,
            ("documents",),
            notes=("A dash: with no number, since its Delta does not exceed the margin.",),
        )
        return Section(
            key="documents",
            title="False clearance by size alone",
            lead="If Delta of 410m-CPT on the sets that it read stayed as printed and its standard error fell with the "
            "root of the number of documents, this many would clear it. The sets have 359 to 990.",
            blocks=(block,),
        )

    # --------------------------------------------------------------------------------------------- tables

    def _limits(self, cells: Sequence[RereadCell]) -> Block:
        def cell(item: RereadCell) -> TableCell:
            values = (item.delta[0], item.limit[0], item.error[0])
            return TableCell(
                tuple(
                    Numeral(formats.decimals(value, signed=index < 2), value, PUBLISHED)
                    for index, value in enumerate(values)
                ),
                (),
                "{} (from {}; error {})",
            )

        return _grid(
            "table2-limits",
            "Delta, its lower 95% limit, its standard error",
            "target",
            cells,
            lambda item: item.target,
            cell,
            ("Delta", "lower 95% limit", "standard error"),
        )

    def _p_values(self, key: str, corner: str, cells: Sequence[RereadCell], name: Callable[[RereadCell], str]) -> Block:
        """A row for each name and margin."""
        blocks = []
        for margin in self.margins:
            block = _grid(key, "p by margin", corner, cells, name, partial(p_cell, margin=margin), ("p", "p, at most"))
            named = [", ".join(filter(None, (row.name, f"margin {margin:g}"))) for row in block.rows]
            blocks.append([replace(row, name=item) for row, item in zip(block.rows, named, strict=True)])
        return replace(block, rows=tuple(row for rows in zip(*blocks, strict=True) for row in rows))


def _grid(
    key: str,
    title: str,
    corner: str,
    cells: Sequence[RereadCell],
    name: Callable[[RereadCell], str],
    make: Callable[[RereadCell], TableCell],
    quantities: tuple[str, ...],
) -> Block:
    """A row per name, a column per set."""
    columns = tuple(dict.fromkeys(cell.suspect for cell in cells))
    found = {(name(cell), cell.suspect): make(cell) for cell in cells}
    names = dict.fromkeys(name(cell) for cell in cells)
    rows = tuple(TableRow(item, tuple(found[item, column] for column in columns)) for item in names)
    return Block(f"{key}-published", PUBLISHED, title, corner, columns, rows, quantities)


def p_cell(cell: RereadCell, margin: float) -> TableCell:
    """p, or the range that the print allows, with a mark for what it means; at margin 0 beside what is printed."""
    printed = (Numeral(cell.printed, published.number(cell.printed), PUBLISHED),) if margin == 0 else ()
    found = mark_of(cell, margin)
    if printed and cell.z[0] != cell.z[1]:  # the printed p is where the range comes from
        return TableCell((replace(printed[0], mark=found),))
    low, high = cell.p_value(margin)
    texts = [formats.p_value(value) for value in (low, high)]
    if low == 0:
        return TableCell((Numeral(f"≤ {texts[1]}", high, PUBLISHED, mark=found),))
    if high < FLOOR:  # a normal tail so far out says no more than the paper's resamples do
        return TableCell((Numeral(f"< {formats.p_value(FLOOR)}", high, PUBLISHED, mark=found),), printed)
    if texts[0] == texts[1]:
        return TableCell((Numeral(texts[1], high, PUBLISHED, mark=found),), printed)
    numbers = (Numeral(texts[0], low, PUBLISHED), Numeral(texts[1], high, PUBLISHED, mark=found))
    return TableCell(numbers, (), "{} to {}")


def mark_of(cell: RereadCell, margin: float) -> str:
    cleared = cell.cleared(margin)
    if cleared is None:
        return UNDECIDED
    return mark(cleared, "member" if cell.member else "non_member", "non_membership")


def counted(found: CellCount) -> TableCell:
    """3 of 8, or 3 to 5 of 8; a dash of none."""
    if not found.of:
        return TableCell((dash(PUBLISHED),))
    values = (found.least, found.most, found.of) if found.least < found.most else (found.least, found.of)
    template = "{} to {} of {}" if len(values) > 2 else "{} of {}"
    return TableCell(tuple(Numeral(str(value), float(value), PUBLISHED) for value in values), (), template)


def _until_cleared(cell: RereadCell, margin: float) -> TableCell:
    (size,) = PRINTED["table6"].get(cell.suspect, "documents")
    needed = documents_until_cleared(cell, margin, int(published.number(size)))
    known = formats.exists(needed)
    return TableCell((Numeral(formats.count(needed), needed, PUBLISHED) if known else dash(PUBLISHED),))


def _delta(cell: RereadCell) -> float:
    return cell.delta[0]
