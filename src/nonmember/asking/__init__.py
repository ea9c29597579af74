"""Asking models that answer with text: behind an endpoint, on this machine, or from a record of earlier answers."""

from nonmember.asking.access import Access
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
