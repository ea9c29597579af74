"""The artifacts that audits will request from the builder, found out before anything is made."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from nonmember.artifacts import Spec
from nonmember.artifacts.planner import Graph, NotMade, Planner
from nonmember.audits.cell import Cell
from nonmember.audits.distilled import obstacle_of
from nonmember.audits.keys import audit_keys
from nonmember.audits.preconditions import require_documents
from nonmember.audits.question import Audit
from nonmember.audits.record import finished
from nonmember.endpoints.asked import Asked
from nonmember.observations.weights import WeightChange, weights_at_hand
from nonmember.results.result import RESULT


def needed(audit: Audit) -> Iterator[Spec[Any]]:
    """The models and observations of an audit."""
    measured = list(audit.measurements)
    method = audit.method
    for item in measured:
        yield item.model
        yield from item.needs()
    compared = method.moved_from(audit.roles)
    if compared is not None and weights_at_hand(audit.target):
        base, others = compared
        yield from (WeightChange(model, base) for model in (audit.target, *others.values()))


@dataclass
class SweepPlan:
    """The cells of a sweep and what they need, added one by one."""

    planner: Planner
    graph: Graph
    num_cells: int = 0
    ended: set[int] = field(default_factory=set)  # places of the cells that have their result
    refused: dict[int, str] = field(default_factory=dict)  # place -> why it cannot be planned
    asking: set[int] = field(default_factory=set)  # those that query a remote model
    invalid: dict[int, str] = field(default_factory=dict)  # place -> why its verdict would be `invalid`

    @classmethod
    def by(cls, planner: Planner) -> SweepPlan:
        return cls(planner, Graph(planner))

    def see(self, index: int, cell: Cell) -> None:
        if self._has_ended(cell):
            self.ended.add(index)
        else:
            self._add(index, cell)
        self.num_cells += 1

    def _add(self, index: int, cell: Cell) -> None:
        self._check_documents(index, cell)
        if any(isinstance(item, Asked) and not item.model.has_weights for item in cell.audit.measurements):
            self.asking.add(index)
        self.graph.add(index, needed(cell.audit))

    def _check_documents(self, index: int, cell: Cell) -> None:
        """Raises ValueError where the documents are too few."""
        with contextlib.suppress(NotMade):
            require_documents(cell.audit, self.planner)
            if obstacle := obstacle_of(cell.audit, self.planner):
                self.invalid[index] = obstacle

    def refuse(self, index: int, why: str) -> None:
        """A cell that cannot be carried out, or of which nothing is known."""
        self.num_cells += 1
        self.refused[index] = why

    def _has_ended(self, cell: Cell) -> bool:
        if not (cell.folder / RESULT).is_file():
            return False
        try:
            keys = audit_keys(cell.audit, self.planner)
        except NotMade:
            return False
        return finished(cell.folder, keys["audit"]) is not None
