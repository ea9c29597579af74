"""The report of DE-COP: right numbers beside the paper's, before and after calibration, and what text alone tells."""

from __future__ import annotations

from dataclasses import replace

import made_up
import numpy as np
import pandas as pd
import pytest
from reading import block, built, text

from nonmember.reports.core import formats
from nonmember.reports.core.grid import INVALID
from nonmember.reports.core.published import PAPERS, published_tables
from nonmember.reports.render.markdown import cell_text
from nonmember_papers.decop import FALLEN_NIGHT, POTTER, decop_beside

DASH = formats.DASH
MICRO = {"target": "target", "sweep": "decop_table3", "p_value": 0.5, "verdict": "inconclusive"}
LETTERS = "ABCD"
PROBABILITIES = {
    "name": ["e", FALLEN_NIGHT],
    "probability": [[0.25] * 4, [0.1, 0.5, 0.2, 0.2]],
    "probability_calibrated": [[0.25] * 4, [0.2, 0.4, 0.2, 0.2]],
}


def separated(first: float, second: float, shift: float) -> dict:
    """What `methods.decop_answers.comparison` tells."""
    few = {name: {"mean": 0.8 + shift, "sd": 0.02} for name in ("best_balanced_acc", "roc_auc", "mean_suspect")}
    return {
        "mean_suspect": first,
        "mean_heldout": second,
        "num_suspect_works": 3,
        "num_heldout_works": 2,
        "best_balanced_acc": 0.81 + shift,
        "roc_auc": 0.9 + shift,
        "roc_auc_interval": [0.85, 0.95],
        "few_resamples": few,
    }


def decop(target="llama-2-13b", sweep="decop_replay", *, calibrated=False, shift=0.0, **more):
    letters = {
        "chosen": dict(zip(LETTERS, (0.1, 0.5, 0.3, 0.1), strict=True)),
        "accuracy": dict(zip(LETTERS, (0.2, 0.6, 0.4, 0.1), strict=True)),
    }
    if calibrated:
        letters |= {
            "probability": dict.fromkeys(LETTERS, 0.2),
            "probability_calibrated": dict.fromkeys(LETTERS, 0.25),
            "accuracy_calibrated": dict.fromkeys(LETTERS, 0.3),
        }
    details = {
        **separated(0.6, 0.3, shift),
        "uncalibrated": separated(0.5, 0.29, 0.05) if calibrated else None,
        "calibration": {"well_calibrated": {"heldout": {"before": 0.1, "after": 0.65}}} if calibrated else None,
        "letters": {"suspect": letters, "heldout": letters},
        "works": {
            "suspect": {"name": ["a", "b", "c"], "accuracy": [0.3, 0.6, 0.9]},
            "heldout": {"name": ["e", "d"], "accuracy": [0.4, 0.2]} | (PROBABILITIES if calibrated else {}),
        },
        "questions_per_work": {"suspect": 816, "heldout": 800},
    }
    given = {
        "method": "decop",
        "target": target,
        "reference": None,
        "statistic": 0.3,
        "p_value": 2e-30,
        "truth": None,
        "verdict": "evidence_of_membership",
        "score": "",
        "world": "recorded",
        "corpus": "booktection-128",
        "heldout": "clean",
        "rho_reference_target": None,
        "rho_distilled_target": None,
    }
    return made_up.result(
        sweep=sweep,
        data={"domain": "booktection-128"} | more.pop("data", {}),
        details=details | more.pop("details", {}),
        settings=more.pop("settings", {}),
        **given | more,
    )


def everything():
    return decop(), decop("mistral-7b"), decop(sweep="decop_replay_calibrated", calibrated=True)


@pytest.mark.slow
def test_both_figures_stand_under_their_own_names_beside_the_published_one(decop_paper):
    section = built(decop_paper, decop(), decop("mistral-7b", p_value=0.3, verdict="invalid"))["books"]
    found = block(section, "books-recorded")
    assert text(found, "LLaMA-2-13B", "best balanced accuracy") == "0.800 ± 0.020 (.900 ± .0134)"
    assert text(found, "LLaMA-2-13B", "ROC area") == "0.900 \\[0.850, 0.950\\]"
    assert text(found, "LLaMA-2-13B", "p") == "2.0e-30 (1.92e-30)"
    assert text(found, "Mistral-7B", "p") == f"0.300{INVALID} (5.66e-24)"
    assert text(found, "Mistral-7B", "right, suspect works") == "0.600"
    assert {figure.name for figure in section.figures} == {"accuracies-recorded", "roc-recorded"}
    numbers = {figure.name: figure.numbers for figure in section.figures}
    assert text(numbers["accuracies-recorded"], "LLaMA-2-13B, suspect", "median") == "0.600"
    assert text(numbers["roc-recorded"], "LLaMA-2-13B", "ROC area") == "0.833"  # 5 of 6 pairs in order


