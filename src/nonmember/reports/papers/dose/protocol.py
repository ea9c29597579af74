"""Whether the results of the dose study are those of the protocol that was written before."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from nonmember.reports.core.grid import Block, Cell, Number, Row
from nonmember.reports.core.report import Filled, tables
from nonmember.reports.core.worlds import Scope
from nonmember.reports.papers.dose.cells import REPORTED, count_cell, runs_of
from nonmember.results.load import Run

NAME = "docs/dose_protocol.yaml"
PROTOCOL = Path(__file__).parents[5] / NAME
SETTINGS = ("panel", "alpha", "exclude")
LISTED = 40  # results with other settings


def protocol(scope: Scope) -> Filled:
    """By sweep, how many results carry the hash of the protocol, and which have settings that it does not name."""
    by_key = {key: runs for key in REPORTED if (runs := runs_of(scope, key))}
    if not by_key:
        return tables(None)
    try:
        content = PROTOCOL.read_bytes()
        fixed: Any = yaml.safe_load(content)
    except (OSError, yaml.YAMLError):
        content, fixed = None, None
    if content is None or not isinstance(fixed, Mapping):
        return Filled("", notes=(f"{scope.world.title}: {NAME} is not there or cannot be read, so no result is "
                                 "compared with it.",))  # fmt: skip
    sha256, world = hashlib.sha256(content).hexdigest(), scope.world.name
    columns = ("results", "of this protocol", "of another", "of none", "other settings")

    def cells(runs: Sequence[Run]) -> tuple[Cell, ...]:
        named = [run.get("protocol") for run in runs]
        kinds = (
            runs,
            [run for run, one in zip(runs, named, strict=True) if one == sha256],
            [run for run, one in zip(runs, named, strict=True) if one and one != sha256],
            [run for run, one in zip(runs, named, strict=True) if not one],
            [run for run in runs if differences(run, fixed)],
        )
        return tuple(count_cell(kind, world) for kind in kinds)

    rows = [Row(", ".join(scope.sweeps[key]), cells(runs)) for key, runs in by_key.items()]
    every = [run for runs in by_key.values() for run in runs]
    rows.append(Row("all", cells(every)))
    matching = sum(run.get("protocol") == sha256 for run in every)
    notes = (
        f"{NAME} has the SHA-256 {sha256}; {matching} of {len(every)} results carry it, which says that it was as it "
        "is when they were made.",
        f"Other settings: {', '.join(SETTINGS)} of the audit, where the protocol names another.",
    )
    block = Block("protocol", world, "Results and the protocol", "sweep", columns, tuple(rows), ("count",), notes=notes)
    return tables(block, _others(every, fixed, world))


def settings_of(run: Run) -> dict[str, Any]:
    """As the protocol calls them."""
    panel = run.statistics.details.get("panel") or run.get("panel.version")
    return {"panel": panel, "alpha": run.question.alpha, "exclude": run.get("exclude")}


def differences(run: Run, fixed: Mapping[str, Any]) -> list[str]:
    """Settings that are not as the protocol says; what it does not name is left out."""
    ours = settings_of(run)
    return [name for name in SETTINGS if name in fixed and ours[name] != fixed[name]]


def _others(runs: Sequence[Run], fixed: Mapping[str, Any], world: str) -> Block | None:
    """The results whose settings differ."""
    others = [run for run in runs if differences(run, fixed)]
    if not others:
        return None

    def row(run: Run) -> Row:
        ours, different = settings_of(run), differences(run, fixed)
        told = (str(ours[name]) + (f" (protocol: {fixed[name]})" if name in different else "") for name in SETTINGS)
        return Row(f"{run.question.sweep}: {run.question.cell}",
                   tuple(Cell((Number(text, None, world, (run.anchor,)),)) for text in told))  # fmt: skip

    more = (f"And {len(others) - LISTED} further results.",) if len(others) > LISTED else ()
    return Block("protocol-others", world, "Results with other settings", "result", SETTINGS,
                 tuple(map(row, others[:LISTED])), ("value",), notes=more)  # fmt: skip
