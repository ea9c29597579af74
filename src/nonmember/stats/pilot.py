"""Estimates from pilot audits for planning: effect of reading, and variance between models.

Of each control of an audit there is one Delta, the mean over k distillation seeds, on the n documents of the audit.
Controls with one reading differ by the variance s^2 of `margins.pooled_spread`, which has three parts,

    s^2 = tau^2 + seed_variance / k + (1 - shared) document_variance,

of which the variance between distillation seeds and the documents' part are measured apart from it, so that tau^2, what
is left, follows; it is 0 where nothing is. Of what the seeds differ by on these documents, `interaction` is particular
to a seed and the documents and would be less on more of them; the rest, sigma^2, would not. All variances are pooled
over the audits, and a document's is taken to be the same in each.

`shared` is what the documents do to all models alike: the mean covariance of two models' Deltas over the mean variance
of one, by the jackknife over documents. What is shared does not stand between a target and its controls.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nonmember.stats._arrays import FloatArray
from nonmember.stats.planning import Pilot

Exposure = tuple[float, float]  # share of the documents in (0, 1], times they were read


@dataclass(frozen=True)
class PilotAudit:
    """What the controls of one set showed.

    Attributes:
        controls: Reading -> Delta of each control; 0 times means that it read nothing.
        num_documents: n.
        num_seeds: k.
        seed_variance: Between seeds on these documents; 0 with one seed.
        seed_df: Degrees of freedom that `seed_variance` rests on; 0 with one seed.
        interaction: See the module; 0 where it is not known.
        document_variance: See the module.
        shared: See the module.
    """

    controls: Mapping[Exposure, Sequence[float]]
    num_documents: int
    num_seeds: int
    seed_variance: float
    seed_df: int
    interaction: float
    document_variance: float
    shared: float

    @property
    def untouched(self) -> list[float]:
        return [delta for (_, times), deltas in self.controls.items() if not times for delta in deltas]

    def mean_of_readers(self, reading: Exposure) -> float:
        """The largest mean Delta over this reading and every heavier one: whom it is hardest to tell."""
        return max(
            float(np.mean(deltas))
            for other, deltas in self.controls.items()
            if deltas and other[1] and other[0] >= reading[0] and other[1] >= reading[1]
        )

    def gap(self, reading: Exposure) -> float:
        return float(np.mean(self.untouched)) - self.mean_of_readers(reading)

    @property
    def squares(self) -> tuple[float, int]:
        """Sum of squares of Delta about the mean of its reading, and degrees of freedom."""
        samples = [np.asarray(deltas) for deltas in self.controls.values() if len(deltas)]
        return sum(float(((item - item.mean()) ** 2).sum()) for item in samples), sum(item.size - 1 for item in samples)


@dataclass(frozen=True)
class Spread:
    """What Delta varies by, pooled over audits.

    Attributes:
        variance: s^2 of all audits.
        df: Degrees of freedom of `variance`.
        tau: Standard deviation between models.
        sigma: Standard deviation between seeds.
        sigma_df: Of the seeds.
        per_document: Variance if there were one document.
        interaction: Variance that is particular to a seed and the documents, if there were one document.
        shared: As of `PilotAudit`.
    """

    variance: float
    df: int
    tau: float
    sigma: float
    sigma_df: int
    per_document: float
    interaction: float
    shared: float


def spread(audits: Sequence[PilotAudit]) -> Spread:
    """Pooled over the audits.

    Raises:
        ValueError: Where no reading has two controls, so that nothing tells how much models differ.
    """
    squares, dfs = zip(*(audit.squares for audit in audits), strict=True)
    df = sum(dfs)
    if df < 1:
        raise ValueError(
            "Expected at least 2 controls of one reading, since one says nothing about how much models differ. Add a "
            "seed to the controls of the pilot."
        )
    sigma_df = sum(audit.seed_df for audit in audits)
    sigma_squared = sum((audit.seed_variance - audit.interaction) * audit.seed_df for audit in audits)
    whole, own, interaction = (
        float(np.mean([variance * audit.num_documents for variance, audit in zip(variances, audits, strict=True)]))
        for variances in (
            [audit.document_variance for audit in audits],
            [audit.document_variance * (1 - audit.shared) for audit in audits],
            [audit.interaction for audit in audits],
        )
    )
    explained = sum(
        (audit.seed_variance / audit.num_seeds + own / audit.num_documents) * item
        for audit, item in zip(audits, dfs, strict=True)
    )
    return Spread(
        variance=sum(squares) / df,
        df=df,
        tau=math.sqrt(max(sum(squares) - explained, 0.0) / df),
        sigma=math.sqrt(max(sigma_squared, 0.0) / max(sigma_df, 1)),
        sigma_df=sigma_df,
        per_document=whole,
        interaction=interaction,
        shared=1 - own / whole if whole > 0 else 0.0,
    )


def pilot(audits: Sequence[PilotAudit], reading: Exposure) -> Pilot:
    """For excluding this reading and all heavier ones; means over the audits.

    Raises:
        ValueError: As `spread`, and where no control read nothing.
    """
    if not all(audit.untouched for audit in audits):
        raise ValueError(
            "Expected controls that read nothing of the set in every audit of the pilot; one has none. Plant a reading "
            "of 0 exposures there."
        )
    found = spread(audits)
    num_documents = round(float(np.mean([audit.num_documents for audit in audits])))
    return Pilot(
        delta_untouched=float(np.mean([np.mean(audit.untouched) for audit in audits])),
        delta_controls=float(np.mean([audit.mean_of_readers(reading) for audit in audits])),
        tau=found.tau,
        sigma=found.sigma,
        document_variance=found.per_document / num_documents,
        num_documents=num_documents,
        shared=found.shared,
        interaction=found.interaction / num_documents,
    )


def shared_part(without_MG: FloatArray, interaction: float) -> float:
    """`shared` in [0, 1] from Delta of M models [M, G] without each of G documents in turn; 0 of fewer than two.

    Args:
        interaction: Variance of these Deltas that is particular to their seeds and the documents, and no part of
            theirs.
    """
    num_models, num_documents = without_MG.shape
    if num_models < 2:
        return 0.0
    covariance_MM = (num_documents - 1) * np.cov(without_MG, bias=True)
    own = float(np.trace(covariance_MM)) / num_models - interaction
    common = float(covariance_MM.sum() - np.trace(covariance_MM)) / (num_models * (num_models - 1))
    return min(max(common / own, 0.0), 1.0) if own > 0 else 0.0
