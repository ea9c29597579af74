"""Which labels of results fill which rows and columns, world by world; and how results are found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from nonmember.results.load import Run


@dataclass(frozen=True)
class World:
    """A family of results that may share a table."""

    name: str  # as results record it
    title: str
    about: str
    command: str  # makes a sweep
    # untouched, member: labels of the targets that stand for the paper's plain and trained model
    untouched: str = ""
    member: str = ""
    # domains, targets, references: label in the results -> printed name, in printed order
    domains: Mapping[str, str] = field(default_factory=dict)
    targets: Mapping[str, str] = field(default_factory=dict)
    references: Mapping[str, str] = field(default_factory=dict)
    published: bool = False  # the printed names are the paper's, so that its numbers stand beside ours
    # domains_of, targets_of, references_of: table -> the labels it shows, where not all
    domains_of: Mapping[str, Sequence[str]] = field(default_factory=dict)
    targets_of: Mapping[str, Sequence[str]] = field(default_factory=dict)
    references_of: Mapping[str, Sequence[str]] = field(default_factory=dict)
    fills: Sequence[str] = ()  # tables whose sweeps it can run, where not all; sections of the others leave it out

    def found(self, kind: str, runs: Iterable[Run], of: str = "") -> dict[str, str]:
        """Labels to print for `kind` (domain, target or reference): the configured ones, then others the runs have."""
        known: Mapping[str, str] = getattr(self, f"{kind}s")
        only = getattr(self, f"{kind}s_of").get(of)
        present = dict.fromkeys(str(label) for run in runs if (label := run.get(kind)) is not None)
        names = known if only is None else {label: known.get(label, label) for label in only}
        return dict(names) | {label: known.get(label, label) for label in sorted(present) if label not in names}

    def pair(self) -> dict[str, str]:
        """The untouched and the trained target."""
        return {label: self.targets.get(label, label) for label in (self.untouched, self.member)}


def unknown_world(name: str, runs: Sequence[Run], like: World) -> World:
    """A world that no YAML describes: its labels as they are, the member by its truth."""
    members = [run.question.target for run in runs if run.question.truth == "member" and run.question.target]
    others = [run.question.target for run in runs if run.question.target and run.question.target not in members]
    about = "Results of no world that conf/report describes; labels as they are."
    return World(name, name, about, like.command, others[0] if others else "", members[0] if members else "")


def select(runs: Iterable[Run], **wanted: Any) -> list[Run]:
    """Runs whose facts (see Run.get) equal what is wanted; of a tuple, any. Dots in names are written as __."""
    conditions = [(name.replace("__", "."), value) for name, value in wanted.items()]

    def fits(value: Any, wanted: Any) -> bool:
        return value in wanted if isinstance(wanted, tuple) else bool(value == wanted)

    return [run for run in runs if all(fits(run.get(name), value) for name, value in conditions)]


@dataclass(frozen=True)
class Scope:
    """The results of one world, as one report sees them."""

    world: World
    runs: tuple[Run, ...]
    sweeps: Mapping[str, Sequence[str]]  # table or figure -> the sweeps that may fill it, best first
    # Kind of label (scores ...) -> label in the results -> printed name, in any world.
    names: Mapping[str, Mapping[str, str]]

    @cached_property
    def by_sweep(self) -> Mapping[str, Sequence[Run]]:
        """Sweep -> its results here."""
        runs: dict[str, list[Run]] = {}
        for run in self.runs:
            runs.setdefault(run.question.sweep, []).append(run)
        return runs

    def sweep_of(self, table: str) -> str:
        """The first of the table's sweeps that has results here; the first of all where none has."""
        return next((sweep for sweep in self.sweeps[table] if sweep in self.by_sweep), self.sweeps[table][0])

    def of(self, table: str, **wanted: Any) -> list[Run]:
        return select(self.by_sweep.get(self.sweep_of(table), ()), **wanted)

    def can_fill(self, tables: Sequence[str]) -> bool:
        return not (tables and self.world.fills) or any(table in self.world.fills for table in tables)

    def command(self, table: str) -> str:
        """What makes the results of a table here."""
        return self.world.command.format(sweep=self.sweeps[table][0])


def by_domain(scope: Scope, key: str, runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Printed name of a set -> its results."""
    return {name: select(runs, domain=domain) for domain, name in scope.world.found("domain", runs, key).items()}


def one_target(scope: Scope, runs: Sequence[Run]) -> list[Run]:
    """Of several targets the member of the world, or the first."""
    targets = dict.fromkeys(run.question.target for run in runs)
    if len(targets) < 2:
        return list(runs)
    chosen = scope.world.member if scope.world.member in targets else next(iter(targets))
    return select(runs, target=chosen)


def scopes_of(
    runs: Sequence[Run],
    worlds: Sequence[World],
    sweeps: Mapping[str, Sequence[str]],
    names: Mapping[str, Mapping[str, str]],
) -> list[Scope]:
    """The worlds that have results: the configured ones in their order, then others."""
    if not worlds:
        raise ValueError("The report knows no world; list one under report.worlds (conf/report/NAME.yaml).")
    known = {world.name: world for world in worlds}
    present = dict.fromkeys(run.question.world for run in runs)
    scopes = []
    for name in [*(name for name in known if name in present), *sorted(set(present) - set(known))]:
        of_world = tuple(run for run in runs if run.question.world == name)
        world = known.get(name) or unknown_world(name, of_world, worlds[0])
        scopes.append(Scope(world, of_world, sweeps, names))
    return scopes
