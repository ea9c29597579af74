"""Scores as `torchmetrics`, from a model's logits, for training loops of one's own.

    from nonmember.scoring.metrics import MinKPlusPlus

    metric = MinKPlusPlus(k=0.2)
    metric.update(model(ids).logits, ids, attention_mask)      each batch
    metric.compute()                                           mean over the documents, of all processes

Values are those of `nonmember.scores`, whose functions are called. States are joined over
processes by torchmetrics: documents come in the order of the processes, and those that a sampler repeats to fill its
last batch count as often as they are read.

Shapes: B documents, T tokens, V vocabulary, N scored tokens.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from nonmember import scores
from nonmember.checks import require_choice
from nonmember.models.forward import PlainLogits
from nonmember.observations.passes.vocabulary import token_statistics
from nonmember.records import FloatArray

Reduction = Literal["mean", "none"]


class _OfDocuments(Metric):
    """The states are those of all scores, so that a `MetricCollection` of several fills them once."""

    is_differentiable = False
    higher_is_better = True
    full_state_update = False
    log_prob: list[Tensor]
    mean: list[Tensor]
    std: list[Tensor]
    num_tokens: list[Tensor]

    def __init__(self, reduction: Reduction = "mean", **settings: Any) -> None:
        super().__init__(**settings)
        require_choice(reduction, get_args(Reduction), "reduction")
        self.reduction = reduction
        for name in ("log_prob", "mean", "std", "num_tokens"):
            self.add_state(name, default=[], dist_reduce_fx="cat")

    def update(self, logits: Tensor, input_ids: Tensor, attention_mask: Tensor | None = None) -> None:
        """Add a batch of documents.

        Args:
            logits: [B, T, V] as the model gives them: those at t are of the token at t + 1. Any float type.
            input_ids: [B, T] what the model read.
            attention_mask: [B, T] 0 for padding, on either side; None: without padding.

        Raises:
            ValueError: For shapes that do not go together, and for logits that are NaN or +inf.
        """
        mask_BT = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        if logits.ndim != 3 or not logits.shape[:2] == input_ids.shape == mask_BT.shape:
            raise ValueError(
                "Expected logits [documents, tokens, vocabulary], input_ids and attention_mask [documents, tokens]; "
                f"got {list(logits.shape)}, {list(input_ids.shape)} and {list(mask_BT.shape)}. Pass the logits as the "
                "model returns them, not shifted."
            )
        scored_BT = mask_BT[:, 1:].bool() & mask_BT[:, :-1].bool()
        found = token_statistics(logits[:, :-1][scored_BT], PlainLogits(logits.shape[-1]), input_ids[:, 1:][scored_BT])
        self.log_prob.append(found.log_prob)
        self.mean.append(found.mean)
        self.std.append(found.std)
        self.num_tokens.append(scored_BT.sum(1))

    def compute(self) -> Tensor:
        """The mean over the documents that have a score, or [documents] with NaN for those that have none."""
        lengths = dim_zero_cat(self.num_tokens).long().tolist()
        columns = (dim_zero_cat(part).double().cpu().numpy() for part in (self.log_prob, self.mean, self.std))
        values = self._score(*(np.split(column, np.cumsum(lengths)[:-1]) for column in columns))
        values_B = torch.as_tensor(values, dtype=self.dtype, device=self.device)
        return values_B if self.reduction == "none" else values_B.nanmean()

    @abstractmethod
    def _score(self, log_probs: list[FloatArray], means: list[FloatArray], stds: list[FloatArray]) -> Any:
        """[documents]"""


class Perplexity(_OfDocuments):
    """Perplexity of each document by itself: the exponential of its mean negative log-likelihood per token.

    Not torchmetrics' `Perplexity`, which is that of all tokens together. Lower = more likely a member: it is minus
    `nonmember.scores.perplexity`, under its usual sign.

    Args:
        reduction: "mean" over the documents, or "none" for [documents].
        **settings: Of `torchmetrics.Metric`.

    Source: Carlini et al., 2021.

    >>> import torch
    >>> metric = Perplexity(reduction="none")
    >>> logits, ids = torch.zeros(2, 3, 8), torch.tensor([[1, 2, 3], [4, 5, 6]])
    >>> metric(logits, ids)
    tensor([8., 8.])
    """

    higher_is_better = False

    def _score(self, log_probs: list[FloatArray], means: list[FloatArray], stds: list[FloatArray]) -> Any:
        return -np.asarray(scores.perplexity(log_probs))


class MinK(_OfDocuments):
    """Min-K%: mean log-probability of the share `k` of least likely tokens of each document, nats per token.

    Args:
        k: In [0.001, 1]; 1 gives the log-likelihood.
        reduction: "mean" over the documents, or "none" for [documents].
        **settings: Of `torchmetrics.Metric`.

    Raises:
        ValueError: For another k.

    Source: Shi et al., 2024, eq. 1; `nonmember.scores.min_k`.

    >>> import torch
    >>> metric = MinK(k=0.5)
    >>> logits, ids = torch.zeros(2, 3, 8), torch.tensor([[1, 2, 3], [4, 5, 6]])
    >>> metric.update(logits, ids)
    >>> metric.compute() == -torch.tensor(8.0).log()
    tensor(True)
    """

    def __init__(self, k: float, reduction: Reduction = "mean", **settings: Any) -> None:
        super().__init__(reduction, **settings)
        self.k = scores.MinK(k).k

    def _score(self, log_probs: list[FloatArray], means: list[FloatArray], stds: list[FloatArray]) -> Any:
        return scores.min_k(log_probs, self.k)


class MinKPlusPlus(MinK):
    """Min-K%++: mean of the share `k` of smallest (log p - mean) / std of each document, in standard deviations.

    Mean and standard deviation are those of log p under the model's own next-token distribution.

    Args:
        k: In [0.001, 1].
        reduction: "mean" over the documents, or "none" for [documents].
        **settings: Of `torchmetrics.Metric`.

    Raises:
        ValueError: For another k.

    Source: Zhang et al., 2025, eq. 3; `nonmember.scores.min_k_plus_plus`.

    >>> import torch
    >>> metric = MinKPlusPlus(k=0.2, reduction="none")
    >>> logits, ids = torch.zeros(2, 3, 8), torch.tensor([[1, 2, 3], [4, 5, 6]])
    >>> metric.update(logits, ids)  # every token is as likely as the model expects
    >>> metric.compute()
    tensor([0., 0.])
    """

    def _score(self, log_probs: list[FloatArray], means: list[FloatArray], stds: list[FloatArray]) -> Any:
        return scores.min_k_plus_plus(log_probs, means, stds, self.k)
