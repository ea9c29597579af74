"""The arena: what is found at equal errors, with the blind baseline among the methods; verdicts; costs."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from made_up_dose import rival
from reading import block, built, cell, text

ASCENDING = np.arange(20.0)
NAMES = [f"library{index:02}-a" for index in range(20)]


def entered(method, dose, values, verdict="score_only", **more):
    """A target for each dose, by its place; the blind baseline knows none."""
    for name, value in zip(NAMES, values, strict=True):
        given = {"name": name, "model": f"m{dose}-{name}", "verdict": verdict, "place": dose, **more}
        made = rival(method, dose, float(value), **given).that_made({"tokens_observed": 9500})
        if method == "blind":
            made = dataclasses.replace(made, question=dataclasses.replace(made.question, target=None, models={}))
        yield made


@pytest.fixture(scope="module")
def sections(arena_paper):
    ascending = np.arange(1, 21)
    results = [
        *entered("kds", 0, ascending, seconds=3.0),
        *entered("kds", 1, ascending + 100, seconds=5.0),
        *entered("prism", 0, 0.1 * ascending, "cleared"),
        *entered("prism", 1, 0.1 * ascending - 5, "cleared"),
        *entered("llm_di", 0, -ascending),
        *entered("llm_di", 1, -np.repeat([19.5, 25], [12, 8]), "found"),
        *entered("blind", 0, 0.5 + 0.001 * ascending),
        *entered("blind", 1, 0.5 + 0.001 * ascending),
        rival("kds", 1, 99.0, name="library00-a", model="other", sweep="dose_rivals"),
    ]
    return built(arena_paper, *results)


def counted(found, row, column="1x"):
    return text(found, row, column).split(" [")[0].split(" \\[")[0]


@pytest.mark.slow
def test_found_at_equal_errors(sections):
    """Twenty unread sets: at 1% none of them may lie above, at 5% one. By hand."""
    strict, usual = block(sections["power"], "found-1"), sections["power"].figures[0].numbers
    assert [row.name for row in usual.rows] == ["PRISM", "LLM-DI", "KDS", "blind baseline"]
    assert counted(strict, "KDS") == counted(usual, "KDS") == "20 of 20"
    assert counted(usual, "PRISM") == "20 of 20", "a low Delta speaks for reading"
    assert (counted(strict, "LLM-DI"), counted(usual, "LLM-DI")) == ("8 of 20", "20 of 20")
    assert (counted(strict, "blind baseline"), counted(usual, "blind baseline")) == ("0 of 20", "1 of 20")
    (figure,) = sections["power"].figures
    assert "the blind baseline" in figure.alt


@pytest.mark.slow
@pytest.mark.parametrize("beside", [True, False])
def test_a_part_of_a_further_sweep(arena_paper, beside):
    """Three sets of twenty at two readings, with the arena's own results or without any of them."""
    part = [
        item
        for dose in (0, 1)
        for item in [*entered("sampled_completion", dose, ASCENDING + 50 * dose, sweep="arena_out")][:3]
    ]
    others = [item for dose in (0, 1) for item in entered("kds", dose, ASCENDING)] if beside else []
    found = built(arena_paper, *part, *others)["power"].figures[0].numbers
    assert counted(found, "sampled completion") == "3 of 3"


@pytest.mark.slow
def test_verdicts_by_what_was_read(sections):
    found = block(sections["verdicts"], "verdicts")
    assert [row.name for row in found.rows] == ["PRISM: not read", "LLM-DI: read"]
    assert counted(found, "PRISM: not read", "1x") == "20† of 20"
    assert counted(found, "PRISM: not read", "nothing") == "20 of 20"
    assert counted(found, "LLM-DI: read", "1x") == "20 of 20"


def levels(dose, means, gains, **more):
    """Of each set an audit of two scores."""
    for name, mean, gain in zip(NAMES, means, gains, strict=True):
        told = {"means": {"loss": float(mean)}, "less_reference": {"loss": float(gain)}, "less_heldout": {"loss": 0.0}}
        made = rival("levels", dose, float(mean), name=name, model=f"m{dose}-{name}", place=dose, **more)
        yield dataclasses.replace(made, statistics=dataclasses.replace(made.statistics, details=told))


