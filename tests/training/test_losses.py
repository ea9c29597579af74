"""The distillation loss is the paper's, and is the same however many logits are made at a time."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn

import tiny
from nonmember.training.losses import cross_entropy_terms, distillation_terms, sum_over_chunks
from nonmember.training.modules import DistilledReferenceModule

TEACHER, STUDENT, TRUE_ID = [2.0, 1.0, 0.0], [1.0, 1.0, 1.5], 0
ALL = (slice(3), slice(3))


def logits_are_features(features: torch.Tensor) -> torch.Tensor:
    return features


def terms_of(student, teacher, target=TRUE_ID, *, tau=2.0, shared_ids=ALL) -> torch.Tensor:
    terms = distillation_terms(logits_are_features, logits_are_features, tau=tau, shared_ids=shared_ids)
    return terms(torch.tensor([student]), torch.tensor([teacher]), torch.tensor([target]))


def test_one_position_computed_by_hand():
    cross_entropy, divergence = terms_of(STUDENT, TEACHER)
    assert float(cross_entropy) == pytest.approx(1.294377, abs=1e-6)
    assert float(divergence) == pytest.approx(0.122298, abs=1e-6)
    module = SimpleNamespace(_recipe=tiny.distillation(lambda_=0.7, tau=2.0))
    loss = DistilledReferenceModule.combine(module, {"ce": cross_entropy, "kl": divergence})
    assert float(loss) == pytest.approx(0.730746, abs=1e-6)


def test_positions_are_summed():
    terms = distillation_terms(logits_are_features, logits_are_features, tau=2.0, shared_ids=ALL)
    twice = terms(torch.tensor([STUDENT] * 2), torch.tensor([TEACHER] * 2), torch.tensor([TRUE_ID] * 2))
    torch.testing.assert_close(twice, 2 * terms_of(STUDENT, TEACHER))


def test_shared_ids_are_paired_and_the_rest_is_left_out():
    # The strings of student ids 4, 0, 2 are teacher ids 1, 3, 0; all other rows are large and unshared.
    student = torch.full((6,), 9.0)
    student[[4, 0, 2]] = torch.tensor(STUDENT)
    teacher = torch.full((5,), 9.0)
    teacher[[1, 3, 0]] = torch.tensor(TEACHER)
    shared = (torch.tensor([4, 0, 2]), torch.tensor([1, 3, 0]))
    cross_entropy, divergence = terms_of(student.tolist(), teacher.tolist(), target=4, shared_ids=shared)
    assert float(divergence) == pytest.approx(0.122298, abs=1e-6)
    expected = -torch.log_softmax(student, 0)[4]  # the student's own cross-entropy is over all its rows
    assert float(cross_entropy) == pytest.approx(float(expected), abs=1e-6)


@pytest.mark.parametrize(("num_student", "num_teacher"), [(7, 3), (3, 7), (5, 6)])
def test_rows_beyond_the_tokenizer_are_left_out(num_student, num_teacher):
    student, teacher = STUDENT + [9.0] * (num_student - 3), TEACHER + [9.0] * (num_teacher - 3)
    assert float(terms_of(student, teacher)[1]) == pytest.approx(0.122298, abs=1e-6)


class SpyHead(nn.Linear):
    """Records of how many rows it was asked for logits."""

    def __init__(self, hidden: int, vocab_size: int, seed: int):
        torch.manual_seed(seed)
        super().__init__(hidden, vocab_size)
        self.rows: list[int] = []

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        self.rows.append(len(features))
        return super().forward(features)


HIDDEN, ROWS, VOCAB = 5, 11, 13
BYTES_PER_ROW = 4 * VOCAB


@pytest.mark.parametrize("kind", ["cross_entropy", "distillation"])
@pytest.mark.parametrize("rows_at_a_time", [1, 3, 4, 10])
def test_chunks_change_neither_values_nor_gradients_and_keep_the_budget(kind, rows_at_a_time):
    def evaluate(budget_bytes: int):
        torch.manual_seed(3)
        student, teacher = torch.randn(ROWS, HIDDEN, requires_grad=True), torch.randn(ROWS, HIDDEN)
        targets = torch.randint(VOCAB, (ROWS,))
        head, teacher_head = SpyHead(HIDDEN, VOCAB, 0), SpyHead(HIDDEN, VOCAB, 1)
        if kind == "cross_entropy":
            terms, rows = cross_entropy_terms(head), (student, targets)
        else:
            terms = distillation_terms(head, teacher_head, tau=2.0, shared_ids=(slice(VOCAB), slice(VOCAB)))
            rows = (student, teacher, targets)
        values = sum_over_chunks(terms, rows, vocab_size=VOCAB, budget_bytes=budget_bytes)
        (values * torch.arange(1.0, 1.0 + len(values))).sum().backward()
        with torch.no_grad():
            silent = sum_over_chunks(terms, rows, vocab_size=VOCAB, budget_bytes=budget_bytes)
        torch.testing.assert_close(silent, values, rtol=1e-6, atol=1e-6)
        return (values, student.grad, head.weight.grad, head.bias.grad), head.rows + teacher_head.rows

    whole, rows_of_whole = evaluate(BYTES_PER_ROW * ROWS)
    assert set(rows_of_whole) == {ROWS}
    chunked, rows_of_chunks = evaluate(BYTES_PER_ROW * rows_at_a_time + 7)
    assert max(rows_of_chunks) == rows_at_a_time
    for item, other in zip(whole, chunked, strict=True):
        torch.testing.assert_close(item, other, rtol=1e-6, atol=1e-6)


def test_the_teachers_head_gets_no_gradient():
    head, teacher_head = SpyHead(HIDDEN, VOCAB, 0), SpyHead(HIDDEN, VOCAB, 1)
    terms = distillation_terms(head, teacher_head, tau=2.0, shared_ids=(slice(VOCAB), slice(VOCAB)))
    terms(torch.ones(1, HIDDEN), torch.ones(1, HIDDEN), torch.tensor([0])).sum().backward()
    assert teacher_head.weight.grad is None
    assert head.weight.grad is not None


def test_a_budget_below_one_row_still_goes_on():
    head = SpyHead(HIDDEN, VOCAB, 0)
    rows = (torch.randn(ROWS, HIDDEN), torch.randint(VOCAB, (ROWS,)))
    sum_over_chunks(cross_entropy_terms(head), rows, vocab_size=VOCAB, budget_bytes=1)
    assert head.rows == [1] * ROWS


def test_nothing_to_score_is_zero_with_a_gradient():
    features = torch.zeros(0, HIDDEN, requires_grad=True)
    (value,) = sum_over_chunks(
        cross_entropy_terms(SpyHead(HIDDEN, VOCAB, 0)),
        (features, torch.zeros(0, dtype=torch.long)),
        vocab_size=VOCAB,
        budget_bytes=1,
    )
    value.backward()
    assert value.item() == 0
