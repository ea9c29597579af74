"""Recipes become artifacts once, and only what changes an artifact changes its key."""

from __future__ import annotations

import functools
import weakref
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
import torch
from filelock import FileLock
from tokenizers import AddedToken

import tiny
from nonmember.artifacts import Builder
from nonmember.artifacts.store import key_hash
from nonmember.models import Pretrained, label_of
from nonmember.models.base import LOADED_MODELS
from nonmember.models.encoding import encode
from nonmember.models.exposure import truth_about
from nonmember.models.loading import LoadedModel, save, train_tokenizer
from nonmember.observations import TokenStatistics
from nonmember.observations.tokens import token_counts_in
from nonmember.records import Corpus, Document
from nonmember.tracking.trackers import NoTracker
from nonmember.training import Trained
from nonmember.training import run as training_run

TARGET = Trained(tiny.scratch(1), tiny.pretraining(), tiny.GENERAL, seed=1, label="target")
REFERENCE = Trained(tiny.scratch(2), tiny.pretraining(), tiny.GENERAL, seed=2, label="reference")
DISTILLED = Trained(REFERENCE, tiny.distillation(), tiny.SUSPECT, seed=3, teacher=TARGET, label="distilled")
GENERAL_TEXTS = [document.text for document in tiny.GENERAL.documents]
SUSPECT_TEXTS = [document.text for document in tiny.SUSPECT.documents]


# Keys -------------------------------------------------------------------------------------------------------


def with_optimization(**changes) -> Trained:
    training = DISTILLED.training
    return replace(DISTILLED, training=replace(training, optimization=replace(training.optimization, **changes)))


def with_architecture(**changes) -> Trained:
    return replace(DISTILLED, base=replace(REFERENCE, base=tiny.scratch(2, **changes)))


ANOTHER_TEXT = replace(
    tiny.SUSPECT, documents=(replace(tiny.SUSPECT.documents[0], text="another"), *tiny.SUSPECT.documents[1:])
)
ANOTHER_ORDER = replace(tiny.SUSPECT, documents=tiny.SUSPECT.documents[::-1])
MOVES = {
    "a text": replace(DISTILLED, corpus=ANOTHER_TEXT),
    "order of the documents": replace(DISTILLED, corpus=ANOTHER_ORDER),
    "seed": replace(DISTILLED, seed=4),
    "teacher": replace(DISTILLED, teacher=REFERENCE),
    "teacher's seed": replace(DISTILLED, teacher=replace(TARGET, seed=4)),
    "base's seed": replace(DISTILLED, base=replace(REFERENCE, seed=4)),
    "base's recipe": replace(DISTILLED, base=replace(REFERENCE, training=tiny.pretraining(epochs=2))),
    "base's corpus": replace(DISTILLED, base=replace(REFERENCE, corpus=tiny.SUSPECT)),
    "first weights": replace(DISTILLED, base=replace(REFERENCE, base=tiny.scratch(5))),
    "architecture": with_architecture(hidden_size=32),
    "tokenizer's corpus": replace(DISTILLED, base=replace(REFERENCE, base=tiny.scratch(2, tiny.SUSPECT))),
    "lambda": replace(DISTILLED, training=tiny.distillation(lambda_=0.6)),
    "tau": replace(DISTILLED, training=tiny.distillation(tau=1.0)),
    "max_tokens": replace(DISTILLED, training=tiny.distillation(max_tokens=32)),
    "learning_rate": with_optimization(learning_rate=2e-2),
    "batch_size": with_optimization(batch_size=4),
    "epochs": with_optimization(epochs=2),
    "warmup": with_optimization(warmup=0.2),
    "schedule": with_optimization(schedule="cosine"),
    "final_fraction": with_optimization(final_fraction=0.1),
    "betas": with_optimization(betas=(0.9, 0.95)),
    "epsilon": with_optimization(epsilon=1e-6),
    "weight_decay": with_optimization(weight_decay=0.1),
    "gradient_clip": with_optimization(gradient_clip=None),
}


