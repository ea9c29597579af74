"""How many controls and documents the dose meter needs, by the error and power of one more audit.

The covariance of a feature vector on n documents is (a + b / n) times the pilot's: what models differ by on any
documents, and what these very documents add. With m rounds of the pilot's controls the curve has its leverage and its
degrees of freedom (`stats.dose_curve`). The statistic that rejects "x readings or more" of a target that read nothing
is then close to a noncentral t: its shift is the least distance between (0, r0) and (x, r) over r, r0 being what the
target read of related text; power is the chance that it exceeds the quantile at 1 - error, at the r0 among the
controls' that makes it least (checked by simulation).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from nonmember.stats._arrays import FloatArray
from nonmember.stats.dose_curve import Between, DoseCurve, leverage_of


@dataclass(frozen=True)
class DosePilot:
    """What is known before planning.

    Attributes:
        curve: As the pilot's controls gave it.
        readings: (of the set, of related text) of one round of controls.
        models: a.
        documents: b, times documents.
        between: Of another base, None for the controls' own.
    """

    curve: DoseCurve
    readings: Sequence[tuple[float, float]]
    models: float
    documents: float
    between: Between | None = None

    def planned(self, num_documents: int, rounds: int) -> DoseCurve:
        """The curve as so many rounds of controls would give it on so many documents.

        Raises:
            ValueError: Where that is one model of each reading, which says nothing about how much models differ.
        """
        dose_C, related_C = (np.array([item[column] for item in self.readings] * rounds) for column in (0, 1))
        inverse, free = leverage_of(dose_C, related_C, self.curve.doses, self.curve.most_related)
        if free < 1:
            raise ValueError(f"{rounds} round of {len(self.readings)} controls leaves nothing to tell how they differ.")
        scale = self.models + self.documents / num_documents
        return replace(
            self.curve, covariance=self.curve.covariance * scale, df=len(self.curve.covariance) * free, inverse=inverse
        )


def scale_by_documents(sizes: Sequence[int], scales: Sequence[float]) -> tuple[float, float]:
    """(a, b), neither below 0, of scales = a + b / sizes by least squares.

    >>> a, b = scale_by_documents([25, 50, 100], [1.2, 0.8, 0.6])
    >>> round(a, 6), round(b, 6)
    (0.4, 20.0)
    """
    design = np.column_stack([np.ones(len(sizes)), 1 / np.asarray(sizes, dtype=np.float64)])
    (a, b), _ = scipy.optimize.nnls(design, np.asarray(scales, dtype=np.float64))
    return float(a), float(b)


def power_by_dose(pilot: DosePilot, num_documents: int, rounds: int, error: float) -> tuple[FloatArray, FloatArray]:
    """(readings [D], power [D] to exclude that many or more, of a target that read nothing of the set)."""
    curve = pilot.planned(num_documents, rounds)
    df = curve.df if pilot.between is None else min(curve.df, pilot.between.df)
    wanted = float(scipy.special.stdtrit(df, 1 - error))
    powers = [
        np.nan_to_num(scipy.stats.nct.sf(wanted, df, _shifts(curve, related, pilot.between)), nan=1.0)
        for related in sorted({related for _, related in pilot.readings})
    ]
    return curve.grid, np.min(powers, axis=0)


def _shifts(curve: DoseCurve, related: float, between: Between | None) -> FloatArray:
    """[D] of a target that read related text so often and nothing of the set."""
    by_dose = curve.distances(curve.at(np.zeros(1), related)[0], between).min(axis=1)
    return np.asarray(np.sqrt(np.maximum(by_dose - by_dose[0], 0.0)))


def least_excluded(pilot: DosePilot, num_documents: int, rounds: int, *, error: float, power: float) -> float:
    """The least dose that is excluded with this power, and all heavier ones; infinite where none is."""
    grid, powers = power_by_dose(pilot, num_documents, rounds, error)
    short = np.nonzero(powers < power)[0]
    if not len(short):
        return 0.0
    return float(grid[short[-1] + 1]) if short[-1] + 1 < len(grid) else math.inf
