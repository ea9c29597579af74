"""What one cell of FSD costs beyond its work, side by side in one run: `python benchmarks/tuning.py [--json PATH]`.

1. A target tuned and both sides observed, as the builder does it (keys, store and resume points included), against the
   bare tuning steps in a loop of a few lines and the two observing passes alone. By kind of adapter.
2. Bytes of weights in memory with target and tuned target loaded, against those of the target alone.

Threads are those of the environment (OMP_NUM_THREADS). With a GPU, everything is measured there.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: spinning threads starve each other
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from hydra import compose, initialize_config_dir
from hydra.utils import instantiate
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

from nonmember.artifacts import Builder
from nonmember.artifacts.store import Store
from nonmember.config.choices import config_directory
from nonmember.config.roots import register
from nonmember.corpora import CorpusSpec
from nonmember.models import Pretrained
from nonmember.models.encoding import encode
from nonmember.models.forward import split_forward
from nonmember.models.loading import LoadedModel, save, train_tokenizer
from nonmember.observations import TokenStatistics
from nonmember.observations.base import Reading
from nonmember.observations.passes.tokens import observe
from nonmember.records import Corpus, Document
from nonmember.runtime.compute import MIB, Compute
from nonmember.runtime.quiet import quieten
from nonmember.tracking.trackers import NoTracker
from nonmember.training import Trained
from nonmember.training.adapters import RankSchedule, add_adapter
from nonmember.training.batches import StepLoader, plan_steps
from nonmember.training.modules import learning_rate_factor
from nonmember.training.recipes import AdaLora, AdapterTuning

LARGEST_RATIO, LARGEST_SHARE = 1.1, 1.05
NUM_UNSEEN, NUM_SUSPECTS, NUM_WORDS = 200, 500, 75
SEED, MAX_TOKENS = 1, 512
SIZES = {"cpu": {"hidden": 96, "layers": 3, "heads": 4}, "gpu": {"hidden": 2048, "layers": 24, "heads": 16}}


class MadeUp(CorpusSpec):
    """Documents of words with about 1.5 tokens each."""

    stored = False

    def __init__(self, number: int, seed: int):
        rng = np.random.default_rng(seed)
        words = ["".join(rng.choice(list("abcdefghij"), 4)) for _ in range(400)]
        texts = (" ".join(rng.choice(words, rng.integers(NUM_WORDS - 15, NUM_WORDS + 1))) for _ in range(number))
        self.documents = tuple(Document(f"{seed}-{index}", text) for index, text in enumerate(texts))

    def build(self, resolve: Any) -> Corpus:
        return Corpus(self.documents)

    def identity(self) -> dict[str, Any]:
        return {"fingerprint": Corpus(self.documents).fingerprint}


UNSEEN, SUSPECTS = MadeUp(NUM_UNSEEN, 1), MadeUp(NUM_SUSPECTS, 2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the results here")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    quieten()
    register()
    device = "gpu" if torch.cuda.is_available() else "cpu"
    with initialize_config_dir(str(config_directory()), version_base=None):
        compute = instantiate(compose("train", overrides=[f"trainer={device}"]).trainer, _convert_="all")
    results = []
    with tempfile.TemporaryDirectory() as folder:
        target = random_target(Path(folder) / "target", **SIZES[device])
        for kind in ("lora", "adalora", "ia3"):
            results.append(cell_against_its_work(kind, target, compute, arguments.repeats))
        results.append(weights_in_memory(target, compute))
    for result in results:
        result |= {"device": device, "threads": torch.get_num_threads()}
        print(f"{result['ratio']:6.3f} times  (required {result['required']})  {result['name']} ({device})")
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return int(any(result["ratio"] > result["required"] for result in results))


def random_target(folder: Path, *, hidden: int, layers: int, heads: int) -> Pretrained:
    torch.manual_seed(0)
    tokenizer = train_tokenizer(Corpus(UNSEEN.documents), 2048)
    config = GPTNeoXConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        intermediate_size=4 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        max_position_embeddings=MAX_TOKENS,
        use_cache=False,
    )
    save(LoadedModel(GPTNeoXForCausalLM(config), tokenizer), folder)
    return Pretrained(str(folder))


def recipe_of(kind: str) -> AdapterTuning:
    with initialize_config_dir(str(config_directory()), version_base=None):
        config = compose(
            "train", overrides=["world=micro", "model=micro_target_high", f"training@model.training=fsd_{kind}"]
        )
    return replace(instantiate(config.model.training, _convert_="all"), max_tokens=MAX_TOKENS)


def cell_against_its_work(kind: str, target: Pretrained, compute: Compute, repeats: int) -> dict[str, Any]:
    """In turn, so that a busy moment hits both; the model is in memory before, as in a sweep."""
    recipe = recipe_of(kind)
    pairs = [
        (seconds_of_cell(recipe, target, compute), seconds_of_work(recipe, target, compute)) for _ in range(1 + repeats)
    ][1:]  # the first warms up
    return {
        "name": f"{kind}: tuning and observing both sides, against the bare steps and the passes alone",
        "required": LARGEST_RATIO,
        "ratio": statistics.median(cell / work for cell, work in pairs),
        "ratios": [cell / work for cell, work in pairs],
        "cell_seconds": statistics.median(cell for cell, _ in pairs),
        "work_seconds": statistics.median(work for _, work in pairs),
        "num_steps": NUM_UNSEEN // recipe.optimization.batch_size * recipe.optimization.epochs,
    }


def seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - started


def seconds_of_cell(recipe: AdapterTuning, target: Pretrained, compute: Compute) -> float:
    tuned = Trained(target, recipe, UNSEEN, seed=SEED, label="tuned")
    with tempfile.TemporaryDirectory() as folder:
        builder = Builder(Store(Path(folder)), compute, NoTracker())
        builder.get(target)

        def cell() -> None:
            for model in (target, tuned):
                builder.get(TokenStatistics(model, SUSPECTS, "original", MAX_TOKENS))

        return seconds(cell)


def seconds_of_work(recipe: AdapterTuning, target: Pretrained, compute: Compute) -> float:
    """The same batches, losses and steps, with nothing around them."""
    with tempfile.TemporaryDirectory() as folder:
        loaded = Builder(Store(Path(folder)), compute, NoTracker()).get(target)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    documents, shown = (
        encode(loaded.tokenizer, [document.text for document in corpus.documents], MAX_TOKENS)
        for corpus in (UNSEEN, SUSPECTS)
    )
    optimization, adapter = recipe.optimization, recipe.adapter
    steps = plan_steps(
        len(documents), batch_size=optimization.batch_size, epochs=optimization.epochs, seed=SEED, drop_last=True
    )
    loader = StepLoader(documents, steps, micro_batch_size=compute.micro_batch_size, padding_id=0)
    tuned = add_adapter(loaded.model, adapter, seed=SEED, num_steps=len(steps))
    ranks = RankSchedule(tuned, adapter) if isinstance(adapter, AdaLora) else None
    split = split_forward(tuned)
    parameters = [parameter for parameter in tuned.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(
        parameters,
        lr=optimization.learning_rate,
        betas=optimization.betas,
        eps=optimization.epsilon,
        weight_decay=optimization.weight_decay,
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: learning_rate_factor(step, len(steps), optimization)
    )
    autocast = torch.autocast(device.type, torch.bfloat16, enabled=compute.precision == "bf16-mixed")

    def tuning() -> None:
        tuned.to(device).train()
        optimizer.zero_grad()
        for number, batch in enumerate(loader, start=1):
            ids_BT, lengths_B = batch["input_ids"].to(device), batch["lengths"].to(device)
            mask = torch.arange(1, ids_BT.shape[1], device=device) < lengths_B[:, None]
            with autocast:
                features_ND, targets_N = split.body(ids_BT)[:, :-1][mask], ids_BT[:, 1:][mask]
                loss = F.cross_entropy(split.head(features_ND).float(), targets_N, reduction="sum")
                if ranks is not None:
                    loss = loss + len(targets_N) * ranks.orthogonality * ranks.deviation_from_orthogonality()
            (loss / batch["step_tokens"].to(device)).backward()
            if number % loader.accumulate:
                continue
            torch.nn.utils.clip_grad_norm_(parameters, optimization.gradient_clip)
            optimizer.step()
            schedule.step()
            if ranks is not None:
                ranks.after_step(number // loader.accumulate)
            optimizer.zero_grad()
        tuned.to("cpu").eval()

    def observing(model: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            reading = Reading(Path(folder), compute.trainer, compute.max_batch_tokens, compute.block_mib * MIB)
            observe(model, {str(index): ids for index, ids in enumerate(shown)}, reading)

    return seconds(tuning) + seconds(lambda: observing(loaded.model)) + seconds(lambda: observing(tuned))


def weights_in_memory(target: Pretrained, compute: Compute) -> dict[str, Any]:
    tuned = Trained(target, recipe_of("lora"), UNSEEN, seed=SEED, label="tuned")
    with tempfile.TemporaryDirectory() as folder:
        builder = Builder(Store(Path(folder)), compute, NoTracker())
        models = [builder.get(spec).model for spec in (target, tuned)]
    tensors = [{item.data_ptr(): item.nbytes for item in model.parameters()} for model in models]
    alone, both = sum(tensors[0].values()), sum((tensors[0] | tensors[1]).values())
    return {
        "name": "bytes of weights with the target and a LoRA on it, against the target's",
        "required": LARGEST_SHARE if torch.cuda.is_available() else 1.1,  # of a small model an adapter is a larger part
        "ratio": both / alone,
        "bytes_of_target": alone,
        "bytes_of_both": both,
    }


if __name__ == "__main__":
    sys.exit(main())