def key(spec, folder, **compute) -> str:
    return key_hash(spec.key(tiny.builder(folder, **compute)))


@pytest.mark.parametrize("what", MOVES)
def test_what_changes_the_weights_changes_the_key(tmp_path, what):
    assert key(MOVES[what], tmp_path) != key(DISTILLED, tmp_path)


def test_what_does_not_change_the_weights_does_not_change_the_key(tmp_path):
    same = [
        replace(DISTILLED, label="another name"),
        replace(DISTILLED, base=replace(REFERENCE, label=""), teacher=replace(TARGET, label="")),
        with_architecture(**dict(reversed(tiny.ARCHITECTURE.items()))),
        with_optimization(betas=list(DISTILLED.training.optimization.betas)),
    ]
    assert {key(spec, tmp_path) for spec in same} == {key(DISTILLED, tmp_path)}
    small = {"micro_batch_size": 1, "max_batch_tokens": 64, "logits_budget_mib": 1, "block_mib": 1}
    divided = key(DISTILLED, tmp_path, **small, checkpoint_seconds=0.0, gradient_checkpointing=True)
    assert divided == key(DISTILLED, tmp_path) != key(DISTILLED, tmp_path, precision="bf16-mixed")


# Corpora ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slow(tiny.Texts):
    """Kept in the store; counts how often it is made."""

    stored: ClassVar[bool] = True
    built: ClassVar[Counter[str]] = Counter()

    def build(self, resolve):
        Slow.built["times"] += 1
        return replace(Corpus(self.documents), dropped={"too short": 2})


def test_a_corpus_that_takes_long_is_made_once(tmp_path):
    Slow.built.clear()
    spec = Slow((Document("a", "moss", "c", "d"), Document("b", "fern")))
    for _ in range(2):
        shop = tiny.builder(tmp_path)
        for _ in range(2):
            corpus = shop.get(spec)
        assert corpus.documents == spec.documents
        assert corpus.dropped == {"too short": 2}
        assert spec.fingerprint(shop) == corpus.fingerprint
    assert Slow.built["times"] == 1


@pytest.mark.parametrize("devices", [1, 2])
def test_what_another_process_makes_comes_last(devices, tmp_path, monkeypatch):
    """In the order given with nothing made elsewhere, and where two processes train together, which would wait for one
    another at different models."""
    made = []
    monkeypatch.setattr(Slow, "build", lambda self, _: made.append(self.documents[0].doc_id) or Corpus(self.documents))
    first, second = (Slow((Document(name, "moss"),)) for name in ("first", "second"))
    shop = tiny.builder(tmp_path)
    together = functools.partial(shop.compute.make_trainer, devices=devices)
    shop.compute = replace(shop.compute, make_trainer=together)
    lock = shop.store._lock(first.kind, key_hash(first.lookup_key(shop)))
    lock.parent.mkdir(parents=True)
    held = FileLock(lock)
    held.acquire()
    monkeypatch.setattr(shop, "ensure", lambda spec: (held.release(), Builder.ensure(shop, spec)))
    shop.ensure_all([first, second])
    assert made == (["second", "first"] if devices == 1 else ["first", "second"])
    other = tiny.builder(tmp_path / "other")
    other.ensure_all([first, second])
    assert made[2:] == ["first", "second"]


# Models -----------------------------------------------------------------------------------------------------


class Roles(NoTracker):
    """Remembers the roles under which curves were offered."""

    def __init__(self):
        self.roles: list[str] = []

    @contextmanager
    def training(self, role):
        self.roles.append(role)
        with super().training(role) as loggers:
            yield loggers


def entry_as(shop, spec, role):
    shop.set_role(spec, role)
    return shop.entry(spec)


