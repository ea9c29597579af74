"""Models that cannot be sharded are refused in words, before anything is taken apart (the rest: test_two_processes)."""

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from nonmember.models.forward import PlainLogits, SplitForward, split_forward
from nonmember.training.sharding import shard


def gpt2(tied: bool) -> GPT2LMHeadModel:
    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=32, tie_word_embeddings=tied)).eval()


def test_one_matrix_for_input_and_output_is_refused():
    with pytest.raises(ValueError, match="input and output matrices are one"):
        shard(split_forward(gpt2(tied=True)), mesh=None)


def test_a_model_used_whole_is_refused():
    whole = SplitForward(gpt2(tied=False), PlainLogits(32), None, note="Its parts were not found.")
    with pytest.raises(ValueError, match=r"needs a model in body and head\. Its parts were not found"):
        shard(whole, mesh=None)
