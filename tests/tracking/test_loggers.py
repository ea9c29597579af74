"""Several loggers, Lightning's own among them, and its callbacks."""

from __future__ import annotations

import csv
import functools
from pathlib import Path

import pytest
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger

import tiny
from nonmember.config.build import build
from nonmember.config.compose import composed
from nonmember.tracking.trackers import CsvLogging, LightningLogging, Loggings, NoTracker, RunInfo, Trackers
from nonmember.training.run import TrainingRun, train


def info(folder: Path, run_id: str = "an-id") -> RunInfo:
    return RunInfo("seed=1", "a-group", "prism", ["target"], {"seed": 1}, folder, run_id)


def of_lightning(folder: Path) -> LightningLogging:
    return LightningLogging(functools.partial(CSVLogger, save_dir=str(folder)), {"name": "group", "version": "name"})


def trained(folder: Path, compute, loggers):
    folder.mkdir()
    model, documents = tiny.model(1), tiny.sequences_of_ids(18, seed=3, vocab_size=60)
    recipe = tiny.pretraining(batch_size=4, epochs=1)
    facts = train(model, documents, recipe, TrainingRun(7, folder, compute, loggers), end_of_text=0)
    assert facts["num_steps"] == 2
    return tiny.weights(model)


class Recorder(NoTracker):
    def __init__(self, log_text: bool, fails: bool = False):
        self.log_text, self.seen, self._fails = log_text, [], fails

    def scores(self, name, columns):
        self.seen.append(set(columns))

    def finish(self, *, failed):
        self.seen.append(failed)
        if self._fails:
            raise OSError("disk full")


def test_all_are_told_and_finished_and_text_goes_where_it_was_asked_for():
    sent, kept = Recorder(log_text=True, fails=True), Recorder(log_text=False)
    with pytest.raises(OSError, match="disk full"), Trackers([sent, kept]) as tracker:
        tracker.scores("scores", {"doc_id": ["d0"], "text": ["a secret"]})
    assert sent.seen == [{"doc_id", "text"}, False]
    assert kept.seen == [{"doc_id"}, False]


def test_a_logger_of_lightning_has_the_numbers_and_knows_the_run_again(tmp_path):
    both = Loggings({"csv": CsvLogging(), "mine": of_lightning(tmp_path / "logs")})
    folder = tmp_path / "run"
    folder.mkdir()
    assert not both.has(info(folder))
    with both.start(info(folder)) as tracker:
        tracker.log("train", {"loss": 0.5}, 7)
        tracker.summarise({"test/p_value": 0.25, "verdict": "inconclusive"})
    with (tmp_path / "logs/a-group/seed=1/metrics.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {(row["step"], row["train/loss"], row["test/p_value"]) for row in rows} == {
        ("7", "0.5", ""),
        ("0", "", "0.25"),
    }
    assert both.has(info(folder))
    assert not both.has(info(folder, "another-id"))
    assert not of_lightning(tmp_path / "elsewhere").has(info(folder))


def test_loggers_of_the_group_stand_beside_each_other():
    with composed("audit", ["logger=[csv,wandb]", "logger.wandb.mode=disabled", "world=micro"]) as (config, _):
        loggers = Loggings(build(config.logger)).loggers
    assert [type(item).__name__ for item in loggers.values()] == ["CsvLogging", "WandbLogging"]
    assert loggers["wandb"].mode == "disabled"


def test_callbacks_see_every_training_and_change_none(tmp_path):
    watching = {
        "rate": LearningRateMonitor("step"),
        "saved": ModelCheckpoint(dirpath=str(tmp_path / "saved"), every_n_train_steps=1, save_top_k=-1),
    }
    logger = CSVLogger(str(tmp_path), name="logs", version="b")
    plain = trained(tmp_path / "a", tiny.compute(), [])
    tiny.assert_equal_weights(plain, trained(tmp_path / "b", tiny.compute(callbacks=watching), [logger]))
    assert len(list((tmp_path / "saved").rglob("*.ckpt"))) == 2
    assert "lr-AdamW" in (tmp_path / "logs/b/metrics.csv").read_text().partition("\n")[0]


@pytest.mark.parametrize(("callback", "words"), [(EarlyStopping("train/loss"), "ends it early")])
def test_what_is_no_watching_callback_is_refused(callback, words):
    with pytest.raises(ValueError, match=words):
        tiny.compute(callbacks={"mine": callback}).callbacks_of("a training")


@pytest.mark.parametrize("said", ["no", "off", "'False'", "0"])
def test_what_is_no_flag_sends_no_text(said):
    """To Python every text but the empty one is true."""
    words, refused = ["logger=wandb", f"logger.wandb.log_text={said}"], r"logger\.wandb\.log_text must be true or false"
    with composed("audit", words) as (config, _), pytest.raises(ValueError, match=refused):
        Loggings(build(config.logger))
