"""By how much do the means of two groups of documents differ? Welch's test with variances by clusters.

Shapes: N documents of a group.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from nonmember.stats._arrays import FloatArray, as_scores


@dataclass(frozen=True)
class MeanDifference:
    """Difference of the means of two groups, and its test.

    All but the difference and the numbers are NaN where no cluster of either group lies off its group's mean.

    Attributes:
        difference: Mean of the first group less that of the second.
        ci_low: Lower end of its interval of level 1 - alpha.
        ci_high: Upper end of that interval.
        t: Welch's.
        degrees_of_freedom: Welch's.
        p_value: One-sided, small where the first mean is above the second.
        effect_size: The difference in standard deviations of a document, root of the mean of both groups' variances.
        num_clusters: Of each group.
    """

    difference: float
    ci_low: float
    ci_high: float
    t: float
    degrees_of_freedom: float
    p_value: float
    effect_size: float
    num_clusters: tuple[int, int]


def mean_difference(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    first_clusters: Sequence[Hashable],
    second_clusters: Sequence[Hashable],
    *,
    alpha: float,
) -> MeanDifference:
    """Welch's test of H0: E first <= E second, documents of one cluster being no independent draws.

    The variance of a group's mean is the jackknife's over its G clusters, (G - 1) / G sum_g (mean without g - mean)^2
    (CV3 of MacKinnon, Nielsen and Webb 2023, for the mean), and it has as many degrees of freedom as G_eff - 1, where
    G_eff = N^2 / sum_g n_g^2 is the number of equal clusters that are as uneven as these. One large cluster among small
    ones leaves few, and a test that counts G rejects several times too often. Where every document is a cluster by
    itself all this is Welch's test. A cluster in both groups counts in each by itself: the variance is then too large
    where its documents are alike, and the test errs on the safe side.

    Args:
        first: [N] one value per document; lengths of the groups may differ.
        second: [N] one value per document.
        first_clusters: [N] whose document each of `first` is.
        second_clusters: [N] whose document each of `second` is.
        alpha: The interval is of level 1 - alpha.

    Returns:
        The difference in units of the values, with its interval, t and one-sided p.

    Raises:
        ValueError: On NaN or infinite values, on clusters that do not match the documents, and on fewer than two
            clusters in a group.

    Source: Ours; docs/methods/difference_in_differences.md.

    >>> found = mean_difference([3.0, 4.0, 6.0], [1.0, 2.0, 3.0], "abc", "def", alpha=0.05)
    >>> round(found.difference, 3), round(found.t, 3), round(found.p_value, 3)
    (2.333, 2.214, 0.051)
    """
    groups = [_group("first", first, first_clusters), _group("second", second, second_clusters)]
    (mean_1, error_1, free_1, number_1), (mean_2, error_2, free_2, number_2) = map(_mean_by_clusters, groups)
    difference, numbers = mean_1 - mean_2, (number_1, number_2)
    values = [values for values, _ in groups]
    rounding = 4 * np.finfo(np.float64).eps * max(np.abs(item).max() for item in values)
    if max(error_1, error_2) <= rounding:
        nan = math.nan
        return MeanDifference(difference, nan, nan, nan, nan, nan, nan, numbers)
    error = math.hypot(error_1, error_2)
    degrees = error**4 / (error_1**4 / free_1 + error_2**4 / free_2)
    t = difference / error
    reach = float(scipy.stats.t.isf(alpha / 2, degrees)) * error
    spread = math.sqrt(sum(float(item.var(ddof=1)) for item in values) / 2)
    return MeanDifference(
        difference,
        difference - reach,
        difference + reach,
        t,
        degrees,
        float(scipy.stats.t.sf(t, degrees)),
        difference / spread,
        numbers,
    )


def _mean_by_clusters(group: tuple[FloatArray, npt.NDArray[np.int64]]) -> tuple[float, float, float, int]:
    """Mean of the documents, its standard error, that one's degrees of freedom, and the number of clusters."""
    values, clusters = group
    mean = float(values.mean())
    sums, sizes = np.bincount(clusters, weights=values - mean), np.bincount(clusters)
    changes = sums / (values.size - sizes)  # of the mean, where a cluster is left out
    number = sums.size
    free = values.size**2 / float(sizes @ sizes) - 1
    return mean, math.sqrt((number - 1) / number * float(changes @ changes)), free, number


def _group(name: str, values: npt.ArrayLike, clusters: Sequence[Hashable]) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """The values, and the clusters by number."""
    array = as_scores(name, values)
    if not np.isfinite(array).all():
        raise ValueError(
            f"Expected finite values in the {name} group; got {np.count_nonzero(~np.isfinite(array))} that are not. "
            "Leave those documents out and count them."
        )
    if len(clusters) != array.size:
        raise ValueError(
            f"Expected a cluster for each document of the {name} group; got {len(clusters)} for {array.size} documents."
        )
    places = {cluster: index for index, cluster in enumerate(dict.fromkeys(clusters))}
    if len(places) < 2:
        raise ValueError(
            f"Expected at least 2 clusters in the {name} group; got {len(places)}. Documents of one cluster say "
            "nothing of how far clusters differ: give more, or no clusters where documents were drawn singly."
        )
    return array, np.array([places[cluster] for cluster in clusters], dtype=np.int64)
