"""`nonmember plan`: from numbers and from stored audits, what it says where nothing can succeed, and bad input."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import made_up
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_up_clearance import READINGS, clearance, controls
from made_up_dose import READINGS as DOSE_READINGS
from made_up_dose import traced
from scipy import stats

from nonmember.stats.planning import Costs, Pilot, Rule, plan

NUMBERS = [
    "plan",
    "pilot=numbers",
    "pilot.delta_untouched=0.2",
    "pilot.delta_controls=0.05",
    "pilot.tau=0.02",
    "pilot.sigma=0.03",
    "pilot.standard_error=0.05",
    "pilot.num_documents=100",
]
N = 40


def plan_of(said):
    assert said.status == 0, said.err
    return json.loads(Path(said.last_line).read_text())


def in_one_sentence(said):
    assert said.status == 1
    assert said.err.startswith("nonmember plan: ")
    assert said.err.count("\n") == 1
    return said.err


# -------------------------------------------------------------------------------------------- from numbers


def test_a_plan_from_numbers_is_that_of_the_formulas(nonmember):
    said = nonmember(*NUMBERS, "seconds.control=100", "seconds.distillation=0.5", "error=0.01", "power=0.8")
    found = plan_of(said)
    limits = {"min_documents": 30, "max_documents": 5000, "max_seeds": 10, "max_controls": 20}
    pilot, rule = Pilot(0.2, 0.05, 0.02, 0.03, 0.0025, 100, 0.0, 0.0), Rule(0.99, None, 1, True)
    direct = plan(pilot, rule, power=0.8, costs=Costs(100, 0.5), **limits)
    reading = found["readings"]["the dose"]
    assert reading["outcome"] == direct.outcome == "found"
    assert reading["designs"] == [pytest.approx(vars(item)) for item in direct.designs]
    assert reading["designs"][0]["error"] == pytest.approx(0.01)
    best = direct.designs[0]
    assert f"{best.num_documents:,} documents" in said.out
    assert f"{best.cost / 3600:.2g} hours" in said.out
    assert found["wanted"] == {"error": 0.01, "confidence": None, "power": 0.8, "excluded": "the dose"}


def test_where_no_size_is_enough_it_says_so_and_why(nonmember):
    said = nonmember(*NUMBERS, "pilot.tau=0.08")
    found = plan_of(said)
    assert found["readings"]["the dose"]["outcome"] == "impossible"
    assert "No audit of any size" in said.out
    assert "impossible at any size" in said.out
    said = nonmember(*NUMBERS, "pilot.delta_controls=0.3")
    assert "no audit of any size can tell them apart" in said.out


def test_where_the_limits_are_too_tight_it_says_so(nonmember):
    said = nonmember(*NUMBERS, "max_documents=50", "max_seeds=1", "max_controls=3")
    assert plan_of(said)["readings"]["the dose"]["outcome"] == "beyond_limits"
    assert "more than is allowed" in said.out


def test_unknown_compute_is_said_and_counted_in_trainings(nonmember):
    said = nonmember(*NUMBERS)
    found = plan_of(said)
    assert found["seconds"] is None
    assert "How long it takes is not known" in said.out
    best = found["readings"]["the dose"]["designs"][0]
    counted = best["num_trained"] + best["num_distillations"] * best["num_documents"] / 100
    assert best["cost"] == pytest.approx(counted)


# --------------------------------------------------------------------------------------------- from audits


def scores(seed, *, num_seeds=2, shared=0.5):
    """A table of scores as an audit leaves it: what all models have in common, and what is each one's own."""
    rng = np.random.default_rng(seed)
    reference = rng.normal(size=N)
    common = rng.normal(size=N)
    columns = {"doc_id": [f"d{n}" for n in range(N)], "group": ["suspect"] * N, "reference": reference}
    for reading in READINGS:
        for number in (31, 32):
            role = f"control-{reading.label}-{number}"
            columns[role] = reference + 0.5 * (shared * common + (1 - shared) * rng.normal(size=N))
            for index in range(num_seeds):
                name = f"{role}/distilled" + (f"/{index + 1}" if index else "")
                columns[name] = columns[role] + 0.9 * rng.normal(size=N)
    columns["control-x"] = rng.normal(size=N)  # no control
    third = {name: [*values, *values[:3]] for name, values in columns.items()}
    return pa.table(third | {"group": ["suspect"] * N + ["third"] * 3})


