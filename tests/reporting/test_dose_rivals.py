"""Other methods beside the dose meter: which audits are compared, and what is found and cleared at equal errors."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_up_dose import audit, rival
from reading import block, built, cell, runs_of, text

from nonmember.methods import LlmDi, PairedT
from nonmember.reports.core.grid import FALSE
from nonmember.reports.planted.audits import SIGNS
from nonmember.results.load import Run
from nonmember.stats.inference import dataset_inference
from nonmember.stats.paired import paired_t_less
from nonmember_papers.dose.rivals import CLEARED, FOUND

SETS = [f"library{index:02}-a" for index in range(20)]


def both(values, dose, sign=1):
    """Of each set the meter's audit, which is right, and one of the method whose values these are."""
    told = {}
    for method, numbers in values.items():
        for name, value in zip(SETS, numbers, strict=True):
            key = {"name": name, "model": f"m{dose}-{name}"}
            told[name] = audit(dose, **key)
            yield rival(method, dose, float(value), **key)
    yield from told.values()


def power_of(sections):
    (figure,) = sections["rivals"].figures
    return figure.numbers


def counted(found, row, column="1x"):
    return text(found, row, column).split(" \\[")[0].split(" [")[0]


@pytest.mark.slow
def test_found_and_cleared_at_equal_errors(dose_paper):
    """Twenty unread sets and the same read once: one may lie beyond. All by hand."""
    ascending = np.arange(1, 21)
    unread = {"kds": ascending, "fsd": np.full(20, 0.5), "llm_di": -ascending, "prism": 0.01 * ascending}
    once = {
        "kds": ascending + 100,  # perfect
        "fsd": np.full(20, 0.5),  # all alike: nothing lies above a tie
        "llm_di": -np.repeat([18.5, 19.5, 25], [5, 8, 7]),  # 19 of the unread lie below 19.5, one is above
        "prism": 0.01 * ascending - 0.005,  # a low Delta speaks for reading; two lie below .02, below which one may
    }
    results = [*both(unread, 0), *both(once, 1)]
    found = power_of(built(dose_paper, *results))
    told = {
        name: (counted(found, f"{FOUND}: {name}"), counted(found, f"{CLEARED}: {name}"))
        for name in ("dose meter", "KDS", "FSD", "LLM-DI", "PRISM")
    }
    assert told == {
        "dose meter": ("20 of 20", "20 of 20"),
        "KDS": ("20 of 20", "20 of 20"),
        "FSD": ("0 of 20", "0 of 20"),
        "LLM-DI": ("15 of 20", "18 of 20"),
        "PRISM": ("2 of 20", "2 of 20"),
    }


def test_statistics_point_where_their_tests_do():
    """What a low t means of the paired t-test, and of LLM-DI's."""
    low = paired_t_less([1.0, 2.0, 3.0], [2.0, 2.5, 4.0])
    assert (low.statistic < 0, low.p_value < 0.05) == (True, True)
    assert (PairedT.claim, SIGNS.get("paired_t", 1)) == ("non_membership", 1)
    rng = np.random.default_rng(0)
    told = dataset_inference(
        rng.normal(2, 1, (80, 2)),
        rng.normal(0, 1, (80, 2)),
        outliers="keep",
        tail_fraction=0.05,
        fit_size=40,
        num_splits=1,
        learning_rate=0.05,
        num_steps=100,
        equal_variances=True,
        trim_predictions=False,
        compat=False,
        rng=rng,
    )
    assert (told.statistics[0] < 0, told.combined_p_value < 0.05) == (True, True)
    assert (LlmDi.claim, SIGNS["llm_di"]) == ("membership", -1)


def test_by_dose(dose_paper):
    """The threshold of the found is that of the unread, whatever the dose; of the cleared that of the dose."""
    unread, twice = {"kds": np.arange(20.0)}, {"kds": np.arange(20.0) + 10.5}
    results = [*both(unread, 0), *both(twice, 2), *both({"kds": np.full(20, 50.0)}, 8)]
    found = power_of(built(dose_paper, *results))
    assert found.columns == ("2x", "8x")
    assert [counted(found, f"{FOUND}: KDS", item) for item in found.columns] == ["12 of 20", "20 of 20"]
    assert [counted(found, f"{CLEARED}: KDS", item) for item in found.columns] == ["12 of 20", "20 of 20"]


