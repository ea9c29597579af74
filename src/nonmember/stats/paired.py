"""The one-sided paired t-test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from nonmember.stats._arrays import as_paired_scores


@dataclass(frozen=True)
class PairedT:
    """A paired t-test of H1: E x < E y.

    mean_difference: mean of x - y, negative in the direction of H1.
    statistic: t, of the same sign; NaN with a `warning` if all differences are equal.
    p_value: one-sided, lower tail of t with `num_pairs` - 1 degrees of freedom.
    warning: empty, or why the numbers are not those of an ordinary t-test.
    """

    statistic: float
    p_value: float
    mean_difference: float
    num_pairs: int
    warning: str


def paired_t_less(x: npt.ArrayLike, y: npt.ArrayLike) -> PairedT:
    """Paired t of H0: E x = E y against H1: E x < E y.

    x, y: [N] scores of the same documents, N >= 2. t = mean(d) / (sd(d) / sqrt(N)), d = x - y, sd with N - 1.

    Where all differences are equal t is undefined: p = 1 if their mean is >= 0, else 0, with a warning. Equal
    means up to the rounding of the subtraction, and a mean within that rounding counts as 0.

    Raises `ValueError` on NaN or infinite scores, unequal lengths and fewer than two documents.

    Source: the paired-t baseline of PRISM, table 10, where x is f(.; target) and y is f(.; distilled). The
    paper does not say what happens when all differences are equal.
    """
    x, y = as_paired_scores(x=x, y=y)
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError(
            "Expected finite scores; got an infinite one, and a mean over it is undefined. "
            "Clamp it in the score, or leave the document out and count it."
        )
    difference = x - y
    mean = float(difference.mean())
    rounding = 4 * np.finfo(np.float64).eps * max(np.abs(x).max(), np.abs(y).max())
    if np.ptp(difference) <= rounding:
        warning = f"All {x.size} differences equal {mean:.6g}: t is undefined, p is set by the sign alone."
        return PairedT(float("nan"), 1.0 if mean >= -rounding else 0.0, mean, x.size, warning)
    test = stats.ttest_rel(x, y, alternative="less")
    return PairedT(float(test.statistic), float(test.pvalue), mean, x.size, "")
