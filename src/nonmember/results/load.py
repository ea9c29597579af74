"""Results from disk: every `result.json` below some folders, with its hash. What cannot be read is counted."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nonmember.results.outcomes import identity
from nonmember.results.result import RESULT, AuditQuestion, AuditResult, Statistics, Verdict
from nonmember.runtime.files import file_hash, files_below

log = logging.getLogger(__name__)

ANCHOR_LENGTH = 10


@dataclass(frozen=True)
class Run:
    """One result and the file it is from."""

    result: AuditResult
    path: str  # from the folder above the results folder, never an absolute one
    sha256: str
    folder: Path | None = None  # where the file lies, for those who read what lies beside it; never shown

    @property
    def question(self) -> AuditQuestion:
        return self.result.question

    @property
    def statistics(self) -> Statistics:
        return self.result.statistics

    @property
    def verdict(self) -> Verdict:
        return self.result.verdict

    @property
    def anchor(self) -> str:
        """Where the page shows this run; depends on the path alone, so links last over rebuilds."""
        return f"run-{hashlib.sha256(self.path.encode()).hexdigest()[:ANCHOR_LENGTH]}"

    @property
    def domain(self) -> str:
        data = self.result.question.data
        return str(data.get("domain") or data.get("label") or self.result.question.corpus)

    def get(self, name: str) -> Any:
        """A fact by name: a field of the question, of its data (half, draw ...; `data.num_documents`, which were asked
        for), of the details (`details.calibration`), or a dotted path into its settings."""
        if name == "domain":
            return self.domain
        part, _, fact = name.partition(".")
        if part in ("data", "details"):
            return (self.question.data if part == "data" else self.statistics.details).get(fact)
        if name == "num_documents":
            return self.statistics.num_documents
        if name in AuditQuestion.__dataclass_fields__ and name != "score":
            return getattr(self.question, name)
        if name in self.result.question.data:
            return self.result.question.data[name]
        node: Any = self.result.question.settings
        for part in name.split("."):
            node = node.get(part) if isinstance(node, Mapping) else None
        return node


@dataclass(frozen=True)
class Collection:
    """What was found. unreadable: path -> reason."""

    runs: tuple[Run, ...]
    unreadable: Mapping[str, str]


def load_runs(folders: Sequence[Path]) -> Collection:
    """All results below the folders in the order of their paths; of one cell of a sweep that lies there more than once,
    as in a copy of its folder, the first. Raises ValueError where there is none, or no such folder."""
    runs: dict[tuple[str, ...], Run] = {}
    copies: list[str] = []
    unreadable: dict[str, str] = {}
    seen: set[Path] = set()
    for folder in (folder.absolute() for folder in folders):
        for path in files_below(folder, RESULT):
            if (file := path.resolve()) in seen:  # one folder may lie in another
                continue
            seen.add(file)
            name = path.relative_to(folder.parent).as_posix()
            try:
                run = Run(AuditResult.load(path), name, file_hash(path), path.parent)
            except (ValueError, OSError) as error:
                unreadable[name] = str(error).replace(str(path), name)
                continue
            cell = (*map(str, identity(run.result)), run.question.sweep, run.question.cell)
            if runs.setdefault(cell, run) is not run:
                copies.append(f"{name} of {runs[cell].path}")
    if copies:
        log.warning("%d results repeat others and are left out, such as %s.", len(copies), copies[0])
    for name, reason in unreadable.items():
        log.warning("%s is left out: %s", name, reason)
    missing = [folder for folder in folders if not folder.is_dir()]
    if missing or not runs:
        where = " or ".join(map(str, missing or folders))
        unread = f" that this version can read ({len(unreadable)} that it cannot)" if unreadable and not missing else ""
        raise ValueError(
            f"There is no {RESULT} below {where}{unread}. Run audits first, or name their folder: results=[FOLDER]."
        )
    return Collection(tuple(runs.values()), unreadable)
