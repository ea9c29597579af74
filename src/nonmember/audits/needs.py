"""What audits will get from the builder, told before anything is made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from nonmember.artifacts import Spec
from nonmember.artifacts.planner import Graph, NotMade, Planner
from nonmember.audits.cell import Cell
from nonmember.audits.keys import audit_keys
from nonmember.audits.question import Audit
from nonmember.audits.record import finished
from nonmember.endpoints.asked import Asked
from nonmember.methods import Prism
from nonmember.methods.prism.ladder import rung
from nonmember.observations.weights import WeightChange, weights_at_hand
from nonmember.results.result import RESULT


def needed(audit: Audit) -> Iterator[Spec[Any]]:
    """The models and observations of an audit; of a ladder of learning rates, those of its first rate alone."""
    measured = list(audit.measurements)
    method = audit.method
    if isinstance(method, Prism) and method.gates is not None and method.ladder is not None:
        groups = rung(method, audit.roles, method.ladder.rates[0])
        measured += [one for group in groups.values() for one in group.measured.values()]
    for one in measured:
        yield one.model
        yield from one.needs()
    compared = method.moved_from(audit.roles)
    if compared is not None and weights_at_hand(audit.target):
        base, others = compared
        yield from (WeightChange(model, base) for model in (audit.target, *others.values()))


@dataclass
class Outlook:
    """The cells of a sweep and what they need, seen one by one.

    ended: places of the cells that have their result.   refused: place -> why nothing can be told of it.   asking:
    those that ask a model which is not here.   climbing: those with a ladder of learning rates.
    """

    planner: Planner
    graph: Graph
    num_cells: int = 0
    ended: set[int] = field(default_factory=set)
    refused: dict[int, str] = field(default_factory=dict)
    asking: set[int] = field(default_factory=set)
    climbing: set[int] = field(default_factory=set)

    @classmethod
    def by(cls, planner: Planner) -> Outlook:
        return cls(planner, Graph(planner))

    def see(self, place: int, cell: Cell) -> None:
        self.num_cells += 1
        if self._has_ended(cell):
            self.ended.add(place)
            return
        if any(isinstance(one, Asked) and not one.model.has_weights for one in cell.audit.measurements):
            self.asking.add(place)
        if getattr(cell.audit.method, "ladder", None) is not None:
            self.climbing.add(place)
        self.graph.add(place, needed(cell.audit))

    def refuse(self, place: int, why: str) -> None:
        """A cell that cannot be carried out, or of which nothing is known."""
        self.num_cells += 1
        self.refused[place] = why

    def _has_ended(self, cell: Cell) -> bool:
        if not (cell.folder / RESULT).is_file():
            return False
        try:
            keys = audit_keys(cell.audit, self.planner)
        except NotMade:
            return False
        return finished(cell.folder, keys["audit"]) is not None
