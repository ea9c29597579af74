"""FSD: fine-tune the target on unseen documents of the same kind, and measure how other documents' scores change
(Zhang et al., 2025).

The deviation of a score is S(x; target) - S(x; tuned target), with S as everywhere higher for members: tuning on
unseen text helps other unseen text more than what the target has read, so members lie high. For perplexity, whose score
is -ppl, that is ppl(tuned) - ppl(base), minus the deviation of the paper's equation 5: of perplexity itself and not of
its logarithm, so that documents of the long tail dominate. A score per document; an AUC where truth is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, TypedDict

import numpy as np

from nonmember.checks import Number
from nonmember.corpora import CorpusSpec, View, Viewed
from nonmember.corpora.transforms.splits import YEAR, position
from nonmember.methods.base import (
    INVALID_WITHOUT_TEST,
    DocumentGroup,
    Method,
    Roles,
    ScoredDocuments,
    TestOutcome,
    Verdict,
    require_scores,
    units,
)
from nonmember.methods.comparison import Folds, Penalty, blind_between, kinds_of, most_telling
from nonmember.methods.details import Details
from nonmember.models import ModelSpec, label_of
from nonmember.records import Corpus, FloatArray
from nonmember.records.groups import HELDOUT, SUSPECT, UNSEEN, set_of
from nonmember.records.requirements import Access, Requirements
from nonmember.scores import Loss, Score
from nonmember.stats._arrays import BoolArray
from nonmember.stats.blind import INTERPRETABLE_UP_TO, BlindBaseline
from nonmember.stats.classification import Ranking, cluster_counts, ranking, roc_auc
from nonmember.training import Trained
from nonmember.training.recipes import TrainingRecipe

BASE, TUNED, FSD = "target", "tuned", "fsd"
PROGRESS = Loss()  # on the documents tuned on: did tuning do anything?
VALIDATION_SALT = "validation"
UNEQUAL_LENGTHS = 0.1  # from .5: an AUC of the lengths alone that is worth a warning

CLAIM = (
    "None about a single document or the set: FSD ranks documents, and the AUC says how well on these two labelled "
    "sets. A threshold needs labelled documents of the same kind."
)


class Auc(TypedDict):
    """An AUC, or a difference of two, with its interval."""

    auc: float
    auc_low: float
    auc_high: float


class DeviationDetails(TypedDict):
    """The score before tuning, its deviation, and the gain in AUC."""

    base: Ranking
    fsd: Ranking
    gain: Auc


class TextsDetails(TypedDict):
    """Of one set: lengths in characters, and the years that are named."""

    mean_characters: float
    share_with_a_year: float
    mean_year: float | None


class Leaked(TypedDict):
    """Documents under test whose text, or a part of whose article, is tuned on."""

    members: int
    nonmembers: int


class UnseenLoss(TypedDict):
    """Nats per token of the documents tuned on."""

    base: float
    tuned: float


@dataclass(frozen=True, kw_only=True)
class FsdDetails(Details):
    auroc: float  # the statistic: AUC of the deviation of the first score
    tpr_at_5pct_fpr: float  # TPR at FPR <= 5% of the same
    auroc_base: float  # AUC of that score before tuning
    auroc_blind: float  # the largest AUC from text alone
    scores: Mapping[str, DeviationDetails]  # name of a score -> how it and its deviation rank
    blind: Mapping[str, Auc]  # kind of features -> AUC from text alone
    texts: Mapping[str, TextsDetails]  # set -> how its texts are
    length_auc: float  # AUC from lengths alone
    num_members: int  # documents of the suspect set
    num_nonmembers: int  # documents of the held-out set
    num_unseen: int  # documents tuned on
    nll_of_unseen: UnseenLoss  # before and after tuning
    num_clusters: int  # of both sets, which are resampled as one
    num_validation: int  # documents on which thresholds are chosen
    num_leaked: Leaked  # of each set


@dataclass(frozen=True)
class Fsd(Method):
    # Each is reported under the target (base) and as its deviation; the first gives the statistic.
    scores: Annotated[Sequence[Score], require_scores]
    training: TrainingRecipe  # how the target is tuned on the unseen documents
    view: View  # of all documents, those tuned on included; original, or one of the edits of years
    num_resamples: int  # of clusters of documents, for the intervals
    # Of the clusters, on which the threshold of the honest accuracy is chosen.
    validation_share: Annotated[float, Number("(0, 1)")]
    # num_folds, inverse_penalty: of the blind baseline, which stands beside every AUC
    num_folds: Folds
    inverse_penalty: Penalty
    # Documents under test may be among those tuned on, or be parts of the same article, as in the paper's protocol;
    # they are counted.
    compat: bool
    alpha: float
    max_tokens: int

    name = "fsd"
    statistic_name = "AUC"
    statistic_bounds = (0.0, 1.0)
    picture = "changes"
    details_type = FsdDetails
    requirements = Requirements(
        access=Access.WEIGHTS, documents=30, inputs=("heldout", "unseen"), passes=8, tuned=1, epochs=3
    )

    @property
    def score_name(self) -> str:
        return self.scores[0].name

    # What is measured ---------------------------------------------------------------------------------------------

    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        models = {BASE: roles.target, TUNED: self.tuned(roles)}
        return {
            SUSPECT: self._measured(roles.suspect, roles, models),
            HELDOUT: self._measured(roles.need("heldout", self.name), roles, models),
            UNSEEN: self._measured(roles.need("unseen", self.name), roles, models, [PROGRESS]),
        }

    def tuned(self, roles: Roles) -> Trained:
        """The target tuned on the unseen documents."""
        unseen = self._seen_as(roles.need("unseen", self.name))
        return Trained(roles.target, self.training, unseen, seed=roles.seed, label=f"{label_of(roles.target)}-tuned")

    def _measured(
        self, corpus: CorpusSpec, roles: Roles, models: Mapping[str, ModelSpec], scores: Sequence[Score] | None = None
    ) -> DocumentGroup:
        shown = self._seen_as(corpus)
        measured = {
            column(role, score): roles.scored(score, shown, self.max_tokens, role, model)
            for role, model in models.items()
            for score in scores or self.scores
        }
        return DocumentGroup(shown, measured)

    def _seen_as(self, corpus: CorpusSpec) -> CorpusSpec:
        return corpus if self.view == "original" else Viewed(corpus, self.view)

    # What is refused ----------------------------------------------------------------------------------------------

    def least(self, group: str) -> int:
        """Of the documents tuned on, a batch."""
        return self.training.optimization.batch_size if group == UNSEEN else self.requirements.documents

    def check(self, corpora: Mapping[str, Corpus]) -> None:
        unseen = shown_by(corpora[UNSEEN])
        for group in (SUSPECT, HELDOUT):
            num_texts, num_clusters = overlap(shown_by(corpora[group]), unseen)
            if (num_texts or num_clusters) and not self.compat:
                raise ValueError(
                    f"{num_texts + num_clusters} of {len(corpora[group])} documents of the {set_of(group)} overlap "
                    f"with the documents to be tuned on ({num_texts} with the same text, {num_clusters} more from the "
                    "same article or other cluster). Split by cluster, or set method.compat=true to have them counted."
                )

    # What it means ------------------------------------------------------------------------------------------------

    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        members, others, unseen = (documents[group] for group in (SUSPECT, HELDOUT, UNSEEN))
        is_member = np.repeat([True, False], [len(members.doc_ids), len(others.doc_ids)])
        clusters = [*units(members, SUSPECT), *units(others, HELDOUT)]
        validation = np.array([position(VALIDATION_SALT, unit) < self.validation_share for unit in clusters])
        counts_NB = cluster_counts(clusters, self.num_resamples, rng)

        rankings: dict[str, dict[str, Ranking]] = {}
        for score in self.scores:
            rankings[score.name] = {
                kind: ranking(values, is_member, counts_NB, validation, alpha=self.alpha)
                for kind, values in _base_and_deviation(score, members, others).items()
            }
        blind = blind_between(
            members, others, rng, self.num_folds, self.inverse_penalty, self.num_resamples, self.alpha
        )
        leaked: Leaked = {
            "members": sum(overlap(shown_by(members), shown_by(unseen))),
            "nonmembers": sum(overlap(shown_by(others), shown_by(unseen))),
        }
        nll = {role: -float(unseen.values[column(role, PROGRESS)].mean()) for role in (BASE, TUNED)}
        shown = rankings[self.score_name][FSD]
        smallest = min(len(members.doc_ids), len(others.doc_ids))
        verdict: Verdict = "invalid" if smallest < self.requirements.documents else "score_only"
        return TestOutcome(
            statistic=shown.auc,
            ci_low=shown.auc_low,
            ci_high=shown.auc_high,
            alpha=self.alpha,
            verdict=verdict,
            allowed_claim=CLAIM if verdict == "score_only" else INVALID_WITHOUT_TEST,
            warnings=(
                *self._few(smallest),
                *_idle(nll),
                *_leaks(leaked, len(members.doc_ids), len(others.doc_ids)),
                *_differences(blind, members.texts, others.texts),
            ),
            details=FsdDetails(
                auroc=shown.auc,
                tpr_at_5pct_fpr=shown.tpr_at_5pct_fpr,
                auroc_base=rankings[self.score_name]["base"].auc,
                auroc_blind=blind.largest_auc,
                scores={name: self._as_details(kinds) for name, kinds in rankings.items()},
                blind={
                    name: {"auc": kind.auc, "auc_low": kind.ci_low, "auc_high": kind.ci_high}
                    for name, kind in kinds_of(blind).items()
                },
                texts={"members": described(members.texts), "nonmembers": described(others.texts)},
                length_auc=length_auc(members.texts, others.texts),
                num_members=len(members.doc_ids),
                num_nonmembers=len(others.doc_ids),
                num_unseen=len(unseen.doc_ids),
                nll_of_unseen={"base": nll[BASE], "tuned": nll[TUNED]},
                num_clusters=len(set(clusters)),
                num_validation=int(validation.sum()),
                num_leaked=leaked,
            ),
            distribution=shown.distribution,
        )

    def _as_details(self, kinds: Mapping[str, Ranking]) -> DeviationDetails:
        """Base, FSD, and the gain in AUC with its interval over the same resamples."""
        gain = kinds[FSD].distribution - kinds["base"].distribution
        low, high = (
            np.nanquantile(gain, (self.alpha / 2, 1 - self.alpha / 2)) if np.isfinite(gain).any() else (np.nan,) * 2
        )
        return {
            "base": kinds["base"],
            "fsd": kinds[FSD],
            "gain": {"auc": kinds[FSD].auc - kinds["base"].auc, "auc_low": low, "auc_high": high},
        }

    def _few(self, smallest: int) -> list[str]:
        if smallest >= self.requirements.documents:
            return []
        return [
            f"{smallest} documents of one set are left; the comparison needs at least {self.requirements.documents}."
        ]


def column(role: str, score: Score) -> str:
    """Of scores.parquet."""
    return f"{role}/{score.name}"


def _base_and_deviation(score: Score, *groups: ScoredDocuments) -> dict[str, FloatArray]:
    base, tuned = (np.concatenate([group.values[column(role, score)] for group in groups]) for role in (BASE, TUNED))
    return {"base": base, FSD: deviation(base, tuned)}


def deviation(base: FloatArray, tuned: FloatArray) -> FloatArray:
    """S(target) - S(tuned) of scores that are higher for members; so is this."""
    return base - tuned


Shown = Sequence[tuple[str, str]]  # (text, cluster or nothing)


def shown_by(documents: Corpus | ScoredDocuments) -> Shown:
    if isinstance(documents, Corpus):
        return [(document.text, document.cluster_id) for document in documents.documents]
    return list(zip(documents.texts, documents.cluster_ids, strict=True))


def overlap(tested: Shown, unseen: Shown) -> tuple[int, int]:
    """Documents under test whose text is tuned on; further ones of whose cluster another part is."""
    texts, clusters = {text for text, _ in unseen}, {cluster for _, cluster in unseen if cluster}
    num_texts = sum(text in texts for text, _ in tested)
    return num_texts, sum(text not in texts and cluster in clusters for text, cluster in tested)


def lengths(texts: Sequence[str]) -> FloatArray:
    """[documents] in characters."""
    return np.array([len(text) for text in texts], dtype=np.float64)


def length_auc(members: Sequence[str], others: Sequence[str]) -> float:
    """How well the length alone ranks members above the others."""
    is_member: BoolArray = np.repeat([True, False], [len(members), len(others)])
    return roc_auc(np.concatenate([lengths(members), lengths(others)]), is_member)


def described(texts: Sequence[str]) -> TextsDetails:
    """Length in characters, and the years that are named."""
    years = [[int(year) for year in YEAR.findall(text)] for text in texts]
    named = [year for item in years for year in item]
    return {
        "mean_characters": float(lengths(texts).mean()),
        "share_with_a_year": sum(map(bool, years)) / len(texts),
        "mean_year": float(np.mean(named)) if named else None,
    }


def _leaks(leaked: Leaked, num_members: int, num_others: int) -> list[str]:
    groups = {"members": (leaked["members"], num_members), "nonmembers": (leaked["nonmembers"], num_others)}
    return [
        f"compat: {shared} of {number} {name} under test ({shared / number:.0%}) are tuned on, or come from an article "
        "of which a part is."
        for name, (shared, number) in groups.items()
        if shared
    ]


def _idle(nll: Mapping[str, float]) -> list[str]:
    if nll[TUNED] < nll[BASE]:
        return []
    return [
        f"Tuning did not lower the loss on the documents tuned on ({nll[BASE]:.3f} to {nll[TUNED]:.3f} nats per "
        "token): deviations are noise."
    ]


def _differences(blind: BlindBaseline, members: Sequence[str], others: Sequence[str]) -> list[str]:
    """Where the two sets differ otherwise than by membership."""
    kinds = kinds_of(blind)
    best, warnings = most_telling(kinds), []
    if not blind.interpretable:
        warnings.append(
            f"Text alone tells the two sets apart with an AUC of {kinds[best].auc:.3f} ({best}), above "
            f"{INTERPRETABLE_UP_TO}: no AUC here can be read as membership."
        )
    if blind.years.auc > INTERPRETABLE_UP_TO:
        warnings.append(f"The two sets differ in the years they name: AUC {blind.years.auc:.3f} from years alone.")
    if abs((auc := length_auc(members, others)) - 0.5) > UNEQUAL_LENGTHS:
        means = [lengths(texts).mean() for texts in (members, others)]
        warnings.append(
            f"The two sets differ in length ({means[0]:.0f} and {means[1]:.0f} characters on average): AUC {auc:.3f} "
            "from lengths alone."
        )
    return warnings
