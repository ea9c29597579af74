"""What a grid of lambda and tau costs beyond its distillations.

    python benchmarks/grid.py [--json PATH] [--size N] [SETTING ...]

The grid (sweeps/lambda_tau.yaml, N x N cells of the micro world) is run as a user runs it, in a process of its own,
with target, reference and their observations in the store. Beside it the same distillations (health included) and the
same observations, made one after the other with nothing around them: half of them before the grid, half after it, and
the time a process takes to load the libraries they need, since the grid's does so too.
The store of $NONMEMBER_OUTPUTS (default: outputs) is read; what is made goes to a temporary folder. Several minutes.
`--size 1 world.num_general.pretraining=300 world.num_general.continuation=300` shows that it runs, and nothing else.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: spinning threads starve each other

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir

from nonmember.config.build import build_audit
from nonmember.config.choices import config_directory
from nonmember.config.compose import shared
from nonmember.config.roots import register
from nonmember.config.runs import builder_of
from nonmember.models.encoding import encode_corpus
from nonmember.observations.base import Reading
from nonmember.observations.passes.tokens import observe
from nonmember.runtime.quiet import quieten
from nonmember.training.run import TrainingRun, train
from nonmember.training.tokens import end_of_text_id

LARGEST_RATIO = 1.10
LAMBDAS = ("0.1", "0.3", "0.5", "0.7", "0.9")
TAUS = ("1.0", "2.0", "3.0", "4.0", "6.0")
MADE_BY_THE_GRID = "distilled"  # store entries that are not taken along


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the results here")
    parser.add_argument("--size", type=int, default=5, help="the grid has so many lambdas and as many taus")
    parser.add_argument("settings", nargs="*", help="of each audit, as on the command line")
    arguments = parser.parse_args()
    quieten()
    register()
    lambdas, taus = LAMBDAS[: arguments.size], TAUS[: arguments.size]
    cells = list(itertools.product(lambdas, taus))
    outputs = Path(os.environ.get("NONMEMBER_OUTPUTS", "outputs")).absolute()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        command = ["audit", "-m", "--config-dir", "sweeps", "--config-name", "lambda_tau"]
        asked = ["method=prism", "world=micro", "logger=none", "data.domain=scipy", *arguments.settings]
        base = [*asked, f"store={root / 'store'}", f"outputs={root}"]
        run(["audit", *asked, f"store={outputs / 'store'}", f"outputs={root}"])  # makes the models
        take_along(outputs / "store", root / "store")
        alone = seconds_alone(cells[: len(cells) // 2], base, root)
        grid = run(
            [
                *command,
                *base,
                f"method.distillation.lambda_={','.join(lambdas)}",
                f"method.distillation.tau={','.join(taus)}",
            ]
        )
        alone += seconds_alone(cells[len(cells) // 2 :], base, root)
        loading = seconds_to_load()
    result = {
        "name": f"a {arguments.size} x {arguments.size} grid against its distillations and observations alone",
        "grid_seconds": grid,
        "alone_seconds": alone,
        "loading_seconds": loading,
        "ratio": grid / (alone + loading),
        "required": LARGEST_RATIO,
    }
    took = f"{grid:.0f} s against {alone:.0f} s and {loading:.0f} s of loading"
    print(f"{result['ratio']:.3f} times  (required {LARGEST_RATIO})  {took}: {result['name']}")
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps([result], indent=1) + "\n", encoding="utf-8")
    return int(result["ratio"] > LARGEST_RATIO)


def run(arguments: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "nonmember.cli", *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def seconds_to_load() -> float:
    started = time.perf_counter()
    libraries = "import nonmember.audits.run, nonmember.training.run, nonmember.observations.passes.tokens"
    subprocess.run([sys.executable, "-c", libraries], check=True)
    return time.perf_counter() - started


def take_along(store: Path, to: Path) -> None:
    """Links to everything but distilled references and what they said."""
    for kind in store.iterdir():
        (to / kind.name).mkdir(parents=True)
        for entry in kind.iterdir():
            if not entry.name.startswith((".", MADE_BY_THE_GRID)):
                (to / kind.name / entry.name).symlink_to(entry)


def seconds_alone(cells: list[tuple[str, str]], base: list[str], root: Path) -> float:
    """Time of the distillations and observations of some cells, everything they need being in memory."""
    total = 0.0
    for lambda_, tau in cells:
        distillation = f"method.distillation.lambda_={lambda_}", f"method.distillation.tau={tau}"
        with initialize_config_dir(str(config_directory()), version_base=None):
            config = compose("audit", overrides=[*base, *distillation])
        audit, builder = build_audit(config), builder_of(config, *shared(Path(config.store).absolute()))
        spec: Any = audit.method.groups(audit.roles)["suspect"].measured["distilled"].model
        student = spec.base.weights(builder)
        documents = encode_corpus(student, builder.get(spec.corpus), spec.training.max_tokens)
        teacher, documents, _ = spec.as_teacher(builder, student, documents, None)
        token_ids = dict(zip(builder.get(spec.corpus).doc_ids, documents, strict=True))
        folder = root / "alone" / f"{lambda_}-{tau}"
        folder.mkdir(parents=True)
        started = time.perf_counter()
        compute = builder.compute
        end_of_text = end_of_text_id(student.tokenizer)
        run = TrainingRun(spec.seed, folder, compute)
        train(student.model, documents, spec.training, run, end_of_text=end_of_text, teacher=teacher)
        reading = Reading(folder, compute.trainer, compute.max_batch_tokens, compute.block_mib * 2**20, "alone")
        observe(student.model, token_ids, reading)
        total += time.perf_counter() - started
    return total


if __name__ == "__main__":
    sys.exit(main())
