"""Artifacts: what is made once, kept by content and found again. A spec says what it is, the builder gets it."""

from nonmember.artifacts.builder import Builder, Counters, Memory
from nonmember.artifacts.spec import Spec

__all__ = ["Builder", "Counters", "Memory", "Spec"]
