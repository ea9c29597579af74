"""Delta with its two sources of error: documents and distillation seeds.

Delta_s = rho(reference, target) - rho(distilled_s, target), one for each distilled reference s; these differ in nothing
but the seed of their distillation. Delta is their mean. Other documents would have given another Delta, and so would
other seeds. Larger Delta is evidence of non-membership.

**Variance.** Documents and seeds are crossed, like cases and readers in studies of diagnostic imaging, and the variance
is the one used there. With G clusters of documents, S seeds, and as a table of clusters by seeds the jackknife's
pseudo-values G Delta_s - (G - 1) Delta_s(without cluster g),

    Var(Delta) = documents + seeds
    documents  = max(J - I, 0)   J: jackknife variance of Delta over clusters, at these seeds
                                 I: residual mean square of the table / (G S), particular to a cluster and a seed
    seeds      = s^2 / S         s: standard deviation of the Delta_s at these documents; I is part of it already
    df         = (documents + seeds)^2 / (J^2 / (G - 1) + seeds^2 / (S - 1))

(Dorfman, Berbaum and Metz, Investigative Radiology 27, 1992; degrees of freedom after Satterthwaite, in the manner of
Hillis, Statistics in Medicine 26, 2007.) One seed tells nothing about the variance of seeds, which is NaN then.

**Test.** H0: Delta <= margin. A correlation near 1 varies less than one further down, so the plain t of Delta - margin
is skew: it rejects a true margin of .1 in some 2% of cases at a nominal 5%. Therefore the correlations are compared on
Fisher's scale, with z_R = arctanh rho(reference, target) and z_D = arctanh of the mean rho(distilled_s, target): how
far is their difference from the one that would make Delta the margin, with z_R + z_D as it is?

    h = z_R - z_D - w,    where tanh((z_R + z_D + w) / 2) - tanh((z_R + z_D - w) / 2) = margin, which is solved by
    w = arcsinh(margin cosh(z_R + z_D) / sqrt(4 - margin^2)) + arctanh(margin / 2).

h, with the jackknife's correction of its bias, is divided by the root of its variance, which is the one above on this
scale, and referred to t. The interval holds the margins that are rejected on neither side. Where its ends are looked
for is part of it, since p need not rise all the way: from Delta outwards, by steps that begin with Delta's standard
error and double.

**Error rate** at a nominal 5%, measured on Gaussian copulas for margins 0 and .1 with 100 and 500 documents, alone and
in clusters of 10 (tests/stats/test_crossed.py): with 3 or 5 seeds 4.1 to 6.2%, but 3.5% for 3 seeds and 10 clusters
where seeds differ from document to document; 3.1 to 4.9% for Kendall. One seed is as good where seeds make no
difference; where they matter more than 500 documents do, it errs in 17 to 28% of cases.

Shapes: N documents, S seeds, G clusters, B resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from nonmember.stats._arrays import FloatArray, IntArray, as_paired_scores, check_resampling, numbered
from nonmember.stats.bootstrap import count_draws, draw_counts
from nonmember.stats.correlation import Ordering, RankMetric, check_metric, correlations_of_counts

FEW_CLUSTERS = 10  # the error rate was measured from here on
ONE_SEED = (
    "One distilled reference: how much Delta varies from one distillation to the next is unknown. The p-value and the "
    "interval speak of this distilled reference alone."
)

_BLOCK_ELEMENTS = 2**19  # documents times resamples of a block: 4 MiB an array
_END = 2.0  # of differences of correlations
_SMALLEST_STEP = 1e-6  # in the search for an end of the interval


@dataclass(frozen=True, eq=False)
class TwoWay:
    """Delta, what it is uncertain by, and its test against any margin.

    Attributes:
        statistic: Delta, the mean of `deltas`.
        deltas: [S] Delta for each seed.
        rho_reference_target: The correlation with the reference that `deltas` come from.
        rho_distilled_target: [S] those with the distilled references.
        variance_documents: Of Delta, due to documents, see the module; it and `variance_seeds` add up.
        variance_seeds: Of Delta, due to seeds. NaN with one seed.
        df: Of the sum of the two variances.
        ci_low: Lower end of the interval of level 1 - alpha: the margins that `p_value` rejects on neither side at
            alpha / 2.
        ci_high: Its upper end.
        distribution: [B] Delta of resampled clusters and resampled seeds, NaN where undefined. To be looked at: it is
            narrower than the truth where clusters or seeds are few.
        warnings: Why the error rate may not be the nominal one; empty if nothing speaks against it.
    """

    statistic: float
    deltas: FloatArray
    rho_reference_target: float
    rho_distilled_target: FloatArray
    variance_documents: float
    variance_seeds: float
    df: float
    ci_low: float
    ci_high: float
    num_documents: int
    num_clusters: int
    alpha: float
    metric: RankMetric
    distribution: FloatArray
    warnings: tuple[str, ...]
    jackknife: Jackknife  # what the test is made from, whatever the margin

    @property
    def num_seeds(self) -> int:
        """S."""
        return self.deltas.size

    @property
    def num_resamples(self) -> int:
        """B."""
        return self.distribution.size

    @property
    def num_undefined(self) -> int:
        """Resamples in which a correlation is undefined because every drawn document ties."""
        return int(np.isnan(self.distribution).sum())

    @property
    def standard_error(self) -> float:
        """Of Delta: root of the two variances; with one seed that of the documents alone."""
        return float(np.sqrt(self.variance_documents + (self.variance_seeds if self.num_seeds > 1 else 0.0)))

    @property
    def share_of_seeds(self) -> float:
        """Part of the variance of Delta that is due to the seeds, in [0, 1]; NaN with one seed or without variance."""
        total = self.variance_documents + self.variance_seeds
        return self.variance_seeds / total if total > 0 else float("nan")

    def p_value(self, margin: float) -> float:
        """One-sided p of H0: Delta <= margin, small where Delta exceeds the margin; see the module.

        1 where the test is undefined (constant scores, no variance at all, or a correlation of 1 or -1), and for a
        margin of 2 or more, which no difference of correlations exceeds: a few widely spread controls can put one
        there.

        Raises:
            ValueError: For a margin of -2 or less.
        """
        if margin >= 2:
            return 1.0
        if not margin > -2:
            raise ValueError(f"Expected a margin above -2, in units of correlation; got {margin}.")
        tail = self.jackknife.upper_tail(margin)
        return 1.0 if np.isnan(tail) else tail


def two_way(
    reference_N: npt.ArrayLike,
    target_N: npt.ArrayLike,
    distilled_SN: FloatArray | Sequence[npt.ArrayLike],
    clusters: Sequence[Hashable],
    *,
    metric: RankMetric,
    num_resamples: int,
    alpha: float,
    rng: np.random.Generator,
) -> TwoWay:
    """Delta of one suspect set under one target, with its error over documents and distillation seeds.

    Args:
        reference_N: [N] one score per document under the reference.
        target_N: [N] one score per document under the target.
        distilled_SN: [S, N] under each distilled reference.
        clusters: [N] what documents belong together (book, author, thread); `range(N)` where each stands alone.
        metric: "spearman" or "kendall".
        num_resamples: Of `distribution`.
        alpha: Of the interval.
        rng: Of `distribution`; nothing else is random.

    Returns:
        Delta in [-2, 2], its variance by source, and its test against any margin. The sign of the scores does not
        matter as long as all share it. Constant scores leave the statistic NaN and p = 1.

    Raises:
        ValueError: On NaN scores, unequal lengths, no distilled reference, fewer than two clusters, and settings out of
            range.

    Source: PRISM for Delta; Dorfman, Berbaum and Metz, 1992, and Hillis, 2007, for the variance; the test is ours. See
    the module; docs/methods/clearance.md.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> target = rng.normal(size=100)
    >>> reference = target + rng.normal(scale=0.5, size=100)
    >>> distilled = target + rng.normal(scale=2.0, size=(3, 100))
    >>> found = two_way(
    ...     reference, target, distilled, range(100), metric="spearman", num_resamples=100, alpha=0.05, rng=rng
    ... )
    >>> round(found.statistic, 2), found.p_value(margin=0.0) < 0.01
    (0.5, True)
    """
    check_metric(metric)
    check_resampling(num_resamples, alpha)
    scores = _Scores.of(reference_N, target_N, distilled_SN, clusters, metric)
    jackknife = scores.jackknife()
    variance = jackknife.variance(
        jackknife.without_reference_G - jackknife.without_distilled_SG.mean(axis=0), slope=1.0
    )
    ci_low, ci_high = jackknife.interval(alpha, step=float(np.sqrt(variance.documents + variance.seeds)))
    num_clusters, num_seeds = scores.num_clusters, len(scores.others) - 1
    warnings = [ONE_SEED] if num_seeds == 1 else []
    if num_clusters < FEW_CLUSTERS:
        warnings.append(
            f"{num_clusters} clusters of documents: the error rate of the test was measured from {FEW_CLUSTERS} on."
        )
    return TwoWay(
        statistic=jackknife.delta,
        deltas=jackknife.rho_reference - jackknife.rho_distilled_S,
        rho_reference_target=jackknife.rho_reference,
        rho_distilled_target=jackknife.rho_distilled_S,
        variance_documents=variance.documents,
        variance_seeds=variance.seeds if num_seeds > 1 else float("nan"),
        df=variance.df,
        ci_low=ci_low,
        ci_high=ci_high,
        num_documents=scores.cluster_N.size,
        num_clusters=num_clusters,
        alpha=alpha,
        metric=metric,
        distribution=scores.resampled(num_resamples, rng),
        warnings=tuple(warnings),
        jackknife=jackknife,
    )


class Variance(NamedTuple):
    """Of an estimate; `df` are those of the sum."""

    documents: float
    seeds: float
    df: float


@dataclass(frozen=True, eq=False)
class Jackknife:
    """The correlations of all documents, and without each cluster in turn: all that the test needs.

    Attributes:
        rho_reference: Correlation of all documents, with the reference.
        rho_distilled_S: [S] that with each distilled reference.
        without_reference_G: [G] `rho_reference` without one cluster.
        without_distilled_SG: [S, G] `rho_distilled_S` without one cluster.
    """

    rho_reference: float
    rho_distilled_S: FloatArray
    without_reference_G: FloatArray
    without_distilled_SG: FloatArray

    @property
    def delta(self) -> float:
        """The mean over seeds of rho(reference, target) - rho(distilled, target)."""
        return self.rho_reference - float(self.rho_distilled_S.mean())

    def variance(self, without_G: FloatArray, slope: float) -> Variance:
        """Variance of an estimate.

        Args:
            without_G: The estimate without each cluster.
            slope: Its fall per unit of mean rho_distilled.
        """
        num_seeds, num_clusters = self.without_distilled_SG.shape
        jackknife = (num_clusters - 1) * float(without_G.var())
        if num_seeds == 1:
            return Variance(jackknife, 0.0, num_clusters - 1.0)
        seeds = slope**2 * float(self.rho_distilled_S.var(ddof=1)) / num_seeds
        documents = max(jackknife - slope**2 * self.interaction(), 0.0)
        spread = jackknife**2 / (num_clusters - 1) + seeds**2 / (num_seeds - 1)
        df = (documents + seeds) ** 2 / spread if spread > 0 else num_clusters - 1.0
        return Variance(documents, seeds, df)

    def interaction(self) -> float:
        """Variance of Delta due to what is particular to cluster and seed: residuals of the two-way table.

        0 with one seed, which tells nothing of it.
        """
        table_SG = self.without_distilled_SG
        num_seeds, num_clusters = table_SG.shape
        if num_seeds == 1:
            return 0.0
        residual_SG = table_SG - table_SG.mean(axis=0) - table_SG.mean(axis=1, keepdims=True) + table_SG.mean()
        return float((residual_SG**2).sum() * (num_clusters - 1) / (num_clusters * num_seeds * (num_seeds - 1)))

    def upper_tail(self, margin: float) -> float:
        """Probability of a t above that of h, see the module; NaN where it is undefined."""
        rho_distilled = float(self.rho_distilled_S.mean())
        with np.errstate(divide="ignore", invalid="ignore"):
            whole = float(_beyond(self.rho_reference, rho_distilled, margin))
            without_G = _beyond(self.without_reference_G, self.without_distilled_SG.mean(axis=0), margin)
        if not (np.isfinite(whole) and np.isfinite(without_G).all()):
            return float("nan")
        variance = self.variance(without_G, _slope(self.rho_reference, rho_distilled, margin))
        error = np.sqrt(variance.documents + variance.seeds)
        unbiased = whole - (without_G.size - 1) * float((without_G - whole).mean())
        return float(scipy.special.stdtr(variance.df, -unbiased / error)) if error > 0 else float("nan")

    def interval(self, alpha: float, step: float) -> tuple[float, float]:
        """The margins next to Delta, below and above, at which the tail is alpha/2 and 1 - alpha/2.

        Args:
            step: How far from Delta to look first, best about a standard error.
        """
        if np.isnan(self.upper_tail(self.delta)):
            return float("nan"), float("nan")
        return (
            _crossing(lambda margin: self.upper_tail(margin) - alpha / 2, self.delta, -max(step, _SMALLEST_STEP)),
            _crossing(lambda margin: 1 - alpha / 2 - self.upper_tail(margin), self.delta, max(step, _SMALLEST_STEP)),
        )


def _beyond(rho_reference: npt.ArrayLike, rho_distilled: npt.ArrayLike, margin: float) -> FloatArray:
    """h of the module: by how much the difference on Fisher's scale exceeds that of the margin."""
    reference, distilled = np.arctanh(rho_reference), np.arctanh(rho_distilled)
    steepness = margin / np.sqrt(4 - margin**2)
    of_margin = np.arcsinh(steepness * np.cosh(reference + distilled)) + np.arctanh(margin / 2)
    return np.asarray(reference - distilled - of_margin)


