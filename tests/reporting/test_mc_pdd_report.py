"""The report of MC-PDD: right cells, marks by the kind of reference, sizes, figures, and what was published."""

from __future__ import annotations

import made_up
import pytest
from made_up_mc_pdd import contaminated, everything, mc_pdd, rivals
from reading import block, built, runs_of

from nonmember.reports.core import formats
from nonmember.reports.core.grid import FALSE, INVALID, MISSED, PUBLISHED
from nonmember.reports.core.published import PAPERS, published_tables
from nonmember.reports.render.markdown import cell_text
from nonmember.stats.multiplicity import holm

DASH, MINUS = formats.DASH, formats.MINUS


def row(found, name):
    (cells,) = [item.cells for item in found.rows if item.name == name]
    return [cell_text(cell) for cell in cells]


def test_rates_difference_and_p_of_each_target(mc_pdd_paper):
    section = built(mc_pdd_paper, mc_pdd(p=0.003), mc_pdd(0.36, p=0.2, target="chat", truth="non_member"))["models"]
    found = block(section, "models-micro")
    adjusted = [formats.p_value(value) for value in holm([0.2, 0.003])]
    assert row(found, "scipy, read the suspect set 12 times") == [
        "35.00",
        "50.00",
        f"{MINUS}15.00",
        f"0.003 \\[Holm {adjusted[1]}\\]",
        f"{MINUS}10.00",
        "0.400",
    ]
    assert row(found, "scipy, read neither corpus")[3] == f"0.200 \\[Holm {adjusted[0]}\\]"
    assert any("0 false" in note and "0 missed" in note for note in found.notes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("against", "truth", "p", "mark"),
    [
        ("non_member", "member", 0.3, MISSED),
        ("non_member", "non_member", 0.01, FALSE),
        ("member", "non_member", 0.3, MISSED),
        ("member", "member", 0.01, FALSE),
        ("member", "non_member", 0.01, ""),
        ("non_member", "member", 0.01, ""),
    ],
)
def test_marks_follow_the_kind_of_reference(mc_pdd_paper, against, truth, p, mark):
    found = block(built(mc_pdd_paper, mc_pdd(against=against, truth=truth, p=p))["models"], "models-micro")
    (told,) = [cells for name, *cells in [(item.name, *item.cells) for item in found.rows]]
    assert told[3].ours[0].mark == mark


def test_invalid_results_and_unreadable_answers_are_said(mc_pdd_paper):
    section = built(mc_pdd_paper, mc_pdd(verdict="invalid", valid=0.1, p=0.6))["models"]
    found = block(section, "models-micro")
    assert found.rows[0].cells[3].ours[0].mark == INVALID
    assert (
        "Answers that are a list of words: at least 10% of the suspect set, 10% of the reference corpus." in found.notes
    )


def test_words_masks_and_names_are_rows_in_order(mc_pdd_paper):
    sections = built(mc_pdd_paper, *everything())
    assert [item.name for item in block(sections["words"], "words-micro").rows][:6] == [
        f"scipy, {strategy}, {number}" for strategy in ("max", "random") for number in (1, 3, 5)
    ]
    assert [item.name for item in block(sections["masks"], "masks-micro").rows][:3] == [
        "scipy, 1 word",
        "scipy, 2 words",
        "scipy, 3 words",
    ]
    names = [item.name for item in block(sections["names"], "names-micro").rows]
    assert names[:2] == ["scipy, without the name", "scipy, with the name"]


@pytest.mark.slow
def test_sizes_of_resamples_and_of_corpora(mc_pdd_paper):
    section = built(mc_pdd_paper, *everything())["sizes"]
    assert row(block(section, "resamples-subset-micro"), "scipy, read the suspect set 12 times")[0] == "0.012"
    assert row(block(section, "resamples-upper-micro"), "scipy, read neither corpus")[3] == "+0.062"
    assert [item.name for item in block(section, "sizes-micro").rows][:2] == [
        "scipy, 50 documents",
        "scipy, 150 documents",
    ]
    difference, log_p = section.figures
    assert (
        row(difference.numbers, "scipy, read the suspect set 12 times")[0] == f"{MINUS}15.00 \\[{MINUS}33.00, +3.00\\]"
    )
    assert log_p.numbers.columns == ("50", "75", "100", "125")
    assert row(log_p.numbers, "scipy, read the suspect set 12 times") == ["0.006", "0.004", "0.003", "0.002"]


def test_hit_rates_by_arm_are_drawn(mc_pdd_paper):
    (figure,) = built(mc_pdd_paper, *everything())["models"].figures
    assert row(figure.numbers, "scipy, suspect") == ["50.00", "36.00"]
    assert row(figure.numbers, "sympy, reference, random words") == ["59.00", "59.00"]


