"""What a run tells is told at once, always ended, and never the documents' text."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

import tiny
from nonmember.methods import Prism
from nonmember.pipeline import Audit, run_audit
from nonmember.scores import MinKPlusPlus
from nonmember.tracking import CsvLogging, NoLogging, RunInfo, Tracker, WandbLogging

pytestmark = tiny.ignore_warnings
MARKER = "xyzzyplugh"


def info(folder: Path, name: str = "seed=1") -> RunInfo:
    return RunInfo(name, "a-group", "prism", ["target", "texts"], {"seed": 1, "method": {"alpha": 0.05}}, folder)


def tell_a_little(tracker: Tracker) -> None:
    for step in range(3):
        tracker.log("train", {"loss": 1 / (step + 1), "ce": 2.0}, step)
        tracker.log("train_target", {"loss": 5.0}, 10 * step)
    tracker.summarise({"test/p_value": 0.25, "verdict": "inconclusive"})
    tracker.histogram("test/distribution", [0.1, 0.2])
    tracker.scores("scores", {"doc_id": ["d0", "d1"], "target": [0.5, float("nan")]})


def tell_a_little_and_fail(tracker: Tracker, error: BaseException) -> None:
    tell_a_little(tracker)
    raise error


def audit_with_marked_texts(logging, folder: Path) -> None:
    suspect = tiny.texts(*(f"{text} {MARKER}" for text in tiny.random_texts(31, seed=2)), name="suspect")
    method = Prism(MinKPlusPlus(0.2), tiny.distillation(), "spearman", 20, 0.05, 0.0, 64)
    shop = tiny.workshop(folder / "store")
    with logging.start(info(folder / "run")) as tracker:
        shop.tracker = tracker
        run_audit(
            Audit(tiny.scratch(1), tiny.scratch(2), suspect, method, 1, "texts"),
            shop,
            tracker,
            folder / "run",
        )


def files_with(folder: Path, word: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]


# CSV --------------------------------------------------------------------------------------------------------


def rows(folder: Path) -> list[tuple[str, str, str]]:
    with (folder / "metrics.csv").open(newline="") as stream:
        return [(row["name"], row["step"], row["value"]) for row in csv.DictReader(stream)]


def test_csv_lines_are_there_at_once(tmp_path):
    tracker = CsvLogging().start(info(tmp_path / "run"))
    tracker.log("train", {"loss": 0.5, "ce": 0.25}, 3)
    assert rows(tmp_path / "run") == [("train/loss", "3", "0.5"), ("train/ce", "3", "0.25")]
    tracker.summarise({"test/p_value": 1e-4, "verdict": "inconclusive"})
    assert rows(tmp_path / "run")[2:] == [("test/p_value", "", "0.0001"), ("verdict", "", "inconclusive")]
    tracker.finish(failed=False)
    tracker.finish(failed=True)  # ended once
    assert rows(tmp_path / "run")[4:] == [("status", "", "finished")]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_csv_says_that_a_run_failed(tmp_path, error):
    with pytest.raises(error), CsvLogging().start(info(tmp_path)) as tracker:
        tell_a_little_and_fail(tracker, error())
    assert rows(tmp_path)[-1] == ("status", "", "failed")


def test_no_logging_takes_everything_and_leaves_nothing(tmp_path):
    with NoLogging().start(info(tmp_path / "run")) as tracker:
        tell_a_little(tracker)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("role", "prefix"), [("distilled", "train"), ("target", "train_target"), ("model", "train_model")]
)
def test_curves_are_named_by_role(tmp_path, role, prefix):
    with CsvLogging().start(info(tmp_path)) as tracker, tracker.training(role) as (logger,):
        logger.log_metrics({"train/loss": 0.5, "epoch": 0}, step=7)
    assert rows(tmp_path)[:-1] == [(f"{prefix}/loss", "7", "0.5")]


def test_csv_of_an_audit_has_its_curves_and_its_end_and_no_text(tmp_path):
    audit_with_marked_texts(CsvLogging(), tmp_path)
    names = [name for name, _, _ in rows(tmp_path / "run")]
    assert {
        "train/loss",
        "train/ce",
        "train/kl",
        "test/p_value",
        "rho/reference_target",
        "health/kl_after",
    } <= set(names)
    assert names[-1] == "status"
    assert not files_with(tmp_path / "run", MARKER)


# W&B --------------------------------------------------------------------------------------------------------


@pytest.fixture
def no_home(monkeypatch):
    """No home that could be written to, and none of W&B's own settings."""
    import wandb

    monkeypatch.setenv("HOME", "/dev/null/nowhere")
    for name in (
        "WANDB_CACHE_DIR",
        "WANDB_CONFIG_DIR",
        "WANDB_DATA_DIR",
        "WANDB_DIR",
        "WANDB_API_KEY",
        "WANDB_MODE",
    ):
        monkeypatch.setenv(name, "set so that it is put back")
        monkeypatch.delenv(name)
    yield
    wandb.teardown()


