"""The interface between audit methods and the pipeline: which scores of which documents under which models they need,
and what they mean.

A method never trains, downloads or opens a file. It says what is to be measured and is given the numbers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np

from nonmember.checks import (
    Checked,
    require_choice,
    require_count,
    require_distinct,
    require_kind,
    require_number,
    wrong,
)
from nonmember.corpora import CorpusSpec
from nonmember.endpoints import Answers
from nonmember.methods.details import Details
from nonmember.models import ModelSpec
from nonmember.observations import Measurement, Scored
from nonmember.records import Corpus, FloatArray, VectorArray
from nonmember.records.groups import HELDOUT, SUSPECT, set_of
from nonmember.records.requirements import Requirements
from nonmember.scores import Score

MOST_RESAMPLES = 10_000_000
RESAMPLED = ("num_resamples", "num_permutations", "num_blind_resamples")  # settings of methods

Bounds = tuple[float, float]
Claim = Literal["non_membership", "membership"]
Guarantee = Literal["exact", "asymptotic", "model-based", "none"]
Verdict = Literal["evidence_of_non_membership", "evidence_of_membership", "inconclusive", "score_only", "invalid"]

# How the page of an audit draws what a method looks at (reports.audit_page.pictures): ranks under target and others;
# pairs of values of each document; values by group, or target less reference by group; shards of an ordered file;
# answers; changes of a score by tuning; AUCs with their intervals; a curve of readings; else histograms of the scores.
Picture = Literal[
    "ranks", "pairs", "groups", "gains", "shards", "answers", "changes", "aucs", "dose", "tests", "scores"
]


MIN_CLUSTERS = 10  # of a set: with fewer, variances and resamples by clusters are too narrow
INVALID_CLAIM = "A precondition of the test failed; nothing may be concluded."
SAME_DISTRIBUTION = (
    "Suspect and held-out text must be draws from one distribution: that the blind control cannot distinguish them is "
    "no proof of it."
)
INVALID_WITHOUT_TEST = "A precondition failed; nothing may be concluded."  # of FSD, KDS and MC-PDD, as bundles state it


class MissingText(ValueError):
    """A method needs text that was not given.

    Attributes:
        role: "heldout" or "unseen".
    """

    def __init__(self, role: str, message: str):
        super().__init__(message)
        self.role = role


@dataclass(frozen=True)
class Roles:
    """Who is who in an audit.

    Attributes:
        heldout: Certainly unseen text of the suspect set's kind, for methods that compare.
        unseen: Further such text, for methods that tune the target on it.
        general: Disjoint text of any kind, for gates and where DC-PDD counts.
        obstacle: Why no distilled reference is worth making; empty where there is no reason.
        out_models: Further models that have not read the texts, for scores that compare with several.
    """

    target: ModelSpec
    reference: ModelSpec
    suspect: CorpusSpec
    seed: int
    heldout: CorpusSpec | None = None
    unseen: CorpusSpec | None = None
    general: CorpusSpec | None = None
    obstacle: str = ""
    out_models: tuple[ModelSpec, ...] = ()

    def scored(
        self, score: Score, corpus: CorpusSpec, max_tokens: int, role: str = "target", model: ModelSpec | None = None
    ) -> Scored:
        """A score of every document under the target (or another model).

        It is compared with the reference where the score does so, and behind the unseen text where it puts text before
        each document.
        """
        model = model or self.target
        scored = Scored(role, model, corpus, score, max_tokens, self.reference, self.general, prefix=self.unseen)
        return replace(scored, out_models=self.out_models)

    def need(self, role: Literal["heldout", "unseen"], method: str) -> CorpusSpec:
        """Raises MissingText where it was not given."""
        found: CorpusSpec | None = getattr(self, role)
        if found is None:
            what = {"heldout": "compares the suspect set with", "unseen": "tunes the target on"}[role]
            raise MissingText(
                role,
                f"{method} {what} text of the same kind that was certainly not read; none was given. Name it, as in "
                f"+data@data.{role}=documents data.{role}.path=unread.jsonl",
            )
        return found


@dataclass(frozen=True)
class DocumentGroup:
    """What is to be measured on one set of documents: by name, and joined by document id."""

    corpus: CorpusSpec
    measured: Mapping[str, Measurement] = field(default_factory=dict)


@dataclass(frozen=True)
class Exclusion:
    """Why `measurement` has no value of a document."""

    measurement: str
    reason: str

    def __str__(self) -> str:
        return f"{self.measurement}: {self.reason}"


@dataclass(frozen=True)
class ScoredDocuments:
    """The documents of a group that every measurement could score, in one order.

    Attributes:
        values: Name of a measurement -> [documents].
        embeddings: Name of an embedding's -> [documents, width].
        answers: Name of a measurement that asks -> [documents] tuples of answers, those that failed left out.
        excluded: The group's other documents -> the first measurement that has no value of them, and why.
    """

    doc_ids: tuple[str, ...]
    values: Mapping[str, FloatArray]
    cluster_ids: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    embeddings: Mapping[str, VectorArray] = field(default_factory=dict)
    answers: Mapping[str, tuple[Answers, ...]] = field(default_factory=dict)
    excluded: Mapping[str, Exclusion] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class TestOutcome:
    """What a method concludes.

    Attributes:
        statistic: NaN where undefined, as are the three that follow.
        p_value: NaN where undefined.
        p_error: Monte-Carlo standard error of p; None where p is not made of random draws.
        claim: What p speaks for where the verdict's test is not the method's only one; None: `Method.hypothesis`.
        null_hypothesis: Which p is of, likewise.
        ci_low: NaN where undefined.
        ci_high: NaN where undefined.
        details: Further numbers, as the method declares them.
        distribution: Resampled statistics, empty where the method has none.
    """

    __test__: ClassVar[bool] = False  # pytest takes classes called Test... for tests
    statistic: float = np.nan
    p_value: float = np.nan
    p_error: float | None = None
    claim: Claim | None = None
    null_hypothesis: str | None = None
    ci_low: float = np.nan
    ci_high: float = np.nan
    alpha: float
    verdict: Verdict
    allowed_claim: str
    warnings: Sequence[str] = ()
    details: Details = field(default_factory=Details)
    distribution: FloatArray = field(default_factory=lambda: np.zeros(0), repr=False)

    def __post_init__(self) -> None:
        require_choice(self.verdict, get_args(Verdict), "verdict of a TestOutcome")
        if not (np.isnan(self.p_value) or 0 <= self.p_value <= 1):
            raise ValueError(f"p_value of a TestOutcome must lie in [0, 1], or be NaN; got {self.p_value}.")

    def __str__(self) -> str:
        numbers = f"statistic {self.statistic:.4f} [{self.ci_low:.4f}, {self.ci_high:.4f}], p = {self.p_value:.4g}"
        return "\n  ".join([self.verdict, numbers, self.allowed_claim, *(f"warning: {text}" for text in self.warnings)])

    @classmethod
    def invalid(cls, reasons: Sequence[str], *, alpha: float, details: Details | None = None) -> Self:
        """Where there is nothing to compute, for these reasons."""
        invalid = cls(alpha=alpha, verdict="invalid", allowed_claim=INVALID_CLAIM, warnings=tuple(reasons))
        return invalid if details is None else replace(invalid, details=details)

    def made_invalid(self, warnings: Sequence[str]) -> Self:
        """The same numbers, of which nothing may be concluded. warnings: all of them."""
        return replace(self, verdict="invalid", allowed_claim=INVALID_CLAIM, warnings=tuple(warnings))


class Method(Checked, ABC):
    """One file and one YAML per method.

    Attributes:
        statistic_name: What the statistic is called where results are shown.
        statistic_bounds: Least and greatest value it can have; None where it has none.
        claim: What a p-value below alpha speaks for; None where the method has no test.
        guarantee: What holds the test's error rate: exact (the draw of the sets, or of a permutation), asymptotic (in
            the number of documents), model-based (as far as a model of the errors is right), none (no test).
        null_hypothesis: Which the p-value is of, in a sentence.
        picture: Of what the method looks at.
        details_type: Of its outcomes.
        requirements: What it needs with its usual settings.
    """

    name: ClassVar[str]
    is_drawn: ClassVar[bool] = False  # whether chance put texts on either side, so that nothing else tells them apart
    statistic_name: ClassVar[str] = "statistic"
    statistic_bounds: ClassVar[Bounds | None] = None
    claim: ClassVar[Claim | None] = None
    guarantee: ClassVar[Guarantee] = "none"
    null_hypothesis: ClassVar[str] = ""
    picture: ClassVar[Picture] = "scores"
    details_type: ClassVar[type[Details]] = Details
    requirements: ClassVar[Requirements]
    alpha: float
    max_tokens: int

    def __post_init__(self) -> None:
        """Settings are refused before anything is trained for them."""
        require_number(self.alpha, "(0, 1)", "alpha", hint="The usual level is 0.05.")
        require_count(self.max_tokens, 2, "max_tokens")
        super().__post_init__()
        for name in RESAMPLED:
            if hasattr(self, name):
                require_resamples(getattr(self, name), self.alpha, name)

    @property
    def score_name(self) -> str:
        """How the method's score is called in results; empty where it has none or several."""
        score = getattr(self, "score", None)
        return score.name if isinstance(score, Score) else ""

    def settings(self) -> dict[str, Any]:
        """What determines the result besides models and documents."""
        return dict(vars(self))

    @classmethod
    def hypothesis(cls, settings: Mapping[str, Any]) -> tuple[Claim | None, str]:
        """Claim and null hypothesis with these settings, as they stand in results."""
        return cls.claim, cls.null_hypothesis

    @abstractmethod
    def groups(self, roles: Roles) -> dict[str, DocumentGroup]:
        """What to measure, by group of documents; the first is the suspect set.

        Recipes built from the roles are trained by whoever asks. The order of the measurements is that in which
        models are made and the columns of scores.parquet.
        """

    def least(self, group: str) -> int:
        """How many documents a group must have."""
        return self.requirements.documents

    def too_few(self, number: int, what: str = "documents") -> list[str]:
        """Why nothing follows from so many documents; empty where they are enough."""
        least = self.requirements.documents
        return [] if number >= least else [f"{number} {what} are left; the test needs at least {least}."]

    def check(self, corpora: Mapping[str, Corpus]) -> None:
        """Refuse documents, by group, that the method cannot work with, before anything is made for them."""

    @abstractmethod
    def test(self, documents: Mapping[str, ScoredDocuments], rng: np.random.Generator) -> TestOutcome:
        """Decide.

        Args:
            documents: By group.
            rng: All random draws come from it alone.
        """


