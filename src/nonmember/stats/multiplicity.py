"""Several tests at once (docs/methods/pitfalls.md, item 9): which adjustment goes with which claim.

    a claim about each of several datasets      holm: no false claim at all, with probability 1 - alpha
    "none of them was used"                     intersection_union: true only if it is true of each
    a list to look at more closely              benjamini_hochberg: at most alpha of it false, on average

All take p-values of any order, in [0, 1], and make no list of them shorter: an undefined p is no test and is refused.

One p-value from several tests on the same data, whatever their dependence (Vovk and Wang, Biometrika 107, 2020).

Each function is a merging function: where all hypotheses are true its value lies below alpha with probability at most
alpha, however the tests depend on each other. The Cauchy combination (Liu and Xie, 2020) and the harmonic mean p with
no factor (Wilson, 2019) hold that only approximately, and for small alpha, so neither is used. Each is of the global
hypothesis: a small value says that not all hypotheses are true, and not which is false; for that see
`multiplicity.holm`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values: the k-th smallest times the number of tests still open, made monotone.

    Args:
        p_values: One for each test.

    Returns:
        The adjusted p-values in the given order. Rejecting those below alpha makes one false rejection or more with
        probability at most alpha, whatever the dependence of the tests.

    Raises:
        ValueError: For a value outside [0, 1].

    Source: Holm, Scandinavian Journal of Statistics 6, 1979.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    _check(p_values)
    adjusted = [0.0] * len(p_values)  # SciPy has no Holm, and statsmodels would be a dependency for these four lines
    highest = 0.0
    for rank, index in enumerate(_ascending(p_values)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values: the k-th smallest of m times m / k, made monotone from the largest down.

    Args:
        p_values: One for each test.

    Returns:
        The adjusted p-values in the given order. Of those below alpha at most the share alpha is false on average, for
        tests that are independent or positively dependent. For screening: no single claim is protected.

    Raises:
        ValueError: For a value outside [0, 1].

    Source: Benjamini and Hochberg, Journal of the Royal Statistical Society B 57, 1995.

    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    [0.03, 0.04, 0.04]
    """
    _check(p_values)
    return [float(p) for p in scipy.stats.false_discovery_control(p_values)] if p_values else []


def intersection_union(p_values: Sequence[float]) -> float:
    """p of the hypothesis that at least one of the tests' hypotheses is true.

    Args:
        p_values: One for each test.

    Returns:
        The largest. With PRISM's kind of test the claim is "none of these datasets was used", made only where every p
        is below alpha. No adjustment is needed, whatever the dependence.

    Raises:
        ValueError: For a value outside [0, 1], and without any: nothing follows from no test.

    Source: Berger, Technometrics 24, 1982.

    >>> intersection_union([0.01, 0.04, 0.03])
    0.04
    """
    _check(p_values)
    if not p_values:
        raise ValueError("Expected at least one p-value; there is none, and nothing can be said of all datasets.")
    return float(max(p_values))


def _check(p_values: Sequence[float]) -> None:
    for p in p_values:
        if not 0 <= p <= 1:
            raise ValueError(f"A p-value must be in [0, 1]; got {p}. Leave out tests without a p-value.")


def _ascending(p_values: Sequence[float]) -> list[int]:
    return sorted(range(len(p_values)), key=lambda index: p_values[index])


# One p-value from several ---------------------------------------------------------------------------------------------


def harmonic_factor(number: int) -> float:
    """By what the harmonic mean of so many p-values must be multiplied: the least number that will do.

    1 and 2 for one and two; beyond, (y + K)^2 / ((y + 1) K) with y > 0 the root of y^2 = K ((y + 1) ln(y + 1) - y)
    (proposition 6). It grows as ln K, where K would be Bonferroni's.

    >>> [round(harmonic_factor(number), 3) for number in (1, 2, 3, 10)]
    [1.0, 2.0, 2.746, 4.56]
    """
    if number < 3:
        return float(number)

    def excess(y: float) -> float:
        return y**2 - number * ((y + 1) * math.log1p(y) - y)

    y = float(scipy.optimize.brentq(excess, 1e-3, 1e3 * number))
    return (y + number) ** 2 / ((y + 1) * number)


def harmonic_mean_p(p_values: Sequence[float]) -> float:
    """Harmonic mean times `harmonic_factor`, at most 1.

    It is near Bonferroni's where one test stands out, and less where several agree. Of two tests Bonferroni's, twice
    the smaller, which is never more.

    Args:
        p_values: One for each test, in [0, 1]; a test that gave none counts as 1.

    Raises:
        ValueError: For none, and for values outside [0, 1].

    >>> round(harmonic_mean_p([0.001, 0.5, 1.0]), 5)
    0.00821
    >>> round(harmonic_mean_p([0.01, 0.01, 0.01]), 5)
    0.02746
    """
    p = _checked(p_values)
    if (p == 0).any():
        return 0.0
    if len(p) == 2:
        return min(1.0, 2 * float(p.min()))
    return min(1.0, harmonic_factor(len(p)) * len(p) / float((1 / p).sum()))


def twice_the_mean(p_values: Sequence[float]) -> float:
    """Twice the arithmetic mean, at most 1 (Rueschendorf, 1982): useless where one of a few tests gave nothing.

    Of one test its own p.

    Args:
        p_values: As in `harmonic_mean_p`.

    Raises:
        ValueError: As in `harmonic_mean_p`.

    >>> twice_the_mean([0.01, 0.03])
    0.04
    """
    p = _checked(p_values)
    return float(p[0]) if len(p) == 1 else min(1.0, 2 * float(p.mean()))


def _checked(p_values: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or not len(p):
        raise ValueError("Expected at least one p-value; there is none, and nothing follows from no test.")
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"A p-value must be in [0, 1]; got {p_values!r}. A test that gave none counts as 1.")
    return p
