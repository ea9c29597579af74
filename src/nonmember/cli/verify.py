"""`nonmember verify BUNDLE`: the small program `nonmember_verify`, which imports nothing of this one."""

from __future__ import annotations

import sys

from nonmember_verify.cli import main as verify


def main() -> None:
    """Exit with 0 where nothing failed, 1 where something did, 2 where the words made no sense."""
    if status := verify():
        raise SystemExit(status)
    sys.stdout.flush()
