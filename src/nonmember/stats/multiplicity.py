"""Several tests at once (docs/methods/pitfalls.md, item 9): which adjustment goes with which claim.

    a claim about each of several datasets      holm: no false claim at all, with probability 1 - alpha
    "none of them was used"                     intersection_union: true only if it is true of each
    a list to look at more closely              benjamini_hochberg: at most alpha of it false, on average

All take p-values of any order, in [0, 1], and make no list of them shorter: an undefined p is no test and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
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
