"""Filling blanks with a masked language model: a tiny BERT made here."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

import tiny
from nonmember.asking import Request
from nonmember.asking.masked import fill_blanks
from nonmember.models.specs import MaskedModel

pytestmark = tiny.ignore_warnings

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "##ed", "x", ".", "'", "s", "harriet", "edwin", "said", "the"]
CPU = torch.device("cpu")
MOST_TOKENS = 34  # of which the last two positions are left, as RoBERTa's are


def tokenizer_of(words: list[str]) -> PreTrainedTokenizerFast:
    vocabulary = {word: place for place, word in enumerate(words)}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    named = {"unk_token": "[UNK]", "mask_token": "[MASK]", "pad_token": "[PAD]"}
    return PreTrainedTokenizerFast(tokenizer_object=made, cls_token="[CLS]", sep_token="[SEP]", **named)


@pytest.fixture
def folder(tmp_path) -> Path:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(WORDS), hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=MOST_TOKENS,
    )  # fmt: skip
    model = BertForMaskedLM(config).eval()
    model.get_output_embeddings().weight.data.mul_(20)
    model.save_pretrained(tmp_path / "bert")
    tokenizer_of(WORDS).save_pretrained(tmp_path / "bert")
    return tmp_path / "bert"


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
    with pytest.raises(ValueError, match="has no mask token, so it fills no blanks"):
        fill_blanks(MaskedModel(str(tmp_path / "other")), [request("[MASK]")], CPU)
    (folder / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="No masked language model could be loaded from"):
        fill_blanks(MaskedModel(str(folder)), [request("[MASK]")], CPU)
