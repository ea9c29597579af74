"""What `nonmember check` expects of audits beside what they took: `python benchmarks/estimates.py [--json PATH]`.

Audits of micro models and of SmolLM2 (make setup EXTRAS=real), each in a store of its own, with one thread
(OMP_NUM_THREADS=1): what they train, read and ask, without start-up and tests.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from nonmember.config.compose import composed
from nonmember.config.feasible import check_cell
from nonmember.feasibility.memory import Machine
from nonmember.feasibility.table import TRAINED, hours

MICRO = ("world=micro", "world.num_general={pretraining: 400, continuation: 200}")
# One set alone, and little general text: minutes.
SMOLLM = (
    *("world=smollm", "world.num_documents=8", "world.num_general={pretraining: 16, continuation: 16}"),
    *("data.domain=scipy", *(f"world.sets.{name}=null" for name in ("pandas", "stdlib", "sympy", "torch"))),
)
ASKED = ("data=smollm_mc_pdd", "model@target=smollm_pretrained")
AUDITS: Mapping[str, Sequence[str]] = {
    "micro, PRISM": (*MICRO, "method=prism"),
    "micro, MC-PDD": (*MICRO, "data=micro_mc_pdd", "method=mc_pdd", "model@target=micro_chat"),
    "SmolLM2, PRISM": (*SMOLLM, "method=prism", "model@target=smollm_planted", "data.reading=never"),
    "SmolLM2, prefix completion": (*SMOLLM, *ASKED, "method=prefix_completion"),
    "SmolLM2, name cloze": (*SMOLLM, *ASKED, "method=name_cloze"),
    "SmolLM2, MC-PDD": (*SMOLLM, *ASKED, "method=smollm_mc_pdd", "method.control=false"),
}


def expected(overrides: Sequence[str], machine: Machine) -> Counter[str]:
    """Seconds by kind of work."""
    with composed("audit", overrides) as (config, _):
        checked = check_cell(config, machine, date.today())
    if not checked.jobs:
        raise ValueError(f"{' '.join(overrides)}: {'; '.join(checked.asks)}")
    seconds: Counter[str] = Counter()
    for job in checked.jobs:
        kind = "trained" if job.kind in TRAINED else "read" if job.kind == "observing" else "asked"
        seconds[kind] += 3600 * (hours([job], machine) or 0.0)
    return seconds


def taken(overrides: Sequence[str]) -> float:
    """Processor seconds of the audit, less those of the same command once all is in its store: a busy machine takes
    longer by the clock, not by these."""
    with tempfile.TemporaryDirectory() as folder:
        return _seconds(overrides, folder, "first") - _seconds(overrides, folder, "again")


def _seconds(overrides: Sequence[str], folder: str, run: str) -> float:
    before = os.times()
    command = [sys.executable, "-m", "nonmember.cli", "audit", *overrides, f"store={folder}/store"]
    subprocess.run([*command, f"hydra.run.dir={folder}/{run}"], check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="of audits, or parts of names; default: all")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    machine = Machine.here()
    print(f"{machine.device}, {machine.tflops:.3f} TFLOP/s")
    rows = []
    for name, overrides in AUDITS.items():
        if given.names and not any(part in name for part in given.names):
            continue
        seconds, measured = expected([*overrides, "trainer=cpu"], machine), taken([*overrides, "trainer=cpu"])
        ratio = seconds.total() / measured
        rows.append({"audit": name, "expected_s": dict(seconds), "measured_s": measured, "ratio": ratio})
        kinds = ", ".join(f"{kind} {value:.1f}" for kind, value in seconds.items())
        print(f"| {name} | {seconds.total():.1f} ({kinds}) | {measured:.1f} | {ratio:.2f} |", flush=True)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
