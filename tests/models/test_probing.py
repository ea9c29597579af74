"""What is taken for granted of a model is measured when it is loaded; a model without it is refused in a sentence."""

from __future__ import annotations

import json

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, T5Config, T5ForConditionalGeneration

import tiny
from nonmember.models import Pretrained, probing
from nonmember.models.kinds.in_memory import InMemory, content_of
from nonmember.models.loading import LoadedModel, save, train_tokenizer
from nonmember.models.probing import probe
from nonmember.records import Corpus

SIZES = {
    "vocab_size": 300,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 512,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def make(model_type: str, **changes):
    """A random model with weights that are far from 0; None among the changes leaves a size out."""
    sizes = {name: value for name, value in (SIZES | changes).items() if value is not None}
    torch.manual_seed(0)
    made = AutoModelForCausalLM.from_config(AutoConfig.for_model(model_type, **sizes)).eval()
    for parameter in made.parameters():
        if parameter.dim() >= 2:
            nn.init.normal_(parameter, std=0.12)
    return made


CAUSAL = {
    "llama": {},
    "mistral": {"num_key_value_heads": 1, "sliding_window": 8},
    "opt": {"max_position_embeddings": 16, "ffn_dim": 48, "word_embed_proj_dim": 32},
    "bloom": {"n_head": 2},
    "mixtral": {"num_key_value_heads": 1, "num_local_experts": 4},
    "mamba": {"state_size": 4},
    "rwkv": {"attention_hidden_size": 32},
    "recurrent_gemma": {"lru_width": 32, "num_hidden_layers": 3, "attention_window_size": 16},
    "bert": {"is_decoder": True},
}


@pytest.mark.parametrize("family", CAUSAL)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_causal_models_pass_in_every_precision(family, dtype):
    outcome = probe(make(family, **CAUSAL[family]).to(dtype))
    assert outcome < 0.01


@pytest.mark.parametrize("vocab_size", [2, 3, 5])
def test_a_small_vocabulary_is_no_reason_to_refuse(vocab_size):
    probe(make("llama", vocab_size=vocab_size, bos_token_id=1, eos_token_id=1))


LOOKING_AHEAD = {
    "bert": {},
    "roberta": {},
    "electra": {"embedding_size": 32},
    "gemma3_text": {"num_key_value_heads": 1, "head_dim": 16, "use_bidirectional_attention": True},
    "xlnet": {"max_position_embeddings": None, "d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 48},
    "xlm": {"emb_dim": 32, "n_layers": 2, "n_heads": 2},
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("family", LOOKING_AHEAD)
def test_models_that_read_ahead_are_refused(family, dtype):
    model = make(family, **LOOKING_AHEAD[family]).to(dtype)
    with pytest.raises(
        ValueError, match=r"it is not causal.*moves the log-probabilities of earlier ones by [\d.e-]+ na"
    ):
        probe(model)


class Changed(nn.Module):
    """The first inner layer of a Llama, with something done to what it gives."""

    def __init__(self, inner, change):
        super().__init__()
        self.inner, self.change, self.kept = inner, change, None

    def forward(self, x_BTD):
        return self.change(self, self.inner(x_BTD))


def added_to_what_was_before(module, y_BTD):
    before, module.kept = module.kept, y_BTD.mean((0, 1))
    return y_BTD if before is None else y_BTD + before


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda _, y_BTD: nn.functional.dropout(y_BTD, 0.1), "not causal"),
        (added_to_what_was_before, "not causal"),
        (lambda _, y_BTD: y_BTD * (1.5 if len(y_BTD) > 1 else 1.0), "read beside or before it"),
        (lambda _, y_BTD: (y_BTD - y_BTD.mean((0, 1))) / y_BTD.std((0, 1)), "not causal"),
        (lambda _, y_BTD: y_BTD + nn.functional.pad(y_BTD[:, 1:], (0, 0, 0, 1)), "not causal"),
    ],
)
def test_whatever_else_moves_a_texts_score_is_found(change, why):
    model = make("llama")
    model.model.layers[0].mlp = Changed(model.model.layers[0].mlp, change)
    with pytest.raises(ValueError, match=why):
        probe(model)


def with_weights(change, **changes):
    model = make("llama", **changes)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(change(parameter))
    return model


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (lambda: with_weights(lambda weights: weights if weights.dim() == 1 else 0 * weights + 0.1), "do not depend"),
        (lambda: with_weights(lambda weights: weights * 1e4).half(), "float16, load it in bfloat16"),
    ],
)
def test_lost_weights_are_refused(model, why):
    with pytest.raises(ValueError, match=why):
        probe(model())


def test_an_encoder_with_a_decoder_is_refused():
    config = T5Config(vocab_size=300, d_model=32, d_kv=16, d_ff=48, num_layers=2, num_heads=2)
    with pytest.raises(ValueError, match="cannot read a text of 6 tokens"):
        probe(T5ForConditionalGeneration(config))


def test_a_model_is_left_as_it_was():
    """Its adapter's dropout is off while it is probed, and the caller's draws are not used up."""
    model = get_peft_model(make("llama"), LoraConfig(task_type="CAUSAL_LM", r=2, lora_dropout=0.5)).train()
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            nn.init.normal_(parameter)
    torch.manual_seed(1)
    probe(model)
    after = torch.rand(1)
    torch.manual_seed(1)
    assert model.training
    assert torch.equal(after, torch.rand(1))


# The outcome is kept ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(Corpus(tiny.GENERAL.documents), tiny.VOCAB_SIZE)


def test_the_outcome_is_kept_with_the_models_identity(tokenizer, tmp_path, monkeypatch):
    folder = tmp_path / "model"
    save(LoadedModel(make("llama"), tokenizer), folder)
    tiny.builder(tmp_path / "store").get(Pretrained(str(folder)))
    (sidecar,) = (tmp_path / "store" / "notes").glob("*/sidecar.json")
    facts = json.loads(sidecar.read_text())["facts"]["found"]
    assert 0 <= facts["difference"] < 0.01
    again = tiny.builder(tmp_path / "store")
    assert Pretrained(str(folder)).num_parameters(again) == sum(item.numel() for item in make("llama").parameters())
    assert not again.memory.pools.get("models")  # it was not loaded to be counted
    monkeypatch.setattr(probing, "probe", lambda model: pytest.fail("it was probed again"))
    tiny.builder(tmp_path / "store").get(Pretrained(str(folder)))
    with pytest.raises(pytest.fail.Exception):  # another model
        tiny.builder(tmp_path / "store").get(Pretrained(str(folder), dtype="bfloat16"))


@pytest.mark.slow
def test_every_model_is_probed_wherever_it_comes_from(tokenizer, tmp_path):
    model, folder, builder = make("bert"), tmp_path / "bert", tiny.builder(tmp_path / "store")
    in_memory = InMemory(content_of(model, tokenizer), label="mine")
    in_memory.provide(builder, model, tokenizer)
    save(LoadedModel(model, tokenizer), folder)
    trained = tiny.scratch(0)
    for spec in (Pretrained(str(folder)), in_memory):
        for load in (builder.get, lambda item: item.weights(builder)):
            with pytest.raises(ValueError, match="cannot be used: it is not causal"):
                load(spec)
    assert not list((tmp_path / "store" / "notes").glob("*/sidecar.json"))
    builder.get(trained)
    assert len(list((tmp_path / "store" / "notes").glob("*/sidecar.json"))) == 1
