"""Filling blanks with a masked language model: a tiny BERT made here."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import BertForMaskedLM

from nonmember.endpoints import Request
from nonmember.endpoints.local import fill_blanks
from nonmember.endpoints.models import MaskedModel
from tiny_bert import WORDS, save_bert, tokenizer_of

CPU = torch.device("cpu")
MOST_TOKENS = 34  # of which the last two positions are left, as RoBERTa's are


@pytest.fixture
def folder(tmp_path) -> Path:
    return save_bert(tmp_path / "bert", MOST_TOKENS)


def request(text: str, number: int = 0) -> Request:
    return Request(f"d{number}", "fill", text, max_new_tokens=1, temperature=0.0, seed=0, plain=text)


def test_the_word_is_the_likeliest_in_all_blanks(folder):
    """By the model's own logits, summed over the blanks; pieces, marks and single letters are no words."""
    texts = ["[MASK] said the [MASK]'s edwin.", "said [MASK].", "harriet harriet [MASK] the the"]
    found = fill_blanks(MaskedModel(str(folder)), [request(text, n) for n, text in enumerate(texts)], CPU)
    model, tokenizer = BertForMaskedLM.from_pretrained(folder).eval(), tokenizer_of(WORDS)
    candidates = ["harriet", "edwin", "said", "the"]
    for text, completion in zip(texts, found, strict=True):
        ids = torch.tensor([tokenizer(text)["input_ids"]])
        with torch.no_grad():
            log_probs = model(ids).logits[ids == tokenizer.mask_token_id].log_softmax(-1).sum(0)
        best = max(candidates, key=lambda word: float(log_probs[WORDS.index(word)]))
        assert (completion.text, completion.outcome) == (best, "answered")


def test_a_long_text_is_read_around_its_first_blank(folder):
    long = "edwin said " * 30 + "the [MASK] " + "harriet the " * 30
    (whole,) = fill_blanks(MaskedModel(str(folder)), [request(long)], CPU)
    room = MOST_TOKENS - 2 - 2
    tokens = long.split()
    start = tokens.index("[MASK]") - room // 2
    (window,) = fill_blanks(MaskedModel(str(folder)), [request(" ".join(tokens[start : start + room]))], CPU)
    assert whole == window


def test_what_is_no_masked_model_is_one_sentence(folder, tmp_path):
    plain = tokenizer_of(WORDS)
    plain.mask_token = None
    plain.save_pretrained(tmp_path / "other")
    with pytest.raises(ValueError, match="has no mask token or no fast tokenizer, so it fills no blanks"):
        fill_blanks(MaskedModel(str(tmp_path / "other")), [request("[MASK]")], CPU)
    (folder / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="No masked language model could be loaded from"):
        fill_blanks(MaskedModel(str(folder)), [request("[MASK]")], CPU)
