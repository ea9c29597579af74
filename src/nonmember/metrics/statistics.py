"""Statistics of scores and embeddings of documents.

Shapes: N documents, D width of an embedding.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat, rank_zero_warn

from nonmember import stats
from nonmember.records import FloatArray
from nonmember.stats.correlation import RankMetric, check_metric
from nonmember.stats.kernels import Bandwidth, check_bandwidth


class _OfPairs(Metric):
    """Two values per document are kept, and the statistic is computed of all of them."""

    is_differentiable = False
    higher_is_better = True
    full_state_update = False
    first: list[Tensor]
    second: list[Tensor]

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.add_state("first", default=[], dist_reduce_fx="cat")
        self.add_state("second", default=[], dist_reduce_fx="cat")

    def _add(self, first: Tensor, second: Tensor, num_dimensions: int, names: str) -> None:
        if first.ndim != num_dimensions or first.shape != second.shape:
            raise ValueError(
                f"Expected {names} of the same documents in the same order, each with {num_dimensions} dimension(s); "
                f"got shapes {list(first.shape)} and {list(second.shape)}. Pass one batch of both at a time."
            )
        self.first.append(first)
        self.second.append(second)

    def _arrays(self) -> tuple[FloatArray, FloatArray]:
        first, second = (dim_zero_cat(part).double().cpu().numpy() for part in (self.first, self.second))
        return first, second

    def _value(self, value: float) -> Tensor:
        return torch.tensor(value, dtype=self.dtype, device=self.device)


class RankAgreement(_OfPairs):
    """Rank correlation of two scores over the same documents: how alike two models order them.

    Args:
        metric: "spearman" (of average ranks) or "kendall" (tau-b).
        **settings: Of `torchmetrics.Metric`.

    Raises:
        ValueError: For another metric; by `compute`, for NaN and for fewer than two documents.

    Source: PRISM, tables 2 and 12; `nonmember.stats.rank_correlation`.

    >>> import torch
    >>> metric = RankAgreement("spearman")
    >>> metric(torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([1.0, 3.0, 2.0, 4.0]))
    tensor(0.8000)
    """

    def __init__(self, metric: RankMetric = "spearman", **settings: Any) -> None:
        super().__init__(**settings)
        check_metric(metric)
        self.metric: RankMetric = metric

    def update(self, first: Tensor, second: Tensor) -> None:
        """Add documents.

        Args:
            first: [N] score under one model.
            second: [N] score of the same documents under the other.

        Raises:
            ValueError: For shapes that differ.
        """
        self._add(first, second, 1, "two scores")

    def compute(self) -> Tensor:
        """In [-1, 1]; NaN where a side is constant."""
        return self._value(stats.rank_correlation(*self._arrays(), self.metric))


class KernelDivergence(_OfPairs):
    """Kernel divergence score: how little tuning on documents changes the similarities of their embeddings.

    Args:
        bandwidth: "per_kernel_median", "pre_only" or "fixed".
        gamma: Above 0, for "fixed" alone.
        **settings: Of `torchmetrics.Metric`.

    Raises:
        ValueError: For a bandwidth and gamma that do not go together.

    Source: `nonmember.stats.kernel_divergence`; docs/methods/kds.md.

    >>> import torch
    >>> metric = KernelDivergence()
    >>> before = torch.eye(3)
    >>> metric(before, before) == 0
    tensor(True)
    """

    def __init__(self, bandwidth: Bandwidth = "per_kernel_median", gamma: float | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        check_bandwidth(bandwidth, gamma)
        self.bandwidth: Bandwidth = bandwidth
        self.gamma = gamma

    def update(self, before: Tensor, after: Tensor) -> None:
        """Add documents.

        Args:
            before: [N, D] embeddings before tuning, of any length: they are scaled to 1.
            after: [N, D] embeddings of the same documents after tuning, likewise.

        Raises:
            ValueError: For shapes that differ.
        """
        self._add(before, after, 2, "embeddings")

    def compute(self) -> Tensor:
        """S <= 0, higher = more of the documents were read; NaN with a warning where there is no score."""
        before, after = (normalize(torch.from_numpy(part), dim=1).numpy() for part in self._arrays())
        found = stats.kernel_divergence(before, after, bandwidth=self.bandwidth, gamma=self.gamma)
        if found.problem:
            rank_zero_warn(f"There is no kernel divergence score: {found.problem}.")
        return self._value(found.score)


class MembershipAUROC(_OfPairs):
    """Area under the ROC curve of a score for telling members from non-members; a tie counts one half.

    Unlike torchmetrics' `BinaryAUROC` it takes scores of any range as they are, where that one squeezes them into
    [0, 1] and so makes ties of large ones.

    Args:
        **settings: Of `torchmetrics.Metric`.

    Raises:
        ValueError: By `compute`, for NaN scores and where members or non-members are missing.

    Source: Hanley and McNeil, 1982; `nonmember.stats.roc_auc`.

    >>> import torch
    >>> metric = MembershipAUROC()
    >>> metric(torch.tensor([0.9, 0.4, 0.6, 0.1]), torch.tensor([1, 1, 0, 0]))
    tensor(0.7500)
    """

    def update(self, scores: Tensor, is_member: Tensor) -> None:
        """Add documents.

        Args:
            scores: [N], higher = more likely a member.
            is_member: [N], 1 or true for members.

        Raises:
            ValueError: For shapes that differ.
        """
        self._add(scores, is_member, 1, "scores and labels")

    def compute(self) -> Tensor:
        """In [0, 1]; 0.5 is chance."""
        return self._value(stats.roc_auc(*self._arrays()))
