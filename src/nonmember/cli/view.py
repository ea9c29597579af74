"""`nonmember view [FOLDER]`: all audits below a folder as one page to sort, filter, search and compare."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from nonmember.results.outcomes import NO_SEAL
from nonmember.runtime.naming import outputs_folder
from nonmember.runtime.terminal import visible


def main() -> None:
    """Print the path of the page."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False,
        prog="nonmember view",
        description="Write index.html over all audits below a folder, for a browser. It holds no text.",
    )
    audits = outputs_folder() / "audits"
    parser.add_argument("folder", type=Path, nargs="?", default=audits, help=f"by default {audits}")
    folder = parser.parse_args().folder
    from nonmember.reports.index_page.write import write_index

    index = write_index(folder)
    sys.stdout.write(f"{visible(index.path)}\n")
    if index.num_without_seal:
        sys.stdout.write(f"{index.num_without_seal} of {index.num_audits} results have {NO_SEAL}.\n")
    if index.unusable:
        raise ValueError(
            f"{len(index.unusable)} of {index.num_audits} results cannot be used. The first: {index.unusable[0]}"
        )
