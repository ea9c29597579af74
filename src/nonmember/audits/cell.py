"""One audit in a folder of its own: its result found there, or the audit run and its result left there."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nonmember.artifacts import Builder
from nonmember.audits.keys import audit_keys
from nonmember.audits.question import Audit
from nonmember.audits.record import finished
from nonmember.audits.run import log_kept_curves, run_audit
from nonmember.reports.audit_page.write import PAGE, try_to_write_page
from nonmember.results.mirror import mirror
from nonmember.results.result import CONFIG, ERROR, RESULT, AuditResult
from nonmember.runtime.files import write_text_atomically
from nonmember.runtime.processes import process_rank
from nonmember.tracking.trackers import NoLogging, RunInfo, run_id_of

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Cell:
    """An audit with its output folder and its logger."""

    audit: Audit
    folder: Path
    settings: Mapping[str, Any]  # the resolved config as JSON, kept beside the result and with the logged run
    labels: Sequence[str]  # what the run is tagged with: documents and target
    logger: Any  # of the `logger=` group
    seal: Any = None  # that fixed the question beforehand (`nonmember.evidence.seal.Seal`); None: there is none

    @property
    def title(self) -> str:
        return f"{self.audit.method.name}: {' under '.join(self.labels)}"

    def info(self, audit_key: str) -> RunInfo:
        return RunInfo(
            name=self.folder.name,
            group=self.audit.sweep,
            job_type=self.audit.method.name,
            tags=self.labels,
            config=self.settings,
            folder=self.folder,
            run_id=run_id_of(self.audit.sweep, self.folder.name, audit_key),
        )


def log_reused(cell: Cell, result: AuditResult, builder: Builder) -> None:
    """Log a result that already existed, unless the logger has a run for it: each cell of a sweep has one."""
    info = cell.info(result.provenance.keys["audit"])
    if not cell.logger.has(info):
        with cell.logger.start(info) as tracker:
            builder.tracker = tracker
            log_kept_curves(cell.audit, builder)
            mirror(tracker, result, cell.folder)


def run_cell(cell: Cell, builder: Builder) -> AuditResult:
    """The result: read where it lies in the folder already, else made. Of one that is read nothing counts as made."""
    audit, folder = cell.audit, cell.folder
    started = time.monotonic()
    keys = audit_keys(audit, builder)
    if cell.seal is not None:
        cell.seal.require(audit, builder, keys, folder.name)
        keys["seal"] = cell.seal.hash
    if (result := finished(folder, keys["audit"])) is not None:
        if cell.seal is not None and result.provenance.keys.get("seal") != cell.seal.hash:
            raise ValueError(
                f"{folder / RESULT} was computed without this seal, so the seal can no longer prove anything about it. "
                "Omit the seal, or seal a question that has not been run yet."
            )
        (folder / ERROR).unlink(missing_ok=True)  # of an attempt before, or of another question that was put here
        log.info("%s: found.", cell.title)
        if process_rank() == 0:
            if not (folder / PAGE).exists():
                try_to_write_page(folder)
            log_reused(cell, result, builder)
        return result.that_made(dict.fromkeys(result.provenance.made, 0))
    log.info("%s", cell.title)
    if process_rank() == 0:
        write_text_atomically(folder / CONFIG, json.dumps(cell.settings, indent=1) + "\n")
        if cell.seal is not None:
            cell.seal.leave(folder, keys["audit"])
    logger = cell.logger if process_rank() == 0 else NoLogging()
    with logger.start(cell.info(keys["audit"])) as tracker:
        builder.tracker = tracker
        result = run_audit(audit, builder, folder, keys)
    (folder / ERROR).unlink(missing_ok=True)
    log.info("%s: %s in %.0f s, %s", cell.title, result.answer.conclusion, time.monotonic() - started, folder / RESULT)
    return result
