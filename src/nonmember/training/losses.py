"""Language-model losses over features, with logits and what follows from them made a few rows at a time.

Shapes: N scored tokens, D hidden, V vocabulary, S ids shared by teacher and student, K terms of a loss. Nats.

The gradients of the logits are written out, and made in place where autograd takes a table for each step: four tables
at a time instead of eight. Operations and their order are those of autograd, so that the numbers are the same to the
last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from nonmember.models.forward import LOWEST_LOGIT, Head, Ids

BYTES_PER_LOGIT = 4


# (float32 logits [N,V], further rows, upstream_K=...) -> the K terms, each summed over the rows, and a gradient of the
# logits: of the terms' sum weighted by `upstream_K`; none where that is None.
Terms = Callable[..., tuple[Sequence[Tensor], Tensor | None]]


def weighted_sum(
    terms: Terms,
    head: Head,
    rows: Sequence[Tensor],
    weights: Sequence[float],
    *,
    budget_bytes: int,
    upstream: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The loss, `weights @ terms(head(rows[0]), *rows[1:])`, and its terms [K], which take no gradient.

    Logits are made for a few rows at a time, so that no [rows, V] float32 table passes the budget. With them come the
    gradients, in the forward pass: no chunk is kept for the backward pass, and no logits are made twice.

    Args:
        rows: tensors of N rows each. The first are the student's features; the others take no gradient.
        upstream: the gradient that the loss will be given. Where it is given another, its own are multiplied by the
            quotient, which costs the last bit: with the right one they are those of autograd, bit for bit.
    """

    def summed(head: Head, *rows: Tensor) -> tuple[Tensor, Tensor]:
        weights_K = torch.tensor(weights, dtype=torch.float32, device=rows[0].device)
        chunk_rows = max(1, budget_bytes // (BYTES_PER_LOGIT * head.vocab_size))
        if not torch.is_grad_enabled():
            by_chunk = [
                torch.stack(list(terms(head(features).float(), *others, upstream_K=None)[0]))
                for features, *others in _chunks(rows, chunk_rows)
            ]
            sums_K = torch.stack(by_chunk).sum(0)
            return (weights_K * sums_K).sum(), sums_K
        expected = weights_K.new_ones(())
        # Of half precision, gradients of a mean over many tokens may be too small; those of their sum are not.
        if upstream is not None and not torch.is_autocast_enabled(rows[0].device.type):
            expected = expected * upstream
        parameters = [parameter for parameter in head.parameters() if parameter.requires_grad]
        loss, sums_K = _WeightedSum.apply(terms, head, weights_K, expected, chunk_rows, len(rows), *rows, *parameters)
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
        head: Head,
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
            _terms_and_gradient(terms, head, chunk, weights_K * expected, parameters, of_parameters)
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
        return (*[None] * 6, of_features, *[None] * (ctx.num_row_tensors - 1), *of_parameters)


def _terms_and_gradient(
    terms: Terms,
    head: Head,
    chunk: Sequence[Tensor],
    upstream_K: Tensor,
    parameters: Sequence[Tensor],
    sums: list[Tensor],
) -> tuple[Tensor, Tensor]:
    """Terms [K] and the gradient of a chunk's features; gradients of the parameters are added to `sums`."""
    with torch.enable_grad():
        features = chunk[0].detach().requires_grad_()
        logits_NV = head(features).float()
    values, gradient_NV = terms(logits_NV.detach(), *chunk[1:], upstream_K=upstream_K)
    with torch.autocast(features.device.type, enabled=False):
        of_features, *further = torch.autograd.grad(logits_NV, [features, *parameters], gradient_NV)
    if not sums:
        sums += further
    else:
        for total, gradient in zip(sums, further, strict=True):
            total += gradient
    return torch.stack(list(values)), of_features


def cross_entropy_terms(
    logits_NV: Tensor, targets_N: Tensor, *, upstream_K: Tensor | None
) -> tuple[Sequence[Tensor], Tensor | None]:
    """Cross-entropy."""
    log_probs_NV = F.log_softmax(logits_NV, dim=-1)
    values = [F.nll_loss(log_probs_NV, targets_N, reduction="sum")]
    if upstream_K is None:
        return values, None
    gradient_NV = torch.zeros_like(log_probs_NV)
    gradient_NV.scatter_(1, targets_N[:, None], -upstream_K[0].expand(len(targets_N), 1))
    return values, _through_log_softmax(gradient_NV, log_probs_NV)


def distillation_terms(
    logits_NV: Tensor,
    teacher_ND: Tensor,
    targets_N: Tensor,
    *,
    upstream_K: Tensor | None,
    teacher_head: Head,
    tau: float,
    shared_ids: tuple[Ids, Ids],
) -> tuple[Sequence[Tensor], Tensor | None]:
    """Cross-entropy at temperature 1, and KL(teacher || student).

    PRISM, section 3: both sides of the KL are softened, softmax(z / tau), direction teacher || student. Logits are cut
    to the ids both tokenizers share (`shared_ids`: student's and teacher's ids of the same strings) and renormalised by
    the softmax; rows that stand for no string are thus left out.
    """
    ours, theirs = shared_ids
    divergence, of_divergence_NS = _divergence(
        F.log_softmax((logits_NV[:, ours] / tau).clamp_(min=LOWEST_LOGIT), dim=-1),
        F.log_softmax((teacher_head(teacher_ND).float()[:, theirs] / tau).clamp_(min=LOWEST_LOGIT), dim=-1),
        None if upstream_K is None else upstream_K[1],
    )
    values, gradient_NV = cross_entropy_terms(logits_NV, targets_N, upstream_K=upstream_K)
    if gradient_NV is not None and of_divergence_NS is not None:
        gradient_NV[:, ours] += of_divergence_NS.div_(tau)
    return [*values, divergence], gradient_NV


def _divergence(student_NS: Tensor, teacher_NS: Tensor, upstream: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """KL of log-probabilities, the teacher's from the student's, and its gradient of what these are the log-softmax of.

    It overwrites the teacher's.
    """
    probs_NS = teacher_NS.exp()
    divergence = teacher_NS.sub_(student_NS).mul_(probs_NS).sum()
    if upstream is None:
        return divergence, None
    return divergence, _through_log_softmax(probs_NS.mul_(upstream).neg_(), student_NS)


def _through_log_softmax(gradient: Tensor, log_probs: Tensor) -> Tensor:
    """In place, the gradient of what was given to a log-softmax over the last dimension."""
    backward = torch.ops.aten._log_softmax_backward_data.out
    return backward(gradient, log_probs, -1, log_probs.dtype, out=gradient)
