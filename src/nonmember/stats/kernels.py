"""Kernel divergence: how much fine-tuning a model on documents changes the similarities of their embeddings.

Shapes: N documents, D width of an embedding, B rows of a block, P pairs.

Nothing of size N x N is ever there. Each pair of documents is looked at once, a block of rows against a block of rows
at a time, so memory is the embeddings and a few blocks, however many documents there are.

Distances are made in double precision, also where embeddings are in single: |a|^2 + |b|^2 - 2 ab cancels where two
documents are alike, and the divergence sums absolute values over all pairs, in which errors do not cancel. In single
precision an error of some 1e-7 in each squared distance adds up to about N times that in the divergence, which after
a short tuning is as large as the divergence itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from nonmember.checks import require_choice, require_count, require_number
from nonmember.records import VectorArray
from nonmember.stats._arrays import FloatArray, IntArray

Bandwidth = Literal["per_kernel_median", "pre_only", "fixed"]
Points = FloatArray | VectorArray

BLOCK_ROWS = 1024  # bounds memory, and moves no result beyond rounding
SMALLEST_DISTANCE = 1e-6  # a median below it: what is told apart is the rounding of the embeddings
LARGEST_DEVIATION = 1e-3  # of a vector's length from 1
EVERYWHERE = 0.0, 8.0  # where squared distances of vectors of length 1 lie, with room to spare
NUM_GUESSED = 2**16  # pairs by which it is guessed where the median lies
NUM_KEPT = 2**23  # distances at most that are held at once in finding it
NUM_BINS = 2**12  # of the histogram by which it is narrowed down where these are too few


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
    before_ND: Points,
    after_ND: Points,
    *,
    bandwidth: Bandwidth,
    gamma: float | None = None,
    block_rows: int = BLOCK_ROWS,
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
        block_rows: Documents compared at a time; it bounds memory, and moves no result beyond rounding.

    Returns:
        S <= 0, higher = more of the documents were read. Fewer than 3 documents, embeddings of zeros, and embeddings
        that are all alike are named as the `problem`.

    Raises:
        ValueError: For embeddings of different documents, or not of length 1, for a bandwidth and gamma that do not go
            together, and for fewer than one row.

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
    require_count(block_rows, 1, "block_rows")
    if problem := _problem(before_ND, after_ND):
        return _without_score(problem)
    medians = {}
    if gamma is None:
        medians["before"] = median_distance(before_ND, block_rows=block_rows)
        if bandwidth == "per_kernel_median":
            medians["after"] = median_distance(after_ND, block_rows=block_rows)
    for when, median in medians.items():
        if median < SMALLEST_DISTANCE:
            return _without_score(f"at least half of the pairs have the same embedding {when} tuning")
    gamma_before = 1 / medians["before"] if gamma is None else gamma
    gamma_after = 1 / medians["after"] if "after" in medians else gamma_before
    return _divergence(before_ND, after_ND, gamma_before, gamma_after, block_rows)


def _divergence(
    before_ND: Points, after_ND: Points, gamma_before: float, gamma_after: float, block_rows: int
) -> KernelDivergence:
    moved, mass = [], []  # of one side of the diagonal
    limits = np.array([[math.inf, -math.inf]] * 2)  # of the exponents
    pairs = zip(*(squared_distances(points, block_rows) for points in (before_ND, after_ND)), strict=True)
    for before_P, after_P in pairs:
        before_P *= gamma_before
        after_P *= gamma_after
        for limit, exponent_P in zip(limits, (before_P, after_P), strict=True):
            limit[:] = min(limit[0], exponent_P.min()), max(limit[1], exponent_P.max())
        after_P -= before_P
        np.abs(after_P, out=after_P)
        kernel_P = np.exp(np.negative(before_P, out=before_P), out=before_P)
        mass.append(float(kernel_P.sum()))
        after_P *= kernel_P
        moved.append(float(after_P.sum()))
    normalizer = math.sqrt(len(before_ND) + 2 * math.fsum(mass))  # the diagonal is 1 each, and moves nothing
    smallest, largest = np.exp(-limits[:, 1]), np.exp(-limits[:, 0])
    return KernelDivergence(
        score=-2 * math.fsum(moved) / normalizer,
        normalizer=normalizer,
        gamma_before=gamma_before,
        gamma_after=gamma_after,
        kernel_before=(float(smallest[0]), float(largest[0])),
        kernel_after=(float(smallest[1]), float(largest[1])),
        problem="",
    )


def squared_distances(points_ND: Points, block_rows: int) -> Iterator[FloatArray]:
    """[P] float64, of each pair of documents once, in blocks; at least one in each. The arrays are the caller's."""
    squares_N = _squares(points_ND)
    starts = range(0, len(points_ND), block_rows)
    for number, start in enumerate(starts):
        rows = slice(start, start + block_rows)
        rows_BD = points_ND[rows].astype(np.float64, copy=False)
        for other in starts[number:]:
            columns = slice(other, other + block_rows)
            columns_BD = rows_BD if other == start else points_ND[columns].astype(np.float64, copy=False)
            squared_BB = rows_BD @ columns_BD.T
            squared_BB *= -2
            squared_BB += squares_N[rows, None]
            squared_BB += squares_N[columns]
            np.maximum(squared_BB, 0, out=squared_BB)  # rounding
            pairs_P = squared_BB[np.triu_indices(len(squared_BB), k=1)] if other == start else squared_BB.ravel()
            if len(pairs_P):
                yield pairs_P


