"""Models queried by prompts: behind an API endpoint, on this machine, or replayed from recorded answers."""

from nonmember.endpoints.asked import AskedDocuments, Probe, Questions
from nonmember.endpoints.client import Limits
from nonmember.records.answers import Answer, Answers, Completion, ParsedAnswer, Request
from nonmember.records.requirements import Access

__all__ = [
    "Access",
    "Answer",
    "Answers",
    "AskedDocuments",
    "Completion",
    "Limits",
    "ParsedAnswer",
    "Probe",
    "Questions",
    "Request",
]
