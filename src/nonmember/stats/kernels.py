"""Kernel divergence: how much fine-tuning a model on documents changes the similarities of their embeddings.

Shapes: N documents, D width of an embedding, P pairs. Some 32 bytes a pair are held: 1.6 GB for 10,000 documents.

Distances are made in double precision, also where embeddings are in single: |a|^2 + |b|^2 - 2 ab cancels where two
documents are alike, and the divergence sums absolute values over all pairs, in which errors do not cancel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from nonmember.checks import require_choice, require_number
from nonmember.records import VectorArray
from nonmember.stats._arrays import FloatArray

Bandwidth = Literal["per_kernel_median", "pre_only", "fixed"]
Points = FloatArray | VectorArray

SMALLEST_DISTANCE = 1e-6  # a median below it: what is told apart is the rounding of the embeddings
LARGEST_DEVIATION = 1e-3  # of a vector's length from 1
ROWS = 1000  # of distances at once


@dataclass(frozen=True)
class KernelDivergence:
    """The divergence of the kernels before and after tuning. NaN throughout where there is a `problem`.

    Attributes:
        score: S <= 0; the higher, the less tuning moved the documents.
        normalizer: E, the root of the sum of the kernel before.
        gamma_before: Bandwidth of the kernel before.
        gamma_after: Bandwidth of the kernel after.
        kernel_before: Smallest and largest value off the diagonal, before.
        kernel_after: Smallest and largest value off the diagonal, after.
        problem: Empty, or why there is no score.
    """

    score: float
    normalizer: float
    gamma_before: float
    gamma_after: float
    kernel_before: tuple[float, float]
    kernel_after: tuple[float, float]
    problem: str


def check_bandwidth(bandwidth: str, gamma: float | None) -> None:
    """Refuse a bandwidth and a gamma that do not go together.

    Raises:
        ValueError: Unless `bandwidth` is one of the three and `gamma` a positive number for "fixed" alone.
    """
    require_choice(bandwidth, get_args(Bandwidth), "bandwidth")
    if bandwidth != "fixed" and gamma is not None:
        raise ValueError(f"gamma is for bandwidth=fixed; {bandwidth} finds its own. Leave it null.")
    if bandwidth == "fixed":
        require_number(gamma, "(0, inf)", "gamma of bandwidth=fixed")


def kernel_divergence(
    before_ND: Points, after_ND: Points, *, bandwidth: Bandwidth, gamma: float | None = None
) -> KernelDivergence:
    """S = -(1/E) sum_ij K_ij |gamma' d'_ij^2 - gamma d_ij^2|,  K_ij = exp(-gamma d_ij^2),  E = sqrt(sum_ij K_ij).

    d and d' are the distances among the embeddings before and after tuning. Since log(K / K') = gamma' d'^2 - gamma
    d^2, this is the sum of |K log(K / K')| without a logarithm that could underflow.

    Args:
        before_ND: [N, D] embeddings, of length 1, of the documents before tuning.
        after_ND: [N, D] embeddings, of length 1, of the same documents in the same order, after tuning.
        bandwidth: gamma = 1 / median of the unsquared distances of all pairs, for each kernel by itself
            ("per_kernel_median") or of those before for both ("pre_only"); or `gamma` for both ("fixed").
        gamma: Above 0, for "fixed" alone.

    Returns:
        S <= 0, higher = more of the documents were read. Fewer than 3 documents, embeddings of zeros, and embeddings
        that are all alike are named as the `problem`.

    Raises:
        ValueError: For embeddings of different documents, or not of length 1, and for a bandwidth and gamma that do not
            go together.

    Source: the KDS program; the poster prints S without the minus and names no gamma (docs/methods/kds.md).

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> before = rng.normal(size=(20, 8))
    >>> after = before + rng.normal(scale=0.1, size=(20, 8))
    >>> before, after = (points / np.linalg.norm(points, axis=1, keepdims=True) for points in (before, after))
    >>> kernel_divergence(before, before, bandwidth="per_kernel_median").score == 0.0
    True
    >>> kernel_divergence(before, after, bandwidth="per_kernel_median").score < 0.0
    True
    """
    check_bandwidth(bandwidth, gamma)
    _check(before_ND, after_ND)
    if problem := _problem(before_ND, after_ND):
        return _without_score(problem)
    before_P, after_P = squared_distances(before_ND), squared_distances(after_ND)
    own = {"before": before_P, "after": after_P} if bandwidth == "per_kernel_median" else {"before": before_P}
    medians = {} if gamma is not None else {when: float(np.median(np.sqrt(of_P))) for when, of_P in own.items()}
    for when, median in medians.items():
        if median < SMALLEST_DISTANCE:
            return _without_score(f"at least half of the pairs have the same embedding {when} tuning")
    gamma_before = 1 / medians["before"] if gamma is None else gamma
    gamma_after = 1 / medians["after"] if "after" in medians else gamma_before
    before_P *= gamma_before
    after_P *= gamma_after
    kernel_P, kernel_after = np.exp(-before_P), np.exp([-after_P.max(), -after_P.min()])
    # Of one side of the diagonal, which is 1 each and moves nothing.
    normalizer = math.sqrt(len(before_ND) + 2 * float(kernel_P.sum()))
    return KernelDivergence(
        score=-2 * float(kernel_P @ abs(after_P - before_P)) / normalizer,  # abs() works in the difference's memory
        normalizer=normalizer,
        gamma_before=gamma_before,
        gamma_after=gamma_after,
        kernel_before=(float(kernel_P.min()), float(kernel_P.max())),
        kernel_after=(float(kernel_after[0]), float(kernel_after[1])),
        problem="",
    )


def squared_distances(points_ND: Points) -> FloatArray:
    """[P] float64, of each pair of documents once."""
    points_ND = points_ND.astype(np.float64, copy=False)
    squares_N = np.square(points_ND).sum(axis=1)
    pairs = []
    for start in range(0, len(points_ND), ROWS):
        block = slice(start, start + ROWS)
        squared_RN = squares_N[block, None] + squares_N[start:] - 2 * points_ND[block] @ points_ND[start:].T
        pairs.append(np.maximum(squared_RN[np.tri(*squared_RN.shape) == 0], 0.0))  # below 0 by rounding
    return np.concatenate(pairs)


# ------------------------------------------------------------------------------------------------------- the inputs


def _check(before_ND: Points, after_ND: Points) -> None:
    if before_ND.ndim != 2 or before_ND.shape[0] != after_ND.shape[0] or after_ND.ndim != 2:
        raise ValueError(
            "Expected embeddings [documents, width] of the same documents before and after tuning; got shapes "
            f"{before_ND.shape} and {after_ND.shape}. Join them on the document id first."
        )
    for points_ND in (before_ND, after_ND):
        lengths_N = _lengths(points_ND)
        if not (np.abs(lengths_N[lengths_N != 0] - 1) < LARGEST_DEVIATION).all():
            raise ValueError("Expected embeddings of length 1 (or 0); scale each to that, and leave out NaN.")


def _problem(before_ND: Points, after_ND: Points) -> str:
    if len(before_ND) < 3:
        return f"{len(before_ND)} documents are too few: a kernel over documents needs at least 3"
    num_zero = np.count_nonzero((_lengths(before_ND) == 0) | (_lengths(after_ND) == 0))
    return f"{num_zero} of {len(before_ND)} embeddings are zero and have no direction" if num_zero else ""


def _lengths(points_ND: Points) -> FloatArray:
    """[N], NaN where a number of the vector is."""
    return np.asarray(np.linalg.norm(points_ND.astype(np.float64, copy=False), axis=1))


def _without_score(problem: str) -> KernelDivergence:
    nan = math.nan
    return KernelDivergence(nan, nan, nan, nan, (nan, nan), (nan, nan), problem)
