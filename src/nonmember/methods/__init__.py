"""One file per method of the literature."""

from nonmember.methods.base import Access, Method, Roles, RoleScores, TestOutcome
from nonmember.methods.paired_t import PairedT
from nonmember.methods.prism import Prism

__all__ = ["Access", "Method", "PairedT", "Prism", "RoleScores", "Roles", "TestOutcome"]
