"""Types of arrays, numbers of labels and input checks that the statistics share."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]


def as_scores(name: str, values: npt.ArrayLike) -> FloatArray:
    """[N] float64, one number per document and none of them NaN; `ValueError` otherwise."""
    try:
        scores = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:  # an iterator, a mapping, words
        raise ValueError(f"Expected `{name}` to be a list of numbers; {error}.") from None
    if scores.ndim != 1:
        raise ValueError(
            f"Expected `{name}` to hold one number per document, shape [documents]; "
            f"got shape {scores.shape}. Pass one score of one model at a time."
        )
    missing = np.flatnonzero(np.isnan(scores))
    if missing.size:
        raise ValueError(
            f"Expected a number for every document in `{name}`; {missing.size} of {scores.size} are NaN, "
            f"the first at index {missing[0]}. Leave those documents out of every score that is compared, so "
            "that the rest stay paired, and count them as excluded."
        )
    return scores


def numbered(labels: Iterable[Hashable]) -> IntArray:
    """[N] labels as numbers from 0, in the order in which they first come."""
    number_of: dict[Hashable, int] = {}
    return np.array([number_of.setdefault(item, len(number_of)) for item in labels], dtype=np.int64)


def numbered_clusters(clusters: Sequence[Hashable], num_documents: int, group: str = "") -> IntArray:
    """[N] clusters as numbers; `ValueError` unless there is one for each document and two different ones."""
    group = f" in the {group} group" if group else ""
    if len(clusters) != num_documents:
        raise ValueError(
            f"Expected a cluster for each document{group}; got {len(clusters)} for {num_documents} documents."
        )
    if (number := len(set(clusters))) < 2:
        raise ValueError(
            f"Expected at least 2 clusters{group}; got {number}. Documents of one cluster say nothing of how far "
            "clusters differ: give more, or no clusters where documents were drawn singly."
        )
    return numbered(clusters)


def mean_by_clusters(values: FloatArray, cluster_of: IntArray) -> tuple[float, float, float, int]:
    """Mean of the documents, its standard error by the jackknife over clusters, that one's degrees of freedom, and the
    number of clusters (see `two_groups.mean_difference`)."""
    mean = float(values.mean())
    sums, sizes = np.bincount(cluster_of, weights=values - mean), np.bincount(cluster_of)
    changes = sums / (values.size - sizes)  # of the mean, where a cluster is left out
    number = sums.size
    free = values.size**2 / float(sizes @ sizes) - 1
    return mean, math.sqrt((number - 1) / number * float(changes @ changes)), free, number


def check_level(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise ValueError(f"Expected a level 0 < alpha < 1; got alpha={alpha}. For a 95% interval pass 0.05.")


def check_resampling(num_resamples: int, alpha: float) -> None:
    if num_resamples < 1:
        raise ValueError(f"Expected at least 1 resample; got num_resamples={num_resamples}. Pass 10000 or so.")
    check_level(alpha)


def as_paired_scores(**named: npt.ArrayLike) -> tuple[FloatArray, ...]:
    """Scores of the same documents in the same order, at least two documents; `ValueError` otherwise."""
    scores = {name: as_scores(name, values) for name, values in named.items()}
    lengths = {name: values.size for name, values in scores.items()}
    if len(set(lengths.values())) > 1:
        given = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(
            f"Expected scores of the same documents, hence of equal length; got {given}. "
            "Join the scores on the document id first."
        )
    if min(lengths.values()) < 2:
        raise ValueError(
            f"Expected at least 2 documents; got {min(lengths.values())}. "
            "A comparison over documents needs more of them."
        )
    return tuple(scores.values())
