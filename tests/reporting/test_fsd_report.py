"""FSD's report: the right number in the right cell, what must be said beside it, and the published numbers."""

from __future__ import annotations

import pytest
from made_up_fsd import READ, UNREAD, everything, fsd, one_score
from reading import block, built, text

from nonmember.reports.core import formats
from nonmember.reports.core.grid import DOUBTED, FALSE, INVALID, PUBLISHED
from nonmember.reports.core.published import PAPERS, published_tables
from nonmember.reports.core.published import number as value_of
from nonmember.reports.render.markdown import cell_text
from nonmember.results.load import Run

DASH = formats.DASH
KNOWN = published_tables(PAPERS / "fsd" / "published.txt")


# ------------------------------------------------------------------------------------------ right cells


def test_base_and_fsd_stand_side_by_side_with_text_alone_below(fsd_paper):
    control = fsd(target=UNREAD, scores=one_score(0.51, 0.58))
    table = built(fsd_paper, fsd(scores=one_score(0.61, 0.84)), control)["table1"]
    found = block(table, "table1-micro")
    assert found.quantities == ("base", "FSD")
    assert text(found, "scipy, ppl", "read members 12 times") == "0.610 / 0.840"
    assert text(found, "scipy, ppl", "base model") == f"0.510 / 0.580{FALSE}", "its interval begins above .5"
    assert text(found, "scipy, blind (text alone)", "base model") == "0.530"
    assert text(found, "scipy, ppl", "read members 2 times") == DASH
    assert text(found, "torch, ppl", "read members 12 times") == DASH
    assert "Read neither set, so that every AUC should be .5: base model." in found.notes
    assert any(note.startswith("Missing: 14 of 18 cells (scipy, ppl: read members 2 times; ") for note in found.notes)
    gain = block(table, "table1-gain-micro")
    assert text(gain, "scipy, ppl", "read members 12 times") == "+0.230 \\[+0.190, +0.270\\]"
    (row,) = [row for row in found.rows if row.name == "scipy, ppl"]
    assert row.cells[2].ours[1].note == "95% interval 0.790 to 0.890"


def test_tpr_by_both_conventions_and_accuracy_with_and_without_foresight(fsd_paper):
    sections = built(fsd_paper, fsd(scores=one_score(0.6, 0.8, tpr=0.3)))
    column = "read members 12 times"
    assert text(block(sections["table12"], "table12-tpr-below-5pct-fpr-micro"), "scipy, ppl", column) == "0.290 / 0.290"
    assert text(block(sections["table12"], "table12-tpr-at-5pct-fpr-micro"), "scipy, ppl", column) == "0.300 / 0.300"
    honest = block(sections["table4"], "table4-balanced-accuracy-micro")
    assert text(honest, "scipy, ppl", column) == "0.580 / 0.780"
    optimistic = block(sections["table4"], "table4-best-balanced-accuracy-micro")
    assert text(optimistic, "scipy, ppl", column) == "0.590 / 0.790"
    assert "optimistic" in optimistic.title


def test_table_2_is_the_mean_of_table_15(fsd_paper):
    results = [
        fsd("fsd_pretraining", UNREAD, one_score(*aucs), data={"domain": domain, "read": "once"}, truth="member")
        for domain, aucs in {"scipy": (0.5, 0.6), "pandas": (0.6, 0.9)}.items()
    ]
    section = built(fsd_paper, *results)["table2"]
    assert text(block(section, "table15-micro"), "pandas", "ppl") == "0.600 / 0.900"
    assert text(block(section, "table15-micro"), "torch", "ppl") == DASH
    assert text(block(section, "table15-micro"), "scipy", "blind (text alone)") == "0.530"
    assert text(block(section, "table2-micro"), "ppl", "mean of 2 sets") == "0.550 / 0.750"


def test_table_15_has_the_papers_number_beside_the_papers_model_alone(fsd_paper):
    def result(target):
        data = {"domain": "bookcorpus2", "read": "once"}
        return fsd("fsd_main", target, one_score(0.5, 0.7), world="pythia", truth="member", data=data)

    for target, printed in (("pythia-6.9b", "0.500 / 0.700 (.528 / .885)"), ("pythia-2.8b", "0.500 / 0.700")):
        found = block(built(fsd_paper, result(target))["table2"], "table15-pythia")
        assert text(found, "BookC2", "ppl") == printed


