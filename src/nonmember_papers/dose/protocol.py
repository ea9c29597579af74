"""Whether the results of the dose study are those of a protocol that was written before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nonmember.reports.core.grid import Cell
from nonmember.reports.core.report import Filled, tables
from nonmember.reports.core.worlds import Scope
from nonmember.reports.planted.audits import Group, number_cell, runs_of
from nonmember.reports.render.blocks import cross_table
from nonmember.results.load import Run
from nonmember.runtime.files import file_hash
from nonmember.runtime.yaml_files import read_yaml

PROTOCOLS = Path(__file__).parents[3] / "docs"
NAMES = "dose_protocol*.yaml"  # each for other sweeps
SETTINGS = ("panel", "alpha", "exclude")
LISTED = 40  # results with other settings
REPORTED = ("reported", "again", "aligned", "stand_in", "large", "attacks", "attacks_again")


def protocols() -> dict[str, tuple[str, Mapping[str, Any]]]:
    """SHA-256 -> file name and what it fixes, of those that can be read."""
    found = {}
    for path in sorted(PROTOCOLS.glob(NAMES)):
        try:
            fixed = read_yaml(path)
        except ValueError:
            continue
        if isinstance(fixed, Mapping):
            found[file_hash(path)] = (path.name, fixed)
    return found


def protocol(scope: Scope) -> Filled:
    """By sweep, how many results carry the hash of a protocol, and which have settings that it does not name."""
    rows = {", ".join(scope.sweeps[key]): runs for key in REPORTED if (runs := runs_of(scope, key))}
    every, world = [run for runs in rows.values() for run in runs], scope.world.name
    if not every:
        return tables(None)
    known = protocols()
    if not known:
        return Filled(
            "",
            notes=(
                f"{scope.world.title}: docs/{NAMES} is not there or cannot be read, so no result is compared with it.",
            ),
        )

    def fixed_for(run: Run) -> Mapping[str, Any]:
        """Settings of this result's protocol."""
        return known.get(str(run.get("protocol")), ("", {}))[1]

    def differs(run: Run, name: str) -> bool:
        """From its protocol; what that does not name is left out, and so are results of none."""
        return name in fixed_for(run) and setting_of(run, name) != fixed_for(run)[name]

    columns: dict[str, Callable[[Run], bool]] = {
        "results": lambda run: True,
        "of a protocol": lambda run: run.get("protocol") in known,
        "of one that is not here": lambda run: bool(run.get("protocol")) and run.get("protocol") not in known,
        "of none": lambda run: not run.get("protocol"),
        "other settings": lambda run: any(differs(run, name) for name in SETTINGS),
    }

    notes = (
        *(
            f"docs/{name} has the SHA-256 {sha256}; {sum(run.get('protocol') == sha256 for run in every)} of "
            f"{len(every)} results carry it, which says that it was as it is when they were made."
            for sha256, (name, _) in known.items()
        ),
        f"Other settings: {', '.join(SETTINGS)} of the audit, where its protocol names another.",
    )
    groups = {name: Group(runs, world) for name, runs in {**rows, "all": every}.items()}
    counts = cross_table(
        "protocol",
        world,
        "Results and the protocol",
        "sweep",
        groups,
        columns,
        ("count",),
        notes,
        lambda here, is_counted: here.where(is_counted).count(),
    )

    def told(run: Run, name: str) -> Cell:
        aside = f" (protocol: {fixed_for(run)[name]})" if differs(run, name) else ""
        return number_cell(f"{setting_of(run, name)}{aside}", None, world, [run])

    others = list(filter(columns["other settings"], every))
    more = f"And {len(others) - LISTED} further results." if len(others) > LISTED else ""
    listed = {f"{run.question.sweep}: {run.question.cell}": run for run in others[:LISTED]}
    settings = {name: name for name in SETTINGS}
    title = "Results with other settings"
    return tables(
        counts, cross_table("protocol-others", world, title, "result", listed, settings, ("value",), [more], told)
    )


def setting_of(run: Run, name: str) -> Any:
    """As the protocol calls it."""
    panel = run.statistics.details.get("panel") or run.get("panel.version")
    return {"panel": panel, "alpha": run.question.alpha, "exclude": run.get("exclude")}[name]
