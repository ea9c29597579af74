"""Model access levels."""

from nonmember.records.requirements import Access

__all__ = ["Access"]