def test_baselines_stand_below(decop_paper):
    scores = {"mink(0.2)": separated(0.1, 0.0, 0.1), "zlib": separated(0.1, 0.0, -0.1)}
    result = decop(
        "Llama-2-13b-chat-hf",
        "decop_books",
        method="decop_baselines",
        world="pythia",
        details={"scores": scores},
        verdict="score_only",
    )
    found = block(built(decop_paper, result)["books"], "baselines-pythia")
    assert text(found, "Min-K%", "LLaMA-2-13B") == "0.900 ± 0.020 (.798 ± .0153)"
    assert text(found, "Zlib", "LLaMA-2-13B") == "0.700 ± 0.020 (.630 ± .0441)"


def test_calibration_before_and_after(decop_paper):
    sections = built(
        decop_paper, decop("llama-2-70b"), decop("llama-2-70b", "decop_replay_calibrated", calibrated=True, shift=0.03)
    )
    found = block(sections["calibration"], "calibration-recorded")
    assert [text(found, "LLaMA-2-70B", column) for column in found.columns] == [
        "0.500 / 0.600",
        "0.290 / 0.300",
        "0.950 / 0.930",
        "0.100",
        "0.650 (.65)",
    ]
    groups, letters, places, one_work = (figure.numbers for figure in sections["calibration"].figures)
    assert text(groups, "LLaMA-2-70B, before calibration", "suspect") == "0.500 (.563)"
    assert text(groups, "LLaMA-2-70B, after calibration", "clean") == "0.300 (.353)"
    assert text(one_work, "LLaMA-2-70B, before calibration", "B") == "0.500", "of the paper's book"
    assert text(letters, "LLaMA-2-70B, after calibration", "B") == "0.250"
    assert text(places, "LLaMA-2-70B, before calibration", "B") == "0.600"
    assert text(block(sections["books"], "books-recorded"), "LLaMA-2-70B", "ROC area").startswith("0.900"), (
        "not calibrated"
    )


def test_means_over_models_and_the_swapped_options(decop_paper, tmp_path):
    """Figure 8 from 33 passages about which the answers are as recorded."""
    asked = [
        {"book": book, "query": query, "true_option": right, "claude_2_1": right if number < hits else "B"}
        for book, query, right, hits in (
            (POTTER, 0, "A", 14),
            (POTTER, 14, "C", 31),
            (POTTER, 1, "A", 0),
            ("x", 0, "A", 0),
        )
        for number in range(33)
    ]
    pd.DataFrame(asked).to_parquet(tmp_path / "answers.parquet")
    five = ("mistral-7b", "mixtral-8x7b", "llama-2-13b", "llama-2-70b", "gpt-3")
    shifts = (0.0, 0.1, 0.0, 0.1, 0.05)
    results = [decop(target, shift=shift) for target, shift in zip(five, shifts, strict=True)]
    results += [decop("claude-2.1"), decop("chatgpt", details={"mean_suspect": 0.7})]
    for target in five:
        scores = {
            name: separated(0.1, 0.0, 0.1) for name in ("lowercase", "zlib") if (name, target) != ("zlib", "gpt-3")
        }
        results.append(decop(target, "decop_replay_scores", method="decop_baselines", details={"scores": scores}))
    sections = built(replace(decop_paper, recorded=str(tmp_path)), *results)
    means = block(sections["books"], "means-recorded")
    assert {row.name: cell_text(row.cells[0]) for row in means.rows} == {
        "Lowercase": "0.900 (.900)",  # of zlib one model is missing
        "DE-COP": "0.850 (.921)",
        "DE-COP, right answers in suspect works (table 3)": "0.650 (.7271)",
    }
    (swapped,) = [figure.numbers for figure in sections["calibration"].figures if figure.name == "swapped-recorded"]
    assert [text(swapped, "Claude-2.1", letter) for letter in swapped.columns] == [
        "0.424 \\[0.255, 0.608\\], 14 of 33",
        "0.939 \\[0.798, 0.993\\], 31 of 33",
    ]
    assert sections["books"].commands
    assert not sections["papers"].commands, "which recorded answers cannot make"


