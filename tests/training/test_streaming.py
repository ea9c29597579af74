"""A streamed corpus: every document once in every epoch, however many workers and processes; exact resume."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

import tiny
from marks import slow
from nonmember.corpora import Cleaning, Component, Hub, Mixture, Streamed
from nonmember.models.tokenizing import encode_beginnings
from nonmember.records import streams
from nonmember.training import Trained
from nonmember.training.counts import token_stream
from nonmember.training.recipes import Pretraining
from nonmember.training.streaming import StreamLoader

LENGTH, BUFFER, BATCH, SEED = 24, 7, 5, 3
TEXTS = [f"{index} {text}" for index, text in enumerate(tiny.random_texts(60, seed=5, words=30))]
PLANTED = tiny.texts(*(f"planted {text}" for text in tiny.random_texts(9, seed=6)), name="planted")
AS_IS = Cleaning("as_is", None, None, "cut", "keep", None, 64)
BASE = tiny.scratch(1, hidden_dropout=0.2, attention_dropout=0.2)
PLAIN = tiny.scratch(1)  # without dropout, which several processes draw differently


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    """Ten chunks or so in a few files."""
    monkeypatch.setattr(streams, "CHUNK_BYTES", 1000)
    monkeypatch.setattr(streams, "SHARD_BYTES", 3000)


def corpus(folder: Path) -> Mixture:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "lines.jsonl").write_text("".join(f'"{text}"\n' for text in TEXTS))
    source = Hub(str(folder), None, "train", "", "text", None, data_files="lines.jsonl")
    return Mixture((Component(Streamed(source, cleaning=AS_IS), 1), Component(PLANTED, 2)))


def loader(folder: Path, *, epochs: int = 1, micro_batch_size: int = 2, num_workers: int = 0, rank=(0, 1)):
    builder = tiny.builder(folder / "store", num_workers=num_workers)
    loaded = BASE.weights(builder)
    stream = token_stream(builder, BASE, loaded, builder.get(corpus(folder / "files")))
    assert stream.chunks._stream.num_chunks > 20
    assert len(stream.chunks._stream.parts[0][0].shards) > 2
    return loaded.tokenizer, StreamLoader(
        stream,
        length=LENGTH,
        buffer=BUFFER,
        batch_size=BATCH,
        epochs=epochs,
        seed=SEED,
        micro_batch_size=micro_batch_size,
        padding_id=0,
        num_workers=num_workers,
    ).share(*rank)


def rows(batches) -> list[tuple[int, ...]]:
    return [tuple(row[:length].tolist()) for batch in batches for row, length in zip(*pair(batch), strict=True)]


def pair(batch):
    return batch["input_ids"], batch["lengths"]


def reference(folder: Path, epoch: int) -> list[tuple[int, ...]]:
    """By hand: all in memory, chunks in drawn order, cut, shuffled a buffer at a time."""
    builder = tiny.builder(folder / "store")
    tokenizer, stream = BASE.load_tokenizer(builder), builder.get(corpus(folder / "files"))
    tokens: list[int] = []
    for chunk in np.random.default_rng([SEED, 2, epoch]).permutation(stream.num_chunks):
        for ids in encode_beginnings(tokenizer, [item.text for item in stream.chunk(chunk)], None):
            tokens += [*ids, tokenizer.eos_token_id]
    cut = [tuple(tokens[start : start + LENGTH]) for start in range(0, len(tokens) - LENGTH + 1, LENGTH)]
    shuffled = []
    for start in range(0, len(cut), BUFFER):
        part = cut[start : start + BUFFER]
        shuffled += [part[place] for place in np.random.default_rng([SEED, 3, epoch, start]).permutation(len(part))]
    return shuffled


@pytest.mark.slow
def test_packing_and_shuffling_are_the_reference_in_every_epoch(tmp_path):
    _, item = loader(tmp_path, epochs=2)
    expected = [*reference(tmp_path, 0), *reference(tmp_path, 1)]
    assert rows(item) == expected
    assert len(item) == len(list(item))
    assert item.num_steps == -(-len(expected) // BATCH)
    assert item.reached()[-1] == len(expected) * LENGTH
    assert sum(int(batch["step_tokens"]) for batch in item if batch["step_tokens"] == BATCH * (LENGTH - 1)) > 0


def test_every_document_is_read_as_often_as_it_is_said_to_be(tmp_path):
    """Without shuffling within buffers the sequences are the text again, but for what is dropped at its end."""
    tokenizer, item = loader(tmp_path)
    item._buffer = 1
    tokens = [token for row in rows(item) for token in row]
    found = Counter(tokenizer.decode(tokens).split(tokenizer.eos_token)[:-1])
    expected = Counter(TEXTS) + Counter({document.text: 2 for document in PLANTED.documents})
    assert not found - expected
    assert sum((expected - found).values()) <= 2  # at most a sequence is dropped


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This DataLoader will create 3 worker processes")
@pytest.mark.parametrize("num_workers", [slow(1), 2, slow(3)])
def test_workers_change_nothing(tmp_path, num_workers):
    assert rows(loader(tmp_path, num_workers=num_workers)[1]) == reference(tmp_path, 0)


@pytest.mark.slow
@pytest.mark.parametrize("world_size", [2, 3])
def test_processes_share_the_rows_of_every_step(tmp_path, world_size):
    parts = [list(loader(tmp_path, micro_batch_size=4, rank=(rank, world_size))[1]) for rank in range(world_size)]
    assert len({len(part) for part in parts}) == 1
    together = Counter(row for part in parts for row in rows(part) if len(row) > 1)
    assert together == Counter(reference(tmp_path, 0))


@pytest.mark.slow
def test_going_on_from_any_micro_batch_in_the_middle_of_a_shard(tmp_path):
    _, item = loader(tmp_path, epochs=2)
    batches = list(item)
    for position in (0, 1, 2, 3, BUFFER, 11, len(batches) // 2 - 1, len(batches) // 2, len(batches) - 1):
        item._num_workers = position == 11  # a place is the same with workers and without
        item.load_state_dict({"position": position})
        assert rows(item) == rows(batches[position:])


# ------------------------------------------------------------------------------------------ the trained model


def model(folder: Path, base=BASE) -> Trained:
    # A large epsilon, so that rounding does not decide the sign of Adam's steps.
    recipe = Pretraining(tiny.optimization(batch_size=BATCH, epsilon=1e-3), LENGTH, BUFFER)
    return Trained(base, recipe, corpus(folder / "files"), seed=SEED, label="streamed")


def train(
    folder: Path, store: str, *, kill_at: int | None = None, devices: int = 1, num_workers: int = 0, base=BASE
) -> None:
    """Train in this process; with `kill_at` it leaves points at once, and is killed after so many micro-batches."""
    streams.CHUNK_BYTES, streams.SHARD_BYTES = 1000, 3000
    import lightning

    class Kill(lightning.Callback):
        def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
            if batch_idx + 1 == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)

    make = functools.partial(
        lightning.Trainer, accelerator="cpu", devices=devices, strategy="ddp" if devices > 1 else "auto"
    )

    def with_kill(**arguments):
        return make(**arguments | {"callbacks": [*arguments["callbacks"], Kill()]})

    with_kill.keywords = make.keywords  # what a partial tells of its settings
    seconds = 1e9 if kill_at is None else 0.0
    changes = {"micro_batch_size": 2, "checkpoint_seconds": seconds, "num_workers": num_workers}
    tiny.builder(folder / store, make_trainer=with_kill, **changes).entry(model(folder, base))


def weights(folder: Path, store: str, base=BASE) -> list[torch.Tensor]:
    return tiny.weights(model(folder, base).weights(tiny.builder(folder / store)).model)


def in_another_process(folder: Path, store: str, *arguments: object) -> int:
    here = Path(__file__)
    paths = os.pathsep.join([str(here.parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(here), str(folder), store, *map(str, arguments)]
    return subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, check=False, timeout=300).returncode


@pytest.mark.slow
def test_killed_in_the_middle_and_started_again_it_has_the_very_weights(tmp_path):
    assert in_another_process(tmp_path, "killed", 11, 1, 2) == -signal.SIGKILL
    (partial,) = (tmp_path / "killed" / "models").glob(".partial-*")
    assert list(partial.glob(".resume-*.ckpt"))
    train(tmp_path, "killed")  # without workers now
    train(tmp_path, "whole", num_workers=1)
    tiny.assert_equal_weights(weights(tmp_path, "killed"), weights(tmp_path, "whole"))


@pytest.mark.slow
def test_two_processes_train_as_one(tmp_path):
    assert in_another_process(tmp_path, "two", 0, 2, 1) == 0
    train(tmp_path, "one", base=PLAIN)
    tiny.assert_equal_weights(*(weights(tmp_path, name, PLAIN) for name in ("one", "two")), atol=1e-6)


@pytest.mark.slow
def test_interrupted_and_started_again_it_has_the_very_weights(tmp_path, monkeypatch):
    class Stop(Exception):
        pass

    def stop(number, signals):
        raise Stop

    monkeypatch.setattr(os, "kill", stop)
    with pytest.raises(Stop):
        train(tmp_path, "stopped", kill_at=11)
    train(tmp_path, "stopped", num_workers=1)
    train(tmp_path, "whole")
    tiny.assert_equal_weights(weights(tmp_path, "stopped"), weights(tmp_path, "whole"))
    facts = [tiny.builder(tmp_path / name).entry(model(tmp_path)).facts for name in ("stopped", "whole")]
    assert facts[0] == facts[1]
    assert facts[0]["num_tokens"] == facts[0]["num_sequences"] * (LENGTH - 1)


READS_AND_IS_KILLED = """
import multiprocessing, os, signal, time
from types import SimpleNamespace
from nonmember.training.streaming import EncodedChunks

