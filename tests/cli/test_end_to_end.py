"""From the command line to results on disk in seconds: two-layer models, 40 documents."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from command_line import Said, numbers, only, rows_of, write_rows
from nonmember.results.result import AuditResult


def result_of(name: str = "mine") -> dict:
    return json.loads(only(Path("outputs/audits", name), "*/result.json").read_text())


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def once(tmp_path_factory) -> dict[str, Any]:
    return {"folder": tmp_path_factory.mktemp("answered")}


@pytest.fixture
def answered(nonmember, ask, texts, once, monkeypatch) -> tuple[list[str], Said]:
    """One audit for all tests that change nothing of it: its arguments and what it said. Its folder is the current."""
    monkeypatch.chdir(once["folder"])
    if "said" not in once:
        documents = write_rows(once["folder"] / "documents.jsonl", rows_of(texts))
        size = "method.distillation.optimization.batch_size=8"
        once["arguments"] = ask("seed=5", "logger=csv", size, documents=documents)
        once["said"] = nonmember(*once["arguments"])
    return once["arguments"], once["said"]


# --------------------------------------------------------------------------------------------- audit


@pytest.mark.slow
def test_an_audit_says_what_the_issue_asks_for(answered):
    _, said = answered
    assert (said.status, said.err) == (0, "")
    result = result_of()
    parts = "schema_version answer question statistics verdict health exclusions provenance seal"
    assert list(result) == parts.split()
    asked, found = result["question"], result["statistics"]
    assert (asked["method"], asked["target"], asked["reference"]) == ("prism", "tiny0", "tiny1")
    assert (asked["corpus"], asked["truth"], asked["seed"], asked["alpha"]) == ("documents", None, 5, 0.05)
    assert (found["num_documents"], result["exclusions"]["documents"]) == (40, {})
    difference = found["details"]["rho_reference_target"] - found["details"]["rho_distilled_target"]
    assert found["value"] == pytest.approx(difference, abs=1e-12)
    assert found["ci_low"] <= found["value"] <= found["ci_high"]
    assert found["p_value"] * 201 == pytest.approx(round(found["p_value"] * 201))
    assert set(result["provenance"]["keys"]) == {"target", "reference", "distilled", "corpus", "audit"}
    assert set(result["health"]["training"]) == {"ce_before", "kl_before", "ce_after", "kl_after"}
    assert {"torch", "transformers", "nonmember", "python"} <= set(result["provenance"]["versions"])
    assert any("below 150" in warning for warning in result["verdict"]["warnings"])
    scores = pq.read_table(only(Path(), "outputs/audits/*/*/scores.parquet"))
    assert scores.column_names == ["doc_id", "target", "reference", "distilled"]
    assert scores["doc_id"].to_pylist() == [f"d{number}" for number in range(40)]
    assert len(pq.read_table(only(Path(), "outputs/audits/*/*/distribution.parquet"))) == 200


@pytest.mark.slow
def test_the_closing_table(nonmember, answered):
    _, said = answered
    row = next(line for line in said.out.splitlines() if "documents under tiny0 │" in line)
    result = result_of()
    found = result["statistics"]
    expected = [
        "documents under tiny0",
        "40",
        f"{found['details']['rho_reference_target']:.3f}",
        f"{found['details']['rho_distilled_target']:.3f}",
        f"{found['value']:+.3f} [{found['ci_low']:+.3f}, {found['ci_high']:+.3f}]",
        f"{found['p_value']:.4f}",
        "no answer",
    ]
    assert [cell.strip() for cell in row.strip("│").split("│")] == expected
    assert "models trained: 1, models found: 0, " in said.out
    again = nonmember("table", "outputs/audits")
    assert row in again.out


def test_a_second_run_finds_the_first(nonmember, answered):
    arguments, first = answered
    before = files_below(Path("outputs/store")) | files_below(only(Path(), "outputs/audits/*/*/result.json").parent)
    second = nonmember(*arguments)
    assert first.status == second.status == 0
    assert "prism: documents under tiny0: found." in second.out
    assert "models trained: 0, models found: 0, tokens observed: 0, observations found: 0" in second.out
    after = files_below(Path("outputs"))
    for path, content in before.items():
        if path.endswith((".json", ".parquet", ".csv", ".safetensors")):
            assert after[path] == content, path


@pytest.mark.slow
def test_the_same_question_elsewhere_has_the_same_answer(nonmember, answered, tmp_path, monkeypatch):
    arguments, _ = answered
    first = result_of()
    monkeypatch.chdir(tmp_path)
    assert nonmember(*arguments, "name=elsewhere", "store=other").status == 0
    assert numbers(result_of("elsewhere")) == numbers(first)


@pytest.mark.slow
def test_what_differs_shares_what_does_not(nonmember, answered, tmp_path, monkeypatch):
    """A sweep over the test's settings costs no forward pass; one over lambda shares target and reference."""
    arguments, _ = answered
    shutil.copytree("outputs", tmp_path / "outputs")
    monkeypatch.chdir(tmp_path)
    assert nonmember(*arguments, "name=two", "method.score.k=.5", "method.rank_metric=kendall").status == 0
    assert result_of("two")["provenance"]["made"] == {
        "models_trained": 0,
        "models_found": 1,
        "tokens_observed": 0,
        "observations_found": 3,
        "answers_asked": 0,
        "answers_found": 0,
    }
    assert nonmember(*arguments, "name=three", "method.distillation.lambda_=.3").status == 0
    made = result_of("three")["provenance"]["made"]
    assert (made["models_trained"], made["observations_found"]) == (1, 2)
    assert len({result_of(name)["provenance"]["keys"]["audit"] for name in ("mine", "two", "three")}) == 3


