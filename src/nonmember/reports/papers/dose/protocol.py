"""Whether the results of the dose study are those of a protocol that was written before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nonmember.reports.core.grid import Block, Cell, Number, Row
from nonmember.reports.core.report import Filled, tables
from nonmember.reports.core.worlds import Scope
from nonmember.reports.papers.dose.cells import REPORTED, count_cell, runs_of
from nonmember.results.load import Run
from nonmember.runtime.files import file_hash
from nonmember.runtime.yaml_files import read_yaml

PROTOCOLS = Path(__file__).parents[5] / "docs"
NAMES = "dose_protocol*.yaml"  # each for other sweeps
SETTINGS = ("panel", "alpha", "exclude")
LISTED = 40  # results with other settings
Protocols = Mapping[str, tuple[str, Mapping[str, Any]]]  # SHA-256 -> file name, what it fixes


def protocols() -> dict[str, tuple[str, Mapping[str, Any]]]:
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
    by_key = {key: runs for key in REPORTED if (runs := runs_of(scope, key))}
    if not by_key:
        return tables(None)
    known = protocols()
    if not known:
        return Filled("", notes=(f"{scope.world.title}: docs/{NAMES} is not there or cannot be read, so no result is "
                                 "compared with it.",))  # fmt: skip
    world = scope.world.name
    columns = ("results", "of a protocol", "of one that is not here", "of none", "other settings")

    def cells(runs: Sequence[Run]) -> tuple[Cell, ...]:
        kinds = (
            runs,
            [run for run in runs if _of(run, known)],
            [run for run in runs if run.get("protocol") and not _of(run, known)],
            [run for run in runs if not run.get("protocol")],
            [run for run in runs if differences(run, known)],
        )
        return tuple(count_cell(kind, world) for kind in kinds)

    rows = [Row(", ".join(scope.sweeps[key]), cells(runs)) for key, runs in by_key.items()]
    every = [run for runs in by_key.values() for run in runs]
    rows.append(Row("all", cells(every)))
    notes = (
        *(f"docs/{name} has the SHA-256 {sha256}; {sum(run.get('protocol') == sha256 for run in every)} of "
          f"{len(every)} results carry it, which says that it was as it is when they were made."
          for sha256, (name, _) in known.items()),
        f"Other settings: {', '.join(SETTINGS)} of the audit, where its protocol names another.",
    )  # fmt: skip
    block = Block("protocol", world, "Results and the protocol", "sweep", columns, tuple(rows), ("count",), notes=notes)
    return tables(block, _others(every, known, world))


def _of(run: Run, known: Protocols) -> Mapping[str, Any] | None:
    """What the protocol of this result fixes."""
    found = known.get(str(run.get("protocol")))
    return None if found is None else found[1]


def settings_of(run: Run) -> dict[str, Any]:
    """As the protocol calls them."""
    panel = run.statistics.details.get("panel") or run.get("panel.version")
    return {"panel": panel, "alpha": run.question.alpha, "exclude": run.get("exclude")}


def differences(run: Run, known: Protocols) -> list[str]:
    """Settings that are not as the result's protocol says; what it does not name is left out, and so are results of
    none."""
    ours, fixed = settings_of(run), _of(run, known) or {}
    return [name for name in SETTINGS if name in fixed and ours[name] != fixed[name]]


def _others(runs: Sequence[Run], known: Protocols, world: str) -> Block | None:
    """The results whose settings differ."""
    others = [run for run in runs if differences(run, known)]
    if not others:
        return None

    def row(run: Run) -> Row:
        ours, different, fixed = settings_of(run), differences(run, known), _of(run, known) or {}
        told = (str(ours[name]) + (f" (protocol: {fixed[name]})" if name in different else "") for name in SETTINGS)
        return Row(f"{run.question.sweep}: {run.question.cell}",
                   tuple(Cell((Number(text, None, world, (run.anchor,)),)) for text in told))  # fmt: skip

    more = (f"And {len(others) - LISTED} further results.",) if len(others) > LISTED else ()
    return Block("protocol-others", world, "Results with other settings", "result", SETTINGS,
                 tuple(map(row, others[:LISTED])), ("value",), notes=more)  # fmt: skip
