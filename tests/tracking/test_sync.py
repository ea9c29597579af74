"""Every audit on disk is in W&B once, whatever was interrupted, repeated or changed."""

from __future__ import annotations

import json
import socket
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from nonmember.artifacts.store import SIDECAR
from nonmember.cli import sync
from nonmember.records.curves import CURVES
from nonmember.results.result import RESULT
from nonmember.sweeps.running import shared
from nonmember.tracking.online import Unreachable
from nonmember.tracking.trackers import NoTracker, RunInfo, run_id_of
from wandb_helpers import config_in, inspect, lay_down, lay_down_failure, result, summary_in, wandb_without_home

MODEL = "feedfeedfeedfeed"  # the key of the one that is in the store


@pytest.fixture
def outputs(tmp_path, monkeypatch) -> Path:
    """Three audits, one of them failed."""
    for variable in ("WANDB_PROJECT", "WANDB_ENTITY", "WANDB_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("NONMEMBER_OUTPUTS", str(tmp_path / "out"))
    keys = result().provenance.keys | {"target": MODEL}
    for cell in ("seed=1", "seed=2"):
        lay_down(tmp_path / "out/audits/demo" / cell, result(cell=cell, keys=keys))
    model = tmp_path / f"out/store/models/a-model-{MODEL}"
    model.mkdir(parents=True)
    (model / SIDECAR).write_text("{}")
    (model / CURVES).write_text("name,step,value\nloss,9,3.5\nce,9,3.5\nloss,19,2.5\nce,19,2.5\n")
    lay_down_failure(tmp_path / "out/audits/demo/seed=3", "No such model.")
    return tmp_path / "out"


@pytest.fixture
def call(monkeypatch, capfd):
    """What `nonmember sync` writes, last line first told apart from errors."""

    def call(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["nonmember sync", *arguments])
        sync.main()
        return capfd.readouterr().out

    return call


class Server:
    """Stands for W&B: what it was sent, by run id. reject: the name of a cell it does not take."""

    def __init__(self):
        self.runs: dict[str, dict[str, Any]] = {}
        self.sent: list[str] = []
        self.reject: dict[str, Exception] = {}
        self.settings: list[tuple] = []
        self.live: set[str | None] = set()

    def logging(self, *settings: Any, **more: Any) -> Server:
        self.settings.append((settings, more))
        return self

    def has(self, info: RunInfo) -> bool:
        return info.run_id in self.live

    def start(self, info: RunInfo) -> Sent:
        if info.name in self.reject:
            raise self.reject[info.name]
        assert info.run_id is not None
        self.sent.append(info.name)
        return self.runs.setdefault(info.run_id, {"info": info}).setdefault("tracker", Sent(self.runs[info.run_id]))


class Sent(NoTracker):
    def __init__(self, run: dict[str, Any]):
        self.run = run

    def summarise(self, values):
        self.run |= values

    def training_again(self, role, curves):
        self.run[role] = curves.parent.name

    def finish(self, *, failed):
        self.run["failed"] = failed


@pytest.fixture
def server(monkeypatch) -> Server:
    server = Server()
    monkeypatch.setattr(sync, "WandbLogging", server.logging)
    return server


def test_twice_does_not_double(outputs, server, call):
    assert call() == "sent 3, already there 0, failed 0\n"
    assert call() == "sent 0, already there 3, failed 0\n"
    assert server.sent == ["seed=1", "seed=2", "seed=3"]
    key = result().provenance.keys["audit"]
    ids = [run_id_of("demo", "seed=1", key), run_id_of("demo", "seed=2", key), run_id_of("demo", "seed=3", "")]
    assert list(server.runs) == ids


def test_what_a_run_is_called(outputs, server, call):
    call()
    first, _, failed = server.runs.values()
    info = first["info"]
    assert (info.group, info.name, info.job_type, info.tags) == (
        "demo",
        "seed=1",
        "prism",
        ["scipy-a", "micro_target_high"],
    )
    assert info.config == {"name": "demo", "seed": 1234}
    assert (first["failed"], first["test/p_value"]) == (False, 0.93)
    info = failed["info"]
    assert (info.group, info.name, info.job_type, info.tags) == ("demo", "seed=3", "paired_t", ["scipy-a"])
    assert (failed["failed"], failed["error"], failed["error_kind"]) == (True, "No such model.", "ValueError")


def test_another_destination_is_sent_all(outputs, server, call):
    call("--mode", "online", "--project", "p")
    for arguments in (["--mode", "offline", "--project", "p"], ["--mode", "online", "--project", "q"]):
        assert call(*arguments).startswith("sent 3, ")
    assert call("--mode", "online", "--project", "p", "--entity", "e").startswith("sent 3, ")
    assert call("--mode", "online", "--project", "p").startswith("sent 0, ")
    assert server.settings[0] == (("p", "online", str(outputs / "wandb")), {"entity": None, "log_text": False})


def test_a_changed_result_is_sent_again_under_its_id(outputs, server, call):
    call()
    changed = result(cell="seed=2", p_value=0.5)
    (outputs / "audits/demo/seed=2" / RESULT).write_text(changed.to_json())
    assert call() == "sent 1, already there 2, failed 0\n"
    assert len(server.runs) == 3
    assert server.runs[run_id_of("demo", "seed=2", changed.provenance.keys["audit"])]["test/p_value"] == 0.5


def test_what_went_before_an_interruption_is_not_sent_again(outputs, server, call):
    server.reject["seed=2"] = KeyboardInterrupt()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        call()
    server.reject.clear()
    assert call() == "sent 2, already there 1, failed 0\n"
    assert server.sent == ["seed=1", "seed=2", "seed=3"]


def test_one_that_cannot_be_sent_does_not_stop_the_others(outputs, server, call, capfd):
    server.reject["seed=1"] = ValueError("The server has no room.")
    (outputs / "audits/demo/seed=2" / RESULT).write_text("{")
    with pytest.raises(ValueError, match="2 of 3 could not be sent"):
        call()
    said = capfd.readouterr()
    assert said.out == "sent 1, already there 0, failed 2\n"
    assert "not sent  seed=1: The server has no room.\n" in said.err
    assert "is not a result this version can read" in said.err
    server.reject.clear()
    with pytest.raises(ValueError, match="1 of 3"):
        call()
    assert server.sent == ["seed=3", "seed=1"]


def test_without_a_way_to_wandb_the_rest_is_not_tried(outputs, server, call):
    server.reject["seed=1"] = Unreachable("W&B in mode 'online' needs a key")
    with pytest.raises(Unreachable, match="needs a key"):
        call()
    assert server.sent == []


def test_a_dry_run_sends_nothing(outputs, server, call):
    said = call("--dry-run")
    assert said.splitlines()[-1] == "would send 3, already there 0, failed 0"
    assert f"would send demo/seed=3 as {run_id_of('demo', 'seed=3', '')}\n" in said
    assert server.sent == []
    assert call() == "sent 3, already there 0, failed 0\n"
    assert call("--dry-run") == "would send 0, already there 3, failed 0\n"


def test_a_run_noted_under_another_id_is_that_run(outputs, server, call):
    """That of a W&B sweep, or of the live run that failed."""
    expected = run_id_of("demo", "seed=1", result().provenance.keys["audit"])
    note = {"id": "given-by-an-agent", "instead_of": expected, "failed": False}
    (outputs / "audits/demo/seed=1/wandb.json").write_text(json.dumps(note))
    note = {"id": "of-the-live-run", "instead_of": "of-the-live-run", "failed": True}
    (outputs / "audits/demo/seed=3/wandb.json").write_text(json.dumps(note))
    call()
    assert list(server.runs)[::2] == ["given-by-an-agent", "of-the-live-run"]


def test_texts_go_along_only_where_asked_for(outputs, server, call, monkeypatch):
    def texts_of(cell, given):
        assert given == {"f": {}}
        asked.append(cell.outcome.question.cell)
        return {}

    asked: list[str] = []
    monkeypatch.setattr(sync, "texts_of", texts_of)
    monkeypatch.setattr(sync, "given_documents", lambda words: {"f": {}})
    call()
    assert asked == []
    assert call("--text").startswith("sent 3, "), "more than what is there"
    assert asked == ["seed=1", "seed=2"]
    assert server.settings[-1][1]["log_text"] is True


@pytest.mark.slow
def test_texts_are_those_that_the_user_names(nonmember, ask, tmp_path, server, call, monkeypatch, capfd):
    said = nonmember(*ask())
    assert said.status == 0, said.err
    monkeypatch.delenv("NONMEMBER_OUTPUTS", raising=False)
    told = []
    monkeypatch.setattr(sync, "mirror", lambda *arguments: told.append(arguments[-1]))
    words = ["--text", f"data.path={tmp_path / 'documents.jsonl'}"]  # as the help has it: without held-out text
    assert call(*words).endswith("\nsent 1, already there 0, failed 0\n")
    rows = [json.loads(line) for line in (tmp_path / "documents.jsonl").read_text().splitlines()]
    assert told == [{"suspect": {row["id"]: row["text"] for row in rows}}]
    (tmp_path / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[1:]))
    shared.cache_clear()
    with pytest.raises(ValueError, match="could not be sent"):
        call(*words)
    assert "--text must name the documents of the audit; got others." in capfd.readouterr().err
    with pytest.raises(ValueError, match="Put a folder before --text"):
        call("--text", "outputs/audits")


