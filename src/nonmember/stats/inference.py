"""LLM dataset inference: can a linear model that learned to tell two sets apart still do so on fresh documents?

Shapes: N suspect documents, M held-out documents, F features, S splits, C sizes of the curve.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from nonmember.stats._arrays import BoolArray, FloatArray, IntArray, as_scores, numbered_clusters
from nonmember.stats.two_groups import mean_difference

OutlierMode = Literal["mean", "clip"]

MIN_DOCUMENTS = 8  # of each set: four to fit on, four to test on
MIN_CLUSTERS = 4
# The sizes of the original's curve of p against the number of test documents of each set.
CURVE_SIZES = (2, 5, 10, 20, 50, 100, 150, 200, 300, 400, 500, 600, 700, 800, 900, 1000)

_ADAM_BETAS = (0.9, 0.999)  # Adam's own constants, as in the paper that introduced it and in torch
_ADAM_EPSILON = 1e-8


@dataclass(frozen=True)
class TwoSampleT:
    """A two-sample t-test of H1: E x < E y.

    Attributes:
        statistic: t, of the same sign as `mean_difference`; NaN with a `warning` if neither sample varies.
        p_value: One-sided, lower tail.
        mean_difference: Mean x - mean y, negative in the direction of H1.
        warning: Empty, or why the numbers are not those of an ordinary t-test.
    """

    statistic: float
    p_value: float
    mean_difference: float
    warning: str


@dataclass(frozen=True, eq=False)
class DatasetInference:
    """LLM-DI's test over S random splits.

    Attributes:
        combined_p_value: 1 - prod(1 - p), at least the largest of `p_values`.
        median_p_value: Median of `p_values`.
        p_values: [S] one-sided p, small where t is far below 0.
        statistics: [S] t of mean logit of suspect minus that of held-out test documents; negative points to membership
            (or to any other difference between the sets); NaN where the logits do not vary.
        weights: [F] of the standardised features, averaged over the splits that used the feature; positive where a
            larger feature speaks for held-out; NaN where no split used it.
        times_dropped: [F] number of splits in which the feature did not vary over the suspect set and was dropped.
        curve_sizes: [C] numbers of test documents of each set.
        curve_p_values: [S, C] p of the first so many test documents, in the random order of the split.
        num_undefined: Splits whose logits do not vary; their p is 1.
    """

    combined_p_value: float
    median_p_value: float
    p_values: FloatArray
    statistics: FloatArray
    weights: FloatArray
    times_dropped: IntArray
    curve_sizes: IntArray
    curve_p_values: FloatArray
    num_undefined: int


class LinearModel(NamedTuple):
    """logit = features @ weights + bias; weights [F]."""

    weights: FloatArray
    bias: float

    def logits(self, features: FloatArray) -> FloatArray:
        """[documents] from [documents, F]."""
        logits: FloatArray = features @ self.weights + self.bias
        return logits


def dataset_inference(
    suspect: npt.ArrayLike,
    heldout: npt.ArrayLike,
    *,
    outliers: OutlierMode,
    tail_fraction: float,
    fit_size: int,
    num_splits: int,
    learning_rate: float,
    num_steps: int,
    compat: bool,
    rng: np.random.Generator,
    clusters: Sequence[Sequence[Hashable]] | None = None,
) -> DatasetInference:
    """Learn to tell suspect from held-out documents on one part of both, test on the rest, several times over.

    Each split puts both sets in a random order. The first min(`fit_size`, half the set rounded down) documents
    of each are part A, the others part B. On A a linear model with bias learns suspect 0, held-out 1
    (`fit_logistic`). On B a one-sided t-test asks whether the mean logit of the suspect documents is below that
    of the held-out ones.

    Before that, per feature, `outliers` says what becomes of the lowest and the highest j = int(n tail_fraction / 2) of
    n values: "mean" sets them to the mean of all n, "clip" to the innermost of the j.
    With j = 0 nothing changes. Then the mean and population standard deviation of the suspect set standardise both
    sets; a feature that does not vary there is dropped.

    With `compat` bounds and means of outliers come from each *whole* set for itself and the scale from the whole
    suspect set, before the split. Otherwise bounds and means come from both A parts together, the scale from the
    suspect A part, and B is only carried along: given A, every document of B meets the same function, so that equal
    distributions give uniform p. Bounds that know which set a document is from tell the test what it is to find out:
    with two samples of one distribution (200 documents each, 20 features, t with 5 degrees of freedom) `compat` gave
    p < .05 in 27% of 1,000 worlds with "mean", in 11% with "clip" (docs/results/simulations.md).

    With `clusters` part A has as many whole clusters of each set, in random order, as have together no more documents
    than said above, and one at least; the t-test is `two_groups.mean_difference`, whose variances are by clusters.

    The combination 1 - prod(1 - p) is never below any of its parts, so where these are valid it is, whatever the
    dependence of the splits; and it is very careful: ten times .01 give .0956. The median of dependent p-values
    need not be a valid p.

    Args:
        suspect: [N, F] features of documents, any units and signs.
        heldout: [M, F] features of documents, the same columns.
        outliers: What becomes of what lies in the tails: "mean" or "clip".
        tail_fraction: Of both tails together, in [0, 1).
        fit_size: Documents of each set to learn on, at most half of it.
        num_splits: S.
        learning_rate: Of Adam.
        num_steps: Of Adam.
        compat: As in the original program.
        rng: Of the splits.
        clusters: What documents of either set belong together (book, thread): [N] and [M]. None: each stands alone.

    Returns:
        p of each split, combined and median. A small p is evidence of membership *only if* the two sets have one
        distribution; a large one says nothing.

    Raises:
        ValueError: On NaN or infinite features, unequal columns and fewer than eight documents in a set.

    Source: Maini et al., "LLM Dataset Inference", equation 2 for the combination. The paper says linear
    regression and treats outliers by the mean, the authors' program minimises the logistic loss and clips; it
    runs in float32 from random weights, treats every value as an outlier where j = 0, divides by a deviation of 0,
    never combines, and repeats the full set at sizes of the curve that exceed it (here left out). Where values tie
    with the bound of a tail, none of them is an outlier here and the program picks some.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> suspect, heldout = rng.normal(size=(100, 3)), rng.normal(loc=0.5, size=(100, 3))
    >>> found = dataset_inference(
    ...     suspect, heldout, outliers="clip", tail_fraction=0.05, fit_size=50, num_splits=3, learning_rate=0.01,
    ...     num_steps=100, compat=False, rng=rng
    ... )
    >>> found.median_p_value < 0.05
    True
    """
    suspect, heldout = _as_features("suspect", suspect), _as_features("heldout", heldout)
    _check_columns(suspect, heldout)
    fit_sizes = min(fit_size, len(suspect) // 2), min(fit_size, len(heldout) // 2)
    cluster_of = _numbered(clusters, suspect, heldout)
    if compat:
        suspect = _Tails.of(suspect, tail_fraction).treat(suspect, outliers)
        heldout = _Tails.of(heldout, tail_fraction).treat(heldout, outliers)
        scale = _Scale.of(suspect)

    weights = np.full((num_splits, suspect.shape[1]), np.nan)
    tests, curves = [], []
    for split in range(num_splits):
        cuts = [
            _cut(len(suspect), fit_sizes[0], cluster_of[0], rng),
            _cut(len(heldout), fit_sizes[1], cluster_of[1], rng),
        ]
        parts = [suspect[cuts[0][0]], heldout[cuts[1][0]], suspect[cuts[0][1]], heldout[cuts[1][1]]]
        if not compat:
            tails = _Tails.of(np.concatenate(parts[:2]), tail_fraction)
            parts = [tails.treat(part, outliers) for part in parts]
            scale = _Scale.of(parts[0])
        suspect_A, heldout_A, suspect_B, heldout_B = (scale.standardise(part) for part in parts)
        labels = np.repeat([0.0, 1.0], [len(suspect_A), len(heldout_A)])
        model = fit_logistic(
            np.concatenate([suspect_A, heldout_A]), labels, learning_rate=learning_rate, num_steps=num_steps
        )
        weights[split, scale.varies] = model.weights
        logits = [model.logits(suspect_B), model.logits(heldout_B)]
        of_logits = [None if of is None else of[cut[1]] for of, cut in zip(cluster_of, cuts, strict=True)]
        tests.append(_tested(logits, of_logits))
        curves.append(_curve(logits, of_logits))

    p_values = np.array([test.p_value for test in tests])
    statistics = np.array([test.statistic for test in tests])
    times_used = np.count_nonzero(~np.isnan(weights), axis=0)
    return DatasetInference(
        combined_p_value=combine_splits(p_values),
        median_p_value=float(np.median(p_values)),
        p_values=p_values,
        statistics=statistics,
        weights=np.where(times_used > 0, np.nansum(weights, axis=0) / np.maximum(times_used, 1), np.nan),
        times_dropped=num_splits - times_used,
        curve_sizes=np.array(CURVE_SIZES[: len(curves[0])], dtype=np.int64),
        curve_p_values=np.array(curves),
        num_undefined=int(np.isnan(statistics).sum()),
    )


def fit_logistic(
    features: npt.ArrayLike, labels: npt.ArrayLike, *, learning_rate: float, num_steps: int
) -> LinearModel:
    """Linear model with bias after `num_steps` full-batch steps of Adam on the mean logistic loss.

    The model starts from zeros (torch's linear layers start from random weights), so nothing is random. No
    regularisation: where the labels can be separated, the number of steps bounds the weights.

    Args:
        features: [documents, F], on comparable scales.
        labels: [documents] of 0 and 1.
    """
    design = np.column_stack([features, np.ones(len(np.asarray(labels)))])
    labels = np.asarray(labels, dtype=np.float64)
    beta1, beta2 = _ADAM_BETAS
    parameters, mean, square = np.zeros((3, design.shape[1]))
    for step in range(1, num_steps + 1):
        gradient = (scipy.special.expit(design @ parameters) - labels) @ design / labels.size
        mean += (1 - beta1) * (gradient - mean)
        square += (1 - beta2) * (gradient**2 - square)
        size = np.sqrt(square / (1 - beta2**step)) + _ADAM_EPSILON
        parameters -= learning_rate / (1 - beta1**step) * mean / size
    return LinearModel(parameters[:-1], float(parameters[-1]))


def two_sample_t_less(x: npt.ArrayLike, y: npt.ArrayLike) -> TwoSampleT:
    """t of H0: E x = E y against H1: E x < E y, for two independent samples.

    Args:
        x: [N], at least 2.
        y: [M], at least 2.

    Returns:
        Student's t with pooled variance, and a one-sided p. Where neither sample varies t is undefined; then p = 1 if
        mean x >= mean y, else 0, with a warning. Not varying means up to rounding, and means within that rounding
        count as equal.

    Raises:
        ValueError: On NaN or infinite values and on fewer than two of either.

    Source: the test of LLM-DI (Maini et al., 2024); docs/methods/llm_di.md.

    >>> round(two_sample_t_less([1.0, 2.0, 3.0], [3.0, 4.0, 6.0]).p_value, 3)
    0.046
    """
    x, y = as_scores("x", x), as_scores("y", y)
    if min(x.size, y.size) < 2:
        raise ValueError(f"Expected at least 2 values in each sample; got {x.size} and {y.size}. Add documents.")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError(
            "Expected finite values; got an infinite one, and a mean over it is undefined. "
            "Clamp it, or leave the document out and count it."
        )
    mean_difference = float(x.mean() - y.mean())
    rounding = 4 * np.finfo(np.float64).eps * max(np.abs(x).max(), np.abs(y).max())
    if max(np.ptp(x), np.ptp(y)) <= rounding:
        warning = f"Neither sample varies (all {x[0]:.6g} and {y[0]:.6g}): t is undefined, p is set by the sign alone."
        return TwoSampleT(float("nan"), 1.0 if mean_difference >= -rounding else 0.0, mean_difference, warning)
    test = scipy.stats.ttest_ind_from_stats(
        x.mean(), x.std(ddof=1), x.size, y.mean(), y.std(ddof=1), y.size, alternative="less"
    )
    return TwoSampleT(float(test.statistic), float(test.pvalue), mean_difference, "")


def combine_splits(p_values: npt.ArrayLike) -> float:
    """1 - prod(1 - p) over the p-values of the splits.

    Args:
        p_values: [S] in [0, 1].

    Returns:
        A number in [max p, 1], exact for small p too. Not Fisher's or any other combination that gains strength; it is
        at least the largest p.

    Raises:
        ValueError: On numbers outside [0, 1], NaN, and if there are none.

    Source: LLM-DI (Maini et al., 2024), equation 2.

    >>> round(combine_splits([0.01, 0.02]), 4)
    0.0298
    """
    p_values = as_scores("p_values", p_values)
    if not p_values.size or p_values.min() < 0 or p_values.max() > 1:
        raise ValueError(f"Expected one p-value in [0, 1] per split, at least one; got {p_values}. Pass p-values.")
    with np.errstate(divide="ignore"):  # a p of 1 makes the sum -inf and the combination 1
        return float(-np.expm1(np.log1p(-p_values).sum()))


class _Tails(NamedTuple):
    """Where the tails of each feature begin. All [F].

    low, high: the outermost values that are no outliers.   low_clip, high_clip: the innermost that are.
    mean: of all values, outliers among them.
    """

    low: FloatArray
    high: FloatArray
    low_clip: FloatArray
    high_clip: FloatArray
    mean: FloatArray

    @classmethod
    def of(cls, features: FloatArray, tail_fraction: float) -> _Tails:
        in_order, mean = np.sort(features, axis=0), features.mean(axis=0)
        tail = int(len(features) * tail_fraction / 2)  # j: how many values are outliers on each side
        if tail == 0:
            nowhere = np.full(features.shape[1], np.inf)
            return cls(-nowhere, nowhere, -nowhere, nowhere, mean)
        return cls(in_order[tail], in_order[-tail - 1], in_order[tail - 1], in_order[-tail], mean)

    def treat(self, features: FloatArray, outliers: OutlierMode) -> FloatArray:
        if outliers == "clip":
            return np.clip(features, self.low_clip, self.high_clip)
        outside = (features < self.low) | (features > self.high)
        return np.where(outside, self.mean, features)


class _Scale(NamedTuple):
    """Mean and population standard deviation [features that vary], and which do [F]."""

    mean: FloatArray
    deviation: FloatArray
    varies: BoolArray

    @classmethod
    def of(cls, features: FloatArray) -> _Scale:
        rounding = 4 * np.finfo(np.float64).eps * np.abs(features).max(axis=0)
        varies = np.ptp(features, axis=0) > rounding
        return cls(features.mean(axis=0)[varies], features.std(axis=0)[varies], varies)

    def standardise(self, features: FloatArray) -> FloatArray:
        return (features[:, self.varies] - self.mean) / self.deviation


def _numbered(
    clusters: Sequence[Sequence[Hashable]] | None, suspect: FloatArray, heldout: FloatArray
) -> list[IntArray | None]:
    """Clusters of either set, by number; None without any."""
    if clusters is None:
        return [None, None]
    sets = (("suspect", suspect), ("heldout", heldout))
    found = [numbered_clusters(of, len(item), name) for of, (name, item) in zip(clusters, sets, strict=True)]
    if (number := min(int(of.max()) + 1 for of in found)) < MIN_CLUSTERS:
        raise ValueError(
            f"Expected at least {MIN_CLUSTERS} clusters in each set, to learn from and to test on; got {number}."
        )
    return [*found]


def _cut(
    num_documents: int, fit_size: int, cluster_of: IntArray | None, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Which documents are in part A and which in part B, each in random order, or cluster by cluster."""
    if cluster_of is None:
        order = rng.permutation(num_documents)
        return order[:fit_size], order[fit_size:]
    sizes = np.bincount(cluster_of)
    mixed = rng.permutation(sizes.size)
    ends = sizes[mixed].cumsum()
    number = min(max(int(np.searchsorted(ends, fit_size, side="right")), 1), sizes.size - 2)
    order = np.argsort(np.argsort(mixed)[cluster_of], kind="stable")
    return order[: ends[number - 1]], order[ends[number - 1] :]


def _tested(logits: Sequence[FloatArray], cluster_of: Sequence[IntArray | None]) -> TwoSampleT:
    """Whether the suspect logits lie below the held-out ones."""
    suspect, heldout = logits
    of_suspect, of_heldout = cluster_of
    if of_suspect is None or of_heldout is None:
        return two_sample_t_less(suspect, heldout)
    if min(np.unique(of_suspect).size, np.unique(of_heldout).size) < 2:
        return TwoSampleT(float("nan"), 1.0, float(suspect.mean() - heldout.mean()), "A set has one cluster.")
    test = mean_difference(heldout, suspect, of_heldout.tolist(), of_suspect.tolist(), alpha=0.05)
    return TwoSampleT(-test.t, test.p_value if np.isfinite(test.t) else 1.0, -test.difference, "")


def _curve(logits: Sequence[FloatArray], cluster_of: Sequence[IntArray | None]) -> list[float]:
    """p of the first 2, 5, ... of each, as far as both reach."""
    available = min(item.size for item in logits)
    return [
        _tested([item[:size] for item in logits], [None if of is None else of[:size] for of in cluster_of]).p_value
        for size in CURVE_SIZES
        if size <= available
    ]


def _as_features(name: str, values: npt.ArrayLike) -> FloatArray:
    """[documents, F] float64, finite, enough documents; `ValueError` otherwise."""
    features = np.asarray(values, dtype=np.float64)
    if features.ndim != 2 or features.shape[1] == 0:
        raise ValueError(
            f"Expected `{name}` to hold one row per document and one column per feature; got shape "
            f"{features.shape}. Stack the features as columns."
        )
    bad = ~np.isfinite(features)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(
            f"Expected a finite number for every document and feature in `{name}`; {np.count_nonzero(bad)} of "
            f"{bad.size} are NaN or infinite, the first in row {row}, column {column}. Leave those documents out "
            "and count them as excluded, or leave out the feature."
        )
    if len(features) < MIN_DOCUMENTS:
        raise ValueError(
            f"Expected at least {MIN_DOCUMENTS} documents in `{name}`, half to fit on and half to test on; "
            f"got {len(features)}. Add documents."
        )
    return features


def _check_columns(suspect: FloatArray, heldout: FloatArray) -> None:
    if suspect.shape[1] != heldout.shape[1]:
        raise ValueError(
            f"Expected the same features of both sets; got {suspect.shape[1]} columns for suspect and "
            f"{heldout.shape[1]} for heldout. Compute both with the same list of features."
        )