@pytest.mark.slow
def test_parents_first_and_everything_once(tmp_path):
    shop = tiny.builder(tmp_path)
    shop.tracker = Roles()
    made = entry_as(shop, DISTILLED, "distilled")
    assert shop.entry(replace(DISTILLED, label="x")).path == made.path
    assert (shop.counters.models_trained, shop.counters.models_found) == (3, 0)
    assert shop.tracker.roles == [label_of(DISTILLED.base), label_of(DISTILLED.teacher), "distilled"]
    assert made.facts["num_sequences"] == 34
    assert made.facts["num_steps"] == 5
    assert made.facts["ce_after"] < made.facts["ce_before"]
    assert made.facts["num_dropped_documents"] == 0
    assert sorted(path.name for path in made.path.iterdir()) == sorted(
        [
            "sidecar.json",
            "config.json",
            "curves.csv",
            "generation_config.json",
            "model.safetensors",
            "tokenizer.json",
            "tokenizer_config.json",
        ]
    )

    again = tiny.builder(tmp_path, micro_batch_size=3)
    loaded = again.get(DISTILLED)
    assert (again.counters.models_trained, again.entry(DISTILLED).path) == (0, made.path)
    assert loaded.num_parameters == made.facts["num_parameters"] == DISTILLED.num_parameters(again)
    assert tiny.scratch(1).num_parameters(again) == loaded.num_parameters
    assert not loaded.model.training

    pretrained = Pretrained(str(made.path))
    tiny.assert_equal_weights(tiny.weights(again.get(pretrained).model), tiny.weights(loaded.model))


def test_a_training_that_fails_leaves_no_model(tmp_path, monkeypatch):
    def fails(model, documents, recipe, run, **_):
        (run.folder / "model.safetensors").write_text("half a model")
        raise RuntimeError("no luck")

    shop = tiny.builder(tmp_path)
    monkeypatch.setattr(training_run, "train", fails)
    with pytest.raises(RuntimeError, match="no luck"):
        shop.entry(TARGET)
    monkeypatch.undo()
    assert shop.counters.models_trained == 0
    assert shop.entry(TARGET).made_now
    assert tiny.builder(tmp_path).get(TARGET).num_parameters > 0


@pytest.mark.slow
def test_an_interrupted_training_goes_on(tmp_path, caplog):
    shop = tiny.builder(tmp_path, checkpoint_seconds=0.0, micro_batch_size=3)
    make_trainer = shop.compute.make_trainer

    class Stop(tiny.lightning.Callback):
        def on_train_batch_end(self, trainer, *_):
            if trainer.global_step == 2:
                raise RuntimeError("interrupted")

    def stopping(**arguments):
        return make_trainer(**arguments | {"callbacks": [*arguments["callbacks"], Stop()]})

    shop.compute = replace(shop.compute, make_trainer=stopping)
    with pytest.raises(RuntimeError, match="interrupted"):
        shop.entry(TARGET)
    assert {path.name[:10] for path in (tmp_path / "models").glob(".partial-*/.resume*")} == {".resume-3-"}
    again = tiny.builder(tmp_path, micro_batch_size=3)
    with caplog.at_level("INFO", logger="nonmember"):
        entry = again.entry(TARGET)
    assert "training target: continuing from the point" in caplog.text
    assert not list(entry.path.glob(".*"))
    whole = tiny.builder(tmp_path / "another", micro_batch_size=3)
    tiny.assert_equal_weights(tiny.weights(again.get(TARGET).model), tiny.weights(whole.get(TARGET).model))


def test_few_models_are_kept_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("nonmember.runtime.compute.MUCH_KIB", 0)
    shop = tiny.builder(tmp_path)
    first = shop.get(tiny.scratch(0))
    for seed in range(1, 4):
        shop.get(tiny.scratch(0))
        shop.get(tiny.scratch(seed))
    assert len(shop.memory.pools["models"]) == LOADED_MODELS
    read = weakref.ref(shop.get(tiny.scratch(3)).model)
    shop.get(TokenStatistics(tiny.scratch(3), tiny.SUSPECT, "original", 64))
    shop.make_room("models", tiny.scratch(0))
    assert [*shop.memory.pools["models"].values()] == [first]  # the one used last stayed, and was asked for
    assert read() is None  # nor has the trainer that read kept it


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(Corpus(tiny.GENERAL.documents), tiny.VOCAB_SIZE)


