"""A signal ends a run in order wherever it is; the same command then ends with the numbers of a run left alone."""

from __future__ import annotations

import io
import itertools
import json
import os
import pkgutil
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import only, question, rows_of, write_rows
from nonmember.runtime import interruption, progress
from nonmember.runtime.progress import Stage, duration

PLACES = {
    "reading": "nonmember.corpora.sources.rows.json_value",
    "encoding": "nonmember.models.encoding.encode_corpus",
    "observing": "nonmember.observations.passes.tokens.Observer.predict_step",
    "health": "nonmember.training.modules.CausalLMModule.validation_step",
    "training": "nonmember.training.modules.CausalLMModule.training_step",
    "testing": "nonmember.stats.bootstrap._resampled_correlations",
    "writing the result": "nonmember.audits.run.write",
}


def signal_at(monkeypatch: pytest.MonkeyPatch, place: str, number: int, *, call: int = 1) -> None:
    """Sends this process a signal at that call of that function, counted from 1."""
    calls = itertools.count(1)
    owner, name = place.rsplit(".", 1)
    target = pkgutil.resolve_name(owner)
    function = getattr(target, name)

    def interrupting(*arguments, **named):
        if next(calls) == call:
            os.kill(os.getpid(), number)
        return function(*arguments, **named)

    monkeypatch.setattr(target, name, interrupting)


def numbers(outputs: Path) -> dict[str, object]:
    result = json.loads(only(outputs, "audits/*/*/result.json").read_text())
    return {name: result[name] for name in ("statistics", "health", "verdict")} | {"keys": result["provenance"]["keys"]}


@pytest.mark.slow
def test_every_stage(nonmember, ask, monkeypatch, tmp_path):
    """One after the other, each time a stage further, by the same command; left alone at last, it ends as another run
    that nothing struck."""
    arguments = ask("name=mine")
    for place in PLACES:
        strike(nonmember, arguments, monkeypatch, tmp_path, place)
    again = nonmember(*arguments)
    assert again.status == 0, again.err
    assert nonmember(*arguments, "outputs=undisturbed").status == 0
    assert numbers(tmp_path / "outputs") == numbers(tmp_path / "undisturbed")


def strike(nonmember, arguments: list[str], monkeypatch, folder: Path, place: str) -> None:
    number = signal.SIGINT if place == "training" else signal.SIGTERM
    with monkeypatch.context() as patched:
        signal_at(patched, PLACES[place], number)
        said = nonmember(*arguments)
    assert said.status == 128 + number, (place, said)
    assert "nonmember: interrupted (" in said.err.splitlines()[-1]
    assert "start the same command again to continue" in said.err or place == "training"
    assert not list(folder.glob("outputs/audits/*/*/result.json"))
    assert not list(folder.glob("outputs/audits/*/*/error.json"))