def test_the_config_of_an_audit_folder_is_never_built(outputs, server, call, monkeypatch):
    """It may come from a stranger: its values are sent as text, and its targets are not even looked up."""
    opened = {"_target_": "nonmember.corpora.Jsonl", "path": "/etc/passwd", "id_field": "id", "text_field": "text"}
    evil = {"_target_": "shutil.copy", "src": "config.json", "dst": "copied"}
    path = outputs / "audits/demo/seed=1/config.json"
    path.write_text(json.dumps({"name": "demo", "data": {"corpus": opened}, "method": evil, "target": evil}))
    monkeypatch.setattr("nonmember.config.safety.instantiate", None)
    monkeypatch.setattr(sync, "given_documents", lambda words: {"f" * 64: {"d0": "text"}})
    call("--text", "data.path=documents.jsonl")
    assert server.sent


def test_curves_come_from_the_store_unless_the_live_run_has_them(outputs, server, call, tmp_path, capfd):
    server.live = {run_id_of("demo", "seed=2", result().provenance.keys["audit"])}
    call()
    assert [run.get("target") for run in server.runs.values()] == [f"a-model-{MODEL}", None, None]
    (outputs / "store").rename(tmp_path / "elsewhere")
    server.runs.clear()
    call("--project", "q")
    assert not any("target" in run for run in server.runs.values())
    call("--project", "r", "--store", str(tmp_path / "elsewhere"))
    assert next(iter(server.runs.values()))["target"] == f"a-model-{MODEL}"


