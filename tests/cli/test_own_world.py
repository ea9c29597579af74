"""One's own models and documents, in the world that is the default: what a new user types, on tiny models."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import only, rows_of, write_rows

HEAVY = ("torch", "transformers", "lightning", "datasets", "wandb", "sklearn", "matplotlib", "openai")
SHORT = ("method.num_resamples=200", "method.max_tokens=100", "method.distillation.max_tokens=100")
LOADED = "import sys; from nonmember.cli.main import run; run(sys.argv[1:]); print(*sys.modules)"


@pytest.fixture
def mine(make_model, texts, tmp_path) -> list[str]:
    """The whole command, but for what a method needs beside."""
    documents = write_rows(tmp_path / "novels" / "data.jsonl", rows_of([f"{text} " * 25 for text in texts]))
    return [f"target.path={make_model(0)}", f"reference.path={make_model(1)}", f"data.path={documents}", "logger=none"]


@pytest.fixture(autouse=True)
def folder_of_documents(tmp_path) -> None:
    (tmp_path / "novels").mkdir()


def test_one_command_is_an_audit_by_the_papers_settings(nonmember, mine):
    said = nonmember("audit", *mine, *SHORT)
    assert said.status == 0, said.err
    path = only(Path("outputs/audits/audits"), "*/result.json")
    assert path.parent.name.startswith("prism-novels-tiny0"), path
    result = json.loads(path.read_text())
    assert (result["question"]["world"], result["question"]["cell"], result["question"]["corpus"]) == (
        "own",
        path.parent.name,
        "novels",
    )
    assert result["question"]["settings"]["distillation"]["optimization"]["learning_rate"] == 5e-5
    assert "found" in nonmember("audit", *mine, *SHORT).out
    assert nonmember("table", "outputs").status == 0


def test_what_is_not_needed_is_not_asked_for(nonmember, mine):
    """KDS has no reference; the config that is kept says so."""
    target, _, data, logger = mine
    said = nonmember("audit", "method=kds", target, data, logger, "method.training.max_tokens=100")
    assert said.status == 0, said.err
    kept = json.loads(only(Path("outputs/audits/audits"), "kds-novels-tiny0*/config.json").read_text())
    assert kept["reference"] is kept["general"] is kept["data"]["heldout"] is None


def test_scores_of_ones_own_model(nonmember, mine):
    import pyarrow.parquet as pq

    target, reference, data, _ = mine
    said = nonmember("score", target.replace("target", "model"), data, "max_tokens=100")
    assert said.status == 0, said.err
    assert "/outputs/scores/novels-tiny0" in said.last_line
    alone = pq.read_table(said.last_line).column_names
    said = nonmember("score", target.replace("target", "model"), data, reference, "max_tokens=100")
    assert set(pq.read_table(said.last_line).column_names) - set(alone) == {"ref_diff", "ref_ratio"}


def test_two_data_sets_never_share_a_folder(nonmember, mine, texts):
    """Names that differ in characters alone that a folder may not have."""
    target, reference, _, logger = mine
    Path("x").mkdir()
    names = ["日.jsonl", "月.jsonl", "x/a.jsonl", "x_a.jsonl"]
    for number, name in enumerate(names):
        write_rows(Path(name), rows_of([f"{text} {number} " * 25 for text in texts]))
    quoted = ",".join(f"'{name}'" for name in names)
    said = nonmember("audit", "-m", target, reference, f"data.path={quoted}", "method=rank_agreement", logger,
                     "method.max_tokens=100")  # fmt: skip
    assert said.status == 0, said.err
    results = [json.loads(path.read_text()) for path in Path("outputs/audits/audits").glob("*/result.json")]
    assert len({result["provenance"]["keys"]["corpus"] for result in results}) == len(names)
    assert {result["question"]["corpus"] for result in results} == {"日", "月", "a", "x_a"}


@pytest.mark.parametrize(
    ("command", "wrong", "expected"),
    [
        ("audit", ["target.path=nowhere/at/all"], "'nowhere/at/all' is no folder here"),
        ("audit", ["target.path=."], "The folder . holds no model: there is no config.json in it."),
        ("audit", ["reference.path=owner/none"], "not in the cache of the Hugging Face hub"),
        ("audit", ["data.path=nowhere.jsonl"], "nowhere.jsonl"),
        ("audit", ["data.text_field=body"], "body"),
        ("audit", ["method.alpha=5"], "alpha"),
        ("audit", ["method.score.k=1.5"], "got 1.5"),
        ("audit", ["trainer.micro_batch_size=0"], "trainer.micro_batch_size must be a whole number"),
        ("score", ["k=1.5"], "got 1.5"),
    ],
)
def test_wrong_input_is_refused_before_heavy_imports(mine, tmp_path, command, wrong, expected):
    keys = [text.partition("=")[0] for text in wrong]
    sound = [text for text in mine if text.partition("=")[0] not in keys]
    if command == "score":
        sound = [text.replace("target.", "model.") for text in sound if not text.startswith(("reference", "logger"))]
    done = subprocess.run(
        [sys.executable, "-c", LOADED, command, *sound, *wrong], cwd=tmp_path, capture_output=True, text=True
    )
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1
    assert not set(done.stdout.split()) & set(HEAVY)
