"""What observing costs, measured side by side in one run: `python benchmarks/observing.py [--json PATH]`.

1. Tokens per second against the bare forward pass with logits on the same batches, as a ratio (1 = free).
2. Tokens per second against the published scripts' loop over one document at a time (Min-K%++'s program).
3. Peak memory of activations at V = 256,000 against V = 50,304, same body, 8 x 512 tokens.

Threads are those of the environment (OMP_NUM_THREADS). With a GPU, 1 and 2 are measured there too.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # before torch: spinning threads starve each other
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import argparse
import functools
import json
import logging
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightning
import torch
from torch import Tensor
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

from nonmember.models.forward import SplitForward, split_forward
from nonmember.observing.observer import observe
from nonmember.observing.vocabulary import DEFAULT_BLOCK_BYTES, token_statistics


def random_model(vocab_size: int, hidden: int, layers: int, device: str) -> GPTNeoXForCausalLM:
    torch.manual_seed(0)
    config = GPTNeoXConfig(
        vocab_size=vocab_size,
        hidden_size=hidden,
        intermediate_size=4 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=8,
        max_position_embeddings=512,
    )
    return GPTNeoXForCausalLM(config).eval().to(device)


def seconds(call: Callable[[], object], device: str) -> float:
    start = time.perf_counter()
    call()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def side_by_side(
    baseline: Callable[[], object], ours: Callable[[], object], repeats: int, device: str
) -> dict:
    """Median seconds of both, run in turn so that a busy moment hits both; the ratio is the gain in speed."""
    seconds(baseline, device), seconds(ours, device)
    pairs = [(seconds(baseline, device), seconds(ours, device)) for _ in range(repeats)]
    return {
        "ratio": statistics.median(theirs / mine for theirs, mine in pairs),
        "baseline_seconds": statistics.median(theirs for theirs, _ in pairs),
        "observing_seconds": statistics.median(mine for _, mine in pairs),
    }


@torch.inference_mode()
def statistics_of(split: SplitForward, input_ids_BT: Tensor) -> None:
    features_ND = split.body(input_ids_BT)[:, :-1].flatten(0, 1)
    target_ids_N = input_ids_BT[:, 1:].flatten()
    token_statistics(features_ND, split.head, target_ids_N, block_bytes=DEFAULT_BLOCK_BYTES)


@torch.inference_mode()
def bare_forward(model: GPTNeoXForCausalLM, input_ids_BT: Tensor) -> None:
    _ = model(input_ids=input_ids_BT, use_cache=False).logits


def against_bare_forward(
    vocab_size: int, hidden: int, layers: int, required: float, repeats: int, device: str
) -> dict[str, Any]:
    """Every logit of the same batches: the bare pass also does no work on them, and writes nothing."""
    model = random_model(vocab_size, hidden, layers, device)
    split = split_forward(model)
    assert split.streaming, split.note
    batches = [torch.randint(vocab_size, (8, length), device=device) for length in (128, 192, 256)]
    measured = side_by_side(
        lambda: [bare_forward(model, batch) for batch in batches],
        lambda: [statistics_of(split, batch) for batch in batches],
        repeats,
        device,
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
    """The whole of observing, Parquet included, on 500 documents of 20 to 300 tokens."""
    vocab_size, hidden, layers = 2048, 128, 4
    model = random_model(vocab_size, hidden, layers, device)
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(20, 300, (500,), generator=generator).tolist()
    documents = [torch.randint(vocab_size, (n,), generator=generator).tolist() for n in lengths]
    accelerator = "gpu" if device == "cuda" else "cpu"
    make_trainer = functools.partial(lightning.Trainer, accelerator=accelerator, devices=1)

    def ours() -> None:
        named = {str(index): ids for index, ids in enumerate(documents)}
        with tempfile.TemporaryDirectory() as folder:
            observe(model.to(device), named, Path(folder), make_trainer, max_batch_tokens=4096)

    def theirs() -> None:
        published_loop(model.to(device), documents, device)

    return {
        "name": f"tokens/s against one document at a time ({device})",
        "required": required,
        "body": f"GPT-NeoX, {layers} layers x {hidden}, V = {vocab_size:,}",
        "tokens": sum(lengths),
        **side_by_side(theirs, ours, repeats, device),
    }


def peak_activation_bytes(vocab_size: int) -> int:
    """Growth of the resident set, at its peak, over that with the weights in memory. Linux only."""

    def resident(field: str) -> int:
        status = Path("/proc/self/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(field))

    split = split_forward(random_model(vocab_size, 512, 6, "cpu"))
    input_ids_BT = torch.randint(vocab_size, (8, 512))
    Path("/proc/self/clear_refs").write_text("5")  # sets the recorded peak back to the present
    before = resident("VmRSS")
    statistics_of(split, input_ids_BT)
    return resident("VmHWM") - before


def peak_memory() -> dict[str, Any]:
    """One fresh process per vocabulary, so that neither finds the other's memory."""
    small, large = (
        int(subprocess.check_output([sys.executable, __file__, "--peak-memory", str(vocab_size)]))
        for vocab_size in (50_304, 256_000)
    )
    return {
        "name": "peak memory of activations, V = 50,304 against V = 256,000, 8 x 512 tokens (cpu)",
        "ratio": min(small, large) / max(small, large),
        "required": 0.85,
        "body": "GPT-NeoX, 6 layers x 512",
        "bytes_50304": small,
        "bytes_256000": large,
        "bytes_of_all_logits_256000": 8 * 512 * 256_000 * 4,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="also write the results here")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--peak-memory", type=int, metavar="V", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peak_memory:
        print(peak_activation_bytes(arguments.peak_memory))
        return
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    results = []
    for device in ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]:
        results.append(against_bare_forward(2048, 256, 4, 0.85, 2 * arguments.repeats, device))
        results.append(against_bare_forward(50_304, 512, 6, 0.75, arguments.repeats, device))
        results.append(against_published_loop(2.0, arguments.repeats, device))
    if sys.platform == "linux":
        results.append(peak_memory())
    for result in results:
        result["threads"] = torch.get_num_threads()
        print(
            f"{result['ratio']:6.2f}  (required {result['required']:.2f})  {result['name']}; {result['body']}"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