@pytest.mark.slow
def test_the_paired_t_baseline(nonmember, ask):
    arguments = [argument for argument in ask("method=paired_t") if not argument.startswith("method.num_resamples")]
    said = nonmember(*arguments)
    assert (said.status, said.err) == (0, "")
    result = result_of()
    assert (result["question"]["method"], result["verdict"]["decision"]) == ("paired_t", "score_only")
    assert result["statistics"]["ci_low"] is None
    assert "rho_reference_target" not in result["statistics"]["details"]
    assert "rho_RT" not in said.out, "a column that no result fills"


# ------------------------------------------------------------------------------------------ tracking


def test_csv_tracking(answered):
    with only(Path(), "outputs/audits/*/*/metrics.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    named = {row["name"] for row in rows}
    assert {"train/loss", "train/ce", "train/kl", "train/learning_rate", "test/p_value", "test/statistic"} <= named
    assert {"rho/reference_target", "rho/distilled_target", "health/ce_after", "verdict", "num_documents"} <= named
    assert sum(row["name"] == "train/loss" for row in rows) == 5, "a point per step"
    assert (rows[-1]["name"], rows[-1]["value"]) == ("status", "finished")
    written = {row["name"]: row["value"] for row in rows}
    assert float(written["test/p_value"]) == result_of()["statistics"]["p_value"]


# What a tracker then does with W&B: tests/tracking.
@pytest.mark.parametrize("logger", ["csv", pytest.param("wandb", marks=pytest.mark.slow)])
def test_a_failed_audit_leaves_a_finished_run_marked_so(nonmember, ask, make_model, logger):
    """Where the failure comes after the run has begun."""
    assert nonmember(*ask(f"logger={logger}", target=make_model(0, extra_rows=-10))).status == 1
    if logger == "csv":
        assert only(Path(), "outputs/audits/*/*/metrics.csv").read_text().splitlines()[-1] == "status,,failed"
    else:
        assert b'"failed"' in wandb_run(until=b'"failed"')


def wandb_run(until: bytes) -> bytes:
    """All that W&B wrote about the only run; its own process writes the end a moment after we are done."""
    for _ in range(100):
        written = b"".join(files_below(only(Path(), "outputs/wandb/wandb/offline-run-*")).values())
        if until in written:
            break
        time.sleep(0.1)
    return written


@pytest.mark.slow  # tracking/test_tracking.py reads back what W&B writes, without the command around it
def test_wandb_offline(nonmember, ask, texts, monkeypatch, tmp_path):
    """No account, no network, no home to write to; and no document leaves for the run's files."""
    monkeypatch.setenv("HOME", str(tmp_path / "no" / "home"))
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    said = nonmember(*ask("logger=wandb", "logger.wandb.mode=offline"))
    assert (said.status, said.err) == (0, "")
    written = wandb_run(until=b'"finished"')
    for name in ("test/p_value", "rho/distilled_target", "health/kl_after", "train/loss", "train/kl"):
        assert name.encode() in written
    assert b"d17" in written, "scores per document are there,"
    assert not [text for text in texts if text.encode() in written], "texts are not"
    assert not (tmp_path / "no").exists()


# ------------------------------------------------------------------------------- held-out text


@pytest.mark.slow
def test_methods_that_compare_take_held_out_text(nonmember, ask, tmp_path):
    from tiny import random_texts

    rows = [{"id": f"h{n}", "text": text} for n, text in enumerate(random_texts(40, seed=9))]
    unseen = write_rows(tmp_path / "unseen.jsonl", rows)
    plain = [item for item in ask("name=compared") if not item.startswith("method.")]
    refused = nonmember(*plain, "method=blind")
    assert refused.status == 1
    assert "+data@data.heldout=documents data.heldout.path=FILE" in refused.err
    given = ["+data@data.heldout=jsonl", f"data.heldout.path={unseen}"]
    for method in ("blind", "llm_di"):
        said = nonmember(*plain, *given, f"method={method}", f"name={method}")
        assert (said.status, said.err) == (0, "")
        result = result_of(method)
        assert (result["question"]["method"], result["question"]["heldout"], result["question"]["world"]) == (
            method,
            "unseen",
            "own",
        )
        assert result["statistics"]["details"]["num_heldout"] == 40


# ---------------------------------------------------------------------------------------- many cells

CHEAP = ("method=rank_agreement", "method.num_resamples=20")


@pytest.mark.slow
def test_one_failed_cell_does_not_stop_the_others(nonmember, ask, tmp_path):
    broken = write_rows(tmp_path / "b.jsonl", [{"id": "a", "txt": "moss"}])
    sound = tmp_path / "documents.jsonl"
    arguments = [
        f"data.path={broken},{sound}" if item.startswith("data.path=") else item for item in ask("name=both", *CHEAP)
    ]
    said = nonmember(arguments[0], "-m", *arguments[1:])
    assert said.status == 1
    assert said.err.startswith("nonmember audit: ")
    assert said.err.count("\n") == 1
    assert "has no column 'text'" in said.err
    error = json.loads(only(Path("outputs/audits/both"), "*/error.json").read_text())
    assert "has no column 'text'" in error["error"]
    assert "b.jsonl" in error["cell"]
    assert result_of("both")["question"]["corpus"] == "documents"
    rows = [line for line in said.out.splitlines() if "│" in line]
    assert [("failed" in row, "documents under tiny0" in row) for row in rows if "failed" in row or "under" in row] == [
        (False, True),
        (True, False),
    ]
    assert said.out.count(error["error"]) == 1
    # Repaired and started again: one cell is made, the other found, and the mark of the failure goes.
    broken.write_bytes(sound.read_bytes())
    again = nonmember(arguments[0], "-m", *arguments[1:])
    assert again.status == 0
    assert again.out.count(": found.") == 1
    assert len(list(Path("outputs/audits/both").glob("*/result.json"))) == 2
    assert not list(Path("outputs/audits/both").glob("*/error.json"))


@pytest.mark.slow
def test_fail_fast_begins_nothing_after_a_failure(nonmember, ask, tmp_path):
    broken = write_rows(tmp_path / "broken.jsonl", [{"id": "a", "txt": "moss"}])
    sound = tmp_path / "documents.jsonl"
    paths = f"data.path={sound},{broken},{sound}"
    arguments = [
        paths if item.startswith("data.path=") else item for item in ask("name=fast", "fail_fast=true", *CHEAP)
    ]
    said = nonmember(arguments[0], "-m", *arguments[1:])
    assert said.status == 1
    assert len(list(Path("outputs/audits/fast").glob("*/result.json"))) == 1
    assert len(list(Path("outputs/audits/fast").glob("*/error.json"))) == 1
    assert said.out.count("Not run, because an earlier audit failed") == 1


@pytest.mark.slow
def test_a_world_with_known_truth(nonmember, tmp_path):
    """Recipes from the first tokenizer to the verdict: what a target has read is looked up, not declared."""
    from tiny import random_texts

    for seed, name in enumerate(("general", "first", "second")):
        rows = [{"id": f"{name}{n}", "text": text} for n, text in enumerate(random_texts(70, seed=seed))]
        write_rows(tmp_path / f"{name}.jsonl", rows)
    parts = ("pretraining", "continuation")
    world = [
        "world=pile",
        "world.suspects=[first,second]",
        "world.num_documents=32",
        "world.library.source.path=[first.jsonl,second.jsonl]",
        "world.library.min_words=5",
        "world.general.source.path=[general.jsonl]",
        "world.general.min_words=5",
        *(f"world.{part}.sizes.{size}=30" for part in parts for size in parts),
    ]
    experiments = "experiment=untouched_on_a,high_on_a,high_on_b"
    said = nonmember(
        "audit", "-m", "method=prism", *world, experiments, "method.num_resamples=50", "logger=none", "name=truth"
    )
    assert (said.status, said.err) == (0, "")
    results = [AuditResult.load(path) for path in sorted(Path("outputs/audits/truth").glob("*/result.json"))]
    found = {
        (result.question.corpus, result.question.target.split("+")[-1][-1], result.question.truth) for result in results
    }
    assert found == {("first-a", "t", "non_member"), ("first-a", "A", "member"), ("first-b", "A", "non_member")}
    assert "models trained: 6, " in said.out, "target, reference, member target and three distilled references"
    trained = nonmember("train", *world, "model=micro_target", "logger=none")
    assert trained.status == 0
    folder = Path(trained.last_line)
    assert folder.parent == (tmp_path / "outputs/store/models"), "found, not made again"
    copied = nonmember("train", *world, "model=micro_target", "logger=none", "export=copy")
    assert Path(copied.last_line) == tmp_path / "copy"
    assert (tmp_path / "copy" / "model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()
    assert not (tmp_path / "copy" / "sidecar.json").exists()
    refused = nonmember("train", *world, "model=micro_target", "logger=none", "export=copy")
    assert refused.status == 1
    assert "copy already exists; name a new folder" in refused.err


# -------------------------------------------------------------------------------------------- killed


@pytest.mark.slow  # training/test_resume.py stops and resumes training in many places, in one process
def test_killed_in_the_middle_of_training_and_started_again(nonmember, ask, tmp_path):
    """SIGKILL, which nobody can catch: it goes on from the resume point to an uninterrupted run's numbers."""
    long = ["method.distillation.optimization.batch_size=2", "method.distillation.optimization.epochs=8"]  # 160 steps
    arguments = ask(*long, "logger=csv")
    command = [sys.executable, "-m", "nonmember.cli", *arguments, "trainer.checkpoint_seconds=0"]
    process = subprocess.Popen(
        command, cwd=tmp_path, env=dict(os.environ), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    seen: set[str] = set()
    deadline = time.monotonic() + 120
    while len(seen) < 5:  # several resume points have been replaced
        assert process.poll() is None, process.stdout.read().decode()
        assert time.monotonic() < deadline
        seen |= {path.name for path in tmp_path.glob("outputs/store/models/.partial-*/.resume-*.ckpt")}
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()
    assert not list(tmp_path.glob("outputs/store/models/[!.]*")), "a half-trained model is no entry"
    assert not list(tmp_path.rglob("result.json"))

    said = nonmember(*arguments)
    assert (said.status, said.err) == (0, "")
    assert "continuing from the point that an earlier run reached" in said.out
    assert result_of()["provenance"]["made"] | {"tokens_observed": 0} == {
        "models_trained": 1,
        "models_found": 0,
        "tokens_observed": 0,
        "observations_found": 2,
        "answers_asked": 0,
        "answers_found": 0,
    }
    assert not list(tmp_path.rglob(".partial-*"))
    assert nonmember(*arguments, "name=uninterrupted", "store=elsewhere").status == 0
    assert numbers(result_of()) == numbers(result_of("uninterrupted"))
    (item,), (other,) = (list(Path(root).glob("models/*/model.safetensors")) for root in ("outputs/store", "elsewhere"))
    assert item.read_bytes() == other.read_bytes()
