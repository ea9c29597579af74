"""The Hydra entry of `nonmember audit`: composes and builds, then hands over to `nonmember.audits`."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from omegaconf import DictConfig

from nonmember.config.explain import explain
from nonmember.config.jobs import LostJob
from nonmember.config.roots import FOLDER_VARIABLE, given_for_cell, labels_of_subject, run_with_hydra
from nonmember.runtime.interruption import check, interruption_of
from nonmember.runtime.processes import process_rank
from nonmember.runtime.terminal import visible
from nonmember.sweeps.running import builder_of, composed_again, shared

if TYPE_CHECKING:
    from nonmember.results.result import AuditResult, Failure

log = logging.getLogger(__name__)

WORKER_KILLED = (
    "A worker of the launcher was killed, most often because memory ran out. Start the same command again to continue, "
    "with fewer workers (hydra.launcher.n_jobs) if memory is short."
)
WORKER_ENDED = "A worker of the launcher was ended by SIGTERM from outside. Start the same command again to continue."


def main() -> None:
    """Run one audit or, with -m, a grid of them; then the table of all cells, failed ones included."""
    from nonmember.results.result import Failure
    from nonmember.runtime.files import alone_in
    from nonmember.sweeps.outcomes import Cells
    from nonmember.sweeps.sweep import Sweep, plan_instead

    cells = Cells.of_this_run()
    sweep = Sweep(cells)
    shared.cache_clear()
    plan_instead(sys.argv)

    def run(config: DictConfig, folder: Path) -> float | None:
        if config.dry_run:
            raise ValueError("dry_run must be given on the command line, spelled dry_run=true.")
        cells.begun(folder)
        if config.fail_fast and cells.has_failure():
            log.warning("Not run, because an earlier audit failed (fail_fast=true): %s", folder.name)
            return None
        with alone_in(folder):
            try:
                result = run_cell(config, folder)
                found = objective_of(result, config)
            except Exception as error:
                check()  # a library may have made an error of an interruption
                cells.failed(record_failure(folder, error, config), folder)
                raise
        cells.done(result, folder)
        return found

    incomplete = False
    try:
        run_with_hydra("audit", run, sweep)
    except LostJob:
        incomplete = True
        raise
    except BrokenProcessPool as error:
        check()  # else it is not we who ended the workers
        why = WORKER_ENDED if "SIGTERM" in str(error) else WORKER_KILLED
        lost = [record_failure(folder, ValueError(why)) for folder in cells.unfinished()]
        cells.outcomes += lost
        names = ", ".join(failure.cell for failure in lost) or "none"
        raise ValueError(f"{why} Audits that were under way: {names}.") from error
    except BaseException as error:
        incomplete = interruption_of(error) is not None
        raise
    finally:
        # Why a single audit failed is told once, by the error itself.
        done = cells.all() if process_rank() == 0 else []
        if done and not (len(done) == 1 and isinstance(done[0], Failure)):
            from nonmember.cli.table import show

            show(done, made_before=sweep.made)
            tell_where(cells.folders)
        if incomplete and process_rank() == 0:
            cells.say_what_is_left()


def objective_of(result: AuditResult, config: DictConfig) -> float | None:
    """What a sweeper is to optimize; None where nothing is asked for."""
    if config.optimized_metric is None:
        return None
    from nonmember.results.mirror import objective  # imports the methods: a misspelt key need not wait for them

    return objective(result, config.optimized_metric)


def tell_where(folders: Sequence[Path]) -> None:
    """Print where to read on: the page of one audit, or that over all of a sweep; and of W&B runs that nobody was sent.

    folders: of the audits that have a result.
    """
    from nonmember.reports.audit_page.write import PAGE
    from nonmember.reports.index_page.write import try_to_write_index
    from nonmember.tracking.trackers import is_kept_offline

    sweep = os.environ.get(FOLDER_VARIABLE)
    pages = [try_to_write_index(Path(sweep))] if sweep else [folder / PAGE for folder in folders]
    for page in pages:
        if page is not None and page.is_file():
            sys.stdout.write(f"page: {visible(_from_here(page))}\n")
    if offline := sum(map(is_kept_offline, folders)):
        runs = "the run is" if offline == 1 else f"{offline} runs are"
        where = visible(_from_here(Path(sweep) if sweep else folders[0]))
        sys.stdout.write(f"W&B: {runs} kept offline, nothing was sent; to send: nonmember sync {where}\n")


def _from_here(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def run_cell(config: DictConfig, folder: Path) -> AuditResult:
    """One audit: skipped where its result is there already. By method=auto one of each advised method, and the result
    that joins them."""
    from nonmember.config.runs import cell_of

    audit = cell_of(config, folder)  # what is wrong with it is said before more is imported
    from nonmember.audits import cell, joined
    from nonmember.config import parts
    from nonmember.config.given import given

    builder = builder_of(config)
    if parts.is_auto(config):
        return joined.run_joined(audit, parts.parts_of(given(config), folder, composed_again(), builder), builder)
    return cell.run_cell(audit, builder)


def record_failure(folder: Path, error: Exception, config: DictConfig | None = None) -> Failure:
    """Leave the reason beside where the result would be; a full disk must not hide it."""
    from nonmember.results.result import ERROR, Failure
    from nonmember.runtime.files import write_text_atomically

    subject = " under ".join(labels_of_subject(config)) if config is not None else ""
    failure = Failure(folder.name, explain(error), type(error).__name__, subject, given_for_cell(folder))
    try:
        write_text_atomically(folder / ERROR, json.dumps(asdict(failure), indent=1) + "\n")
    except OSError as second:
        log.warning("The error could not be recorded in %s: %s", folder, second)
    return failure
