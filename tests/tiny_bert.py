"""A masked language model small enough for tests: a BERT of random weights with a handful of words."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [*SPECIAL, "##ed", "x", ".", "'", "s", "harriet", "edwin", "said", "the"]


def tokenizer_of(words: list[str]) -> PreTrainedTokenizerFast:
    vocabulary = {word: index for index, word in enumerate(words)}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    named = {"unk_token": "[UNK]", "mask_token": "[MASK]", "pad_token": "[PAD]"}
    return PreTrainedTokenizerFast(tokenizer_object=made, cls_token="[CLS]", sep_token="[SEP]", **named)


def save_bert(folder: Path, most_tokens: int) -> Path:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=most_tokens,
    )
    model = BertForMaskedLM(config).eval()
    model.get_output_embeddings().weight.data.mul_(20)
    model.save_pretrained(folder)
    tokenizer_of(WORDS).save_pretrained(folder)
    return folder
