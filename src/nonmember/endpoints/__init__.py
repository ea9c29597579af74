"""Models queried by prompts: behind an API endpoint, on this machine, or replayed from recorded answers."""

from nonmember.endpoints.asked import AskedDocuments, Probe, Questions
from nonmember.endpoints.sending import Limits
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
