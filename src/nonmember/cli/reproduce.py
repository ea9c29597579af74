"""`nonmember reproduce PAPER [key=value ...]`: what of a paper's tables and figures is made, what is missing and what
that needs; makes what this machine can make."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from nonmember.runtime.quiet import quieten
from nonmember.runtime.terminal import visible

if TYPE_CHECKING:
    from nonmember.feasibility.memory import Machine
    from nonmember.reports.core.report import Report

DRY_RUN = "dry_run=true"
EPILOG = """key=value as for `nonmember audit`: dry_run=true lists and runs nothing; world=pythia asks about
the papers' own models; launcher=joblib, logger=csv and others are handed to every sweep. Sweeps go on where
they were stopped. The report is written at the end. How long a sweep takes: nonmember check SWEEP.
A result counts where what was given for it is what a cell of the sweep is given: one that was made with
method.num_resamples=200 counts only where that is given here too. Changes of files the sweep itself finds."""


@dataclass(frozen=True)
class State:
    """Of one sweep. needs: what keeps cells from being made here, empty if nothing does."""

    sweep: str
    num_made: int
    num_cells: int
    num_failed: int
    needs: str = ""

    @property
    def is_made(self) -> bool:
        return 0 < self.num_cells <= self.num_made + self.num_failed

    @property
    def can_be_made(self) -> bool:
        return not self.is_made and not self.needs

    @property
    def described(self) -> str:
        if self.is_made:
            return f"made, but for {self.num_failed} that failed" if self.num_failed else "made"
        return f"missing: {self.needs}" if self.needs else "missing: can be made here"


def main() -> None:
    """Entry of `nonmember reproduce`."""
    given = _parser().parse_args()
    if bad := [word for word in given.overrides if "=" not in word]:
        raise ValueError(f"Settings must be written key=value; got {bad[0]}. One paper at a time.")
    from nonmember.config.compose import composed
    from nonmember.config.safety import instantiate

    report = [f"report={given.paper}", *(word for word in given.overrides if word.startswith("outputs="))]
    with composed("report", report) as (config, _):
        paper = instantiate(config.report)
        audits = Path(config.outputs) / "audits"
    overrides = [word for word in given.overrides if word != DRY_RUN]
    titles = _titles(paper)
    states = list(_shown(titles, overrides, audits)) if titles else []
    made, todo = sum(state.is_made for state in states), [state.sweep for state in states if state.can_be_made]
    sys.stdout.write(
        f"{len(states)} sweeps: {made} made, {len(todo)} can be made here, {len(states) - made - len(todo)} cannot.\n"
        if titles
        else "It has no sweeps of its own: the report is made of what is there.\n"
    )
    if len(overrides) < len(given.overrides):
        return
    failed = []
    for number, sweep in enumerate(todo, start=1):
        sys.stdout.write(f"\n{number} of {len(todo)}: nonmember audit -m --config-name {sweep}\n")
        sys.stdout.flush()
        if _command("audit", "-m", "--config-name", sweep, *overrides):  # some of whose cells fail on purpose
            failed.append(sweep)
    if todo or any(state.num_made for state in states) or not titles:
        sys.stdout.flush()
        if _command("report", *report):
            raise ValueError("The report ended with an error, which is shown above. Correct that, and start again.")
    if failed:
        sys.stdout.write(f"Audits failed in {', '.join(failed)}; see above, or error.json of each.\n")


def _command(*arguments: str) -> int:
    environment = {name: value for name, value in os.environ.items() if name != "HYDRA_FULL_ERROR"}
    return subprocess.run([sys.executable, "-m", "nonmember.cli", *arguments], check=False, env=environment).returncode


def _titles(paper: Report) -> dict[tuple[str, ...], list[str]]:
    """Sweeps any of which fills the same tables, best first -> the tables' titles. Without methods there are none."""
    titles: dict[tuple[str, ...], list[str]] = {}
    if paper.methods:
        for part in paper.all_parts():
            for key in part.made_by:
                titles.setdefault(tuple(paper.sweeps[key]), []).append(part.title)
        titles = {tuple(names): [] for names in paper.sweeps.values() if names} | titles
    return titles


