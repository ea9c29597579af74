"""How numbers are printed, adjusted and summarised; and what the paper printed."""

from __future__ import annotations

import math

import made_up
import pytest

from nonmember.reports.core import formats, published
from nonmember.reports.core.grid import FALSE, INVALID, MISSED
from nonmember.reports.core.numbers import P_VALUE, number, p_number
from nonmember.reports.core.published import PAPERS, published_tables
from nonmember.reports.core.worlds import select
from nonmember.results.load import Run


def run_of(path="audits/table2/x/result.json", **given):
    return Run(made_up.result(**given), path, "0" * 64)


# ---------------------------------------------------------------------------------------------- formats


@pytest.mark.parametrize(
    ("p", "printed"),
    [(1, "1.000"), (0.3536, "0.354"), (0.001, "0.001"), (9.999e-5, "1.0e-4"), (1.7e-24, "1.7e-24"), (0.0, "0.000")],
)
def test_p_values_are_printed_as_in_the_paper(p, printed):
    assert formats.p_value(p) == printed


@pytest.mark.parametrize(
    ("p", "printed"), [(0.0498, "0.0498"), (0.05, "0.050"), (0.05004, "0.05004"), (0.0494, "0.049"), (2e-4, "2.0e-4")]
)
def test_a_p_value_that_just_misses_alpha_does_not_look_equal_to_it(p, printed):
    assert formats.p_value(p, 0.05) == printed
    assert p_number([run_of(p_value=p)], "micro").text == printed


@pytest.mark.parametrize("form", [formats.decimals, formats.p_value, formats.count])
@pytest.mark.parametrize("nothing", [None, math.nan, math.inf])
def test_a_missing_number_is_a_dash_and_zero_is_not(form, nothing):
    assert form(nothing) == formats.DASH
    assert form(0.0) != formats.DASH


def test_zero_has_no_sign():
    assert formats.decimals(0.0) == "0.000"
    assert formats.decimals(-1e-9, signed=True) == "0.000"
    assert formats.decimals(-0.0218) == "−0.022"
    assert formats.interval(-0.08, 0.121) == "[−0.080, +0.121]"
    assert formats.interval(None, 0.121) == formats.DASH


# --------------------------------------------------------------------------------------------- published

PRISM = published_tables(PAPERS / "prism" / "published.txt")


def test_published_tables_hang_together():
    """A copying error would break what the numbers must satisfy among themselves."""
    for _, _, (untouched, trained, difference) in PRISM["table7"].cells():
        assert float(untouched) - float(trained) == pytest.approx(float(difference), abs=0.0101)
    for table in (PRISM["table8"], PRISM["table9"]):
        for row, column, (item, other, low, high) in table.cells():
            assert float(low) < float(item) - float(other) < float(high)
            p = published.number(PRISM["table2"].get(row, column)[0])
            assert (p < 0.025) == (float(low) > 0), (row, column)
    for name in PRISM.keys() - {"table1", "table6", "table7", "table8", "table9"}:
        assert all(0 <= published.number(text) <= 1 for *_, texts in PRISM[name].cells() for text in texts), name


# ---------------------------------------------------------------------------------------- several results


def test_one_result_is_itself_and_several_are_a_median_that_says_so():
    runs = [run_of(f"{seed}.json", seed=seed, p_value=p) for seed, p in enumerate((0.2, 0.01, 0.4))]
    item = p_number(runs[:1], "micro")
    assert (item.text, item.runs, item.note) == ("0.200", (runs[0].anchor,), "")
    several = p_number(runs, "micro")
    assert several.value == 0.2
    assert several.note == "median of 3 results from 0.01 to 0.4 (seed 0, 1, 2)"
    assert len(several.runs) == 3


def test_undefined_values_are_told():
    runs = [run_of("a.json", p_value=None), run_of("b.json", p_value=0.3)]
    assert p_number(runs, "micro").note == "undefined in 1 further"
    nothing = p_number(runs[:1], "micro")
    assert (nothing.text, nothing.value, nothing.note) == (formats.DASH, None, "undefined in 1 result")
    assert number([], "micro", P_VALUE).note == ""


@pytest.mark.parametrize(
    ("method", "truth", "p", "mark"),
    [
        ("prism", "member", 0.01, FALSE),
        ("prism", "member", 0.5, ""),
        ("prism", "non_member", 0.01, ""),
        ("prism", "non_member", 0.5, MISSED),
        ("llm_di", "non_member", 0.01, FALSE),
        ("llm_di", "member", 0.5, MISSED),
        ("llm_di", "member", 0.01, ""),
        ("prism", None, 0.5, ""),
        ("blind", "member", 0.01, ""),
    ],
)
def test_marks_follow_truth_and_direction(method, truth, p, mark):
    assert p_number([run_of(method=method, truth=truth, p_value=p)], "micro").mark == mark


def test_an_invalid_result_is_marked():
    assert p_number([run_of(verdict="invalid", p_value=0.5)], "micro").mark == INVALID


def test_runs_are_found_by_fields_data_and_settings():
    item = run_of(data={"half": "b1", "draw": 2}, settings={"distillation": {"tau": 4.0}})
    assert select([item], half="b1", draw=2, distillation__tau=4.0, method=("prism", "llm_di"), domain="scipy") == [
        item
    ]
    assert select([item], half="a") == []
    assert select([item], score__kind="Loss") == []
