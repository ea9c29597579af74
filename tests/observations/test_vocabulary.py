"""Streamed statistics equal those of the full table, in blocks of any size."""

import math

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from nonmember.models.forward import PlainLogits, split_forward
from nonmember.observations.passes.vocabulary import Workspace, token_statistics

VOCAB = 320  # rows; the imagined tokenizer has 300 tokens
SIZES = {"vocab_size": VOCAB, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
MODELS = {  # and how wide they are besides
    "gpt_neox": {"intermediate_size": 48},
    "gpt2": {},
    "llama": {"intermediate_size": 48, "num_key_value_heads": 2},
    "opt": {"ffn_dim": 48, "word_embed_proj_dim": 16},
    "gemma2": {
        "intermediate_size": 48,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "sliding_window": 4,
        "final_logit_softcapping": 5.0,
    },
}


def model_of(name):
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(AutoConfig.for_model(name, **SIZES | MODELS[name])).eval()


def full_table(logits_NV, target_ids_N):
    """The plain computation, with everything in memory and in float64: (log p, mean, std)."""
    log_p = torch.log_softmax(logits_NV.double(), -1)
    p = log_p.exp()
    mean = torch.where(p > 0, p * log_p, 0).sum(-1)
    variance = torch.where(p > 0, p * (log_p - mean[:, None]) ** 2, 0).sum(-1)
    target = torch.arange(len(target_ids_N)), target_ids_N
    return log_p[target], mean, variance.sqrt()


def assert_equal(statistics, expected, atol=1e-5):
    log_prob, mean, std = expected
    torch.testing.assert_close(statistics.log_prob.double(), log_prob, rtol=0, atol=atol)
    torch.testing.assert_close(statistics.mean.double(), mean, rtol=0, atol=atol)
    torch.testing.assert_close(statistics.std.double(), std, rtol=0, atol=atol)
    assert statistics.mean.dtype == torch.float32


def logits_and_targets(num_tokens=37, vocab_size=VOCAB, scale=3.0):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(num_tokens, vocab_size, generator=generator) * scale
    return logits, torch.randint(vocab_size, (num_tokens,), generator=generator)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("block_bytes", [1, 5 * VOCAB * 4, 2**26])
@torch.no_grad()
def test_equals_the_full_table(name, block_bytes):
    model = model_of(name)
    model.get_output_embeddings().weight.data.mul_(20)
    split = split_forward(model)
    assert split.streaming
    ids = torch.randint(300, (1, 24))
    statistics = token_statistics(split.body(ids)[0, :-1], split.head, ids[0, 1:], block_bytes=block_bytes)
    assert_equal(statistics, full_table(model(ids).logits[0, :-1], ids[0, 1:]))


@torch.no_grad()
def test_works_on_a_block_in_parts_that_fit_the_cache(monkeypatch):
    _, targets = logits_and_targets()
    monkeypatch.setattr("nonmember.observations.passes.vocabulary._CACHE_BYTES", 3 * VOCAB * 4)
    model = model_of("gpt2")
    model.lm_head = torch.nn.Linear(32, VOCAB)  # a head with a bias
    split = split_forward(model)
    features = torch.randn(37, 32) * 3
    statistics = token_statistics(features, split.head, targets, block_bytes=10 * VOCAB * 4)
    assert_equal(statistics, full_table(model.lm_head(features), targets))


def test_leaves_the_logits_of_an_unsplit_model_alone():
    logits, targets = logits_and_targets()
    before = logits.clone()
    statistics = token_statistics(logits, PlainLogits(VOCAB), targets)
    assert torch.equal(logits, before)
    assert_equal(statistics, full_table(logits, targets))


@pytest.mark.parametrize("block_bytes", [37 * 10 * 4, 2**26])
def test_masked_vocabulary(block_bytes):
    logits, targets = logits_and_targets()
    logits[:, 300:] = -torch.inf
    targets = targets % 300
    logits[3, targets[3]] = -torch.inf
    logits[4] = -torch.inf
    logits[4, targets[4]] = 0.0
    statistics = token_statistics(logits, PlainLogits(VOCAB), targets, block_bytes=block_bytes)
    log_prob, mean, std = full_table(logits, targets)
    assert log_prob[3] == -torch.inf
    assert_equal(statistics, (log_prob.clamp(min=-100), mean, std))
    assert statistics.num_floored == 1
    assert (statistics.log_prob[4], statistics.mean[4], statistics.std[4]) == (0, 0, 0)


def test_masks_by_the_lowest_number_count_as_no_probability():
    logits, targets = logits_and_targets()
    masked, lowest = logits.clone(), logits.clone()
    masked[:, 300:], lowest[:, 300:] = -torch.inf, torch.finfo(torch.float32).min
    by_infinity = token_statistics(masked, PlainLogits(VOCAB), targets % 300)
    by_number = token_statistics(lowest, PlainLogits(VOCAB), targets % 300)
    assert torch.equal(by_infinity.mean, by_number.mean)
    assert torch.equal(by_infinity.std, by_number.std)


def test_one_hot_and_uniform_have_no_spread():
    logits = torch.zeros(2, 50_304)
    logits[0, 7] = 1e4
    statistics = token_statistics(logits, PlainLogits(50_304), torch.tensor([7, 7]))
    assert statistics.std[0] == 0
    assert statistics.std[1] < 1e-6
    assert statistics.mean[1].item() == pytest.approx(-math.log(50_304), abs=1e-6)
    assert statistics.log_prob[0] == 0


def test_large_logits_keep_their_digits():
    logits, targets = logits_and_targets(vocab_size=50_304)
    statistics = token_statistics(logits + 1000, PlainLogits(50_304), targets)
    assert_equal(statistics, full_table((logits + 1000), targets))


def test_half_precision_logits_are_read_in_float32():
    logits, targets = logits_and_targets()
    logits = logits.bfloat16()
    assert_equal(token_statistics(logits, PlainLogits(VOCAB), targets), full_table(logits, targets))


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, None])
def test_logits_that_are_no_distribution_are_refused(bad):
    logits, targets = logits_and_targets()
    logits[5, 9 if bad else slice(None)] = bad or -torch.inf
    with pytest.raises(ValueError, match=r"for 1 of 37 tokens of a batch, first for number 5.*float16"):
        token_statistics(logits, PlainLogits(VOCAB), targets)


