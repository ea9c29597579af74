"""One p-value from several tests on the same data, whatever their dependence (Vovk and Wang, Biometrika 107, 2020).

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