def method_named(name: str) -> type[Method]:
    """The method that a result names, among those that are loaded; `Method` itself, with its defaults, for another."""
    return next((item for item in known_methods() if item.name == name), Method)


def known_methods() -> Iterator[type[Method]]:
    """Those that are loaded and have a name."""
    waiting: list[type[Method]] = [Method]  # type: ignore[type-abstract]
    while waiting:
        method = waiting.pop()
        if "name" in vars(method):
            yield method
        waiting += method.__subclasses__()


def known_details() -> dict[str, type[Details]]:
    """What each method that is loaded declares for its results, by its name."""
    return {method.name: method.details_type for method in known_methods()}


def require_score(value: object, name: str = "score") -> None:
    require_kind(value, Score, name, "a membership score", hint="Name one: +score@method.score=min_k_plus_plus.")


def require_score_by_itself(value: object, name: str = "score") -> None:
    """A score of each text by itself, as every test needs that compares two sets: what is pooled within a set (LiRA's
    deviation, ReCaLL's number of texts) differs between sets that nothing else distinguishes."""
    require_score(value, name)
    if isinstance(value, Score) and value.depends_on_others:
        raise ValueError(
            f"{name} must be one of each text by itself; {value.name} depends on the others that are scored with it, "
            "so that two sets would differ though nobody read either. Give another, such as loss."
        )


