"""A run that was interrupted and started again ends with the very weights of one that was not."""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
from pathlib import Path
from types import SimpleNamespace

import lightning
import numpy as np
import pytest
import torch

import tiny
from marks import slow
from nonmember.runtime.interruption import Interrupted, interruptible, interruption_of
from nonmember.training import resume
from nonmember.training.resume import ResumePoints
from nonmember.training.run import Teacher, TrainingRun, train

VOCAB, END = 60, 0
DOCUMENTS = tiny.sequences_of_ids(18, seed=3, vocab_size=VOCAB)
RECIPES = {
    # Three micro-batches of at most two to a step; the last step has two sequences.
    "pretraining": tiny.pretraining(9, batch_size=5, epochs=2),
    "distillation": tiny.distillation(batch_size=5, epochs=2),
}


class StopAfter(lightning.Callback):
    """Raises after so many micro-batches; comes after the callback that saves."""

    def __init__(self, num_batches: int):
        self.num_batches = num_batches

    def on_train_batch_end(self, trainer, *_):
        if trainer.fit_loop.epoch_loop.batch_progress.current.ready == self.num_batches:
            raise RuntimeError("interrupted")


class SignalAt(lightning.Callback):
    """Sends this process a signal within a micro-batch, counted from 1, of a training or a health pass."""

    def __init__(self, place: int, number: int = signal.SIGTERM, stage: str = "train"):
        self.place, self.number, self.stage = place, number, stage

    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        self._at("train", batch_idx)

    def on_validation_batch_start(self, trainer, module, batch, batch_idx, *_):
        self._at("health", batch_idx)

    def _at(self, stage, batch_idx):
        if (stage, batch_idx + 1) == (self.stage, self.place):
            os.kill(os.getpid(), self.number)


class SeeSteps(lightning.Callback):
    """Counts the optimizer steps that are made in this run."""

    def __init__(self):
        self.steps = 0

    def on_before_optimizer_step(self, *_):
        self.steps += 1


def trained(recipe, folder: Path, *further: lightning.Callback, **changes):
    """Weights, facts and the student's and teacher's models. With further callbacks a resume point is left at each
    step."""
    student = tiny.model(1, VOCAB, hidden_dropout=0.2, attention_dropout=0.2)
    teacher = tiny.model(2, VOCAB)
    make_trainer = tiny.compute().make_trainer

    def make_trainer_with_further(**arguments):
        if "callbacks" in arguments:
            arguments["callbacks"] = [*arguments["callbacks"], *further]
        return make_trainer(**arguments)

    changes = {"micro_batch_size": 2, "checkpoint_seconds": 0.0 if further else 1e9} | changes
    run = TrainingRun(7, folder, tiny.compute(make_trainer=make_trainer_with_further, **changes))
    shared = Teacher(teacher, (slice(VOCAB), slice(VOCAB)))
    facts = train(student, DOCUMENTS, recipe, run, end_of_text=END, teacher=shared)
    return tiny.weights(student), facts, student, teacher


def interrupted(recipe, folder: Path, stop_after: int, **changes) -> None:
    with pytest.raises(RuntimeError, match="interrupted"):
        trained(recipe, folder, StopAfter(stop_after), **changes)


def points(folder: Path) -> list[Path]:
    """The resume points of three micro-batches to a step, the newest last."""
    return sorted(folder.glob(".resume-3-*.ckpt"))


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def disturb_generators() -> None:
    torch.manual_seed(99)
    random.seed(99)
    np.random.seed(99)  # noqa: NPY002


@pytest.fixture(scope="module", params=RECIPES)
def uninterrupted(request, tmp_path_factory):
    recipe = RECIPES[request.param]
    weights, facts, *_ = trained(recipe, tmp_path_factory.mktemp("whole"))
    steps, rest = divmod(2 * facts["num_sequences"], 5)
    num_batches = 3 * steps + (rest + 1) // 2
    assert rest, "the last step must be a partial one"
    return recipe, weights, facts, num_batches


@pytest.mark.parametrize("place", ["after a step", "within a step", slow("last but one"), slow("last")])
def test_to_the_last_bit(uninterrupted, tmp_path, place):
    recipe, weights, facts, num_batches = uninterrupted
    stop_after = {"after a step": 3, "within a step": 11, "last but one": num_batches - 1, "last": num_batches}[place]
    interrupted(recipe, tmp_path, stop_after)
    assert {path.name[:10] for path in tmp_path.iterdir()} == {".resume-3-"}
    if place == "last":
        assert torch.load(points(tmp_path)[-1], weights_only=True)["global_step"] == facts["num_steps"]
    disturb_generators()
    again, facts_again, *_ = trained(recipe, tmp_path)
    tiny.assert_equal_weights(again, weights)
    assert facts_again == facts


