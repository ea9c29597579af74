"""The halves of a model give its own logits, whatever its family; padding on the right is not seen."""

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from transformers import (
    CohereConfig,
    CohereForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    GPTJConfig,
    GPTJForCausalLM,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    GraniteConfig,
    GraniteForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    OPTConfig,
    OPTForCausalLM,
)

from nonmember.models.forward import PlainLogits, split_forward

VOCAB = 96
_llama_like = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_gemma_like = {**_llama_like, "head_dim": 8, "sliding_window": 4}


def _gpt_neox() -> GPTNeoXForCausalLM:
    config = GPTNeoXConfig(
        vocab_size=VOCAB, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4
    )
    return GPTNeoXForCausalLM(config)


def _opt() -> OPTForCausalLM:
    config = OPTConfig(
        vocab_size=VOCAB,
        hidden_size=32,
        word_embed_proj_dim=16,
        ffn_dim=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=64,
        do_layer_norm_before=False,
    )
    return OPTForCausalLM(config)


FAMILIES = {
    "gpt_neox": _gpt_neox,
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(vocab_size=VOCAB, n_embd=32, n_layer=2, n_head=4)),
    "gptj": lambda: GPTJForCausalLM(GPTJConfig(vocab_size=VOCAB, n_embd=32, n_layer=2, n_head=4, rotary_dim=4)),
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**_llama_like)),
    "mistral": lambda: MistralForCausalLM(MistralConfig(**_llama_like, sliding_window=4)),
    "opt": _opt,
    "gemma2": lambda: Gemma2ForCausalLM(Gemma2Config(**_gemma_like, final_logit_softcapping=0.5)),
    "gemma3": lambda: Gemma3ForCausalLM(Gemma3TextConfig(**_gemma_like)),
    "granite": lambda: GraniteForCausalLM(GraniteConfig(**_llama_like, logits_scaling=3.0)),
    "cohere": lambda: CohereForCausalLM(CohereConfig(**_llama_like, logit_scale=0.25)),
}


def tiny_model(family: str) -> nn.Module:
    """A random model whose logits are far from 0, so that a forgotten scale or soft cap shows."""
    torch.manual_seed(0)
    model = FAMILIES[family]().eval()
    model.get_output_embeddings().weight.data.mul_(10)
    return model


def ids(*shape: int) -> torch.Tensor:
    return torch.randint(3, VOCAB, shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_halves_give_the_models_logits(family):
    model = tiny_model(family)
    split = split_forward(model)
    assert split.streaming, split.note
    assert split.head.vocab_size == VOCAB
    expected = model(ids(3, 17)).logits
    features = split.body(ids(3, 17))
    torch.testing.assert_close(split.head(features), expected, rtol=0, atol=1e-5)
    flat = features.flatten(0, 1)
    out = torch.empty(len(flat), VOCAB)
    written = split.head(flat, out=out)
    assert written.data_ptr() == out.data_ptr()
    torch.testing.assert_close(written, expected.flatten(0, 1), rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_padding_on_the_right_reaches_no_token(family):
    model = tiny_model(family)
    split = split_forward(model)
    texts = [ids(11), ids(16)[5:], ids(7)]
    padded = torch.zeros(3, 20, dtype=torch.long)
    for row, text in zip(padded, texts, strict=True):
        row[: len(text)] = text
    logits = split.head(split.body(padded))
    for row, text in zip(logits, texts, strict=True):
        torch.testing.assert_close(row[: len(text)], model(text[None]).logits[0], rtol=0, atol=1e-5)


def test_gradients_flow_through_both_halves():
    model = tiny_model("gemma2")
    split = split_forward(model)
    split.head(split.body(ids(2, 9))).square().mean().backward()
    through_halves = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    model(ids(2, 9)).logits.square().mean().backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(through_halves[name], parameter.grad, rtol=1e-4, atol=1e-6)


def test_training_flags_come_back_module_by_module():
    model = tiny_model("gpt2").train()
    model.transformer.h[0].eval()
    before = [module.training for module in model.modules()]
    split_forward(model)
    assert [module.training for module in model.modules()] == before
    assert any(before)
    assert not all(before)


@torch.no_grad()
def test_adapters_are_part_of_the_body_and_can_be_switched_off():
    base = tiny_model("gpt_neox")
    base_logits = base(ids(2, 9)).logits
    model = get_peft_model(base, LoraConfig(target_modules=["query_key_value"], init_lora_weights=False)).eval()
    split = split_forward(model)
    assert split.streaming
    logits = split.head(split.body(ids(2, 9)))
    torch.testing.assert_close(logits, model(ids(2, 9)).logits)
    assert not torch.allclose(logits, base_logits, atol=1e-3)
    with model.disable_adapter():
        torch.testing.assert_close(split.head(split.body(ids(2, 9))), base_logits)


@torch.no_grad()
def test_an_adapted_head_declines_to_write_in_place():
    config = LoraConfig(target_modules=["lm_head"], init_lora_weights=False)
    model = get_peft_model(tiny_model("llama"), config).eval()
    split = split_forward(model)
    features = split.body(ids(1, 9))[0]
    logits = split.head(features, out=torch.empty(9, VOCAB))
    torch.testing.assert_close(logits, model(ids(1, 9)).logits[0])


class _Shifted(GPTNeoXForCausalLM):
    """Does something after its head that no config speaks of."""

    def forward(self, *args, **kwargs):
        output = super().forward(*args, **kwargs)
        output.logits = output.logits + torch.arange(VOCAB)
        return output


class _Headless(GPTNeoXForCausalLM):
    def get_output_embeddings(self):
        return None


@pytest.mark.parametrize(
    ("cls", "why"), [(_Shifted, "do not give the model's own logits"), (_Headless, "could not be told apart")]
)
@torch.no_grad()
def test_a_model_that_cannot_be_split_is_used_whole(cls, why, caplog):
    torch.manual_seed(0)
    model = cls(_gpt_neox().config).eval()
    split = split_forward(model)
    assert not split.streaming
    assert why in split.note
    assert [record.getMessage() for record in caplog.records] == [split.note]
    assert split.head == PlainLogits(VOCAB)
    torch.testing.assert_close(split.head(split.body(ids(2, 9))), model(ids(2, 9)).logits)


@torch.no_grad()
def test_half_precision_is_kept():
    model = tiny_model("llama").to(torch.bfloat16)
    split = split_forward(model)
    assert split.streaming, split.note
    assert split.body(ids(1, 5)).dtype == torch.bfloat16
