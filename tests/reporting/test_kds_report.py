"""The report of KDS: correlations of the right scores, only inside one recipe, what must be said, published numbers."""

from __future__ import annotations

import numpy as np
import pytest
from made_up_kds import ABLATIONS, BASELINES, SHARES, UNREAD, kds, series
from reading import block, built, cell, runs_of, text
from scipy import stats

from nonmember.reports.core import formats
from nonmember.reports.core.grid import PUBLISHED
from nonmember.reports.core.published import PAPERS, published_tables
from nonmember.reports.core.published import number as value_of
from nonmember.reports.render.markdown import cell_text
from nonmember.stats.contamination import consistency, level_correlation

DASH = formats.DASH
POSTER = published_tables(PAPERS / "kds" / "published.txt")
RATES = (0, 0.25, 0.5, 1)
SCORES = np.array([[-1.0, -0.8, -0.9, -0.5], [-0.9, -0.7, -0.75, -0.6], [-1.2, -0.9, -0.6, -0.7]])


def values(found, row, column):
    return [item.value for item in cell(found, row, column).ours]


# ------------------------------------------------------------------------------------------ right cells


def test_correlations_of_the_mean_and_of_each_draw(kds_paper):
    section = built(kds_paper, *series(SCORES, RATES))["table2"]
    mean = SCORES.mean(axis=0)
    expected = [stats.spearmanr(RATES, mean).statistic, stats.pearsonr(RATES, mean).statistic]
    found = block(section, "table2-micro")
    assert values(found, "KDS", "scipy") == pytest.approx(expected)
    assert text(found, "KDS", "sympy") == DASH
    assert len(cell(found, "KDS", "scipy").ours[0].runs) == 12
    each = [
        [stats.spearmanr(RATES, row).statistic for row in SCORES],
        [stats.pearsonr(RATES, row).statistic for row in SCORES],
    ]
    expected = [value for item in each for value in (np.mean(item), np.std(item, ddof=1))]
    assert values(block(section, "table2-draws-micro"), "KDS", "scipy") == pytest.approx(expected)
    assert "3 draws of 4 levels, 100 documents a set." in found.notes
    assert "Target: read the seen pool 12 times." in found.notes


@pytest.mark.slow
def test_scores_stand_as_the_poster_prints_them_with_the_order_test_where_it_was_run(kds_paper):
    found = block(built(kds_paper, *series(SCORES, RATES))["table2"], "table2-micro")
    printed = [name for name in POSTER["table1"].rows if name != "SRCT"]
    assert [row.name for row in found.rows] == printed
    with_order = [kds(c, details={"order_t": c}) for c in RATES]
    assert text(block(built(kds_paper, *with_order)["table2"], "table2-micro"), "SRCT", "scipy") == "1.000 / 1.000"


def test_simple_scores_are_read_from_where_they_stand(kds_paper):
    def told(c, slope):
        return dict.fromkeys(BASELINES, 0.0) | {"mink(0.2)": slope * c}

    results = [kds(c, baselines=told(c, -1), fsd=told(c, 2)) for c in RATES]
    found = block(built(kds_paper, *results)["table2"], "table2-micro")
    assert text(found, "Min-K%", "scipy") == "−1.000 / −1.000"
    assert text(found, "Min-K% + FSD", "scipy") == "1.000 / 1.000"
    assert text(found, "zlib", "scipy") == DASH, "it does not vary"
    assert "Falls as c rises: Min-K% on scipy." in found.notes


def test_averages_are_over_what_there_is_and_say_so(kds_paper):
    rising = list(series([[-3, -2, -1]], (0, 0.5, 1)))
    falling = [kds(c, 0, -c, baselines={}, fsd={}, data={"domain": "torch"}) for c in (0, 0.5, 1)]
    found = block(built(kds_paper, *rising, *falling)["table2"], "table2-micro")
    assert text(found, "KDS", "average") == "0.000 / 0.000"
    assert cell(found, "KDS", "average").ours[0].note == "mean of 2 sets"
    both = [
        kds(c, 0, -c, baselines={"zlib": c}, fsd={}, data={"domain": domain})
        for c in (0, 1)
        for domain in ("scipy", "torch")
    ]
    more = [kds(c, 0, -c, baselines={"zlib": c, "perplexity": -c}, fsd={}, data={"domain": "sympy"}) for c in (0, 1)]
    found = block(built(kds_paper, *both, *more)["table2"], "table2-micro")
    assert (
        "The average is over the 3 sets with a number; fewer: perplexity 1, which do not compare with the others."
        in found.notes
    )
    assert text(found, "perplexity", "average") == "−1.000 / −1.000"


