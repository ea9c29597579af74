"""The artifacts that audits will request from the builder, found out before anything is made."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from nonmember.artifacts import Spec
from nonmember.artifacts.planner import Graph, NotMade, Planner
from nonmember.audits.cell import Cell
from nonmember.audits.joined import JoinedPart
from nonmember.audits.keys import audit_keys
from nonmember.audits.preparation import require_documents
from nonmember.audits.preparing import obstacle_of
from nonmember.audits.question import Audit
from nonmember.audits.record import finished
from nonmember.endpoints.asked import Asked
from nonmember.observations.weights import WeightChange, weights_at_hand
from nonmember.results.result import RESULT

ENDED = "it has its result"


def needed(audit: Audit) -> Iterator[Spec[Any]]:
    """The models and observations of an audit; of a ladder of learning rates, those of its first rate alone."""
    measured = list(audit.measurements)
    method = audit.method
    measured += [item for group in method.before_settling(audit.roles).values() for item in group.measured.values()]
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
    is_dry: bool = False  # nothing will be run, so documents and gates are checked here
    num_cells: int = 0
    ended: set[int] = field(default_factory=set)  # places of the cells that have their result
    refused: dict[int, str] = field(default_factory=dict)  # place -> why it cannot be planned
    asking: set[int] = field(default_factory=set)  # those that query a remote model
    climbing: set[int] = field(default_factory=set)  # those with a ladder of learning rates
    invalid: dict[int, str] = field(default_factory=dict)  # place -> why its verdict would be `invalid`
    # Of method=auto, by place: the methods, and why one would not be run.
    parts: dict[int, list[tuple[str, str]]] = field(default_factory=dict)

    @classmethod
    def by(cls, planner: Planner, is_dry: bool = False) -> SweepPlan:
        return cls(planner, Graph(planner), is_dry)

    def see(self, index: int, cell: Cell) -> None:
        if self._has_ended(cell):
            self.ended.add(index)
        else:
            self._add(index, cell)
        self.num_cells += 1

    def see_parts(self, index: int, parts: Iterable[tuple[JoinedPart, str]]) -> None:
        """An audit by method=auto: its parts, each with why it will be left out, if it will be."""
        reasons = [(part.method, reason or self._see_part(index, part)) for part, reason in parts]
        if all(reason not in ("", ENDED) for _, reason in reasons):
            why = "; ".join(f"{method}: {reason.rstrip('.')}" for method, reason in reasons)
            raise ValueError(f"No method would be run by method=auto. {why or 'None is advised for what is given.'}")
        self.parts[index] = reasons
        self.num_cells += 1

    def _see_part(self, index: int, part: JoinedPart) -> str:
        """Why it would not be run; empty: it would."""
        reason = ""
        for cell in part.cells:
            if self._has_ended(cell):
                return ENDED
            try:
                self._add(index, cell)
            except ValueError as error:  # for which it would be left out
                reason = reason or str(error)
            else:
                return ""
        return reason

    def _add(self, index: int, cell: Cell) -> None:
        if self.is_dry:
            self._check_documents(index, cell)
        if any(isinstance(item, Asked) and not item.model.has_weights for item in cell.audit.measurements):
            self.asking.add(index)
        if cell.audit.method.before_settling(cell.audit.roles):
            self.climbing.add(index)
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