# Where weights alone are compared: without the passes before and after a training, and without points of what goes on.
ONLY_STEPS = {"measure_health": False, "checkpoint_seconds": 1e9}


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A training that was stopped after three steps, and the weights it would have had."""
    recipe = RECIPES["distillation"]
    weights, facts, *_ = trained(recipe, tmp_path_factory.mktemp("whole"), **ONLY_STEPS)
    folder = tmp_path_factory.mktemp("stopped") / ".partial-1"
    folder.mkdir()
    interrupted(recipe, folder, 9, measure_health=False)
    return folder, weights, facts


DAMAGE = {
    "flipped": flip,
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "empty": lambda path: path.write_bytes(b""),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "number", "steps_left"),
    [("flipped", 1, 2), slow("cut", 1, 2), ("empty", 1, 2), ("flipped", 2, 0)],  # whatever it was, its hash tells
)
def test_damaged_points_are_not_gone_on_from(stopped, tmp_path, caplog, what, number, steps_left):
    source, weights, facts = stopped
    folder = tmp_path / source.name
    shutil.copytree(source, folder)
    assert len(points(folder)) == 2
    damaged = points(folder)[-number:]
    for path in damaged:
        DAMAGE[what](path)
    see = SeeSteps()
    again, *_ = trained(RECIPES["distillation"], folder, see, **ONLY_STEPS)
    tiny.assert_equal_weights(again, weights)
    assert see.steps == facts["num_steps"] - steps_left  # from the point before, or anew
    assert caplog.text.count("is damaged or belongs to another training") == number


def test_points_are_staged_beside_their_place_and_a_full_disk_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "no such folder"))
    interrupted(RECIPES["distillation"], tmp_path, 3, measure_health=False)
    monkeypatch.setattr(ResumePoints, "temporary", Path("/dev/full"))
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)
    with pytest.raises(OSError, match="No space left on device"):
        trained(RECIPES["distillation"], tmp_path, checkpoint_seconds=0.0, measure_health=False)


@pytest.mark.slow
def test_a_run_that_divides_its_steps_otherwise_starts_over(tmp_path):
    """After running out of memory one lowers micro_batch_size; a checkpoint counts micro-batches."""
    recipe = RECIPES["distillation"]
    interrupted(recipe, tmp_path, 5, micro_batch_size=5)
    weights, facts, *_ = trained(recipe, tmp_path)
    whole, whole_facts, *_ = trained(recipe, tmp_path / "nothing")
    tiny.assert_equal_weights(weights, whole)
    assert facts == whole_facts


@pytest.mark.slow
def test_the_teacher_is_neither_in_the_checkpoint_nor_changed(tmp_path):
    recipe = RECIPES["distillation"]
    *_, student, teacher = trained(recipe, tmp_path, checkpoint_seconds=0.0)
    tiny.assert_equal_weights(tiny.weights(teacher), tiny.weights(tiny.model(2, VOCAB)))
    point = torch.load(points(tmp_path)[-1], weights_only=True)
    assert set(point["state_dict"]) == {f"model.{name}" for name in student.state_dict()}
    num_optimized = sum(len(group["params"]) for group in point["optimizer_states"][0]["param_groups"])
    assert num_optimized == len(list(student.parameters()))


@pytest.mark.slow
@pytest.mark.parametrize(("place", "number", "step"), [(11, 2, 3), slow(5, 15, 1), slow(3, 2, 1), slow(6, 15, 2)])
def test_a_signal_leaves_the_point_of_the_last_step(uninterrupted, tmp_path, place, number, step):
    """Also within a step, after some of its micro-batches, with dropout; and twice."""
    recipe, weights, facts, _ = uninterrupted
    for at, reached in ((place, step), (place + 4, (place + 4) // 3)):
        end = ended_by_signal(recipe, tmp_path, SignalAt(at, number), checkpoint_seconds=1000.0)
        assert end.status == 128 + number
        assert (
            f"start the same command again to continue from step {reached} of {facts['num_steps']} (training)."
            in str(end)
        )
        assert (
            torch.load(max(points(tmp_path), key=lambda item: item.stat().st_mtime_ns), weights_only=True)[
                "global_step"
            ]
            == reached
        )
        disturb_generators()
    again, facts_again, *_ = trained(recipe, tmp_path)
    tiny.assert_equal_weights(again, weights)
    assert facts_again == facts


@pytest.mark.slow
def test_a_signal_before_the_first_step_or_in_a_health_pass(uninterrupted, tmp_path):
    recipe, weights, *_ = uninterrupted
    end = ended_by_signal(recipe, tmp_path, SignalAt(2))
    assert "start the same command again to train from the first step" in str(end)
    assert not list(tmp_path.iterdir())
    if recipe is RECIPES["distillation"]:
        end = ended_by_signal(recipe, tmp_path, SignalAt(2, stage="health"))
        assert (end.status, list(tmp_path.iterdir())) == (143, [])
    tiny.assert_equal_weights(trained(recipe, tmp_path)[0], weights)


def ended_by_signal(recipe, folder: Path, *arguments, **changes) -> Interrupted:
    with interruptible(), pytest.raises((Interrupted, SystemExit)) as caught:
        trained(recipe, folder, *arguments, **changes)
    end = interruption_of(caught.value)  # Lightning makes an exit of it
    assert end is not None
    return end


def test_points_are_rarer_where_writing_one_takes_long(monkeypatch, tmp_path):
    """At most a twentieth of the time: a point of a minute is written every twenty."""
    now = [0.0]
    monkeypatch.setattr(resume.time, "monotonic", lambda: now[0])
    point = resume.ResumePoint(tmp_path, 15.0, 1, random_state=resume.RandomState(), num_steps=9, description="a model")
    written = []

    def save_checkpoint(path):
        path.write_bytes(b"a point")
        written.append(now[0])
        now[0] += 60.0

    trainer = SimpleNamespace(
        is_global_zero=True,
        world_size=1,
        global_step=1,
        save_checkpoint=save_checkpoint,
        fit_loop=SimpleNamespace(_should_accumulate=lambda: False),
    )
    while now[0] < 3000:
        now[0] += 5.0
        point.on_train_batch_end(trainer)
    assert written == [15.0, 15.0 + 60 + 1200, 15.0 + 2 * (60 + 1200)]
