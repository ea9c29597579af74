"""What the statement of a bundle says."""

from __future__ import annotations

PREDICATE = "urn:nonmember:evidence:v1"
SEAL_PREDICATE = "urn:nonmember:seal:v1"
