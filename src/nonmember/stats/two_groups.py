"""Do two groups of documents differ in a value? Welch's t-test, how well the value tells the groups apart, and a
bootstrap of documents within each group.

Shapes: N documents of a group, B resamples, V different values of both groups together.

DE-COP resamples ten times and reports mean and standard deviation of an "AUC" that is the area under the ROC curve of
the thresholded values, hence best balanced accuracy. Here it is called by that name, and the ROC area stands beside it.
The p-values that it prints are near those of one Welch test that counts each document once, as the test here does; its
programs contain no test.

`mean_difference` has variances by clusters.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from nonmember.stats._arrays import FloatArray, IntArray, as_scores, mean_by_clusters, numbered_clusters
from nonmember.stats.bootstrap import draw_counts, percentile_interval
from nonmember.stats.classification import best_balanced_accuracy, best_threshold, roc_auc
from nonmember.stats.monte_carlo import PermutationP, permutation_p


@dataclass(frozen=True)
class ResampledSpread:
    """Mean and standard deviation (N - 1) over some resamples or repetitions; NaN of a single one."""

    mean: float
    sd: float


@dataclass(frozen=True, eq=False)
class GroupComparison:
    """A value in two groups, of which the first is expected to have the higher values.

    Attributes:
        difference: Of the means, first minus second.
        ci_low: Lower end of its percentile interval of level 1 - alpha.
        ci_high: Upper end of that interval.
        t: Welch's, NaN where neither group has any spread.
        degrees_of_freedom: Welch's, NaN likewise.
        p_value: Two-sided, NaN likewise.
        p_value_greater: One-sided, small where the first mean is above the second.
        best_balanced_accuracy: With its threshold chosen on these very values.
        threshold: A document at or above it is taken for one of the first group.
        roc_auc: Area under the ROC curve.
        auc_low: Lower end of its percentile interval.
        auc_high: Upper end of that interval.
        few: name -> mean and sd over the first resamples alone, as many as the paper draws: best_balanced_accuracy,
            roc_auc and mean_first.
        distribution: [B] differences of the means.
    """

    num_first: int
    num_second: int
    mean_first: float
    mean_second: float
    difference: float
    ci_low: float
    ci_high: float
    t: float
    degrees_of_freedom: float
    p_value: float
    p_value_greater: float
    best_balanced_accuracy: float
    threshold: float
    roc_auc: float
    auc_low: float
    auc_high: float
    few: dict[str, ResampledSpread]
    distribution: FloatArray


def compare_groups(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    num_resamples: int,
    num_few: int,
    alpha: float,
    rng: np.random.Generator,
) -> GroupComparison:
    """Welch's t-test, ROC area and balanced accuracy of a value in two groups, and a bootstrap within each group.

    Args:
        first: [N] one value per document (book, paper, ...), at least two; lengths of the groups may differ.
        second: [N] the same of the second group.
        num_resamples: B.
        num_few: Of the first resamples that are reported by themselves, as the paper does.
        alpha: Intervals are of level 1 - alpha.
        rng: Of the resamples.

    Returns:
        The difference of the means in units of the values, its test, and how well the value tells the groups apart.

    Raises:
        ValueError: On NaN or infinite values, on fewer than two in a group, where num_few < 2 or num_few >
            num_resamples, and for an alpha below 0 or above 2.

    Source: DE-COP; docs/methods/decop.md says where this differs.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> found = compare_groups(
    ...     rng.normal(1.0, 1.0, 40), rng.normal(0.0, 1.0, 40), num_resamples=200, num_few=10, alpha=0.05, rng=rng
    ... )
    >>> found.difference > found.ci_low > 0, round(found.roc_auc, 2)
    (True, 0.67)
    """
    first, second = _group("first", first), _group("second", second)
    if not 2 <= num_few <= num_resamples:
        raise ValueError(
            f"Expected 2 <= num_few <= num_resamples; got {num_few} and {num_resamples}. Pass 10 and 10000 or so."
        )
    labels = np.repeat([1, 0], [first.size, second.size])
    values = np.concatenate([first, second])
    welch = welch_t(first, second)
    resampled = _resampled(first, second, num_resamples, rng)
    ci_low, ci_high = percentile_interval(resampled["difference"], alpha)
    auc_low, auc_high = percentile_interval(resampled["roc_auc"], alpha)
    few = {
        name: ResampledSpread(float(resampled[name][:num_few].mean()), float(resampled[name][:num_few].std(ddof=1)))
        for name in ("best_balanced_accuracy", "roc_auc", "mean_first")
    }
    return GroupComparison(
        num_first=first.size,
        num_second=second.size,
        mean_first=float(first.mean()),
        mean_second=float(second.mean()),
        difference=float(first.mean() - second.mean()),
        ci_low=ci_low,
        ci_high=ci_high,
        t=welch.t,
        degrees_of_freedom=welch.degrees_of_freedom,
        p_value=welch.p_value,
        p_value_greater=welch.p_value_greater,
        best_balanced_accuracy=best_balanced_accuracy(values, labels),
        threshold=best_threshold(values, labels),
        roc_auc=roc_auc(values, labels),
        auc_low=auc_low,
        auc_high=auc_high,
        few=few,
        distribution=resampled["difference"],
    )


class Welch(NamedTuple):
    """t > 0 where the first mean is above the second; all NaN where neither group has any spread."""

    t: float
    degrees_of_freedom: float
    p_value: float
    p_value_greater: float


def welch_t(first: npt.ArrayLike, second: npt.ArrayLike) -> Welch:
    """Welch's t-test of two groups of documents.

    Args:
        first: [N] as in `compare_groups`.
        second: [N] as in `compare_groups`.

    Returns:
        t with p two-sided, and one-sided for a higher first mean.

    Raises:
        ValueError: On NaN or infinite values, and on fewer than two in a group.

    Source: Welch, Biometrika 34, 1947; the test of DE-COP (docs/methods/decop.md).

    >>> round(welch_t([3.0, 4.0, 6.0], [1.0, 2.0, 3.0]).p_value, 3)
    0.102
    """
    first, second = _group("first", first), _group("second", second)
    rounding = 4 * np.finfo(np.float64).eps * max(np.abs(first).max(), np.abs(second).max())
    if np.ptp(first) <= rounding and np.ptp(second) <= rounding:
        return Welch(math.nan, math.nan, math.nan, math.nan)
    numbers = [number for group in (first, second) for number in (group.mean(), group.std(ddof=1), group.size)]
    two_sided, greater = (
        # From mean and deviation: given the values, SciPy warns of a group that does not vary.
        scipy.stats.ttest_ind_from_stats(*numbers, equal_var=False, alternative=alternative)
        for alternative in ("two-sided", "greater")
    )
    share, other = first.var(ddof=1) / first.size, second.var(ddof=1) / second.size
    degrees = (share + other) ** 2 / (share**2 / (first.size - 1) + other**2 / (second.size - 1))
    return Welch(float(two_sided.statistic), float(degrees), float(two_sided.pvalue), float(greater.pvalue))


def _group(name: str, values: npt.ArrayLike) -> FloatArray:
    array = as_scores(name, values)
    if array.size < 2 or not np.isfinite(array).all():
        raise ValueError(
            f"Expected at least 2 documents in the {name} group, each with a finite value; got {array.size} of which "
            f"{np.count_nonzero(~np.isfinite(array))} are not finite. Give more documents, or leave those out."
        )
    return array


def _resampled(
    first: FloatArray, second: FloatArray, num_resamples: int, rng: np.random.Generator
) -> dict[str, FloatArray]:
    """[B] of each quantity; documents are drawn with replacement within each group."""
    values = np.unique(np.concatenate([first, second]))
    counts = [np.empty((group.size, num_resamples)) for group in (first, second)]
    for item in counts:
        draw_counts(rng, out=item)
    means = [group @ count_NB / group.size for group, count_NB in zip((first, second), counts, strict=True)]
    shares = []  # [V, B] of a group's draws, by value from the highest to the lowest
    for group, count_NB in zip((first, second), counts, strict=True):
        share_VB = np.zeros((values.size, num_resamples))
        np.add.at(share_VB, values.size - 1 - np.searchsorted(values, group), count_NB / group.size)
        shares.append(share_VB)
    tpr_VB, fpr_VB = (np.cumsum(share_VB, axis=0) for share_VB in shares)
    # Of each of the second group's draws, those of the first that lie above it; ties count one half.
    above_VB = tpr_VB - shares[0] / 2
    return {
        "difference": means[0] - means[1],
        "mean_first": means[0],
        "best_balanced_accuracy": np.clip((1 + (tpr_VB - fpr_VB).max(axis=0)) / 2, 0.5, 1.0),
        "roc_auc": np.clip((above_VB * shares[1]).sum(axis=0), 0.0, 1.0),  # sums of shares may round beyond 1
    }


# Means, with variances by clusters ------------------------------------------------------------------------------------


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
    groups = [_clustered("first", first, first_clusters), _clustered("second", second, second_clusters)]
    (mean_1, error_1, free_1, number_1), (mean_2, error_2, free_2, number_2) = (
        mean_by_clusters(*item) for item in groups
    )
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


def permuted_mean_difference(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    first_clusters: Sequence[Hashable],
    second_clusters: Sequence[Hashable],
    *,
    num_permutations: int,
    alpha: float,
    rng: np.random.Generator,
    strata: Sequence[Hashable] | None = None,
) -> PermutationP:
    """Studentized permutation test of H0: documents of both groups are alike, against a higher mean of the first.

    Whole clusters change groups. The statistic is the t of `mean_difference`. The test is exact where the clusters of
    both groups are exchangeable, and asymptotically valid where only their means are equal (Janssen 1997): Welch's t
    distribution rejects 8 to 16% at 5% for skewed values and groups of unequal size, this 4.4 to 5.6%
    (docs/methods/conventions.md). A cluster in both groups counts in each by itself, which errs on the safe side.

    Args:
        first: [N] as in `mean_difference`.
        second: [N] as there.
        first_clusters: [N] as there.
        second_clusters: [N] as there.
        num_permutations: To begin with (`monte_carlo.permutation_p`).
        alpha: Level of the test.
        rng: Of the permutations.
        strata: [N of the first, then of the second] within which alone clusters change groups; a cluster is of its
            first document's.

    Returns:
        The one-sided p, small where the first mean is above the second.

    Raises:
        ValueError: As `mean_difference`.

    Source: Janssen, Statistics & Probability Letters 36, 1997; docs/methods/difference_in_differences.md.

    >>> rng = np.random.default_rng(0)
    >>> found = permuted_mean_difference([3, 4, 6], [1, 2, 3], "abc", "def", num_permutations=99, alpha=0.05, rng=rng)
    >>> found
    PermutationP(p_value=0.1, num_draws=None)
    """
    groups = [_clustered("first", first, first_clusters), _clustered("second", second, second_clusters)]
    centre = np.concatenate([values for values, _ in groups]).mean()
    sums_G, sizes_G = (
        np.concatenate([np.bincount(of, weights=weights) for (_, of), weights in zip(groups, pair, strict=True)])
        for pair in ([values - centre for values, _ in groups], [np.ones(values.size) for values, _ in groups])
    )
    number = int(groups[0][1].max()) + 1
    rounding = 1e-12 * float(np.abs(sums_G).sum()) / float(sizes_G.sum())

    def mean_and_variance(drawn: npt.NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
        """[B] each, of groups of drawn clusters [B, G]: the jackknife of `mean_by_clusters`."""
        sums_BG, sizes_BG = sums_G[drawn], sizes_G[drawn]
        total_B = sizes_BG.sum(axis=-1)
        mean_B = sums_BG.sum(axis=-1) / total_B
        changes_BG = (sums_BG - mean_B[..., None] * sizes_BG) / (total_B[..., None] - sizes_BG)
        return mean_B, (1 - 1 / drawn.shape[-1]) * (changes_BG**2).sum(axis=-1)

    def t(x: FloatArray, y: FloatArray, axis: int) -> FloatArray:
        (mean_x, variance_x), (mean_y, variance_y) = (mean_and_variance(item.astype(np.int64)) for item in (x, y))
        return np.asarray((mean_x - mean_y) / np.sqrt(variance_x + variance_y + rounding**2))

    clusters, strata_G = np.arange(sums_G.size), None
    if strata is not None:
        first_of = [np.unique(of, return_index=True)[1] for _, of in groups]
        named = [strata[index] for index in (*first_of[0], *(first_of[1] + groups[0][0].size))]
        strata_G = np.unique(np.array(list(map(str, named))), return_inverse=True)[1]
    return permutation_p(
        clusters[:number],
        clusters[number:],
        t,
        num_permutations=num_permutations,
        alpha=alpha,
        rng=rng,
        strata=strata_G,
    )


def _clustered(name: str, values: npt.ArrayLike, clusters: Sequence[Hashable]) -> tuple[FloatArray, IntArray]:
    """The values, and the clusters by number."""
    array = as_scores(name, values)
    if not np.isfinite(array).all():
        raise ValueError(
            f"Expected finite values in the {name} group; got {np.count_nonzero(~np.isfinite(array))} that are not. "
            "Leave those documents out and count them."
        )
    return array, numbered_clusters(clusters, array.size, name)
