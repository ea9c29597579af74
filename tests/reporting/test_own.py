"""One's own audits: first in a report, in no table of a paper."""

from __future__ import annotations

import made_up

from nonmember.reports.core.explorer import is_own, table_of_own
from nonmember.reports.render.markdown import cell_text
from nonmember.results.load import Run


def run(**given):
    return Run(made_up.result(**given), f"audits/{given.get('cell', 'x')}/result.json", "0" * 64)


def test_what_is_ones_own():
    sweeps = {"table2"}
    assert is_own(run(world="own", sweep="audits"), sweeps)
    assert not is_own(run(world="own", sweep="table2"), sweeps)
    assert not is_own(run(world="micro", sweep="audits"), sweeps)


def test_a_row_per_audit_with_p_and_verdict_first():
    found = table_of_own(
        [
            run(world="own", corpus="docs", target="model", cell="one"),
            run(world="own", corpus="docs", target="model", cell="two", p_value=0.5, verdict="inconclusive"),
            run(world="own", corpus="docs", target="model", method="llm_di", ci_low=None, ci_high=None, statistic=2.5),
        ]
    )
    assert [row.name for row in found.rows] == ["docs under model (one)", "docs under model (two)", "docs under model"]
    assert [cell_text(cell) for cell in found.rows[2].cells[:4]] == ["1.0e-4", "not used", "median t +2.500", "–"]
    assert table_of_own([]) is None
