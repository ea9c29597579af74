"""Shared by methods that query models: counts of answer types, and values per unit of inference.

A unit is a book, a paper, a thread, or the document by itself where it has no such cluster. Questions about one unit
are not independent of each other, so nothing is ever tested over single questions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

import numpy as np

from nonmember.checks import require_count
from nonmember.endpoints import Answer, Answers
from nonmember.endpoints.asked import NO_ANSWER, WHY_NOT
from nonmember.methods.base import Method, ScoredDocuments, units
from nonmember.records import FloatArray
from nonmember.stats._arrays import numbered
from nonmember.stats.two_groups import GroupComparison, compare_groups

TEMPERATURES = "[0, 10)"  # of writing; 0: the likeliest token each time


class TakesFew(Method):
    """A method whose paper took the first few of the resamples."""

    num_resamples: int
    num_few: int

    def __post_init__(self) -> None:
        super().__post_init__()
        require_count(
            self.num_few, 2, "num_few", at_most=self.num_resamples, hint="They are the first of num_resamples."
        )

    def compared(self, first: FloatArray, second: FloatArray, rng: np.random.Generator) -> GroupComparison:
        """The values of two sets' units."""
        return compare_groups(
            first, second, num_resamples=self.num_resamples, num_few=self.num_few, alpha=self.alpha, rng=rng
        )


def counts(answers_by_document: Iterable[Answers]) -> dict[str, int]:
    """num_requests: those that were accepted.   num_answered: with a text that can be read as an answer.
    num_unreadable: with a text that cannot.   num_empty, num_refused: without a text. The four add up to the first."""
    kinds = Counter(kind_of(answer) for answers in answers_by_document for answer in answers)
    return {"num_requests": kinds.total()} | {
        f"num_{kind}": kinds[kind] for kind in ("answered", "unreadable", "empty", "refused")
    }


def kind_of(answer: Answer) -> str:
    outcome = answer.completion.outcome
    return "unreadable" if outcome == "answered" and not answer.parsed.valid else outcome


def valid_share(answers_by_document: Iterable[Answers]) -> float:
    """Of the accepted requests, those whose answer can be read as one; NaN without any request."""
    found = counts(answers_by_document)
    return found["num_answered"] / found["num_requests"] if found["num_requests"] else float("nan")


def by_unit(documents: ScoredDocuments, name: str, group: str) -> tuple[list[str], FloatArray]:
    """(labels, values): of every unit, in the order in which they come, the mean of its documents' values of the
    measurement `name`."""
    return mean_by(units(documents, group), documents.values[name])


def mean_by(labels: Sequence[str], values: FloatArray) -> tuple[list[str], FloatArray]:
    """The different labels in the order in which they come, and the mean value of each."""
    rows = numbered(labels)
    return list(dict.fromkeys(labels)), np.bincount(rows, values) / np.bincount(rows)


# One question per document; those without a usable answer are excluded and counted ------------------------------------


_APOLOGY = re.compile(
    r"^\W*(?:as an ai|my apologies|(?:i['’]m|i am) (?:very |really |so )?sorry|sorry\b|i apologi[sz]e|unfortunately"
    r"|i(?:['’]m| am) (?:unable|not able|afraid)|i (?:can ?not|can['’]t|will not|won['’]t|do not|don['’]t) )",
    re.IGNORECASE,
)
_OF_AN_ASSISTANT = re.compile(
    r"copyright|verbatim|reproduc|provid|assist|language model|help (?:you|with)|access to|continu|passage|excerpt"
    r"|request|comply"
    r"|\bthe (?:name|word|text|book)\b",
    re.IGNORECASE,
)


def reads_as_refusal(text: str) -> bool:
    """Whether a text declines in words: it begins with an apology or the like and speaks of the task. A server marks
    only some refusals as such."""
    return bool(_APOLOGY.search(text) and _OF_AN_ASSISTANT.search(text[:400]))


def share_of_readable(answers: Sequence[Answer]) -> float:
    """Of the answers to a document's question that can be read, the share of right ones; NaN where none can."""
    readable = [answer.parsed.correct for answer in answers if answer.parsed.valid]
    return sum(readable) / len(readable) if readable else np.nan


def too_few_answers(documents: Mapping[str, ScoredDocuments], least: int) -> list[str]:
    return [
        f"{len(group.doc_ids)} documents of the {name} set have an answer; the least are {least}."
        for name, group in documents.items()
        if len(group.doc_ids) < least
    ]


class Unanswered(TypedDict):
    """Numbers of documents by what became of their question (`unanswered`)."""

    num_refused: int
    num_empty: int
    num_unreadable: int
    num_failed: int


def unanswered(documents: ScoredDocuments, name: str) -> Unanswered:
    """How many documents have no value of the measurement `name` because of their answer, by what it was: refused by
    the server, empty, unreadable (an answer that declines in words is), or not accepted as a question."""
    reasons = [item.reason for item in documents.excluded.values() if item.measurement == name]
    return {
        "num_refused": reasons.count(WHY_NOT["refused"]),
        "num_empty": reasons.count(WHY_NOT["empty"]),
        "num_unreadable": reasons.count(WHY_NOT["answered"]),
        "num_failed": reasons.count(NO_ANSWER),
    }
