"""How large Delta may be for a model that did read the documents: bounds from planted controls.

A planted control certainly read the documents, at a known dose; its Delta is the mean over its own distilled
references, measured on the very documents of the audit. Controls of one dose differ by the seed of their
training. Their Delta is taken as normal, with a mean for each dose and one spread for all doses that are given:

    Delta_gj ~ N(mean_g, sigma^2),    s^2 = sum over groups g and controls j of (Delta_gj - mean_g)^2 / df,
    df = sum over groups of (m_g - 1).

Another model that read at dose g is then one more draw, and with m controls of that dose

    tolerance bound    mean_g + k s,  k = nct^-1(confidence; df, z sqrt(m)) / sqrt(m),  z = Phi^-1(content):
                       with this confidence, at least the share `content` of such models lies below it;
    prediction bound   mean_g + t^-1(content; df) s sqrt(1 + 1/m): the next such model lies below it with this
                       probability, on average over what the controls might have been;
    p of "one more"    1 - T((Delta - mean_g) / (s sqrt(1 + 1/m)); df): small where Delta is larger than theirs.

So p is below alpha exactly where Delta lies above the prediction bound of content 1 - alpha. Target and controls share
the documents, the number of distillation seeds and the recipe; what these contribute is in s already and is not added.

What is not in s: controls are made of a stand-in, and the target is another model. An extra variance e^2, known on some
degrees of freedom from elsewhere, stands for that (`Extra`). It is added to sigma^2; s sqrt(1 + 1/m) becomes
sqrt(s^2 (1 + 1/m) + e^2), and s of the tolerance bound sqrt(s^2 + e^2), with m the number of controls whose mean would
be as exact, (s^2 + e^2) / (s^2 / m). Sums of two variances get Satterthwaite's degrees of freedom, sum^2 / (sum over
the two of part^2 / df).

Sources: G. J. Hahn and W. Q. Meeker, Statistical Intervals (1991), chapter 4; ISO 16269-6:2014 for the tolerance bound.
What is tabulated there is one normal sample, df = m - 1.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import scipy

Label = TypeVar("Label", bound=Hashable)


@dataclass(frozen=True)
class Spread:
    """Mean and spread of the controls of one dose.

    Attributes:
        mean: Mean of the controls of this dose.
        num_controls: How many controls of this dose there are.
        spread: s, the standard deviation of single controls.
        df: Of s.
    """

    mean: float
    num_controls: int
    spread: float
    df: int


@dataclass(frozen=True)
class Extra:
    """Variance by which the target differs from controls of its dose, beyond theirs; none by default.

    Attributes:
        variance: In units of Delta squared, at least 0.
        df: Degrees of freedom it was estimated on, above 0, infinity where it is known.

    Raises:
        ValueError: Outside their ranges.
    """

    variance: float = 0.0
    df: float = math.inf

    def __post_init__(self) -> None:
        if not (0 <= self.variance < math.inf and self.df > 0):
            raise ValueError(
                f"Expected an extra variance of at least 0 on more than 0 degrees of freedom; got {self.variance} on "
                f"{self.df}. Pass neither where there is none."
            )

    def added_to(self, variance: float, df: float) -> tuple[float, float]:
        """The sum, and its degrees of freedom."""
        if not self.variance:
            return variance, df
        total = variance + self.variance
        return total, total**2 / (variance**2 / df + self.variance**2 / self.df)


NO_EXTRA = Extra()


@dataclass(frozen=True)
class Margin:
    """Delta above which a model that read the documents at a dose is not expected.

    Attributes:
        bound: In units of Delta.
        content: As asked.
        confidence: As asked; None for the prediction bound.
        mean: See `Spread`.
        num_controls: See `Spread`.
        spread: See `Spread`.
        df: See `Spread`.
        factor: (bound - mean) / spread.
    """

    bound: float
    content: float
    confidence: float | None
    mean: float
    num_controls: int
    spread: float
    df: int
    factor: float


def margin(
    groups: Mapping[Label, Sequence[float]],
    at: Label,
    *,
    content: float,
    confidence: float | None,
    extra: Extra = NO_EXTRA,
) -> Margin:
    """Upper bound of Delta for models that read the documents at the dose `at`.

    Args:
        groups: dose -> Delta of each of its control models; doses other than `at` lend their spread only.
        at: A dose among them.
        content: Share of such models below the bound.
        confidence: With which it is; None for the prediction bound.
        extra: See `Extra`.

    Returns:
        The bound in units of Delta, with what it was made from.

    Raises:
        ValueError: Where no control read at `at`, where no group holds two controls, on NaN, on controls that do not
            differ at all, and on a content or confidence outside (0, 1).

    Source: Hahn and Meeker, Statistical Intervals (1991), chapter 4; ISO 16269-6:2014. Its use here is ours: methods,
    section 15.1.

    >>> controls = {"4 times": [-0.11, -0.09, -0.10], "8 times": [-0.21, -0.20]}
    >>> round(margin(controls, "4 times", content=0.95, confidence=None).bound, 4)
    -0.0752
    """
    for name, value in (("content", content), ("confidence", confidence)):
        if value is not None and not 0 < value < 1:
            raise ValueError(f"Expected a {name} between 0 and 1; got {value}. For 95% pass 0.95.")
    own = pooled_spread(groups, at)
    factor = factor_of(own, content=content, confidence=confidence, extra=extra)
    bound = own.mean + factor * own.spread
    return Margin(bound, content, confidence, own.mean, own.num_controls, own.spread, own.df, factor)


def prediction_p_value(
    value: float, groups: Mapping[Label, Sequence[float]], at: Label, *, extra: Extra = NO_EXTRA
) -> float:
    """One-sided p of the hypothesis that `value` is the Delta of one more model of a dose.

    Args:
        value: Delta of the target.
        groups: As of `margin`.
        at: As of `margin`.
        extra: As of `margin`.

    Returns:
        p in [0, 1], small where the value lies above the controls.

    Raises:
        ValueError: On a value that is not finite, and on controls as `margin`.

    Source: Hahn and Meeker, Statistical Intervals (1991), chapter 4, turned into a test; docs/methods/clearance.md.

    >>> controls = {"4 times": [-0.11, -0.09, -0.10], "8 times": [-0.21, -0.20]}
    >>> round(prediction_p_value(0.01, controls, "4 times"), 4)
    0.0009
    """
    if not math.isfinite(value):
        raise ValueError(f"Expected the Delta of the target; got {value}. Constant scores have none.")
    own = pooled_spread(groups, at)
    scale, df = prediction_scale(own, extra)
    return float(scipy.special.stdtr(df, (own.mean - value) / scale))


def prediction_scale(own: Spread, extra: Extra) -> tuple[float, float]:
    """Standard deviation of one more model about the mean of the controls, and its degrees of freedom."""
    total, df = extra.added_to(own.spread**2 * (1 + 1 / own.num_controls), own.df)
    return math.sqrt(total), df


def factor_of(own: Spread, *, content: float, confidence: float | None, extra: Extra = NO_EXTRA) -> float:
    """How many s the bound lies above the mean of the controls."""
    if confidence is None:
        scale, df = prediction_scale(own, extra)
        return float(scipy.special.stdtrit(df, content)) * scale / own.spread
    total, df = extra.added_to(own.spread**2, own.df)
    ratio = math.sqrt(total) / own.spread
    return bound_factor(own.num_controls * ratio**2, df, content=content, confidence=confidence) * ratio


def bound_factor(num_controls: float, df: float, *, content: float, confidence: float | None) -> float:
    """How many s the bound lies above the mean of `num_controls`; s has `df` degrees of freedom. See the module."""
    if confidence is None:
        return float(scipy.special.stdtrit(df, content)) * math.sqrt(1 + 1 / num_controls)
    root = math.sqrt(num_controls)
    return float(scipy.stats.nct.ppf(confidence, df, scipy.special.ndtri(content) * root)) / root


def pooled_spread(groups: Mapping[Label, Sequence[float]], at: Label) -> Spread:
    """Mean of the controls at `at`, and the standard deviation of single controls pooled over all groups."""
    samples = {label: np.asarray(values, dtype=np.float64) for label, values in groups.items() if len(values)}
    if at not in samples:
        there = ", ".join(map(str, samples)) or "none"
        raise ValueError(
            f"Expected controls that read at {at}; there are: {there}. Plant some there, or ask for those."
        )
    if not all(np.isfinite(values).all() for values in samples.values()):
        raise ValueError("Expected the Delta of every control; one is missing or infinite. Leave that control out.")
    df = sum(values.size - 1 for values in samples.values())
    if df < 1:
        raise ValueError(
            "Expected at least 2 control models of one dose, since one says nothing about how much they differ; got "
            f"{len(samples)} in all. Add a seed to the controls."
        )
    variance = sum(float(((values - values.mean()) ** 2).sum()) for values in samples.values()) / df
    if all(np.ptp(values) <= 4 * np.finfo(np.float64).eps * np.abs(values).max() for values in samples.values()):
        raise ValueError("Expected controls that differ; those of a dose are all equal. Give each its own seed.")
    return Spread(float(samples[at].mean()), samples[at].size, math.sqrt(variance), df)
