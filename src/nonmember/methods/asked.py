"""Shared by methods that query models: what became of the questions, and the prompt of completions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypedDict

import numpy as np

from nonmember.endpoints import Answer, Answers
from nonmember.endpoints.asked import NO_ANSWER, WHY_NOT
from nonmember.methods.base import ScoredDocuments
from nonmember.records.groups import set_of

# The text alone, or asked for in words, by a chat template where there is one.
PromptForm = Literal["bare", "instruction"]
TEMPERATURES = "[0, 10)"  # of writing; 0: the likeliest token each time


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
        f"{len(group.doc_ids)} documents of the {set_of(name)} have an answer; the least are {least}."
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


# The prompt of completions; a model without a chat template just continues the text -----------------------------------


def continue_text(prefix: str, title: str, author: str) -> str:
    work = f' from "{title}"' if title else ""
    work += f" by {author}" if author else ""
    return (
        f"Below stands the beginning of a passage{work}. Continue it exactly as the original goes on, word for word. "
        "Write the continuation alone: no introduction, no comment, no quotation marks, and not the beginning again."
        f"\n\n{prefix}"
    )