def require_scores(values: object, name: str, *, may_be_empty: bool = False) -> None:
    """A list of scores, no two with the same name."""
    if not isinstance(values, list | tuple) or not all(isinstance(item, Score) for item in values):
        raise ValueError(wrong(name, "a list of membership scores", values))
    require_distinct([item.name for item in values], name, "different scores", may_be_empty=may_be_empty)


def require_resamples(value: object, alpha: float, name: str = "num_resamples") -> None:
    """As many that the smallest p-value, 1 / (number + 1), is below alpha; quantiles of intervals need no fewer."""
    least = math.floor(1 / alpha + 1e-9)
    require_count(
        value, least, name, at_most=MOST_RESAMPLES, hint=f"With fewer, p cannot fall below alpha ({alpha:g})."
    )


def on_suspect(
    roles: Roles, score: Score, max_tokens: int, models: Mapping[str, ModelSpec]
) -> dict[str, DocumentGroup]:
    """The one group of most methods: the suspect documents under one model per role."""
    measured = {role: roles.scored(score, roles.suspect, max_tokens, role, model) for role, model in models.items()}
    return {SUSPECT: DocumentGroup(roles.suspect, measured)}


def check_clusters(method: str, corpora: Mapping[str, Corpus]) -> None:
    """Raises ValueError where the suspect or the held-out set is of too few clusters."""
    for group in (name for name in (SUSPECT, HELDOUT) if name in corpora):
        documents = corpora[group].documents
        clusters = {document.cluster_id or f"{index}" for index, document in enumerate(documents)}
        if len(clusters) < MIN_CLUSTERS <= len(documents):
            raise ValueError(
                f"{method} does not count documents of one cluster as independent draws and needs at least "
                f"{MIN_CLUSTERS} clusters in each set; the {set_of(group)} has {len(clusters)}. Give documents of more "
                "works, or leave cluster_field out where they were drawn singly."
            )