def test_tables_3_and_13_want_targets_of_several_sizes(fsd_paper):
    item = fsd("fsd_target_size", capability={"target": {"num_parameters": 7e5}})
    larger = fsd("fsd_target_size", "micro_l", one_score(0.62, 0.71), capability={"target": {"num_parameters": 3e6}})
    alone = built(fsd_paper, item)["table3"]
    assert [found.world for found in alone.blocks] == [PUBLISHED]
    assert alone.notes == ("Micro world: no results for this table yet.",)
    assert alone.commands == ("make sweep SWEEP=fsd_target_size",)
    found = block(built(fsd_paper, item, larger)["table3"], "table3-micro")
    assert found.columns == ("read members 12 times (700,000)", "micro_l (3,000,000)")
    assert text(found, "scipy, ppl", "micro_l (3,000,000)") == "0.620 / 0.710"


@pytest.mark.parametrize(
    ("section", "sweep", "key", "column", "where"),
    [
        ("table5", "fsd_tuning_set", "table5-micro", "members", {"data": {"tuning": "members"}}),
        ("table5", "fsd_tuning_set", "table5-micro", "all", {"data": {"tuning": "both"}}),
        ("table7", "fsd_adapter", "table7-micro", "IA3", {"training": {"adapter": {"kind": "ia3"}}}),
        ("table16", "fsd_domain", "table16-micro", "tuned on torch", {"data": {"tuning_domain": "torch"}}),
        ("table17", "fsd_lr", "table17lr-micro", "rate 0.01", {"training": {"optimization": {"learning_rate": 0.01}}}),
        ("table17", "fsd_rank", "table17rank-micro", "rank 8", {"training": {"adapter": {"rank": 8}}}),
        ("table17", "fsd_epochs", "table17epochs-micro", "1 epoch", {"training": {"optimization": {"epochs": 1}}}),
    ],
)
def test_tables_of_settings_have_a_column_a_setting(fsd_paper, section, sweep, key, column, where):
    odd = fsd(sweep, scores=one_score(0.61, 0.77), **where)
    found = block(built(fsd_paper, odd)[section], key)
    assert text(found, "scipy, ppl", column) == "0.610 / 0.770"
    assert text(found, "scipy, blind (text alone)", column) == "0.530"
    assert text(found, "sympy, ppl", column) == DASH
    others = set(found.columns) - {column}
    assert {text(found, "scipy, ppl", other) for other in others} <= {DASH}


def test_tables_6_and_14_by_edit(fsd_paper):
    results = [
        fsd("years", scores=one_score(0.6, auc, tpr=auc / 2), settings={"view": view})
        for view, auc in (("original", 0.9), ("years_replaced", 0.7))
    ]
    section = built(fsd_paper, *results)["table6"]
    found = block(section, "table6-micro")
    assert [text(found, "scipy, ppl", column) for column in found.columns] == ["0.600 / 0.900", DASH, "0.600 / 0.700"]
    tpr = block(section, "table6-tpr-below-5pct-fpr-micro")
    assert text(tpr, "scipy, ppl", "Replacement") == "0.340 / 0.340"


def test_shift_and_membership_stand_in_one_row(fsd_paper):
    results = [
        fsd("fsd_shift", target, one_score(0.5, auc), data={"nonmember_domain": other})
        for target, other, auc in ((UNREAD, "torch", 0.85), (READ, "torch", 0.9), (READ, "scipy", 0.7))
    ]
    found = block(built(fsd_paper, *results)["shift"], "shift-micro")
    assert text(found, "scipy against torch, ppl", "base model") == f"0.500 / 0.850{FALSE}"
    assert text(found, "scipy against torch, ppl", "read members 12 times") == "0.500 / 0.900"
    assert text(found, "scipy against scipy, ppl", "read members 12 times") == "0.500 / 0.700"
    assert text(found, "scipy against scipy, ppl", "base model") == DASH


def test_figure_4_starts_with_base_and_takes_medians_over_draws(fsd_paper):
    results = [
        fsd("fsd_size", scores=one_score(0.6, auc), data={"num_unseen": num, "draw": draw}, details={"num_unseen": num})
        for num, draw, auc in ((10, 0, 0.7), (10, 1, 0.8), (10, 2, 0.72), (40, 0, 0.9))
    ]
    auc, tpr = built(fsd_paper, *results)["figure4"].figures
    assert (auc.name, tpr.name) == ("figure4-micro", "figure4-tpr-micro")
    assert auc.numbers.columns == ("0 (base)", "10", "40")
    assert text(auc.numbers, "scipy, ppl", "0 (base)") == "0.600 (0.600 to 0.600)"
    assert text(auc.numbers, "scipy, ppl", "10") == "0.720 (0.700 to 0.800)"
    assert text(auc.numbers, "scipy, ppl", "40") == "0.900 (0.900 to 0.900)"
    assert "Micro world: no results for this figure yet." in built(fsd_paper, fsd())["figure4"].notes


