"""From a situation to a ranked list: what could be concluded, how likely, at what cost, by which command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from nonmember.advice.contestants import CONTESTANTS, RELATED, Contestant, Cost
from nonmember.advice.measured import Measured, Says, measured
from nonmember.advice.situation import Heldout, Offered, Situation
from nonmember.methods.base import Claim
from nonmember.models.access import Access

READINGS = 4  # at which methods that find membership are ranked
WORTH = 0.1  # by how much more one further thing must conclude to be named


@dataclass(frozen=True)
class Past:
    """seconds: median wall time of `number` audits by a method, with what the store already had."""

    seconds: float
    number: int


@dataclass(frozen=True)
class Option:
    """What one method could do here.

    says: what its verdict may speak for here.   measured: by what it says and how often the set was read; empty where
    nothing was measured.   missing: what it lacks, in words; empty where it can be run.
    """

    contestant: Contestant
    says: tuple[Claim, ...]
    cost: Cost
    command: str
    measured: Mapping[Says, Mapping[int, Measured]]
    missing: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.contestant.name

    @property
    def concludes(self) -> bool:
        """Whether it gives a verdict about use."""
        return bool(self.says)

    @property
    def value(self) -> float | None:
        """Power less the rate of false verdicts, the larger of what it may say: of non-membership, where nothing was
        read and where the least was read that is denied; of membership, at four readings and at none. None where it was
        not measured."""
        found = [_difference(cells, says, self.contestant.excludes) for says, cells in self.measured.items()]
        there = [one for one in found if one is not None]
        return max(there) if there else None

    @property
    def found_once(self) -> float:
        """How many of the sets that were read once it says were read; of equal methods the more sensitive is better."""
        cells = self.measured.get("membership", {})
        return cells[1].share if 1 in cells else 0.0


@dataclass(frozen=True)
class Advice:
    """concluding: methods that could give a verdict, best first.   beside: what gives numbers, or checks the texts.
    impossible: what is missing for the others.   next_things: for each one more thing, what could then be concluded.
    """

    situation: Situation
    concluding: tuple[Option, ...]
    beside: tuple[Option, ...]
    impossible: tuple[Option, ...]
    next_things: tuple[tuple[str, Option], ...]
    past: Mapping[str, Past] = field(default_factory=dict)

    def __str__(self) -> str:
        from nonmember.advice.text import as_text

        return as_text(self)


def advise(
    situation: Situation, past: Mapping[str, Past] | None = None, given: Mapping[str, str] | None = None
) -> Advice:
    """Ranked by measured power less error, of equal ones by what they find of sets read once; what was not measured
    comes after, the cheapest first.

    past: method -> what audits by it took before.   given: key of the config, such as target.path -> the word of the
    commands that gives it, in place of the one to fill in.
    """
    options = [_with_given(_option(one, situation), given or {}) for one in CONTESTANTS]
    possible = [one for one in options if not one.missing]
    return Advice(
        situation,
        concluding=tuple(sorted((one for one in possible if one.concludes), key=_rank)),
        beside=tuple(one for one in possible if not one.concludes),
        impossible=tuple(one for one in options if one.missing and one.concludes),
        next_things=tuple(_next_things(situation, possible)),
        past=dict(past or {}),
    )


def _option(contestant: Contestant, situation: Situation) -> Option:
    level, needed = situation.level, contestant.least_access
    missing = [need.what for need in contestant.needs if not need.met(situation)]
    if needed is not None and (level is None or level < needed):
        missing.insert(0, _ACCESS[needed])
    if situation.documents < contestant.least_documents:
        missing.append(f"{contestant.least_documents} texts")
    says = contestant.may_say(situation)
    kinds: tuple[Says, ...] = says or ("ranking",)
    name = _measured_as(contestant, situation)
    cells = {one: measured(name, contestant.setting, one, situation.documents) for one in kinds}
    found = {one: by_dose for one, by_dose in cells.items() if by_dose}
    cost, command = contestant.cost(situation), _command(contestant, situation)
    return Option(contestant, says, cost, command, found, tuple(missing))


def _with_given(option: Option, given: Mapping[str, str]) -> Option:
    words = [given.get(word.partition("=")[0], word) for word in option.command.split(" ")]
    return replace(option, command=" ".join(words))


_ACCESS = {
    Access.TEXT: "a model that returns text",
    Access.TOP_LOGPROBS: "log-probabilities of the likeliest next tokens",
    Access.PROMPT_LOGPROBS: "the log-probability of each token of a given text",
    Access.FULL_LOGITS: "the weights (full next-token distributions)",
    Access.WEIGHTS: "the weights",
}


def _measured_as(contestant: Contestant, situation: Situation) -> str:
    """Scores by what stands beside them."""
    if contestant.name != "score":
        return contestant.name
    beside = [
        *(["a reference"] if situation.reference or situation.base else []),
        *(["held-out text"] if situation.heldout == "same_draw" else []),
    ]
    return " ".join(["score", *(["with"] if beside else []), " and ".join(beside)]).strip()


def _command(contestant: Contestant, situation: Situation) -> str:
    model = "target.path=MODEL"
    if contestant.least_access is None:
        model = ""
    elif situation.access in ("text", "top_logprobs", "logprobs"):
        model = "model@target=endpoint target.url=URL target.model=NAME"
    beside = contestant.given
    if contestant.related and situation.related:
        beside += (
            " +data@data.related=documents data.related.path=FILE 'method.controls.related=${data.related.corpus}'"
        )
    if not situation.reference and situation.base:
        beside = beside.replace("reference.path=REFERENCE", "reference.path=BASE")
    if contestant.name == "score":
        given = model.replace("target", "model").replace("model@model", "model")
        reference = (
            "reference.path=REFERENCE" if situation.reference else "reference.path=BASE" if situation.base else ""
        )
        words = ["nonmember score", given, reference, "data.path=FILE"]
    else:
        words = [f"nonmember audit method={contestant.name}", contestant.variant, model, "data.path=FILE", beside]
    return " ".join(word for word in words if word)


def _difference(cells: Mapping[int, Measured], says: Says, excludes: int) -> float | None:
    right, wrong = {"non_membership": (0, excludes), "membership": (READINGS, 0), "ranking": (READINGS, -1)}[says]
    if right not in cells:
        return None
    return cells[right].share - (cells[wrong].share if wrong in cells else 0.0)


def _rank(option: Option) -> tuple[Any, ...]:
    return (option.value is None, -(option.value or 0.0), -option.found_once, *option.cost.in_order())


def _next_things(situation: Situation, possible: list[Option]) -> list[tuple[str, Option]]:
    """What one further thing would allow: the best new method for each, those first that conclude most."""
    now = max((one.value or 0.0 for one in possible if one.concludes), default=0.0)
    has_verdict = any(one.concludes for one in possible)
    found: list[tuple[str, Option]] = []
    for what, changed in _changes(situation):
        known = {(one.contestant.title, one.says) for one in (*possible, *(option for _, option in found))}
        new = [
            one
            for one in (_option(contestant, changed) for contestant in CONTESTANTS)
            if one.concludes and not one.missing and (one.contestant.title, one.says) not in known
        ]
        better = [
            one for one in new if not has_verdict or (one.value or 0.0) > now + WORTH or _says_more(one, possible)
        ]
        if better:
            found.append((what, min(better, key=_rank)))
    return sorted(found, key=lambda one: _rank(one[1])[:3])


def _says_more(option: Option, possible: list[Option]) -> bool:
    """Whether it may say something that nothing at hand may."""
    said = {claim for one in possible for claim in one.says}
    return not said.issuperset(option.says)


def _changes(situation: Situation) -> list[tuple[str, Situation]]:
    """One further thing each, in words, and what one would then have."""
    changes = []
    offered = get_args(Offered)
    for access in offered[offered.index(situation.access) + 1 :]:
        changes.append((f"more access to the model ({access})", replace(situation, access=access)))
    kinds: tuple[Heldout, ...] = get_args(Heldout)
    if situation.heldout != kinds[1]:
        changes.append(("unread text of the same draw", replace(situation, heldout=kinds[1])))
    needs = {need.name: need for one in CONTESTANTS for need in (*one.needs, RELATED) if not need.values}
    for name, need in needs.items():
        if not getattr(situation, name):
            further: dict[str, Any] = {name: True}
            changes.append((need.what, replace(situation, **further)))
    return changes
