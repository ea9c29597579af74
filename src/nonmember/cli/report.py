"""`nonmember report`: tables and figures of results beside the published numbers."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from omegaconf import DictConfig

from nonmember.checks import require_choice, require_kind, require_text
from nonmember.config.choices import OWN
from nonmember.config.roots import require_complete, run_with_hydra
from nonmember.config.safety import instantiate

log = logging.getLogger(__name__)


def main() -> None:
    """Print the path of the page, or of report.md where no page is written, as the last line."""

    def run(config: DictConfig, _: Path) -> None:
        page, unreadable = report(config)
        sys.stdout.write(f"{page}\n")
        if unreadable:
            first, reason = next(iter(unreadable.items()))
            raise ValueError(f"{len(unreadable)} results were left out of {page}. The first: {first}: {reason}")

    run_with_hydra("report", run)


def report(config: DictConfig) -> tuple[Path, Mapping[str, str]]:
    """Read all results, fill the tables and figures of config.report, write them to config.folder.

    A report about no method is of published numbers alone, and reads none. Returns the page, and of the results that
    could not be used why.
    """
    require_complete(config)
    require_text(config.folder, "folder", hint="Name the folder of the report.")
    paper = instantiate(config.report)
    for name in ("title", "subtitle"):
        require_kind(getattr(paper, name), str, f"report.{name}", "text", hint="Put it in quotes.")
    from nonmember.reports.render.write import write_report
    from nonmember.results.load import Collection, load_runs

    collection = load_runs([Path(folder) for folder in config.results]) if paper.methods else Collection((), {})
    _require_methods(paper.methods, {run.question.method for run in collection.runs})
    sweeps = {sweep for several in paper.sweeps.values() for sweep in several}
    about = [
        run
        for run in collection.runs
        if run.question.method in paper.methods and (run.question.world != OWN or run.question.sweep in sweeps)
    ]
    collection = replace(collection, runs=tuple(about) or collection.runs)  # else its worlds, with nothing to show
    document = paper.build(collection.runs).without_empty_sections()
    now = datetime.now().astimezone()
    page = write_report(document, collection, Path(config.folder), now, config.formats)
    log.info("%d results in %s, %d left out.", len(collection.runs), page.parent, len(collection.unreadable))
    return page, collection.unreadable


def _require_methods(methods: Sequence[str], with_results: set[str]) -> None:
    """A method of one's own is known by its results."""
    if unknown := sorted(set(methods) - with_results):
        from nonmember.methods.base import known_methods  # heavy: the package loads all of them

        known = sorted(with_results.union(method.name for method in known_methods()))
        for method in unknown:
            require_choice(method, known, "Each of report.methods", hint="One's own is known once a result is of it.")