def test_only_questions_that_both_were_asked(dose_paper):
    results = [
        audit(1, name="a-a", model="m0"),
        rival("kds", 1, 2.0, name="a-a", model="m0"),
        audit(0, name="a-a", model="m1"),
        rival("kds", 0, 1.0, name="a-a", model="m1"),
        audit(1, name="a-a", model="m2"),  # the meter alone
        rival("kds", 0, 1.0, name="a-a", model="m1"),  # the same question again
        rival("kds", 1, 2.0, name="b-a", model="m0"),  # KDS alone
        rival("kds", 1, 2.0, name="a-a", model="m0", sweep="kds_main"),  # of another study
    ]
    section = built(dose_paper, *results)["rivals"]
    overview = block(section, "rivals")
    assert {row.name: text(overview, row.name, "audits") for row in overview.rows} == {"dose meter": "2", "KDS": "2"}
    assert any(note.startswith("1 pairs of target and set left out") for note in section.notes)


def test_audits_of_other_methods_bring_no_world_of_their_own(dose_paper):
    (scope,) = dose_paper.scopes(runs_of(audit(1), rival("kds", 1, 1.0), rival("prism", 1, 1.0, sweep="table2")))
    assert len(scope.runs) == 2
    (made,) = runs_of(rival("prism", 1, 1.0, sweep="table2"))
    question = dataclasses.replace(made.question, world="micro")
    elsewhere = Run(dataclasses.replace(made.result, question=question), "audits/9/result.json", "0" * 64)
    assert [item.world.name for item in dose_paper.scopes([*runs_of(audit(1)), elsewhere])] == ["dose_study"]


def test_sets_that_all_were_run_on_are_shown_by_themselves(dose_paper):
    """LLM-DI and FSD need text that not every library has."""
    results = [*both({"kds": np.arange(20.0)}, 0), *both({"kds": np.arange(20.0) + 30}, 1)]
    beside = [
        rival("llm_di", dose, -dose, name=name, model=f"m{dose}-{name}", sweep="dose_rivals_heldout")
        for dose in (0, 1)
        for name in SETS[:3]
    ]
    section = built(dose_paper, *results, *beside)["rivals"]
    assert counted(power_of({"rivals": section}), f"{FOUND}: KDS") == "20 of 20"
    assert counted(power_of({"rivals": section}), f"{FOUND}: LLM-DI") == "3 of 3"
    common = block(section, "rivals-power-common")
    assert {counted(common, f"{FOUND}: {name}") for name in ("dose meter", "KDS", "LLM-DI")} == {"3 of 3"}
    assert common.title.endswith(": library00, library01 and library02")


def test_verdicts_are_counted_against_what_was_read(dose_paper):
    results = [
        audit(0, verdict="cleared"),
        rival("prism", 0, 0.1, verdict="cleared"),
        rival("llm_di", 0, 1.0, verdict="found"),
        audit(1, verdict="found", model="m1"),
        rival("prism", 1, 0.1, verdict="cleared", model="m1"),
        rival("llm_di", 1, 1.0, verdict="inconclusive", model="m1"),
    ]
    found = block(built(dose_paper, *results)["rivals"], "rivals-verdicts")
    told = {row.name: [counted(found, row.name, item) for item in ("nothing", "1x")] for row in found.rows}
    assert told == {
        "dose meter: not read": ["1 of 1", "0 of 1"],
        "PRISM: not read": ["1 of 1", f"1{FALSE} of 1"],
        "dose meter: read": ["0 of 1", "1 of 1"],
        "LLM-DI: read": [f"1{FALSE} of 1", "0 of 1"],
    }


def test_seconds_and_errors_of_the_dose(dose_paper):
    results = [
        audit(2, estimate=2.9),
        rival("kds", 2, 1.0, seconds=3.0),
        audit(2, estimate=3.1, model="m1"),
        rival("kds", 2, 1.0, seconds=8.0, model="m1"),
        audit(0, estimate=0.0, model="m2"),
        rival("kds", 0, 1.0, seconds=4.0, model="m2"),
    ]
    found = block(built(dose_paper, *results)["rivals"], "rivals")
    assert text(found, "KDS", "seconds an audit") == "4.0"
    assert counted(found, "dose meter", found.columns[2]) == "1 of 2"
    assert text(found, "KDS", found.columns[2]) == "–"


