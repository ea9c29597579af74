"""A sweep tells what it costs and does nothing, or makes first what its cells share and lets no worker wait in vain."""

from __future__ import annotations

import heapq
import io
import itertools
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from hydra.core.global_hydra import GlobalHydra
from hydra.core.singleton import Singleton
from rich.console import Console

from command_line import rows_of, write_rows
from nonmember.artifacts.planner import Node
from nonmember.results.result import AuditResult
from nonmember.runtime.interruption import Interrupted
from nonmember.runtime.progress import duration
from nonmember.sweeps import processes, sweep
from nonmember.sweeps import slurm as jobs
from nonmember.sweeps.costs import ArtifactCost, Work
from nonmember.sweeps.dry_run import MOST_LISTED, show
from nonmember.sweeps.outcomes import Cells
from nonmember.sweeps.processes import Order, keep_grown_worker, shared, state_for_workers
from nonmember.sweeps.slurm import levels
from nonmember.sweeps.sweep import Launching, SweepBar
from tiny import random_texts


def made_up(seed: int, num_cells: int = 12, num_artifacts: int = 20) -> tuple[SimpleNamespace, Work, dict]:
    """A graph in which everything has parents among what stands before it, and takes a while."""
    rng = np.random.default_rng(seed)
    nodes: dict[str, Node] = {}
    for number in range(num_artifacts):
        parents = tuple(str(item) for item in np.flatnonzero(rng.random(number) < 0.2))
        nodes[f"{number}"] = Node(f"{number}", SimpleNamespace(kind="models"), parents, False)
    for cell in range(num_cells):
        waiting = [str(item) for item in rng.integers(num_artifacts, size=2)]
        while waiting:
            node = nodes[waiting.pop()]
            node.users.add(cell)
            waiting += node.parents
    seconds = {name: float(rng.integers(1, 20)) for name in nodes}
    work = Work(SimpleNamespace(nodes=nodes), {name: ArtifactCost(None, seconds[name], None) for name in nodes})
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


@pytest.mark.slow
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


# ------------------------------------------------------------------------------------------- jobs of Slurm


PENDING = "nothing yet"


@dataclass
class Array:
    """A job array. dependency: what it was told to wait for."""

    number: int
    call: Any
    columns: tuple[Sequence[Any], ...]
    more: dict[str, Any]

    @property
    def dependency(self) -> str:
        return str(self.more.get("dependency", ""))


@dataclass
class Job:
    """Runs at once, where it is not lost."""

    job_id: str
    returned: Any
    state: str = "NODE_FAIL"
    paths: Any = field(default_factory=lambda: SimpleNamespace(stderr="log.err"))
    _cancel_command: str = "scancel"

    def done(self) -> bool:
        return self.returned != PENDING

    def results(self) -> list[Any]:
        if isinstance(self.returned, BaseException):
            raise self.returned
        return [self.returned]


class Executor:
    """submitit's, with a scheduler that notes what it is given. outcomes: of jobs that return nothing, by their ids."""

    arrays: ClassVar[list[Array]]
    outcomes: ClassVar[dict[str, Any]]

    def __init__(self) -> None:
        self.parameters: dict[str, Any] = {}

    def update_parameters(self, **kwargs: Any) -> None:
        self.parameters |= kwargs

    def map_array(self, fn: Callable[..., Any], *iterable: Sequence[Any]) -> list[Job]:
        number = 1 + len(self.arrays)
        self.arrays.append(Array(number, fn, iterable, self.parameters.get("slurm_additional_parameters") or {}))
        ids = [f"{number}_{index}" for index in range(len(iterable[0]))]
        calls = zip(*iterable, strict=True)
        return [Job(item, self.outcomes.get(item) or fn(*given)) for item, given in zip(ids, calls, strict=True)]


class SlurmLauncher:
    """Submits all cells at once and waits for them, as submitit's. end: what it raises in the place of results."""

    def __init__(self, more: dict[str, Any] | None = None, end: BaseException | None = None) -> None:
        self.params = {"additional_parameters": more}
        self.end = end

    def __call__(self, overrides: Sequence[str], place: int) -> str:
        return f"cell {place}"

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> list[Any]:
        import submitit

        executor: Any = submitit.AutoExecutor()
        executor.update_parameters(slurm_additional_parameters=self.params["additional_parameters"])
        jobs = executor.map_array(self, job_overrides, range(initial_job_idx, initial_job_idx + len(job_overrides)))
        if self.end is not None:
            raise self.end
        return [job.results()[0] for job in jobs]


