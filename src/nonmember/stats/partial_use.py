"""How many of the documents were read, and how often each? On average, all of them read once looks like a quarter of
them read several times; the scores of single documents tell the two apart.

Of document i controls give scores u_i (none read it) and c_i (all read it x times), means of m and n controls with
variance s^2 each. Its level is free and its gain from x readings normal, N(g, tau^2) over documents, so the score t_i
of the target has, given u_i and c_i, a normal density whether it read the document or not; both u_i and c_i - g tell of
the level, and u_i + g and c_i of what a reader would score. With a share pi of the documents read,

    t_i ~ pi N(a_i, v_a + s^2) + (1 - pi) N(b_i, v_b + s^2).

Level and gain are integrated out: the unread controls are in both, and taken for known would make a set that nobody
read look half read. For each planted x the share is found by maximum likelihood; its interval by resampling documents,
or clusters of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from nonmember.records import FloatArray
from nonmember.stats._arrays import check_resampling

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
    target: npt.ArrayLike,
    controls: Mapping[float, npt.ArrayLike],
    clusters: Sequence[str],
    *,
    num_resamples: int,
    alpha: float,
    rng: np.random.Generator,
) -> list[PartialUse]:
    """What share of the documents was read, at each planted dose, by a mixture of read and unread ones.

    Args:
        target: [D] score of each document under the target.
        controls: dose -> [C, D] the same under the controls that read the set so often; dose 0 among them, and two
            controls at one dose at least.
        clusters: [D] of each document; drawn as a whole.
        num_resamples: Of the clusters, for the intervals.
        alpha: Of the intervals.
        rng: Draws them.

    Returns:
        A region of (share, dose), one entry per dose; none where controls of one dose do not differ.

    Raises:
        ValueError: For other lengths, NaN and infinity, and without a dose above 0.

    Source: own; docs/methods/dose.md.

    >>> rng = np.random.default_rng(0)
    >>> noise = lambda number: rng.normal(scale=0.2, size=(number, 40))
    >>> target, names = np.repeat([1.0, 0.0], 20) + noise(1)[0], [f"document {number}" for number in range(40)]
    >>> [found] = partial_use(target, {0: noise(3), 4: 1 + noise(3)}, names, num_resamples=99, alpha=0.05, rng=rng)
    >>> found.dose, round(found.share, 1)
    (4, 0.5)
    """
    number = len(clusters)
    target_D = _of_documents("target", target, number, 1)
    scores = {dose: _of_documents("controls", item, number, 2) for dose, item in controls.items()}
    check_resampling(num_resamples, alpha)
    if len(scores) < 2 or 0 not in scores:
        raise ValueError(f"Expected controls of dose 0 and of one more at least; got {sorted(scores)}.")
    errors = np.concatenate([item - item.mean(axis=0) for item in scores.values()])
    variance = float((errors**2).sum()) / (max(1, len(errors) - len(scores)) * number)
    if not variance:
        return []
    tables = {
        dose: _log_likelihoods(target_D, scores[0], item, variance) for dose, item in sorted(scores.items()) if dose
    }
    best = max(float(table.sum(axis=0).max()) for table in tables.values())
    names, cluster_D = np.unique(np.asarray(clusters), return_inverse=True)
    draws = rng.multinomial(len(names), [1 / len(names)] * len(names), size=num_resamples)
    found = []
    for dose, table in tables.items():
        sums = table.sum(axis=0)
        by_cluster = np.zeros((len(names), len(SHARES)))
        np.add.at(by_cluster, cluster_D, table)
        shares = SHARES[(draws @ by_cluster).argmax(axis=1)]
        low, high = np.quantile(shares, [alpha / 2, 1 - alpha / 2])
        index = int(sums.argmax())
        found.append(
            PartialUse(
                dose,
                float(SHARES[index]),
                float(low),
                float(high),
                float(sums[index]),
                bool(best - sums[index] <= WITHIN),
            )
        )
    return found


def _log_likelihoods(target_D: FloatArray, unread_CD: FloatArray, read_CD: FloatArray, variance: float) -> FloatArray:
    """[documents, shares] of the target's scores, a document's level and gain integrated out."""
    unread, read = unread_CD.mean(axis=0), read_CD.mean(axis=0)
    of_unread, of_read = variance / len(unread_CD), variance / len(read_CD)
    gain = float((read - unread).mean())
    of_gain = max(0.0, float((read - unread).var(ddof=1)) - of_unread - of_read)

    def log_density(near: FloatArray, of_near: float, far: FloatArray, of_far: float) -> FloatArray:
        """Of the target, whose mean two estimates tell of."""
        of_mean = 1 / (1 / of_near + 1 / of_far)
        mean, spread = of_mean * (near / of_near + far / of_far), of_mean + variance
        return np.asarray(-0.5 * (target_D - mean) ** 2 / spread - 0.5 * math.log(spread))

    not_used = log_density(unread, of_unread, read - gain, of_read + of_gain)
    used = log_density(read, of_read, unread + gain, of_unread + of_gain)
    with np.errstate(divide="ignore"):  # of a share of 0 or 1
        logs = np.stack([used[:, None] + np.log(SHARES), not_used[:, None] + np.log1p(-SHARES)])
    return np.asarray(scipy.special.logsumexp(logs, axis=0))


def _of_documents(name: str, values: npt.ArrayLike, number: int, dimensions: int) -> FloatArray:
    """[documents], or [controls, documents], finite; ValueError otherwise."""
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != dimensions or found.shape[-1] != number or not found.size or not np.isfinite(found).all():
        shape = "[documents]" if dimensions == 1 else "[controls, documents]"
        raise ValueError(
            f"Expected `{name}` to hold finite numbers for each document, shape {shape}, of {number} documents as "
            f"there are clusters; got shape {found.shape}. Leave a document without a score out everywhere."
        )
    return found
