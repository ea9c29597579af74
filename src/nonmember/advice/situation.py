"""What an auditor has: access to the target, documents, further models and texts; and what can be looked up."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from nonmember.artifacts import Builder
from nonmember.checks import Checked, Count, Number
from nonmember.models import ModelSpec
from nonmember.records import Corpus
from nonmember.records.requirements import ACCESS, Access
from nonmember.results.result import RESULT, AuditResult
from nonmember.runtime.files import files_below

Offered = Literal["none", "text", "top_logprobs", "logprobs", "weights"]
Heldout = Literal["none", "same_draw", "other_date"]

LEVELS: Mapping[Offered, Access] = {  # but none
    "text": Access.TEXT,
    "top_logprobs": Access.TOP_LOGPROBS,
    "logprobs": Access.PROMPT_LOGPROBS,
    "weights": Access.WEIGHTS,
}


@dataclass(frozen=True)
class Situation(Checked):
    access: Offered = "none"  # what the target gives
    documents: Annotated[int, Count(1)] = 150  # how many texts are in question
    tokens: Annotated[int, Count(1)] = 120  # of a text, on average
    # Text of the same kind that has certainly not been read: from the same draw, or of another date.
    heldout: Heldout = "none"
    unseen: bool = False  # whether there is more of it, for tuning
    # Whether there is text of the set's kind that the target may have read, such as other pages of the same
    # documentation.
    related: bool = False
    known_read: bool = False  # whether there is text that the target is known to have read
    reference: bool = False  # a model that has certainly not read the texts
    out_models: bool = False  # several such
    base: bool = False  # the model that the target was continued from is at hand
    stand_in: bool = False  # another model of the target's size that has not read them
    order: bool = False  # the texts are a file in its public order
    works: bool = False  # they are passages of works (books, papers)
    titles: bool = False  # each has a title or the name of what it is about
    follows: bool = False  # the target follows instructions
    canaries: bool = False  # some were planted in the texts before they were published (`nonmember plant`)
    holdout: bool = False  # a sealed draw kept a part of the texts unpublished (`nonmember plant holdout`)
    identifiers: bool = False  # they hold hashes, UUIDs or keys that were drawn at random
    rephraser: bool = False  # a model that rephrases is at hand
    # input_price, output_price: of a million tokens, where requests are paid
    input_price: Annotated[float | None, Number("[0, inf)")] = None
    output_price: Annotated[float | None, Number("[0, inf)")] = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Raises ValueError for a name that is none of a situation's."""
        names = [field.name for field in fields(cls)]
        if unknown := [name for name in given if name not in names]:
            raise ValueError(f"{unknown[0]} is not a key of advise; the keys are {', '.join(names)}.")
        return cls(**given)

    @property
    def level(self) -> Access | None:
        """None: no model."""
        return LEVELS.get(self.access)

    @property
    def all_tokens(self) -> int:
        return self.documents * self.tokens

    def in_words(self) -> str:
        given = {"none": "no model", "text": "a model that returns only text", "weights": "the model's weights"}
        model = given.get(self.access) or f"a model that returns {ACCESS[self.level].asked}"
        parts = [model, f"{self.documents:,} text{'s' * (self.documents != 1)} of about {self.tokens:,} tokens"]
        parts += {
            "none": [],
            "same_draw": ["unread text of the same draw"],
            "other_date": ["unread text of another date"],
        }[self.heldout]
        descriptions = {
            "unseen": "further unread text for tuning",
            "related": "related text that the model may have read",
            "known_read": "text that the model is known to have read",
            "reference": "a reference model that has not read them",
            "out_models": "several models that have not read them",
            "base": "the target's base model",
            "stand_in": "another model of the target's size that has not read them",
            "order": "the public order of the file",
            "works": "texts that are passages from works (books, papers)",
            "titles": "a title for each text",
            "follows": "the model follows instructions",
            "canaries": "canaries in the texts, planted before they were published",
            "holdout": "a sealed hold-out, drawn before the texts were published",
            "identifiers": "random identifiers in the texts",
            "rephraser": "a model for paraphrasing",
        }
        parts += [words for name, words in descriptions.items() if getattr(self, name)]
        return "; ".join(parts)


TOKENS_PER_WORD = 1.3  # of English prose, by most vocabularies; no tokenizer is loaded for it


@dataclass(frozen=True)
class Past:
    seconds: float  # median wall time of `number` audits by a method, with what the store already had
    number: int


def offered(builder: Builder, model: ModelSpec) -> Offered:
    """The name of the target's access. An endpoint is asked a few plain questions, which may be charged."""
    if model.has_weights:
        model.validate()
        return "weights"
    names: tuple[Offered, ...] = ("logprobs", "top_logprobs")
    for name in names:
        try:
            model.require(builder, LEVELS[name], "advice")
        except ValueError:
            continue
        return name
    model.require(builder, LEVELS["text"], "advice")  # which says why there is none
    return "text"


def about_texts(corpus: Corpus) -> dict[str, Any]:
    """Number and length of the texts, and whether they have works and titles."""
    words = sum(len(document.text.split()) for document in corpus.documents)
    return {
        "documents": len(corpus),
        "tokens": max(1, round(TOKENS_PER_WORD * words / max(1, len(corpus)))),
        "works": any(document.cluster_id for document in corpus.documents),
        "titles": any(document.title for document in corpus.documents),
    }


def past_audits(folder: Path) -> Mapping[str, Past]:
    """Median wall time by method, of the results below a folder; those that cannot be read are left out."""
    seconds: dict[str, list[float]] = {}
    for path in files_below(folder, RESULT):
        with contextlib.suppress(ValueError):
            result = AuditResult.load(path)
            seconds.setdefault(result.question.method, []).append(result.provenance.seconds)
    return {method: Past(statistics.median(took), len(took)) for method, took in seconds.items()}
