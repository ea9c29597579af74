"""The Hydra entry of `nonmember audit`: composes and builds, then hands over to `nonmember.audits`."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from omegaconf import DictConfig

from nonmember.config.compose import composed_again, shared
from nonmember.config.explain import explain
from nonmember.config.roots import FOLDER_VARIABLE, labels_of_subject, run_with_hydra, swept_in
from nonmember.runtime.interruption import check
from nonmember.runtime.processes import process_rank
from nonmember.runtime.terminal import visible

if TYPE_CHECKING:
    from nonmember.results.result import AuditResult, Failure

log = logging.getLogger(__name__)

OVERRIDES = ".hydra/overrides.yaml"  # which Hydra writes when a cell begins
WORKER_ENDED = (
    "A worker of the launcher was ended, most often because memory ran out. Start the same command again to continue, "
    "with fewer workers (hydra.launcher.n_jobs) if memory is short."
)


class Refusal(ValueError):
    """Why an audit was not begun: nothing was made."""


class Outcomes:
    """What the cells of a run came to, by folder: kept here, or read where a launcher's workers ran them."""

    def __init__(self) -> None:
        os.environ.pop(FOLDER_VARIABLE, None)  # of an earlier run in this process
        self._since = time.time() - 1.0  # file systems round
        self.by_folder: dict[Path, AuditResult | Failure] = {}

    def all(self) -> dict[Path, AuditResult | Failure]:
        """With those of workers."""
        from nonmember.results.outcomes import usable_outcome
        from nonmember.results.result import ERROR, RESULT

        sweep = os.environ.get(FOLDER_VARIABLE)
        for begun in sorted(Path(sweep).rglob(OVERRIDES)) if sweep else ():
            folder = begun.parents[1]
            found = next((path for name in (RESULT, ERROR) if (path := folder / name).is_file()), None)
            if folder not in self.by_folder and found is not None and begun.stat().st_mtime >= self._since:
                self.by_folder[folder] = usable_outcome(found, lambda outcome: None)
        return self.by_folder

    def has_failure(self) -> bool:
        from nonmember.results.result import Failure

        return any(isinstance(item, Failure) for item in self.all().values())


def main() -> None:
    """Run one audit or, with -m, a grid of them; then the table of all cells, failed ones included."""
    from nonmember.results.result import AuditResult, Failure
    from nonmember.runtime.files import alone_in, forget_refused

    if any(item.lower().lstrip("+") == "dry_run=true" for item in sys.argv[1:]):
        from nonmember.config.dry_run import plan_only

        plan_only(sys.argv[1:])
        return
    outcomes = Outcomes()
    shared.cache_clear()

    def run(config: DictConfig, folder: Path) -> float | None:
        if config.dry_run:
            raise ValueError("dry_run must be given on the command line, spelled dry_run=true.")
        if config.fail_fast and outcomes.has_failure():
            log.warning("Not run, because an earlier audit failed (fail_fast=true): %s", folder.name)
            return None
        try:
            with alone_in(folder):
                result = run_cell(config, folder)
                found = objective_of(result, config)
        except Exception as error:
            check()  # a library may have made an error of an interruption
            outcomes.by_folder[folder] = record_failure(folder, error, config)
            if isinstance(error, Refusal) and FOLDER_VARIABLE not in os.environ:
                forget_refused(folder)
            raise
        outcomes.by_folder[folder] = result
        return found

    try:
        run_with_hydra("audit", run)
    except BrokenProcessPool as error:
        check()  # else it is not we who ended the workers
        raise ValueError(WORKER_ENDED) from error
    except RuntimeError as error:
        if "srun" not in str(error):
            raise
        raise ValueError("launcher=submitit_slurm needs Slurm's srun on this machine, and there is none.") from error
    finally:
        # Why a single audit failed is told once, by the error itself.
        done = outcomes.all() if process_rank() == 0 else {}
        if done and not (len(done) == 1 and any(isinstance(item, Failure) for item in done.values())):
            from nonmember.cli.table import show

            folders = [folder for folder, item in done.items() if isinstance(item, AuditResult)]
            tell_of_wandb(folders)
            show(list(done.values()))
            tell_where(folders)


def objective_of(result: AuditResult, config: DictConfig) -> float | None:
    """What a sweeper is to optimize; None where nothing is asked for."""
    if config.optimized_metric is None:
        return None
    from nonmember.results.mirror import objective  # imports the methods: a misspelt key need not wait for them

    return objective(result, config.optimized_metric)


def tell_where(folders: Sequence[Path]) -> None:
    """Print where to read on: the page of one audit, or that over all of a sweep. folders: with a result."""
    from nonmember.reports.audit_page.write import PAGE
    from nonmember.reports.index_page.write import try_to_write_index

    sweep = os.environ.get(FOLDER_VARIABLE)
    pages, here = [try_to_write_index(Path(sweep))] if sweep else [folder / PAGE for folder in folders], Path.cwd()
    for page in pages:
        if page is not None and page.is_file():
            sys.stdout.write(f"page: {visible(page.relative_to(here) if page.is_relative_to(here) else page)}\n")


def tell_of_wandb(folders: Sequence[Path]) -> None:
    """Print that W&B runs were not sent; before the answer, which comes last."""
    from nonmember.tracking.trackers import is_kept_offline

    if any(map(is_kept_offline, folders)):
        sys.stdout.write("W&B: kept offline, not sent; to send: wandb sync --sync-all, in the folder of its runs\n")


def run_cell(config: DictConfig, folder: Path) -> AuditResult:
    """One audit: skipped where its result is there already. By method=auto those that it chooses, and its result.

    Raises Refusal where something is wrong with it before anything is made.
    """
    from nonmember.config.runs import builder_of, cell_of

    builder = None
    try:
        asked = cell_of(config, folder)  # what is wrong with it is said before more is imported
        from nonmember.audits import cell
        from nonmember.config.auto import Parts
        from nonmember.methods import Auto

        builder = builder_of(config, *shared(Path(config.store).absolute()))
        if isinstance(asked.audit.method, Auto):
            return Parts(asked, config, composed_again(), builder).run()
        return cell.run_cell(asked, builder)
    except ValueError as error:
        if builder is not None and any(asdict(builder.counters).values()):
            raise
        raise Refusal(explain(error)) from error


def record_failure(folder: Path, error: Exception, config: DictConfig | None = None) -> Failure:
    """Leave the reason beside where the result would be; a full disk must not hide it."""
    from nonmember.results.result import ERROR, Failure
    from nonmember.runtime.files import write_text_atomically

    subject = " under ".join(labels_of_subject(config)) if config is not None else ""
    failure = Failure(folder.name, explain(error), type(error).__name__, subject, swept_in(folder))
    try:
        write_text_atomically(folder / ERROR, json.dumps(asdict(failure), indent=1) + "\n")
    except OSError as second:
        log.warning("The error could not be recorded in %s: %s", folder, second)
    return failure
