"""A report as its tests read it: sections by key, a block of a section, what stands in a cell."""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from nonmember.cli import report as entry
from nonmember.reports.render.markdown import cell_text
from nonmember.results.load import Run


def runs_of(*results):
    return [Run(result, f"audits/{index}/result.json", "0" * 64) for index, result in enumerate(results)]


def built(paper, *results):
    """Sections by key."""
    return {section.key: section for section in paper.build(runs_of(*results)).sections}


def call(place, *overrides):
    """The entry itself, as the command line calls it in that folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setattr(sys, "argv", ["nonmember", *overrides])
        entry.main()


def block(section, key):
    (found,) = [item for item in section.blocks if item.key == key]
    return found


def cell(found, row, column):
    (cells,) = [item.cells for item in found.rows if item.name == row]
    return cells[found.columns.index(column)]


def text(found, row, column):
    return cell_text(cell(found, row, column))


def check_written(folder, *expected):
    """The manifest of a report's folder, which holds the expected files: it lists all, each result is used, pictures
    are sound XML, and every link of the page leads somewhere."""
    listing = json.loads((folder / "manifest.json").read_text())
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert found == listing["files"]
    assert {"report.html", "report.md", *expected} <= set(found)
    assert all(item["used_in"] for item in listing["results"])
    for path in folder.glob("figures/*.svg"):
        picture = path.read_text()
        ElementTree.fromstring(picture.replace("xlink:href", "href"))
        assert "mathdefault" not in picture, "a label that no reader can read"
    html = (folder / "report.html").read_text()
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    for target in re.findall(r'href="#([^"]+)"', html):
        anchor, _, query = target.partition("?only=")
        assert anchor in ids
        assert not query or set(query.split(",")) <= set(ids)
    return listing
