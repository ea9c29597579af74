"""CoDeC: contamination by context (Zawalski et al., 2025). Does text of the same kind still tell the target something?

A model that has not been trained on a set learns its style from another of its texts, which makes the next one
likelier; one that has been trained on it is disturbed. Style alone does the same to text that was never read, so the
number means something beside that of held-out text of the same kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from nonmember import scores
from nonmember.methods.base import DocumentGroup, Method, Roles, ScoredDocuments, TestOutcome, require_score
from nonmember.methods.details import Details
from nonmember.records.groups import HELDOUT, SUSPECT
from nonmember.records.requirements import Access, Requirements
from nonmember.stats.classification import roc_auc

TARGET = "target"
CLAIM = (
    "None: there is no null distribution for the share of documents that context hurts. The difference from held-out "
    "text of the same kind may be compared with those of other sets under the same model."
)


@dataclass(frozen=True, kw_only=True)
class CodecDetails(Details):
    heldout: float  # the share of held-out documents
    less_heldout: float  # the statistic less this
    auc: float  # of suspect against held-out documents, by the share of their contexts
    num_heldout: int  # documents of the held-out text


@dataclass(frozen=True)
class Codec(Method):
    """The statistic is the mean over suspect documents of the share of contexts behind which the target finds a
    document less likely than alone. Contexts are other documents of the same set; of held-out text, held-out text."""

    score: Annotated[scores.Codec, require_score]  # with its number of contexts
    alpha: float
    max_tokens: int

    name = "codec"
    statistic_name = "share hurt by context"
    statistic_bounds = (0.0, 1.0)
    picture = "scores"
    details_type = CodecDetails
    requirements = Requirements(access=Access.WEIGHTS, documents=10, inputs=("heldout",), passes=22)

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        corpora = {SUSPECT: roles.suspect, HELDOUT: roles.need_heldout(self.name)}
        return {
            group: DocumentGroup(corpus, {TARGET: roles.scored(self.score, corpus, self.max_tokens)})
            for group, corpus in corpora.items()
        }

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        """There is neither p-value nor interval."""
        suspect, heldout = (documents[group].values[TARGET] for group in (SUSPECT, HELDOUT))
        share, control = float(suspect.mean()), float(heldout.mean())
        is_suspect = np.repeat([True, False], [len(suspect), len(heldout)])
        return TestOutcome(
            statistic=share,
            alpha=self.alpha,
            verdict="score_only",
            allowed_claim=CLAIM,
            warnings=(
                f"Held-out text, the control: {control:.3f}; only the difference, {share - control:+.3f}, counts.",
            ),
            details=CodecDetails(
                heldout=control,
                less_heldout=share - control,
                auc=roc_auc(np.concatenate([suspect, heldout]), is_suspect),
                num_heldout=len(heldout),
            ),
        )
