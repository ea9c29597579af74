"""PRISM's gates: preconditions for a verdict of non-membership.

Delta rises with whatever moves the distilled reference away from the target: a ruinous learning rate, noise, other
text. And p-values of scores that hardly differ are about rounding. So no verdict of non-membership is given unless
distillation did what it is for, the reference is another model, and the documents can be ranked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from nonmember.checks import require_count, require_number
from nonmember.corpora import CorpusSpec, LibraryDocs, Neutral
from nonmember.methods.base import DocumentGroup, Measurement, Roles, ScoredDocuments
from nonmember.methods.findings import Finding
from nonmember.methods.prism.gates import LIKELIHOOD, LOSS, HealthBounds, health_measurements
from nonmember.models import ModelSpec
from nonmember.observations import Scored
from nonmember.records import FloatArray
from nonmember.records.groups import SUSPECT, THIRD
from nonmember.stats.correlation import RankMetric, rank_correlation

COUNTS = ("num_documents", "min_characters", "max_characters")


@dataclass(frozen=True)
class PrismGates(HealthBounds):
    """Bounds (docs/gates.md says where they come from).

    max_rank_correlation: of the reference's scores with the target's; above it they are the same model.
    max_reference_gain: how much more likely than the target, in nats per token, the reference may find the suspect set,
    less the same difference on the third text; a reference above it knows the set, or was swapped with the target.
    min_distinct: number of different sets of words as a share of the documents.   min_spread: standard deviation of the
    score over documents as a share of its mean, under each model.   min_delta: a significant Delta below it decides
    nothing.

    The third text is the audit's general text, else docstrings of the installed packages named in `docstrings`, without
    whatever shares a passage with the suspect set: at most num_documents documents of min_characters or more, cut to
    max_characters.
    """

    max_rank_correlation: float
    max_reference_gain: float
    min_distinct: float
    min_spread: float
    min_delta: float
    num_documents: int
    min_characters: int
    max_characters: int
    docstrings: Sequence[str]

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            least = 30 if field.name == "num_documents" else 1  # as many as PRISM itself needs
            if field.name in COUNTS:
                require_count(value, least, f"gates.{field.name}")
            elif field.name != "docstrings":
                require_number(value, "(-inf, inf)", f"gates.{field.name}", hint="To apply no gate: gates=off.")
        object.__setattr__(self, "docstrings", tuple(self.docstrings))

    # What is measured ---------------------------------------------------------------------------------------------

    def neutral(self, roles: Roles, half: str, num_documents: int | None) -> CorpusSpec:
        """Text on neither side; the halves "third" and "practice" share no document. null: as many as are suspect."""
        return Neutral(
            roles.general or LibraryDocs(tuple(self.docstrings)),
            roles.suspect,
            half=half,
            num_documents=num_documents,
            min_characters=self.min_characters,
            max_characters=self.max_characters,
        )

    def third(self, roles: Roles) -> CorpusSpec:
        return self.neutral(roles, THIRD, self.num_documents)

    def groups(
        self, roles: Roles, distilled: ModelSpec, third: CorpusSpec, max_tokens: int
    ) -> dict[str, DocumentGroup]:
        """Health of a distilled reference on the roles' suspect set and on the third text, and how the target does."""
        corpora = {SUSPECT: roles.suspect, THIRD: third}
        return {
            name: DocumentGroup(corpus, _measured(roles, distilled, corpus, max_tokens))
            for name, corpus in corpora.items()
        }

    # What is judged -----------------------------------------------------------------------------------------------

    def of_models(self, suspect: ScoredDocuments, third: ScoredDocuments) -> list[Finding]:
        """Of reference and target: has the reference read the suspect set?"""
        lead = [
            float(np.mean(item.values[f"{LOSS}/reference"] - item.values[f"{LOSS}/target"]))
            for item in (suspect, third)
        ]
        what = (
            "What the reference gains on the target in cross-entropy on the suspect set, less the same on the third "
            "text (has the reference read the set, were the two models swapped, or is the third text of another kind "
            "than the set? Then give world.general.path=FILE)"
        )
        return [Finding("reference_gain", lead[0] - lead[1], self.max_reference_gain, True, what)]

    def of_scores(self, suspect: ScoredDocuments, roles: Sequence[str], metric: RankMetric) -> list[Finding]:
        """Of the documents and their scores under models by role."""
        rho = rank_correlation(suspect.values["reference"], suspect.values["target"], metric)
        spreads = {role: _spread(suspect.values[role]) for role in roles}
        least = min(spreads, key=lambda role: spreads[role])
        return [
            Finding(
                "rank_correlation",
                rho if np.isfinite(rho) else 1.0,
                self.max_rank_correlation,
                True,
                "The rank correlation of reference and target, which is 1 if they are the same model,",
            ),
            Finding(
                "distinct",
                _distinct(suspect.texts),
                self.min_distinct,
                False,
                "The number of documents with different words as a share of all",
            ),
            Finding(
                "spread",
                spreads[least],
                self.min_spread,
                False,
                f"The standard deviation of the score under the {least} model as a share of its mean",
            ),
        ]

    def of_delta(self, delta: float) -> Finding:
        return Finding("delta", delta, self.min_delta, False, "Delta")


def _measured(roles: Roles, distilled: ModelSpec, corpus: CorpusSpec, max_tokens: int) -> dict[str, Measurement]:
    measured: dict[str, Measurement] = {
        f"{LOSS}/target": Scored("target", roles.target, corpus, LIKELIHOOD, max_tokens),
        **health_measurements("reference", roles.reference, roles.target, corpus, max_tokens),
        **health_measurements("distilled", distilled, roles.target, corpus, max_tokens),
    }
    return measured


def _spread(scores: FloatArray) -> float:
    """Standard deviation over |mean|; 0 for scores that are all the same."""
    return float(np.std(scores)) / max(abs(float(np.mean(scores))), 1e-12)


def _distinct(texts: Sequence[str]) -> float:
    return len({frozenset(text.lower().split()) for text in texts}) / len(texts) if texts else 1.0
