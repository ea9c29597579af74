"""The losses are the papers', and their gradients those of autograd, however many logits are made at a time."""

from __future__ import annotations

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from peft import LoraConfig, get_peft_model
from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers import AutoConfig, AutoModelForCausalLM

import tiny
from nonmember.models.forward import PlainLogits, SplitForward, split_forward
from nonmember.training import modules
from nonmember.training.losses import cross_entropy_terms, distillation_terms, weighted_sum
from nonmember.training.modules import DistilledReferenceModule
from nonmember.training.run import Teacher, TrainingRun, train

TEACHER, STUDENT, TRUE_ID = [2.0, 1.0, 0.0], [1.0, 1.0, 1.5], 0
ALL = (slice(3), slice(3))
LAMBDA, TAU = 0.7, 2.0
WEIGHTS = (1 - LAMBDA, LAMBDA * TAU**2)
PLENTY = 2**30


def terms_of(student, teacher, target=TRUE_ID, *, num=1, shared_ids=ALL) -> tuple[torch.Tensor, torch.Tensor]:
    """Loss and terms of one position, `num` times."""
    rows = torch.tensor([student] * num), torch.tensor([teacher] * num), torch.tensor([target] * num)
    terms = partial(distillation_terms, teacher_head=PlainLogits(len(teacher)), tau=TAU, shared_ids=shared_ids)
    return weighted_sum(terms, PlainLogits(len(student)), rows, WEIGHTS, budget_bytes=PLENTY)


@torch.no_grad()
def test_one_position_computed_by_hand():
    loss, (cross_entropy, divergence) = terms_of(STUDENT, TEACHER)
    assert float(cross_entropy) == pytest.approx(1.294377, abs=1e-6)
    assert float(divergence) == pytest.approx(0.122298, abs=1e-6)
    assert float(loss) == pytest.approx(0.730746, abs=1e-6)


@torch.no_grad()
def test_masked_entries_count_for_nothing():
    masked = [-torch.inf, -torch.inf]
    for more in ([-torch.inf, 0.0], [0.0, -torch.inf], masked):  # of the student; the teacher never says them
        _, (_, divergence) = terms_of([*STUDENT, *more], [*TEACHER, *masked], shared_ids=(slice(5), slice(5)))
        others = torch.tensor([*STUDENT, *more]).div(TAU).log_softmax(0)[:3]
        teacher = torch.tensor(TEACHER).div(TAU).log_softmax(0)
        assert float(divergence) == pytest.approx(float((teacher.exp() * (teacher - others)).sum()), abs=1e-6)


@torch.no_grad()
def test_positions_are_summed():
    torch.testing.assert_close(terms_of(STUDENT, TEACHER, num=2)[1], 2 * terms_of(STUDENT, TEACHER)[1])


@torch.no_grad()
def test_shared_ids_are_paired_and_the_rest_is_left_out():
    # The strings of student ids 4, 0, 2 are teacher ids 1, 3, 0; all other rows are large and unshared.
    student = torch.full((6,), 9.0)
    student[[4, 0, 2]] = torch.tensor(STUDENT)
    teacher = torch.full((5,), 9.0)
    teacher[[1, 3, 0]] = torch.tensor(TEACHER)
    shared = (torch.tensor([4, 0, 2]), torch.tensor([1, 3, 0]))
    _, (cross_entropy, divergence) = terms_of(student.tolist(), teacher.tolist(), target=4, shared_ids=shared)
    assert float(divergence) == pytest.approx(0.122298, abs=1e-6)
    expected = -torch.log_softmax(student, 0)[4]  # the student's own cross-entropy is over all its rows
    assert float(cross_entropy) == pytest.approx(float(expected), abs=1e-6)


@pytest.mark.parametrize(("num_student", "num_teacher"), [(7, 3), (3, 7), (5, 6)])
@torch.no_grad()
def test_rows_beyond_the_tokenizer_are_left_out(num_student, num_teacher):
    student, teacher = STUDENT + [9.0] * (num_student - 3), TEACHER + [9.0] * (num_teacher - 3)
    assert float(terms_of(student, teacher)[1][1]) == pytest.approx(0.122298, abs=1e-6)


# Gradients ----------------------------------------------------------------------------------------------------------