def test_an_empty_folder(outputs, call, tmp_path):
    with pytest.raises(ValueError, match=r"There is no result\.json below .*empty"):
        call(str(tmp_path / "empty"))


def test_a_damaged_ledger(outputs, call, server):
    (outputs / "wandb").mkdir()
    (outputs / "wandb/synced.json").write_text("[]")
    with pytest.raises(ValueError, match="Remove it"):
        call()


def test_two_at_once(outputs, call, server):
    from filelock import FileLock

    (outputs / "wandb").mkdir()
    with FileLock(outputs / "wandb/.synced.json.lock"), pytest.raises(ValueError, match="Another sync is running"):
        call()


@pytest.mark.slow
def test_wandb_itself_offline(outputs, call, monkeypatch):
    """Config, names, numbers, media and state of a finished and a failed run, read back by W&B's own reader."""
    with wandb_without_home(monkeypatch):
        (outputs / "audits/demo/seed=2" / RESULT).unlink()
        assert call("--mode", "offline") == "sent 2, already there 0, failed 0\n"
    runs = {}
    for run in (outputs / "wandb/wandb").glob("offline-run-*"):
        records = inspect(run)
        runs[records["run"][0]["display_name"]] = records
    done, failed = runs["seed 1"], runs["seed 3"]
    (about,) = done["run"]
    assert (about["project"], about["run_group"], about["job_type"]) == ("nonmember", "demo", "prism")
    assert about["run_id"] == run_id_of("demo", "seed=1", result().provenance.keys["audit"])
    assert about["tags"] == ["scipy-a", "micro_target_high"]
    config = config_in(done)
    assert (config["seed"], config["cell"]["lambda"], config["cell"]["reference"]) == (1234, 0.7, "micro_l")
    assert summary_in(done).items() >= {"test/p_value": 0.93, "status": "finished"}.items()
    told = {name: value for record in done["history"] for name, value in record["item"].items()}
    points = [record["item"] for record in done["history"] if "train_target/loss" in record["item"]]
    assert [(point["train_target/step"], point["train_target/loss"]) for point in points] == [(9, 3.5), (19, 2.5)]
    assert {name.removesuffix("._type"): value for name, value in told.items() if name.endswith("._type")} == {
        "test/distribution": "histogram",
        "scores": "table-file",
        "figure/distribution": "image-file",
        "figure/ranks": "image-file",
    }
    assert done["exit"][0].get("exit_code", 0) == 0
    provenance = config["provenance"]
    assert (provenance["keys"]["target"], provenance["versions"]) == (MODEL, result().provenance.versions)
    assert summary_in(done)["warnings"] == "\n".join(result().verdict.warnings)
    (artifact,) = (item for item in done["artifact"] if item["type"] == "audit")
    kept = {item["path"]: Path(item["local_path"]).read_bytes() for item in artifact["manifest"]["contents"]}
    folder = outputs / "audits/demo/seed=1"
    assert kept == {file: (folder / file).read_bytes() for file in (RESULT, "scores.parquet")}
    assert summary_in(failed).items() >= {"error": "No such model.", "status": "failed"}.items()
    assert failed["exit"][0]["exit_code"] == 1


def test_wandb_itself_out_of_reach(outputs, call, monkeypatch):
    with wandb_without_home(monkeypatch), socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("WANDB_BASE_URL", f"http://127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(ValueError, match="set WANDB_API_KEY"):
            call()
        monkeypatch.setenv("WANDB_API_KEY", "0" * 40)
        started = time.monotonic()
        with pytest.raises(ValueError, match="cannot be reached"):
            call()
    assert time.monotonic() - started < 30
