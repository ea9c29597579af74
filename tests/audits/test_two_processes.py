"""The whole way of an audit by two processes: the numbers of one, each artifact once, nobody left waiting."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pyarrow.parquet as pq
import pytest
from lightning.pytorch.strategies import ModelParallelStrategy

import tiny
from nonmember.audits.question import Audit
from nonmember.audits.run import run_audit
from nonmember.methods import Prism
from nonmember.results.result import AuditResult
from nonmember.runtime.processes import process_rank
from nonmember.scores import MinKPlusPlus
from nonmember.tracking.trackers import CsvLogging, NoLogging, RunInfo
from nonmember.training import Trained

# A large epsilon, so that rounding does not decide the sign of Adam's steps.
RECIPE = {"epsilon": 1e-3, "learning_rate": 1e-2, "batch_size": 5}
TARGET = Trained(tiny.scratch(1), tiny.pretraining(**RECIPE), tiny.GENERAL, seed=1, label="target")
METHOD = Prism(MinKPlusPlus(0.5), tiny.distillation(**RECIPE), "spearman", 100, 0.05, 0.0, 64)
AUDIT = Audit(TARGET, tiny.scratch(2), tiny.SUSPECT, METHOD, seed=1, corpus_label="texts")


def run(folder: Path, **trainer) -> None:
    shop = tiny.builder(folder / "store", micro_batch_size=3, checkpoint_seconds=0.0)
    shop.compute = replace(shop.compute, make_trainer=functools.partial(shop.compute.make_trainer, **trainer))
    logging = CsvLogging() if process_rank() == 0 else NoLogging()
    with logging.start(RunInfo("audit", "", "", [], {}, folder / "curves")) as shop.tracker:
        run_audit(AUDIT, shop, folder)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["ddp", "sharded"])
def test_two_processes_give_the_result_of_one(tmp_path, strategy):
    here = Path(__file__)
    command = [sys.executable, str(here), str(tmp_path / "two"), strategy]
    paths = os.pathsep.join([str(here.parents[1]), os.environ.get("PYTHONPATH", "")])
    subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, check=True, timeout=300)
    run(tmp_path / "one")

    item, two = (AuditResult.load(tmp_path / name / "result.json") for name in ("one", "two"))
    assert two.provenance.made == item.provenance.made
    assert two.provenance.keys == item.provenance.keys
    assert two.health.training == pytest.approx(item.health.training, abs=1e-5)
    assert two.verdict.decision == item.verdict.decision
    curves = [pandas.read_csv(tmp_path / name / "curves" / "metrics.csv") for name in ("one", "two")]
    losses = [curve[curve["name"].isin(["train/kl", "train_target/loss"])]["value"].astype(float) for curve in curves]
    assert len(losses[0]) > 4
    np.testing.assert_allclose(*losses, rtol=1e-4)
    scores = [pq.read_table(tmp_path / name / "scores.parquet") for name in ("one", "two")]
    for column in ("target", "reference", "distilled"):
        np.testing.assert_allclose(*(table[column].to_numpy() for table in scores), atol=1e-4)

    shops = [tiny.builder(tmp_path / name / "store") for name in ("one", "two")]
    distilled = METHOD.groups(AUDIT.roles)["suspect"].measured["distilled"].model
    for spec in (TARGET, distilled):
        tiny.assert_equal_weights(*(tiny.weights(shop.get(spec).model) for shop in shops), atol=1e-6)
    entries = [
        sorted(path.name for path in (tmp_path / name / "store" / "models").iterdir()) for name in ("one", "two")
    ]
    assert [name for name in entries[1] if not name.startswith(".lock")] == [
        name for name in entries[0] if not name.startswith(".lock")
    ]
    parts = [
        sorted(path.name for path in folder.iterdir())
        for folder in (tmp_path / "two/store/observations").glob("*-original-*")
    ]
    assert parts == [["part-0.parquet", "part-1.parquet", "sidecar.json"]] * 3


def sharded() -> ModelParallelStrategy:
    """What conf/trainer/fsdp.yaml builds, over CPUs."""
    return ModelParallelStrategy(
        data_parallel_size=2, tensor_parallel_size=1, save_distributed_checkpoint=False, process_group_backend="gloo"
    )


if __name__ == "__main__":
    run(Path(sys.argv[1]), devices=2, strategy=sharded() if sys.argv[2] == "sharded" else "ddp")
