"""Shared by methods with one question per document; documents without a usable answer are excluded and counted."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from nonmember.endpoints import Answer
from nonmember.endpoints.asked import NO_ANSWER, WHY_NOT
from nonmember.methods.base import ScoredDocuments

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
