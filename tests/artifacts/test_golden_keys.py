"""Keys of what is stored stay what they were: a store that was filled before is found, and nothing is trained again.

golden_keys.json was written when FORMAT was raised last (version 0.2). An entry that moves is a store that is lost.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tiny
from nonmember.artifacts.store import key_hash
from nonmember.corpora import Cleaned, Component, Mixture, Part, Sharded
from nonmember.corpora.sources.paraphrases import Paraphrases
from nonmember.endpoints import Request
from nonmember.endpoints.asked import Completions
from nonmember.endpoints.models import Endpoint
from nonmember.endpoints.rephrased import Rephrasings, Written
from nonmember.observations import AnswerProbabilities, Diverged, Embedded, OrderLikelihoods, TokenStatistics
from nonmember.records import Prompt, Question
from nonmember.training import Trained
from nonmember.training.recipes import AdapterTuning, Lora

GOLDEN = json.loads((Path(__file__).parent / "golden_keys.json").read_text())

SCRATCH, SUSPECT = tiny.scratch(1), tiny.SUSPECT
TARGET = Trained(SCRATCH, tiny.pretraining(), tiny.GENERAL, seed=1, label="target")
REFERENCE = Trained(tiny.scratch(2), tiny.pretraining(), tiny.GENERAL, seed=2, label="reference")
ENDPOINT = Endpoint("http://localhost:1/v1/", "m", "chat", "KEY")
PROMPT = Prompt("Rephrase.")


def written(base, model, temperature: float = 0.5) -> Written:
    return Written(base, model, PROMPT, temperature, 8, 32, 3)


TEXTS = written(SUSPECT, TARGET)
REPHRASINGS = Rephrasings(SUSPECT, TEXTS, 0.5, 2.0)
CLEANED = Cleaned(SUSPECT, 2, 10, "cut", 0.7, 64)
MODELS = {
    "scratch": SCRATCH,
    "trained": TARGET,
    "distilled": Trained(REFERENCE, tiny.distillation(), SUSPECT, seed=3, teacher=TARGET, label="distilled"),
    "adapter": Trained(TARGET, AdapterTuning(tiny.optimization(), Lora(None, 4, 8.0, 0.0), 64, False), SUSPECT, seed=5),
    "endpoint": ENDPOINT,
}
CORPORA = {
    "texts": SUSPECT,
    "written": TEXTS,
    "rephrasings": REPHRASINGS,
    "paraphrases": Paraphrases(SUSPECT, TEXTS),
    "cleaned": CLEANED,
    "part": Part(CLEANED, take="a", sizes={"a": 5, "b": 5}, by="document", per="corpus", salt="s"),
    "mixture": Mixture((Component(tiny.GENERAL, 1), Component(SUSPECT, 3))),
    "by_endpoint": written(SUSPECT, ENDPOINT),
}
STORED = {
    "trained": Trained(SCRATCH, tiny.pretraining(), tiny.GENERAL, seed=1),
    "cleaned": CLEANED,
    "written": written(SUSPECT, SCRATCH),
    "tokens": TokenStatistics(SCRATCH, SUSPECT, "lowercase", 64),
    "answers": AnswerProbabilities(SCRATCH, SUSPECT, Question("Say.", ("a", "b")), 64),
    "embeddings": Embedded(SCRATCH, SUSPECT, "target", -1, 64, 3),
    "orders": OrderLikelihoods(SCRATCH, Sharded(SUSPECT, 4, 30), 3, 32, 16, 1),
    "completions": Completions(SCRATCH, (Request("d0", "n", "q", 4, 0.0, 1),)),
    "divergences": Diverged(SCRATCH, SUSPECT, "target", TARGET, 64),
    "tokenizer": SCRATCH.tokenizer,
}


@pytest.fixture
def builder(tmp_path):
    return tiny.builder(tmp_path)


@pytest.mark.parametrize("name", MODELS)
def test_models(name, builder):
    assert key_hash(MODELS[name].key(builder)) == GOLDEN["models"][name]
    assert key_hash(MODELS[name].recipe()) == GOLDEN["recipes"][name]


@pytest.mark.parametrize("name", CORPORA)
def test_corpora(name, builder):
    assert key_hash(CORPORA[name].identity()) == GOLDEN["recipes"][name]
    assert key_hash(CORPORA[name].key(builder)) == GOLDEN["corpora"][name]


@pytest.mark.parametrize("name", STORED)
def test_what_the_store_is_asked_for(name, builder):
    spec = STORED[name]
    found = {"kind": spec.kind, "name": spec.readable, "hash": key_hash(spec.lookup_key(builder))}
    assert found == GOLDEN["store"][name]
