"""What the whole next-token distribution says about the token that came, from a few rows of logits at a time.

Shapes: N scored tokens, R rows of a block, D hidden, V vocabulary. Natural logarithms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from nonmember.models.forward import Head

# Logits of one block. Large enough for the matrix product to be efficient (each block reads the whole output
# matrix again: at V = 50,304, 16 rows at a time take three times as long as 300), small beside the body's
# activations.
DEFAULT_BLOCK_BYTES = 64 * 2**20
# On a CPU the dozen passes after the product go over this much of the block at a time, which stays in the
# cache.
_CACHE_BYTES = 4 * 2**20

LOG_PROB_FLOOR = -100.0
# Stands for a logit of minus infinity: its probability is 0, and 0 times its square is still a number.
_LOWEST_LOGIT = -1e15


@dataclass(frozen=True)
class TokenStatistics:
    """One value per scored token, as in `TokenTable`; `num_floored` log-probabilities were raised to -100."""

    log_prob: Tensor
    mean: Tensor
    std: Tensor
    rank: Tensor
    num_floored: int


@torch.no_grad()
def token_statistics(
    features_ND: Tensor, head: Head, target_ids_N: Tensor, *, block_bytes: int = DEFAULT_BLOCK_BYTES
) -> TokenStatistics:
    """Log-probability and rank of each target, and mean and standard deviation of log p under the model.

    mean = sum_v p_v log p_v; std^2 = sum_v p_v (log p_v - mean)^2 (Min-K%++, eq. 3), in two passes with the
    rounding of the first taken out by the second, over all rows of the output matrix, in float32. Where p_v
    is 0 (masked vocabulary) so is p_v log p_v, and a target without probability gets log p = -100. The
    published scripts take E[x^2] - E[x]^2 in the model's own precision, which can come out negative.

    block_bytes: float32 logits held at one time. On an accelerator twice as much again is needed to work on
    them. Raises ValueError where the model returns NaN or +inf.
    """
    num_tokens, device = len(target_ids_N), features_ND.device
    log_prob, mean, std = (torch.empty(num_tokens, device=device) for _ in range(3))
    rank = torch.empty(num_tokens, dtype=torch.int32, device=device)
    for rows, logits_RV, scratch in _logit_blocks(features_ND, head, block_bytes):
        _block_statistics(
            logits_RV, target_ids_N[rows], scratch, log_prob[rows], mean[rows], std[rows], rank[rows]
        )
    bad = torch.nonzero(torch.isnan(log_prob + mean)).flatten()
    if len(bad):
        raise ValueError(
            f"The model's logits are no distribution (NaN, +inf, or none finite) for {len(bad)} of "
            f"{num_tokens} tokens of a batch, first for number {int(bad[0])}. If the model runs in float16, "
            "load it in bfloat16 or float32; if not, its weights are damaged."
        )
    num_floored = int((log_prob < LOG_PROB_FLOOR).sum())
    return TokenStatistics(log_prob.clamp_(min=LOG_PROB_FLOOR), mean, std, rank, num_floored)


_Scratch = tuple[Tensor, Tensor]


def _logit_blocks(
    features_ND: Tensor, head: Head, block_bytes: int
) -> Iterator[tuple[slice, Tensor, _Scratch]]:
    """Rows, their float32 logits (the caller's to overwrite), and two tensors of that size to work in."""
    num_tokens, vocab_size = len(features_ND), head.vocab_size
    block_rows = _rows_within(block_bytes, vocab_size, num_tokens)
    cpu = features_ND.device.type == "cpu"
    work_rows = _rows_within(_CACHE_BYTES, vocab_size, block_rows) if cpu else block_rows
    block = features_ND.new_empty(block_rows, vocab_size)
    work = [torch.empty(work_rows, vocab_size, device=features_ND.device) for _ in range(2)]
    for start in range(0, num_tokens, block_rows):
        features_RD = features_ND[start : start + block_rows]
        out = block[: len(features_RD)]
        logits = head(features_RD, out=out)
        ours = logits.data_ptr() == out.data_ptr() and logits.dtype == torch.float32
        for offset in range(0, len(logits), work_rows):
            part = logits[offset : offset + work_rows]
            rows = slice(start + offset, start + offset + len(part))
            yield rows, part if ours else part.to(torch.float32, copy=True), _first_rows(work, len(part))


def _rows_within(num_bytes: int, vocab_size: int, most: int) -> int:
    """Rows of V float32 numbers that fit, spread evenly so that the last block is not a sliver."""
    fit = max(1, num_bytes // (4 * vocab_size))
    num_blocks = max(1, -(-most // fit))
    return max(1, -(-most // num_blocks))


def _first_rows(work: list[Tensor], num_rows: int) -> _Scratch:
    return work[0][:num_rows], work[1][:num_rows]


def _block_statistics(
    x_RV: Tensor,
    target_ids_R: Tensor,
    scratch: _Scratch,
    log_prob_R: Tensor,
    mean_R: Tensor,
    std_R: Tensor,
    rank_R: Tensor,
) -> None:
    """Fill the four results. `x_RV` holds logits, then log p, then log p - mean: each pass over it costs."""
    p_RV, product_RV = scratch
    target_R1 = target_ids_R[:, None]
    x_RV.clamp_(min=_LOWEST_LOGIT)
    # Counted in float32, exact to 2^24 tokens: a sum of booleans is several times slower.
    rank_R.copy_(torch.gt(x_RV, x_RV.gather(1, target_R1), out=product_RV).sum(1))
    largest_R1 = x_RV.amax(1, keepdim=True)
    torch.softmax(x_RV, 1, out=p_RV)
    largest_log_p_R1 = p_RV.amax(1, keepdim=True).log_()
    largest_log_p_R1.masked_fill_(largest_R1 <= _LOWEST_LOGIT, torch.nan)
    x_RV.sub_(largest_R1).add_(largest_log_p_R1)
    log_prob_R.copy_(x_RV.gather(1, target_R1).squeeze(1))
    rough_mean_R1 = torch.mul(p_RV, x_RV, out=product_RV).sum(1, keepdim=True)
    x_RV.sub_(rough_mean_R1)
    correction_R = p_RV.mul_(x_RV).sum(1)
    torch.add(rough_mean_R1.squeeze(1), correction_R, out=mean_R)
    variance_R = p_RV.mul_(x_RV).sum(1).sub_(correction_R.square())
    torch.sqrt(variance_R.clamp_(min=0), out=std_R)
