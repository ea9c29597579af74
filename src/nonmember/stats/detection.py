"""What an audit would have noticed: a curve over how much of the documents was read, and how often.

At each point of a grid, a share of the documents and a dose (how many times they were read), several planted controls
tell what Delta such a reading leaves. Two questions are asked of a point.

*Is it excluded?* p of the hypothesis that the target is one more of these controls (`margins.prediction_p_value`,
spread pooled over the grid) is small where the target's Delta is above theirs. Below alpha, the audit noticed that this
is not what happened.

*Could it have been?* The power is the probability that a target which read nothing, one more of the negative controls,
has p below alpha there.

A sentence such as "reading at least half of it at least 4 times would have been noticed" speaks of heavier readings
too. It holds if each of them is excluded, so its p is the *largest* over the point and all measured points with no
smaller share and no smaller dose: `p_at_least` (an intersection-union test, which needs no adjustment). Whoever is sure
that more reading never leaves a larger Delta may look at the *smallest* over the point and the lighter ones,
`p_monotone`; where Delta does not fall any further it picks the luckiest of several equal points, so it is no test at
alpha. Nothing is interpolated or extrapolated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from nonmember.stats._arrays import check_level
from nonmember.stats.margins import (
    NO_EXTRA,
    Extra,
    Spread,
    factor_of,
    pooled_spread,
    prediction_p_value,
    prediction_scale,
)

Exposure = tuple[float, float]  # share of the documents in (0, 1], dose > 0
NEGATIVE: Literal["negative"] = "negative"


@dataclass(frozen=True)
class DetectionPoint:
    """One measured reading.

    The powers are NaN without negative controls.

    Attributes:
        mean: Mean of its controls' Delta.
        num_controls: How many controls these are.
        p_value: Of "the target is one more of these".
        noticed: Whether p_value < alpha.
        p_at_least: p of this and every heavier reading.
        noticed_at_least: Whether this and every heavier reading is noticed.
        p_monotone: See the module.
        power: Probability that an untouched target is noticed not to have read so, by the t distribution that the
            negative controls predict.
        power_at_least: The smallest over this and the heavier readings.
        counted_power: Share of the negative controls themselves that are noticed.
    """

    share: float
    dose: float
    mean: float
    num_controls: int
    p_value: float
    noticed: bool
    p_at_least: float
    noticed_at_least: bool
    p_monotone: float
    power: float
    power_at_least: float
    counted_power: float


@dataclass(frozen=True)
class DetectionCurve:
    """Which measured readings the target's Delta excludes.

    Attributes:
        points: By share and then dose, ascending.
        observed: The target's Delta.
    """

    points: tuple[DetectionPoint, ...]
    observed: float
    alpha: float

    def smallest_noticed_dose(self) -> dict[float, float | None]:
        """For each share, the smallest dose such that at least this share at least so often is excluded; None: none."""
        return self._smallest(lambda point: point.noticed_at_least)

    def smallest_detectable_dose(self, power: float) -> dict[float, float | None]:
        """For each share, the smallest dose at and above which an untouched target has this power; None: none has."""
        return self._smallest(lambda point: point.power_at_least >= power)

    def _smallest(self, reached: Callable[[DetectionPoint], bool]) -> dict[float, float | None]:
        return {
            share: min((point.dose for point in self.points if point.share == share and reached(point)), default=None)
            for share in sorted({point.share for point in self.points})
        }


def detection_curve(
    observed: float,
    controls: Mapping[Exposure, Sequence[float]],
    negatives: Sequence[float],
    *,
    alpha: float,
    extra: Extra = NO_EXTRA,
) -> DetectionCurve:
    """Which measured readings the target's Delta excludes, and which an untouched target's would.

    Args:
        observed: Delta of the target.
        controls: (share, dose) -> Delta of each control with that reading.
        negatives: Delta of each control that read nothing of the documents; may be empty.
        alpha: Level at each point.
        extra: How much more than the controls among themselves a target differs from them (`Extra`).

    Returns:
        A point for each reading, by share and then dose.

    Raises:
        ValueError: On an empty grid, a share outside (0, 1], a dose of 0 or less, an alpha outside (0, 1), a Delta that
            is not finite, and on controls that have no spread.

    Source: Ours; docs/methods/clearance.md.

    >>> controls = {(1.0, 2): [-0.02, -0.01], (1.0, 8): [-0.11, -0.09]}
    >>> curve = detection_curve(0.01, controls, [0.02, 0.01], alpha=0.05)
    >>> curve.smallest_noticed_dose()
    {1.0: 8}
    """
    _check(controls, alpha)
    readings = sorted(controls)
    spreads = {item: pooled_spread(controls, item) for item in readings}
    p_values = {item: prediction_p_value(observed, controls, item, extra=extra) for item in readings}
    criticals = {item: _critical(spreads[item], alpha, extra) for item in readings}
    powers = dict.fromkeys(readings, math.nan)
    if len(negatives):
        untouched = pooled_spread({NEGATIVE: negatives, **controls}, NEGATIVE)
        powers = {item: _power(untouched, criticals[item], extra) for item in readings}
    points = []
    for item in readings:
        heavier = [other for other in readings if other[0] >= item[0] and other[1] >= item[1]]
        lighter = [other for other in readings if other[0] <= item[0] and other[1] <= item[1]]
        p_at_least = max(p_values[other] for other in heavier)
        point = DetectionPoint(
            share=item[0],
            dose=item[1],
            mean=spreads[item].mean,
            num_controls=spreads[item].num_controls,
            p_value=p_values[item],
            noticed=p_values[item] < alpha,
            p_at_least=p_at_least,
            noticed_at_least=p_at_least < alpha,
            p_monotone=min(p_values[other] for other in lighter),
            power=powers[item],
            power_at_least=min(powers[other] for other in heavier),
            counted_power=_counted(negatives, criticals[item]),
        )
        points.append(point)
    return DetectionCurve(tuple(points), observed, alpha)


def _critical(spread: Spread, alpha: float, extra: Extra) -> float:
    """Delta above which p is below alpha."""
    return spread.mean + spread.spread * factor_of(spread, content=1 - alpha, confidence=None, extra=extra)


def _power(untouched: Spread, critical: float, extra: Extra) -> float:
    """Probability that one more of the untouched lies above `critical`, by its predictive t distribution."""
    scale, df = prediction_scale(untouched, extra)
    return float(scipy.special.stdtr(df, (untouched.mean - critical) / scale))


def _counted(negatives: Sequence[float], critical: float) -> float:
    return float(np.mean(np.asarray(negatives) > critical)) if len(negatives) else math.nan


def _check(controls: Mapping[Exposure, Sequence[float]], alpha: float) -> None:
    if not controls:
        raise ValueError("Expected controls at one reading or more; there are none. Plant some before asking.")
    for share, dose in controls:
        if not (0 < share <= 1 and dose > 0):
            raise ValueError(
                f"Expected readings of a share in (0, 1] and a dose above 0; got {share} and {dose}. "
                "Controls that read nothing are the negatives."
            )
    check_level(alpha)
