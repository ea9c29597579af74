"""Moments of the next-token distribution and log-probability of the observed token, a few rows of logits at a time.

Shapes: N scored tokens, R rows of a block, D hidden, V vocabulary. Natural logarithms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from nonmember.models.forward import LOWEST_LOGIT, Head
from nonmember.observations.base import BLOCK_BYTES
from nonmember.records.tokens import LOG_PROB_FLOOR

# On a CPU the dozen passes after the product go over this much of the block at a time, which stays in the
# cache.
_CACHE_BYTES = 4 * 2**20


@dataclass(frozen=True)
class TokenMoments:
    """One value per scored token, as in `TokenTable`; `num_floored` log-probabilities were raised to -100."""

    log_prob: Tensor
    mean: Tensor
    std: Tensor
    num_floored: int


class Workspace:
    """Memory kept from one batch to the next: on a CPU, fresh pages cost more than the arithmetic on them."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, torch.dtype, torch.device], Tensor] = {}

    def matrix(self, name: str, num_rows: int, num_columns: int, like: Tensor, dtype: torch.dtype) -> Tensor:
        """Uninitialised [num_rows, num_columns] on the device of `like`."""
        key, size = (name, dtype, like.device), num_rows * num_columns
        if key not in self._kept or self._kept[key].numel() < size:
            self._kept[key] = torch.empty(size, dtype=dtype, device=like.device)
        return self._kept[key][:size].view(num_rows, num_columns)


@torch.no_grad()
def token_statistics(
    features_ND: Tensor,
    head: Head,
    target_ids_N: Tensor,
    *,
    block_bytes: int = BLOCK_BYTES,
    workspace: Workspace | None = None,
) -> TokenMoments:
    """Log-probability of each target, and mean and standard deviation of log p under the model.

    mean = sum_v p_v log p_v; std^2 = sum_v p_v (log p_v - mean)^2 (Min-K%++, eq. 3), in two passes with the
    rounding of the first taken out by the second, over all rows of the output matrix, in float32. Where p_v
    is 0 (masked vocabulary) so is p_v log p_v, and a target without probability gets log p = -100. The
    published scripts take E[x^2] - E[x]^2 in the model's own precision, which can come out negative.

    block_bytes: float32 logits held at one time. On an accelerator twice as much again is needed to work on
        them.
    workspace: pass the same one with every batch of a run.
    Raises ValueError where the model returns NaN or +inf.
    """
    num_tokens, device = len(target_ids_N), features_ND.device
    # The type is said: where a trainer works in half precision, that is what it would be.
    log_prob, mean, std = (torch.empty(num_tokens, dtype=torch.float32, device=device) for _ in range(3))
    for rows, logits_RV, scratch in _logit_blocks(features_ND, head, block_bytes, workspace or Workspace()):
        results_R = log_prob[rows], mean[rows], std[rows]
        _block_statistics(logits_RV, target_ids_N[rows], scratch, *results_R)
    check_distribution(log_prob + mean)
    num_floored = int((log_prob < LOG_PROB_FLOOR).sum())
    return TokenMoments(log_prob.clamp_(min=LOG_PROB_FLOOR), mean, std, num_floored)


@torch.no_grad()
def token_log_probs(
    features_ND: Tensor,
    head: Head,
    target_ids_N: Tensor,
    *,
    block_bytes: int = BLOCK_BYTES,
    workspace: Workspace | None = None,
) -> tuple[Tensor, int]:
    """The log-probability of each target as `token_statistics` has it, and how many were floored."""
    log_prob_N = torch.empty(len(target_ids_N), dtype=torch.float32, device=features_ND.device)
    for rows, logits_RV, scratch in _logit_blocks(features_ND, head, block_bytes, workspace or Workspace()):
        x_RV = logits_RV.clamp_(min=LOWEST_LOGIT)
        log_prob_N[rows] = _log_prob_of(x_RV, target_ids_N[rows], scratch[0])[0]
    check_distribution(log_prob_N)
    num_floored = int((log_prob_N < LOG_PROB_FLOOR).sum())
    return log_prob_N.clamp_(min=LOG_PROB_FLOOR), num_floored