@pytest.fixture
def slurm(monkeypatch):
    """slurm(launcher): runs a made-up sweep by it. (What it returned or raised, the sweep, the arrays; the artifacts
    that jobs made, in order; arrays that were cancelled.)"""
    submitit = pytest.importorskip("submitit")

    def run(launcher: SlurmLauncher, in_one_process: bool = True, **outcomes: Any) -> SimpleNamespace:
        plan, work, _ = made_up(0)
        names = {id(node.spec): name for name, node in plan.graph.nodes.items()}
        made, cancelled = [], []

        def make_artifact(config, spec, state):
            made.append(names[id(spec)])
            return {"models_trained": 1, "tokens_observed": 0}

        monkeypatch.setattr(submitit, "AutoExecutor", Executor)
        monkeypatch.setattr(submitit.core.core.Job, "results", Job.results)
        monkeypatch.setattr(Executor, "arrays", [], raising=False)
        monkeypatch.setattr(Executor, "outcomes", outcomes, raising=False)
        monkeypatch.setattr(jobs, "make_artifact", make_artifact)
        monkeypatch.setattr(jobs, "cancel", cancelled.append)
        compute = SimpleNamespace(in_one_process=in_one_process)
        plan.planner = SimpleNamespace(store=SimpleNamespace(hashes=lambda kind: ()), compute=compute)
        cells = SimpleNamespace(num_ended=lambda: 0)
        mine: Any = SimpleNamespace(plan=plan, config={}, made={}, name="mine", cells=cells)
        submits = Executor.map_array
        try:
            returned = Launching(mine, work, launcher).launch([["seed=1"]] * plan.num_cells, 0)
        except (Interrupted, ValueError) as error:
            returned = error
        assert Executor.map_array is submits, "the next sweep has makers of its own"
        order = shared(plan, work)
        return SimpleNamespace(
            returned=returned,
            made=made,
            cancelled=cancelled,
            counts=mine.made,
            order=order,
            arrays=Executor.arrays,
            num_cells=plan.num_cells,
        )

    return run


def test_slurm_makes_what_cells_share_in_arrays_each_behind_the_one_before_and_the_cells_behind_all(slurm):
    own = {"dependency": "afterok:99", "account": "mine"}
    ran = slurm(SlurmLauncher(own))
    assert ran.returned == [f"cell {index}" for index in range(ran.num_cells)]
    assert sorted(ran.made) == sorted(ran.order)
    makers, cells = ran.arrays[:-1], ran.arrays[-1]
    assert len(makers) == len(levels(ran.order)) > 1
    assert len(cells.columns[0]) == ran.num_cells
    assert [item.dependency for item in ran.arrays] == [
        "afterok:99",
        *(f"afterok:99,afterany:{item.number}" for item in makers),
    ]
    assert {item.more["account"] for item in ran.arrays} == {"mine"}
    num = len(ran.made)
    assert ran.counts == {"models_trained": num, "tokens_observed": 0, "models_found": -num}, "the first cell finds it"
    again = makers[0].call.checkpoint(["specs"])
    assert (again.function, again.args) == (makers[0].call, (["specs"],)), "a job whose time was over goes on with it"


def test_slurm_jobs_of_several_processes_are_submitted_as_they_are(slurm):
    ran = slurm(SlurmLauncher(), in_one_process=False)
    assert (len(ran.arrays), ran.made, ran.counts) == (1, [], {})


def test_a_lost_job_of_slurm_s_that_makes_something_leaves_it_to_the_cells(slurm, caplog):
    utils = pytest.importorskip("submitit.core.utils")
    ran = slurm(SlurmLauncher(), **{"1_0": utils.UncompletedJobError("killed")})
    assert ran.returned == [f"cell {index}" for index in range(ran.num_cells)]
    (lost, *_), *_ = levels(ran.order)
    assert set(ran.made) == set(ran.order) - set(lost)
    assert ran.counts["models_trained"] == len(ran.made)
    assert "Job 1_0 ended without a result (state NODE_FAIL)" in caplog.text
    assert "the first of them to run makes it instead" in caplog.text


@pytest.mark.parametrize("end", [Interrupted(signal.SIGINT), ValueError("lost")], ids=["Ctrl-C", "a lost cell"])
def test_an_interruption_cancels_each_array_that_makes_something_once_and_a_lost_cell_none(slurm, end):
    ran = slurm(SlurmLauncher(end=end), **{"1_0": PENDING})
    assert ran.returned is end
    is_cancelled = isinstance(end, Interrupted)
    assert ran.cancelled == ([str(item.number) for item in ran.arrays[:-1]] if is_cancelled else [])
    assert ran.counts["models_trained"] == len(ran.made) > 0, "what they made is told all the same, without waiting"


@pytest.mark.parametrize(
    ("given", "number"), [(None, 1), (0, 1), (3, 3), (-1, 8), (-2, 7), (-20, 1)], ids=lambda item: str(item)
)
def test_as_many_audits_run_side_by_side_as_joblib_has_workers(monkeypatch, given, number):
    loky = pytest.importorskip("joblib.externals.loky")
    monkeypatch.setattr(loky, "cpu_count", lambda: 8)
    kind = type("JoblibLauncher", (), {"joblib": {"n_jobs": given}})
    assert processes.number_of(kind()) == processes.number_of(type("Mine", (kind,), {})()) == number
    assert processes.number_of(SlurmLauncher()) == 1, "which nobody knows"


