"""Fixtures of the command line and its small models.

Threads are fixed before torch is imported: OpenMP threads that spin on a shared core cost far more than they
give.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("WANDB_MODE", "offline")
os.environ.setdefault("WANDB__SAVE_REQUIREMENTS", "false")  # else the metadata of all that is installed, for each run
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import asyncio
import contextlib
import functools
import gc
import logging
import signal
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import Said, question, rows_of, same_environment_afterwards, write_rows
from lab_server.running import KEY_VARIABLE, RunningLab, running_lab
from quick_configs import quick_configs

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a job that a shell runs in the background
    with contextlib.suppress(ValueError):  # of another thread than the first
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers() -> int:
    """As many as there are processors: one more ends a little sooner and costs the imports of another process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pytest_collectstart() -> None:
    gc.disable()  # while all is imported


def pytest_collection_finish() -> None:
    """What the imports have made lives as long as the process: the garbage collector need not visit it again, and
    need not look so often for the little that tests leave in cycles."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20, 100)


@pytest.fixture(autouse=True, scope="session")
def configs_are_composed_quickly() -> Iterator[None]:
    with quick_configs():
        yield


@pytest.fixture(autouse=True, scope="session")
def what_lasts_is_read_once() -> Iterator[None]:
    """Lightning reads the metadata of all packages for each trainer, and clients of endpoints the certificates."""
    from lightning.fabric.utilities import registry

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "entry_points", functools.cache(registry.entry_points))
        patch.setattr(ssl, "create_default_context", functools.cache(ssl.create_default_context))
        yield


@pytest.fixture(autouse=True, scope="session")
def nothing_waits_for_the_disk() -> Iterator[None]:
    """What tests write need not outlive the machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def coverage_goes_on_after_an_event_loop() -> Iterator[None]:
    """Python 3.11 tells a tracer of more ends than beginnings where an error is thrown into coroutines that await one
    another, after which coverage misses what their callers do. So it watches each loop as it would a thread."""
    run = asyncio.run

    def watched(*arguments: Any, **more: Any) -> Any:
        tracer = sys.gettrace()
        if tracer is None or threading.gettrace() is None:
            return run(*arguments, **more)
        sys.settrace(threading.gettrace())
        try:
            return run(*arguments, **more)
        finally:
            sys._getframe().f_trace = tracer  # which is to see this call end
            sys.settrace(tracer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "run", watched)
        yield


@pytest.fixture(autouse=True)
def no_stage_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine every stage would have something to say."""
    from nonmember.runtime import progress

    monkeypatch.setattr(progress, "A_MOMENT", 1e6)


@pytest.fixture
def nonmember(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., Said]]:
    """nonmember("audit", "seed=1"): the command line in this process, in a folder of the test's own."""
    from nonmember.cli import main as cli

    def call(*arguments: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["nonmember", *map(str, arguments)])
        capfd.readouterr()
        with same_environment_afterwards():
            try:
                status = cli.run(sys.argv[1:])
            except SystemExit as end:
                status = int(end.code or 0)
        return Said(status, *capfd.readouterr())

    monkeypatch.chdir(tmp_path)
    root = logging.getLogger()
    handlers, level, shows_errors = root.handlers[:], root.level, logging.raiseExceptions
    yield call
    root.handlers[:], logging.raiseExceptions = handlers, shows_errors
    root.setLevel(level)


@pytest.fixture(scope="session")
def make_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """make_model(seed): the folder of a random two-layer GPT-NeoX and its tokenizer.

    extra_rows: rows of the vocabulary beyond the tokenizer's entries.   words: what the tokenizer learns.
    """
    made: dict[tuple[object, ...], Path] = {}

    def make(seed: int = 0, *, extra_rows: int = 0, words: str = "") -> Path:
        key = (seed, extra_rows, words)
        if key not in made:
            made[key] = _save_model(tmp_path_factory.mktemp("models") / f"tiny{seed}", *key)
        return made[key]

    return make


def _save_model(folder: Path, seed: int, extra_rows: int, words: str) -> Path:
    from nonmember.models.loading import train_tokenizer
    from nonmember.records import Corpus, Document
    from tiny import VOCAB_SIZE, model, random_texts

    texts = [words] if words else random_texts(50, seed=1)
    corpus = Corpus(tuple(Document(row["id"], row["text"]) for row in rows_of(texts)))
    tokenizer = train_tokenizer(corpus, VOCAB_SIZE)
    model(seed, len(tokenizer) + extra_rows).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def texts() -> list[str]:
    """40 suspect documents."""
    from tiny import random_texts

    return random_texts(40, seed=2)


@pytest.fixture
def ask(make_model: Callable[..., Path], texts: list[str], tmp_path: Path) -> Callable[..., list[str]]:
    """ask("seed=2", target=folder): the arguments of an audit, all of it sound but for what is given."""

    def arguments(*more: str, **given: Path) -> list[str]:
        documents = given.get("documents") or write_rows(tmp_path / "documents.jsonl", rows_of(texts))
        target, reference = (given.get(role) or make_model(seed) for seed, role in enumerate(("target", "reference")))
        return question(target, reference, documents, *more)

    return arguments


@pytest.fixture(scope="session")
def lab_process() -> Iterator[RunningLab]:
    with running_lab() as lab:
        yield lab


@pytest.fixture
def lab(lab_process: RunningLab, monkeypatch: pytest.MonkeyPatch) -> RunningLab:
    """A server of OpenAI's protocol with a made-up model behind it, as it is by default and asked nothing yet."""
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    lab_process.setup()
    lab_process.forget()
    return lab_process