def _squares(points_ND: Points) -> FloatArray:
    """[N] float64, of the lengths."""
    sums = [np.square(block, dtype=np.float64).sum(axis=1) for block in _blocks(points_ND, BLOCK_ROWS)]
    return np.concatenate([np.zeros(0), *sums])


def _blocks(rows: npt.NDArray[Any], block_rows: int) -> Iterator[npt.NDArray[Any]]:
    return (rows[start : start + block_rows] for start in range(0, len(rows), block_rows))


# ------------------------------------------------------------------------------------------------------- the median


def median_distance(points_ND: Points, *, block_rows: int = BLOCK_ROWS) -> float:
    """The exact median of the unsquared distances of all pairs, usually from a single pass over them.

    A sample of pairs says about where the median lies; a pass counts the distances below that and keeps the few that
    are there. Where there are too many, or none, it looks closer, or further.

    Args:
        points_ND: Of length 1.
    """
    num_pairs = len(points_ND) * (len(points_ND) - 1) // 2
    middle = sorted({(num_pairs - 1) // 2, num_pairs // 2})
    guess = EVERYWHERE if num_pairs <= NUM_KEPT else _about_the_middle(points_ND)
    found = select(lambda: squared_distances(points_ND, block_rows), middle, *guess)
    return sum(map(math.sqrt, found)) / len(found)


def _about_the_middle(points_ND: Points) -> tuple[float, float]:
    """Between which squared distances the median probably lies, from random pairs. No result depends on the draw."""
    rng, number = np.random.default_rng(0), len(points_ND)
    one_P = rng.integers(number, size=NUM_GUESSED)
    other_P = (one_P + rng.integers(1, number, size=NUM_GUESSED)) % number
    sample = np.concatenate(
        [
            np.square(points_ND[items] - points_ND[others], dtype=np.float64).sum(axis=1)
            for items, others in zip(_blocks(one_P, BLOCK_ROWS), _blocks(other_P, BLOCK_ROWS), strict=True)
        ]
    )
    margin = 2.5 / math.sqrt(NUM_GUESSED)  # five standard deviations of the rank
    low, high = np.quantile(sample, (0.5 - margin, 0.5 + margin))
    return float(low), float(high)


def select(blocks: Callable[[], Iterator[FloatArray]], ranks: Sequence[int], low: float, high: float) -> list[float]:
    """The values at some ranks, counted from 0, among a stream of squared distances that can be read again.

    Args:
        low: From where on they are thought to be; an error here or in `high` costs further passes and nothing else.
        high: Up to where they are thought to be.
    """
    found = _between(blocks(), low, high)
    if not all(found.holds(rank) for rank in ranks):
        assert (low, high) != EVERYWHERE
        return select(blocks, ranks, *EVERYWHERE)
    if found.kept is not None:
        return found.at(ranks)
    closer = [select(blocks, [rank], *found.bin_of(rank)) for rank in ranks]
    return [value for values in closer for value in values]


@dataclass(frozen=True)
class _Between:
    """How many numbers of a stream are below `low`, equal to it, between it and `high`, and equal to that.

    kept: those between; None where these are too many, and then `counts` is their histogram over `edges`.
    """

    low: float
    high: float
    below: int
    at_low: int
    inside: int
    at_high: int
    kept: FloatArray | None
    edges: FloatArray
    counts: IntArray

    def holds(self, rank: int) -> bool:
        return self.below <= rank < self.below + self.at_low + self.inside + self.at_high

    def at(self, ranks: Sequence[int]) -> list[float]:
        assert self.kept is not None
        shifted = [rank - self.below - self.at_low for rank in ranks]
        inside = [item for item in shifted if 0 <= item < self.inside]
        ordered = np.partition(self.kept, inside) if inside else self.kept
        return [float(ordered[item]) if item in inside else self.low if item < 0 else self.high for item in shifted]

    def bin_of(self, rank: int) -> tuple[float, float]:
        """A smaller interval that holds the rank, down to a single number."""
        shifted = rank - self.below - self.at_low
        if shifted < 0 or shifted >= self.inside:
            return (self.low, self.low) if shifted < 0 else (self.high, self.high)
        index = int(np.searchsorted(np.cumsum(self.counts), shifted, side="right"))
        return float(self.edges[index]), float(self.edges[index + 1])


def _between(blocks: Iterator[FloatArray], low: float, high: float) -> _Between:
    below = at_low = inside = at_high = 0
    edges, counts = np.linspace(low, high, NUM_BINS + 1), np.zeros(NUM_BINS, np.int64)
    waiting: list[FloatArray] = []
    for values in blocks:
        below += int(np.count_nonzero(values < low))
        at_low += int(np.count_nonzero(values == low))
        if high > low:
            at_high += int(np.count_nonzero(values == high))
            between = values[(values > low) & (values < high)]
            inside += len(between)
            waiting.append(between)
            if inside > NUM_KEPT:
                counts += sum(np.histogram(part, edges)[0] for part in waiting)
                waiting.clear()
    kept = None if inside > NUM_KEPT else np.concatenate([np.zeros(0), *waiting])
    return _Between(low, high, below, at_low, inside, at_high, kept, edges, counts)


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
    lengths_N: FloatArray = np.sqrt(_squares(points_ND))
    return lengths_N


def _without_score(problem: str) -> KernelDivergence:
    nan = math.nan
    return KernelDivergence(nan, nan, nan, nan, (nan, nan), (nan, nan), problem)
