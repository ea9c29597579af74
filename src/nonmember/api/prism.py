"""`nm.prism_test`: PRISM's test on three arrays of scores, wherever they are from."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nonmember.checks import require_seed
from nonmember.config.build import build
from nonmember.config.compose import composed, explained
from nonmember.config.words import literal, override
from nonmember.methods import Prism, ScoredDocuments
from nonmember.methods.prism.prism import PrismDetails
from nonmember.records.groups import SUSPECT
from nonmember.stats._arrays import as_paired_scores, numbered_clusters


@dataclass(frozen=True, repr=False, eq=False)
class PrismTest:
    """PRISM's test of a dataset.

    The ends of the interval are NaN where a score is constant and orders nothing.

    Attributes:
        verdict: "evidence_of_non_membership", "inconclusive" or "invalid".
        claim: What may be said.
        statistic: Delta = rho_reference_target - rho_distilled_target, in [-2, 2].
        p_value: One-sided, of Delta <= margin, in (0, 1].
        ci_low: Lower end of the percentile interval of Delta of level 1 - alpha.
        ci_high: Its upper end.
        distribution: [num_resamples] Delta in each resample, NaN where undefined.
    """

    verdict: str
    claim: str
    statistic: float
    p_value: float
    ci_low: float
    ci_high: float
    rho_reference_target: float
    rho_distilled_target: float
    num_documents: int
    alpha: float
    margin: float
    rank_metric: str
    warnings: tuple[str, ...]
    distribution: npt.NDArray[np.float64]

    def __repr__(self) -> str:
        lines = [
            f"PRISM: {self.verdict}",
            f"Delta {self.statistic:+.4f} [{self.ci_low:+.4f}, {self.ci_high:+.4f}], p = {self.p_value:.4g} "
            f"(margin {self.margin:g}), {self.num_documents} documents",
            f"{self.rank_metric} rho(reference, target) {self.rho_reference_target:.4f}, "
            f"rho(distilled, target) {self.rho_distilled_target:.4f}",
            self.claim,
            *(f"warning: {text}" for text in self.warnings),
        ]
        return "\n  ".join(lines)


def prism_test(
    reference: npt.ArrayLike,
    target: npt.ArrayLike,
    distilled: npt.ArrayLike,
    *,
    rank_metric: str | None = None,
    num_resamples: int | None = None,
    alpha: float | None = None,
    margin: float | None = None,
    clusters: Sequence[str] | None = None,
    seed: int | None = None,
) -> PrismTest:
    """Is there evidence that the target has *not* read these documents?

    Nothing is known here of the models, so no gate is applied: a ruined distilled reference passes as well. See
    `nm.stats.difference_of_dependent_correlations` for the test without a verdict.

    Settings that are None are as the config of the method says (conf/method/prism.yaml).

    Args:
        reference: [N] one score per document (the paper's is Min-K%++) under a reference model that has not read them.
            The three arrays are of the same documents in the same order, finite numbers; only their order counts.
        target: [N] the same under the target.
        distilled: [N] the same under the reference after distillation from the target on the documents.
        rank_metric: "spearman" or "kendall".
        num_resamples: Of the bootstrap over documents.
        alpha: Level.
        margin: That Delta must exceed, in [0, 2); 0 is the paper's.
        clusters: [N] what documents belong together (book, thread), which are then drawn together. None: each document
            is drawn by itself.
        seed: Of the resamples; the same as an audit's gives its numbers.

    Returns:
        What `nm.audit("prism")` finds with the scores that it makes, namely verdict, Delta, p and interval.

    Raises:
        ValueError: For arrays that do not fit together, NaN, and settings out of range.

    Source: PRISM, section 4.3, tables 2 and 3.

    >>> import numpy as np
    >>> import nonmember as nm
    >>> rng = np.random.default_rng(0)
    >>> target = rng.normal(size=200)
    >>> reference = target + rng.normal(scale=0.5, size=200)  # orders the documents much as the target does
    >>> distilled = target + rng.normal(scale=2.0, size=200)  # distillation on them led away from it
    >>> found = nm.prism_test(reference, target, distilled, num_resamples=500)
    >>> found.verdict, round(found.statistic, 3), found.p_value < 0.01
    ('evidence_of_non_membership', 0.41, True)
    """
    given = {"rank_metric": rank_metric, "num_resamples": num_resamples, "alpha": alpha, "margin": margin}
    settings = (override(f"method.{name}", value) for name, value in given.items() if value is not None)
    method, default_seed = _configured(tuple(settings))
    if seed is not None:
        require_seed(seed := literal(seed))
    reference, target, distilled = as_paired_scores(reference=reference, target=target, distilled=distilled)
    names = tuple(map(str, range(target.size)))
    values = {"reference": reference, "target": target, "distilled": distilled}
    if clusters is not None:
        numbered_clusters(clusters, target.size)
    documents = ScoredDocuments(names, values, ("",) * target.size if clusters is None else tuple(map(str, clusters)))
    if few := method.too_few_clusters({SUSPECT: documents}):
        raise ValueError(few[0])
    rng = np.random.default_rng([default_seed if seed is None else seed, 0])
    outcome = method.test({SUSPECT: documents}, rng)
    details = outcome.details
    assert isinstance(details, PrismDetails)
    assert details.rho_distilled_target is not None
    return PrismTest(
        verdict=outcome.verdict,
        claim=outcome.allowed_claim,
        statistic=outcome.statistic,
        p_value=outcome.p_value,
        ci_low=outcome.ci_low,
        ci_high=outcome.ci_high,
        rho_reference_target=details.rho_reference_target,
        rho_distilled_target=details.rho_distilled_target,
        num_documents=target.size,
        alpha=outcome.alpha,
        margin=method.margin,
        rank_metric=method.rank_metric,
        warnings=tuple(outcome.warnings),
        distribution=outcome.distribution,
    )


@functools.cache
def _configured(settings: tuple[str, ...]) -> tuple[Prism, int]:
    """The method without gates, and the seed of audits, as the config has them."""
    with explained(), composed("audit", ["method=prism", "gates=off", *settings]) as (config, _):
        return build(config.method), config.seed