# ------------------------------------------------------------------------------- only what compares


@pytest.mark.slow
@pytest.mark.parametrize(
    "odd", [{"settings": {"training": {"optimization": {"learning_rate": 0.01}}}}, {"data": {"num_documents": 50}}]
)
def test_no_score_of_another_recipe_or_size_is_mixed_in(kds_paper, odd):
    alone = built(kds_paper, *series(SCORES, RATES))["table2"]
    mixed = built(kds_paper, *series(-SCORES[:1], RATES, **odd), *series(SCORES, RATES))["table2"]
    for key in ("table2-micro", "table2-draws-micro"):
        assert values(block(mixed, key), "KDS", "scipy") == values(block(alone, key), "KDS", "scipy")
    notes = " ".join(block(mixed, "table2-micro").notes)
    assert "4 of 16 results are left out" in notes


@pytest.mark.slow
def test_unfinished_sweeps_show_the_largest_complete_part(kds_paper):
    results = list(series(SCORES, RATES))
    missing_one = [item for item in results if (item.question.data["rate"], item.question.data["draw"]) != (1, 2)]
    found = block(built(kds_paper, *missing_one)["table2"], "table2-micro")
    expected = level_correlation(RATES[:3], SCORES[:, :3])
    assert values(found, "KDS", "scipy") == pytest.approx([expected.spearman, expected.pearson])
    hardly_begun = [item for item in results if item.question.data["draw"] == 0 or item.question.data["rate"] == 0]
    found = block(built(kds_paper, *hardly_begun)["table2"], "table2-micro")
    expected = level_correlation(RATES, SCORES[:1])
    assert values(found, "KDS", "scipy") == pytest.approx([expected.spearman, expected.pearson])
    one_level = built(kds_paper, *(kds(0.5, draw) for draw in range(3)))
    assert all(item.world == PUBLISHED for item in one_level["table2"].blocks)


def test_an_invalid_score_is_left_out_and_its_baselines_are_not(kds_paper):
    results = [kds(c, draw, c + draw, baselines={"zlib": c * c}, fsd={}) for c in RATES for draw in (0, 1)]
    results[-1] = kds(1, 1, -1e-9, baselines={"zlib": 1}, fsd={}, verdict="invalid")
    found = block(built(kds_paper, *results)["table2"], "table2-micro")
    assert cell(found, "KDS", "scipy").ours[0].note == "2 draws of 3 levels"
    assert cell(found, "zlib", "scipy").ours[0].note == "2 draws of 4 levels"


def test_sets_with_older_members_stand_apart(kds_paper):
    results = [
        kds(c, 0, c, world="pythia", target="pythia-6.9b", data={"domain": domain})
        for c in RATES
        for domain in ("wikimia", "enron")
    ]
    sections = built(kds_paper, *results)
    first, second = block(sections["table1"], "table1-pythia"), block(sections["table2"], "table2-pythia")
    assert first.columns == POSTER["table1"].columns
    assert second.columns == POSTER["table2"].columns
    assert text(first, "KDS", "WikiMIA") == text(second, "KDS", "Enron") == "1.000 / 1.000"
    assert text(first, "KDS", "BookMIA") == DASH
    both = [
        kds(c, 0, slope * c, sweep, world="pythia", target=target, data={"domain": "enron"})
        for c in RATES
        for sweep, target, slope in (("kds_main", "pythia-6.9b", 1), ("kds_scripts", "Mistral-7B-Instruct-v0.2", -1))
    ]
    section = built(kds_paper, *both)["table2"]
    for target, printed in (("pythia-6.9b", "1.000 / 1.000"), ("Mistral-7B-Instruct-v0.2", "−1.000 / −1.000")):
        assert text(block(section, f"table2-{target}-pythia"), "KDS", "Enron") == printed


# ------------------------------------------------------------------- consistency, ablation, control


@pytest.mark.slow
def test_rise_and_smallest_gap(kds_paper):
    section = built(kds_paper, *series(SCORES, RATES))["consistency"]
    expected = consistency(RATES, SCORES, alpha=0.05)
    found = block(section, "consistency-gaps-micro")
    rise, gap = values(found, "KDS", "scipy")
    assert rise == pytest.approx((expected.mean[-1] - expected.mean[0]) / expected.pooled_sd)
    assert gap == pytest.approx(expected.smallest_gap)
    falls = built(kds_paper, *series(-SCORES, RATES))["consistency"]
    assert text(block(falls, "consistency-gaps-micro"), "KDS", "scipy").endswith("/ none")
    spread = block(section, "consistency-spread-micro")
    at_half = SCORES[:, 2]
    expected = [at_half.mean(), at_half.std(ddof=1), at_half.std(ddof=1) / abs(at_half.mean())]
    assert values(spread, "0.5", "scipy") == pytest.approx(expected)
    assert "Highest before the end: scipy at c = 0." in block(falls, "consistency-spread-micro").notes
    assert not any(note.startswith("Highest") for note in spread.notes)


