"""Figures 2, 3 and 5 of FSD: the right documents, the right sign, and what is said where they are not to be had."""

from __future__ import annotations

import hashlib
import itertools
import json

import made_up
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_up_fsd import READ, UNREAD, fsd
from reading import call, text

from nonmember.reports.render.markdown import cell_text
from nonmember.results.load import load_runs
from nonmember_papers.fsd.histograms import counted_in, edges_of

NUM_MEMBERS, NUM_OTHERS, NUM_UNSEEN = 5, 4, 3
MAIN = "read members 12 times"
# Perplexities before and after tuning; medians 3 and 2.5 of members, 25 and 15 of non-members.
BEFORE = [1.0, 2.0, 3.0, 4.0, 5.0], [10.0, 20.0, 30.0, 40.0]
AFTER = [1.0, 2.0, 2.5, 4.0, 5.0], [5.0, 10.0, 20.0, 30.0]


def scores(**replaced):
    """scores.parquet as FSD leaves it: perplexity scores -ppl, Min-K% a mean log-probability."""
    columns = {
        "doc_id": [f"d{index}" for index in range(NUM_MEMBERS + NUM_OTHERS + NUM_UNSEEN)],
        "group": ["suspect"] * NUM_MEMBERS + ["heldout"] * NUM_OTHERS + ["unseen"] * NUM_UNSEEN,
    }
    for model, (members, others) in (("target", BEFORE), ("tuned", AFTER)):
        perplexities = np.array([*members, *others])
        unseen = [np.nan] * NUM_UNSEEN
        columns[f"{model}/perplexity"] = [*-perplexities, *unseen]
        columns[f"{model}/mink(0.2)"] = [*(-np.log(perplexities) - 1), *unseen]
    return columns | replaced


@pytest.fixture
def drawn(fsd_paper, tmp_path):
    """drawn(*results): the section over results that lie on disk; by target, what stands in their scores.parquet."""
    number = itertools.count()

    def build(*results, columns=None):
        columns = columns or {}
        folder = made_up.write(tmp_path / str(next(number)), *results)
        runs = load_runs([folder]).runs
        for run in runs:
            content = columns.get(run.result.question.target, scores())
            if isinstance(content, bytes):
                (run.folder / "scores.parquet").write_bytes(content)
            elif content is not None:
                pq.write_table(pa.table(content), run.folder / "scores.parquet")
        (section,) = [item for item in fsd_paper.build(runs).sections if item.key == "figure2"]
        return section

    return build


def result(target=READ, domain="scipy", **more):
    counts = {"num_members": NUM_MEMBERS, "num_nonmembers": NUM_OTHERS}
    return fsd(target=target, data={"domain": domain}, details=counts, **more)


def numbers(section, name):
    (found,) = [figure.numbers for figure in section.figures if figure.name == name]
    return found


# ------------------------------------------------------------------------------------------ what is drawn


def test_perplexity_itself_before_and_after(drawn):
    found = numbers(drawn(result()), "figure2-scipy-micro")
    assert [row.name for row in found.rows] == [
        f"{MAIN}: {kind}, {when}" for kind in ("members", "non-members") for when in ("before tuning", "after")
    ]
    assert text(found, f"{MAIN}: members, before tuning", "median") == "3.000", "not −3, as the score has it"
    assert text(found, f"{MAIN}: members, after", "median") == "2.500"
    assert text(found, f"{MAIN}: non-members, before tuning", "median") == "25.000"
    assert text(found, f"{MAIN}: non-members, after", "25%") == "8.750"
    assert [cell_text(row.cells[0]) for row in found.rows] == ["5", "5", "4", "4"], "those tuned on are no part of it"


def test_fsd_is_higher_for_members(drawn):
    """Tuning has lowered the perplexity of every non-member by 5 or more, and of one member by .5."""
    found = numbers(drawn(result()), "figure3-scipy-micro")
    assert text(found, f"{MAIN}: FSD by ppl, members", "median") == "0.000"
    assert text(found, f"{MAIN}: FSD by ppl, non-members", "median") == "−10.000"
    assert text(found, f"{MAIN}: min-k, members", "median") == "−2.099"
    assert text(found, f"{MAIN}: ppl, non-members", "median") == "25.000"
    deviations = np.log(AFTER[1]) - np.log(BEFORE[1])
    assert found.rows[7].cells[3].ours[0].value == pytest.approx(np.median(deviations))


@pytest.mark.slow
def test_the_target_that_read_has_the_untouched_one_below_it(drawn):
    section = drawn(result(UNREAD), result("target+2xA"), result(READ), result(READ, domain="torch"))
    names = [row.name.partition(":")[0] for row in numbers(section, "figure2-scipy-micro").rows]
    assert names == [MAIN] * 4 + ["base model (control)"] * 4
    first, *_, alone = (figure for figure in section.figures if figure.name.startswith("figure2"))
    assert "The control has read neither class." in first.alt
    assert "control" not in alone.alt, "torch has none"
    assert section.commands == ("make sweep SWEEP=fsd_main",)


