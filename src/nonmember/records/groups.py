"""Names of the groups of documents that a method measures, as results and bundles have them."""

from __future__ import annotations

SUSPECT = "suspect"  # the documents in question; the only group of most methods
HELDOUT = "heldout"  # what they are compared with
UNSEEN = "unseen"  # what a target is tuned on, or answers are calibrated by
THIRD = "third"  # text on neither side, for gates


def set_of(name: str) -> str:
    """As sentences have it: "held-out set", "third text"."""
    return "third text" if name == THIRD else f"{name.replace(HELDOUT, 'held-out').replace('_', ' ')} set"
