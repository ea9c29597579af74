"""Base class of scores: token tables in, one number per document out, higher = more likely a member.

T_i is the number of scored tokens of document i. Sums over tokens are in float64.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from nonmember.checks import Checked
from nonmember.records import FloatArray, Question, TokenTable
from nonmember.records.requirements import Access, Input, Requirements

# Below this many nats per token a negative log-likelihood is too close to 0 to divide by.
SMALLEST_NLL = 1e-8
SMALL_NLL = "the target's negative log-likelihood is 1e-8 or less, too small to divide by"

USUAL_OUT_MODELS = 4  # as many as costs are reckoned for; the dose meter has two to four controls that read nothing

NO_TOKENS = "no scored token: the text has fewer than two tokens"
NO_NUMBER = "what was observed of the text is no number"


T = TypeVar("T")


@dataclass(frozen=True)
class ScoreInputs:
    """Observations of one corpus. Tables may list the documents in any order: they are joined by document id.

    Attributes:
        tokens: The target on the score's first view.
        other_view: The target on its second one.
        reference: The reference model on the original texts.
        texts: In the order of `tokens.doc_ids`.
        counts: [V] how often each token id occurs in a general corpus.
        behind_prefix: The target on the texts behind unread ones, all of their tokens.
        out_models: Models that have not read the texts, on the original texts.
        population: The target on other texts of the same kind that it has not read.
        population_out_models: The out-models on these, in the order of `out_models`.
    """

    tokens: TokenTable
    other_view: TokenTable | None = None
    reference: TokenTable | None = None
    texts: Sequence[str] | None = None
    counts: npt.NDArray[np.int64] | None = None
    behind_prefix: TokenTable | None = None
    out_models: Sequence[TokenTable] = ()
    population: TokenTable | None = None
    population_out_models: Sequence[TokenTable] = ()


@dataclass(frozen=True)
class DocumentScores:
    """One score of the documents of a corpus.

    Attributes:
        doc_ids: Of the documents, each once.
        values: [documents] float64, NaN exactly for the ids in `reasons`.
        reasons: Id -> why the document has no score.
        counters: What was guarded.

    Raises:
        ValueError: Where values and reasons do not fit the documents.
    """

    doc_ids: tuple[str, ...]
    values: FloatArray
    reasons: Mapping[str, str]
    counters: Mapping[str, int | float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        undefined = np.isnan(np.asarray(self.values, dtype=np.float64))
        if undefined.shape != (len(self.doc_ids),):
            raise ValueError(f"{len(self.doc_ids)} documents need as many scores; got an array of {undefined.shape}.")
        if {self.doc_ids[index] for index in np.flatnonzero(undefined)} != self.reasons.keys():
            raise ValueError("A score is NaN exactly for the documents that have a reason (scores_with_reasons).")


class Score(Checked, ABC):
    """A membership score. The class variables say which inputs it needs."""

    needs_reference: ClassVar[bool] = False
    needs_texts: ClassVar[bool] = False
    needs_counts: ClassVar[bool] = False
    needs_distribution: ClassVar[bool] = False  # mean or std of `ScoreInputs.tokens`
    needs_out_models: ClassVar[bool] = False
    needs_population: ClassVar[bool] = False  # other unread texts, read by the out-models too
    compares_tokens: ClassVar[bool] = False  # target and reference token by token, so that both must cut texts alike

    @property
    @abstractmethod
    def name(self) -> str:
        """Name with parameters, as in `mink(0.2)`."""

    @property
    def views(self) -> tuple[str, ...]:
        """Texts the target is observed on; the first gives `ScoreInputs.tokens`."""
        return ("original",)

    @property
    def asks(self) -> Question | None:
        """The question about each text whose answers are `ScoreInputs.tokens`, in place of a view."""
        return None

    @property
    def shots(self) -> int:
        """How many unread texts to put before each text; 0: none."""
        return 0

    @property
    def depends_on_others(self) -> bool:
        """Whether the score of a text depends on which other texts are scored with it."""
        return bool(self.shots)  # as many as fit before the longest text

    @property
    def requirements(self) -> Requirements:
        """What it needs, as its other properties declare it."""
        needs: dict[Input, bool] = {
            "reference": self.needs_reference,
            "out_models": self.needs_out_models,
            "general": self.needs_counts,
            "unseen": self.shots > 0 or self.needs_population,
        }
        passes = len(self.views) + self.needs_reference
        passes += USUAL_OUT_MODELS * self.needs_out_models
        passes *= 1 + self.needs_population
        passes += self.shots + 1 if self.shots else 0  # the unread texts are read again before each text
        inputs = tuple(name for name, is_needed in needs.items() if is_needed)
        return Requirements(self._access, inputs=inputs, passes=passes)

    @property
    def _access(self) -> Access:
        if self.asks is not None:
            return Access.TOP_LOGPROBS
        if self.needs_counts or self.shots or self.compares_tokens:
            return Access.WEIGHTS  # its tokenizer
        return Access.FULL_LOGITS if self.needs_distribution else Access.PROMPT_LOGPROBS

    @property
    def needs_more_passes(self) -> bool:
        """Whether other things are observed than the texts and views of them."""
        return bool(self.needs_out_models or self.shots)

    @abstractmethod
    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        """Score every document of `inputs.tokens`."""


def document_of_rows(table: TokenTable) -> npt.NDArray[np.int64]:
    """[rows] index of the document each row belongs to."""
    return np.repeat(np.arange(len(table)), table.num_tokens)


def mean_per_document(
    table: TokenTable, values: npt.NDArray[np.floating], keep: npt.NDArray[np.bool_] | None = None
) -> FloatArray:
    """[documents] mean of a value per row, of the rows to keep; NaN where there is none."""
    document = document_of_rows(table)
    weight = np.ones(len(document)) if keep is None else keep.astype(np.float64)
    kept = values.astype(np.float64) if keep is None else np.where(keep, values, 0.0)
    total = np.bincount(document, kept, minlength=len(table))
    number = np.bincount(document, weight, minlength=len(table))
    result: FloatArray = np.divide(total, number, out=np.full(len(table), np.nan), where=number > 0)
    return result


def nll(table: TokenTable) -> FloatArray:
    """[documents] negative log-likelihood in nats per token."""
    return -mean_per_document(table, table.log_prob)


def in_order_of(doc_ids: Sequence[str], table: TokenTable, values: FloatArray) -> FloatArray:
    """Values per document of `table`, put into the order of `doc_ids`."""
    index_of = {doc_id: index for index, doc_id in enumerate(table.doc_ids)}
    missing = [doc_id for doc_id in doc_ids if doc_id not in index_of]
    if missing:
        raise ValueError(
            f"{len(missing)} documents are missing from one of the token tables, first {missing[0]!r}. "
            "Observe every model and view on the same corpus."
        )
    return values[[index_of[doc_id] for doc_id in doc_ids]]


def scores_with_reasons(
    tokens: TokenTable,
    values: FloatArray,
    undefined: Mapping[str, npt.NDArray[np.bool_]] | None = None,
    counters: Mapping[str, int | float] | None = None,
) -> DocumentScores:
    """Result with a reason for each NaN: the first of `undefined` (reason -> documents) that applies."""
    candidates = {NO_TOKENS: tokens.num_tokens == 0, **(undefined or {})}
    reasons: dict[str, str] = {}
    for index in np.flatnonzero(np.isnan(values)):
        found = (reason for reason, where in candidates.items() if where[index])
        reasons[tokens.doc_ids[index]] = next(found, NO_NUMBER)
    return DocumentScores(tokens.doc_ids, values, reasons, dict(counters or {}))


def needed(value: T | None, what: str, score: Score) -> T:
    if value is None:
        raise ValueError(f"The score {score.name} needs {what}, and none was given.")
    return value
