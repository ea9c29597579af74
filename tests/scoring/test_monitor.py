"""MembershipMonitor: it sees what is read, changes no bit of a training, and survives an interruption."""

from __future__ import annotations

import copy
import csv

import lightning
import numpy as np
import pytest
import torch
from lightning.pytorch.demos.boring_classes import BoringModel
from lightning.pytorch.loggers import CSVLogger

import tiny
from nonmember.scores import Loss, MinK, ReferenceDifference
from nonmember.scores.functions import min_k_plus_plus
from nonmember.scoring.monitor import MembershipMonitor

READ = tiny.sequences_of_ids(12, seed=1)
CANARIES = tiny.sequences_of_ids(5, seed=2)
HELDOUT = tiny.sequences_of_ids(12, seed=3)


class Training(lightning.LightningModule):
    """Of one's own: dropout, so that a random state that was moved would be seen."""

    def __init__(self):
        super().__init__()
        self.model = tiny.model(1, hidden_dropout=0.1)
        self.model.gpt_neox.embed_in.eval()  # a module that is frozen on purpose stays so

    def training_step(self, batch, batch_idx):
        return self.model(batch, labels=batch).loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)

    def train_dataloader(self):
        return torch.utils.data.DataLoader([torch.tensor(ids[:3]) for ids in READ], batch_size=3, shuffle=True)


def monitor(**changes):
    settings = {"every_n_steps": 3, "max_batch_tokens": 40} | changes
    return MembershipMonitor({"suspect": READ, "canaries": CANARIES}, HELDOUT, **settings)


def fit(folder, callbacks, *, epochs=2, loggers=(), module=None, ckpt_path=None, **settings):
    torch.manual_seed(5)
    module = module or Training()
    module.model.train()
    module.model.gpt_neox.embed_in.eval()
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_epochs=epochs,
        callbacks=callbacks,
        logger=list(loggers),
        default_root_dir=folder,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        **settings,
    )
    trainer.fit(module, ckpt_path=ckpt_path)
    return trainer, module


@pytest.mark.slow
def test_training_is_not_moved_by_a_bit(tmp_path):
    _, alone = fit(tmp_path, [])
    after = torch.rand(3), np.random.rand(3)  # noqa: NPY002
    watching = monitor()
    _, watched = fit(tmp_path, [watching])
    tiny.assert_equal_weights(tiny.weights(alone.model), tiny.weights(watched.model))
    assert torch.equal(after[0], torch.rand(3))
    assert watched.model.training
    assert not watched.model.gpt_neox.embed_in.training
    assert [row["step"] for row in watching.history] == [0, 3, 6, 8]


