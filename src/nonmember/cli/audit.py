"""The Hydra entry of `nonmember audit`: composes and builds, then hands over to `nonmember.audits`."""

from __future__ import annotations

import functools
import json
import logging
import sys
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, cast

from omegaconf import DictConfig, OmegaConf

from nonmember.config import parts, runs
from nonmember.config.explain import explain
from nonmember.config.jobs import LostJob
from nonmember.config.roots import run_with_hydra
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
    from nonmember.cli.cells import Cells
    from nonmember.cli.sweep import Sweep, plan_instead
    from nonmember.results.result import Failure
    from nonmember.runtime.files import alone_in

    cells = Cells.of_this_run()
    sweep = Sweep(cells)
    shared.cache_clear()
    plan_instead(sys.argv)

    def run(config: DictConfig, folder: Path) -> None:
        if config.dry_run:
            raise ValueError("dry_run must be given on the command line, spelled dry_run=true.")
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

    incomplete = False
    try:
        run_with_hydra("audit", run, sweep)
    except LostJob:
        incomplete = True
        raise
    except BrokenProcessPool as error:
        check()  # else it is not we who ended the workers
        lost = [record_failure(folder, ValueError(WORKER_KILLED)) for folder in cells.unfinished()]
        cells.here += lost
        names = ", ".join(failure.cell for failure in lost) or "none"
        raise ValueError(f"{WORKER_KILLED} Audits that were under way: {names}.") from error
    except BaseException as error:
        incomplete = interruption_of(error) is not None
        raise
    finally:
        # Why a single audit failed is told once, by the error itself.
        done = cells.all() if process_rank() == 0 else []
        if done and not (len(done) == 1 and isinstance(done[0], Failure)):
            from nonmember.cli.table import show

            show(done, made_before=sweep.made)
        if incomplete and process_rank() == 0:
            cells.say_what_is_left()


def run_cell(config: DictConfig, folder: Path) -> AuditResult:
    """One audit: skipped where its result is there already. By method=auto one of each advised method, and the result
    that joins them."""
    cell = runs.cell_of(config, folder)
    if parts.is_auto(config):
        from nonmember.audits.joined import run_joined

        builder = builder_of(config)
        return run_joined(cell, parts.parts_of(config, folder, composed_again(), builder), builder)
    from nonmember.audits.cell import run_cell

    return run_cell(cell, builder_of(config))


def composed_again() -> Callable[[str, Sequence[str]], AbstractContextManager[tuple[DictConfig, Path]]]:
    """This run's words with another method, composed."""
    from hydra.core.hydra_config import HydraConfig

    from nonmember.config.compose import composed

    ran = HydraConfig.get()
    words = cast(list[str], OmegaConf.to_container(ran.overrides.task, resolve=False))
    name = str(ran.job.config_name)
    folders = [f"file://{one.path}" for one in ran.runtime.config_sources if one.provider == "command-line"]
    searched = [f"hydra.searchpath=[{','.join(folders)}]"] if folders else []
    return lambda method, more: composed(name, [*searched, *parts.words_of_part(words, method, more)])


def builder_of(config: DictConfig) -> Builder:
    return runs.builder_of(config, *shared(Path(config.store).absolute()))


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