class SpyHead(nn.Linear):
    """Records of how many rows it was asked for logits."""

    def __init__(self, hidden: int, vocab_size: int, seed: int):
        torch.manual_seed(seed)
        super().__init__(hidden, vocab_size)
        self.rows: list[int] = []

    @property
    def vocab_size(self) -> int:
        return self.out_features

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        self.rows.append(len(features))
        return super().forward(features)

    def gathered(self, call, *rows):
        return call(self, *rows)


HIDDEN, ROWS, VOCAB = 5, 11, 13
BYTES_PER_ROW = 4 * VOCAB
UPSTREAM = torch.tensor(1 / 3) / torch.tensor(107) * 3  # of three micro-batches in a step of 107 tokens


def plain_terms(terms, head, features_ND, *others):
    """The terms of a loss as functions that autograd differentiates."""
    logits_NV = head(features_ND).float()
    values = [F.cross_entropy(logits_NV, others[-1], reduction="sum")]
    if len(others) == 2:
        teacher_head, tau, (ours, theirs) = (terms.keywords[name] for name in ("teacher_head", "tau", "shared_ids"))
        teacher_NV = teacher_head(others[0]).float().detach()
        both = (logits_NV[:, ours] / tau).log_softmax(-1), (teacher_NV[:, theirs] / tau).log_softmax(-1)
        values.append(F.kl_div(*both, log_target=True, reduction="sum"))
    return torch.stack(values)


