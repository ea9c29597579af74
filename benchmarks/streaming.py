"""Memory of a training on text that is streamed: `python benchmarks/streaming.py [FOLDER] [--gb 2.2] [--json PATH]`.

Makes FOLDER/text, JSON Lines of so many gigabytes (words of the installed packages' sources, cut anew for every
document), and then, each in a process of its own whose memory is read every second:

1. prepare: read, filter by date, clean and keep the documents (`Streamed`).
2. count: encode all of it once, which says how many steps there are.
3. train: a model of two thousand parameters, once over all of it; killed (SIGKILL) at a third and at two thirds of
   the steps, and started again.
4. train again, without being killed: the weights must be the same.

Prints a line a stage and writes FOLDER/memory.json behind each; `docs/streaming_figure.py` draws it. A run that was
ended on the way goes on with what FOLDER has. FOLDER is not removed. Without it a small part, in a temporary folder.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import psutil

EVERY_SECONDS = 1.0
FILES, EARLY = 12, 0.05  # share of the documents that are dated before the others
SEQUENCE, BATCH, MICRO = 128, 256, 128
VOCABULARY, HIDDEN = 100, 8
FIRST_DATE = date(2021, 2, 1)
MOST_MIB = 1536
SMALL_GB = 0.03


# ------------------------------------------------------------------------------------------------------- text


def words_of_packages(least: int = 40_000_000) -> list[str]:
    """White space apart, of the Python files beside torch, until there are so many characters."""
    words: list[str] = []
    num_characters = 0
    for path in sorted(Path(json.__file__).parents[0].parent.rglob("*.py")) + sorted(
        Path(psutil.__file__).parents[1].rglob("*.py")
    ):
        text = path.read_text(encoding="utf-8", errors="ignore")
        words += text.split()
        num_characters += len(text)
        if num_characters > least:
            break
    return words


def make_text(folder: Path, num_bytes: int) -> None:
    folder.mkdir(parents=True)
    words, rng = words_of_packages(), random.Random(1)
    number = 0
    for file in range(FILES):
        with (folder / f"part-{file:02d}.jsonl").open("w", encoding="utf-8") as stream:
            while stream.tell() < num_bytes / FILES:
                length = rng.randint(100, 3000)
                start = rng.randrange(len(words) - length)
                days = timedelta(rng.randrange(-700, 0) if rng.random() < EARLY else rng.randrange(1200))
                row = {
                    "text": f"{number} " + " ".join(words[start : start + length]),
                    "created": (FIRST_DATE + days).isoformat(),
                }
                stream.write(json.dumps(row) + "\n")
                number += 1


def make_model(folder: Path) -> None:
    """A layer of width 8, with a tokenizer of words: quick enough to read all of the text."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordLevelTrainer(vocab_size=VOCABULARY, special_tokens=["<unk>", "<eot>"], show_progress=False)
    tokenizer.train_from_iterator([" ".join(words_of_packages(2_000_000))], trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<eot>", unk_token="<unk>")
    torch.manual_seed(1)
    config = GPTNeoXConfig(
        vocab_size=len(fast),
        hidden_size=HIDDEN,
        intermediate_size=2 * HIDDEN,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=SEQUENCE,
        hidden_dropout=0.1,
    )
    GPTNeoXForCausalLM(config).save_pretrained(folder)
    fast.save_pretrained(folder)


# ------------------------------------------------------------------------------------------------------ stages


def corpus(folder: Path) -> Any:
    from nonmember.corpora import Cleaning, Hub, Streamed

    source = Hub(
        str(folder / "text"),
        None,
        "train",
        "",
        "text",
        None,
        data_files="*.jsonl",
        domain="text",
        at_least={"created": FIRST_DATE.isoformat()},
    )
    return Streamed(source, cleaning=Cleaning("normalised", 10, 10_000, "cut", "keep", None, 64))


def specs(folder: Path) -> tuple[Any, Any]:
    """The base and the model that is trained on the corpus and on half a hundred planted documents."""
    from nonmember.corpora import Component, Documents, Mixture
    from nonmember.models import Pretrained
    from nonmember.training import Trained
    from nonmember.training.recipes import Optimization, Pretraining

    base = Pretrained(str(folder / "model"))
    optimization = Optimization(1e-3, BATCH, 1, 0.005, "cosine", 0.0, (0.9, 0.999), 1e-8, 0.0, 1.0)
    planted = Documents(str(folder / "planted.jsonl"), "text")
    mixture = Mixture((Component(corpus(folder), 1), Component(planted, 2)))
    return base, Trained(base, Pretraining(optimization, SEQUENCE), mixture, seed=1, label="streamed")


def builder(folder: Path, *callbacks: Any, num_workers: int = 0, checkpoint_seconds: float = 15.0) -> Any:
    import lightning

    from nonmember.artifacts import Builder
    from nonmember.artifacts.store import Store
    from nonmember.runtime.compute import Compute
    from nonmember.runtime.quiet import quieten
    from nonmember.tracking.trackers import NoTracker

    def trainer(**settings: Any) -> Any:
        return lightning.Trainer(
            accelerator="cpu", devices=1, **settings | {"callbacks": [*settings.get("callbacks", ()), *callbacks]}
        )

    quieten()
    compute = Compute(trainer, "32-true", MICRO, 4096, 64, 64, checkpoint_seconds, False, num_workers=num_workers)
    return Builder(Store(folder / "store"), compute, NoTracker())


def prepare(folder: Path) -> dict[str, Any]:
    facts = builder(folder).entry(corpus(folder)).facts
    return {name: facts[name] for name in ("num_documents", "num_words", "dropped")}


def count(folder: Path) -> dict[str, Any]:
    from nonmember.training.tokens import Packed, documents_of

    shop, (base, trained) = builder(folder), specs(folder)
    packed = Packed(documents_of(shop, base, shop.get(trained.corpus)), length=SEQUENCE, seed=1)
    return {"num_tokens": len(packed) * SEQUENCE, "num_steps": -(-len(packed) // BATCH)}


def place(folder: Path) -> dict[str, Any]:
    """Where a killed training goes on: the step of its newest resume point."""
    steps = [int(path.name.split("-")[-2]) for path in (folder / "store" / "models").glob(".partial-*/.resume-*.ckpt")]
    return {"from_step": max(steps)} if steps else {}


def train(folder: Path, until: int | None) -> dict[str, Any]:
    """To the end, or killed at a step. Which weights it ends with is told by a hash."""
    import lightning

    class KillAt(lightning.Callback):
        def on_train_batch_end(self, trainer: Any, *_: object) -> None:
            if until is not None and trainer.global_step >= until:
                os.kill(os.getpid(), signal.SIGKILL)

    entry = builder(folder, KillAt(), num_workers=1, checkpoint_seconds=5.0).entry(specs(folder)[1])
    (weights,) = entry.path.glob("*.safetensors")
    return {
        "weights": hashlib.sha256(weights.read_bytes()).hexdigest(),
        **{name: entry.facts[name] for name in ("num_steps", "num_tokens")},
    }


# ----------------------------------------------------------------------------------------------------- measuring


def memory_of(process: psutil.Process) -> float:
    """MiB of a process and its workers, pages that they share counted once (PSS)."""
    total = 0
    for one in (process, *process.children(recursive=True)):
        try:
            total += one.memory_full_info().pss
        except psutil.Error:  # gone meanwhile
            continue
    return total / 2**20


def measured(stage: str, folder: Path, *arguments: object) -> dict[str, Any]:
    """Run a stage in a process and read its memory until it ends."""
    begun, curve = time.monotonic(), []
    out = folder / f"{stage}.json"
    out.unlink(missing_ok=True)
    command = [sys.executable, __file__, str(folder), "--stage", stage, *map(str, arguments)]
    running = subprocess.Popen(command)
    process = psutil.Process(running.pid)
    while running.poll() is None:
        curve.append((round(time.monotonic() - begun, 1), round(memory_of(process), 1)))
        time.sleep(EVERY_SECONDS)
    facts = json.loads(out.read_text()) if out.is_file() else {}
    peak = max(value for _, value in curve)
    seconds = time.monotonic() - begun
    print(f"{stage:8} {seconds:6.0f} s   peak {peak:6.0f} MiB   ended {running.returncode}   {facts}", flush=True)
    return {"stage": stage, "seconds": seconds, "peak": peak, "curve": curve, "ended": running.returncode, **facts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--gb", type=float, default=2.2)
    parser.add_argument("--json", type=Path, help="also write the result here")
    parser.add_argument("--stage", choices=("prepare", "count", "train"))
    parser.add_argument("--until", type=int)
    given = parser.parse_args()
    if given.stage:
        stages = {"prepare": prepare, "count": count, "train": lambda folder: train(folder, given.until)}
        (given.folder / f"{given.stage}.json").write_text(json.dumps(stages[given.stage](given.folder)))
        return
    if given.folder:
        result = whole(given.folder, given.gb)
    else:
        with tempfile.TemporaryDirectory() as temporary:
            result = whole(Path(temporary), SMALL_GB)
    print("weights with and without the kills:", "the same" if result["same_weights"] else "NOT THE SAME", flush=True)
    if given.json:
        given.json.write_text(json.dumps([result], indent=1) + "\n")
    if not result["same_weights"] or result["peak"] > MOST_MIB:
        raise SystemExit(1)


def whole(folder: Path, gb: float) -> dict[str, Any]:
    """All stages; what FOLDER has the numbers of is not run again."""
    if not (folder / "model").is_dir():
        make_text(folder / "text", int(gb * 1e9))
        planted = (json.dumps({"text": f"planted text number {place} " * 40}) for place in range(50))
        (folder / "planted.jsonl").write_text("\n".join(planted))
        make_model(folder / "model")
    kept = folder / "memory.json"
    summary: dict[str, Any] = json.loads(kept.read_text()) if kept.is_file() else {"stages": []}
    summary["bytes"] = sum(path.stat().st_size for path in (folder / "text").iterdir())
    print(f"{summary['bytes']:,} bytes of text in {FILES} files", flush=True)
    stages = summary["stages"]

    def run(number: int, stage: str, *arguments: object) -> None:
        if number < len(stages):
            return
        begins = place(folder) if stage == "train" else {}
        stages.append(begins | measured(stage, folder, *arguments))
        kept.write_text(json.dumps(summary))

    run(0, "prepare")
    run(1, "count")
    num_steps = stages[1]["num_steps"]
    run(2, "train", "--until", num_steps // 3)
    run(3, "train", "--until", 2 * num_steps // 3)
    run(4, "train")
    if len(stages) < 6:
        shutil.rmtree(folder / "store" / "models")
    run(5, "train")
    summary["same_weights"] = stages[4]["weights"] == stages[5]["weights"]
    kept.write_text(json.dumps(summary))
    return {
        "name": "peak of all processes in MiB, while text is streamed",
        "bytes": summary["bytes"],
        "peak": max(stage["peak"] for stage in stages),
        "allowed": MOST_MIB,
        "same_weights": summary["same_weights"],
    }


if __name__ == "__main__":
    main()
