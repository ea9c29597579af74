"""What the cells of a run came to: kept here, or read from the sweep's folder where a launcher's workers ran them."""

from __future__ import annotations

import os
import time
from pathlib import Path

from nonmember.config.roots import FOLDER_VARIABLE
from nonmember.results.outcomes import usable_outcome
from nonmember.results.result import ERROR, RESULT, AuditResult, Failure

OVERRIDES = ".hydra/overrides.yaml"  # which Hydra writes when a cell begins


class Outcomes:
    """Of each cell, by its folder."""

    def __init__(self) -> None:
        os.environ.pop(FOLDER_VARIABLE, None)  # of an earlier run in this process
        self._since = time.time() - 1.0  # file systems round
        self.by_folder: dict[Path, AuditResult | Failure] = {}

    def all(self) -> dict[Path, AuditResult | Failure]:
        """With those of workers."""
        sweep = os.environ.get(FOLDER_VARIABLE)
        for begun in sorted(Path(sweep).rglob(OVERRIDES)) if sweep else ():
            folder = begun.parents[1]
            found = next((path for name in (RESULT, ERROR) if (path := folder / name).is_file()), None)
            if folder not in self.by_folder and found is not None and begun.stat().st_mtime >= self._since:
                self.by_folder[folder] = usable_outcome(found, lambda outcome: None)
        return self.by_folder

    def has_failure(self) -> bool:
        return any(isinstance(item, Failure) for item in self.all().values())
