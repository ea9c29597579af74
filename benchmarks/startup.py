"""What commands cost besides what they compute: `python benchmarks/startup.py [--json PATH] [--repeats N]`.

Processor seconds of fresh processes, best and median, one after the other. Of the first audit, which reads models, the
import of torch and transformers' causal models, measured beside it, is taken off: any program that reads one pays it.
The models are two of random weights, the size of the micro world's, and the documents docstrings. Exit status 1 where a
command takes longer than required.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("WANDB_MODE", "offline")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import score

NUM_REPEATS = 5
BESIDE = {
    "import": ["-c", "import torch; from transformers import AutoModelForCausalLM, AutoTokenizer, GPTNeoXForCausalLM"],
    "nothing": ["-c", ""],
}
DOCUMENTS = 60


@dataclass(frozen=True)
class Case:
    """A process. beyond: of `BESIDE`, whose time is taken off. first: whether nothing is in the store."""

    name: str
    arguments: list[str]
    required: float
    beyond: str | None = None
    status: int = 0
    first: bool = False


def cases(folder: Path) -> list[Case]:
    command = ["-m", "nonmember.cli"]
    documents = [f"data.path={folder}/documents.jsonl", f"target.path={folder}/target"]
    audit = ["audit", "method=difference_in_differences", f"reference.path={folder}/reference", *documents]
    audit += [f"data.heldout.path={folder}/heldout.jsonl", "gates=off", "logger=none"]
    return [
        Case("nonmember --help", [*command, "--help"], 1.5),
        Case("a misspelt override", [*command, "audit", "nme=x"], 1.5, status=1),
        Case("import nonmember", ["-c", "import nonmember"], 0.2, beyond="nothing"),
        Case("advise", [*command, "advise"], 1.0),
        Case("score, from the store", [*command, "score", *documents], 1.5),
        Case("audit, from the store", [*command, *audit, "name=again"], 3.0),
        Case("the first audit", [*command, *audit, "name=first"], 3.0, beyond="import", first=True),
    ]


def prepare(folder: Path) -> None:
    import torch
    from transformers import GPTNeoXForCausalLM

    texts = score.texts_of(2 * DOCUMENTS)
    model, tokenizer = score.micro()
    for seed, name in enumerate(("target", "reference")):
        torch.manual_seed(seed)
        GPTNeoXForCausalLM(model.config).save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    for start, name in enumerate(("documents", "heldout")):
        lines = [json.dumps({"id": f"{name}-{i}", "text": text}) + "\n" for i, text in enumerate(texts[start::2])]
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")


def seconds_of(arguments: list[str], outputs: Path, status: int = 0) -> float:
    """Processor seconds of a process and of those that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=outputs.parent,
        env=os.environ | {"NONMEMBER_OUTPUTS": str(outputs)},
        capture_output=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != status:
        sys.exit(f"{arguments} ended with status {done.returncode}, not {status}: {done.stderr.decode()}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the results here")
    parser.add_argument("--repeats", type=int, default=NUM_REPEATS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        items = cases(folder)
        taken: dict[str, list[float]] = {item.name: [] for item in items} | {name: [] for name in BESIDE}
        for repeat in range(-1, given.repeats):  # the first, which fills the disk's cache and the store, is not counted
            for case in items:
                outputs = folder / (f"outputs-{repeat}" if case.first else "outputs")
                arguments = [f"name=again-{repeat}" if item == "name=again" else item for item in case.arguments]
                taken[case.name].append(seconds_of(arguments, outputs, case.status))
            for name, arguments in BESIDE.items():
                taken[name].append(seconds_of(arguments, folder / "outputs"))
    best, median = ({key: how(values[1:]) for key, values in taken.items()} for how in (min, statistics.median))
    results = []
    for case in items:
        found = [times[case.name] - (times[case.beyond] if case.beyond else 0.0) for times in (best, median)]
        results.append({"name": case.name, "best": found[0], "median": found[1], "required": case.required})
    print(f"CPU seconds; the import of torch and transformers alone takes {median['import']:.2f}")
    for result in results:
        print("{name:24} best {best:5.2f}, median {median:5.2f} (required {required})".format(**result))
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return int(any(result["median"] > result["required"] for result in results))


if __name__ == "__main__":
    sys.exit(main())