long = SimpleNamespace(num_chunks=64, chunk=lambda number: [SimpleNamespace(text="word")])
tokens = 100_000  # of each chunk: far more than a pipe holds
tokenizer = lambda texts, **_: {"input_ids": [[1] * tokens for _ in texts]}
chunks = EncodedChunks(long, tokenizer, 0).in_order(range(64), 2)
assert len(next(chunks)) == tokens + 1
print(*(child.pid for child in multiprocessing.active_children()), flush=True)
time.sleep(1)  # the workers go on until they have no more room
os.kill(os.getpid(), signal.SIGKILL)
"""


def runs(pid: int) -> bool:
    """Neither gone nor only waiting to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.slow
def test_workers_of_a_killed_training_end(tmp_path):
    """One that waited for room in a pipe would wait for ever: nobody reads it any more."""
    with (tmp_path / "workers").open("w") as told:  # a pipe would stay open as long as they live
        done = subprocess.run([sys.executable, "-c", READS_AND_IS_KILLED], stdout=told, check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL
    workers = [int(word) for word in (tmp_path / "workers").read_text().split()]
    assert len(workers) == 2
    until = time.monotonic() + 30  # they look for their parent every five seconds
    while any(map(runs, workers)) and time.monotonic() < until:
        time.sleep(0.1)
    left = [pid for pid in workers if runs(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left


def test_only_next_token_prediction_reads_a_stream(tmp_path):
    distilled = Trained(BASE, tiny.distillation(), corpus(tmp_path / "files"), seed=1, teacher=BASE)
    with pytest.raises(ValueError, match="A streamed corpus, which is not held in memory, can only be trained on by"):
        tiny.builder(tmp_path / "store").entry(distilled)


if __name__ == "__main__":
    killed_at, num_devices, workers = map(int, sys.argv[3:])
    base = PLAIN if num_devices > 1 else BASE
    train(
        Path(sys.argv[1]), sys.argv[2], kill_at=killed_at or None, devices=num_devices, num_workers=workers, base=base
    )
