"""Tables as data: which facts of results are rows and columns, and which numbers stand in a cell.

Whatever belongs to every table is attached here, once: Holm's adjustment, marks, medians, controls, the published
number beside ours, and which cells are missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

from nonmember.reports.core import controls, formats
from nonmember.reports.core.grid import Block, TableCell, TableRow
from nonmember.reports.core.published import PublishedTable, published_number
from nonmember.reports.core.worlds import Scope, one_target
from nonmember.reports.declared.cells import CellTemplate
from nonmember.reports.declared.facts import chosen, parts_of
from nonmember.reports.render.blocks import adjusted, filled, say_medians, say_missing, say_tests
from nonmember.results.load import Run

OF_WORLD = ("domain", "target", "reference")
PAIR = "pair"  # untouched and trained target
CORNERS = {"domain": "set", "score.kind": "score", PAIR: "target"}
OTHER, NONE = "other", "none"

Names = Mapping[Any, str] | str  # label -> printed name, or a format of the label


@dataclass(frozen=True)
class FactAxis:
    """A fact of results along which a table goes."""

    fact: str  # its name, see `Run.get`; or `pair`, the untouched and the trained target of a world
    # Label in the results -> printed name, in printed order; in ascending order, with all that results have, where
    # `other` is a format for those that are not listed (`none`: for those without the fact); or a format alone. None:
    # the world's names.
    names: Names | None = None
    is_present: bool = False  # whether labels without results are left out
    if_several: bool = False  # whether a single label is left out of the rows' names, and said in a note

    @classmethod
    def read(cls, text: str, names: Mapping[str, Names]) -> FactAxis:
        """`domain`; `target?`, those with results; `target??`, also left out of names where it is one."""
        fact = text.rstrip("?")
        return cls(fact, names.get(fact), text.endswith("?"), text.endswith("??"))

    @property
    def of(self) -> str:
        return "target" if self.fact == PAIR else self.fact

    @property
    def corner(self) -> str:
        return CORNERS.get(self.fact, self.fact.rpartition(".")[2].replace("_", " "))

    def labels(self, scope: Scope, runs: Sequence[Run], key: str, fixed: Any = None) -> dict[Any, str]:
        """Label -> printed name, in printed order. fixed: the one that all of the table's results have.

        Raises ValueError where no result has the fact, and it has no names.
        """
        found = dict.fromkeys(run.get(self.of) for run in runs)
        if self.names is None and self.fact not in OF_WORLD and list(found) == [None]:
            raise ValueError(
                f"The table or figure {key!r} goes by {self.fact!r}, which none of its {len(runs)} results has. Name a "
                "fact of their result.json: of `question` or its `data` or `settings` (rank_metric, score.kind), or of "
                "the details."
            )
        labels = self._labels(scope, runs, key, found)
        if isinstance(fixed, str):
            labels = {fixed: labels.get(fixed, fixed)}
        return {label: name for label, name in labels.items() if label in found} if self.is_present else labels

    def _labels(self, scope: Scope, runs: Sequence[Run], key: str, found: Mapping[Any, None]) -> dict[Any, str]:
        if self.fact == PAIR:
            return scope.world.pair()
        if self.fact in OF_WORLD and self.names is None:
            return scope.world.found(self.fact, runs, "" if self.is_present else key)
        ascending = sorted(found, key=lambda label: (label is None, isinstance(label, str), label))
        if isinstance(self.names, str):
            return {label: self.names.format(label) for label in ascending if label is not None}
        if self.names is not None and OTHER in self.names:  # a name for each value: in ascending order
            keys = {label: NONE if label is None else label for label in ascending}
            return {label: self.names.get(key, self.names[OTHER].format(label)) for label, key in keys.items()}
        names = dict(self.names or {})
        return names | {label: str(label) for label in ascending if label not in names}


@dataclass(frozen=True)
class TableSpec:
    """A row for each combination of the facts `rows`, a column for each label of the fact `columns`."""

    rows: Sequence[str]  # facts, see `FactAxis.read`
    # A fact; or name -> cell, where columns are different numbers, and rows without results are left out.
    columns: str | Mapping[str, str]
    cell: str = ""  # what stands in a cell, see `cells`
    numbers: Sequence[str] = ("number",)  # what the numbers of a cell are
    sweep: str = ""  # of the report's sweeps: whose results it shows; and the section it stands in
    section: str = ""  # the section, where it is another
    part: str = ""  # tells several tables of one section apart, in their keys
    title: str = ""  # before the world's; where there is none, the world's alone
    corner: str = ""  # what the rows' names are, where the facts' names do not say it
    # Facts that its results have, see `chosen`. "@one" is one of several targets, the member first.
    where: Mapping[str, Any] = field(default_factory=dict)
    # Of what parts of each result's details it is, see `parts_of`; `details.each` is the part, the fact `each` its
    # name.
    each: str | Mapping[str, str] = ""
    names: Mapping[str, Names] = field(default_factory=dict)  # fact -> its names, where not the report's
    joined: str = ""  # how the names of several facts make a row's
    notes: Sequence[str] = ()  # sentences before what is said of every table, with fields as in a cell
    said: Sequence[str] = ()  # the same, before it is said what is missing
    is_family: bool = True  # whether its p-values, in columns that hold nothing else, are adjusted as one family
    has_controls: bool = False  # whether the negative controls stand under or beside it
    # The paper's table, whose numbers stand beside ours where the models are the paper's.
    published: PublishedTable | None = None

    def __post_init__(self) -> None:
        for template in (*self.templates.values(), *map(CellTemplate, (*self.notes, *self.said))):
            _ = template.quantities  # raises ValueError where they are none
        most = max(len(template.quantities) for template in self.templates.values())
        if most > len(self.numbers):
            raise ValueError(f"A cell has {most} numbers, and `numbers` names {', '.join(self.numbers)}: name each.")

    def blocks(self, scope: Scope) -> list[Block]:
        """Of one world; with the controls as a table of their own where they fit under none of its columns."""
        if (block := self.block(scope)) is None:
            return []
        apart = self.has_controls and not block.footer and controls.were_run(scope)
        return [block, *([controls.controls_block(scope, scope.world.domains, self.sweep)] if apart else [])]

    def block(self, scope: Scope) -> Block | None:
        """None where no result fills any cell."""
        runs, world = self.runs(scope), scope.world
        columns = self._columns(scope, runs)
        rows = tuple(self._row(scope, name, group, columns) for name, group in self.groups(scope, runs).items())
        tested, family = self._adjusted(rows, tuple(columns.values()))
        by_domain = self.columns == "domain" and self.has_controls and controls.were_run(scope)
        block = Block(
            key="-".join(filter(None, (self.sweep, self.part, formats.slug(world.name)))),
            world=world.name,
            title=f"{self.title}. {world.title}" if self.title else world.title,
            corner=self.head,
            columns=tuple(columns.values()),
            rows=tested,
            quantities=tuple(self.numbers),
            footer=controls.control_rows(scope, columns) if by_domain else (),
        )
        notes, said = ([note_of(text, runs, scope) for text in texts] for texts in (self.notes, self.said))
        is_truth_known = any(run.question.truth is not None for run in runs)
        every = [say_tests(family, is_truth_known=is_truth_known), say_medians(tested), *said, say_missing(block)]
        asides = self._asides(scope) if self.has_controls else []
        return filled(block, [*self._left_out(scope, runs), *notes, *every, *asides])

    def runs(self, scope: Scope) -> list[Run]:
        """The results it shows."""
        found = chosen(scope.of(self.sweep), self.where, scope)
        if self.each:
            found = [part for run in found for part in parts_of(run, self.each)]
        return one_target(scope, found) if self.where.get("target") == "@one" else found

    def axes(self, scope: Scope) -> list[FactAxis]:
        return [FactAxis.read(text, {**scope.names, **self.names}) for text in self.rows]

    def labels(self, axis: FactAxis, scope: Scope, runs: Sequence[Run]) -> dict[Any, str]:
        fixed = self.where.get(axis.fact)
        if isinstance(fixed, str) and fixed.startswith("@"):
            fixed = getattr(scope.world, fixed[1:], None)
        return axis.labels(scope, runs, self.sweep, fixed)

    def groups(self, scope: Scope, runs: Sequence[Run]) -> dict[str, list[Run]]:
        """Name of a row -> its results."""
        axes = self.axes(scope)
        labels = [self.labels(axis, scope, runs) for axis in axes]
        is_shown = [not (axis.if_several and len(some) == 1) for axis, some in zip(axes, labels, strict=True)]
        groups: dict[str, list[Run]] = {}
        for combination in product(*labels):
            names = [some[label] for some, label, shown in zip(labels, combination, is_shown, strict=True) if shown]
            found = [
                run
                for run in runs
                if all(run.get(axis.of) == label for axis, label in zip(axes, combination, strict=True))
            ]
            if found or isinstance(self.columns, str):
                groups[self.joined.format(*names) if self.joined else ", ".join(names)] = found
        return groups

    def _columns(self, scope: Scope, runs: Sequence[Run]) -> dict[Any, str]:
        if not isinstance(self.columns, str):
            return {name: name for name in self.columns}
        return self.labels(self.across(scope), scope, runs)

    def across(self, scope: Scope) -> FactAxis:
        assert isinstance(self.columns, str)
        return FactAxis.read(self.columns, {**scope.names, **self.names})

    @cached_property
    def templates(self) -> Mapping[str, CellTemplate]:
        """Name of a column -> what stands in it, where columns are different numbers; else all under the empty name."""
        cells = {"": self.cell} if isinstance(self.columns, str) else self.columns
        return {name: CellTemplate(text) for name, text in cells.items()}

    @property
    def head(self) -> str:
        """What its rows are."""
        return self.corner or ", ".join(FactAxis.read(text, {}).corner for text in self.rows)

    @property
    def template(self) -> str:
        """How the numbers of a cell stand together."""
        return self.templates[""].template if isinstance(self.columns, str) else "{}"

    def _adjusted(
        self, rows: Sequence[TableRow], columns: Sequence[str]
    ) -> tuple[tuple[TableRow, ...], tuple[TableRow, ...]]:
        """The rows with adjusted p-values, and their p-values alone."""
        at = [index for index, name in enumerate(columns) if self.is_family and self._template(name).is_tested]
        family = adjusted([TableRow(row.name, tuple(row.cells[index] for index in at)) for row in rows])

        def with_p(row: TableRow, p_values: TableRow) -> TableRow:
            found = dict(zip(at, p_values.cells, strict=True))
            return TableRow(row.name, tuple(found.get(index, cell) for index, cell in enumerate(row.cells)))

        return tuple(map(with_p, rows, family)), family

    def _template(self, column: str) -> CellTemplate:
        return self.templates[column if column in self.templates else ""]

    def _row(self, scope: Scope, name: str, runs: Sequence[Run], columns: Mapping[Any, str]) -> TableRow:
        def cell(label: Any, column: str) -> TableCell:
            found = runs
            if isinstance(self.columns, str):
                across = self.across(scope).of
                found = [run for run in runs if run.get(across) == label]
            template = self._template(column)
            published = self.published if scope.world.published else None
            beside = published.fitting(name, column, template.template) if published else ()
            return TableCell(template.numbers(found, scope), tuple(map(published_number, beside)), template.template)

        return TableRow(name, tuple(cell(*column) for column in columns.items()))

    def _left_out(self, scope: Scope, runs: Sequence[Run]) -> list[str]:
        """What stands in no row's name, since all results have it."""
        few = [(axis, self.labels(axis, scope, runs)) for axis in self.axes(scope) if axis.if_several]
        return [
            f"{axis.corner.capitalize()}: {next(iter(labels.values()))}." for axis, labels in few if len(labels) == 1
        ]

    def _asides(self, scope: Scope) -> list[str]:
        asides = [] if controls.were_run(scope) else [controls.not_run(scope)]
        if (sweep := scope.sweep_of(self.sweep)) != (first := scope.sweeps[self.sweep][0]):
            asides.append(f"From the sweep {sweep}, since {first} was not run in this world.")
        return asides


def note_of(text: str, runs: Sequence[Run], scope: Scope) -> str:
    """A sentence whose fields are filled from the results; nothing where one cannot be."""
    template = CellTemplate(text)
    texts = [number.text for number in template.numbers(runs, scope)]
    return "" if formats.DASH in texts else template.template.format(*texts)