def pretrained(folder, tokenizer, seed: int = 1, **spec) -> Pretrained:
    save(LoadedModel(tiny.model(seed, len(tokenizer)), tokenizer), folder)
    return Pretrained(str(folder), **spec)


@pytest.mark.slow
def test_training_keeps_float32_weights_of_a_bfloat16_base(tmp_path, tokenizer):
    base = pretrained(tmp_path / "base", tokenizer, dtype="bfloat16")
    small = tiny.pretraining(learning_rate=1e-6)  # too small a step for eight bits of mantissa
    shop = tiny.builder(tmp_path / "store")
    before, after = shop.get(base).model, shop.get(Trained(base, small, tiny.GENERAL, seed=1)).model
    assert after.dtype == torch.float32
    moved = [
        not torch.equal(item.float(), other)
        for item, other in zip(before.parameters(), after.parameters(), strict=True)
    ]
    assert all(moved)
    assert before.dtype == torch.bfloat16  # the one that others use is not the one that was trained


def test_distillation_between_unlike_tokenizers_is_refused(tmp_path, tokenizer):
    vocabulary = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)
    permuted = train_tokenizer(Corpus((Document("a", " ".join(vocabulary)),)), tiny.VOCAB_SIZE)
    assert permuted.get_vocab() != tokenizer.get_vocab()
    reference = pretrained(tmp_path / "reference", tokenizer)
    target = pretrained(tmp_path / "target", permuted, seed=2)
    spec = Trained(reference, tiny.distillation(), tiny.SUSPECT, seed=1, teacher=target)
    with pytest.raises(ValueError, match=r"Only \d.*% of the documents' tokens are the same .*reference and target"):
        tiny.builder(tmp_path / "store").entry(spec)


@pytest.mark.slow
@pytest.mark.parametrize(("others", "passes"), [(150, True), (50, False)])
def test_documents_the_tokenizers_read_differently_are_left_out_and_counted(tmp_path, tokenizer, others, passes):
    larger = train_tokenizer(Corpus(tiny.GENERAL.documents), tiny.VOCAB_SIZE)
    larger.add_tokens([AddedToken("zebra", normalized=False)])
    reference = pretrained(tmp_path / "reference", tokenizer)
    target = pretrained(tmp_path / "target", larger, seed=2)
    suspect = tiny.texts(*tiny.random_texts(others, seed=5), "moss zebra fern")
    spec = Trained(reference, tiny.distillation(), suspect, seed=1, teacher=target)
    shop = tiny.builder(tmp_path / "store")
    if not passes:
        with pytest.raises(ValueError, match="Choose a reference with the target's tokenizer"):
            shop.entry(spec)
        return
    facts = shop.entry(spec).facts
    assert (facts["num_sequences"], facts["num_dropped_documents"]) == (others, 1)


def test_a_tokenizer_without_an_end_cannot_be_trained_with(tmp_path, tokenizer):
    endless = train_tokenizer(Corpus(tiny.GENERAL.documents), tiny.VOCAB_SIZE)
    endless.eos_token = None
    base = pretrained(tmp_path / "base", endless)
    with pytest.raises(ValueError, match="has no end-of-text token"):
        tiny.builder(tmp_path / "store").entry(Trained(base, tiny.pretraining(), tiny.GENERAL, seed=1))


# Truth ------------------------------------------------------------------------------------------------------

