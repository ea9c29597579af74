"""Delta of several distilled references: its jackknife over documents (or clusters), its interval, its resamples."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from nonmember_verify.bundle import FloatArray, Group
from nonmember_verify.ranks import correlation, correlations
from nonmember_verify.tails import t_above

END = 2.0
SMALLEST_STEP = 1e-6


@dataclass(frozen=True)
class TwoWay:
    """whole: [1 + S] correlations with the target, of the reference and then of each distilled reference.
    without: [1 + S, G] the same without each cluster.   clusters: [N]."""

    scores: list[FloatArray]
    target: FloatArray
    clusters: np.ndarray
    metric: str
    whole: FloatArray
    without: FloatArray

    @classmethod
    def of(cls, group: Group, reference: str, target: str, distilled: list[str], metric: str) -> TwoWay:
        scores = [group.values[name] for name in (reference, *distilled)]
        aim, clusters = group.values[target], group.by_appearance
        whole = np.array([correlation(one, aim, metric) for one in scores])
        without = np.array(
            [
                [correlation(one[clusters != left_out], aim[clusters != left_out], metric) for one in scores]
                for left_out in range(int(clusters.max()) + 1)
            ]
        ).T
        return cls(scores, aim, clusters, metric, whole, without)

    @property
    def deltas(self) -> FloatArray:
        return np.asarray(self.whole[0] - self.whole[1:])

    @property
    def delta(self) -> float:
        return float(self.whole[0]) - float(self.whole[1:].mean())

    def _variance(self, without: FloatArray, slope: float) -> tuple[float, float]:
        """Of an estimate that is `without` without each cluster, and its degrees of freedom."""
        num_seeds, number = self.without.shape[0] - 1, self.without.shape[1]
        jackknife = (number - 1) / number * math.fsum((without - without.mean()) ** 2)
        if num_seeds == 1:
            return jackknife, number - 1.0
        seeds = slope**2 * float(np.var(self.whole[1:], ddof=1)) / num_seeds
        table = self.without[1:]
        rest = table - table.mean(axis=0) - table.mean(axis=1)[:, None] + table.mean()
        own = math.fsum((rest**2).ravel()) * (number - 1) / (number * num_seeds * (num_seeds - 1))
        documents = max(jackknife - slope**2 * own, 0.0)
        spread = jackknife**2 / (number - 1) + seeds**2 / (num_seeds - 1)
        return documents + seeds, (documents + seeds) ** 2 / spread if spread > 0 else number - 1.0

    def tail(self, margin: float) -> float:
        """One-sided p of Delta <= margin, on Fisher's scale; NaN where it is undefined."""

        def beyond(reference: float, distilled: float) -> float:
            one, other = math.atanh(reference), math.atanh(distilled)
            steep = margin / math.sqrt(4 - margin**2)
            return one - other - math.asinh(steep * math.cosh(one + other)) - math.atanh(margin / 2)

        reference, distilled = float(self.whole[0]), float(self.whole[1:].mean())
        try:
            whole = beyond(reference, distilled)
            pairs = zip(self.without[0].tolist(), self.without[1:].mean(axis=0).tolist(), strict=True)
            without = np.array([beyond(*pair) for pair in pairs])
        except ValueError:  # a correlation of 1 or -1
            return math.nan
        total, steep = math.atanh(reference) + math.atanh(distilled), margin / math.sqrt(4 - margin**2)
        slope = (1 + steep * math.sinh(total) / math.sqrt(1 + (steep * math.cosh(total)) ** 2)) / (1 - distilled**2)
        variance, df = self._variance(without, slope)
        if not variance > 0:
            return math.nan
        unbiased = whole - (len(without) - 1) * float((without - whole).mean())
        return t_above(unbiased / math.sqrt(variance), df)

    def interval(self, alpha: float) -> tuple[float | None, float | None]:
        """The margins rejected on neither side at alpha / 2. The tail need not rise all the way, so where its ends are
        looked for is part of what the interval is: from Delta outwards, by steps that begin with the standard error of
        Delta and double (docs/methods/clearance.md)."""
        if math.isnan(self.tail(self.delta)):
            return None, None
        variance, _ = self._variance(self.without[0] - self.without[1:].mean(axis=0), 1.0)
        first = max(math.sqrt(variance), SMALLEST_STEP)

        def crossing(excess: Callable[[float], float], step: float) -> float:
            inner, outer = self.delta, self.delta + step
            while abs(outer) < END:
                if excess(outer) <= 0:
                    return float(optimize.brentq(excess, inner, outer, xtol=1e-12)) if excess(inner) > 0 else inner
                inner, step = outer, 2 * step
                outer += step
            return math.copysign(END, step)

        return (
            crossing(lambda margin: self.tail(margin) - alpha / 2, -first),
            crossing(lambda margin: 1 - alpha / 2 - self.tail(margin), first),
        )

    def resampled(self, num_resamples: int, rng: np.random.Generator) -> FloatArray:
        """[B] Delta of drawn clusters and drawn seeds."""
        num_seeds, number = len(self.scores) - 1, int(self.clusters.max()) + 1
        seeds_BS = rng.integers(num_seeds, size=(num_resamples, num_seeds))
        members = [np.flatnonzero(self.clusters == one) for one in range(number)]
        alone = all(len(one) == 1 for one in members)
        distribution = np.empty(num_resamples)
        step = max(64, 2**19 // len(self.clusters))
        for start in range(0, num_resamples, step):
            drawn = rng.integers(number, size=(min(step, num_resamples - start), number))
            if alone:
                rho = np.array([correlations(one[drawn], self.target[drawn], self.metric) for one in self.scores])
            else:
                rows = [np.concatenate([members[one] for one in draw]) for draw in drawn]
                rho = np.array(
                    [[correlation(one[row], self.target[row], self.metric) for row in rows] for one in self.scores]
                )
            block = slice(start, start + len(drawn))
            chosen = np.take_along_axis(rho[1:].T, seeds_BS[block], axis=1)
            distribution[block] = rho[0] - chosen.mean(axis=1)
        return distribution