# -------------------------------------------------------------------------------------------------- scores


def with_scores(folder, made, target, reference, *, columns=("loss", "minkpp(1)")):
    """As a run with these scores: [suspect, third] of the target and of the reference."""
    folder.mkdir()
    table = {"doc_id": list("abcd"), "group": ["suspect"] * 2 + ["third"] * 2}
    for name in columns:
        table |= {f"target/{name}": np.array(target, float), f"reference/{name}": np.array(reference, float)}
    pq.write_table(pa.table(table), folder / "scores.parquet")
    return Run(made, f"audits/{folder.name}/result.json", "0" * 64, folder)


def test_scores_are_read_from_the_meters_audits(dose_paper, tmp_path):
    """A set that is easy: without the reference it lies above the one that was read, with it below; and a model that
    does better on everything, which the third text shows."""
    easy = with_scores(tmp_path / "easy", audit(0, name="a-a"), [-1, np.nan, -3, -3], [-1, -9, -3, -3])
    read = with_scores(tmp_path / "read", audit(1, name="b-a", model="m1"), [-2, -2, -3, -3], [-2.5, -2.5, -3, -3])
    able = with_scores(tmp_path / "able", audit(0, name="c-a", model="m2"), [-3, -3, -2, -2], [-4, -4, -3, -3])
    others = [
        rival("kds", 0, 0.0, name="a-a"),
        rival("kds", 1, 1.0, name="b-a", model="m1"),
        rival("kds", 0, 0.0, name="c-a", model="m2"),
    ]
    (section,) = [
        item for item in dose_paper.build([easy, read, able, *_beside(others)]).sections if item.key == "rivals"
    ]
    (figure,) = section.figures
    told = {row.name: counted(figure.numbers, row.name) for row in figure.numbers.rows if row.name.startswith(FOUND)}
    assert told == {
        f"{FOUND}: {name}": f"{number} of 1"
        for name, number in {
            "dose meter": 1,
            "KDS": 1,
            "loss": 0,
            "loss less reference": 0,
            "loss less reference and third text": 1,
            "Min-K%++": 0,
            "Min-K%++ less reference": 0,
            "Min-K%++ less reference and third text": 1,
        }.items()
    }
    assert set(figure.read) == {f"audits/{name}/scores.parquet" for name in ("easy", "read", "able")}
    overview = block(section, "rivals")
    assert text(overview, "loss", "seconds an audit") == "–"


def test_scores_that_are_not_there_are_said(dose_paper, tmp_path):
    run = with_scores(tmp_path / "0", audit(1), [-2.0] * 4, [-2.5] * 4, columns=("loss",))
    sections = dose_paper.build([run, *_beside([rival("kds", 1, 1.0)])]).sections
    (section,) = [item for item in sections if item.key == "rivals"]
    assert any(note.startswith("Scores of 1 audits left out: scores.parquet cannot be read") for note in section.notes)
    assert [row.name for row in block(section, "rivals").rows] == ["dose meter", "KDS"]


def _beside(results):
    return [Run(item, f"audits/rival-{index}/result.json", "0" * 64) for index, item in enumerate(results)]


# ------------------------------------------------------------------------------------- another study's


@pytest.mark.parametrize("name", ["clearance of 8x", "clearance of 8x, own base"])
def test_clearance_is_as_its_study_reports_it(dose_paper, name):
    """Number by number, with the intervals."""
    lines = (Path(__file__).parents[2] / "docs/results/calibration/report.md").read_text(encoding="utf-8").splitlines()
    (theirs,) = [line for line in lines if line.startswith(f"| {name}, reported |")]
    header = lines[lines.index("| rule, half | nothing | 1x | 2x | 12x, 25% of it | 8x, 50% of it | 4x | 8x | 12x |")]
    columns, cells = ([part.strip() for part in line.strip("|").split("|")] for line in (header, theirs))
    ours = block(built(dose_paper, audit(1), rival("kds", 1, 1.0))["rivals"], "rivals-clearance")
    for column in ours.columns:
        theirs = cells[columns.index(column)].replace("\\", "")
        numbers = cell(ours, name, column).ours
        told = (
            "–"
            if numbers[0].value is None
            else (f"{numbers[0].text} of {numbers[1].text} [{numbers[2].value:.0%}, {numbers[3].value:.0%}]")
        )
        assert told == theirs