ON_SUSPECT = replace(TARGET, base=TARGET, corpus=tiny.texts(*GENERAL_TEXTS, *SUSPECT_TEXTS))
ON_HALF = replace(TARGET, base=TARGET, corpus=tiny.texts(*SUSPECT_TEXTS[:17]))
LONGER = SUSPECT_TEXTS[0].replace(" ", "\n") + " and on"
ON_OTHER_HALF = replace(ON_HALF, base=ON_HALF, corpus=tiny.texts(*SUSPECT_TEXTS[17:]))
UNKNOWN = Pretrained("a/name")
TRUTHS = {
    "never read": (TARGET, "non_member"),
    "nothing read": (tiny.scratch(1), "non_member"),
    "read": (ON_SUSPECT, "member"),
    "read early": (replace(TARGET, base=ON_SUSPECT), "member"),
    "read a part": (ON_HALF, None),
    "read in two parts": (ON_OTHER_HALF, "member"),
    "read in documents that were cut": (replace(TARGET, corpus=tiny.texts(LONGER)), None),
    "unknown": (UNKNOWN, None),
    "unknown, then other texts": (replace(TARGET, base=UNKNOWN), None),
    "unknown, then a part": (replace(ON_HALF, base=UNKNOWN), None),
    "unknown, then read": (replace(ON_SUSPECT, base=UNKNOWN), "member"),
}


@pytest.mark.parametrize("what", TRUTHS)
def test_truth_is_what_the_recipes_say(tmp_path, what):
    spec, expected = TRUTHS[what]
    assert truth_about(tiny.builder(tmp_path), spec, tiny.SUSPECT) == expected


# Observations -----------------------------------------------------------------------------------------------


def test_observed_once_a_view_and_a_length(tmp_path):
    target = tiny.scratch(1)
    shop = tiny.builder(tmp_path)
    asked = {"view": "original", "max_tokens": 64}
    first = shop.get(TokenStatistics(target, tiny.SUSPECT, **asked))
    num_tokens = shop.counters.tokens_observed
    assert num_tokens == len(first.log_prob) > 0
    assert shop.get(TokenStatistics(target, tiny.SUSPECT, **asked)) is first
    for again in (tiny.builder(tmp_path), tiny.builder(tmp_path, max_batch_tokens=64, micro_batch_size=1)):
        table = again.get(TokenStatistics(target, tiny.SUSPECT, **asked))
        assert np.array_equal(table.log_prob, first.log_prob)
        assert (again.counters.observations_found, again.counters.models_trained) == (1, 0)
    assert shop.counters.tokens_observed == num_tokens
    short = shop.get(TokenStatistics(target, tiny.SUSPECT, **asked | {"max_tokens": 5}))
    assert short.num_tokens.max() == 4
    upper = tiny.texts("MOSS Fern REED", *SUSPECT_TEXTS)
    original, lower = (
        shop.get(TokenStatistics(target, upper, view=view, max_tokens=64)) for view in ("original", "lowercase")
    )
    assert original.doc_ids == lower.doc_ids
    assert original.token_id[original.rows(0)].tolist() != lower.token_id[lower.rows(0)].tolist()
    assert original.token_id[original.rows(1)].tolist() == lower.token_id[lower.rows(1)].tolist()


def test_an_observation_that_fails_names_the_model(tmp_path, tokenizer):
    longest = tiny.ARCHITECTURE["max_position_embeddings"]
    shop = tiny.builder(tmp_path / "store")
    spec = pretrained(tmp_path / "a-model", tokenizer)
    with pytest.raises(ValueError, match=f"(?s)a-model cannot be observed.*at most {longest}"):
        shop.get(TokenStatistics(spec, tiny.texts("moss " * 200), view="original", max_tokens=1000))
    assert shop.get(
        TokenStatistics(spec, tiny.texts("moss " * 200), view="original", max_tokens=longest)
    ).num_tokens == [longest - 1]


def test_counts_of_tokens_are_of_the_models_own_ids(tmp_path):
    shop = tiny.builder(tmp_path)
    loaded = shop.get(tiny.scratch(1))
    counts = token_counts_in(shop, tiny.scratch(1), tiny.GENERAL)
    expected = Counter(token for ids in encode(loaded.tokenizer, GENERAL_TEXTS, None) for token in ids)
    assert len(counts) == tiny.VOCAB_SIZE
    assert {index: count for index, count in enumerate(counts.tolist()) if count} == expected
    loaded.model.config = SimpleNamespace(get_text_config=lambda text=loaded.model.config: text)  # which reads pictures
    assert (token_counts_in(shop, tiny.scratch(1), tiny.GENERAL) == counts).all()
