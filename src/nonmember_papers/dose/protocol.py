"""Whether the results of the dose study are those of a protocol that was written before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nonmember.reports.core.grid import Block, TableCell
from nonmember.reports.core.report import Filled, tables
from nonmember.reports.core.worlds import Scope
from nonmember.reports.planted.audits import AuditGroup, number_cell, runs_of
from nonmember.reports.render.blocks import cross_table
from nonmember.results.load import Run
from nonmember.runtime.files import file_hash
from nonmember.runtime.yaml_files import read_yaml

PROTOCOLS = Path(__file__).parents[3] / "docs"
NAMES = "dose_protocol*.yaml"  # each for other sweeps
SETTINGS = ("panel", "alpha", "exclude")
LISTED = 40  # results with other settings
REPORTED = ("reported", "again", "aligned", "stand_in", "large", "attacks", "attacks_again")


Protocols = Mapping[str, tuple[str, Mapping[str, Any]]]  # SHA-256 -> file name and what it fixes


def protocols() -> Protocols:
    """Those that can be read."""
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
    if not rows:
        return tables()
    if not (known := protocols()):
        why = f"docs/{NAMES} is not there or cannot be read, so no result is compared with it."
        return tables(notes=[f"{scope.world.title}: {why}"])
    every = [run for runs in rows.values() for run in runs]
    return tables(counts_of({**rows, "all": every}, known, scope.world.name), others_of(every, known, scope.world.name))


def counts_of(rows: Mapping[str, Sequence[Run]], known: Protocols, world: str) -> Block | None:
    """A row a sweep; the last one is all of them."""
    every = rows["all"]
    columns: dict[str, Callable[[Run], bool]] = {
        "results": lambda run: True,
        "of a protocol": lambda run: run.get("protocol") in known,
        "of one that is not here": lambda run: bool(run.get("protocol")) and run.get("protocol") not in known,
        "of none": lambda run: not run.get("protocol"),
        "other settings": lambda run: bool(named_otherwise(run, known)),
    }
    notes = (
        *(
            f"docs/{name} has the SHA-256 {sha256}; {sum(run.get('protocol') == sha256 for run in every)} of "
            f"{len(every)} results carry it, which says that it was as it is when they were made."
            for sha256, (name, _) in known.items()
        ),
        f"Other settings: {', '.join(SETTINGS)} of the audit, where its protocol names another.",
    )
    return cross_table(
        "protocol",
        world,
        "Results and the protocol",
        "sweep",
        {name: AuditGroup(runs, world) for name, runs in rows.items()},
        columns,
        ("count",),
        notes,
        lambda group, is_counted: group.where(is_counted).count(),
    )


def others_of(every: Sequence[Run], known: Protocols, world: str) -> Block | None:
    """Results with other settings than their protocol's."""

    def cell(run: Run, name: str) -> TableCell:
        named = named_otherwise(run, known)
        aside = f" (protocol: {named[name]})" if name in named else ""
        return number_cell(f"{setting_of(run, name)}{aside}", None, world, [run])

    others = [run for run in every if named_otherwise(run, known)]
    more = f"And {len(others) - LISTED} further results." if len(others) > LISTED else ""
    rows = {f"{run.question.sweep}: {run.question.cell}": run for run in others[:LISTED]}
    columns, title = {name: name for name in SETTINGS}, "Results with other settings"
    return cross_table("protocol-others", world, title, "result", rows, columns, ("value",), [more], cell)


def named_otherwise(run: Run, known: Protocols) -> dict[str, Any]:
    """Settings for which the result's protocol names another value; none where it has no protocol."""
    _, fixed = known.get(str(run.get("protocol")), ("", {}))
    return {name: fixed[name] for name in SETTINGS if name in fixed and setting_of(run, name) != fixed[name]}


def setting_of(run: Run, name: str) -> Any:
    """As the protocol calls it."""
    panel = run.statistics.details.get("panel") or run.get("panel.version")
    return {"panel": panel, "alpha": run.question.alpha, "exclude": run.get("exclude")}[name]
