"""Asking models that answer with text: behind an endpoint, on this machine, or from a record of earlier answers."""

from nonmember.asking.exchange import (
    Answer,
    Answers,
    AskedDocuments,
    Completion,
    Judged,
    Outcome,
    Probe,
    Questions,
    Request,
)
from nonmember.asking.limits import Limits
from nonmember.models.access import Access

__all__ = [
    "Access",
    "Answer",
    "Answers",
    "AskedDocuments",
    "Completion",
    "Judged",
    "Limits",
    "Outcome",
    "Probe",
    "Questions",
    "Request",
]
