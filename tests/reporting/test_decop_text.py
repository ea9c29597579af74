"""Table 3 of DE-COP, the methods that read text alone: which result stands where."""

from __future__ import annotations

import made_up
import pytest

from nonmember.reports.core.grid import INVALID
from nonmember.reports.core.worlds import Scope, World
from nonmember.reports.papers.decop.text import text_probes
from nonmember.results.load import Run

WORLD = World("micro", "Micro world", "", "", "target", "target+12xA", targets={"target+12xA": "read 12 times"})


def run_of(method, suspect, clean, p=0.5, target="target", domain="scipy", verdict="inconclusive", **settings):
    details = {"mean_suspect": suspect, "mean_heldout": clean}
    found = made_up.result(method=method, sweep="decop_table3", target=target, p_value=p, verdict=verdict,
                           data={"domain": domain}, details=details, settings=settings)  # fmt: skip
    return Run(found, f"{method}-{settings}-{target}-{domain}", "")


@pytest.fixture
def block():
    runs = (
        run_of("prefix_completion", 0.02, 0.0, p=0.03, k=32),
        run_of("prefix_completion", 0.01, 0.0, k=50),
        run_of("name_cloze", 0.3, 0.1, p=0.001, with_title=False),
        run_of("name_cloze", 0.4, 0.2, with_title=True),
        run_of("name_cloze", 0.0, 0.0, with_title=False, target="target+12xA", verdict="invalid"),
        run_of("prefix_completion", 0.05, 0.04, k=32, domain="sympy"),
        run_of("prism", 0.9, 0.9),
    )
    scope = Scope(WORLD, runs, {"table3": ["decop_table3"]}, {})
    (found,) = text_probes(scope).blocks
    return found


def shown(block, row, column):
    (cells,) = [one.cells for one in block.rows if one.name == row]
    return [number.text for number in cells[block.columns.index(column)].ours]


def test_each_result_stands_in_its_place(block):
    assert block.columns == ("read 12 times", "target")
    assert [row.name for row in block.rows][:2] == ["Completion (32), scipy", "Completion (32), sympy"]
    assert shown(block, "Completion (32), scipy", "target") == ["0.020", "0.000", "0.030"]
    assert shown(block, "Completion (32), sympy", "target")[:2] == ["0.050", "0.040"]
    assert shown(block, "Completion (50), scipy", "target")[0] == "0.010"
    assert shown(block, "Name cloze, scipy", "target")[:2] == ["0.300", "0.100"]
    assert shown(block, "Name cloze with the title, scipy", "target")[:2] == ["0.400", "0.200"]
    assert shown(block, "Completion (50), scipy", "read 12 times")[0] == "–"


def test_an_invalid_result_is_marked(block):
    (cells,) = [one.cells for one in block.rows if one.name == "Name cloze, scipy"]
    assert [number.mark for number in cells[0].ours] == ["", "", INVALID]
    assert [number.mark for number in cells[1].ours] == ["", "", ""]


def test_nothing_to_show_is_no_table():
    assert not text_probes(Scope(WORLD, (), {"table3": ["decop_table3"]}, {})).blocks