@pytest.mark.slow
def test_every_logger_and_callback_gets_what_the_scores_of_the_model_are(tmp_path):
    logger, watching = CSVLogger(str(tmp_path), name="logs", version="a"), monitor(every_n_steps=100)
    before = tiny.model(1, hidden_dropout=0.1)
    trainer, module = fit(tmp_path, [watching], loggers=[logger])

    def scores(model, documents):
        columns = []
        for ids in documents:
            log_p = model(torch.tensor([ids])).logits[0, :-1].double().log_softmax(-1).detach()
            mean = (log_p.exp() * log_p).sum(-1, keepdim=True)
            std = (log_p.exp() * (log_p - mean).square()).sum(-1).sqrt()
            own = log_p.gather(-1, torch.tensor(ids[1:])[:, None])[:, 0]
            columns.append((own.numpy(), mean[:, 0].numpy(), std.numpy()))
        return min_k_plus_plus(*zip(*columns, strict=True), k=0.2)

    model = module.model.eval()
    found = watching.history[-1]
    name = "membership/suspect/min_k_plus_plus"
    gains = [scores(model, of) - scores(before, of) for of in (READ, HELDOUT)]
    assert found[name] == pytest.approx(scores(model, READ).mean(), abs=1e-4)
    assert found[f"{name}_gain"] == pytest.approx(gains[0].mean() - gains[1].mean(), abs=1e-4)
    spread = np.sqrt(sum(item.var(ddof=1) / len(item) for item in gains))
    assert found[f"{name}_t"] == pytest.approx((gains[0].mean() - gains[1].mean()) / spread, rel=1e-3)
    assert float(trainer.callback_metrics[name]) == pytest.approx(found[name])
    assert "membership/heldout/min_k_plus_plus_gain" not in found
    with (tmp_path / "logs/a/metrics.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [int(row["step"]) for row in rows] == [0, 8]
    assert float(rows[-1][name]) == pytest.approx(found[name])


@pytest.mark.slow
def test_what_is_read_rises_above_what_is_not(tmp_path):
    watching = monitor(every_n_steps=100, scores={"loss": Loss(), "min_k": MinK(0.2)})
    fit(tmp_path, [watching], epochs=6)
    last = watching.history[-1]
    assert last["membership/suspect/loss_t"] > 2 > abs(last["membership/canaries/loss_t"])


@pytest.mark.slow
def test_a_resumed_training_has_the_same_start_and_no_reading_twice(tmp_path):
    whole = monitor()
    fit(tmp_path, [whole])
    half, again = monitor(), monitor()
    trainer, _ = fit(tmp_path, [half], epochs=1)
    trainer.save_checkpoint(tmp_path / "half.ckpt")
    fit(tmp_path, [again], ckpt_path=tmp_path / "half.ckpt")
    steps = [row["step"] for row in again.history]
    assert steps == [0, 3, 4, 6, 8]
    assert again.history[0] == whole.history[0]
    others = MembershipMonitor({"suspect": READ[::-1], "canaries": CANARIES}, HELDOUT)
    with pytest.raises(ValueError, match=r"got others for suspect\. Give the same"):
        fit(tmp_path, [others], ckpt_path=tmp_path / "half.ckpt")


def test_another_training_has_a_start_of_its_own(tmp_path):
    watching, fresh = monitor(), monitor()
    fit(tmp_path, [watching], epochs=1)
    other = Training()
    other.model = tiny.model(2)
    fit(tmp_path, [watching], module=copy.deepcopy(other), epochs=1)
    fit(tmp_path, [fresh], module=other, epochs=1)
    assert watching.history == fresh.history


def test_with_accumulation_a_step_is_read_once(tmp_path):
    watching = monitor(every_n_steps=1)
    fit(tmp_path, [watching], accumulate_grad_batches=2)
    assert [row["step"] for row in watching.history] == [0, 1, 2, 3, 4]


def test_a_model_of_damaged_weights_goes_on_unread(tmp_path):
    module = Training()
    module.configure_optimizers = lambda: torch.optim.SGD(module.parameters(), lr=float("inf"))
    watching = monitor()
    with pytest.warns(UserWarning, match="Step 3 has no membership scores"):
        fit(tmp_path, [watching], module=module)
    assert [row["step"] for row in watching.history] == [0]


def test_texts_are_read_as_token_ids_are(tmp_path):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny.model_folder(tmp_path / "model", 1))
    texts = tiny.random_texts(4, seed=1)
    by_text = MembershipMonitor({"suspect": texts}, texts, tokenizer=tokenizer, max_tokens=5)
    assert by_text._ids["suspect"] == [tokenizer(text)["input_ids"][:5] for text in texts]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"sets": {}}, "one set or more"),
        ({"sets": {"heldout": READ}}, "none of them 'heldout'"),
        ({"heldout": READ[:1]}, "two documents or more"),
        ({"heldout": None}, "got None. Without them a rise cannot be distinguished"),
        ({"heldout": ["a text", "another"]}, "need a tokenizer"),
        ({"heldout": [[1, 2], [3]]}, "number 1 .* has fewer"),
        ({"scores": {"mine": ReferenceDifference()}}, "mine needs more"),
        ({"every_n_steps": 0}, "every_n_steps"),
    ],
)
def test_what_cannot_be_watched_is_refused(changes, words):
    settings = {"sets": {"suspect": READ}, "heldout": HELDOUT} | changes
    with pytest.raises(ValueError, match=words):
        MembershipMonitor(**settings)


@pytest.mark.parametrize(
    ("make", "changes", "words"),
    [
        (Training, {"model": "lm"}, "at model='lm'; nothing is there. Pass model='model'"),
        (Training, {"model": "model.gpt_neox.layers"}, "a ModuleList is there. Pass model='model'"),
        (BoringModel, {}, "BoringModel .* There is none in it"),
        (Training, {"heldout": [[1] * 999, [1, 2]]}, r"at most \d+ tokens; the longest has 999. Pass max_tokens="),
    ],
)
def test_a_training_that_cannot_be_watched_is_refused_before_its_first_step(tmp_path, make, changes, words):
    watching = MembershipMonitor(**{"sets": {"suspect": READ}, "heldout": HELDOUT} | changes)
    trainer = lightning.Trainer(
        accelerator="cpu", callbacks=[watching], logger=False, enable_checkpointing=False, default_root_dir=tmp_path
    )
    with pytest.raises(ValueError, match=words):
        trainer.fit(make())
    assert trainer.global_step == 0