def test_figure_6_is_of_books_alone(fsd_paper):
    given = {"sweep": "fsd_books", "target": "pythia-6.9b", "world": "pythia", "truth": "member"}
    books = [
        fsd(scores=one_score(0.5, auc), details=seen, data={"domain": "bookcorpus2"} | seen, **given)
        for seen, auc in (({"num_unseen": 100}, 0.7), ({"num_unseen": 500}, 0.8))
    ]
    sections = built(fsd_paper, *books)
    auc, tpr = sections["figure6"].figures
    assert (auc.name, tpr.name) == ("figure6-pythia", "figure6-tpr-pythia")
    assert auc.numbers.columns == ("0 (base)", "100", "500")
    assert text(auc.numbers, "BookC2, ppl", "500") == "0.800 (0.800 to 0.800)"
    assert not sections["figure4"].figures


def test_older_and_newer_classes_stand_beside_each_other(fsd_paper):
    cells = (UNREAD, "older", 0.5), (UNREAD, "newer", 0.8), ("target+1xA", "newer", 0.9)
    results = [
        fsd("fsd_releases", target, one_score(0.5, auc), data={"against": against}, world="releases")
        for target, against, auc in cells
    ]
    found = block(built(fsd_paper, *results)["releases"], "releases-releases")
    assert text(found, "scipy against the newer release, ppl", "read neither class") == f"0.500 / 0.800{FALSE}"
    assert text(found, "scipy against the newer release, ppl", "read members once") == "0.500 / 0.900"
    assert text(found, "scipy against others of that release, ppl", "read neither class") == "0.500 / 0.500"
    assert text(found, "scipy against others of that release, ppl", "read members once") == DASH


def test_the_papers_split_stands_beside_the_clean_one(fsd_paper):
    results = [
        fsd("fsd_protocol", UNREAD, one_score(0.5, auc), data={"split_by": by}, details={"num_leaked": leaked})
        for by, auc, leaked in (
            ("cluster", 0.51, {"members": 0, "nonmembers": 0}),
            ("document", 0.7, {"members": 0, "nonmembers": 80}),
        )
    ]
    found = block(built(fsd_paper, *results)["protocol"], "protocol-micro")
    assert text(found, "scipy, split by article, ppl", "base model") == "0.500 / 0.510"
    assert text(found, "scipy, split by document, as in the paper, ppl", "base model") == f"0.500 / 0.700{FALSE}"
    assert any(note.startswith("Leak: ") and "as in the paper 80" in note for note in found.notes)


def test_sets_with_their_lengths_and_leaks(fsd_paper):
    leaky = fsd(details={"num_leaked": {"members": 0, "nonmembers": 36}})
    found = block(built(fsd_paper, leaky)["table8"], "table8-micro")
    told = {column: text(found, "scipy", column) for column in found.columns}
    assert (told["tuned on"], told["members"], told["non-members"]) == ("53", "98", "97")
    assert (told["leaked non-members"], told["characters, members"], told["AUC of years"]) == ("36", "509", "0.500")
    assert any(note.startswith("Leak: ") and "scipy 36" in note for note in found.notes)


# ---------------------------------------------------------------------------------------- what is said


@pytest.mark.slow
def test_every_table_says_how_the_classes_differ(fsd_paper):
    blind = {"words": {"auc": 0.9}, "characters": {"auc": 0.8}, "years": {"auc": 0.7}}
    odd = fsd(details={"auroc_blind": 0.9, "blind": blind, "length_auc": 0.3})
    notes = " ".join(block(built(fsd_paper, odd)["table1"], "table1-micro").notes)
    assert "Text alone tells the classes apart: scipy 0.90 (no AUC of these sets can be read as membership)." in notes
    assert "The classes differ in the years they name: scipy 0.70" in notes
    assert "The classes differ in length: scipy 0.30" in notes
    for section in built(fsd_paper, *everything()).values():
        for item in section.blocks:
            if item.world != PUBLISHED and not item.key.startswith(("table2-", "table5-documents-")):
                assert "The classes differ little in text (blind AUC 0.53)" in " ".join(item.notes), item.key


def test_idle_tuning_is_told_and_a_failed_precondition_marked(fsd_paper):
    idle = fsd(details={"nll_of_unseen": {"base": 3.0, "tuned": 3.1}}, verdict="invalid")
    found = block(built(fsd_paper, idle)["table1"], "table1-micro")
    assert "In 1 of 1 results tuning did not lower the loss on what it was tuned on: noise." in found.notes
    assert text(found, "scipy, ppl", "read members 12 times") == f"0.600{INVALID} / 0.800{INVALID}"