def test_a_target_that_has_read_them_is_no_control(drawn):
    """As in text read once, in pretraining: by the untouched target too."""
    section = drawn(result(UNREAD, truth="member"), result(READ))
    assert all("control" not in row.name for row in numbers(section, "figure2-scipy-micro").rows)


@pytest.mark.parametrize(
    "values",
    [[*np.linspace(0, 1, 50), 1e6, -1e6], [3.0] * 10, [0.0], [], list(np.random.default_rng(0).standard_cauchy(500))],
    ids=["outliers", "alike", "zero", "none", "long tails"],
)
def test_no_document_falls_out_of_the_bins(values):
    edges = edges_of(np.array(values))
    assert 1 <= len(edges) - 1 <= 26
    assert np.all(np.diff(edges) > 0)
    assert counted_in(edges, np.array(values)).sum() == len(values)


def test_bins_are_where_the_documents_are():
    """One document far off must not push all others into one bin."""
    values = np.array([*np.linspace(0, 10, 200), 1e6])
    assert np.count_nonzero(counted_in(edges_of(values), values)) > 15


# ------------------------------------------------------------------------------------------ what is said


def test_undefined_values_are_left_out_and_show_in_the_counts(drawn):
    column = scores()["tuned/perplexity"]
    broken = scores(**{"tuned/perplexity": [np.nan, *column[1:]]})
    found = numbers(drawn(result(), columns={READ: broken}), "figure2-scipy-micro")
    assert [cell_text(row.cells[0]) for row in found.rows] == ["5", "4", "4", "4"]
    nothing = scores(**{"tuned/perplexity": [np.nan] * len(column)})
    section = drawn(result(domain="sympy"), columns={READ: nothing})
    assert text(numbers(section, "figure2-sympy-micro"), f"{MAIN}: members, after", "median") == "–"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "there is no scores.parquet beside the result."),
        (b"no Parquet at all", "scores.parquet cannot be read ("),
        (pa.table({"doc_id": ["a"]}), "scores.parquet cannot be read ("),
        ({name: values for name, values in scores().items() if name != "tuned/mink(0.2)"}, "tuned/mink(0.2)"),
        ({name: values[1:] for name, values in scores().items()}, "are of other documents than it counts."),
    ],
    ids=["absent", "broken", "without groups", "without a score", "of another result"],
)
def test_what_cannot_be_read_is_told_and_nothing_fails(drawn, content, why):
    content = content.to_pydict() if isinstance(content, pa.Table) else content
    section = drawn(result(UNREAD), result(READ), columns={READ: content})
    assert not section.figures, "the control alone says nothing"
    (note,) = [note for note in section.notes if why in note]
    assert note.startswith(f"Micro world: not drawn for scipy under {MAIN}: ")
    assert "/tmp" not in note


def test_one_note_for_one_reason(drawn):
    section = drawn(result(), result(domain="sympy"), columns={READ: None})
    assert set(section.notes) == {
        "Micro world: not drawn for torch: there is no result yet.",
        f"Micro world: not drawn for scipy under {MAIN} and sympy under {MAIN}: there is no scores.parquet beside the "
        "result.",
    }


def test_of_several_results_the_first_is_drawn_and_that_is_said(drawn):
    assert "Micro world: scipy, the first of 2 results." in drawn(result(), result(seed=2)).notes


@pytest.mark.slow
@pytest.mark.pictures
def test_pictures_have_the_colours_of_the_page(drawn):
    assert all("var(--series-" in figure.svg for figure in drawn(result()).figures)


@pytest.mark.slow
def test_the_manifest_names_what_was_read(tmp_path):
    made_up.write(tmp_path / "audits", result(), result("target+2xA"))
    for path in (tmp_path / "audits").rglob("result.json"):
        pq.write_table(pa.table(scores()), path.with_name("scores.parquet"))
    call(tmp_path, "report=fsd", "results=[audits]", "folder=out")
    listing = json.loads((tmp_path / "out" / "manifest.json").read_text())
    read = {
        f"{item['below']}/{name}": sha256
        for item in listing["results"]
        for name, _, _, *more in item["audits"]
        for sha256 in more
    }
    ((folder, sha256),) = read.items()
    assert folder == "audits/fsd_main/0000", "and not what no figure wanted"
    assert hashlib.sha256((tmp_path / folder / "scores.parquet").read_bytes()).hexdigest() == sha256
    assert str(tmp_path) not in (tmp_path / "out" / "report.html").read_text()
