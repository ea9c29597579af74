"""A sweep tells what it costs and does nothing, or makes first what its cells share and lets no worker wait in vain."""

from __future__ import annotations

import heapq
import itertools
import os
from types import SimpleNamespace

import numpy as np
import pytest
from hydra.core.global_hydra import GlobalHydra
from hydra.core.singleton import Singleton

from command_line import rows_of, write_rows
from nonmember.artifacts.costs import Cost, Work
from nonmember.artifacts.planner import Node
from nonmember.cli.in_jobs import levels
from nonmember.cli.in_order import Order, keep_grown_worker, shared, state_for_workers
from nonmember.cli.sweep_bar import SweepBar
from nonmember.results.result import AuditResult
from tiny import random_texts


def made_up(seed: int, num_cells: int = 12, num_artifacts: int = 20) -> tuple[SimpleNamespace, Work, dict]:
    """A graph in which everything has parents among what stands before it, and takes a while."""
    rng = np.random.default_rng(seed)
    nodes: dict[str, Node] = {}
    for number in range(num_artifacts):
        parents = tuple(str(one) for one in np.flatnonzero(rng.random(number) < 0.2))
        nodes[f"{number}"] = Node(f"{number}", SimpleNamespace(kind="models"), parents, False)
    for cell in range(num_cells):
        waiting = [str(one) for one in rng.integers(num_artifacts, size=2)]
        while waiting:
            node = nodes[waiting.pop()]
            node.users.add(cell)
            waiting += node.parents
    seconds = {name: float(rng.integers(1, 20)) for name in nodes}
    work = Work(SimpleNamespace(nodes=nodes), {name: Cost(None, seconds[name], None) for name in nodes})
    plan = SimpleNamespace(graph=SimpleNamespace(nodes=nodes), num_cells=num_cells)
    return plan, work, seconds | {cell: float(rng.integers(1, 9)) for cell in range(num_cells)}


def rows_in(text: str) -> dict[str, list[str]]:
    """Kind -> number, in store, to make."""
    lines = ([cell.strip() for cell in line.split("│")[1:]] for line in text.splitlines())
    return {cells[0]: cells[1:4] for cells in lines if len(cells) > 5}


@pytest.mark.parametrize("seed", range(5))
def test_everything_begins_once_after_what_it_rests_on_and_nobody_idles_while_something_is_ready(seed):
    plan, work, seconds = made_up(seed)
    nodes, order = plan.graph.nodes, Order(plan, work)
    shared = {name for name, node in nodes.items() if len(node.users) > 1}
    running, begun, ended, now = [], [], set(), 0.0
    while True:
        while len(running) < 2 and (item := order.next()) is not None:
            rests_on = nodes[item].parents if isinstance(item, str) else [n for n in shared if item in nodes[n].users]
            assert set(rests_on) & shared <= ended, "a worker would wait for another"
            begun.append(item)
            heapq.heappush(running, (now + seconds[item], str(item), item))
        if not running:
            break
        now, _, item = heapq.heappop(running)
        ended.add(item)
        order.ended(item)
    assert len(begun) == len(set(begun)) == len(shared) + plan.num_cells
    assert shared == {item for item in begun if isinstance(item, str)}


def test_a_worker_that_keeps_models_is_not_replaced():
    loky = pytest.importorskip("joblib.externals.loky")
    with loky.ProcessPoolExecutor(1, initializer=keep_grown_worker) as workers:
        before = workers.submit(os.getpid).result()
        grow = "import time, builtins; builtins.kept = b'x' * 400_000_000; time.sleep(1.1)"  # looked at once a second
        workers.submit(exec, grow).result()
        assert workers.submit(os.getpid).result() == before


def test_workers_are_not_sent_the_loader_which_gives_configs_away_meanwhile(monkeypatch):
    cloudpickle = pytest.importorskip("cloudpickle")

    class Loader:
        def __deepcopy__(self, _):
            return self

        def __reduce__(self):
            raise RuntimeError("dictionary changed size during iteration")

    monkeypatch.setitem(Singleton._instances, GlobalHydra, Loader())
    with pytest.raises(RuntimeError):
        cloudpickle.dumps(Singleton.get_state())
    cloudpickle.dumps(state_for_workers())


@pytest.mark.parametrize("seed", range(5))
def test_each_shared_artifact_is_made_by_one_job_after_all_that_it_rests_on(seed):
    plan, work, _ = made_up(seed)
    waits, made = shared(plan, work), []
    for level in levels(waits):
        before = set(made)
        for chain in level:
            assert waits[chain[0]] <= before
            assert all(waits[later] == {earlier} for earlier, later in itertools.pairwise(chain))
            made += chain
    assert sorted(made) == sorted(waits)
    assert levels({"model": set(), "read": {"model"}, "other": set()}) == [[["model", "read"], ["other"]]]


