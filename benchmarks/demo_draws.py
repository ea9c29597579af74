"""The demo on other draws of its sets, of what its models read and of their training: are its verdicts right?

.venv/bin/python benchmarks/demo_draws.py FOLDER [DRAW ...]   # five minutes of a core each; draws 2 and 3 by default
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from nonmember.results.result import RESULT, AuditResult

PARTS = ("members", "heldout", "general", "untouched", "unread", "pretraining", "continuation", "demo.sibling")
FALSE = {("member", "not used"), ("non_member", "used")}


def verdicts(folder: Path, draw: str) -> list[tuple[str, str, str]]:
    """(method, truth, conclusion) of each audit."""
    drawn = [f"world.{part}.salt=draw{draw}" for part in PARTS]
    words = ["audit", "-m", "--config-name=demo", "launcher=joblib", "logger=none", f"outputs={folder}", *drawn]
    command = [sys.executable, "-c", "from nonmember.cli.main import main; main()", *words]
    seeds = [f"target.seed={draw}91", f"reference.seed={draw}92"]
    subprocess.run([*command, *seeds], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    found = [AuditResult.load(path) for path in sorted((folder / "audits").rglob(RESULT))]
    return [(item.question.method, str(item.question.truth), item.answer.conclusion) for item in found]


def main() -> int:
    folder, *draws = sys.argv[1:]
    wrong = 0
    for draw in draws or ["2", "3"]:
        found = verdicts(Path(folder) / draw, draw)
        errors = [row for row in found if row[1:] in FALSE]
        wrong += len(errors)
        for method in sorted({row[0] for row in found}):
            said = sorted(" ".join(row[1:]) for row in found if row[0] == method)
            print(f"draw {draw}, {method}: {', '.join(f'{said.count(words)} {words}' for words in sorted(set(said)))}")
        print(f"draw {draw}: {len(errors)} of {len(found)} verdicts are false")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