def _shown(titles: Mapping[tuple[str, ...], Sequence[str]], overrides: Sequence[str], audits: Path) -> Iterator[State]:
    """A line for each sweep as soon as it is known, with what it is for below. Of those that fill the same tables it is
    the first that is made, else the first."""
    from nonmember.config.roots import register
    from nonmember.feasibility.memory import Machine
    from nonmember.results.result import RESULT

    register()
    quieten()
    machine, named = Machine.here(), dict.fromkeys(name for names in titles for name in names)
    with_results = [name for name in named if any((audits / name).rglob(RESULT))]
    sys.stdout.write(f"{len(with_results)} of the sweeps have results in {visible(audits)}. Each in turn:\n")
    states: dict[str, State] = {}

    def state_of(name: str) -> State:
        if name not in states:
            states[name] = _state(name, overrides, audits, machine)
        return states[name]

    shown: dict[str, list[str]] = {}
    for names, tables in titles.items():
        made = (name for name in names if name in with_results and state_of(name).is_made)
        shown.setdefault(next(made, names[0]), []).extend(tables)
    width = max(map(len, shown))
    for name, tables in shown.items():
        sys.stdout.write(f"{name:{width}}  ")
        sys.stdout.flush()  # looking at it takes a second or more
        state = state_of(name)
        count = f"{state.num_made} of {state.num_cells or '?'}"
        lines = [f"{count:>9}  {state.described}", *(f"{'':{width}}  {title}" for title in tables)]
        sys.stdout.write(visible("\n".join(lines), "\n") + "\n")
        yield state


def _state(name: str, overrides: Sequence[str], audits: Path, machine: Machine) -> State:
    from nonmember.cli.check import cells_checked
    from nonmember.config.grid import questions_of
    from nonmember.feasibility.verdict import READY, WITH_SETTINGS
    from nonmember.results.result import ERROR, RESULT

    state = State(name, 0, 0, 0)
    try:
        found = _found(audits / name)
        outcomes = [found.get(question) for question in questions_of(name, overrides)]
        state = State(name, outcomes.count(RESULT), len(outcomes), outcomes.count(ERROR))
        if state.is_made:
            return state
        cells = [cell.checked for cell in cells_checked(name, overrides, machine, date.today(), few=True)]
    except ValueError as error:
        return replace(state, num_cells=0, needs=str(error).rstrip("."))
    needs = dict.fromkeys(
        [*(f"needs {', '.join(cell.hub)} from the hub" for cell in cells if cell.hub)]
        + [cell.status for cell in cells if cell.status.startswith("needs ")]
        + [cell.asks[0] for cell in cells if cell.status not in (READY, WITH_SETTINGS) and cell.asks]
    )
    return replace(state, needs="; ".join(needs))


def _found(folder: Path) -> dict[frozenset[str], str]:
    """Question, as it was given -> result.json, or error.json where there is none. Of one whose words
    Hydra did not note nothing is known."""
    from nonmember.config.grid import question_in
    from nonmember.results.outcomes import outcome_paths
    from nonmember.results.result import RESULT
    from nonmember.runtime.yaml_files import read_yaml

    found: dict[frozenset[str], str] = {}
    for path in outcome_paths(folder) if any(folder.rglob(RESULT)) else ():
        noted = path.parent / ".hydra" / "overrides.yaml"
        if noted.is_file():
            question = question_in([str(word) for word in read_yaml(noted) or ()])
            found[question] = RESULT if RESULT in (path.name, found.get(question)) else path.name
    return found


def _parser() -> argparse.ArgumentParser:
    from nonmember.config.choices import options

    parser = argparse.ArgumentParser(
        allow_abbrev=False,
        prog="nonmember reproduce",
        description="A paper's tables and figures: which are made, which are missing; makes what can be made here.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "paper", choices=options("report"), metavar="PAPER", help=f"one of {', '.join(options('report'))}"
    )
    parser.add_argument("overrides", nargs="*", default=[], metavar="key=value", help="handed to every sweep")
    return parser