@pytest.fixture
def folder(tmp_path):
    """Two sets; the first audited under two targets, and one audit of another method."""
    results = [
        clearance(
            0.24,
            corpus="a",
            control_deltas=controls(0),
            num_documents=N,
            seconds=100.0,
            made={"models_trained": 12},
            keys={
                "audit": "1",
                "control-4x-31": "aa",
                "control-4x-31/distilled": "bb",
                "target": "zz",
                "distilled": "cc",
            },
        ),
        clearance(
            0.1,
            READINGS[2],
            "member",
            corpus="a",
            control_deltas=controls(0),
            num_documents=N,
            seconds=20.0,
            made={"models_trained": 4},
            keys={"audit": "2", "control-4x-31": "aa", "distilled/2": "dd"},
        ),
        clearance(
            0.24,
            corpus="b",
            control_deltas=controls(1),
            num_documents=N,
            seconds=5.0,
            made={"models_trained": 0},
            keys={"audit": "3", "distilled": "ee"},
        ),
        made_up.result(),
    ]
    made_up.write(tmp_path / "audits", *results)
    for number in range(3):
        pq.write_table(scores(number), tmp_path / "audits" / "calibration" / f"{number:04}" / "scores.parquet")
    for key, tokens in {"aa": 9000, "bb": 400, "cc": 400, "dd": 600, "ee": 100_000}.items():
        path = tmp_path / "store" / "models" / f"some-model-{key}"
        path.mkdir(parents=True)
        (path / "sidecar.json").write_text(json.dumps({"facts": {"num_tokens": tokens}}))
    return tmp_path


FROM_AUDITS = ["plan", "pilot.folders=[audits]", "store=store"]


def without_each(table, role):
    """[seeds, documents] Delta of a control without each document."""
    columns = {name: np.array(table[name][:N]) for name in table.column_names if name not in ("doc_id", "group")}
    kept = [np.arange(N) != left_out for left_out in range(N)]

    def rhos(name):
        return np.array([stats.spearmanr(columns[name][keep], columns[role][keep]).statistic for keep in kept])

    return np.array([rhos("reference") - rhos(name) for name in (f"{role}/distilled", f"{role}/distilled/2")])


def shared_and_interaction(table):
    """By the definitions: covariance of models over their own variance; residuals of seeds by documents."""
    tables = [without_each(table, f"control-{reading.label}-{number}") for reading in READINGS for number in (31, 32)]
    jackknife = (N - 1) ** 2 / N * np.cov([item.mean(axis=0) for item in tables])
    residuals = [item - item.mean(axis=0) - item.mean(axis=1, keepdims=True) + item.mean() for item in tables]
    interaction = np.mean([(item**2).sum() * (N - 1) / (2 * N) for item in residuals])
    num = len(tables)
    common = (jackknife.sum() - np.trace(jackknife)) / (num * (num - 1))
    return common / (np.trace(jackknife) / num - interaction), 2 * interaction