@dataclass(frozen=True)
class SampledMethod(Method):
    """A method whose test resamples documents, or takes them for independent draws."""

    # cluster: documents of one are drawn together; document: each by itself, as the papers have it.
    sampling_unit: Literal["cluster", "document"] = field(default="document", kw_only=True)

    def settings(self) -> dict[str, Any]:
        """The unit only where it is the cluster, so that keys of what was stored before it came are the same."""
        settings = super().settings()
        return {name: value for name, value in settings.items() if (name, value) != ("sampling_unit", "document")}

    def check(self, corpora: Mapping[str, Corpus]) -> None:
        if self.sampling_unit == "cluster":
            check_clusters(self.name, corpora)

    def clusters(self, documents: Mapping[str, ScoredDocuments], group: str = SUSPECT) -> list[str] | None:
        """[documents] of what is drawn together; None where documents are drawn one by one."""
        if self.sampling_unit == "document":
            return None
        names = units(documents[group], group)
        return names if len(set(names)) < len(names) else None

    def too_few_clusters(self, documents: Mapping[str, ScoredDocuments]) -> list[str]:
        """Why nothing follows from those that are left; empty where they are enough."""
        drawn = {name: self.clusters(documents, name) for name in (SUSPECT, HELDOUT) if name in documents}
        numbers = {name: len(set(names)) for name, names in drawn.items() if names is not None}
        return [
            f"{number} clusters of documents are left of the {set_of(name)}; the test needs at least {MIN_CLUSTERS}."
            for name, number in numbers.items()
            if number < MIN_CLUSTERS
        ]


def units(documents: ScoredDocuments, group: str) -> list[str]:
    """What is resampled and split as one: the cluster, or the document by itself where it has none."""
    return [
        f"cluster:{cluster}" if cluster else f"document:{group}/{doc_id}"
        for doc_id, cluster in zip(documents.doc_ids, documents.cluster_ids, strict=True)
    ]
