"""The Hydra entry of `nonmember audit`: composes and builds, then hands over to `nonmember.audits`."""

from __future__ import annotations

import functools
import json
import logging
import time
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from omegaconf import DictConfig

from nonmember.cli.explain import explain
from nonmember.config.roots import plain, run_with_hydra
from nonmember.config.safety import instantiate
from nonmember.runtime.interruption import check, interruption_of
from nonmember.runtime.processes import process_rank

if TYPE_CHECKING:
    from nonmember.artifacts import Builder, Memory
    from nonmember.artifacts.store import Store
    from nonmember.results.result import AuditResult, Failure

log = logging.getLogger(__name__)

WORKER_KILLED = (
    "A worker of the launcher was killed, most often because memory ran out. Start the same command again to go on, "
    "with fewer workers (hydra.launcher.n_jobs) if memory is short."
)


def main() -> None:
    """Run one audit or, with -m, a grid of them; then the table of all cells, failed ones included."""
    from nonmember.cli.cells import Cells, alone_in
    from nonmember.results.result import Failure

    cells = Cells.of_this_run()
    shared.cache_clear()

    def run(config: DictConfig, folder: Path) -> None:
        cells.begun(folder)
        if config.fail_fast and cells.has_failure():
            log.warning("Not run, because an earlier audit failed (fail_fast=true): %s", folder.name)
            return
        with alone_in(folder):
            try:
                result = run_cell(config, folder)
            except Exception as error:
                check()  # a library may have made an error of an interruption
                cells.failed(record_failure(folder, error), folder)
                raise
        cells.done(result, folder)

    interrupted = False
    try:
        run_with_hydra("audit", run)
    except BrokenProcessPool as error:
        check()  # else it is not we who ended the workers
        lost = [record_failure(folder, ValueError(WORKER_KILLED)) for folder in cells.unfinished()]
        cells.here += lost
        names = ", ".join(failure.cell for failure in lost) or "none"
        raise ValueError(f"{WORKER_KILLED} Audits that were under way: {names}.") from error
    except BaseException as error:
        interrupted = interruption_of(error) is not None
        raise
    finally:
        # Why a single audit failed is told once, by the error itself.
        done = cells.all() if process_rank() == 0 else []
        if done and not (len(done) == 1 and isinstance(done[0], Failure)):
            from nonmember.cli.table import show

            show(done)
        if interrupted and process_rank() == 0:
            cells.say_what_is_left()


def run_cell(config: DictConfig, folder: Path) -> AuditResult:
    """One audit: skipped where its result is there already."""
    from nonmember.config.given import given
    from nonmember.config.inputs import check_places, check_settings
    from nonmember.reports.audit_page.write import PAGE, try_to_write_page

    config, audit = given(config)
    check_settings(config)
    check_places(audit.groups)
    from nonmember.audits.keys import audit_keys
    from nonmember.audits.record import finished
    from nonmember.audits.run import run_audit
    from nonmember.models import label_of
    from nonmember.results.result import CONFIG, ERROR, RESULT
    from nonmember.runtime.files import write_text_atomically
    from nonmember.runtime.quiet import quieten
    from nonmember.tracking.trackers import NoLogging, RunInfo, run_id_of

    quieten()
    builder = builder_of(config)
    names = [config.data.label, *([label_of(audit.target)] if config.target is not None else [])]
    title = f"{audit.method.name}: {' under '.join(names)}"
    started = time.monotonic()
    keys = audit_keys(audit, builder)
    if (result := finished(folder, keys["audit"])) is not None:
        (folder / ERROR).unlink(missing_ok=True)  # of an attempt before, or of another question that was put here
        log.info("%s: found.", title)
        if process_rank() == 0 and not (folder / PAGE).exists():
            try_to_write_page(folder)
        return result.that_made(dict.fromkeys(result.provenance.made, 0))
    log.info("%s", title)
    settings = plain(config)
    if process_rank() == 0:
        write_text_atomically(folder / CONFIG, json.dumps(settings, indent=1) + "\n")
    info = RunInfo(
        name=folder.name,
        group=config.name,
        job_type=audit.method.name,
        tags=names,
        config=settings,
        folder=folder,
        run_id=run_id_of(config.name, folder.name, keys["audit"]),
    )
    logger = instantiate(config.logger) if process_rank() == 0 else NoLogging()
    with logger.start(info) as tracker:
        builder.tracker = tracker
        result = run_audit(audit, builder, folder, keys)
    (folder / ERROR).unlink(missing_ok=True)
    log.info("%s: %s in %.0f s, %s", title, result.verdict.decision, time.monotonic() - started, folder / RESULT)
    return result


def builder_of(config: DictConfig) -> Builder:
    from nonmember.artifacts import Builder
    from nonmember.tracking.trackers import NoTracker

    store, memory = shared(Path(config.store).absolute())
    compute, asking = (instantiate(node) for node in (config.trainer, config.asking))
    return Builder(store, compute, NoTracker(), memory, asking=asking)


@functools.lru_cache(maxsize=1)
def shared(store: Path) -> tuple[Store, Memory]:
    """What the cells that one process runs have in common: files verified once, corpora and models read once."""
    from nonmember.artifacts import Memory
    from nonmember.artifacts.store import Store

    return Store(store), Memory()


def record_failure(folder: Path, error: Exception) -> Failure:
    """Leave the reason beside where the result would be; a full disk must not hide it."""
    from nonmember.results.result import ERROR, Failure
    from nonmember.runtime.files import write_text_atomically

    failure = Failure(folder.name, explain(error), type(error).__name__)
    try:
        write_text_atomically(folder / ERROR, json.dumps(asdict(failure), indent=1) + "\n")
    except OSError as second:
        log.warning("The error could not be recorded in %s: %s", folder, second)
    return failure
