"""`nm.prism_test`: PRISM's test on three arrays of scores, wherever they are from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nonmember.config.build import build
from nonmember.config.compose import composed, explained
from nonmember.config.words import override
from nonmember.methods import ScoredDocuments, TestOutcome
from nonmember.records.groups import SUSPECT
from nonmember.stats._arrays import as_paired_scores, numbered_clusters


def prism_test(
    reference: npt.ArrayLike,
    target: npt.ArrayLike,
    distilled: npt.ArrayLike,
    *,
    clusters: Sequence[str] | None = None,
    seed: int | None = None,
    **settings: Any,
) -> TestOutcome:
    """Is there evidence that the target has *not* read these documents?

    Nothing is known here of the models, so no gate is applied: a ruined distilled reference passes as well.

    Args:
        reference: [N] one score per document (the paper's is Min-K%++) under a reference model that has not read them.
            The three arrays are of the same documents in the same order, finite numbers; only their order counts.
        target: [N] the same under the target.
        distilled: [N] the same under the reference after distillation from the target on the documents.
        clusters: [N] what documents belong together (book, thread), which are then drawn together.
        seed: Of the resamples; the same as an audit's gives its numbers.
        **settings: Of the method, as conf/method/prism.yaml has them: rank_metric="kendall", num_resamples, alpha,
            margin.

    Returns:
        What `nm.audit("prism")` finds with the scores that it makes: verdict, statistic (Delta), p_value, interval.

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
    words = ["method=prism", "gates=off", *(override(f"method.{name}", value) for name, value in settings.items())]
    seeded = [] if seed is None else [override("seed", seed)]
    with explained(), composed("audit", [*words, *seeded]) as (config, _):
        method, rng = build(config.method), np.random.default_rng([config.seed, 0])
    reference, target, distilled = as_paired_scores(reference=reference, target=target, distilled=distilled)
    if clusters is not None:
        numbered_clusters(clusters, target.size)
    names, units = tuple(map(str, range(target.size))), tuple(map(str, clusters or [""] * target.size))
    scored = {"reference": reference, "target": target, "distilled": distilled}
    documents = {SUSPECT: ScoredDocuments(names, scored, units)}
    if few := method.too_few_clusters(documents):
        raise ValueError(few[0])
    outcome: TestOutcome = method.test(documents, rng)
    return outcome
