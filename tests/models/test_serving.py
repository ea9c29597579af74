"""Served models: noise of the stated size that is the same when asked again, rounding, and who gets to see it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from transformers import (
    CohereConfig,
    CohereForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

import tiny
from nonmember.models import Noised, PerturbedOutputs, label_of
from nonmember.models.exposure import truth_about
from nonmember.models.forward import split_forward
from nonmember.models.weights import serve
from nonmember.observations import Diverged, TokenStatistics
from nonmember.training import Trained

IDS_BT = torch.randint(0, 60, (6, 30), generator=torch.Generator().manual_seed(3))
SMALL = {
    "vocab_size": 60,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
FAMILIES = {
    "gpt_neox": lambda: tiny.model(1),
    "gpt2, tied": lambda: GPT2LMHeadModel(GPT2Config(vocab_size=60, n_embd=16, n_layer=2, n_head=2)).eval(),
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SMALL)).eval(),
}
SCALING = {
    "gemma2": lambda: Gemma2ForCausalLM(Gemma2Config(**SMALL, head_dim=8, final_logit_softcapping=0.5)),
    "cohere": lambda: CohereForCausalLM(CohereConfig(**SMALL, logit_scale=0.25)),
}


def log_probs(model) -> torch.Tensor:
    """[B, T, V] before anybody normalises: the answers themselves."""
    with torch.no_grad():
        return model(input_ids=IDS_BT, use_cache=False).logits


def answers(family: str = "gpt_neox", **served) -> tuple[torch.Tensor, torch.Tensor]:
    """The model's own log-probabilities, and those that are served."""
    model = FAMILIES[family]()
    own = F.log_softmax(log_probs(model), dim=-1)
    serve(model, **{"noise": 0.0, "decimals": None, "seed": 1} | served)
    return own, log_probs(model)


@pytest.mark.parametrize("family", FAMILIES)
def test_noise_has_its_size_and_no_pattern(family):
    own, served = answers(family, noise=0.7)
    noise = (served - own).flatten(0, 1)  # [contexts, V]
    assert noise.std().item() == pytest.approx(0.7, rel=0.05)
    assert noise.mean().abs().item() < 0.05
    contexts, tokens = torch.corrcoef(noise), torch.corrcoef(noise.T)
    different = torch.unique(own.flatten(0, 1), dim=0, return_inverse=True)[1]
    apart = different[:, None] != different[None, :]
    assert contexts[apart].abs().mean() < 0.2, "between contexts"
    off_diagonal = ~torch.eye(len(tokens), dtype=torch.bool)
    assert tokens[off_diagonal].abs().mean() < 0.15, "between tokens"


def test_asking_again_and_in_another_company_gives_the_same_answer():
    model = tiny.model(1)
    serve(model, noise=1.0, decimals=None, seed=1)
    with torch.no_grad():
        item = model(input_ids=IDS_BT[:1, :20], use_cache=False).logits
    torch.testing.assert_close(log_probs(model)[:1, :20], item, rtol=0, atol=1e-2)
    assert torch.equal(answers(noise=1.0)[1], answers(noise=1.0)[1])
    assert not torch.allclose(answers(noise=1.0)[1], answers(noise=1.0, seed=2)[1], atol=0.1)


@pytest.mark.parametrize(("decimals", "step"), [(1, 0.1), (0, 1.0)])
def test_rounding_leaves_so_many_decimals(decimals, step):
    own, served = answers(decimals=decimals)
    assert (served - own).abs().max() <= step / 2 + 1e-5
    torch.testing.assert_close(served / step, torch.round(served / step), rtol=0, atol=1e-3)
    assert not torch.equal(served, own)


def test_noise_comes_before_rounding():
    own, served = answers(noise=1.0, decimals=0)
    assert torch.equal(served, torch.round(served))
    assert (served - own).std() > 0.9


@pytest.mark.parametrize("family", FAMILIES)
def test_a_served_model_is_still_split_in_two_halves(family):
    """So that observing and distilling go through the served head."""
    model = FAMILIES[family]()
    parameters = sum(item.numel() for item in model.parameters())
    serve(model, noise=0.5, decimals=2, seed=1)
    assert sum(item.numel() for item in model.parameters()) == parameters
    split = split_forward(model)
    assert split.streaming
    assert split.head.vocab_size == 60


