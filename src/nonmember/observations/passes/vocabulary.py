"""Moments of the next-token distribution and log-probability of the observed token, a few rows of logits at a time.

Shapes: N scored tokens, R rows of a block, D hidden, V vocabulary. Natural logarithms.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from nonmember.models.forward import LOWEST_LOGIT, Head
from nonmember.observations.base import BLOCK_BYTES
from nonmember.records.tokens import LOG_PROB_FLOOR

# On a CPU the dozen passes after the product go over this much of the block at a time, which stays in the cache.
_CACHE_BYTES = 4 * 2**20
# Of logits that are made at a time, so that the product is worth reading the matrix.
FEWEST_ROWS, MOST_ROWS = 256, 1024


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

    def matrix(self, name: str, shape: Sequence[int], like: Tensor, dtype: torch.dtype) -> Tensor:
        """Uninitialised, on the device of `like`."""
        key, size = (name, dtype, like.device), math.prod(shape)
        if key not in self._kept or self._kept[key].numel() < size:
            self._kept[key] = torch.empty(size, dtype=dtype, device=like.device)
        return self._kept[key][:size].view(shape)


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

    mean = sum_v p_v log p_v; std^2 = sum_v p_v (log p_v - mean)^2 (Min-K%++, eq. 3), in two passes with the rounding
    of the first taken out by the second, over all rows of the output matrix, in float32. Where p_v is 0 (masked
    vocabulary) so is p_v log p_v, and a target without probability gets log p = -100. The published scripts take
    E[x^2] - E[x]^2 in the model's own precision, which can come out negative. Mean and variance over a vocabulary in
    parts are those of a mixture.

    block_bytes: float32 logits held at one time. On an accelerator twice as much again is needed to work on them.
    workspace: pass the same one with every batch of a run.
    Raises ValueError where the model returns NaN or +inf.
    """
    num_tokens, width, workspace = len(features_ND), head.vocab_size, workspace or Workspace()
    rows = _fitting(block_bytes // (4 * width), num_tokens)
    if rows < min(num_tokens, FEWEST_ROWS) and head.is_divisible(features_ND):
        rows = _fitting(MOST_ROWS, num_tokens)
        width = _fitting(block_bytes // (4 * rows), width)
    starts = range(0, head.vocab_size, width)
    # The type is said: where a trainer works in half precision, that is what it would be.
    found_4CN = torch.empty((4, len(starts), num_tokens), dtype=torch.float32, device=features_ND.device)
    for (part, start), first in itertools.product(enumerate(starts), range(0, num_tokens, rows)):
        of_rows, columns = slice(first, first + rows), slice(start, min(start + width, head.vocab_size))
        _of_block(features_ND[of_rows], head, target_ids_N[of_rows], columns, workspace, found_4CN[:, part, of_rows])
    mass_CN, log_prob_CN, mean_CN, variance_CN = found_4CN
    whole_N = mass_CN.logsumexp(0)
    whole_N.masked_fill_(whole_N <= LOWEST_LOGIT, torch.nan)  # where no logit is finite
    log_share_CN = mass_CN - whole_N  # of one part exactly 0
    share_CN = log_share_CN.exp()
    mean_CN += log_share_CN  # of log p in the whole vocabulary
    mean_N = (share_CN * mean_CN).sum(0)
    variance_N = (share_CN * (variance_CN + (mean_CN - mean_N).square())).sum(0)
    log_prob_N = (log_prob_CN + log_share_CN).amax(0)
    check_distribution(log_prob_N + mean_N)
    num_floored = int((log_prob_N < LOG_PROB_FLOOR).sum())
    return TokenMoments(log_prob_N.clamp_(min=LOG_PROB_FLOOR), mean_N, variance_N.sqrt(), num_floored)


def check_distribution(values_N: Tensor) -> None:
    """Refuse NaN, which stands where the logits of a token are no distribution."""
    bad = torch.nonzero(torch.isnan(values_N)).flatten()
    if len(bad):
        raise ValueError(
            f"The model's logits are no distribution (NaN, +inf, or none finite) for {len(bad)} of "
            f"{len(values_N)} tokens of a batch, first for number {int(bad[0])}. If the model runs in float16, "
            "load it in bfloat16 or float32; if not, its weights are damaged."
        )


def _fitting(most: int, number: int) -> int:
    """At most so many of a number at a time, spread evenly so that the last ones are not a sliver."""
    num_blocks = max(1, -(-number // max(1, most)))
    return max(1, -(-number // num_blocks))


def _of_block(
    features_RD: Tensor, head: Head, target_ids_R: Tensor, columns: slice, workspace: Workspace, found_4R: Tensor
) -> None:
    """Fill in, for the columns as a distribution of their own: log of the sum of exponentials; log p of the targets,
    -inf of those elsewhere; mean and variance of log p."""
    shape, targets_R = (len(features_RD), columns.stop - columns.start), target_ids_R - columns.start
    out = workspace.matrix("block", shape, features_RD, features_RD.dtype)
    made = head(features_RD, out, columns)
    ours = made.data_ptr() == out.data_ptr() and made.dtype == torch.float32
    on_cpu = features_RD.device.type == "cpu"
    rows = _fitting(_CACHE_BYTES // (4 * shape[1]), shape[0]) if on_cpu else shape[0]
    for start in range(0, shape[0], rows):
        part = slice(start, start + rows)
        x_RV, p_RV, product_RV = (
            workspace.matrix(name, made[part].shape, features_RD, torch.float32) for name in ("logits", "p", "product")
        )
        x_RV = made[part] if ours else x_RV.copy_(made[part])
        _statistics(x_RV, targets_R[part], p_RV, product_RV, *found_4R[:, part])


def _statistics(
    x_RV: Tensor,
    target_ids_R: Tensor,
    p_RV: Tensor,
    product_RV: Tensor,
    mass_R: Tensor,
    log_prob_R: Tensor,
    mean_R: Tensor,
    variance_R: Tensor,
) -> None:
    """Each pass over the logits costs, so `x_RV` is overwritten on the way.

    It holds the logits, then x = log p - log p_max, then d = log p - mean.
    """
    max_R1 = x_RV.clamp_(min=LOWEST_LOGIT).amax(1, keepdim=True)
    x_RV.sub_(max_R1)
    torch.softmax(x_RV, 1, out=p_RV)
    log_p_max_R1 = p_RV.amax(1, keepdim=True).log_()
    mass_R.copy_((max_R1 - log_p_max_R1).squeeze(1))
    inside_R = (target_ids_R >= 0) & (target_ids_R < x_RV.shape[1])
    targets_R1 = x_RV.gather(1, target_ids_R.where(inside_R, 0)[:, None]) + log_p_max_R1
    log_prob_R.copy_(targets_R1.squeeze(1)).masked_fill_(~inside_R, -torch.inf)
    mean_x_R1 = torch.mul(p_RV, x_RV, out=product_RV).sum(1, keepdim=True)
    x_RV.sub_(mean_x_R1)
    rounding_R = p_RV.mul_(x_RV).sum(1)  # sum of p d, 0 but for the rounding of the mean
    mean_R.copy_((mean_x_R1 + log_p_max_R1).squeeze(1) + rounding_R)
    variance_R.copy_(p_RV.mul_(x_RV).sum(1) - rounding_R.square()).clamp_(min=0)
