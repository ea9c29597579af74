"""The report of the order test: right cells, marks against the truth, uniformity, cost, and what was published."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_up_order import order
from reading import block, built, cell, text
from scipy import stats

from nonmember.reports.core import formats
from nonmember.reports.core.grid import FALSE, INVALID, MISSED
from nonmember.reports.core.published import PAPERS, published_tables
from nonmember.reports.render.markdown import cell_text
from nonmember.results.load import Run
from nonmember.stats.multiplicity import holm

DASH = formats.DASH


def test_p_and_t_by_duplication_with_marks_against_the_truth(order_paper):
    results = [
        order(duplication=0, p_value=0.01),
        order(duplication=1, p_value=0.3),
        order(4.2, duplication=10),
        order(duplication=4, draw=1, p_value=1.0, verdict="invalid"),
    ]
    section = built(order_paper, *results)["duplication"]
    found = block(section, "duplication-micro")
    assert found.columns == ("0", "1", "4", "10")
    p = stats.t.sf(4.2, 49)
    adjusted = [formats.p_value(value) for value in holm([0.01, 0.3, p, 1.0])]
    assert text(found, "scipy, draw 0", "0") == f"0.010{FALSE} \\[Holm {adjusted[0]}\\]"
    assert text(found, "scipy, draw 0", "1") == f"0.300{MISSED} \\[Holm {adjusted[1]}\\]"
    assert text(found, "scipy, draw 0", "10") == f"{formats.p_value(p)} \\[Holm {adjusted[2]}\\]"
    assert text(found, "scipy, draw 1", "4") == f"1.000{INVALID} \\[Holm 1.000\\]"
    assert text(found, "scipy, draw 1", "0") == text(found, "sympy, draw 0", "10") == DASH
    assert text(block(section, "duplication-t-micro"), "scipy, draw 0", "10") == "+4.20"
    assert "A test reads 637,500 tokens." in found.notes


def test_figures_show_the_median_over_draws(order_paper):
    draws = {0: (0.1, -0.4, 0.9), 10: (5.0, 9.0, 6.0)}
    results = [order(t, duplication=num, draw=draw) for num, ts in draws.items() for draw, t in enumerate(ts)]
    p, t = built(order_paper, *results)["duplication"].figures
    assert (p.name, t.name) == ("duplication-p-micro", "duplication-t-micro")
    assert text(t.numbers, "scipy", "10") == "+6.00 (+5.00 to +9.00)"
    assert cell(p.numbers, "scipy", "0").ours[0].value == pytest.approx(stats.t.sf(0.1, 49))
    assert [row.name for row in t.numbers.rows] == ["scipy"], "no line for a set without results"


def test_uniformity_where_nothing_was_read(order_paper):
    ps = [0.004, 0.02, 0.3, 0.41, 0.5, 0.77, 0.93]
    section = built(order_paper, *(order(0, "order_null", 0, draw, p_value=p) for draw, p in enumerate(ps)))["clean"]
    found = block(section, "clean-micro")
    told = [text(found, "scipy", column) for column in found.columns]
    uniform = stats.kstest(ps, "uniform").pvalue
    assert told == ["7", "2 of 7", "0.004", "0.410", formats.p_value(uniform)]
    (figure,) = section.figures
    assert text(figure.numbers, "draw 3", "scipy") == "0.410"


def test_shards_orders_and_what_they_cost(order_paper):
    results = [
        order(t, "order_shards", 4, 0, shards, orders)
        for t, shards, orders in ((2.0, 10, 5), (3.0, 50, 5), (4.0, 50, 250))
    ]
    section = built(order_paper, *results)["shards"]
    t, cost = block(section, "shards-t-micro"), block(section, "shards-cost-micro")
    assert text(t, "scipy, 50 shards", "250 orders") == "+4.00"
    assert text(t, "scipy, 10 shards", "5 orders") == "+2.00"
    assert text(t, "scipy, 10 shards", "250 orders") == DASH
    assert text(cost, "scipy, 50 shards", "250 orders") == "3,137,500 (× 251.0)"
    assert cell(block(section, "shards-micro"), "scipy, 10 shards", "5 orders").ours[0].value == pytest.approx(
        stats.t.sf(2.0, 9)
    )


def test_chunks_from_single_lines_to_the_whole_file(order_paper):
    results = [
        order(t, "order_chunks", 10, draw, chunk=chunk)
        for chunk, ts in ((None, (5.0, 6.0, 9.0)), (1, (0.1, 0.2, 0.3)), (6, (2.0, 3.0, 1.0)))
        for draw, t in enumerate(ts)
    ]
    found = block(built(order_paper, *results)["chunks"], "chunks-t-micro")
    assert found.columns == ("1 example", "6 examples", "whole file")
    assert text(found, "scipy", "whole file") == "+6.00 (+5.00 to +9.00)"
    assert text(found, "scipy", "1 example") == "+0.20 (+0.10 to +0.30)"


def test_the_glance_counts_files_found(order_paper):
    results = [
        order(0.1, duplication=0),
        order(3, duplication=0),
        order(1, duplication=1),
        order(3, duplication=2),
        order(8, duplication=50),
        order(8, "order_chunks", 10, chunk=1),
    ]
    unknown = replace(results[1].question, truth=None)  # a text that begins as a line of the file does was read
    results[1] = replace(results[1], question=unknown)
    runs = [Run(item, f"audits/{index}/result.json", "0" * 64) for index, item in enumerate(results)]
    (row,) = order_paper.build(runs).glance.rows
    assert [cell_text(item) for item in row.cells] == ["6", "1 of 2", "1 of 1", "1 of 2", "1 of 1"]


def test_published_numbers(order_paper):
    assert published_tables(PAPERS / "order" / "published.txt")["duplication"].get("MNLI", "p") == ("1.96e-11",)
    found = block(built(order_paper, order())["duplication"], "duplication-published")
    assert text(found, "HellaSwag", "p") == "0.478"
    assert [cell(found, row.name, "duplication").ours[0].value for row in found.rows] == [1, 1, 10, 50, 100]