def test_single_scores_are_contestants_by_what_stands_beside_them(arena_paper):
    results = [*levels(0, ASCENDING, ASCENDING), *levels(2, ASCENDING, ASCENDING + 10)]
    made = built(arena_paper, *results)
    found, asked = made["power"].figures[0].numbers, block(made["methods"], "methods")
    assert [row.name for row in found.rows] == ["loss", "loss less reference", "loss less held-out"]
    told = [counted(found, row.name, "2x") for row in found.rows]
    assert told == ["1 of 20", "11 of 20", "0 of 20"], "above 18 of 0 to 19; equal values are not told apart"
    assert text(asked, "loss less reference", "needs beside") == "unread reference"
    assert "follows instructions" in text(asked, "DE-COP", "2x"), "what was not measured is said, not left blank"
    assert cell(asked, "DE-COP", "2x").ours[0].value is None


def test_single_scores_by_number_of_documents(arena_paper):
    """Each number by its own unread sets: 50 documents 5 above nineteen of twenty, 150 documents 10 above; by hand."""
    results = [
        made
        for number, more in ((50, 5), (150, 10))
        for dose, gain in ((0, 0), (1, more))
        for made in levels(dose, ASCENDING, ASCENDING + gain, sweep="arena_sizes", number=number)
    ]
    found = block(built(arena_paper, *results)["sizes"], "sizes-scores")
    told = [counted(found, "loss less reference", f"{number} documents") for number in (50, 150)]
    assert told == ["6 of 20", "11 of 20"]


@pytest.mark.slow
def test_one_test_of_several_scores_is_a_contestant_for_each(arena_paper):
    """Verdicts too: with a score by which it finds all, and with one by which it finds none."""

    def by(score, verdict):
        for dose in (0, 2):
            said = verdict if dose else "inconclusive"
            for item in entered("difference_in_differences", dose, ASCENDING + dose, said):
                yield dataclasses.replace(item, question=dataclasses.replace(item.question, score=score))

    made = built(arena_paper, *by("minkpp(0.2)", "found"), *by("top_loss(20)", "inconclusive"))
    named = {
        f"difference in differences, {name}": access
        for name, access in (("Min-K%++", "full log-probabilities"), ("top-20 loss", "top log-probabilities"))
    }
    asked, said = block(made["methods"], "methods"), block(made["verdicts"], "verdicts")
    assert {name: text(asked, name, "reads of the model") for name in named} == named
    assert [counted(said, f"{name}: read", "2x") for name in named] == ["20 of 20", "0 of 20"]


@pytest.mark.slow
def test_each_number_of_documents_has_its_points_in_the_panel_of_its_dose(arena_paper, painted):
    """Of fewer documents fewer sets are found, and what was not audited on so many has no point."""

    def by(number, above):
        for dose, values in ((0, ASCENDING), (1, ASCENDING + above), (4, ASCENDING + 100)):
            for method in ("kds", "llm_di")[: 2 if number == 50 else 1]:
                signed = values if method == "kds" else -values
                yield from entered(method, dose, signed, sweep="arena_sizes", number=number)

    (figure,) = built(arena_paper, *by(50, 3), *by(200, 10))["sizes"].figures
    canvas = next(item for name, item in painted.items() if "arena-sizes" in name)
    once, often = canvas.axes
    lines = {line.get_label(): line for line in once.get_lines()}
    assert lines["KDS"].get_xydata().tolist() == [[50, 4 / 20], [200, 11 / 20]]
    assert lines["LLM-DI"].get_xydata().tolist() == [[50, 4 / 20]], "also what lacks the largest number has its line"
    assert [line.get_xydata().tolist() for line in often.get_lines() if line.get_label() == "KDS"] == [
        [[50, 1], [200, 1]]
    ]
    assert [label.get_text() for label in once.get_xticklabels()] == ["50", "200"]
    assert (once.get_title(loc="left") or once.get_title(), once.get_xlabel()) == ("read 1x", "documents")
    assert [row.name for row in figure.numbers.rows] == ["LLM-DI, 50", "KDS, 50", "KDS, 200"]


def test_what_has_no_target_answers_alike_for_all(sections):
    blind = sections["power"].figures[0].numbers.rows[-1]
    assert blind.name == "blind baseline"
    assert len(blind.cells[0].ours[0].runs) == 20


def test_costs_are_medians_of_the_arenas_audits(sections):
    found = block(sections["costs"], "costs")
    assert (text(found, "KDS", "audits"), text(found, "KDS", "seconds")) == ("40", "4.0")
