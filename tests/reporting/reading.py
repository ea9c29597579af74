"""A report as its tests read it: sections by key, a block of a section, what stands in a cell."""

from __future__ import annotations

from nonmember.reports.render.markdown import cell_text
from nonmember.results.load import Run


def runs_of(*results):
    return [Run(result, f"audits/{index}/result.json", "0" * 64) for index, result in enumerate(results)]


def built(paper, *results):
    """Sections by key."""
    return {section.key: section for section in paper.build(runs_of(*results)).sections}


def block(section, key):
    (found,) = [item for item in section.blocks if item.key == key]
    return found


def cell(found, row, column):
    (cells,) = [item.cells for item in found.rows if item.name == row]
    return cells[found.columns.index(column)]


def text(found, row, column):
    return cell_text(cell(found, row, column))
