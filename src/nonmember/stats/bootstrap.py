"""The paired bootstrap of rank correlations.

PRISM's test: do two scores agree with a third one unequally well, over the same documents? And the interval of
one correlation.

Shapes: N documents, B resamples.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nonmember.stats._arrays import FloatArray, IntArray, as_paired_scores, check_resampling, numbered_clusters
from nonmember.stats.correlation import Ordering, RankMetric, check_metric, correlations_of_counts, rank_correlation
from nonmember.stats.monte_carlo import draws_to_add, monte_carlo_error

# A difference of correlations that is zero in exact arithmetic may come out as 1e-16. One that is not zero is
# at least 3 / n^3 (Spearman without ties), so up to ten thousand documents nothing else is this small.
ZERO_TOLERANCE = 1e-12

_BLOCK_ELEMENTS = 2**19  # documents times resamples of a block: 4 MiB an array
_BATCH_ELEMENTS = 2**16  # of the draws turned into counts at once: they stay in the processor's cache
_SMALLEST_BLOCK = 64  # below this the steps along the order cost more than the work in them


@dataclass(frozen=True, eq=False)
class CorrelationDifference:
    """Difference of two dependent rank correlations, and its bootstrap.

    Attributes:
        statistic: Delta = rho_reference_target - rho_distilled_target of the data themselves.
        p_value: One-sided, small where Delta exceeds `margin`; never 0.
        ci_low: Lower end of the percentile interval of level 1 - alpha over the defined resamples (NaN if there is
            none).
        ci_high: Its upper end.
        num_resamples: Drawn in all: as many as were asked for, or more where p lay near alpha.
        num_undefined: Resamples in which a correlation is undefined because every drawn document ties.
        distribution: [num_resamples] Delta of each resample in the order drawn, NaN where undefined.
    """

    rho_reference_target: float
    rho_distilled_target: float
    statistic: float
    p_value: float
    ci_low: float
    ci_high: float
    num_documents: int
    num_resamples: int
    num_undefined: int
    distribution: FloatArray

    @property
    def undefined_fraction(self) -> float:
        """Share of the resamples without a defined correlation, in [0, 1]."""
        return self.num_undefined / self.num_resamples

    @property
    def p_error(self) -> float:
        """Monte-Carlo standard error of p."""
        return monte_carlo_error(self.p_value, self.num_resamples)


def difference_of_dependent_correlations(
    reference: npt.ArrayLike,
    target: npt.ArrayLike,
    distilled: npt.ArrayLike,
    *,
    metric: RankMetric,
    num_resamples: int,
    alpha: float,
    margin: float,
    rng: np.random.Generator,
    clusters: Sequence[Hashable] | None = None,
) -> CorrelationDifference:
    """One-sided paired bootstrap of Delta = rho(reference, target) - rho(distilled, target).

    H0: Delta <= margin, H1: Delta > margin, so a small p says that the reference orders the documents more like the
    target than the distilled model does, by more than `margin`. A large p says nothing.

    Each resample draws N documents with replacement; the same draw serves both correlations and ranks are
    recomputed within it (average ties; copies of a document tie).

        p = (1 + #{b: Delta^(b) <= margin + 1e-12, or undefined}) / (B + 1)

    While p lies within four standard errors of alpha, B is doubled, up to a million (`monte_carlo.draws_to_add`).

    The interval has the alpha/2 and 1 - alpha/2 quantiles (linear interpolation) of the defined Delta^(b).

    Args:
        reference: [N] one score per document under the reference. Documents are in the same order under all three
            models, and the sign of the scores does not matter as long as all three share it.
        target: [N] the same under the target.
        distilled: [N] the same under the distilled model.
        metric: "spearman" or "kendall".
        num_resamples: B to begin with.
        alpha: Level of the test; the interval is of level 1 - alpha.
        margin: In [0, 2), 0 in the paper.
        rng: Of the resamples.
        clusters: [N] what documents belong together (book, thread): whole clusters are drawn, as many as there are.
            None: each document is drawn by itself.

    Returns:
        Delta with its p and interval; of a constant score NaN, with every resample undefined and p = 1.

    Raises:
        ValueError: On NaN scores, unequal lengths, fewer than two documents and settings out of range.

    Source: PRISM, section 4.3, tables 2 and 3 (Spearman) and 12 (Kendall). The paper does not say what an undefined
    resample counts as (here: against rejection) and knows no margin.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> target = rng.normal(size=200)
    >>> reference, distilled = (target + rng.normal(scale=noise, size=200) for noise in (0.5, 2.0))
    >>> found = difference_of_dependent_correlations(
    ...     reference, target, distilled, metric="spearman", num_resamples=500, alpha=0.05, margin=0.0, rng=rng
    ... )
    >>> round(found.statistic, 3), found.p_value < 0.01
    (0.41, True)
    """
    check_metric(metric)
    check_resampling(num_resamples, alpha)
    _check_margin(margin)
    reference, target, distilled = as_paired_scores(reference=reference, target=target, distilled=distilled)
    cluster_of = None if clusters is None else numbered_clusters(clusters, target.size)
    distribution, more = np.empty(0), num_resamples
    while more:
        reference_rho_B, distilled_rho_B = _resampled_correlations(
            (reference, distilled), target, metric, cluster_of, num_resamples=more, rng=rng
        )
        distribution = np.concatenate([distribution, reference_rho_B - distilled_rho_B])
        p_value = bootstrap_p_value(distribution, margin)
        more = draws_to_add(p_value, distribution.size, alpha)
    ci_low, ci_high = percentile_interval(distribution, alpha)
    rho_reference_target = rank_correlation(reference, target, metric)
    rho_distilled_target = rank_correlation(distilled, target, metric)
    return CorrelationDifference(
        rho_reference_target=rho_reference_target,
        rho_distilled_target=rho_distilled_target,
        statistic=rho_reference_target - rho_distilled_target,
        p_value=p_value,
        ci_low=ci_low,
        ci_high=ci_high,
        num_documents=target.size,
        num_resamples=distribution.size,
        num_undefined=int(np.isnan(distribution).sum()),
        distribution=distribution,
    )


@dataclass(frozen=True, eq=False)
class BootstrapCorrelation:
    """One rank correlation and its bootstrap.

    Attributes:
        statistic: The correlation of the data themselves, in [-1, 1]; NaN if a score is constant.
        ci_low: Lower end of the percentile interval of level 1 - alpha over the defined resamples (NaN if there is
            none).
        ci_high: Its upper end.
        distribution: [num_resamples] correlation in each resample in the order drawn, NaN where undefined.
    """

    statistic: float
    ci_low: float
    ci_high: float
    distribution: FloatArray


def bootstrap_correlation(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    metric: RankMetric,
    num_resamples: int,
    alpha: float,
    rng: np.random.Generator,
) -> BootstrapCorrelation:
    """Percentile interval of the rank correlation of `x` and `y`.

    Resamples, ties and quantiles are those of `difference_of_dependent_correlations`: the same generator draws the same
    documents.

    Args:
        x: [N] one score of each document; only order counts.
        y: [N] another score of the same documents in the same order.
        metric: As in `difference_of_dependent_correlations`.
        num_resamples: As there.
        alpha: As there.
        rng: As there.

    Returns:
        The correlation with its interval, and no p-value; a correlation above zero says little about two models that
        read the same language.

    Raises:
        ValueError: On NaN scores, unequal lengths, fewer than two documents and settings out of range.

    Source: Ours, the resamples of PRISM, section 4.3; rank agreement in docs/methods/rank_agreement.md.

    >>> import numpy as np
    >>> x = np.arange(50.0)
    >>> found = bootstrap_correlation(
    ...     x, np.sqrt(x), metric="kendall", num_resamples=100, alpha=0.05, rng=np.random.default_rng(0)
    ... )
    >>> found.statistic, found.ci_low
    (1.0, 1.0)
    """
    check_metric(metric)
    check_resampling(num_resamples, alpha)
    x, y = as_paired_scores(x=x, y=y)
    (distribution,) = _resampled_correlations((x,), y, metric, None, num_resamples=num_resamples, rng=rng)
    ci_low, ci_high = percentile_interval(distribution, alpha)
    return BootstrapCorrelation(
        statistic=rank_correlation(x, y, metric), ci_low=ci_low, ci_high=ci_high, distribution=distribution
    )


def bootstrap_p_value(distribution: npt.ArrayLike, margin: float) -> float:
    """p = (1 + #{b: Delta^(b) <= margin + 1e-12, or NaN}) / (B + 1).

    Args:
        distribution: [B] Delta^(b).
        margin: In units of Delta. The tolerance keeps a difference that is exactly `margin` on its side of the
            inequality whatever the rounding.

    Returns:
        p in (0, 1]. The added one counts the data themselves, so it is never 0.

    Source: PRISM, section 4.3; docs/methods/prism.md.

    >>> bootstrap_p_value([0.1, 0.2, -0.1], margin=0.0)
    0.5
    """
    differences = np.asarray(distribution, dtype=np.float64)
    num_above = int(np.count_nonzero(differences > margin + ZERO_TOLERANCE))  # NaN is not above
    return (1 + differences.size - num_above) / (differences.size + 1)


def percentile_interval(distribution: FloatArray, alpha: float) -> tuple[float, float]:
    """Percentile interval of level 1 - alpha, from the resamples that are defined.

    Args:
        distribution: [B] the statistic in each resample, NaN where undefined.
        alpha: In (0, 1).

    Returns:
        The alpha/2 and 1 - alpha/2 quantiles (linear interpolation) of what is not NaN; NaN twice if nothing is.

    Raises:
        ValueError: For an alpha below 0 or above 2.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13.

    >>> import numpy as np
    >>> percentile_interval(np.arange(101.0), alpha=0.1)
    (5.0, 95.0)
    """
    defined = distribution[~np.isnan(distribution)]
    if not defined.size:
        return float("nan"), float("nan")
    low, high = np.quantile(defined, (alpha / 2, 1 - alpha / 2))
    return float(low), float(high)


def draw_counts(rng: np.random.Generator, out: FloatArray) -> None:
    """Fill `out` [num_documents, B] with how often each document is drawn in each of B resamples.

    Each resample takes `num_documents` draws with replacement, so every column sums to `num_documents`.
    Filling one array or several that together are as wide gives the same counts.
    """
    num_documents, num_resamples = out.shape
    batch_size = max(1, _BATCH_ELEMENTS // num_documents)
    for start in range(0, num_resamples, batch_size):
        size = min(batch_size, num_resamples - start)
        drawn_BN = rng.integers(num_documents, size=(size, num_documents))
        out[:, start : start + size] = count_draws(drawn_BN, num_documents)


def count_draws(drawn_BN: IntArray, num_documents: int) -> FloatArray:
    """Counts [num_documents, B] of resamples given as document indices [B, draws]; float64 whole numbers."""
    num_resamples = len(drawn_BN)
    cells = drawn_BN + num_documents * np.arange(num_resamples)[:, None]
    counts = np.bincount(cells.ravel(), minlength=num_resamples * num_documents)
    return counts.reshape(num_resamples, num_documents).T.astype(np.float64, order="C")


def _resampled_correlations(
    others: Sequence[FloatArray],
    target: FloatArray,
    metric: RankMetric,
    cluster_of: IntArray | None,
    *,
    num_resamples: int,
    rng: np.random.Generator,
) -> FloatArray:
    """[len(others), B] correlation of each of `others` [N] with `target` [N] in each resample, NaN if undefined."""
    orderings, target_ordering = [Ordering.of(other) for other in others], Ordering.of(target)
    block_size = min(num_resamples, max(_SMALLEST_BLOCK, _BLOCK_ELEMENTS // target.size))
    num_drawn = target.size if cluster_of is None else int(cluster_of.max()) + 1
    buffer_NB = np.empty((num_drawn, block_size))
    correlations = np.empty((len(others), num_resamples))
    for start in range(0, num_resamples, block_size):
        counts_NB = buffer_NB[:, : num_resamples - start]
        draw_counts(rng, out=counts_NB)
        block = slice(start, start + block_size)
        counts_NB = counts_NB if cluster_of is None else counts_NB[cluster_of]
        correlations[:, block] = correlations_of_counts(counts_NB, orderings, target_ordering, metric)
    return correlations


def _check_margin(margin: float) -> None:
    if not 0 <= margin < 2:
        raise ValueError(
            f"Expected a margin 0 <= margin < 2, in units of correlation; got margin={margin}. "
            "Pass 0 for the paper's test; below 0 it would reject where the distilled model agrees better."
        )
