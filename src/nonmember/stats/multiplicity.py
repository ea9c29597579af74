"""A claim about each of several datasets, with no false one at probability 1 - alpha (docs/methods/conventions.md)."""

from __future__ import annotations

from collections.abc import Sequence


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
    for p in p_values:
        if not 0 <= p <= 1:
            raise ValueError(f"A p-value must be in [0, 1]; got {p}. Leave out tests without a p-value.")
    adjusted = [0.0] * len(p_values)  # SciPy has no Holm, and statsmodels would be a dependency for these four lines
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted
