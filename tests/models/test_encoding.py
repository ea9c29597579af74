"""A corpus is encoded once for all models that have one tokenizer."""

from __future__ import annotations

import copy
from collections import OrderedDict

import pytest

import tiny
from nonmember.models import encoding
from nonmember.models.encoding import encode_corpus
from nonmember.models.loading import LoadedModel, train_tokenizer
from nonmember.records import Corpus, Document

CORPUS = Corpus((Document("a", "one two"), Document("b", "three")))
SAME = Corpus(tuple(CORPUS.documents))


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(Corpus(tiny.GENERAL.documents), tiny.VOCAB_SIZE)


@pytest.fixture
def encoded(monkeypatch) -> list[int | None]:
    """What is encoded from now on, by where it is cut."""
    asked: list[int | None] = []
    encode = encoding.encode

    def counted(tokenizer, texts, max_tokens):
        asked.append(max_tokens)
        return encode(tokenizer, texts, max_tokens)

    monkeypatch.setattr(encoding, "encode", counted)
    monkeypatch.setattr(encoding, "_KEPT", OrderedDict())
    return asked


def test_models_with_one_tokenizer_share_what_it_made(tokenizer, encoded):
    first, second = LoadedModel(None, tokenizer), LoadedModel(None, copy.deepcopy(tokenizer))
    ids = encode_corpus(first, CORPUS, 4)
    ids.clear()  # the caller's own
    assert encode_corpus(second, SAME, 4) == tokenizer(["one two", "three"], truncation=True, max_length=4)["input_ids"]
    assert encoded == [4]


def test_another_cut_text_or_tokenizer_is_encoded_by_itself(tokenizer, encoded):
    other = copy.deepcopy(tokenizer)
    encode_corpus(LoadedModel(None, other), CORPUS, 4)
    other.add_special_tokens({"additional_special_tokens": ["two"]})  # the same object as before
    for model, corpus, most in [
        (tokenizer, CORPUS, 4),
        (tokenizer, CORPUS, None),
        (tokenizer, Corpus((Document("a", "one two"), Document("b", "four"))), 4),
        (other, CORPUS, 4),
    ]:
        texts = [document.text for document in corpus.documents]
        cut = {"truncation": True, "max_length": most} if most else {}
        assert encode_corpus(LoadedModel(None, model), corpus, most) == model(texts, **cut)["input_ids"]
    assert encoded == [4, None, 4, 4]


def test_no_more_is_kept_than_memory_is_meant_for_it(tokenizer, encoded, monkeypatch):
    monkeypatch.setattr(encoding, "MOST_KEPT", sum(map(len, tokenizer(["one two", "three"])["input_ids"])))
    model, longer = LoadedModel(None, tokenizer), Corpus((Document("a", "one two " * 9),))
    for corpus in (CORPUS, CORPUS, longer, longer, CORPUS):
        encode_corpus(model, corpus, None)
    assert len(encoded) == 4, "the longer one never, the other until the longer one came"