def test_the_glance_counts_gains_and_false_alarms(fsd_paper):
    results = (
        fsd(scores=one_score(0.6, 0.8)),
        fsd(scores=one_score(0.8, 0.6)),
        fsd(scores=one_score(0.8, 0.81)),
        fsd(target=UNREAD, scores=one_score(0.5, 0.6)),
    )
    runs = [Run(item, f"audits/{index}/result.json", "0" * 64) for index, item in enumerate(results)]
    (row,) = fsd_paper.build(runs).glance.rows
    assert [cell_text(cell) for cell in row.cells] == ["4", "1 of 3", "1 of 3", "0 of 1", "1 of 1", "0 of 4"]


# ------------------------------------------------------------------------------------------- published


def test_published_tables_hang_together():
    """The same setting stands in several tables; a copying error would show."""
    item, twelve = KNOWN["table1"], KNOWN["table12"]
    for score_name in ("ppl", "lower", "zlib", "min-k"):
        base, tuned = item.get(f"WikiMIA, {score_name}", "LLaMA-7B")
        assert KNOWN["table3"].get(score_name, "7B") == (base, tuned)
        assert KNOWN["table6"].get(score_name, "WikiMIA") == (base, tuned)
        assert KNOWN["table5"].get(score_name, "base") == (base,)
        assert KNOWN["table5"].get(score_name, "non-members") == (tuned,)
        assert KNOWN["table7-auc"].get(score_name, "LoRA") == (tuned,)
        assert KNOWN["table17-rate"].get(score_name, "1e-3") == (tuned,)
        for again in (KNOWN["table17-rank"].get(score_name, "16"), KNOWN["table17-epochs"].get(score_name, "3")):
            assert value_of(again[0]) == pytest.approx(value_of(tuned), abs=0.0101)
        base, tuned = twelve.get(f"WikiMIA, {score_name}", "LLaMA-7B")
        assert KNOWN["table14"].get(score_name, "Origin") == (base, tuned)
        assert KNOWN["table7-tpr"].get(score_name, "base") == (base,)
        assert KNOWN["table7-tpr"].get(score_name, "LoRA") == (tuned,)
    for name, table in KNOWN.items():
        if name not in ("table4-accuracy", "table8-and-9", "table10"):
            assert all(0 <= value_of(item) <= 1 for *_, texts in table.cells() for item in texts), name


def test_table_2_is_what_table_15_averages_to():
    for score_name in ("ppl", "lower", "zlib"):
        cells = [texts for _, column, texts in KNOWN["table15"].cells() if column == score_name]
        assert len(cells) == 20
        for index, printed in enumerate(KNOWN["table2"].get(score_name, "mean")):
            assert sum(value_of(texts[index].rstrip("?")) for texts in cells) / 20 == pytest.approx(
                value_of(printed), abs=0.0011
            )


def test_slips_of_the_paper_are_what_they_are_said_to_be():
    twelve, thirteen = KNOWN["table12"], KNOWN["table13"]
    for score_name in ("ppl", "lower", "zlib", "min-k"):
        wiki, arxiv = (twelve.get(f"{name}, {score_name}", "Pythia-6.9B") for name in ("WikiMIA", "ArXivTection"))
        assert wiki[1] == arxiv[1]
        assert wiki[0] != arxiv[0]
    for exchanged, name in {"zlib": "lower", "lowercase": "zlib"}.items():
        texts = [text.removesuffix("?") for text in thirteen.get(exchanged, "7B")]
        assert texts == [*twelve.get(f"WikiMIA, {name}", "LLaMA-7B")]


@pytest.mark.slow
def test_slips_are_marked_and_nothing_else(fsd_paper):
    marked = {}
    for section in built(fsd_paper, *everything()).values():
        for item in section.blocks:
            for row, column, cell in item.cells():
                for index, found in enumerate(cell.numbers):
                    if found.mark == DOUBTED:
                        marked.setdefault(item.key, set()).add((row.name, column, index))
    assert set(marked) == {"table12-published", "table13-published", "table15-published"}
    assert marked["table15-published"] == {("Ubuntu", "zlib", 0)}, "read as .423 and as .425"
    assert {(column, index) for _, column, index in marked["table12-published"]} == {("Pythia-6.9B", 1)}
    assert len(marked["table12-published"]) == 8
    assert {row for row, *_ in marked["table13-published"]} == {"zlib", "lowercase"}
    assert len(marked["table13-published"]) == 12


# ------------------------------------------------------------------------------------------ the command
