"""The PRISM paper's printed numbers re-evaluated under margins.

PRISM clears a model where p of "Delta <= 0" is below alpha. Under a margin the hypothesis is "Delta <= margin". With
Delta taken as normal around its true value, all that is needed of a cell is z = Delta / error and the standard error:

    p(margin) = 1 - Phi(z - margin / error),    cleared where Delta - Phi^-1(1 - alpha) error > margin.

Tables 8 and 9 print Delta and its 95% interval, so both are known: error = width / (2 x 1.96). Tables 3 and 5 print p
alone, which gives z within its rounding; a p at the floor of 10,000 resamples gives the least z. Their error is not
printed; it is taken to lie between the smallest and the largest that tables 8 and 9 have for the same set, whatever the
target. What follows is then a range, and a cell whose range holds alpha is undecided.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from scipy import special

from nonmember.reports.core.published import ALPHA, PAPERS, number, published_tables

PRINTED = published_tables(PAPERS / "prism" / "published.txt")
TABLE_2, TABLE_3, TABLE_5, TABLE_8, TABLE_9 = (PRINTED[f"table{n}"] for n in (2, 3, 5, 8, 9))

MEMBER_ROW, UNTOUCHED_ROW = "410m-CPT", "410m"
STRONG_REFERENCE = "1b"  # of table 5: the reference of table 2 for these two targets
FLOOR = 1e-4  # the smallest p that 10,000 resamples give
INTERVAL = 2 * float(special.ndtri(0.975))  # width of a 95% interval in standard errors
CRITICAL = float(special.ndtri(1 - ALPHA))

Range = tuple[float, float]


@dataclass(frozen=True)
class RereadCell:
    """One cell."""

    tables: tuple[int, ...]  # where it is printed
    target: str
    reference: str
    suspect: str
    member: bool
    # z, error: lowest and highest value that the print allows; equal where it tells the value
    z: Range
    error: Range
    printed: str  # p at margin 0, as printed

    @property
    def delta(self) -> Range:
        return _products(self.z, self.error)

    @property
    def limit(self) -> Range:
        """Of Delta, from below: the largest margin under which the model is cleared."""
        return _products((self.z[0] - CRITICAL, self.z[1] - CRITICAL), self.error)

    def p_value(self, margin: float) -> Range:
        """At a margin of 0 or more."""
        low, high = (z - margin / error for z, error in zip(self.z, self.error, strict=True))
        return float(special.ndtr(-high)), float(special.ndtr(-low))

    def cleared(self, margin: float) -> bool | None:
        """None where the print does not decide."""
        lowest, highest = self.limit
        return True if lowest > margin else None if highest > margin else False


def _products(values: Range, factors: Range) -> Range:
    found = [value * factor for value in values for factor in factors]
    return min(found), max(found)


def with_intervals() -> list[RereadCell]:
    """Table 2, by the intervals of tables 8 and 9; row by row."""
    cells = []
    for row in TABLE_2.rows:
        for number_of_table, table in ((8, TABLE_8), (9, TABLE_9)):
            for suspect in table.columns:
                rho_reference, rho_distilled, low, high = (number(text) for text in table.get(row, suspect))
                error = (high - low) / INTERVAL
                z = (rho_reference - rho_distilled) / error
                cells.append(
                    RereadCell(
                        (2, number_of_table),
                        row,
                        _reference(row, suspect),
                        suspect,
                        row == MEMBER_ROW,
                        (z, z),
                        (error, error),
                        *TABLE_2.get(row, suspect),
                    )
                )
    return cells


def _reference(target: str, suspect: str) -> str:
    if suspect == "Reddit":
        return "OLMo-1b"
    return STRONG_REFERENCE if target in (MEMBER_ROW, UNTOUCHED_ROW) else "410m"


def held_out() -> list[RereadCell]:
    """Table 3: what the trained target did not read."""
    errors = errors_of_sets()
    return [
        RereadCell((3,), MEMBER_ROW, _reference(MEMBER_ROW, suspect), suspect, False, z_of(text), errors[suspect], text)
        for _, suspect, (text,) in TABLE_3.cells()
    ]


def weak_references() -> list[RereadCell]:
    """Table 5, but for the reference that table 2 has too."""
    errors = errors_of_sets()
    return [
        RereadCell((5,), target, reference, suspect, target == MEMBER_ROW, z_of(text), errors[suspect], text)
        for reference, suspect, texts in TABLE_5.cells()
        if reference != STRONG_REFERENCE
        for target, text in zip((UNTOUCHED_ROW, MEMBER_ROW), texts, strict=True)
    ]


def everything() -> list[RereadCell]:
    """Each cell once; those of table 5 that table 2 has too say so."""
    shared = {(target, suspect) for target in (UNTOUCHED_ROW, MEMBER_ROW) for suspect in TABLE_5.columns}
    exact = [
        RereadCell(
            (*cell.tables, 5), cell.target, cell.reference, cell.suspect, cell.member, cell.z, cell.error, cell.printed
        )
        if (cell.target, cell.suspect) in shared
        else cell
        for cell in with_intervals()
    ]
    return [*exact, *held_out(), *weak_references()]


def z_of(text: str) -> Range:
    """Lowest and highest z of a printed one-sided p: all that round to it, and all there may be below the floor."""
    half = float(Decimal(1).scaleb(int(Decimal(text).as_tuple().exponent))) / 2
    p = number(text)
    lowest = float(-special.ndtri(min(p + half, 1.0)))
    return lowest, float("inf") if p <= FLOOR else float(-special.ndtri(max(p - half, 0.0)))


def errors_of_sets() -> dict[str, Range]:
    """Set -> smallest and largest standard error of Delta in tables 8 and 9."""
    found: dict[str, list[float]] = {}
    for cell in with_intervals():
        found.setdefault(cell.suspect, []).append(cell.error[0])
    return {suspect: (min(errors), max(errors)) for suspect, errors in found.items()}


@dataclass(frozen=True)
class CellCount:
    """Of `of` cells so many are cleared: at least, and at most."""

    least: int
    most: int
    of: int


def count(cells: Iterable[RereadCell], margin: float) -> CellCount:
    decided = [cell.cleared(margin) for cell in cells]
    return CellCount(sum(item is True for item in decided), sum(item is not False for item in decided), len(decided))


def documents_until_cleared(cell: RereadCell, margin: float, num_documents: int) -> float:
    """With how many documents a model would be cleared if Delta stayed what it is and its error fell with their root.

    Infinity where Delta does not exceed the margin.
    """
    beyond = cell.delta[0] - margin
    return num_documents * (CRITICAL * cell.error[0] / beyond) ** 2 if beyond > 0 else float("inf")