def check_distribution(values_N: Tensor) -> None:
    """Refuse NaN, which stands where the logits of a token are no distribution."""
    bad = torch.nonzero(torch.isnan(values_N)).flatten()
    if len(bad):
        raise ValueError(
            f"The model's logits are no distribution (NaN, +inf, or none finite) for {len(bad)} of "
            f"{len(values_N)} tokens of a batch, first for number {int(bad[0])}. If the model runs in float16, "
            "load it in bfloat16 or float32; if not, its weights are damaged."
        )


_Scratch = tuple[Tensor, Tensor]


def _logit_blocks(
    features_ND: Tensor, head: Head, block_bytes: int, workspace: Workspace
) -> Iterator[tuple[slice, Tensor, _Scratch]]:
    """Rows, their float32 logits (the caller's to overwrite), and two matrices of that size to work in."""
    num_tokens, vocab_size = len(features_ND), head.vocab_size
    block_rows = _rows_within(block_bytes, vocab_size, num_tokens)
    cpu = features_ND.device.type == "cpu"
    work_rows = _rows_within(_CACHE_BYTES, vocab_size, block_rows) if cpu else block_rows
    block = workspace.matrix("block", block_rows, vocab_size, features_ND, features_ND.dtype)
    logits, p, product = (
        workspace.matrix(name, work_rows, vocab_size, features_ND, torch.float32) for name in ("logits", "p", "product")
    )
    for start in range(0, num_tokens, block_rows):
        features_RD = features_ND[start : start + block_rows]
        out = block[: len(features_RD)]
        made = head(features_RD, out=out)
        ours = made.data_ptr() == out.data_ptr() and made.dtype == torch.float32
        for offset in range(0, len(made), work_rows):
            part = made[offset : offset + work_rows]
            num_rows = len(part)
            rows = slice(start + offset, start + offset + num_rows)
            yield rows, part if ours else logits[:num_rows].copy_(part), (p[:num_rows], product[:num_rows])


def _rows_within(num_bytes: int, vocab_size: int, most: int) -> int:
    """Rows of V float32 numbers that fit, spread evenly so that the last block is not a sliver."""
    fit = max(1, num_bytes // (4 * vocab_size))
    num_blocks = max(1, -(-most // fit))
    return max(1, -(-most // num_blocks))


def _block_statistics(
    x_RV: Tensor, target_ids_R: Tensor, scratch: _Scratch, log_prob_R: Tensor, mean_R: Tensor, std_R: Tensor
) -> None:
    """Fill the three results. Each pass over the block costs, so `x_RV` is overwritten on the way.

    It holds the logits, then x = log p - log p_max, then d = log p - mean.
    """
    p_RV, product_RV = scratch
    x_RV.clamp_(min=LOWEST_LOGIT)
    targets_R, log_p_max_R1 = _log_prob_of(x_RV, target_ids_R, p_RV)
    log_prob_R.copy_(targets_R)
    mean_x_R1 = torch.mul(p_RV, x_RV, out=product_RV).sum(1, keepdim=True)
    x_RV.sub_(mean_x_R1)
    rounding_R = p_RV.mul_(x_RV).sum(1)  # sum of p d, 0 but for the rounding of the mean
    mean_R.copy_((mean_x_R1 + log_p_max_R1).squeeze(1) + rounding_R)
    variance_R = p_RV.mul_(x_RV).sum(1) - rounding_R.square()
    torch.sqrt(variance_R.clamp_(min=0), out=std_R)


def _log_prob_of(x_RV: Tensor, target_ids_R: Tensor, p_RV: Tensor) -> tuple[Tensor, Tensor]:
    """log p of the targets [R], and log p_max [R, 1], NaN where no logit is finite.

    x_RV: logits, overwritten by log p - log p_max.   p_RV: overwritten by the probabilities.
    """
    max_R1 = x_RV.amax(1, keepdim=True)
    x_RV.sub_(max_R1)
    torch.softmax(x_RV, 1, out=p_RV)
    log_p_max_R1 = p_RV.amax(1, keepdim=True).log_().masked_fill_(max_R1 <= LOWEST_LOGIT, torch.nan)
    return (x_RV.gather(1, target_ids_R[:, None]) + log_p_max_R1).squeeze(1), log_p_max_R1
