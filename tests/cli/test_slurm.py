"""Sweeps and jobs of several tasks on a real Slurm cluster of one machine (tests/slurm/cluster.py), with faults."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import tiny
from command_line import numbers, question, rows_of, write_rows
from slurm.cluster import Cluster, reason_to_skip, running_cluster

WHY_NOT = reason_to_skip()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(WHY_NOT is not None, reason=f"no Slurm here: {WHY_NOT}")]

NUM_SETS, KS = 5, (0.1, 0.2, 0.4, 0.6)
JOBS = (
    "launcher=submitit_slurm",
    "hydra.launcher.cpus_per_task=1",
    "hydra.launcher.gpus_per_node=null",
    "hydra.launcher.mem_gb=null",
)
PATIENCE = 1800.0  # seconds for a sweep, on a machine that does other things


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[Cluster]:
    with running_cluster(tmp_path_factory.mktemp("slurm"), slots=6) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    """ask(number of sets, "seed=2"): the words of an audit, of a grid where there are several sets."""
    folder = tmp_path_factory.mktemp("world")
    target, reference = (tiny.model_folder(folder / f"tiny{seed}", seed) for seed in (0, 1))
    sets = [write_rows(folder / f"set{n}.jsonl", rows_of(tiny.random_texts(32, seed=n))) for n in range(NUM_SETS)]

    def words(number: int, *more: str) -> list[str]:
        return question(target, reference, Path(",".join(map(str, sets[:number]))), *more)

    return words


@pytest.fixture
def start(cluster) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """start(words, folder, "launcher=..."): the command, which the test's end ends if nothing else did."""
    with contextlib.ExitStack() as stack:

        def start(words: list[str], folder: Path, *more: str) -> subprocess.Popen[str]:
            folder.mkdir(exist_ok=True)
            command, *arguments = words
            process = subprocess.Popen(
                [sys.executable, "-m", "nonmember.cli", command, "-m", *arguments, *more],
                cwd=folder,
                text=True,
                env=os.environ | cluster.environment | {"OMP_NUM_THREADS": "1"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield start


def said(process: subprocess.Popen[str], status: int = 0) -> str:
    out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == status, out
    return out


def results(folder: Path) -> list[str]:
    """The numbers of all results, by the names of their cells."""
    found = {path.parent.name: json.loads(path.read_text()) for path in folder.glob("outputs/audits/*/*/result.json")}
    return [json.dumps(numbers(found[name]), sort_keys=True) for name in sorted(found)]


def running(cluster: Cluster) -> list[str]:
    return cluster.ask("squeue", "-h", "-t", "running", "-o", "%i").split()


def queued(cluster: Cluster) -> list[str]:
    return cluster.ask("squeue", "-h", "-r", "-o", "%i").split()


def waiting_for_others(cluster: Cluster) -> bool:
    return "Dependency" in cluster.ask("squeue", "-h", "-t", "pending", "-o", "%r")


def kill_a_job(cluster: Cluster) -> str:
    """By the end of its process, as where memory has run out."""
    killed = min(running(cluster))
    until(lambda: tasks_of(cluster, killed), "its process")
    for task in tasks_of(cluster, killed):
        os.kill(task, signal.SIGKILL)
    return killed


def until(holds, what: str, seconds: float = 300.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.5)


def log_of(folder: Path, job: str) -> str:
    """What a job has said so far."""
    logs = folder.glob(f"outputs/audits/*/.submitit/{job}/{job}_*_log.*")
    return "".join(path.read_text(errors="replace") for path in logs)


def tasks_of(cluster: Cluster, job: str) -> list[int]:
    """Process ids of what srun has started for a job."""
    number = cluster.ask("squeue", "-h", "-j", job, "-o", "%A").strip()  # which `listpids` wants also in an array
    rows = [row.split() for row in cluster.ask("scontrol", "listpids", number).splitlines()[1:]]
    return [int(row[0]) for row in rows if row[2] == "0" and row[3] != "-"]


def test_a_sweep_through_all_faults_ends_with_the_numbers_of_one_process(cluster, ask, start, tmp_path):
    """20 cells as a job array behind one of what they share: a job of each killed, one cancelled, one queued again, and
    the node daemon killed."""
    sweep = ask(NUM_SETS, "name=beside", f"method.score.k={','.join(map(str, KS))}")
    here = start(sweep, tmp_path / "here")
    process = start(sweep, tmp_path / "jobs", *JOBS)
    until(lambda: running(cluster), "the first jobs")
    maker = kill_a_job(cluster)
    until(lambda: waiting_for_others(cluster), "the cells, which wait for all that they share")
    makers = {item.partition("_")[0] for item in running(cluster)}
    until(lambda: not makers & {item.partition("_")[0] for item in queued(cluster)}, "what they share", PATIENCE)
    assert len(list((tmp_path / "jobs" / "outputs" / "audits" / "beside").glob("*/result.json"))) == 0
    until(lambda: len(running(cluster)) == cluster.slots, "the first cells")
    killed = kill_a_job(cluster)
    array, _, _ = killed.partition("_")
    cancelled = f"{array}_{NUM_SETS * len(KS) - 1}"
    cluster.ask("scancel", cancelled)
    cluster.kill_node_daemon()
    time.sleep(5)
    cluster.start_node_daemon()
    until(lambda: running(cluster), "another job")
    again = max(running(cluster))
    assert not cluster.ask("scontrol", "requeue", again)

    out = said(process, status=1)
    for job in (maker, killed, cancelled):
        assert f"Job {job} ended without a result" in out
    assert out.count("not run  ") == 2
    assert f"{NUM_SETS * len(KS) - 2} of {NUM_SETS * len(KS)} audits ended, 2 are left." in out
    assert "Traceback" not in out
    assert log_of(tmp_path / "jobs", again).count("Loading pickle") > log_of(tmp_path / "jobs", killed).count(
        "Loading pickle"
    )

    out = said(start(sweep, tmp_path / "jobs", *JOBS))
    assert out.count("inconclusive") + out.count("evidence_of") >= NUM_SETS * len(KS), "a row for each cell"
    assert not list((tmp_path / "jobs").glob("outputs/audits/beside/.cells-*"))
    assert said(here)
    assert results(tmp_path / "jobs") == results(tmp_path / "here")
    assert len(results(tmp_path / "here")) == NUM_SETS * len(KS)


def test_a_job_whose_time_is_over_goes_on_from_its_step(cluster, ask, start, tmp_path):
    """Slurm's warning, given while it trains: submitit has the job queued again, and it resumes."""
    long = ask(1, "name=long", "method.distillation.optimization.epochs=400", "trainer.checkpoint_seconds=1")
    process = start(long, tmp_path / "jobs", *JOBS)
    until(lambda: list(tmp_path.glob("jobs/outputs/store/models/.partial-*/.resume-*")), "training")
    (job,) = running(cluster)
    cluster.ask("scancel", "--signal=USR2", job)
    out = said(process)
    told = log_of(tmp_path / "jobs", job)
    assert "Requeued job" in told
    assert "continuing from the point that an earlier run reached" in told
    assert "models trained: 1" in out
    assert said(start(long, tmp_path / "here"))
    assert results(tmp_path / "jobs") == results(tmp_path / "here")


def test_two_tasks_train_together(cluster, ask, start, tmp_path):
    """Lightning over the tasks that srun starts; as tests/audits/test_two_processes.py for those it starts itself."""
    item = ask(1, "name=two", "method.distillation.optimization.epsilon=1e-3")
    together = (
        "trainer=ddp",
        "trainer.make_trainer.accelerator=cpu",
        "trainer.make_trainer.devices=2",
        "trainer.precision=32-true",
        "hydra.launcher.tasks_per_node=2",
    )
    out = said(start(item, tmp_path / "jobs", *JOBS, *together))
    assert "models trained: 1" in out
    assert said(start(item, tmp_path / "here"))
    there, here = (sorted((tmp_path / name).glob("outputs/audits/two/*/scores.parquet")) for name in ("jobs", "here"))
    for column in ("target", "reference", "distilled"):
        np.testing.assert_allclose(*(pq.read_table(paths[0])[column].to_numpy() for paths in (there, here)), atol=1e-4)