@pytest.mark.slow
def test_contamination_by_epochs(mc_pdd_paper):
    section = built(mc_pdd_paper, *everything())["contamination"]
    (figure,) = section.figures
    assert row(figure.numbers, "scipy, tuned on") == ["50.00", "48.00", "46.00", "44.00", "42.00", "40.00"]
    assert row(figure.numbers, "scipy, clean")[0] == "30.00"
    assert [item.name for item in block(section, "contamination-micro").rows][:2] == [
        "scipy, read before, 0 epochs",
        "scipy, read before, 1 epoch",
    ]
    (only,) = block(
        built(mc_pdd_paper, contaminated(0.5, 0.3, "unread_1", 3))["contamination"], "contamination-micro"
    ).rows
    assert only.name == "scipy, tuned on, 3 epochs"


def test_rivals_over_groups_and_documents(mc_pdd_paper):
    found = block(built(mc_pdd_paper, rivals())["rivals"], "rivals-micro")
    assert row(found, "scipy, MC-PDD") == ["0.900", "0.050", "0.850", "0.600", "0.580"]
    assert [item.name for item in found.rows] == [f"scipy, {name}" for name in ("MC-PDD", "PPL", "Zlib", "Min-K%++")]
    found = block(built(mc_pdd_paper, rivals())["rivals"], "rivals-sets-micro")
    assert row(found, "scipy") == ["4", "6", "0.750", "0.550", "0 of 1"]


def test_the_column_of_wikimia_and_no_levels_of_other_studies(mc_pdd_paper):
    levels = {"method": "levels", "world": "pythia", "verdict": "score_only", "target": "Llama-3.1-8B-Instruct"}
    given = {**levels, "data": {"domain": "wikimia"}, "details": {"auc": {"loss": 0.54, "mink(0.2)": 0.55}}}
    found = [made_up.result(**given, sweep=sweep) for sweep in ("mc_pdd_wikimia", "arena")]
    document = mc_pdd_paper.build(runs_of(*found))
    assert [cell_text(cells.cells[0]) for cells in document.glance.rows] == ["1"]
    (rivals,) = [section for section in document.sections if section.key == "rivals"]
    table = block(rivals, "wikimia-pythia")
    assert (table.columns, row(table, "PPL"), row(table, "Min-K%")) == (("WikiMIA",), ["0.540"], ["0.550"])


def test_uniformity_where_nothing_was_read(mc_pdd_paper):
    ps = (0.01, 0.2, 0.5, 0.9)
    results = [mc_pdd(sweep="mc_pdd_null", p=p, candidate="unread_1", seed=seed) for seed, p in enumerate(ps)]
    found = block(built(mc_pdd_paper, *results)["null"], "null-micro")
    told = row(found, "scipy")
    assert told[:3] == ["4", "1 of 4", "0 of 4"]
    assert told[3] == "0.350 (0.010 to 0.900)"


def test_the_glance(mc_pdd_paper):
    results = [
        mc_pdd(p=0.01),
        mc_pdd(p=0.3),
        mc_pdd(p=0.5, truth="non_member"),
        mc_pdd(verdict="invalid"),
        mc_pdd(sweep="mc_pdd_null", p=0.5),
    ]
    (told,) = mc_pdd_paper.build(runs_of(*results)).glance.rows
    assert [cell_text(item) for item in told.cells] == ["5", "1 of 3", "0 of 1", "0 of 1", "1 of 4"]


def test_published_numbers_stand_in_their_sections(mc_pdd_paper):
    """docs/methods/mc_pdd.md: spot checks of every table, and the sums they must fit."""
    sections = built(mc_pdd_paper, mc_pdd())
    published = {
        name: item
        for section in sections.values()
        for item in section.blocks
        if item.world == PUBLISHED
        for name in [item.key]
    }
    keys = ("models", "sizes-p", "sizes-upper", "news", "arxiv", "years", "names", "masks", "rivals-3", "rivals-7")
    assert set(published) == {f"{key}-published" for key in keys}
    assert row(published["models-published"], "Llama-3.1-8B-Instruct") == [
        "36.26",
        "48.50",
        f"{MINUS}12.24",
        "0.0001",
        f"{MINUS}7",
    ]
    known = published_tables(PAPERS / "mc_pdd" / "published.txt")
    for table in (known["models"], known["names"], known["masks"]):
        for name in table.rows:
            less, more, difference = (float(table.get(name, column)[0]) for column in table.columns[:3])
            assert difference == pytest.approx(less - more, abs=0.011), name
    assert known["sizes-p"].get("Llama-3-70B", "250") == ("0.0009",)
    assert len(known["arxiv"].rows) == 12
    assert known["years"].get("2021-03", "p") == ("0.1497",)