@pytest.mark.slow
def test_a_pilot_from_stored_audits(nonmember, folder):
    said = nonmember(*FROM_AUDITS)
    found = plan_of(said)
    assert list(found["readings"]) == ["1x", "4x", "8x50%", "12x"]
    assert found["wanted"]["excluded"] == "4x"
    assert found["num_readings"] == 4
    assert "3 audits with 2 sets of controls" in said.out
    assert "on 10 degrees of freedom; 90% interval" in said.out
    assert "Were all of the " in said.out
    deltas = [controls(0), controls(1)]
    untouched = np.mean([item["0x"] for item in deltas])
    pilot = found["readings"]["4x"]["pilot"]
    assert pilot["delta_untouched"] == pytest.approx(untouched)
    assert pilot["delta_controls"] == pytest.approx(
        np.mean([max(map(np.mean, (item["4x"], item["12x"]))) for item in deltas])
    )
    assert pilot["document_variance"] == pytest.approx(0.03**2 * 0.9), "of the standard error, without the seeds' part"
    assert found["gaps"]["a"] == pytest.approx(np.mean(deltas[0]["0x"]) - np.mean(deltas[0]["4x"]))

    # The second audit shares its controls with the first.
    shared, interaction = np.mean([shared_and_interaction(scores(number)) for number in (0, 2)], axis=0)
    assert pilot["shared"] == pytest.approx(shared)
    assert pilot["interaction"] == pytest.approx(interaction)
    assert 0.05 < pilot["shared"] < 0.95


@pytest.mark.slow
def test_seconds_are_shared_out_by_the_tokens_that_were_trained_on(nonmember, folder):
    """120 s of 16 trainings of on average (9000 + 400 + 400 + 600) / 4 tokens; the third audit made nothing."""
    found = plan_of(nonmember(*FROM_AUDITS))
    rate = 120 / (16 * 2600)
    assert found["seconds"]["control"] == pytest.approx(rate * 9000)
    assert found["seconds"]["distillation_per_document"] == pytest.approx(rate * np.mean([400, 400, 600]) / N)
    given = plan_of(nonmember(*FROM_AUDITS, "seconds.control=7", "seconds.distillation=8"))
    assert given["seconds"] == {"control": 7, "distillation_per_document": 8}


@pytest.mark.slow
def test_without_the_store_compute_is_not_known(nonmember, folder):
    said = nonmember(*FROM_AUDITS, "store=elsewhere")
    assert plan_of(said)["seconds"] is None
    assert "How long it takes is not known" in said.out


@pytest.mark.slow
def test_each_planted_reading_is_told(nonmember, folder):
    said = nonmember(*FROM_AUDITS, "pilot.exclude=1x", "pilot.shared=0")
    found = plan_of(said)
    assert found["wanted"]["excluded"] == "1x"
    gaps = {label: item["pilot"]["gap"] for label, item in found["readings"].items()}
    assert gaps["1x"] < gaps["4x"] < gaps["12x"]
    assert "To exclude 1x and more: " in said.out
    cheapest = {
        label: item["designs"][0]["num_documents"] for label, item in found["readings"].items() if item["designs"]
    }
    assert cheapest["12x"] < cheapest.get("1x", np.inf)


@pytest.mark.slow
def test_sets_on_which_no_audit_would_succeed_are_named(nonmember, folder):
    flat = {label: [0.20 + 0.01 * index for index in range(2)] for label in controls()}
    path = folder / "audits" / "flat"
    made_up.write(path, clearance(0.2, corpus="flat", control_deltas=flat, num_documents=N))
    said = nonmember(*FROM_AUDITS, "pilot.shared=0", "pilot.folders=[audits]")
    assert plan_of(said)["sets_that_cannot_succeed"] == ["flat"]
    assert "no audit of any size would succeed on flat (1 of the 3 sets" in said.out


# ---------------------------------------------------------------------------------------------- bad input


