"""Asking models that answer with text: behind an endpoint, on this machine, or from a record of earlier answers."""

from nonmember.endpoints.limits import Limits
from nonmember.endpoints.probe import AskedDocuments, Probe, Questions
from nonmember.models.access import Access
from nonmember.records.answers import Answer, Answers, Completion, Outcome, ParsedAnswer, Request

__all__ = [
    "Access",
    "Answer",
    "Answers",
    "AskedDocuments",
    "Completion",
    "Limits",
    "Outcome",
    "ParsedAnswer",
    "Probe",
    "Questions",
    "Request",
]
