"""`python -m nonmember_papers.data NAME --from PLACE`: what others recorded, from their own files into the tables that
configs name."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

# name -> module and function (from, to) -> the files written, and how configs find them: a variable, or what is added.
KNOWN = {
    "decop": ("nonmember_papers.decop.workbooks", "convert", "NONMEMBER_DECOP_DIR"),
    "steam": ("nonmember_papers.mc_pdd.dumps", "steam", ""),
    "arxiv": ("nonmember_papers.mc_pdd.dumps", "arxiv", ""),
}
HELP = """decop: a clone of github.com/LeiLiLab/DE-COP, commit f9e9e54. steam: a dump of the shop's games with names,
dates and descriptions, CSV or JSON. arxiv: arXiv's dump of its metadata, JSON Lines"""


def main(words: Sequence[str] | None = None) -> None:
    """Print the files that were written."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False, prog="nonmember_papers.data", description="Recorded answers, scores and sets of a paper."
    )
    parser.add_argument("name", choices=KNOWN, help=HELP)
    parser.add_argument("--from", dest="source", type=Path, required=True, help="the clone, or the dump")
    parser.add_argument("--to", type=Path, help="folder of what is written; default: what configs read, or NAME")
    given = parser.parse_args(words)
    module, function, variable = KNOWN[given.name]
    to = given.to or Path(os.environ.get(variable, given.name) if variable else given.name)
    paths = getattr(importlib.import_module(module), function)(given.source, to)
    for path in paths:
        sys.stdout.write(f"{path}\n")
    if variable:
        sys.stdout.write(f"Configs find them by {variable}={to}\n")
    for path in () if variable else paths[:-1]:
        more = f" data.domain={path.stem} method.letters_only=true" if given.name == "arxiv" else ""
        sys.stdout.write(f"Add to a sweep of MC-PDD: data.read_path={path} data.unread_path={paths[-1]}{more}\n")


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError) as error:
        sys.exit(str(error))