@pytest.mark.slow  # test_every_stage sends both signals to a command in this process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_as_started_from_a_shell(make_model, texts, tmp_path, number):
    """SIGTERM and Ctrl-C of the process itself, without a terminal."""
    documents = write_rows(tmp_path / "documents.jsonl", rows_of(texts))
    resamples = "method.num_resamples=10000000"  # as much arithmetic as is allowed
    command = question(make_model(0), make_model(1), documents, resamples)
    process = subprocess.Popen(
        [sys.executable, "-m", "nonmember.cli", *command],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline = time.monotonic() + 120
    while len(list(tmp_path.glob("outputs/store/observations/*/sidecar.json"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(number)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert "nonmember: interrupted (" in told
    assert "Traceback" not in told


# ------------------------------------------------------------------------------------------- signals


def test_a_second_signal_is_a_second_request_only_after_a_moment(monkeypatch):
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    with interruption.interruptible():
        interruption._state.postponing += 1
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)  # as `timeout` does
        assert ended == []
        monkeypatch.setattr(interruption, "REPEATED_WITHIN", 0.0)
        os.kill(os.getpid(), signal.SIGINT)
        assert ended == [130]
        interruption._state.postponing -= 1
        with pytest.raises(interruption.Interrupted, match="SIGTERM"):
            interruption.check()
    assert interruption.pending() is None
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_handlers_of_others_stay(monkeypatch):
    """submitit answers SIGTERM itself when a job is to be queued again."""
    previous = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with interruption.interruptible():
            assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, previous)


# ------------------------------------------------------------------------------------------ progress


@pytest.mark.parametrize(("seconds", "text"), [(4.4, "4 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")])
def test_duration(seconds, text):
    assert duration(seconds) == text


def test_a_stage_without_a_terminal(monkeypatch):
    monkeypatch.setattr(progress, "A_MOMENT", 0.0)
    monkeypatch.setattr(progress, "EVERY_SECONDS", 0.0)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Stage("observing m", 4000, "tokens", at=1000) as stage:
        stage.advance(1000)
    with Stage("reading"):
        pass
    second, third, last = (line.partition(" ")[2] for line in sys.stderr.getvalue().splitlines())
    assert second.startswith("observing m: 2,000 of 4,000 tokens, ")
    assert "tokens a second" in second
    assert second.endswith(" left")
    assert third == "observing m: 2,000 of 4,000 tokens, done in 0 s"
    assert last == "reading: done in 0 s"


def test_a_short_stage_says_nothing(capsys):
    assert list(progress.tracked([1, 2], "reading")) == [1, 2]
    assert capsys.readouterr().err == ""


# ------------------------------------------------------------------------------------------- workers


@pytest.fixture
def side_by_side(make_model, texts, tmp_path) -> Callable[[], subprocess.Popen[str]]:
    """Starts a sweep of three cells, two at a time, in a session of its own; long, by resamples of many documents."""
    rng = random.Random(0)
    more_texts = [" ".join(rng.sample(words, len(words))) for words in map(str.split, texts) for _ in range(5)]
    documents = write_rows(tmp_path / "documents.jsonl", rows_of(more_texts))
    command, *arguments = question(make_model(0), make_model(1), documents, "launcher=joblib", "name=beside")

    def start() -> subprocess.Popen[str]:
        more = ["method.num_resamples=10000000", "method.alpha=0.01,0.02,0.03"]
        return subprocess.Popen(
            [sys.executable, "-m", "nonmember.cli", command, "-m", *arguments, *more],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    return start


def workers_at_work(folder: Path, process: subprocess.Popen[str]) -> list[int]:
    """Process ids, as soon as two cells have begun."""
    import psutil

    deadline = time.monotonic() + 120
    while len(list(folder.glob("outputs/audits/beside/*/config.json"))) < 2:
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    time.sleep(10)
    children = psutil.Process(process.pid).children()
    return [child.pid for child in children if "resource_tracker" not in " ".join(child.cmdline())]


@pytest.mark.slow
def test_a_sweep_side_by_side_ends_by_a_signal(side_by_side, tmp_path):
    process = side_by_side()
    workers_at_work(tmp_path, process)
    process.terminate()
    _, told = process.communicate(timeout=60)
    assert process.returncode == 143, told
    assert "Traceback" not in told
    assert not list(tmp_path.glob("outputs/audits/beside/*/error.json"))


@pytest.mark.slow
def test_a_worker_that_is_killed_and_a_parent_that_is(side_by_side, tmp_path):
    import psutil

    process = side_by_side()
    os.kill(workers_at_work(tmp_path, process)[0], signal.SIGKILL)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" not in told
    assert "nonmember audit: A worker of the launcher was ended" in told

    process = side_by_side()
    workers = workers_at_work(tmp_path, process)
    assert len(workers) == 2
    process.kill()
    process.communicate()
    time.sleep(interruption.GRACE_OF_ORPHANS + 4)
    assert not any(psutil.pid_exists(worker) for worker in workers)

    process = side_by_side()
    _, told = process.communicate(timeout=400)
    assert process.returncode == 0, told
    assert len(list(tmp_path.glob("outputs/audits/beside/*/result.json"))) == 3


# --------------------------------------------------------------- one process, without others at work


class Child:
    def __init__(self) -> None:
        self.ended: list[str] = []

    def terminate(self) -> None:
        self.ended.append("terminated")

    def kill(self) -> None:
        self.ended.append("killed")


@pytest.fixture
def state(monkeypatch):
    """As of a process that nothing has interrupted, with one worker."""
    fresh = interruption._State()
    monkeypatch.setattr(interruption, "_state", fresh)
    return fresh


def test_a_signal_ends_the_workers_first_and_the_process_when_their_time_is_over(state, monkeypatch):
    child, exits, alarms, handlers = Child(), [], [], {}
    monkeypatch.setattr(interruption.multiprocessing, "active_children", lambda: [child])
    monkeypatch.setattr(signal, "setitimer", lambda which, seconds: alarms.append(seconds))
    monkeypatch.setattr(signal, "signal", handlers.__setitem__)
    monkeypatch.setattr(os, "_exit", exits.append)
    state.ends_process = True
    interruption._on_signal(signal.SIGTERM, None)
    assert (child.ended, alarms) == (["terminated"], [interruption.GRACE_OF_WORKERS])
    interruption._on_signal(signal.SIGTERM, None)  # that of the group, at once: no second request
    assert exits == []
    state.since -= 2 * interruption.REPEATED_WITHIN
    interruption._on_signal(signal.SIGTERM, None)
    assert (child.ended, exits) == (["terminated", "killed"], [128 + signal.SIGTERM])
    with pytest.raises(interruption.Interrupted):
        handlers[signal.SIGALRM](signal.SIGALRM, None)


def test_a_worker_ends_with_its_parent(state, monkeypatch):
    parents, ended = itertools.chain([1, 1], itertools.repeat(2)), []
    monkeypatch.setattr(os, "getppid", lambda: next(parents))
    monkeypatch.setattr(os, "kill", lambda process, signum: ended.append(signum))
    monkeypatch.setattr(os, "_exit", ended.append)
    monkeypatch.setattr(interruption, "POLL_SECONDS", 0.001)
    monkeypatch.setattr(interruption, "GRACE_OF_ORPHANS", 0.001)
    monkeypatch.setattr(interruption, "_install", lambda: None)
    with interruption.worker():
        deadline = time.monotonic() + 30
        while len(ended) < 2 and time.monotonic() < deadline:
            time.sleep(0.005)
    assert ended == [signal.SIGTERM, 128 + signal.SIGTERM]
    assert not state.busy


def test_in_another_program_s_process_each_signal_is_raised_and_none_ends_it(state, monkeypatch):
    """As of nm.audit in a notebook."""
    exits: list[int] = []
    monkeypatch.setattr(os, "_exit", exits.append)
    state.ends_process = False
    for _ in range(3):
        with pytest.raises(interruption.Interrupted):
            interruption._on_signal(signal.SIGINT, None)
        state.since -= 2 * interruption.REPEATED_WITHIN
    assert exits == []


def test_an_error_that_a_library_made_of_a_signal_is_an_interruption(state):
    assert interruption.interruption_of(ValueError("the worker is gone")) is None
    state.received = signal.SIGTERM
    found = interruption.interruption_of(ValueError("the worker is gone"))
    assert found is not None
    assert found.status == 143