def checkpointed(terms, head, rows, weights, *, budget_bytes, upstream=None):
    """The same by autograd alone, with chunks made again in the backward pass."""
    chunk_rows = max(1, budget_bytes // (4 * head.vocab_size))
    chunks = zip(*(tensor.split(chunk_rows) for tensor in rows), strict=True)
    by_chunk = [checkpoint(partial(plain_terms, terms, head), *chunk, use_reentrant=False) for chunk in chunks]
    sums_K = torch.stack(by_chunk).sum(0)
    return sum(weight * value for weight, value in zip(weights, sums_K, strict=True)), sums_K


def whole(terms, head, rows, weights, **_):
    """The same as programs have it: tables of all logits."""
    if len(rows) == 2:
        return weights[0] * F.cross_entropy(head(rows[0]), rows[1], reduction="sum"), None
    ours, theirs = terms.keywords["shared_ids"]
    student_NV, teacher_NV = head(rows[0]), terms.keywords["teacher_head"](rows[1]).detach()
    both = (student_NV[:, ours] / TAU).log_softmax(-1), (teacher_NV[:, theirs] / TAU).softmax(-1)
    divergence_NV = F.kl_div(*both, reduction="none")
    return weights[0] * F.cross_entropy(student_NV, rows[2], reduction="sum") + weights[1] * divergence_NV.sum(), None


SHARED = {
    "distillation": (slice(VOCAB), slice(VOCAB)),
    "few shared": (torch.tensor([4, 0, 9]), torch.tensor([1, 7, 2])),
}


def spied(how, kind: str, rows_at_a_time: int, upstream=UPSTREAM):
    """Value and gradients; of how many rows each head was asked for logits."""
    torch.manual_seed(3)
    student, teacher = torch.randn(ROWS, HIDDEN, requires_grad=True), torch.randn(ROWS, HIDDEN)
    targets = torch.randint(VOCAB, (ROWS,))
    head, teacher_head = SpyHead(HIDDEN, VOCAB, 0), SpyHead(HIDDEN, VOCAB, 1)
    terms, rows, weights = cross_entropy_terms, (student, targets), (-1.0,)
    if kind != "cross_entropy":
        terms = partial(distillation_terms, teacher_head=teacher_head, tau=TAU, shared_ids=SHARED[kind])
        rows, weights = (student, teacher, targets), WEIGHTS
    budget_bytes = BYTES_PER_ROW * rows_at_a_time + 7
    loss, _ = how(terms, head, rows, weights, budget_bytes=budget_bytes, upstream=upstream)
    (loss * 3 / 107 / 3).backward()
    assert teacher_head.weight.grad is None
    return (loss.detach(), student.grad, head.weight.grad, head.bias.grad), [head.rows, teacher_head.rows]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cross_entropy", "distillation", "few shared"])
@pytest.mark.parametrize("rows_at_a_time", [0, 1, 3, 4, 10, 11, 12])
def test_gradients_are_those_of_autograd_and_no_logits_are_made_twice(kind, rows_at_a_time):
    ours, (rows, teachers_rows) = spied(weighted_sum, kind, rows_at_a_time)
    assert max(rows) == min(max(1, rows_at_a_time), ROWS)
    assert sum(rows) == ROWS
    assert teachers_rows == ([] if kind == "cross_entropy" else rows)
    for item, other in zip(ours, spied(checkpointed, kind, rows_at_a_time)[0], strict=True):
        assert torch.equal(item, other)
    for item, other in zip(ours, spied(whole, kind, rows_at_a_time)[0], strict=True):
        torch.testing.assert_close(item, other, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("upstream", [None, UPSTREAM * 8, UPSTREAM / 3], ids=["unknown", "exactly", "to rounding"])
def test_a_loss_that_is_given_another_gradient_than_expected(upstream):
    ours, expected = spied(weighted_sum, "distillation", 3, upstream)[0], spied(checkpointed, "distillation", 3)[0]
    for item, other in zip(ours, expected, strict=True):
        torch.testing.assert_close(item, other, rtol=1e-6, atol=1e-9)


def test_a_loss_may_be_used_twice_and_gone_back_from_twice():
    features = torch.randn(ROWS, HIDDEN, requires_grad=True)
    head, targets = SpyHead(HIDDEN, VOCAB, 0), torch.arange(ROWS)
    gradients = []
    for how in (weighted_sum, checkpointed):
        loss, _ = how(cross_entropy_terms, head, (features, targets), (1.0,), budget_bytes=BYTES_PER_ROW)
        loss = loss**2 + features.sum() + 3 * loss
        gradients.append(torch.autograd.grad(loss, [features, head.weight, head.bias], retain_graph=True))
        if how is weighted_sum:
            gradients.append(torch.autograd.grad(loss, [features, head.weight, head.bias]))
    for first, again, expected in zip(*gradients, strict=True):
        assert torch.equal(first, again)
        torch.testing.assert_close(first, expected, rtol=1e-5, atol=1e-5)


def test_without_gradients_none_are_made(monkeypatch):
    monkeypatch.setattr(torch.autograd, "grad", None)
    head, rows = SpyHead(HIDDEN, VOCAB, 0), (torch.randn(ROWS, HIDDEN), torch.arange(ROWS))
    with torch.no_grad():
        loss, (cross_entropy,) = weighted_sum(cross_entropy_terms, head, rows, (-1.0,), budget_bytes=3 * BYTES_PER_ROW)
    assert head.rows == [3, 3, 3, 2]
    assert loss == -cross_entropy
    assert not loss.requires_grad


def test_nothing_to_score_is_zero_with_a_gradient():
    features, head = torch.zeros(0, HIDDEN, requires_grad=True), SpyHead(HIDDEN, VOCAB, 0)
    rows = features, torch.zeros(0, dtype=torch.long)
    value, _ = weighted_sum(cross_entropy_terms, head, rows, (1.0,), budget_bytes=1, upstream=UPSTREAM)
    value.backward()
    assert value.item() == 0
    assert not head.weight.grad.any()


# Kinds of models ----------------------------------------------------------------------------------------------------

SMALL = {
    "vocab_size": 31,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
}
SMALL |= {"intermediate_size": 16, "head_dim": 8, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 1}
ARCHITECTURES = {
    "one matrix for input and output": ("llama", SMALL | {"tie_word_embeddings": True}),
    "a bias": ("gptj", {"vocab_size": 31, "n_embd": 16, "n_layer": 1, "n_head": 2, "rotary_dim": 4}),
    "capped logits": ("gemma2", SMALL | {"final_logit_softcapping": 2.0}),
    "scaled logits": ("cohere", SMALL | {"logit_scale": 0.5}),
    "adapters, and one on the head": ("llama", SMALL | {"tie_word_embeddings": False}),
    "not split": ("llama", SMALL),
}


def split_model(kind: str) -> SplitForward:
    torch.manual_seed(0)
    name, settings = ARCHITECTURES[kind]
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(name, **settings))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    if kind.startswith("adapters"):
        model = get_peft_model(model, LoraConfig(target_modules=["q_proj", "lm_head"], init_lora_weights=False))
    if kind == "not split":
        return SplitForward(model, PlainLogits(31), None)
    split = split_forward(model)
    assert split.streaming
    return split


def gradients_of(how, split: SplitForward, **settings) -> dict[str, torch.Tensor]:
    ids_BT = torch.randint(31, (3, 9), generator=torch.Generator().manual_seed(1))
    rows = split.body(ids_BT)[:, :-1].flatten(0, 1), ids_BT[:, 1:].flatten()
    loss, _ = how(cross_entropy_terms, split.head, rows, (1.0,), budget_bytes=4 * 31 * 7, upstream=UPSTREAM)
    (loss * 3 / 107 / 3).backward()
    found = {name: item.grad for name, item in split.model.named_parameters() if item.grad is not None}
    split.model.zero_grad()
    return found


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_every_parameter_gets_the_gradient_of_autograd(kind):
    split = split_model(kind)
    ours, expected = gradients_of(weighted_sum, split), gradients_of(checkpointed, split)
    assert set(ours) == {name for name, item in split.model.named_parameters() if item.requires_grad}
    tiny.assert_equal_weights(ours, expected)
    if kind.startswith("adapters"):
        assert all("lora" in name for name in ours)


def test_mixed_precision_gives_float32_gradients_nearly_those_of_autograd():
    split = split_model("one matrix for input and output")
    with torch.autocast("cpu", torch.bfloat16):
        mixed, expected = gradients_of(weighted_sum, split), gradients_of(checkpointed, split)
    full = gradients_of(weighted_sum, split)
    for name, gradient in mixed.items():
        assert gradient.dtype == torch.float32
        largest = float(full[name].abs().max())
        torch.testing.assert_close(gradient, expected[name], rtol=0, atol=0.02 * largest)
        torch.testing.assert_close(gradient, full[name], rtol=0, atol=0.1 * largest)
        assert not torch.equal(gradient, full[name])


# Training -----------------------------------------------------------------------------------------------------------


def test_the_distilled_references_loss_of_a_padded_batch():
    student, teacher = tiny.model(1), tiny.model(2)
    recipe = tiny.distillation(lambda_=LAMBDA, tau=TAU)
    shared = (slice(60), slice(60))
    module = DistilledReferenceModule(
        split_forward(student), split_forward(teacher), None, recipe, logits_budget_bytes=4 * 60 * 4, shared_ids=shared
    )
    sequences = tiny.sequences_of_ids(3, seed=5)
    lengths = torch.tensor([len(ids) for ids in sequences])
    batch = {"input_ids": nn.utils.rnn.pad_sequence([torch.tensor(ids) for ids in sequences], True), "lengths": lengths}
    loss, terms, num_tokens = module.summed(batch)

    expected = 0.0
    for ids in map(torch.tensor, sequences):
        ours, theirs = (model(ids[None]).logits[0, :-1] for model in (student, teacher))
        divergence = F.kl_div((ours / TAU).log_softmax(-1), (theirs / TAU).softmax(-1), reduction="sum")
        expected += (1 - LAMBDA) * F.cross_entropy(ours, ids[1:], reduction="sum") + LAMBDA * TAU**2 * divergence
    assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-5)
    assert set(terms) == {"ce", "kl"}
    assert num_tokens == sum(lengths) - 3
    gradients = [torch.autograd.grad(item, list(student.parameters())) for item in (loss, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)


RECIPES = {"pretraining": tiny.pretraining(9, batch_size=5), "distillation": tiny.distillation(batch_size=5)}


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_training_ends_with_the_weights_of_autograd(recipe, tmp_path, monkeypatch):
    """Three micro-batches a step, each in several chunks; the last step is smaller."""
    documents, found = tiny.sequences_of_ids(18, seed=3), []
    monkeypatch.setattr("nonmember.training.run.MIB", 1000)
    for how in (weighted_sum, checkpointed):
        monkeypatch.setattr(modules, "weighted_sum", how)
        student, teacher = tiny.model(1), tiny.model(2)
        run = TrainingRun(7, tmp_path / how.__name__, tiny.compute(micro_batch_size=2, logits_budget_mib=1))
        both = Teacher(teacher, (slice(60), slice(60)))
        facts = train(student, documents, recipe, run, end_of_text=0, teacher=both)
        found.append((tiny.weights(student), facts))
    (ours, facts), (expected, facts_of_autograd) = found
    tiny.assert_equal_weights(ours, expected)
    assert facts == facts_of_autograd
