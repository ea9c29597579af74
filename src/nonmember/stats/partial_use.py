"""How many of the documents were read, and how often each? On average, all of them read once
looks like a quarter of them read several times; the scores of single documents tell the two apart.

What a document's score gains from x readings is measured on controls: m_i(x), the mean of those that read it x times
less that of those that did not. With d_i the target's score less the latter, and a share pi of the documents read,

    d_i ~ pi N(m_i(x), sigma^2) + (1 - pi) N(0, sigma^2),

sigma from what single controls scatter about their means. For each planted x the share is found by maximum likelihood;
its interval by resampling documents, or clusters of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nonmember.records import FloatArray

SHARES = np.linspace(0, 1, 101)
WITHIN = 1.92  # log-likelihoods so much below the best are compatible with it: half of chi-squared's 95% quantile


@dataclass(frozen=True)
class PartialUse:
    """What share of the documents was read, at one dose.

    Attributes:
        share: Of the documents, if those that were read were read `dose` times.
        low: Lower end of its interval.
        high: Upper end of its interval.
        log_likelihood: At that share.
        compatible: Whether the data tell this dose from the best one.
    """

    dose: float
    share: float
    low: float
    high: float
    log_likelihood: float
    compatible: bool


def partial_use(
    gain_D: FloatArray,
    expected: Mapping[float, FloatArray],
    scatter_D: FloatArray,
    clusters: Sequence[str],
    *,
    num_resamples: int,
    alpha: float,
    rng: np.random.Generator,
) -> list[PartialUse]:
    """A region of (share, dose), one entry per planted dose.

    Args:
        gain_D: [documents] score under the target less the mean of controls that read nothing.
        expected: dose -> [documents] the same of controls that read so often.
        scatter_D: [documents] standard deviation of single controls.
        clusters: Of each document; drawn as a whole.

    Raises:
        ValueError: For other lengths.
    """
    if {len(gain_D), len(scatter_D), len(clusters), *map(len, expected.values())} != {len(gain_D)}:
        raise ValueError("Expected one gain, one scatter, one cluster and one expected gain per dose of each document.")
    tables = {dose: _log_likelihoods(gain_D, expected_D, scatter_D) for dose, expected_D in expected.items()}
    best = max(float(table.sum(axis=0).max()) for table in tables.values())
    names, place_D = np.unique(np.asarray(clusters), return_inverse=True)
    draws = rng.multinomial(len(names), [1 / len(names)] * len(names), size=num_resamples)
    found = []
    for dose, table in tables.items():
        sums = table.sum(axis=0)
        by_cluster = np.zeros((len(names), len(SHARES)))
        np.add.at(by_cluster, place_D, table)
        shares = SHARES[(draws @ by_cluster).argmax(axis=1)]
        low, high = np.quantile(shares, [alpha / 2, 1 - alpha / 2])
        place = int(sums.argmax())
        found.append(
            PartialUse(
                dose,
                float(SHARES[place]),
                float(low),
                float(high),
                float(sums[place]),
                bool(best - sums[place] <= WITHIN),
            )
        )
    return found


def _log_likelihoods(gain_D: FloatArray, expected_D: FloatArray, scatter_D: FloatArray) -> FloatArray:
    """[documents, shares]"""
    read = -0.5 * ((gain_D - expected_D) / scatter_D) ** 2
    unread = -0.5 * (gain_D / scatter_D) ** 2
    top = np.maximum(read, unread)[:, None]
    mixed = SHARES * np.exp(read[:, None] - top) + (1 - SHARES) * np.exp(unread[:, None] - top)
    # None are left where all or nothing is said to be read of a document far from either: exp gave 0.
    alone = np.where(SHARES == 0, unread[:, None], read[:, None])
    with np.errstate(divide="ignore"):
        found = np.where(mixed > 0, top + np.log(mixed), alone)
    return np.asarray(found - np.log(scatter_D)[:, None])
