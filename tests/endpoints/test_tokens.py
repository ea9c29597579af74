"""Counting tokens: words, or those of a tokenizer."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import tiny
from nonmember.endpoints.models import Endpoint
from nonmember.models import Pretrained, Scratch
from nonmember.models.encoding import token_spans
from nonmember.records.spans import first_tokens, words

TEXT = " moss  fern\nreed, Ünïcode \N{GRINNING FACE} pine "


def test_words_are_what_white_space_separates():
    assert [TEXT[start:end] for start, end in words(TEXT)] == TEXT.split()
    assert words("  ") == []


def test_a_text_is_cut_after_so_many_tokens():
    assert first_tokens("moss  fern reed", words, 2) == "moss  fern"
    assert first_tokens("moss fern ", words, 2) == "moss fern "
    assert first_tokens("moss", words, 2) == "moss"


@pytest.fixture
def shop(tmp_path):
    return tiny.builder(tmp_path / "store")


def test_spans_are_those_of_the_tokenizers_ids(shop):
    tokenizer = tiny.scratch(1).load_tokenizer(shop)
    places = token_spans(tokenizer)(TEXT)
    assert len(places) == len(tokenizer(TEXT)["input_ids"])
    assert places == sorted(places)
    assert places[-1][1] <= len(TEXT)


def test_a_models_tokenizer_needs_no_weights(shop, tmp_path, monkeypatch):
    spec = tiny.scratch(1)
    tokenizer = spec.load_tokenizer(shop)
    folder = tmp_path / "a tokenizer alone"
    tokenizer.save_pretrained(folder)

    def never(*_, **__):
        raise AssertionError("weights were read")

    for kind in (Scratch, Pretrained):
        monkeypatch.setattr(kind, "weights", never)
    assert Pretrained(str(folder)).load_tokenizer(shop).get_vocab() == tokenizer.get_vocab()
    with pytest.raises(ValueError, match="can only be queried: its tokenizer is not available"):
        Endpoint("http://localhost:1/v1", "m", "chat", "KEY").load_tokenizer(shop)


def test_a_tokenizer_that_does_not_say_where_its_tokens_lie():
    with pytest.raises(ValueError, match=r"one with a tokenizer\.json does"):
        token_spans(SimpleNamespace(is_fast=False))