def test_no_tokens():
    statistics = token_statistics(torch.empty(0, VOCAB), PlainLogits(VOCAB), torch.empty(0, dtype=torch.long))
    assert statistics.log_prob.shape == (0,)
    assert statistics.num_floored == 0


def test_memory_does_not_grow_with_the_vocabulary(monkeypatch):
    monkeypatch.setattr("nonmember.observations.passes.vocabulary._CACHE_BYTES", 2**18)

    def kept_bytes(vocab_size):
        workspace = Workspace()
        logits, targets = logits_and_targets(100, vocab_size)
        head = PlainLogits(vocab_size)
        token_statistics(logits, head, targets, block_bytes=2**20, workspace=workspace)
        return sum(tensor.nbytes for tensor in workspace._kept.values())

    assert kept_bytes(5_000) == pytest.approx(kept_bytes(25_000), rel=0.15)
    assert kept_bytes(25_000) < 100 * 25_000 * 4 / 4


def test_a_workspace_serves_batches_of_any_size():
    workspace = Workspace()
    for num_tokens, vocab_size in ((5, 320), (50, 320), (7, 640)):
        logits, targets = logits_and_targets(num_tokens, vocab_size)
        statistics = token_statistics(logits, PlainLogits(vocab_size), targets, workspace=workspace)
        assert_equal(statistics, full_table(logits, targets))


def test_vector_tv1():
    """Min-K%++ on three tokens."""
    p = torch.tensor([[0.7, 0.2, 0.1], [0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [0.6, 0.3, 0.1]])
    statistics = token_statistics(p.log(), PlainLogits(3), torch.tensor([0, 1, 0, 2]))
    expected = {
        "log_prob": [-0.356675, -1.386294, -2.302585, -2.302585],
        "mean": [-0.801819, -1.039721, -0.639032, -0.897946],
        "std": [0.703126, 0.346574, 0.831777, 0.561528],
    }
    for name, values in expected.items():
        assert getattr(statistics, name).tolist() == pytest.approx(values, abs=1e-6)
