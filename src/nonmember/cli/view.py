"""`nonmember view [FOLDER]`: all audits below a folder as one page to sort, filter, search and compare; and theirs."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path

from nonmember.cli import parser_of
from nonmember.results.outcomes import reason_of
from nonmember.results.result import RESULT
from nonmember.runtime.files import files_below
from nonmember.runtime.naming import outputs_folder
from nonmember.runtime.terminal import visible


def main() -> None:
    """Print the path of each page that was written."""
    parser = parser_of("view", "Write index.html over all audits below a folder, for a browser. It holds no text.")
    audits = outputs_folder() / "audits"
    parser.add_argument("folder", type=Path, nargs="?", default=audits, help=f"by default {audits}")
    parser.add_argument("--pages", action="store_true", help="also write audit.html beside every result again")
    parser.add_argument("--open", action="store_true", help="open the page in a browser")
    given = parser.parse_args()
    from nonmember.reports.index_page.write import write_index

    problems = _write_pages(given.folder) if given.pages else []
    index = write_index(given.folder)
    sys.stdout.write(f"{visible(index.path)}\n")
    if given.open:
        webbrowser.open(index.path.absolute().as_uri())
    if problems := problems or list(index.unusable):
        raise ValueError(f"{len(problems)} of {index.num_audits} results cannot be used. The first: {problems[0]}")


def _write_pages(folder: Path) -> list[str]:
    """audit.html of finished audits from the files in their folders; why some have none."""
    from nonmember.reports.audit_page.write import write_page

    problems = []
    for path in files_below(folder, RESULT):
        try:
            sys.stdout.write(f"{visible(write_page(path.parent))}\n")
        except Exception as error:  # whatever somebody wrote there, the others get their pages
            problems.append(f"{path.parent}: {reason_of(error)}")
            sys.stderr.write(f"no page  {visible(problems[-1])}\n")
    return problems
