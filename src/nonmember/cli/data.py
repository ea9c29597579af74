"""`nonmember data NAME --from FOLDER`: what others recorded, from their own files into the tables that configs name."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path

# name -> the module with `convert(folder, to)`, and the variable that configs find the tables by
KNOWN = {"decop": ("nonmember_papers.decop.workbooks", "NONMEMBER_DECOP_DIR")}


def main() -> None:
    """Print the files that were written."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False, prog="nonmember data", description="Recorded answers and scores of a paper, as tables."
    )
    parser.add_argument("name", choices=KNOWN, help="decop: a clone of github.com/LeiLiLab/DE-COP, commit f9e9e54")
    parser.add_argument("--from", dest="folder", type=Path, required=True, help="the clone")
    parser.add_argument("--to", type=Path, help="where the tables go; without, what configs read: %(metavar)s")
    given = parser.parse_args()
    module, variable = KNOWN[given.name]
    to = given.to or Path(os.environ.get(variable, given.name))
    for path in importlib.import_module(module).convert(given.folder, to):
        sys.stdout.write(f"{path}\n")
    sys.stdout.write(f"Configs find them by {variable}={to}\n")
