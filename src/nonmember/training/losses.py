"""Language-model losses over features, with logits and what follows from them made a few rows at a time.

Shapes: N scored tokens, D hidden, V vocabulary, S ids shared by teacher and student, K terms of a loss. Nats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from nonmember.models.forward import Head, Ids

BYTES_PER_LOGIT = 4
Terms = Callable[..., Tensor]


def weighted_sum(
    terms: Terms,
    head: Head,
    rows: Sequence[Tensor],
    weights: Sequence[float],
    *,
    budget_bytes: int,
    upstream: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The loss `weights @ terms(head, *rows)`, and its terms [K], which take no gradient.

    Logits are made for a few rows at a time, so that no [rows, V] float32 table passes the budget. With them come the
    gradients, in the forward pass: no chunk is kept for the backward pass, and no logits are made twice.

    Args:
        terms: K sums over rows.
        rows: tensors of N rows each. The first are the student's features; the others take no gradient.
        upstream: the gradient that the loss will be given. Where it is given another, its own are multiplied by the
            quotient, which costs the last bit: with the right one they are those of autograd, bit for bit.
    """

    def summed(head: Head, *rows: Tensor) -> tuple[Tensor, Tensor]:
        bound, weights_K = partial(terms, head), torch.tensor(weights, device=rows[0].device)
        chunk_rows = max(1, budget_bytes // (BYTES_PER_LOGIT * head.vocab_size))
        if not torch.is_grad_enabled():
            sums_K = torch.stack([bound(*chunk) for chunk in _chunks(rows, chunk_rows)]).sum(0)
            return (weights_K * sums_K).sum(), sums_K
        expected = weights_K.new_ones(())
        # Of half precision, gradients of a mean over many tokens may be too small; those of their sum are not.
        if upstream is not None and not torch.is_autocast_enabled(rows[0].device.type):
            expected = expected * upstream
        parameters = [parameter for parameter in head.parameters() if parameter.requires_grad]
        loss, sums_K = _WeightedSum.apply(  # type: ignore[no-untyped-call]
            bound, weights_K, expected, chunk_rows, len(rows), *rows, *parameters
        )
        return loss, sums_K

    return head.gathered(summed, *rows)


def _chunks(rows: Sequence[Tensor], num: int) -> list[tuple[Tensor, ...]]:
    return list(zip(*(tensor.split(num) for tensor in rows), strict=True))


class _WeightedSum(torch.autograd.Function):
    """Of `weighted_sum`. The parameters are inputs, so that their gradients go the way of all others."""

    @staticmethod
    def forward(
        ctx: Any,
        terms: Terms,
        weights_K: Tensor,
        expected: Tensor,
        chunk_rows: int,
        num_row_tensors: int,
        *tensors: Tensor,
    ) -> tuple[Tensor, Tensor]:
        rows, parameters = tensors[:num_row_tensors], tensors[num_row_tensors:]
        of_parameters: list[Tensor] = []
        # From the last to the first, as autograd comes to them: sums of gradients are then the same to the last bit.
        parts = [
            _terms_and_gradient(terms, chunk, weights_K * expected, parameters, of_parameters)
            for chunk in reversed(_chunks(rows, chunk_rows))
        ]
        by_chunk, of_features = zip(*reversed(parts), strict=True)
        sums_K = torch.stack(by_chunk).sum(0)
        ctx.save_for_backward(torch.cat(of_features), *of_parameters)
        ctx.expected, ctx.num_row_tensors = expected, num_row_tensors
        ctx.mark_non_differentiable(sums_K)
        return (weights_K * sums_K).sum(), sums_K

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        gradients, factor = ctx.saved_tensors, upstream / ctx.expected
        if factor != 1:
            gradients = [factor * gradient for gradient in gradients]
        of_features, *of_parameters = gradients
        return (*[None] * 5, of_features, *[None] * (ctx.num_row_tensors - 1), *of_parameters)


def _terms_and_gradient(
    terms: Terms, chunk: Sequence[Tensor], upstream_K: Tensor, parameters: Sequence[Tensor], sums: list[Tensor]
) -> tuple[Tensor, Tensor]:
    """Terms [K] and the gradient of a chunk's features; gradients of the parameters are added to `sums`."""
    with torch.enable_grad():
        features = chunk[0].detach().requires_grad_()
        values_K = terms(features, *chunk[1:])
    with torch.autocast(features.device.type, enabled=False):
        of_features, *further = torch.autograd.grad(values_K, [features, *parameters], upstream_K)
    if not sums:
        sums += further
    else:
        for total, gradient in zip(sums, further, strict=True):
            total += gradient
    return values_K.detach(), of_features


def cross_entropy_terms(head: Head, features_ND: Tensor, targets_N: Tensor) -> Tensor:
    """[1]: summed cross-entropy."""
    return F.cross_entropy(head(features_ND).float(), targets_N, reduction="sum")[None]


def distillation_terms(
    head: Head,
    student_ND: Tensor,
    teacher_ND: Tensor,
    targets_N: Tensor,
    *,
    teacher_head: Head,
    tau: float,
    shared_ids: tuple[Ids, Ids],
) -> Tensor:
    """[2]: summed cross-entropy at temperature 1, summed KL(teacher || student).

    PRISM, section 3: both sides of the KL are softened, softmax(z / tau), direction teacher || student. Logits are cut
    to the ids both tokenizers share (`shared_ids`: student's and teacher's ids of the same strings) and renormalised by
    the softmax; rows that stand for no string are thus left out.
    """
    logits_NV = head(student_ND).float()
    cross_entropy = F.cross_entropy(logits_NV, targets_N, reduction="sum")
    with torch.no_grad():
        teacher_NV = teacher_head(teacher_ND).float()
    divergence = F.kl_div(
        F.log_softmax(logits_NV[:, shared_ids[0]] / tau, dim=-1),
        F.log_softmax(teacher_NV[:, shared_ids[1]] / tau, dim=-1),
        log_target=True,
        reduction="sum",
    )
    return torch.stack([cross_entropy, divergence])