def test_ablations_are_named_by_what_differs(kds_paper):
    names = (
        "as it is",
        "the bandwidth of the kernel before for both",
        "gamma 1 for both",
        "hidden state 1",
        "hidden state −2",
        "one step over all documents",
        "4 epochs",
        "dropout in the second pass",
    )
    results = [
        kds(c, draw, -c if settings else c, "kds_ablation", settings=settings)
        for settings in ABLATIONS
        for c in SHARES
        for draw in range(2 if settings else 3)
    ]
    found = block(built(kds_paper, *results)["ablation"], "ablation-micro")
    assert found.rows[0].name == names[0]
    assert {row.name for row in found.rows} == set(names)
    rhos = [text(found, name, "scipy") for name in names]
    assert rhos == ["1.000 / 1.000", *["−1.000 / −1.000"] * 7]


def test_the_control_stands_apart_and_the_glance_counts(kds_paper):
    read = series(SCORES, RATES)
    neither = series(SCORES[:, ::-1], RATES, sweep="kds_control", target=UNREAD)
    document = kds_paper.build(runs_of(*read, *neither))
    control = {section.key: section for section in document.sections}["control"]
    assert "Target: read neither pool." in block(control, "control-micro").notes
    assert values(block(control, "control-micro"), "KDS", "scipy")[0] < 0
    (row,) = document.glance.rows
    assert [cell_text(item) for item in row.cells] == ["24", "1 of 1", "0 of 8", "1 of 1", "0 of 8", "0 of 1", "0 of 8"]


def test_the_target_that_read_stands_beside_its_control_with_what_no_tuning_touches_once(kds_paper):
    by_epochs = {times: {"training": {"optimization": {"epochs": times}}} for times in (1, 4)}
    results = [
        kds(c, 0, -c if target == UNREAD else c, "kds_epochs", target, details={"order_t": -c}, settings=settings)
        for target in ("target+12xA", UNREAD)
        for settings in by_epochs.values()
        for c in RATES
    ]
    found = block(built(kds_paper, *results)["epochs"], "epochs-micro")
    rows = {row.name: text(found, row.name, "scipy") for row in found.rows}
    assert rows["KDS, read the seen pool 12 times, four epochs"] == "1.000 / 1.000"
    assert rows["KDS, read neither pool, one epoch"] == "−1.000 / −1.000"
    assert rows["SRCT, read neither pool"] == "−1.000 / −1.000", "the order test, by the target alone"
    assert len(rows) == 8, "KDS by target and epochs, Min-K%++ and the order test by target"


def test_figures_show_means_ends_and_rises(kds_paper):
    results = [
        *series(SCORES, RATES, baselines={"zlib": -1.0}, fsd={}),
        *series(SCORES, RATES, sweep="kds_control", target=UNREAD),
    ]
    scores, rises = built(kds_paper, *results)["levels"].figures
    assert (scores.name, rises.name) == ("levels-s-micro", "levels-scores-micro")
    low, high = SCORES[:, 1].min(), SCORES[:, 1].max()
    expected = pytest.approx([SCORES[:, 1].mean(), low, high])
    assert values(scores.numbers, "scipy, read the seen pool 12 times", "0.25") == expected
    assert values(scores.numbers, "scipy, read neither pool", "0.25") == expected
    found = consistency(RATES, SCORES, alpha=0.05)
    expected = [(found.mean[-1] - found.mean[0]) / found.pooled_sd]
    assert values(rises.numbers, "scipy, KDS", "1") == pytest.approx(expected)
    assert values(rises.numbers, "scipy, KDS", "0") == [0]
    assert [row.name for row in rises.numbers.rows] == ["scipy, KDS", "scipy, zlib"]


# ------------------------------------------------------------------------------------------- published


@pytest.mark.parametrize("table", [POSTER["table1"], POSTER["table2"]])
def test_printed_averages_are_those_of_the_printed_cells_but_for_one_row(table):
    for row, cells in table.rows.items():
        for index, printed in enumerate(cells["average"]):
            there = [value_of(texts[index]) for column, texts in cells.items() if column != "average" and texts]
            agrees = sum(there) / len(there) == pytest.approx(value_of(printed), abs=0.0011)
            assert agrees != (table is POSTER["table1"] and row == "Min-K% + FSD"), row


# ------------------------------------------------------------------------------------------ the command
