"""What observing costs, measured side by side in one run: `python benchmarks/observing.py [--json PATH]`.

1. Tokens per second against the bare forward pass with logits on the same batches, as a ratio (1 = free).
2. Tokens per second against the published scripts' loop over one document at a time (Min-K%++'s program).
3. Peak memory of activations at V = 256,000 against V = 50,304, same body, 8 x 512 tokens.

Threads are those of the environment (OMP_NUM_THREADS). With a GPU, everything is measured there too. Use a
quiet machine: 2 compares what two cores make of batches, and shows little when something else holds one.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: spinning threads starve each other
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import argparse
import functools
import itertools
import json
import logging
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightning
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

from nonmember.models.forward import SplitForward, split_forward
from nonmember.observations.base import Reading
from nonmember.observations.passes.tokens import observe
from nonmember.observations.passes.vocabulary import Workspace, token_statistics


def random_model(vocab_size: int, hidden: int, layers: int, device: str, heads: int = 8) -> GPTNeoXForCausalLM:
    torch.manual_seed(0)
    config = GPTNeoXConfig(
        vocab_size=vocab_size,
        hidden_size=hidden,
        intermediate_size=4 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        max_position_embeddings=512,
    )
    return GPTNeoXForCausalLM(config).eval().to(device)


def seconds(call: Callable[[], object], device: str) -> float:
    start = time.perf_counter()
    call()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def side_by_side(baseline: Callable[[], object], ours: Callable[[], object], repeats: int, device: str) -> dict:
    """Median seconds of both, run in turn so that a busy moment hits both; the ratio is the gain in speed."""
    seconds(baseline, device), seconds(ours, device)
    pairs = [(seconds(baseline, device), seconds(ours, device)) for _ in range(repeats)]
    return {
        "ratio": statistics.median(theirs / mine for theirs, mine in pairs),
        "baseline_seconds": statistics.median(theirs for theirs, _ in pairs),
        "observing_seconds": statistics.median(mine for _, mine in pairs),
    }


@torch.inference_mode()
def statistics_of(split: SplitForward, batches: list[Tensor]) -> None:
    workspace = Workspace()
    for input_ids_BT in batches:
        features_ND = split.body(input_ids_BT)[:, :-1].flatten(0, 1)
        token_statistics(features_ND, split.head, input_ids_BT[:, 1:].flatten(), workspace=workspace)


@torch.inference_mode()
def bare_forward(model: GPTNeoXForCausalLM, batches: list[Tensor]) -> None:
    for input_ids_BT in batches:
        _ = model(input_ids=input_ids_BT, use_cache=False).logits


def against_bare_forward(
    vocab_size: int, hidden: int, layers: int, required: float, repeats: int, device: str
) -> dict[str, Any]:
    """The same batches: the bare pass makes all logits and drops them, ours makes the statistics."""
    model = random_model(vocab_size, hidden, layers, device)
    split = split_forward(model)
    assert split.streaming, split.note
    batches = [torch.randint(vocab_size, (8, length), device=device) for length in (128, 192, 256)]
    measured = side_by_side(
        lambda: bare_forward(model, batches), lambda: statistics_of(split, batches), repeats, device
    )
    return {
        "name": f"tokens/s against the bare forward pass, V = {vocab_size:,} ({device})",
        "required": required,
        "body": f"GPT-NeoX, {layers} layers x {hidden}",
        "tokens": sum(batch.numel() for batch in batches),
        **measured,
    }


@torch.no_grad()
def published_loop(model: GPTNeoXForCausalLM, documents: list[list[int]], device: str) -> None:
    """Min-K%++'s program: one document at a time, mean and variance from the full table."""
    for ids in documents:
        input_ids = torch.tensor([ids], device=device)
        logits = model(input_ids, labels=input_ids)[1]
        targets = input_ids[0][1:].unsqueeze(-1)
        probs = torch.softmax(logits[0, :-1], dim=-1)
        log_probs = torch.log_softmax(logits[0, :-1], dim=-1)
        token_log_probs = log_probs.gather(dim=-1, index=targets).squeeze(-1)
        mu = (probs * log_probs).sum(-1)
        sigma = (probs * torch.square(log_probs)).sum(-1) - torch.square(mu)
        ((token_log_probs - mu) / sigma.sqrt()).cpu().numpy()


