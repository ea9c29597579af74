"""The Hydra entry of `nonmember audit`: composes and builds, then hands over to the pipeline."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hydra
from omegaconf import DictConfig

from nonmember.config import plain, require_complete, run_with_hydra
from nonmember.explain import explain
from nonmember.processes import process_rank

if TYPE_CHECKING:
    from nonmember.pipeline import Audit
    from nonmember.records import AuditResult
    from nonmember.table import Failure

log = logging.getLogger(__name__)


def main() -> None:
    """Run one audit or, with -m, a grid of them; then the table of all cells, failed ones included."""
    cells: list[AuditResult | Failure] = []

    def run(config: DictConfig, folder: Path) -> None:
        try:
            cells.append(run_cell(config, folder))
        except Exception as error:
            cells.append(record_failure(folder, error))
            raise

    try:
        run_with_hydra("audit", run)
    finally:
        # Why a single audit failed is told once, by the error itself.
        told = len(cells) == 1 and hasattr(cells[0], "error")
        if cells and not told and process_rank() == 0:
            from nonmember.table import show

            show(cells)


def run_cell(config: DictConfig, folder: Path) -> AuditResult:
    """One audit: skipped where its result is there already."""
    require_complete(config)
    from nonmember.models.specs import label_of
    from nonmember.pipeline import RESULT, finished, run_audit
    from nonmember.quiet import quieten
    from nonmember.store import Store
    from nonmember.table import ERROR
    from nonmember.tracking import NoLogging, NoTracker, RunInfo
    from nonmember.workshop import Workshop

    quieten()
    audit = build_audit(config)
    compute = hydra.utils.instantiate(config.trainer, _convert_="all")
    workshop = Workshop(Store(Path(config.store)), compute, NoTracker())
    title = f"{audit.method.name}: {config.data.label} under {label_of(audit.target)}"
    started = time.monotonic()
    if (result := finished(audit, workshop, folder)) is not None:
        log.info("%s: found.", title)
        return replace(result, made=dict.fromkeys(result.made, 0))
    log.info("%s", title)
    info = RunInfo(
        name=folder.name,
        group=config.name,
        job_type=audit.method.name,
        tags=[config.data.label, label_of(audit.target)],
        config=plain(config),
        folder=folder,
    )
    logger = hydra.utils.instantiate(config.logger) if process_rank() == 0 else NoLogging()
    with logger.start(info) as tracker:
        workshop.tracker = tracker
        result = run_audit(audit, workshop, tracker, folder)
    (folder / ERROR).unlink(missing_ok=True)
    log.info("%s: %s in %.0f s, %s", title, result.verdict, time.monotonic() - started, folder / RESULT)
    return result


def build_audit(config: DictConfig) -> Audit:
    """The question as specs. Nothing is read or made yet."""
    from nonmember.pipeline import Audit

    def build(node: Any) -> Any:
        return hydra.utils.instantiate(node, _convert_="all")

    return Audit(
        target=build(config.target),
        reference=build(config.reference),
        suspect=build(config.data.corpus),
        method=build(config.method),
        seed=config.seed,
        corpus_label=config.data.label,
        truth=config.truth,
        general=build(config.general),
    )


def record_failure(folder: Path, error: Exception) -> Failure:
    """Leave the reason beside where the result would be; a full disk must not hide it."""
    from nonmember.store import write_text_atomically
    from nonmember.table import ERROR, Failure

    failure = Failure(folder.name, explain(error), type(error).__name__)
    try:
        write_text_atomically(folder / ERROR, json.dumps(asdict(failure), indent=1) + "\n")
    except OSError as second:
        log.warning("The error could not be recorded in %s: %s", folder, second)
    return failure
