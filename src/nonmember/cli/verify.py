"""`nonmember verify BUNDLE`: the small program `nonmember_verify`, which imports nothing of this one."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

from nonmember_verify.cli import main as verify


def main() -> None:
    """Exit with 0 where nothing failed, 1 where something did, 2 where the words made no sense."""
    helpers: dict[str, Any] = {}
    if any(word.startswith("--model") for word in sys.argv[1:]):  # needs torch
        from nonmember.evidence.repeating import observe

        helpers["observe"] = partial(observe, _builder)
    if status := verify(**helpers):
        raise SystemExit(status)


def _builder(store: Path) -> Any:
    """As `nonmember score` has it, with a store of its own."""
    from nonmember.config.compose import composed
    from nonmember.config.runs import builder_of

    with composed("score", [f"store='{store}'"]) as (config, _):
        return builder_of(config)
