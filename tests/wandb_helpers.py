"""What the tests of W&B share: an audit's result and its files, without an audit, and W&B without a home."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flat_results import upgraded
from nonmember.results.result import CONFIG, ERROR, RESULT, AuditResult

SETTINGS = {
    "method": "prism",
    "score": {"kind": "MinKPlusPlus", "k": 0.2, "compat": "none"},
    "distillation": {
        "kind": "Distillation",
        "optimization": {"kind": "Optimization", "learning_rate": 0.003, "epochs": 1, "betas": [0.9, 0.99]},
        "lambda_": 0.7,
        "tau": 2.0,
        "max_tokens": 128,
    },
    "rank_metric": "spearman",
    "num_resamples": 10000,
    "alpha": 0.05,
    "max_tokens": 512,
}
RESULT_OF_PRISM: dict[str, Any] = {
    "method": "prism",
    "target": "micro_target_high",
    "reference": "micro_l",
    "corpus": "scipy-a",
    "heldout": None,
    "world": "micro",
    "sweep": "demo",
    "cell": "seed=1",
    "data": {"domain": "scipy", "half": "a", "label": "scipy-a", "num_documents": None},
    "truth": "member",
    "num_documents": 40,
    "num_excluded": 1,
    "num_tokens": 3600,
    "statistic": -0.12,
    "p_value": 0.93,
    "ci_low": -0.3,
    "ci_high": 0.05,
    "alpha": 0.05,
    "rho_reference_target": 0.61,
    "rho_distilled_target": 0.73,
    "verdict": "inconclusive",
    "allowed_claim": "None.",
    "warnings": ("40 documents are few.",),
    "seed": 1234,
    "score": "min_k++",
    "settings": SETTINGS,
    "details": {
        "rho_distilled_reference": 0.8,
        "p_value_at_margin_0.1": 1.0,
        "num_tied_scores": {"target": 3},
        "auroc": 0.5,
        "bins": [{"x": 1.0}],
        "why": "words",
        "undefined": None,
    },
    "health": {"kl_before": 1.0, "kl_after": 0.5},
    "capability": {"target": {"nll": 3.2, "num_parameters": 1e6}},
    "dropped": {},
    "excluded": {"d40": "target: too short"},
    "keys": {"audit": "0123456789abcdef", "corpus": "f" * 64},
    "versions": {},
    "made": {"trained": 1},
    "seconds": 12.5,
}


def result(**changes: Any) -> AuditResult:
    """Told flat, as earlier versions wrote it."""
    return upgraded(RESULT_OF_PRISM | changes)


def lay_down(folder: Path, of: AuditResult, *, config: dict[str, Any] | None = None) -> Path:
    """The files an audit leaves in its folder; returns result.json."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    target = rng.normal(size=of.statistics.num_documents)
    columns = {
        "doc_id": [f"d{number}" for number in range(of.statistics.num_documents)],
        "target": target,
        "reference": target + rng.normal(size=of.statistics.num_documents),
        "distilled": target + 0.5 * rng.normal(size=of.statistics.num_documents),
    }
    pq.write_table(pa.table(columns), folder / "scores.parquet")
    pq.write_table(
        pa.table({"statistic": [*rng.normal(-0.12, 0.1, size=200), np.nan]}), folder / "distribution.parquet"
    )
    (folder / CONFIG).write_text(json.dumps(config or {"name": of.question.sweep, "seed": of.question.seed}))
    of.save(folder / RESULT)
    return folder / RESULT


def lay_down_failure(folder: Path, error: str = "No luck.") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    config = {"name": "demo", "data": {"label": "scipy-a"}, "method": {"_target_": "nonmember.methods.PairedT"}}
    (folder / CONFIG).write_text(json.dumps(config))
    (folder / ERROR).write_text(json.dumps({"cell": folder.name, "error": error, "kind": "ValueError"}))
    return folder / ERROR


@contextmanager
def wandb_without_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No home that could be written to, and none of W&B's own settings."""
    import wandb

    monkeypatch.setenv("HOME", "/dev/null/nowhere")
    for name in [name for name in os.environ if name.startswith("WANDB_")] + [
        *("WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR", "WANDB_DIR", "WANDB_API_KEY", "WANDB_MODE"),
        *("WANDB_PROJECT", "WANDB_ENTITY", "WANDB_BASE_URL", "http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY"),
    ]:
        monkeypatch.setenv(name, "set so that it is put back")
        monkeypatch.delenv(name)
    yield
    wandb.teardown()


def inspect(run: Path) -> dict[str, list[dict]]:
    """The records of an ended offline run by type, read by W&B's own reader: what `wandb leet inspect --json` starts.

    A process of W&B's writes them, which may be a moment behind on a machine that has much to do."""
    end = time.monotonic() + 20
    while "exit" not in (records := _records(run)):
        assert time.monotonic() < end, f"{run.name} has no end, only {sorted(records)}"
        time.sleep(0.2)
    return records


def _records(run: Path) -> dict[str, list[dict]]:
    from wandb.util import get_core_path

    (log,) = run.glob("run-*.wandb")
    options = ["--no-observability", "--json", "--run-file", str(log)]
    command = [get_core_path(), "leet", "inspect", *options, str(run.parent)]
    records: dict[str, list[dict]] = {}
    for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        record = json.loads(line)
        records.setdefault(record["type"], []).append(record[record["type"]])
    return records


def summary_in(records: dict[str, list[dict]]) -> dict[str, Any]:
    summary: dict[str, Any] = {}
    for record in records["summary"]:
        summary |= record["update"]
    return summary


def config_in(records: dict[str, list[dict]]) -> dict[str, Any]:
    """As it was at the end."""
    config = dict(records["run"][0]["config"]["update"])
    for record in records.get("config", []):
        config |= record["update"]
    return config