def test_lengths_sizes_and_writers_of_paraphrases(decop_paper):
    results = [
        decop("Llama-2-70b-chat-hf", "decop_lengths", world="pythia", data={"length": length}, shift=shift)
        for length, shift in (("small", 0.1), ("large", -0.1))
    ]
    results += [decop(f"Llama-2-{size}-chat-hf", "decop_sizes", world="pythia") for size in ("7b", "70b")]
    results += [
        decop("Llama-2-7b-chat-hf", "decop_paraphraser", world="pythia", settings={"paraphraser": writer})
        for writer in ("one", "other")
    ]
    sections = built(decop_paper, *results)
    assert [row.name for row in block(sections["lengths"], "lengths-pythia").rows] == ["small", "large"]
    assert text(block(sections["lengths"], "lengths-pythia"), "large", "ROC area").startswith("0.800")
    assert [row.name for row in block(sections["sizes"], "sizes-pythia").rows] == ["LLaMA-2-7B", "LLaMA-2-70B"]
    assert [row.name for row in block(sections["paraphraser"], "paraphraser-pythia").rows] == [
        "LLaMA-2-7B, by one",
        "LLaMA-2-7B, by other",
    ]


def test_what_text_alone_tells(decop_paper):
    guess = {"first": 0.82, "second": 0.4, "p_chance_first": 1e-9, "p_chance_second": None, "p_groups": 0.002}
    result = decop(details={"blind": {"longest": guess, "rarest": guess, "odd": guess}})
    found = block(built(decop_paper, result)["blind"], "blind-recorded")
    row = "BookTection-128: the longest option"
    assert [text(found, row, column) for column in found.columns] == ["0.820", "0.400", "1.0e-9", DASH, "0.002"]


def test_seconds_count_only_where_answers_were_made(decop_paper):
    made = decop(seconds=50.0, made={"tokens_observed": 9})
    found = block(built(decop_paper, made)["cost"], "cost-recorded")
    assert [text(found, "LLaMA-2-13B", column) for column in found.columns] == ["816", "10.0"]
    idle = decop(seconds=50.0, made={"tokens_observed": 0})
    assert text(block(built(decop_paper, idle)["cost"], "cost-recorded"), "LLaMA-2-13B", "seconds") == DASH


def by_text(method, suspect, clean, *, domain="scipy", settings, **more):
    details = {"mean_suspect": suspect, "mean_heldout": clean}
    return made_up.result(method=method, data={"domain": domain}, details=details, settings=settings, **MICRO | more)


def test_probes_of_text_by_setting_set_and_target(decop_paper):
    results = [
        by_text("prefix_completion", 0.02, 0.0, p_value=0.03, settings={"k": 32}),
        by_text("prefix_completion", 0.01, 0.0, settings={"k": 50}),
        by_text("name_cloze", 0.3, 0.1, p_value=0.001, settings={"with_title": False}),
        by_text("name_cloze", 0.4, 0.2, settings={"with_title": True}),
        by_text("name_cloze", 0.0, 0.0, target="other", verdict="invalid", settings={"with_title": False}),
        by_text("prefix_completion", 0.05, 0.04, domain="sympy", settings={"k": 32}),
        by_text("decop", 0.7, 0.4, settings={}),
        by_text("prism", 0.9, 0.9, settings={}),
    ]
    found = block(built(decop_paper, *results)["table3"], "table3-micro")
    assert text(found, "DE-COP, scipy", "target") == "0.700 / 0.400, p 0.500"
    assert found.columns == ("other", "target")
    assert text(found, "Completion (32), scipy", "target") == "0.020 / 0.000, p 0.030"
    assert text(found, "Completion (32), sympy", "target") == "0.050 / 0.040, p 0.500"
    assert text(found, "Completion (50), scipy", "target") == "0.010 / 0.000, p 0.500"
    assert text(found, "Name cloze with the title, scipy", "target") == "0.400 / 0.200, p 0.500"
    assert text(found, "Name cloze, scipy", "target") == "0.300 / 0.100, p 0.001"
    assert text(found, "Name cloze, scipy", "other") == f"0.000 / 0.000, p 0.500{INVALID}"
    assert text(found, "Completion (50), scipy", "other") == DASH


def test_published_means_are_means_of_the_published_numbers():
    """The last columns of tables 2 and 3, to their last digit."""
    known = published_tables(PAPERS / "decop" / "published.txt")
    for table in (known["table2"], known["table3"]):
        for name, row in table.rows.items():
            *values, mean = (float(texts[0]) for texts in row.values())
            assert np.mean(values) == pytest.approx(mean, abs=0.0016), name
    assert decop_beside().get("GPT-3", "p") == ("3.07e-9",)
