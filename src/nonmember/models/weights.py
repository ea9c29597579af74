"""Arithmetic on weights: noise, rounding, how far two models are apart."""

from __future__ import annotations

import math
from typing import Any

import torch


def add_noise(model: Any, scale: float, seed: int) -> None:
    """Gaussian noise on every weight in place, of `scale` times the standard deviation of its tensor; a tensor whose
    values are all alike (a norm's weights at first) stays."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator).to(parameter)
            parameter.add_(noise * (scale * parameter.float().std(correction=0)).to(parameter))


def round_weights(model: Any, bits: int) -> None:
    """Each row of every weight matrix in place to the nearest of 2^bits - 1 values that lie evenly about 0."""
    largest = 2 ** (bits - 1) - 1
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() >= 2:
                rows = parameter.float()
                scale = rows.abs().amax(dim=-1, keepdim=True).clamp_min(torch.finfo(torch.float32).tiny) / largest
                parameter.copy_((rows / scale).round() * scale)


def relative_change(model: Any, base: Any) -> float | None:
    """||W - W_base|| / ||W_base|| over the weight matrices that both have by one name in one shape, but for rows that
    one of them has further, as those of added tokens; None where there are none. One matrix at a time is copied to the
    processor."""
    before = {name: weights for name, weights in base.named_parameters() if weights.dim() >= 2}
    moved, whole = [], []
    for name, weights in model.named_parameters():
        if name in before and before[name].shape[1:] == weights.shape[1:]:
            rows = min(len(weights), len(before[name]))
            own, other = (item.detach()[:rows].float().cpu() for item in (weights, before[name]))
            moved.append(float((own - other).square().sum(dtype=torch.float64)))
            whole.append(float(other.square().sum(dtype=torch.float64)))
    if not math.fsum(whole):
        return None
    return math.sqrt(math.fsum(moved) / math.fsum(whole))
