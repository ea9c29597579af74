"""What two workers make of a sweep whose cells share models: `python benchmarks/sweep.py [--json PATH] [--pairs N]`.

A grid of 24 audits of small models (six sets, four lambdas; with --full the micro world's own, which take three times
as long) is run by one process and by joblib with two workers, one after the other and with a thread each, in pairs.
Ratio: the time of two workers against half that of one (least of the pairs, since whatever else the machine does can
only add to it). Beside it the processor's seconds, how often one waited for another, and whether all was made once.
The prepared corpora are taken from the store of $NONMEMBER_OUTPUTS (default: outputs) if they are there.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

LARGEST_RATIO = 1.15
GRID = [
    "audit",
    "-m",
    "method=prism",
    "world=micro",
    "name=sweep",
    "logger=none",
    "gates=off",
    "data.domain=scipy,sympy,torch",
    "data.half=a,b",
    "method.distillation.lambda_=0.1,0.3,0.5,0.7",
]
SMALL = ["world.num_documents=60", "world.num_general.pretraining=1200", "world.num_general.continuation=600"]
LAUNCHERS = {1: ["launcher=basic"], 2: ["launcher=joblib", "hydra.launcher.n_jobs=2"]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the results here")
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--full", action="store_true", help="models and sets of the micro world's own size")
    arguments = parser.parse_args()
    corpora = Path(os.environ.get("NONMEMBER_OUTPUTS", "outputs")).absolute() / "store" / "corpora"
    grid = GRID if arguments.full else [*GRID, *SMALL]
    pairs = [{number: measured(grid, number, corpora) for number in LAUNCHERS} for _ in range(arguments.pairs)]
    ratios = [2 * pair[2]["seconds"] / pair[1]["seconds"] for pair in pairs]
    result = {
        "name": "24 audits by two workers against half the time of one",
        "ratio": min(ratios),
        "ratios": ratios,
        "required": LARGEST_RATIO,
        "pairs": pairs,
        "made_twice": any(run["trained"] != run["models"] for pair in pairs for run in pair.values()),
        "tables_equal": all(pair[1]["rows"] == pair[2]["rows"] for pair in pairs),
    }
    print(f"{result['ratio']:.3f} times  (required {LARGEST_RATIO}): {result['name']}")
    for pair in pairs:
        for number, run in pair.items():
            print(
                f"  {number} worker{'s' if number > 1 else ''}: {run['seconds']:.0f} s, {run['cpu_seconds']:.0f} s of "
                f"the processor, {run['waits']} waits for another, "
                f"{run['trained']} models trained and {run['models']} in the store"
            )
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps([result], indent=1) + "\n", encoding="utf-8")
    return int(result["ratio"] > LARGEST_RATIO or result["made_twice"] or not result["tables_equal"])


def measured(grid: list[str], number: int, corpora: Path) -> dict[str, Any]:
    """A whole run of the grid in a new place, as a user starts it."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        if corpora.is_dir():
            shutil.copytree(corpora, store / "corpora")
        command = [sys.executable, "-m", "nonmember.cli", *grid, *LAUNCHERS[number], f"outputs={folder}"]
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | threads)
        seconds, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
        trained = re.search(r"models trained: ([\d,]+)", done.stdout)
        return {
            "seconds": seconds,
            "cpu_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            "waits": done.stdout.count("waiting for it"),
            "trained": int(trained[1].replace(",", "")) if trained else 0,
            "models": sum(1 for _ in store.glob("models/*/sidecar.json")),
            "rows": sorted(line for line in done.stdout.splitlines() if "lambda=" in line),
        }


if __name__ == "__main__":
    sys.exit(main())