def test_numbers_that_are_missing_are_named(nonmember):
    said = nonmember("plan", "pilot=numbers", "pilot.tau=0.1")
    assert "No value was given for pilot.delta_untouched and pilot.delta_controls" in in_one_sentence(said)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["error=5"], "error must be a number in (0, 0.5); got 5.0. For 5% pass 0.05"),
        (["power=1"], "power must be a number in (0, 1)"),
        (["pilot.tau=-1"], "0 or more"),
        (["seconds.control=3"], "Give both seconds.control and seconds.distillation"),
        (["max_controls=1"], "2 controls of each dose"),
        (["pwer=0.8"], "did you mean power?"),
    ],
)
def test_numbers_that_cannot_be(nonmember, more, told):
    assert told in in_one_sentence(nonmember(*NUMBERS, *more))


@pytest.mark.slow
def test_audits_that_do_not_tell_enough(nonmember, folder):
    assert "There is no result.json below nowhere" in in_one_sentence(nonmember("plan", "pilot.folders=[nowhere]"))
    assert "no result of calibrated clearance below audits/table2" in in_one_sentence(
        nonmember("plan", "pilot.folders=[audits/table2]")
    )
    assert "one of the readings that the audits planted (1x, 4x, 8x50%, 12x); got '3x'" in in_one_sentence(
        nonmember(*FROM_AUDITS, "pilot.exclude=3x")
    )
    (folder / "audits" / "calibration" / "0000" / "scores.parquet").unlink()
    assert "add pilot.shared=0, which is conservative" in in_one_sentence(nonmember(*FROM_AUDITS))


@pytest.mark.slow
def test_audits_of_different_kinds_make_no_pilot(nonmember, folder):
    for what, given in {
        "references": {"reference": "weak"},
        "rank metrics": {"settings": {"rank_metric": "kendall"}},
        "worlds": {"world": "pile"},
    }.items():
        shutil.rmtree(folder / "audits" / "more", ignore_errors=True)
        made_up.write(folder / "audits" / "more", clearance(0.2, corpus="c", num_documents=N, sweep="more", **given))
        assert f"have different {what}" in in_one_sentence(nonmember(*FROM_AUDITS))
    assert nonmember(*FROM_AUDITS, "pilot.folders=[audits/calibration]").status == 0


def test_help(nonmember, tmp_path):
    said = nonmember("plan", "--help")
    assert said.status == 0
    assert said.out.startswith("nonmember plan: ")
    assert "pilot" in said.out
    assert not list(tmp_path.iterdir())


# --------------------------------------------------------------------------------------- of the dose meter


@pytest.mark.slow
def test_a_plan_of_the_dose_meter_says_how_many_controls_and_documents(nonmember, tmp_path):
    made_up.write(tmp_path / "audits", *(traced(name=name) for name in ("scipy-a", "scipy-b")))
    said = nonmember("plan", "pilot=dose", "pilot.folders=[audits]", "max_documents=200", "seconds.control=360")
    found = plan_of(said)
    assert found["wanted"] == {"error": 0.05, "power": 0.9, "excluded": 1}
    best = found["best"]
    assert (best["num_controls"], best["rounds"]) == (len(DOSE_READINGS), 1)
    assert all(0 < least < 1 for least in best["least"].values())
    assert f"{best['num_documents']} documents and {len(DOSE_READINGS)} controls" in said.out
    assert "1 hours to train" in said.out
    assert "could not be determined for every set" in said.out  # no scores beside these results


def test_a_dose_too_small_for_any_design_is_said(nonmember, tmp_path):
    made_up.write(tmp_path / "audits", *(traced(name=name) for name in ("scipy-a", "scipy-b")))
    said = nonmember(
        "plan", "pilot=dose", "pilot.folders=[audits]", "pilot.exclude=0.001", "max_documents=100", "max_seeds=2"
    )
    assert plan_of(said)["best"] is None
    assert "more than is allowed here" in said.out


def test_a_plan_of_the_dose_meter_without_its_results_says_what_to_do(nonmember, tmp_path):
    made_up.write(tmp_path / "audits", clearance())
    told = in_one_sentence(nonmember("plan", "pilot=dose", "pilot.folders=[audits]"))
    assert "no result of the dose meter" in told
    assert "method=dose" in told
