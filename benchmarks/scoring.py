"""Scores of documents too many for memory: `python benchmarks/scoring.py [FOLDER [--documents 1000000]] [--json PATH]`.

With FOLDER, which is not removed, and that many short documents (JSON Lines in 20 files, made of words drawn from a
seed) under a model of a few thousand parameters, each in a process of its own whose memory is read every other second:

1. score: `nonmember score data=streamed`, killed (SIGKILL) when half of the parts are there.
2. again: the same command; the parts that were there must be left as they are.
3. lost: two parts are removed and made again; they must have the same bytes.

Then, and without FOLDER only these, on the documents of two files:

4. the same documents in memory (`data=documents`) and streamed, in turn: the same scores, and documents a second.
5. engine=ray with one worker and with two, in turn, a thread each.

Prints a line a stage and writes FOLDER/scoring.json; `docs/scoring_figure.py` draws it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from streaming import memory_of

FILES, WORDS, HIDDEN = 20, 120, 8
SEED, LENGTHS = 20, (3, 16)  # words of a document
EVERY_SECONDS = 2.0
SMALL = 160_000  # documents where none are asked for: 13 parts, and a rate of two workers needs as many
LEAST_OF_SMALL_PATH, LEAST_OF_TWO_WORKERS = 0.9, 1.7
MOST_DIFFERENCE = 1e-4
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


# ------------------------------------------------------------------------------------------------------- text


def words() -> list[str]:
    rng = random.Random(SEED)
    syllables = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in "aeiou"]
    return sorted({"".join(rng.choices(syllables, k=rng.randint(1, 3))) for _ in range(2 * WORDS)})[:WORDS]


def make_text(folder: Path, number: int) -> None:
    folder.mkdir(parents=True)
    rng, known = random.Random(SEED), words()
    for file in range(FILES):
        with (folder / f"shard-{file:02d}.jsonl").open("w", encoding="utf-8") as stream:
            for index in range(file * number // FILES, (file + 1) * number // FILES):
                text = " ".join(rng.choices(known, k=rng.randint(*LENGTHS)))
                stream.write(json.dumps({"id": f"document-{index}", "text": text}) + "\n")


def make_model(folder: Path) -> None:
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(
        models.WordLevel({"<unk>": 0} | {word: 1 + index for index, word in enumerate(words())}, "<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<unk>", unk_token="<unk>")
    torch.manual_seed(SEED)
    config = GPTNeoXConfig(
        vocab_size=len(fast),
        hidden_size=HIDDEN,
        intermediate_size=4 * HIDDEN,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=64,
    )
    model = GPTNeoXForCausalLM(config)
    model.get_output_embeddings().weight.data.mul_(20)
    model.save_pretrained(folder)
    fast.save_pretrained(folder)


# ------------------------------------------------------------------------------------------------------- runs


def command(folder: Path, text: str, outputs: Path, *more: str, data: str = "streamed") -> list[str]:
    return [
        sys.executable,
        "-m",
        "nonmember.cli",
        "score",
        f"target.path={folder / 'model'}",
        f"data={data}",
        f"data.path={folder / text}",
        "data.id_field=id",
        f"outputs={outputs}",
        *more,
    ]


def run(arguments: list[str]) -> dict[str, float]:
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(arguments, env=os.environ | THREADS, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": time.monotonic() - begun, "cpu": cpu}


def scores_of(outputs: Path) -> Path:
    (found,) = outputs.glob("scores/*")
    return found


def parts_of(outputs: Path) -> dict[str, tuple[int, int]]:
    """Name -> when it was written, and its inode."""
    there = outputs.glob("scores/*/manifests/part-*.json")
    tables = (path.parents[1] / "scores" / f"{path.stem}.parquet" for path in there)
    return {path.stem: (path.stat().st_mtime_ns, path.stat().st_ino) for path in tables if path.is_file()}


def measured(stage: str, arguments: list[str], outputs: Path, kill_at: int | None = None) -> dict[str, Any]:
    """Run a command and read its memory until it ends, or until so many parts are there, when it is killed."""
    begun, curve = time.monotonic(), []
    running = subprocess.Popen(arguments, env=os.environ | THREADS, stdout=subprocess.DEVNULL)
    process = psutil.Process(running.pid)
    while running.poll() is None:
        curve.append((round(time.monotonic() - begun, 1), round(memory_of(process), 1), len(parts_of(outputs))))
        if kill_at is not None and curve[-1][2] >= kill_at:
            process.send_signal(signal.SIGKILL)
        time.sleep(EVERY_SECONDS)
    peak = max(mib for _, mib, _ in curve)
    seconds = time.monotonic() - begun
    print(f"{stage:6} {seconds:6.0f} s   peak {peak:5.0f} MiB   {len(parts_of(outputs))} parts", flush=True)
    return {"stage": stage, "seconds": seconds, "peak": peak, "ended": running.returncode, "curve": curve}


def whole(folder: Path) -> dict[str, Any]:
    """Stages 1 to 3."""
    outputs = folder / "outputs"
    shutil.rmtree(outputs, ignore_errors=True)
    arguments = command(folder, "text", outputs)
    num_bytes = sum(path.stat().st_size for path in (folder / "text").iterdir())
    num_parts = -(-num_bytes // 2**22)  # about: ids and text without what JSON puts around them
    killed = measured("score", arguments, outputs, kill_at=num_parts // 3)
    before = parts_of(outputs)
    again = measured("again", arguments, outputs)
    after = parts_of(outputs)
    manifest = json.loads((scores_of(outputs) / "manifest.json").read_text())
    hashes = {part["file"]: part["sha256"] for part in manifest["parts"]}
    for name in (min(before), max(after)):
        (scores_of(outputs) / "scores" / f"{name}.parquet").unlink()
    lost = measured("lost", arguments, outputs)
    made_anew = json.loads((scores_of(outputs) / "manifest.json").read_text())["parts"]
    return {
        "stages": [killed, again, lost],
        "num_documents": manifest["num_documents"],
        "num_parts": len(hashes),
        "num_tokens": manifest["num_tokens"],
        "parts_before_the_kill": len(before),
        "left_as_they_are": all(after[name] == before[name] for name in before),
        "same_bytes": {part["file"]: part["sha256"] for part in made_anew} == hashes,
    }


def side_by_side(folder: Path, number: int, repeats: int) -> dict[str, Any]:
    """Stage 4. Documents a second of whole commands, start-up included, and of their processor time."""
    pairs, difference = [], 0.0
    for _ in range(repeats):
        with tempfile.TemporaryDirectory(dir=folder) as place:
            held, streamed = Path(place) / "held", Path(place) / "streamed"
            pair = [run(command(folder, "some", held, data="documents")), run(command(folder, "some", streamed))]
            pairs.append(pair)
            whole = folder / "outputs"  # where these documents are in other batches
            difference = max(difference, largest_difference(held, whole if whole.is_dir() else streamed))
    ratios = {name: [small[name] / large[name] for small, large in pairs] for name in ("seconds", "cpu")}
    return {
        "name": "documents a second, streamed against in memory",
        "required": LEAST_OF_SMALL_PATH,
        "ratio": statistics.median(ratios["seconds"]),
        "ratio_of_cpu": statistics.median(ratios["cpu"]),
        "num_documents": number,
        "largest_difference": difference,
        "pairs": pairs,
    }


def largest_difference(held: Path, streamed: Path) -> float:
    """Of any score of any document, relative to 1 or to its size."""
    import numpy as np
    import pyarrow.compute
    import pyarrow.dataset
    import pyarrow.parquet as pq

    theirs = pq.read_table(scores_of(held) / "scores.parquet").to_pandas().set_index("doc_id")
    ours = pyarrow.dataset.dataset(scores_of(streamed) / "scores").to_table(
        filter=pyarrow.compute.field("doc_id").isin(list(theirs.index))
    )
    ours = ours.to_pandas().set_index("doc_id").loc[theirs.index]
    numbers = theirs.select_dtypes("floating").columns
    assert (ours[numbers].isna() == theirs[numbers].isna()).all(axis=None)
    off = (ours[numbers] - theirs[numbers]).abs() / np.maximum(1, theirs[numbers].abs())
    return float(off.max(axis=None))


def on_ray(folder: Path, number: int, repeats: int) -> dict[str, Any]:
    """Stage 5. Documents a second from the end of each worker's first part to that of the last: without start-up."""
    pairs = []
    for _ in range(repeats):
        pair = {}
        for workers in (1, 2):
            with tempfile.TemporaryDirectory(dir=folder) as place:
                outputs = Path(place)
                whole = run(
                    command(folder, "some", outputs, "parts.mib=1", "engine=ray", f"engine.num_workers={workers}")
                )
                manifests = [json.loads(path.read_text()) for path in outputs.glob("scores/*/manifests/part-*.json")]
                written = parts_of(outputs)
                ended = sorted(
                    (written[f"part-{item['number']:05d}"][0] / 1e9, item["num_documents"]) for item in manifests
                )
                since = ended[workers - 1][0]  # when each has made its first part, or nearly so
                rate = sum(documents for _, documents in ended[workers:]) / (ended[-1][0] - since)
                pair[workers] = {"rate": rate, **whole}
        pairs.append(pair)
    ratios = [pair[2]["rate"] / pair[1]["rate"] for pair in pairs]
    return {
        "name": "documents a second by two workers of Ray against one",
        "required": LEAST_OF_TWO_WORKERS,
        "ratio": statistics.median(ratios),
        "ratios": ratios,
        "num_documents": number,
        "pairs": pairs,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=("whole", "side_by_side", "on_ray"))
    parser.add_argument("--json", type=Path, help="also write the ratios here")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (given.folder or Path(temporary)).absolute()
        number = given.documents if given.folder else SMALL * FILES // 2
        if not (folder / "model").is_dir():
            make_text(folder / "text", number)
            (folder / "some").mkdir()
            for path in sorted((folder / "text").iterdir())[:2]:
                (folder / "some" / path.name).symlink_to(path)
            make_model(folder / "model")
        kept = folder / "scoring.json"
        summary: dict[str, Any] = json.loads(kept.read_text()) if kept.is_file() else {}
        some = 2 * number // FILES
        for name, stage in {
            "whole": lambda: whole(folder),
            "side_by_side": lambda: side_by_side(folder, some, given.repeats),
            "on_ray": lambda: on_ray(folder, some, given.repeats),
        }.items():
            if given.only in (None, name) and (given.folder or name != "whole"):
                summary[name] = stage()
                kept.write_text(json.dumps(summary))
        results = [summary[name] for name in ("side_by_side", "on_ray") if name in summary]
        for result in results:
            print(f"{result['ratio']:6.2f}  (required {result['required']:.2f})  {result['name']}", flush=True)
        if given.json:
            given.json.write_text(json.dumps(results, indent=1) + "\n")
    failed = [result for result in results if result["ratio"] < result["required"]]
    difference = summary.get("side_by_side", {}).get("largest_difference", 0.0)
    sound = all(summary.get("whole", {}).get(name, True) for name in ("left_as_they_are", "same_bytes"))
    return int(bool(failed) or difference > MOST_DIFFERENCE or not sound)


if __name__ == "__main__":
    sys.exit(main())