def test_the_bar_tells_what_is_done_and_what_is_left(tmp_path):
    plan, work, _ = made_up(0)
    there: set[str] = set()
    store = SimpleNamespace(hashes=lambda kind: there)
    graph = SimpleNamespace(nodes={f"models/{name}": node for name, node in plan.graph.nodes.items()})
    work = Work(graph, {f"models/{name}": Cost(100, None, None) for name in plan.graph.nodes})
    plan.planner = SimpleNamespace(store=store)
    bar = SweepBar("mine", plan, work, SimpleNamespace(num_ended=lambda: 3), 2)
    with bar:
        assert bar.seconds_left() is None, "nothing was made, and nothing tells the time"
        there |= {"0", "1", "2", "3", "4"}
        bar.look()
        assert bar.done == 5 + 3
        bar._since -= 10.0
        assert bar.seconds_left() == pytest.approx(10.0 * 15 / 5, rel=0.05)
        assert bar._state().startswith("5 of 20 artifacts made, 3 of 12 audits, about 30 s left")


def test_a_dry_run_tells_what_is_then_made_and_makes_nothing(nonmember, ask, tmp_path):
    grid = ["method.distillation.lambda_=0.3,0.7"]
    command, *arguments = ask("name=dry")
    planned = nonmember(command, "-m", *arguments, *grid, "dry_run=true")
    assert planned.status == 0, planned.err
    rows = rows_in(planned.out)
    assert rows["models"] == ["2", "0", "2"]
    assert rows["observations"] == ["4", "0", "4"]
    assert "Audits: 2; with a result 0, to be run 2." in planned.out
    assert "No time estimate for these" in planned.out
    assert not list(tmp_path.rglob("sidecar.json"))
    assert not (tmp_path / "outputs" / "audits" / "dry").exists()

    assert nonmember(command, *arguments, "method.distillation.lambda_=0.3").status == 0
    again = nonmember(command, "-m", *arguments, *grid, "dry_run=true")
    assert "Audits: 2; with a result 1, to be run 1." in again.out
    rows = rows_in(again.out)
    assert (rows["models"], rows["observations"]) == (["1", "0", "1"], ["3", "2", "1"])
    assert "by past runs on this machine" in again.out

    one = nonmember(command, *arguments, "method.distillation.lambda_=0.5", "dry_run=true")
    assert "Audits: 1; with a result 0" in one.out
    (result,) = (tmp_path / "outputs" / "audits" / "dry").glob("*/result.json")
    assert AuditResult.load(result).question.settings["distillation"]["lambda_"] == 0.3
    assert list(result.parents[1].iterdir()) == [result.parent], "no folder of what was only told"


def test_a_dry_run_names_what_could_not_be_carried_out(nonmember, ask, tmp_path):
    write_rows(tmp_path / "few.jsonl", rows_of(random_texts(3, seed=1)))
    command, *arguments = ask("name=dry", documents=tmp_path / "absent.jsonl")
    told = nonmember(command, *arguments, "dry_run=true")
    assert told.status == 1
    assert "1 of 1 audits cannot be planned" in told.err
    assert "absent.jsonl" in told.err
    few = nonmember(command, *ask("name=dry", documents=tmp_path / "few.jsonl")[1:], "dry_run=true")
    assert "has 3 documents and prism needs at least 30" in few.err


def test_the_store_command_knows_what_a_result_needs(nonmember, ask, tmp_path):
    command, *arguments = ask("name=kept")
    assert nonmember("store", "list").status == 1, "there is none"
    assert nonmember(command, *arguments).status == 0
    assert nonmember(command, *arguments, "method.distillation.lambda_=0.2", "name=gone").status == 0
    (lost,) = (tmp_path / "outputs" / "audits" / "gone").glob("*/result.json")
    lost.unlink()
    assert "6 entries" in nonmember("store", "list").last_line
    assert "2 entries" in nonmember("store", "remove", "--keep-days", 0).last_line
    assert "would be removed" in nonmember("store", "remove", "--keep-days", 0).last_line
    assert "0 entries" in nonmember("store", "remove", "--yes").last_line, "they are young"
    assert "were removed" in nonmember("store", "remove", "--keep-days", 0, "--yes").last_line
    assert nonmember("store", "verify").last_line.startswith("4 of 4 entries")
    again = nonmember(command, *arguments)
    assert "models trained: 0" in again.out
    assert nonmember("store", "move", "elsewhere").status == 0
    assert not (tmp_path / "outputs" / "store").exists()
    model = "distilled-tiny1-from-tiny0"
    exported = nonmember("store", "export", model, "card", "--store", "elsewhere")
    assert exported.status == 0, exported.err
    assert (tmp_path / "card" / "README.md").is_file()
    lost.write_text("{}")
    assert "nothing is removed" in nonmember("store", "remove", "--store", "elsewhere").err
