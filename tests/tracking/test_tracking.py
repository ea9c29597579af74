"""What a run tells is told at once, always ended, and never the documents' text unless it is asked for."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

import tiny
from nonmember.audits.cell import Cell, run_cell
from nonmember.audits.question import Audit
from nonmember.audits.run import run_audit
from nonmember.methods import Prism
from nonmember.models import Pretrained
from nonmember.records.curves import read_curves
from nonmember.results.pictures import png_of
from nonmember.scores import MinKPlusPlus
from nonmember.tracking.curves import KeptCurves
from nonmember.tracking.trackers import CsvLogging, NoLogging, RunInfo, Tracker, WandbLogging, name_in_words, run_id_of
from nonmember.training import Trained
from wandb_helpers import config_in, inspect, summary_in, wandb_without_home

MARKER = "xyzzyplugh"


def info(folder: Path, name: str = "seed=1", **more: Any) -> RunInfo:
    config = {"seed": 1, "method": {"alpha": 0.05}}
    return RunInfo(name, "a-group", "prism", ["target", "texts"], config, folder, **more)


def tell_a_little(tracker: Tracker, then: BaseException | None = None) -> None:
    for step in range(3):
        tracker.log("train", {"loss": 1 / (step + 1), "ce": 2.0}, step)
        tracker.log("train_target", {"loss": 5.0}, 10 * step)
    tracker.summarise({"test/p_value": 0.25, "verdict": "inconclusive"})
    tracker.histogram("test/distribution", [0.1, 0.2])
    tracker.scores("scores", {"doc_id": ["d0", "d1"], "target": [0.5, float("nan")]})
    tracker.describe("cell", {"lambda": 0.5, "reference": None})
    tracker.figure("figure/ranks", picture())
    if then is not None:
        raise then


def picture() -> bytes:
    figure = Figure(figsize=(2, 1))
    figure.subplots().plot([0, 1], [1, 0])
    return png_of(figure)


def audit_with_marked_texts(logging, folder: Path) -> None:
    suspect = tiny.texts(*(f"{text} {MARKER}" for text in tiny.random_texts(31, seed=2)), name="suspect")
    method = Prism(MinKPlusPlus(0.2), tiny.distillation(), "spearman", 20, 0.05, 0.0, 64)
    shop = tiny.builder(folder / "store")
    with logging.start(info(folder / "run")) as tracker:
        shop.tracker = tracker
        run_audit(Audit(tiny.scratch(1), tiny.scratch(2), suspect, method, 1, "texts"), shop, folder / "run")


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
        tell_a_little(tracker, then=error())
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


@pytest.mark.slow
def test_csv_of_an_audit_has_its_curves_and_its_end_and_no_text(tmp_path):
    audit_with_marked_texts(CsvLogging(), tmp_path)
    names = [name for name, _, _ in rows(tmp_path / "run")]
    assert {"train/loss", "train/ce", "train/kl", "test/p_value", "rho/reference_target", "health/kl_after"} <= {*names}
    assert names[-1] == "status"
    assert not files_with(tmp_path / "run", MARKER)


# W&B --------------------------------------------------------------------------------------------------------


@pytest.fixture
def no_home(monkeypatch):
    with wandb_without_home(monkeypatch):
        yield


@pytest.mark.slow
def test_wandb_offline_leaves_ended_runs_without_a_home_and_without_text(tmp_path, no_home):
    logging = WandbLogging("a-project", "offline", str(tmp_path / "logs"))
    audit_with_marked_texts(logging, tmp_path)
    left_open = logging.start(info(tmp_path, "left open"))
    with pytest.raises(RuntimeError, match="no luck"), logging.start(info(tmp_path, "another")) as tracker:
        tell_a_little(tracker, then=RuntimeError("no luck"))
    left_open.finish(failed=False)

    told = {}
    for run in (tmp_path / "logs" / "wandb").glob("offline-run-*"):
        records = inspect(run)
        (about,) = records["run"]
        assert (about["project"], about["run_group"], about["job_type"]) == ("a-project", "a-group", "prism")
        assert about["tags"] == ["target", "texts"]
        assert about["config"]["update"].items() >= {"seed": 1, "method": {"alpha": 0.05}}.items()
        told[about["display_name"]] = summary_in(records), records
    assert told.keys() == {"seed 1", "another", "left open"}  # several runs in one process are several runs

    summary, records = told["seed 1"]
    assert summary["status"] == "finished"
    assert records["exit"][0].get("exit_code", 0) == 0
    assert {"test/p_value", "test/statistic", "test/ci_low", "verdict", "num_documents"} <= summary.keys()
    assert {"rho/reference_target", "rho/distilled_target", "health/ce_before", "health/kl_after"} <= summary.keys()
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
    assert config_in(records)["cell"] == {"lambda": 0.5, "reference": None}
    assert [point["figure/ranks._type"] for point in points if "figure/ranks._type" in point] == ["image-file"]

    assert files_with(tmp_path / "logs", "suspect30")  # the ids are there, so the search does search
    assert not files_with(tmp_path / "logs", MARKER)


def test_wandb_online_without_a_key_says_what_to_do(tmp_path, no_home):
    with pytest.raises(ValueError, match=r"(?s)mode 'online'.*logger.wandb.mode=offline"):
        WandbLogging("a-project", "online", str(tmp_path)).start(info(tmp_path))


def test_a_run_has_the_id_of_its_question():
    ours = run_id_of("demo", "seed=1", "0123456789abcdef")
    assert ours == "626c4f7b4ca8368e"
    others = {run_id_of(*words) for words in (("dem", "seed=1", "0"), ("demo", "seed=2", "0"), ("demo", "seed=1", "1"))}
    assert len(others | {ours}) == 4


@pytest.mark.slow
def test_wandb_knows_a_run_by_that_id(tmp_path, no_home):
    logging = WandbLogging("a-project", "offline", str(tmp_path / "logs"))
    (tmp_path / "run").mkdir()
    told = replace(info(tmp_path / "run", run_id="0123456789abcdef"), tags=["x" * 100])
    with logging.start(told):
        pass
    (run,) = (tmp_path / "logs" / "wandb").glob("offline-run-*")
    (about,) = inspect(run)["run"]
    assert about["run_id"] == "0123456789abcdef"
    assert about["tags"] == ["x" * 64], "W&B refuses longer ones"
    assert logging.has(told)
    assert not replace(logging, project="another").has(told)
    assert not logging.has(replace(told, run_id="fedcba9876543210"))


def test_every_cell_has_one_run_that_tells_where_its_numbers_come_from(tmp_path, no_home, monkeypatch):
    """Of a cell that was found, whose models came from the store, as of one that was made."""
    monkeypatch.setattr("nonmember.audits.run.commit", lambda: "0123456789" * 4)
    loaded = tiny.builder(tmp_path / "store").get(tiny.scratch(2))
    for part in (loaded.model, loaded.tokenizer):
        part.save_pretrained(tmp_path / "reference")
    target = Trained(tiny.scratch(1), tiny.pretraining(), tiny.GENERAL, seed=1, label="target")
    method = Prism(MinKPlusPlus(0.2), tiny.distillation(), "spearman", 20, 0.05, 0.0, 64)
    audit = Audit(target, Pretrained(str(tmp_path / "reference")), tiny.SUSPECT, method, 1, "texts", sweep="a-sweep")
    wandb = WandbLogging("a-project", "offline", str(tmp_path / "logs"))
    for name, logging in (("found", NoLogging()), ("made", wandb), ("found", wandb), ("found", wandb)):
        (tmp_path / name).mkdir(exist_ok=True)
        result = run_cell(
            Cell(audit, tmp_path / name, {"seed": 1}, ["texts"], logging), tiny.builder(tmp_path / "store")
        )

    runs = {
        (told := inspect(run))["run"][0]["display_name"]: told for run in (tmp_path / "logs/wandb").glob("offline*")
    }
    assert len(list((tmp_path / "logs/wandb").glob("offline*"))) == len(runs) == 2
    (curves,) = (tmp_path / "store").glob("models/target-*/curves.csv")
    losses = [float(value) for name, _, value in csv.reader(curves.open()) if name == "loss"]
    for name, records in runs.items():
        told = config_in(records)["provenance"]
        assert config_in(records)["seed"] == 1
        assert records["run"][0]["run_group"] == "a-sweep"
        assert told["keys"] == result.provenance.keys
        assert told["keys"]["corpus"] == tiny.SUSPECT.fingerprint(tiny.builder(tmp_path / "store"))
        assert told["versions"] == result.provenance.versions
        assert told["commit"] == "0123456789" * 4
        assert told["sources"]["reference"] == result.provenance.sources["reference"] != ""
        assert summary_in(records)["warnings"] == "\n".join(result.verdict.warnings)
        points = [record["item"] for record in records["history"]]
        assert [point["train_target/loss"] for point in points if "train_target/loss" in point] == losses
        assert any("train/kl" in point for point in points)
        (artifact,) = (item for item in records["artifact"] if item["type"] == "audit")
        assert artifact["name"] == f"audit-{result.provenance.keys['audit']}"
        kept = {item["path"]: Path(item["local_path"]).read_bytes() for item in artifact["manifest"]["contents"]}
        assert json.loads(kept["result.json"])["provenance"]["commit"] == told["commit"]
        assert kept == {file: (tmp_path / name / file).read_bytes() for file in ("result.json", "scores.parquet")}


def test_curves_go_on_where_training_does(tmp_path):
    for steps in (range(5), range(3, 7)):  # killed after step 4, gone on from the point after step 2
        log = KeptCurves(tmp_path / "curves.csv")
        for step in steps:
            log.log_metrics({"train/loss": float(step), "epoch": 0}, step)
    assert read_curves(tmp_path / "curves.csv") == [("loss", step, float(step)) for step in range(7)]


def test_a_run_that_failed_is_logged_again(tmp_path):
    folder = tmp_path / "run"
    told = info(folder, run_id="an-id")
    with pytest.raises(RuntimeError), CsvLogging().start(told):
        raise RuntimeError
    assert not CsvLogging().has(told)
    with CsvLogging().start(told):
        pass
    assert CsvLogging().has(told)
    (folder / "logged.json").write_text("{")
    assert not CsvLogging().has(told)


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        (
            "data.domain=scipy,data.half=a,method.distillation.lambda_=0.3,method.score.k=0.4",
            "scipy-a · lambda .3 · K .4",
        ),
        ("model@target=micro_target,score@method.score=loss,seed=2", "micro_target · loss · seed 2"),
        ("data.num_documents=null,method.scores=_a,b_", "num documents null · scores _a,b_"),
        ("prism-docs-SmolLM2-1a2b3c4d", "prism-docs-SmolLM2-1a2b3c4d"),
        ("default", "default"),
    ],
)
def test_a_run_is_named_by_what_differs(folder, name):
    assert name_in_words(folder, {"method": {"score": None}}) == name


def test_a_run_of_ones_own_models_is_named_by_what_is_swept():
    config = {"method": {"distillation": {"lambda_": 0.3, "tau": 2.0}, "score": {"k": 0.4}}}
    assert name_in_words("prism-docs-1a2b", config) == "prism-docs-1a2b · lambda .3 · tau 2 · K .4"
    assert name_in_words("seed=2", config) == "seed 2"
