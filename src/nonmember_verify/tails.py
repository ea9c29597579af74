"""Tails of t, F and the noncentral t, from incomplete beta functions and by integration; t statistics from exact sums.

The audits take theirs from scipy's distributions; here they are made another way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy import integrate, optimize, special


def t_below(t: float, df: float) -> float:
    """P(T <= t)."""
    if t * t < df:  # from the middle, where the other way rounds
        return 0.5 + math.copysign(0.5 * float(special.betainc(0.5, df / 2, t * t / (df + t * t))), t)
    half = 0.5 * float(special.betainc(df / 2, 0.5, df / (df + t * t)))
    return half if t < 0 else 1 - half


def t_above(t: float, df: float) -> float:
    return t_below(-t, df)


def t_quantile(p: float, df: float) -> float:
    _require_share(p)
    if p == 0.5:
        return 0.0
    reach = 1.0
    while t_below(reach, df) < max(p, 1 - p):
        reach *= 2
    found = float(optimize.bisect(lambda t: t_below(t, df) - max(p, 1 - p), 0.0, reach, xtol=1e-13, rtol=1e-14))
    return found if p > 0.5 else -found


def _require_share(p: float) -> None:
    if not 0 < p < 1:  # of which the search for a quantile would find no end
        raise ValueError(f"a share between 0 and 1 was expected; got {p!r}")


def f_above(value: float, df1: float, df2: float) -> float:
    """P(F > value)."""
    return float(special.betainc(df2 / 2, df1 / 2, df2 / (df2 + df1 * value))) if value > 0 else 1.0


def noncentral_t_below(t: float, df: float, shift: float) -> float:
    """P((Z + shift) / sqrt(chi2 / df) <= t), integrated over the chi-squared variable."""

    def density(x: float) -> float:  # of sqrt(chi2 / df)
        log = math.log(2) + df / 2 * math.log(df / 2) + (df - 1) * math.log(x) - df * x * x / 2 - math.lgamma(df / 2)
        return math.exp(log)

    def integrand(x: float) -> float:
        return float(special.ndtr(t * x - shift)) * density(x)

    spread = 12 / math.sqrt(2 * df)
    found, _ = integrate.quad(integrand, max(1e-12, 1 - spread), 1 + spread + 4, limit=400, epsabs=1e-13, epsrel=1e-12)
    return float(found)


def noncentral_t_quantile(p: float, df: float, shift: float) -> float:
    _require_share(p)
    low, high = shift - 50.0, shift + 50.0
    while noncentral_t_below(high, df, shift) < p:
        high *= 2
    return float(optimize.brentq(lambda t: noncentral_t_below(t, df, shift) - p, low, high, xtol=1e-11))


def exact_t(differences: Sequence[float]) -> tuple[float, float] | None:
    """(t, mean) of a one-sample t-test, from sums of fractions without rounding; None where all are equal."""
    numbers = [Fraction(float(one)) for one in differences]
    number = len(numbers)
    mean = sum(numbers, Fraction(0)) / number
    squares = sum(((one - mean) ** 2 for one in numbers), Fraction(0))
    if squares == 0:
        return None
    t = float(mean) / math.sqrt(float(squares / (number * (number - 1))))
    return t, float(mean)


def welch(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """(t, degrees of freedom) of two groups, t above 0 where the first mean is."""
    parts = []
    for values in (first, second):
        mean = math.fsum(values) / len(values)
        parts.append((mean, math.fsum((one - mean) ** 2 for one in values) / (len(values) - 1) / len(values)))
    (mean_1, share_1), (mean_2, share_2) = parts
    total = share_1 + share_2
    df = total**2 / (share_1**2 / (len(first) - 1) + share_2**2 / (len(second) - 1))
    return (mean_1 - mean_2) / math.sqrt(total), df


def finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
