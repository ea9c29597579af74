"""The figure of the red team: a grid of attacks and methods with the outcome in words, and in colour."""

from __future__ import annotations

from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from nonmember.reports.core.grid import Cell, Figure
from nonmember.reports.core.worlds import Scope
from nonmember.reports.papers.red_team.tables import FOOLED, NO_POWER, OUTCOMES, REFUSED, RIGHT, verdicts
from nonmember.reports.render.figures import COLOURS, QUIET, figure_of

BLUE, VERMILION, GREEN = COLOURS[0], COLOURS[1], COLOURS[2]
COLOUR_OF = {FOOLED: VERMILION, REFUSED: BLUE, NO_POWER: QUIET, RIGHT: GREEN}
ROW_HEIGHT, COLUMN_WIDTH, NAMES_WIDTH = 0.32, 1.05, 2.4


def grid(scope: Scope) -> Figure | None:
    """A cell is of the colour of its worst outcome."""
    block = verdicts(scope)
    if block is None:
        return None
    num_rows, num_columns = len(block.rows), len(block.columns)

    def paint(canvas: Canvas) -> None:
        axis = canvas.subplots()
        for y, row in enumerate(block.rows):
            for x, cell in enumerate(row.cells):
                colour = _colour(cell)
                axis.add_patch(Rectangle((x, y), 1, 1, facecolor=colour or "none", alpha=0.25 if colour else 1,
                                         edgecolor="none"))  # fmt: skip
                axis.text(x + 0.5, y + 0.5, cell.ours[0].text, ha="center", va="center", fontsize=7.5)
        axis.set(xlim=(0, num_columns), ylim=(num_rows, 0))
        axis.set_xticks([x + 0.5 for x in range(num_columns)], [name.replace(", ", "\n") for name in block.columns])
        axis.set_yticks([y + 0.5 for y in range(num_rows)], [row.name for row in block.rows])
        axis.tick_params(length=0, top=False, labeltop=True, bottom=False, labelbottom=False)
        for line in range(1, num_rows):
            axis.axhline(line, color=QUIET, linewidth=0.3)
        for line in range(1, num_columns):
            axis.axvline(line, color=QUIET, linewidth=0.8 if line % 2 == 0 else 0.3)
        axis.spines[["left", "bottom"]].set_visible(False)

    alt = (
        "A grid: a row per attack, a column per method for targets that have read the set and for targets that have "
        "not; in each cell whether the method was fooled, refused, had no power or was right."
    )
    size = (NAMES_WIDTH + COLUMN_WIDTH * num_columns, 0.7 + ROW_HEIGHT * num_rows)
    return figure_of("grid", scope.world, "Attack by method", alt, block, size, paint)


def _colour(cell: Cell) -> str | None:
    """Of the worst outcome in a cell, None for an empty one."""
    return next((COLOUR_OF[word] for word in OUTCOMES if word in cell.ours[0].text), None)
