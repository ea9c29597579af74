"""The cells of one run: those of this process in memory; those of a launcher's workers through small files.

A launcher such as joblib or Slurm runs cells in other processes, on other machines perhaps, and brings no results home.
Each worker leaves a note in a hidden folder of the sweep; the process that was started reads and removes them.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nonmember.config import FOLDER_VARIABLE
from nonmember.files import locked, remove_temporary, write_text_atomically
from nonmember.processes import process_rank
from nonmember.records import RESULT, AuditResult, Failure


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """One process at a time runs the audit of a folder; the next one then finds its result. Further processes of a
    distributed run go with their first."""
    if process_rank() > 0:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / ".lock", f"running the audit {folder.name}"):
        remove_temporary(folder)
        yield


@dataclass
class Cells:
    """What came of each cell, in the order they were finished.

    run: a name for this run, which travels to its workers.   home: the process that was started.
    """

    run: str
    home: int
    here: list[AuditResult | Failure] = field(default_factory=list)

    @classmethod
    def of_this_run(cls) -> Cells:
        os.environ.pop(FOLDER_VARIABLE, None)  # of an earlier run in this process
        return cls(uuid.uuid4().hex[:12], os.getpid())

    def done(self, result: AuditResult, folder: Path) -> None:
        if os.getpid() == self.home:
            self.here.append(result)
        else:
            self._note({"folder": str(folder), "made": dict(result.made)})

    def failed(self, failure: Failure, folder: Path) -> None:
        if os.getpid() == self.home:
            self.here.append(failure)
        else:
            self._note({"folder": str(folder), "error": failure.error, "kind": failure.kind})

    def has_failure(self) -> bool:
        return any(isinstance(cell, Failure) for cell in self.here) or any("error" in note for note in self._notes())

    def all(self) -> list[AuditResult | Failure]:
        """Everything that was run; the workers' notes are removed."""
        cells: list[AuditResult | Failure] = list(self.here)
        for note in self._notes():
            folder = Path(note["folder"])
            if "error" in note:
                cells.append(Failure(folder.name, note["error"], note["kind"]))
            else:
                cells.append(replace(AuditResult.load(folder / RESULT), made=note["made"]))
        if (notes := self._folder()) is not None:
            shutil.rmtree(notes, ignore_errors=True)
        return cells

    def _note(self, content: dict[str, Any]) -> None:
        notes = self._folder()
        if process_rank() == 0 and notes is not None:
            notes.mkdir(parents=True, exist_ok=True)
            write_text_atomically(notes / f"{time.time_ns()}-{os.getpid()}.json", json.dumps(content))

    def _notes(self) -> list[dict[str, Any]]:
        notes = self._folder()
        paths = sorted(notes.glob("*.json")) if notes is not None else []
        return [json.loads(path.read_text(encoding="utf-8")) for path in paths]

    def _folder(self) -> Path | None:
        folder = os.environ.get(FOLDER_VARIABLE)
        return Path(folder) / f".cells-{self.run}" if folder else None