def inspect(run: Path) -> dict[str, list[dict]]:
    """The records of an offline run by type, read by W&B's own reader."""
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", str(run)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    records: dict[str, list[dict]] = {}
    for line in lines:
        record = json.loads(line)
        records.setdefault(record["type"], []).append(record[record["type"]])
    return records


def test_wandb_offline_leaves_ended_runs_without_a_home_and_without_text(tmp_path, no_home):
    logging = WandbLogging("a-project", "offline", str(tmp_path / "logs"))
    audit_with_marked_texts(logging, tmp_path)
    left_open = logging.start(info(tmp_path, "left open"))
    with pytest.raises(RuntimeError, match="no luck"), logging.start(info(tmp_path, "another")) as tracker:
        tell_a_little_and_fail(tracker, RuntimeError("no luck"))
    left_open.finish(failed=False)

    told = {}
    for run in (tmp_path / "logs" / "wandb").glob("offline-run-*"):
        records = inspect(run)
        (about,) = records["run"]
        assert (about["project"], about["run_group"], about["job_type"]) == ("a-project", "a-group", "prism")
        assert about["tags"] == ["target", "texts"]
        assert about["config"]["update"].items() >= {"seed": 1, "method": {"alpha": 0.05}}.items()
        summary: dict = {}
        for record in records["summary"]:
            summary |= record["update"]
        told[about["display_name"]] = summary, records
    assert told.keys() == {"seed=1", "another", "left open"}  # several runs in one process are several runs

    summary, records = told["seed=1"]
    assert summary["status"] == "finished"
    assert records["exit"][0].get("exit_code", 0) == 0
    assert {
        "test/p_value",
        "test/statistic",
        "test/ci_low",
        "test/ci_high",
        "verdict",
        "num_documents",
    } <= summary.keys()
    assert {
        "rho/reference_target",
        "rho/distilled_target",
        "health/ce_before",
        "health/kl_after",
    } <= summary.keys()
    points = [record["item"] for record in records["history"]]
    assert [point["train/step"] for point in points if "train/loss" in point] == list(range(4))
    axes = {record["glob_name"]: record["step_metric"] for record in records["metric"] if "glob_name" in record}
    assert axes == {"train/*": "train/step"}

    summary, records = told["another"]
    assert summary["status"] == "failed"
    assert records["exit"][0]["exit_code"] == 1
    assert summary["test/p_value"] == 0.25
    points = [record["item"] for record in records["history"]]
    assert [point["train_target/step"] for point in points if "train_target/loss" in point] == [0, 10, 20]

    assert files_with(tmp_path / "logs", "suspect30")  # the ids are there, so the search does search
    assert not files_with(tmp_path / "logs", MARKER)


def test_wandb_online_without_a_key_says_what_to_do(tmp_path, no_home):
    with pytest.raises(ValueError, match=r"(?s)mode 'online'.*logger.mode=offline"):
        WandbLogging("a-project", "online", str(tmp_path)).start(info(tmp_path))
