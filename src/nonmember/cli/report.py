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
from nonmember.config.choices import published_sweeps
from nonmember.config.roots import require_complete, run_with_hydra
from nonmember.config.safety import instantiate
from nonmember.reports.core.grid import ReportDocument

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
    from nonmember.reports.core.explorer import is_own, table_of_own
    from nonmember.reports.render.write import facts_of, files_of, write_report
    from nonmember.results.load import Collection, load_runs, made_of_usable

    collection = load_runs([Path(folder) for folder in config.results]) if paper.methods else Collection((), {})
    _require_methods(paper.methods, {run.question.method for run in collection.runs})
    known = published_sweeps().union(*paper.sweeps.values()) if paper.methods else published_sweeps()
    about = [run for run in collection.runs if run.question.method in paper.methods or is_own(run, known)]
    collection = replace(collection, runs=tuple(about) or collection.runs)  # else its worlds, with nothing to show

    now = datetime.now().astimezone()

    def made(found: Collection) -> tuple[ReportDocument, dict[str, str | bytes]]:
        own = [run for run in found.runs if is_own(run, known)]
        others = [run for run in found.runs if not is_own(run, known)]
        document = replace(paper.build(others).without_empty_sections(), own=table_of_own(own))
        return document, files_of(document, found, facts_of(document, found, now))  # which reads all of a result

    (document, files), collection = made_of_usable(collection, made)
    page = write_report(document, collection, Path(config.folder), now, config.formats, config.max_csv_kib, files=files)
    log.info("%d results in %s, %d left out.", len(collection.runs), page.parent, len(collection.unreadable))
    return page, collection.unreadable


def _require_methods(methods: Sequence[str], with_results: set[str]) -> None:
    """A method of one's own is known by its results."""
    if unknown := sorted(set(methods) - with_results):
        from nonmember.methods.base import known_methods  # heavy: the package loads all of them

        known = sorted(with_results.union(method.name for method in known_methods()))
        for method in unknown:
            require_choice(method, known, "Each of report.methods", hint="One's own is known once a result is of it.")
