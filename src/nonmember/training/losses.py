"""Language-model losses over features, with logits computed a few rows at a time.

Shapes: N scored tokens, D hidden, V vocabulary, S ids shared by teacher and student. Nats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from nonmember.models.forward import Ids

BYTES_PER_LOGIT = 4
HeadFunction = Callable[[Tensor], Tensor]


def sum_over_chunks(
    terms: Callable[..., Tensor], rows: Sequence[Tensor], *, vocab_size: int, budget_bytes: int
) -> Tensor:
    """Sum `terms(*chunk_of_each_row_tensor)` over chunks of rows so that no [rows, V] float32 table passes the budget.

    With more than one chunk the logits are made again in the backward pass instead of being kept.
    """
    num_rows = rows[0].shape[0]
    per_chunk = max(1, budget_bytes // (BYTES_PER_LOGIT * vocab_size))
    if num_rows <= per_chunk:
        return terms(*rows)
    chunks = zip(*(tensor.split(per_chunk) for tensor in rows), strict=True)
    if not torch.is_grad_enabled():
        return torch.stack([terms(*chunk) for chunk in chunks]).sum(0)
    return torch.stack([checkpoint(terms, *chunk, use_reentrant=False) for chunk in chunks]).sum(0)


def cross_entropy_terms(head: HeadFunction) -> Callable[[Tensor, Tensor], Tensor]:
    """(features [N,D], targets [N]) -> [1]: summed cross-entropy."""

    def terms(features_ND: Tensor, targets_N: Tensor) -> Tensor:
        return F.cross_entropy(head(features_ND).float(), targets_N, reduction="sum")[None]

    return terms


def distillation_terms(
    student_head: HeadFunction, teacher_head: HeadFunction, *, tau: float, shared_ids: tuple[Ids, Ids]
) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """(student [N,D], teacher [N,D'], targets [N]) -> [2]: summed CE at temperature 1, summed KL(teacher || student).

    PRISM, section 3: both sides of the KL are softened, softmax(z / tau), direction teacher || student. Logits are cut
    to the ids both tokenizers share (`shared_ids`: student's and teacher's ids of the same strings) and renormalised by
    the softmax; rows that stand for no string are thus left out.
    """

    def terms(student_ND: Tensor, teacher_ND: Tensor, targets_N: Tensor) -> Tensor:
        logits_NV = student_head(student_ND).float()
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

    return terms
