"""Progress of a sweep's cells: kept in memory for this process, in small files for a launcher's workers.

A launcher such as joblib or Slurm runs cells in other processes, on other machines perhaps, and brings no results home.
Each worker leaves a note in a hidden folder of the sweep; the process that was started reads and removes them.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import uuid
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nonmember.config.roots import FOLDER_VARIABLE, cells_of_sweep, number_of_cell
from nonmember.results.result import RESULT, AuditResult, Failure
from nonmember.runtime.files import write_text_atomically
from nonmember.runtime.processes import process_rank


@dataclass
class Cells:
    """Outcome of each cell, in the order of the grid."""

    run: str  # a name for this run, which travels to its workers
    home: int  # the process that was started
    outcomes: list[AuditResult | Failure] = field(default_factory=list)
    ended: set[int] = field(default_factory=set)  # places in the sweep of the cells that ended in that process
    folders: list[Path] = field(default_factory=list)  # of the cells that have a result

    @classmethod
    def of_this_run(cls) -> Cells:
        os.environ.pop(FOLDER_VARIABLE, None)  # of an earlier run in this process
        return cls(uuid.uuid4().hex[:12], os.getpid())

    def begun(self, folder: Path) -> None:
        """A worker that is killed leaves this note."""
        if os.getpid() != self.home:
            self._note({"folder": str(folder)})

    def done(self, result: AuditResult, folder: Path) -> None:
        self._end(result, folder, {"made": dict(result.provenance.made)})

    def failed(self, failure: Failure, folder: Path) -> None:
        self._end(failure, folder, asdict(failure))

    def num_ended(self) -> int:
        return len(self.outcomes) + sum(map(_has_ended, self._notes()))

    def has_failure(self) -> bool:
        return any(isinstance(cell, Failure) for cell in self.outcomes) or any(
            "error" in note for note in self._notes()
        )

    def unfinished(self) -> list[Path]:
        """Folders of the cells that workers began and did not end."""
        return [Path(note["folder"]) for note in self._notes() if not _has_ended(note)]

    def all(self) -> list[AuditResult | Failure]:
        """Everything that was run; the workers' notes are removed."""
        cells: list[AuditResult | Failure] = list(self.outcomes)
        for note in filter(_has_ended, self._notes()):
            folder = Path(note["folder"])
            self.ended.add(note["number"])
            if "error" in note:
                cells.append(Failure(folder.name, note["error"], note["kind"], note["subject"], tuple(note["given"])))
            else:
                cells.append(AuditResult.load(folder / RESULT).that_made(note["made"]))
                self.folders.append(folder)
        if (notes := self._folder()) is not None:
            shutil.rmtree(notes, ignore_errors=True)
        return cells

    def say_what_is_left(self) -> None:
        """After `all`: the cells of an interrupted sweep that have no result."""
        planned = cells_of_sweep()
        left = [name for number, name in enumerate(planned) if number not in self.ended]
        for name in left:
            sys.stdout.write(f"not run  {name}\n")
        if planned:
            sys.stdout.write(f"{len(planned) - len(left)} of {len(planned)} audits ended, {len(left)} are left.\n")

    def _end(self, cell: AuditResult | Failure, folder: Path, content: dict[str, Any]) -> None:
        if os.getpid() == self.home:
            self.outcomes.append(cell)
            self.ended.add(number_of_cell())
            self.folders += [folder] if isinstance(cell, AuditResult) else []
        else:
            self._note({"folder": str(folder), **content})

    def _note(self, content: dict[str, Any]) -> None:
        notes = self._folder()
        if process_rank() == 0 and notes is not None:
            notes.mkdir(parents=True, exist_ok=True)
            number = number_of_cell()
            text = json.dumps(content | {"number": number})
            write_text_atomically(notes / f"{number}.json", text)

    def _notes(self) -> list[dict[str, Any]]:
        notes = self._folder()
        paths = notes.glob("*.json") if notes is not None else []
        return sorted((json.loads(path.read_text(encoding="utf-8")) for path in paths), key=lambda note: note["number"])

    def _folder(self) -> Path | None:
        folder = os.environ.get(FOLDER_VARIABLE)
        return Path(folder) / f".cells-{self.run}" if folder else None


def _has_ended(note: dict[str, Any]) -> bool:
    return "made" in note or "error" in note