def test_a_further_process_of_a_run_leaves_the_plan_to_the_first(monkeypatch):
    """Else each of them would show the table of a dry run, and launch what the first one launches."""
    monkeypatch.setattr(sweep, "process_rank", lambda: 1)
    item: Any = sweep.Sweep(Cells("run", home=1))
    item.see(0, None, None)
    launcher = SlurmLauncher()
    assert item.launcher(launcher) is launcher
    assert not item.hands_out(launcher)


# ------------------------------------------------------------------------------------------- what is told


def test_the_bar_tells_what_is_done_and_what_is_left(tmp_path):
    plan, work, _ = made_up(0)
    there: set[str] = set()
    store = SimpleNamespace(hashes=lambda kind: there)
    graph = SimpleNamespace(nodes={f"models/{name}": node for name, node in plan.graph.nodes.items()})
    work = Work(graph, {f"models/{name}": ArtifactCost(100, None, None) for name in plan.graph.nodes})
    plan.planner = SimpleNamespace(store=store)
    bar = SweepBar("mine", plan, work, SimpleNamespace(num_ended=lambda: 3))
    with bar:
        assert bar.seconds_left() is None, "nothing was made, and nothing tells the time"
        there |= {"0"}
        bar.refresh()
        assert bar.seconds_left() is None, "of one point nothing can be told"
        there |= {"1", "2", "3", "4"}
        bar.refresh()
        assert bar.done == 5 + 3
        bar._since -= 10.0
        assert bar.seconds_left() == pytest.approx(10.0 * 15 / 5, rel=0.05)
        assert bar._state().startswith("5 of 20 artifacts made, 3 of 12 audits, about 30 s left")


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
    assert "For 6 of them nothing similar was made on this machine; their time is assumed" in planned.out
    assert "?" not in planned.out, "time and disk are told of one's own models too"
    assert "Memory: up to " in planned.out
    assert not list(tmp_path.rglob("sidecar.json"))
    assert not (tmp_path / "outputs" / "audits" / "dry").exists()

    assert nonmember(command, *arguments, "method.distillation.lambda_=0.3").status == 0
    again = nonmember(command, "-m", *arguments, *grid, "dry_run=true")
    assert "Audits: 2; 1 with a result, 1 to be run." in again.out
    rows = rows_in(again.out)
    assert (rows["models"], rows["observations"]) == (["1", "0", "1"], ["3", "2", "1"])
    assert "by past runs on this machine" in again.out

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


def test_a_dry_run_tells_what_it_does_not_count_and_how_long_the_rest_takes_by_so_many_workers(tmp_path, monkeypatch):
    plan, work, seconds = made_up(0, num_cells=40, num_artifacts=30)
    for name, node in plan.graph.nodes.items():
        monkeypatch.setattr(node.spec, "readable", f"m{name}", raising=False)
    graph = SimpleNamespace(nodes=plan.graph.nodes, builder=SimpleNamespace(store=SimpleNamespace(root=tmp_path / "a")))
    for name, value in {
        "ended": set(),
        "refused": {},
        "parts": {},
        "asking": {1, 2},
        "climbing": {3},
        "invalid": {4: "the models are of two families"},
    }.items():
        monkeypatch.setattr(plan, name, value, raising=False)
    out = io.StringIO()
    work = Work(graph, work.costs)
    show(plan, work, 1, Console(file=out))
    alone = out.getvalue()
    assert "1 would be invalid, and the distilled reference that is counted here not trained: the models are" in alone
    assert "2 of them query a remote model; its requests and their cost are not estimated." in alone
    assert "1 of them look for a learning rate (ladder): the first rate is counted" in alone
    assert "The tokens of some are unknown until the artifacts they depend on are made." in alone
    num_shared = len(shared(plan, work))
    assert num_shared > MOST_LISTED
    assert alone.count(" audits, about ") == MOST_LISTED
    assert f"  and {num_shared - MOST_LISTED} more\n" in alone
    sums = sum(seconds[name] for name in plan.graph.nodes)
    assert f"About {duration(sums)}, by past runs on this machine" in alone
    show(plan, work, 4, Console(file=out))
    beside = out.getvalue().removeprefix(alone)
    assert f"About {duration(work.makespan(4))} with 4 workers side by side, by past runs" in beside
    assert work.makespan(4) < sums


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
    assert nonmember("store", "move", "elsewhere").status == 0
    assert not (tmp_path / "outputs" / "store").exists()
    model = "distilled-tiny1-from-tiny0"
    exported = nonmember("store", "export", model, "card", "--store", "elsewhere")
    assert exported.status == 0, exported.err
    assert (tmp_path / "card" / "README.md").is_file()
    lost.write_text("{}")
    assert "nothing is removed" in nonmember("store", "remove", "--store", "elsewhere").err
