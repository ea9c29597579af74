"""A streamed corpus: every document once in every epoch, however many workers and processes; exact resume."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import lightning
import pytest
import torch
from test_resume import StopAfter

import tiny
from nonmember.corpora import Cleaning, Component, Hub, Mixture, Streamed
from nonmember.models.encoding import encode_corpus
from nonmember.records import Stream, streams
from nonmember.training import Trained
from nonmember.training.batches import ended, packed_sequences
from nonmember.training.recipes import Pretraining
from nonmember.training.tokens import Packed, TokenIds, documents_of

LENGTH, BATCH, SEED = 24, 5, 3
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


def in_memory(folder: Path) -> Mixture:
    source = Hub(str(folder), None, "train", "", "text", None, data_files="lines.jsonl")
    return Mixture((Component(source, 1), Component(PLANTED, 2)))


def ids_of(folder: Path, spec: Mixture) -> list[list[int]]:
    builder = tiny.builder(folder / "store")
    loaded, found = BASE.weights(builder), builder.get(spec)
    if isinstance(found, Stream):
        return [list(ids) for ids in documents_of(builder, BASE, found)]
    return [ended(ids, loaded.tokenizer.eos_token_id) for ids in encode_corpus(loaded, found, None)]


def test_what_lies_in_files_is_what_would_be_in_memory(tmp_path):
    spec = corpus(tmp_path / "files")
    there = ids_of(tmp_path, spec)
    assert there == ids_of(tmp_path, in_memory(tmp_path / "files"))
    builder = tiny.builder(tmp_path / "store")
    documents = documents_of(builder, BASE, builder.get(spec))
    for length in (LENGTH, 7, 10_000):
        packed = Packed(documents, length=length, seed=SEED)
        expected = packed_sequences(there, length=length, end_of_text=0, seed=SEED)
        assert [list(item) for item in packed] == expected
        assert packed.lengths.tolist() == list(map(len, expected))


def test_writing_goes_on_behind_the_last_chunk(tmp_path, monkeypatch):
    spec = corpus(tmp_path / "files")
    whole = ids_of(tmp_path, spec)
    builder = tiny.builder(tmp_path / "other")
    part = builder.get(spec).parts[0][0]
    ticks = iter([False] * 3 + [True])
    monkeypatch.setattr(
        "nonmember.training.tokens.check", lambda: (_ for _ in ()).throw(OSError) if next(ticks) else None
    )
    with pytest.raises(OSError):
        builder.entry(TokenIds(part, BASE))
    monkeypatch.setattr("nonmember.training.tokens.check", lambda: None)
    builder = tiny.builder(tmp_path / "other")
    assert [list(ids) for ids in documents_of(builder, BASE, builder.get(spec))] == whole


# ------------------------------------------------------------------------------------------ the trained model


def model(folder: Path, base=BASE) -> Trained:
    # A large epsilon, so that rounding does not decide the sign of Adam's steps.
    recipe = Pretraining(tiny.optimization(batch_size=BATCH, epsilon=1e-3), LENGTH)
    return Trained(base, recipe, corpus(folder / "files"), seed=SEED, label="streamed")


def train(
    folder: Path, store: str, *, stop_at: int | None = None, devices: int = 1, num_workers: int = 0, base=BASE
) -> None:
    """Train in this process; with `stop_at` it leaves points at once, and is stopped after so many micro-batches."""
    streams.CHUNK_BYTES, streams.SHARD_BYTES = 1000, 3000
    make = functools.partial(
        lightning.Trainer, accelerator="cpu", devices=devices, strategy="ddp" if devices > 1 else "auto"
    )

    def with_stop(**arguments):
        stop = [] if stop_at is None else [StopAfter(stop_at)]
        return make(**arguments | {"callbacks": [*arguments["callbacks"], *stop]})

    with_stop.keywords = make.keywords  # what a partial tells of its settings
    seconds = 1e9 if stop_at is None else 0.0
    changes = {"micro_batch_size": 2, "checkpoint_seconds": seconds, "num_workers": num_workers}
    tiny.builder(folder / store, make_trainer=with_stop, **changes).entry(model(folder, base))


def weights(folder: Path, store: str, base=BASE) -> list[torch.Tensor]:
    return tiny.weights(model(folder, base).weights(tiny.builder(folder / store)).model)


@pytest.mark.slow
def test_two_processes_train_as_one(tmp_path):
    here = Path(__file__)
    paths = os.pathsep.join([str(here.parents[1]), os.environ.get("PYTHONPATH", "")])
    subprocess.run([sys.executable, here, tmp_path], env=os.environ | {"PYTHONPATH": paths}, check=True, timeout=300)
    train(tmp_path, "one", base=PLAIN)
    tiny.assert_equal_weights(*(weights(tmp_path, name, PLAIN) for name in ("one", "two")), atol=1e-6)


@pytest.mark.slow
def test_interrupted_and_started_again_it_has_the_very_weights(tmp_path):
    with pytest.raises(RuntimeError, match="interrupted"):
        train(tmp_path, "stopped", stop_at=11)
    train(tmp_path, "stopped", num_workers=1)
    train(tmp_path, "whole")
    tiny.assert_equal_weights(weights(tmp_path, "stopped"), weights(tmp_path, "whole"))
    facts = [tiny.builder(tmp_path / name).entry(model(tmp_path)).facts for name in ("stopped", "whole")]
    assert facts[0] == facts[1]
    assert facts[0]["num_tokens"] == facts[0]["num_sequences"] * (LENGTH - 1)


def test_a_stream_is_trained_on_as_the_same_text_in_memory(tmp_path):
    train(tmp_path, "streamed")
    base = tiny.builder(tmp_path / "memory", micro_batch_size=2)
    other = Trained(BASE, model(tmp_path).training, in_memory(tmp_path / "files"), seed=SEED, label="in memory")
    tiny.assert_equal_weights(weights(tmp_path, "streamed"), tiny.weights(other.weights(base).model))


def test_only_next_token_prediction_reads_a_stream(tmp_path):
    distilled = Trained(BASE, tiny.distillation(), corpus(tmp_path / "files"), seed=1, teacher=BASE)
    with pytest.raises(ValueError, match="A streamed corpus, which is not held in memory, can only be trained on by"):
        tiny.builder(tmp_path / "store").entry(distilled)


if __name__ == "__main__":
    train(Path(sys.argv[1]), "two", devices=2, num_workers=1, base=PLAIN)