def against_published_loop(required: float, repeats: int, device: str) -> dict[str, Any]:
    """The whole of observing, Parquet included, on 500 documents and the model `micro_s`.

    Lengths are mixed as in WikiMIA, which that program was published with: 776 texts of 32 words, 542 of 64,
    250 of 128 and 82 of 256, at 1.1 to 1.6 tokens a word. One core gains little from batches (its products
    run at full speed on one document already); the loop leaves a second core nearly idle, batches do not.
    """
    vocab_size, hidden, layers = 2048, 96, 3
    model = random_model(vocab_size, hidden, layers, device, heads=4)
    generator = torch.Generator().manual_seed(0)
    subset = torch.multinomial(torch.tensor([776.0, 542.0, 250.0, 82.0]), 500, True, generator=generator)
    tokens_per_word = 1.1 + 0.5 * torch.rand(500, generator=generator)
    lengths = (torch.tensor([32, 64, 128, 256])[subset] * tokens_per_word).int().tolist()
    documents = [torch.randint(vocab_size, (n,), generator=generator).tolist() for n in lengths]
    accelerator = "gpu" if device == "cuda" else "cpu"
    make_trainer = functools.partial(lightning.Trainer, accelerator=accelerator, devices=1)
    max_batch_tokens = 2048 if device == "cpu" else 32_768

    def ours() -> None:
        named = {str(index): ids for index, ids in enumerate(documents)}
        with tempfile.TemporaryDirectory() as folder:
            observe(model, named, Reading(Path(folder), make_trainer, max_batch_tokens))

    def theirs() -> None:
        published_loop(model.to(device), documents, device)  # the trainer leaves it on the CPU

    return {
        "name": f"tokens/s against one document at a time ({device})",
        "required": required,
        "body": f"GPT-NeoX, {layers} layers x {hidden}, V = {vocab_size:,}",
        "tokens": sum(lengths),
        **side_by_side(theirs, ours, repeats, device),
    }


def peak_activation_bytes(vocab_size: int, device: str) -> int:
    """Most memory that was allocated at one time, over that of the weights: counted, not sampled."""
    split = split_forward(random_model(vocab_size, 512, 6, device))
    batches = [torch.randint(vocab_size, (8, 512), device=device)]
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        statistics_of(split, batches)
        return torch.cuda.max_memory_allocated() - before
    return peak_bytes(lambda: statistics_of(split, batches))


def peak_bytes(call: Callable[[], object]) -> int:
    """Most memory that a call on the CPU has allocated at one time."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        call()
    events = profiler.profiler.kineto_results.events()
    changes = sorted((event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]")
    return max(itertools.accumulate(num_bytes for _, num_bytes in changes))


def peak_memory(device: str) -> dict[str, Any]:
    small, large = peak_activation_bytes(50_304, device), peak_activation_bytes(256_000, device)
    return {
        "name": f"peak memory of activations, V = 256,000 to V = 50,304, 8 x 512 tokens ({device})",
        "ratio": min(small, large) / max(small, large),
        "required": 0.85,
        "body": "GPT-NeoX, 6 layers x 512",
        "bytes_50304": small,
        "bytes_256000": large,
        "bytes_of_all_logits_256000": 8 * 512 * 256_000 * 4,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the results here")
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", message=".*treespec.*")
    results = []
    for device in ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]:
        results.append(against_bare_forward(2048, 256, 4, 0.85, 2 * arguments.repeats, device))
        results.append(against_bare_forward(50_304, 512, 6, 0.75, arguments.repeats, device))
        results.append(against_published_loop(2.0, arguments.repeats, device))
        results.append(peak_memory(device))
    for result in results:
        result["threads"] = torch.get_num_threads()
        print(f"{result['ratio']:6.2f}  (required {result['required']:.2f})  {result['name']}; {result['body']}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
