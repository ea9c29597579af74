"""One's own models and documents, in the world that is the default: what a new user types, on tiny models."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import only, rows_of, write_rows
from nonmember.cli import audit
from nonmember.corpora.sources import docstrings

HEAVY = ("torch", "transformers", "lightning", "datasets", "wandb", "sklearn", "matplotlib", "openai")
SHORT = ("method.num_resamples=200", "method.max_tokens=100", "method.distillation.max_tokens=100")
REFUSALS = """
import contextlib, io, json, os, sys
sys.path.append(sys.argv[1])
from nonmember.cli.main import run
from quick_configs import quick_configs

refusals = []
with quick_configs():
    for command in json.load(sys.stdin):
        sys.argv, told = ["nonmember", *command], io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(told):
            status = run(command)
        del os.environ["HYDRA_FULL_ERROR"]  # set by the command, it would ask the next for a traceback
        refusals.append((status, told.getvalue(), list(sys.modules)))
json.dump(refusals, sys.stdout)
"""


@pytest.fixture
def mine(make_model, texts, tmp_path) -> list[str]:
    """The whole command, but for what a method needs beside."""
    documents = write_rows(tmp_path / "novels" / "data.jsonl", rows_of([f"{text} " * 25 for text in texts]))
    return [f"target.path={make_model(0)}", f"reference.path={make_model(1)}", f"data.path={documents}", "logger=none"]


@pytest.fixture(autouse=True)
def folder_of_documents(tmp_path) -> None:
    (tmp_path / "novels").mkdir()


@pytest.fixture
def few_modules(monkeypatch) -> None:
    """The text for the gates, docstrings of installed libraries, is taken from a fifth of their files: to parse all of
    them takes longer than the audit."""
    all_of_them = docstrings._modules
    monkeypatch.setattr(docstrings, "_modules", lambda package: all_of_them(package)[::5])


@pytest.mark.usefixtures("few_modules")
def test_one_command_is_an_audit_by_the_papers_settings(nonmember, mine):
    said = nonmember("audit", "method=prism", *mine, *SHORT)
    assert said.status == 0, said.err
    path = only(Path("outputs/audits/mine"), "*/result.json")
    assert path.parent.name.startswith("prism-novels-tiny0"), path
    result = json.loads(path.read_text())
    assert (result["question"]["world"], result["question"]["cell"], result["question"]["corpus"]) == (
        "own",
        path.parent.name,
        "novels",
    )
    assert result["question"]["settings"]["distillation"]["optimization"]["learning_rate"] == 5e-5
    assert "found" in nonmember("audit", "method=prism", *mine, *SHORT).out
    assert nonmember("table", "outputs").status == 0


@pytest.mark.slow
def test_what_is_not_needed_is_not_asked_for(nonmember, mine):
    """KDS has no reference; the config that is kept says so."""
    target, _, data, logger = mine
    said = nonmember("audit", "method=kds", target, data, logger, "method.training.max_tokens=100")
    assert said.status == 0, said.err
    kept = json.loads(only(Path("outputs/audits/mine"), "kds-novels-tiny0*/config.json").read_text())
    assert kept["reference"] is kept["general"] is kept["data"]["heldout"] is None


@pytest.mark.slow
def test_scores_of_ones_own_model(nonmember, mine):
    import pyarrow.parquet as pq

    target, reference, data, _ = mine
    said = nonmember("score", target, data, "max_tokens=100")
    assert said.status == 0, said.err
    assert "/outputs/scores/novels-tiny0" in said.last_line
    alone = pq.read_table(said.last_line).column_names
    said = nonmember("score", target, data, reference, "max_tokens=100")
    assert set(pq.read_table(said.last_line).column_names) - set(alone) == {"ref_diff", "ref_ratio"}


@pytest.mark.slow
def test_two_data_sets_never_share_a_folder(nonmember, mine, monkeypatch):
    """Names that differ in characters alone that a folder may not have."""
    ran = []

    def run_cell(config, folder):
        ran.append((folder, config.data.label))
        raise ValueError("seen enough")

    monkeypatch.setattr(audit, "run_cell", run_cell)
    target, reference, _, logger = mine
    names = ["日.jsonl", "月.jsonl", "x/a.jsonl", "x_a.jsonl"]
    quoted = ",".join(f"'{name}'" for name in names)
    assert "seen enough" in nonmember("audit", "-m", target, reference, f"data.path={quoted}", logger).err
    folders, labels = zip(*ran, strict=True)
    assert len(set(folders)) == len(names)
    assert labels == ("日", "月", "a", "x_a")


WRONG = [
    ("audit", "target.path=nowhere/at/all", "'nowhere/at/all' is not a folder on this machine"),
    ("audit", "target.path=.", "The folder . holds no model: there is no config.json in it."),
    ("audit", "reference.path=owner/none", "cannot be read from the Hugging Face hub: HF_HUB_OFFLINE is set"),
    ("audit", "data.path=nowhere.jsonl", "nowhere.jsonl"),
    ("audit", "data.text_field=body", "body"),
    ("audit", "method.alpha=5", "alpha"),
    ("audit", "method.score.k=1.5", "got 1.5"),
    ("audit", "trainer.micro_batch_size=0", "trainer.micro_batch_size must be a whole number"),
    ("audit", "nme=x", "There is no key nme; did you mean name?"),
    ("audit", "launcher.dry_run=true", "There is no key launcher.dry_run. launcher has no keys."),
    ("audit", "general.path=x", "There is no key general.path; did you mean world.general.path? general has no keys."),
    ("score", "k=1.5", "got 1.5"),
]


def test_wrong_input_is_refused_before_heavy_imports(mine, tmp_path):
    """Each command says its sentence in turn, in one new process."""

    def words(command: str, wrong: str) -> list[str]:
        sound = [item for item in mine if item.partition("=")[0] != wrong.partition("=")[0]]
        if command == "score":
            sound = [item for item in sound if not item.startswith(("reference", "logger"))]
        return [command, *(["method=prism"] if command == "audit" else []), *sound, wrong]

    done = subprocess.run(
        [sys.executable, "-c", REFUSALS, Path(__file__).parents[1]],
        input=json.dumps([words(command, wrong) for command, wrong, _ in WRONG]),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    for (_, wrong, expected), (status, told, loaded) in zip(WRONG, json.loads(done.stdout), strict=True):
        assert status == 1, wrong
        assert expected in told, wrong
        assert told.count("\n") == 1, wrong
        assert not set(loaded) & set(HEAVY), wrong