def _slope(rho_reference: float, rho_distilled: float, margin: float) -> float:
    """-dh / d rho_distilled."""
    total, steepness = np.arctanh(rho_reference) + np.arctanh(rho_distilled), margin / np.sqrt(4 - margin**2)
    of_margin = steepness * np.sinh(total) / np.sqrt(1 + (steepness * np.cosh(total)) ** 2)
    return float((1 + of_margin) / (1 - rho_distilled**2))


def _crossing(excess: Callable[[float], float], start: float, step: float) -> float:
    """Where `excess` falls to 0 on the way from `start`, by ever longer steps; the end of the scale if it does not."""
    inner, outer = start, start + step
    while abs(outer) < _END:
        if excess(outer) <= 0:
            return float(scipy.optimize.brentq(excess, inner, outer, xtol=1e-12)) if excess(inner) > 0 else inner
        inner, step = outer, 2 * step
        outer += step
    return float(np.sign(step) * _END)


@dataclass(frozen=True, eq=False)
class _Scores:
    """others: orders under the reference and then under each distilled reference.   cluster_N: [N] in 0 .. G - 1."""

    others: tuple[Ordering, ...]
    target: Ordering
    cluster_N: IntArray
    metric: RankMetric

    @classmethod
    def of(
        cls,
        reference_N: npt.ArrayLike,
        target_N: npt.ArrayLike,
        distilled_SN: FloatArray | Sequence[npt.ArrayLike],
        clusters: Sequence[Hashable],
        metric: RankMetric,
    ) -> _Scores:
        distilled = {f"distilled {seed}": item for seed, item in enumerate(distilled_SN)}
        if not distilled:
            raise ValueError("Expected the scores of at least one distilled reference; got none.")
        reference_N, target_N, *distilled_N = as_paired_scores(reference=reference_N, target=target_N, **distilled)
        if len(clusters) != target_N.size:
            raise ValueError(
                f"Expected one cluster per document; got {len(clusters)} for {target_N.size} documents. "
                "Where each document stands alone, pass range(number of documents)."
            )
        cluster_N = numbered(clusters)
        if not cluster_N.any():
            raise ValueError(
                "Expected documents of at least 2 clusters; all belong to one, and nothing is known about another."
            )
        return cls(
            tuple(Ordering.of(item) for item in (reference_N, *distilled_N)), Ordering.of(target_N), cluster_N, metric
        )

    @property
    def num_clusters(self) -> int:
        return int(self.cluster_N.max()) + 1

    def correlations(self, counts_NB: FloatArray) -> FloatArray:
        """[1 + S, B] of the reference and each distilled reference with the target, NaN where undefined."""
        return np.array(correlations_of_counts(counts_NB, self.others, self.target, self.metric))

    def jackknife(self) -> Jackknife:
        whole = self.correlations(np.ones((self.cluster_N.size, 1)))[:, 0]
        without = np.concatenate(
            [
                self.correlations((self.cluster_N[:, None] != np.arange(self.num_clusters)[block]).astype(np.float64))
                for block in self._blocks(self.num_clusters)
            ],
            axis=1,
        )
        return Jackknife(float(whole[0]), whole[1:], without[0], without[1:])

    def resampled(self, num_resamples: int, rng: np.random.Generator) -> FloatArray:
        """[B] Delta where as many clusters and as many seeds as there are were drawn with replacement."""
        num_seeds = len(self.others) - 1
        weights_SB = count_draws(rng.integers(num_seeds, size=(num_resamples, num_seeds)), num_seeds) / num_seeds
        distribution = np.empty(num_resamples)
        for block in self._blocks(num_resamples):
            counts_GB = np.empty((self.num_clusters, distribution[block].size))
            draw_counts(rng, out=counts_GB)
            reference_B, *distilled_B = self.correlations(counts_GB[self.cluster_N])
            distribution[block] = reference_B - (weights_SB[:, block] * distilled_B).sum(axis=0)
        return distribution

    def _blocks(self, num_columns: int) -> Iterator[slice]:
        """Of columns, so that one block of [N, columns] stays small."""
        step = max(64, _BLOCK_ELEMENTS // self.cluster_N.size)
        return (slice(start, start + step) for start in range(0, num_columns, step))
