"""A sweep tells what it would make and what that costs, and does nothing."""

from __future__ import annotations

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from command_line import rows_of, write_rows
from nonmember.artifacts.planner import Node
from nonmember.config.dry_run import ArtifactCost, Work, show
from nonmember.results.result import AuditResult
from nonmember.runtime.progress import duration
from tiny import random_texts


def rows_in(text: str) -> dict[str, list[str]]:
    """Kind -> number, in store, to make."""
    lines = ([cell.strip() for cell in line.split("│")[1:]] for line in text.splitlines())
    return {cells[0]: cells[1:4] for cells in lines if len(cells) > 5}


@pytest.mark.slow
def test_a_dry_run_tells_what_is_then_made_and_makes_nothing(nonmember, ask, tmp_path):
    grid = ["method.distillation.lambda_=0.3,0.7"]
    command, *arguments = ask("name=dry")
    planned = nonmember(command, "-m", *arguments, *grid, "dry_run=true")
    assert planned.status == 0, planned.err
    rows = rows_in(planned.out)
    assert rows["models"] == ["2", "0", "2"]
    assert rows["observations"] == ["4", "0", "4"]
    assert "Audits: 2; 0 with a result, 2 to be run." in planned.out
    assert "No time estimate for these, since nothing similar was made on this machine" in planned.out
    assert not list(tmp_path.rglob("sidecar.json"))
    assert not (tmp_path / "outputs" / "audits" / "dry").exists()

    assert nonmember(command, *arguments, "method.distillation.lambda_=0.3").status == 0
    again = nonmember(command, "-m", *arguments, *grid, "dry_run=true")
    assert "Audits: 2; 1 with a result, 1 to be run." in again.out
    rows = rows_in(again.out)
    assert (rows["models"], rows["observations"]) == (["1", "0", "1"], ["3", "2", "1"])
    assert "by past runs here" in again.out

    item = nonmember(command, *arguments, "method.distillation.lambda_=0.5", "dry_run=true")
    assert "Audits: 1; 0 with a result" in item.out
    (result,) = (tmp_path / "outputs" / "audits" / "dry").glob("*/result.json")
    assert AuditResult.load(result).question.settings["distillation"]["lambda_"] == 0.3
    assert list(result.parents[1].iterdir()) == [result.parent], "no folder of what was only told"


@pytest.mark.slow
def test_a_dry_run_names_what_could_not_be_carried_out(nonmember, ask, tmp_path):
    write_rows(tmp_path / "few.jsonl", rows_of(random_texts(3, seed=1)))
    command, *arguments = ask("name=dry", documents=tmp_path / "absent.jsonl")
    told = nonmember(command, *arguments, "dry_run=true")
    assert told.status == 1
    assert "1 of 1 audits cannot be planned" in told.err
    assert "What is needed" not in told.out, "no table of zeros before the error"
    assert "absent.jsonl" in told.err
    few = nonmember(command, *ask("name=dry", documents=tmp_path / "few.jsonl")[1:], "dry_run=true")
    assert "has 3 documents and prism needs at least 30" in few.err
    stores = nonmember(command, *ask("name=dry", "store=a,b")[1:], "dry_run=true")
    assert "1 of 2 audits cannot be planned: its store or trainer is not that of the first audit" in stores.err
    hidden = nonmember(command, *arguments, "dry_run=1")
    assert "dry_run must be given on the command line, spelled dry_run=true." in hidden.err


def test_a_dry_run_tells_what_it_does_not_count(tmp_path):
    nodes = {
        f"m{number}": Node(f"m{number}", SimpleNamespace(kind="models", readable=f"m{number}"), (), False)
        for number in range(3)
    }
    graph = SimpleNamespace(nodes=nodes, builder=SimpleNamespace(store=SimpleNamespace(root=tmp_path / "a")))
    plan = SimpleNamespace(num_cells=40, ended=0, asking=2, invalid=["the models are of two families"], refused=[])
    out = io.StringIO()
    show(plan, Work(graph, {name: ArtifactCost(None, 100.0, None) for name in nodes}), Console(file=out))
    said = out.getvalue()
    assert "1 would be invalid, and the distilled reference that is counted here not trained: the models are" in said
    assert "2 of them query a remote model; its requests and their cost are not estimated." in said
    assert "The tokens of some are unknown until the artifacts they depend on are made." in said
    assert f"About {duration(300)}, one after the other, by past runs here" in said


@pytest.mark.slow
def test_the_store_command_knows_what_a_result_needs(nonmember, ask, tmp_path):
    command, *arguments = ask("name=kept")
    assert nonmember("store", "list").status == 1, "there is none"
    assert nonmember(command, *arguments).status == 0
    assert nonmember(command, *arguments, "method.distillation.lambda_=0.2", "name=gone").status == 0
    (lost,) = (tmp_path / "outputs" / "audits" / "gone").glob("*/result.json")
    lost.unlink()
    assert "Entries: 6," in nonmember("store", "list").last_line
    assert "2 entries" in nonmember("store", "remove", "--keep-days", 0).last_line
    assert "would be removed" in nonmember("store", "remove", "--keep-days", 0).last_line
    assert "0 entries" in nonmember("store", "remove", "--yes").last_line, "they are young"
    assert "were removed" in nonmember("store", "remove", "--keep-days", 0, "--yes").last_line
    assert nonmember("store", "verify").last_line.startswith("4 of 4 entries")
    again = nonmember(command, *arguments)
    assert "models trained: 0" in again.out
    lost.write_text("{}")
    assert "nothing is removed" in nonmember("store", "remove").err
