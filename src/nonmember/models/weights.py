"""Models changed on purpose: arithmetic on weights (noise, how far two models are apart), and perturbed
outputs: log-probabilities with noise added, or rounded.

Shapes: D hidden, V vocabulary; `...` is any number of rows.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nonmember.models.forward import LinearHead, split_forward


def add_noise(model: Any, scale: float, seed: int) -> None:
    """Gaussian noise on every weight in place, of `scale` times the standard deviation of its tensor; a tensor whose
    values are all alike (a norm's weights at first) stays."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator).to(parameter)
            parameter.add_(noise * (scale * parameter.float().std(correction=0)).to(parameter))


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


FREQUENCY = 100.0  # radians: contexts that differ by a few hundredths have unrelated noise, roundings move it by 1e-4


def serve(model: Any, *, noise: float, decimals: int | None, seed: int) -> None:
    """Put a `ServedHead` in the place of the model's output matrix.

    Raises ValueError for a model that does something to its logits after that.
    """
    head = split_forward(model).head
    if not (isinstance(head, LinearHead) and head.multiplier == 1.0 and head.soft_cap is None):
        raise ValueError(f"{type(model).__name__} changes its logits after the output matrix, where they are served.")
    model.set_output_embeddings(ServedHead(model.get_output_embeddings(), noise=noise, decimals=decimals, seed=seed))


class ServedHead(nn.Module):
    """Perturbed log-probabilities in place of logits; consumers normalise them again.

    The noise is a fixed function of the context, by the hidden state h that the output matrix reads, and of the token:
    noise * sqrt(2) * cos(f w_v . h / rms(h) + b_v), with w_v and b_v drawn once from the seed. So it is unrelated
    between contexts and between tokens, its mean over these is 0 and its standard deviation is `noise`; and it is no
    use to ask twice.
    """

    def __init__(self, head: nn.Module, *, noise: float, decimals: int | None, seed: int) -> None:
        super().__init__()
        weight_VD: Any = head.weight
        generator = torch.Generator().manual_seed(seed)
        directions_VD = torch.randn(weight_VD.shape, generator=generator) / math.sqrt(weight_VD.shape[1])
        phases_V = 2 * math.pi * torch.rand(weight_VD.shape[0], generator=generator)
        self.head = head
        self.out_features: int = weight_VD.shape[0]
        self._noise = noise
        self._decimals = decimals
        self.register_buffer("directions_VD", directions_VD.to(weight_VD.device), persistent=False)
        self.register_buffer("phases_V", phases_V.to(weight_VD.device), persistent=False)

    def forward(self, features: Tensor) -> Tensor:
        """[..., D] -> [..., V]"""
        answers = F.log_softmax(self.head(features).float(), dim=-1)
        if self._noise:
            answers = answers + self._noise * math.sqrt(2) * self._waves(features.float())
        if self._decimals is not None:
            answers = torch.round(answers, decimals=self._decimals)
        return answers.to(features.dtype)

    def _waves(self, features: Tensor) -> Tensor:
        directions_VD: Any = self.directions_VD
        phases_V: Any = self.phases_V
        rms = features.pow(2).mean(dim=-1, keepdim=True).sqrt().clamp_min(1e-6)
        return torch.cos(FREQUENCY * (features / rms) @ directions_VD.float().T + phases_V.float())
