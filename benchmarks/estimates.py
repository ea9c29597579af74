"""What `nonmember check` expects of audits beside what they took: `python benchmarks/estimates.py [--json PATH]`.

Audits of micro models and of SmolLM2 (make setup EXTRAS=real), each in a store of its own, with one thread
(OMP_NUM_THREADS=1), on a machine with nothing else running: the seconds that the store's entries record for what was
trained, read and asked, without texts, tests and pages. The first training of a process also loads Lightning.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from nonmember.config.feasible import check_cell
from nonmember.feasibility.memory import Machine
from nonmember.feasibility.table import TRAINED, hours

from nonmember.config.compose import composed

MICRO = ("world=micro", "world.num_general={pretraining: 400, continuation: 200}")
# One set alone, and little general text: minutes.
SMOLLM = (
    *("world=smollm", "world.num_documents=32", "world.num_general={pretraining: 16, continuation: 16}"),
    *("data.domain=scipy", *(f"world.sets.{name}=null" for name in ("pandas", "stdlib", "sympy", "torch"))),
)
ASKED = ("data=smollm_mc_pdd", "model@target=smollm_pretrained")
AUDITS: Mapping[str, Sequence[str]] = {
    "micro, PRISM": (*MICRO, "method=prism"),
    "micro, MC-PDD": (*MICRO, "data=micro_mc_pdd", "method=mc_pdd", "model@target=micro_chat"),
    "SmolLM2, PRISM": (*SMOLLM, "method=prism", "model@target=smollm_planted", "data.reading=never"),
    "SmolLM2, prefix completion": (*SMOLLM, *ASKED, "method=prefix_completion", "method.k=20"),  # of half a text
    "SmolLM2, name cloze": (*SMOLLM, *ASKED, "method=name_cloze"),
    "SmolLM2, MC-PDD": (*SMOLLM, *ASKED, "method=smollm_mc_pdd", "method.control=false", "method.stop_words=english"),
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


def taken(overrides: Sequence[str]) -> Counter[str]:
    """Seconds by kind of work, as `expected`."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "nonmember.cli", "audit", *overrides]
        command += [f"store={folder}/store", f"hydra.run.dir={folder}/run"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds: Counter[str] = Counter()
        for path in Path(folder, "store").glob("*/*/sidecar.json"):
            made = json.loads(path.read_text(encoding="utf-8"))["made"]
            if path.parts[-3] == "models":
                seconds["trained"] += made["seconds"]
            elif path.parts[-3] == "observations":
                seconds["asked" if made["alike"] == "Completions" else "read"] += made["seconds"]
        return seconds


def _text(seconds: Counter[str]) -> str:
    return f"{seconds.total():.1f} ({', '.join(f'{kind} {value:.1f}' for kind, value in seconds.items())})"


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
        estimate = expected([*overrides, "trainer=cpu"], machine)
        measured = taken([*overrides, "trainer=cpu"])
        ratio = estimate.total() / measured.total()
        rows.append({"audit": name, "expected_s": dict(estimate), "measured_s": dict(measured), "ratio": ratio})
        print(f"| {name} | {_text(estimate)} | {_text(measured)} | {ratio:.2f} |", flush=True)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