@pytest.mark.parametrize("family", SCALING)
def test_logits_that_are_changed_afterwards_are_refused(family):
    with pytest.raises(ValueError, match="changes its logits after the output matrix"):
        serve(SCALING[family](), noise=1.0, decimals=None, seed=1)


# As a recipe -----------------------------------------------------------------------------------------------------

TARGET = Trained(tiny.scratch(1), tiny.pretraining(), tiny.GENERAL, seed=1, label="target")
REFERENCE = Trained(tiny.scratch(2), tiny.pretraining(), tiny.GENERAL, seed=2, label="reference")
NOISY = PerturbedOutputs(TARGET, noise=2.0, decimals=None, seed=1)
OBSERVED = {"view": "original", "max_tokens": 64}


def test_every_reader_gets_the_served_answers(tmp_path):
    """Observations, divergences and the distillation from it."""
    shop = tiny.builder(tmp_path)
    plain, noisy = (shop.get(TokenStatistics(model, tiny.SUSPECT, **OBSERVED)) for model in (TARGET, NOISY))
    assert np.corrcoef(plain.log_prob, noisy.log_prob)[0, 1] < 0.9
    assert np.std(noisy.log_prob - plain.log_prob) > 1
    apart = shop.get(Diverged(TARGET, tiny.SUSPECT, "target", NOISY, max_tokens=64)).values
    assert apart.mean() > 0.5
    assert shop.get(Diverged(TARGET, tiny.SUSPECT, "target", TARGET, max_tokens=64)).values == pytest.approx(
        0, abs=1e-5
    )
    told = [
        shop.entry(Trained(REFERENCE, tiny.distillation(), tiny.SUSPECT, seed=3, teacher=teacher)).facts["kl_before"]
        for teacher in (TARGET, NOISY)
    ]
    assert told[1] > told[0] + 0.5
    again = tiny.builder(tmp_path / "other", max_batch_tokens=64, micro_batch_size=2, logits_budget_mib=1)
    # Only roundings of hidden states, which noise makes a hundred times larger, may differ.
    table = again.get(TokenStatistics(NOISY, tiny.SUSPECT, **OBSERVED))
    np.testing.assert_allclose(table.log_prob, noisy.log_prob, rtol=0, atol=0.02)


def test_it_has_read_what_the_model_behind_it_has(tmp_path):
    shop = tiny.builder(tmp_path)
    assert truth_about(shop, NOISY, tiny.GENERAL) == "member"
    assert truth_about(shop, NOISY, tiny.SUSPECT) == "non_member"
    assert NOISY.num_parameters(shop) == TARGET.num_parameters(shop)


def test_everything_but_the_name_is_in_its_key(tmp_path):
    shop = tiny.builder(tmp_path)
    others = [
        NOISY,
        replace(NOISY, noise=1.0),
        replace(NOISY, decimals=1),
        replace(NOISY, seed=2),
        replace(NOISY, base=REFERENCE),
        TARGET,
        Noised(TARGET, 2.0, 1),
    ]
    assert len({repr(item.key(shop)) for item in others}) == len(others)
    assert len({repr(item.recipe()) for item in others}) == len(others)
    assert label_of(NOISY) == "target-served"


def test_what_can_only_be_asked_is_not_trained(tmp_path):
    shop = tiny.builder(tmp_path)
    with pytest.raises(ValueError, match="target-served can only be queried"):
        shop.entry(Trained(NOISY, tiny.pretraining(), tiny.GENERAL, seed=1))
    with pytest.raises(ValueError, match="target-served can only be queried"):
        shop.get(Noised(NOISY, 0.1, seed=1))


def test_serving_that_changes_nothing_or_makes_no_sense():
    with pytest.raises(ValueError, match="the model's own"):
        PerturbedOutputs(TARGET, noise=0.0, decimals=None, seed=1)
    with pytest.raises(ValueError, match="at least 0; got -1"):
        PerturbedOutputs(TARGET, noise=-1.0, decimals=None, seed=1)
