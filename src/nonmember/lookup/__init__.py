"""Exact look-up: which documents a corpus holds. An answer and no test; it stands beside a verdict, never in it."""

from nonmember.lookup.base import Lookup, Overlaps
from nonmember.lookup.index import LocalIndex
from nonmember.lookup.infinigram import InfiniGram

__all__ = ["InfiniGram", "LocalIndex", "Lookup", "Overlaps"]
