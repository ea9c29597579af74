"""`nonmember page FOLDER`: rebuilds the HTML pages of finished audits from the files in their folders."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from nonmember.results.outcomes import reason_of
from nonmember.results.result import RESULT
from nonmember.runtime.files import files_below
from nonmember.runtime.terminal import visible


def main() -> None:
    """Print the path of each page."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False,
        prog="nonmember page",
        description="Write audit.html beside every result.json below a folder. It holds ids and scores, no text.",
    )
    parser.add_argument("folder", type=Path, help="of one audit or of many, for example outputs/audits/demo")
    folder = parser.parse_args().folder
    paths = files_below(folder, RESULT)
    if not paths:
        raise ValueError(f"There is no {RESULT} below {folder}. Run an audit first, or name the folder of one.")
    from nonmember.reports.audit_page.write import write_page

    problems = []
    for path in paths:
        try:
            sys.stdout.write(f"{visible(write_page(path.parent))}\n")
        except Exception as error:  # whatever somebody wrote there, the others get their pages
            problems.append(f"{path.parent}: {reason_of(error)}")
            sys.stderr.write(f"no page  {visible(problems[-1])}\n")
    if problems:
        raise ValueError(f"{len(problems)} of {len(paths)} results have no page. The first: {problems[0]}")
