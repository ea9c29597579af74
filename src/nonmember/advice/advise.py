"""From a situation to a ranked list: what could be concluded, how likely, at what cost, by which command."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from nonmember.advice.contestants import CONTESTANTS, RELATED, Contestant, Cost
from nonmember.advice.measured import MeasuredPower, Says, measured
from nonmember.advice.situation import Heldout, Offered, Past, Situation
from nonmember.methods.auto import IN_WORDS
from nonmember.methods.base import Claim
from nonmember.records.requirements import ACCESS

OF_A_SIBLING = ("prism",)  # have no power where the target's own base is the reference (docs/methods/prism.md)
READINGS = 4  # at most, by which methods that find membership are ranked
WORTH = 0.1  # power less false verdicts: by how much more one further thing must conclude to be named


@dataclass(frozen=True)
class Option:
    """What one method could do here."""

    contestant: Contestant
    says: tuple[Claim, ...]  # what its verdict may speak for here
    cost: Cost
    command: str
    # By what it says and how often the set was read; empty where nothing was measured.
    measured: Mapping[Says, Mapping[int, MeasuredPower]]
    missing: tuple[str, ...]  # what it lacks, in words; empty where it can be run

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
        read and where the least was read that is denied; of membership, the mean power at one to four readings and at
        none. Where four were not measured it is the mean of fewer, a lower bound. None where nothing was measured."""
        found = [_difference(cells, says, self.contestant.excludes) for says, cells in self.measured.items()]
        there = [item for item in found if item is not None]
        return max(there) if there else None


@dataclass(frozen=True)
class Advice:
    situation: Situation
    concluding: tuple[Option, ...]  # methods that could give a verdict, best first
    beside: tuple[Option, ...]  # what gives numbers, or checks the texts
    impossible: tuple[Option, ...]  # what is missing for the others
    next_things: tuple[tuple[str, Option], ...]  # for one more thing, or the best two, what could then be concluded
    past: Mapping[str, Past] = field(default_factory=dict)

    def __str__(self) -> str:
        return as_text(self)


def advise(
    situation: Situation, past: Mapping[str, Past] | None = None, given: Mapping[str, str] | None = None
) -> Advice:
    """Ranked by measured power less error, of equal ones the cheapest first; what was not measured comes last.

    past: method -> what audits by it took before.   given: key of the config, such as target.path -> the word of the
    commands that gives it, in place of the one to fill in.
    """
    options = [_with_given(_option(item, situation), given or {}) for item in CONTESTANTS]
    possible = [item for item in options if not item.missing]
    return Advice(
        situation,
        concluding=tuple(sorted((item for item in possible if item.concludes), key=_rank)),
        beside=tuple(item for item in possible if not item.concludes),
        impossible=tuple(item for item in options if item.missing and item.concludes),
        next_things=tuple(_next_things(situation, possible)),
        past=dict(past or {}),
    )


def _option(contestant: Contestant, situation: Situation) -> Option:
    level, needed = situation.level, contestant.requirements.access
    missing = [need.what for need in contestant.needs if not need.met(situation)]
    if needed is not None and (level is None or level < needed):
        missing.insert(0, ACCESS[needed].asked)
    if situation.documents < contestant.requirements.documents:
        missing.append(f"{contestant.requirements.documents} texts")
    says = contestant.may_say(situation)
    kinds: tuple[Says, ...] = says or ("ranking",)
    name = _measured_as(contestant, situation)
    cells = {item: measured(name, contestant.setting, item, situation.documents) for item in kinds}
    found = {item: by_dose for item, by_dose in cells.items() if by_dose}
    cost, command = contestant.cost(situation), _command(contestant, situation)
    return Option(contestant, says, cost, command, found, tuple(missing))


def _with_given(option: Option, given: Mapping[str, str]) -> Option:
    parts = [given.get(word.partition("=")[0], word) for word in option.command.split(" ")]
    return replace(option, command=" ".join(parts))


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
    if contestant.requirements.access is None:
        model = ""
    elif situation.access in ("text", "top_logprobs", "logprobs"):
        model = "model@target=endpoint target.url=URL target.model=NAME"
    beside = contestant.given
    if contestant.related and situation.related:
        beside += (
            " +data@data.related=documents data.related.path=FILE 'method.controls.related=${data.related.corpus}'"
        )
    if not situation.reference and situation.base:
        base = (
            "model@reference=own_sibling reference.base.path=BASE"
            if contestant.name in OF_A_SIBLING
            else "reference.path=BASE"
        )
        beside = beside.replace("reference.path=REFERENCE", base)
    if contestant.name == "score":
        reference = (
            "reference.path=REFERENCE" if situation.reference else "reference.path=BASE" if situation.base else ""
        )
        parts = ["nonmember score", model, reference, "data.path=FILE"]
    else:
        parts = [f"nonmember audit method={contestant.name}", contestant.variant, model, "data.path=FILE", beside]
    return " ".join(word for word in parts if word)


def _difference(cells: Mapping[int, MeasuredPower], says: Says, excludes: int) -> float | None:
    clears = says == "non_membership"
    right = [item.share for dose, item in cells.items() if (dose == 0 if clears else 0 < dose <= READINGS)]
    wrong = cells.get(excludes if clears else 0)
    return statistics.fmean(right) - (wrong.share if wrong else 0.0) if right else None


def _rank(option: Option) -> tuple[Any, ...]:
    """What has power first, then what found next to nothing, then what was not measured."""
    value = option.value
    group = 2 if value is None else int(value <= WORTH)
    return (group, -(value or 0.0), *option.cost.in_order())


def _next_things(situation: Situation, possible: list[Option]) -> list[tuple[str, Option]]:
    """What one further thing would allow: the best new method for each, those first that conclude most."""
    now = max((item.value or 0.0 for item in possible if item.concludes), default=0.0)
    has_verdict = any(item.concludes for item in possible)
    found: list[tuple[str, Option]] = []
    for what, changed in _changes(situation):
        known = {(item.contestant.title, item.says) for item in (*possible, *(option for _, option in found))}
        new = [
            item
            for item in (_option(contestant, changed) for contestant in CONTESTANTS)
            if item.concludes and not item.missing and (item.contestant.title, item.says) not in known
        ]
        better = [
            item for item in new if not has_verdict or (item.value or 0.0) > now + WORTH or _says_more(item, possible)
        ]
        if better:
            found.append((what, min(better, key=_rank)))
    if pair := _best_pair(situation):
        found.append(pair)
    return sorted(found, key=lambda item: _rank(item[1])[:2])


def _best_pair(situation: Situation) -> tuple[str, Option] | None:
    """The two further things that together allow most of what neither allows by itself; of references any, since the
    target's own base stands among the single things."""
    best: tuple[str, Option] | None = None
    alone = {what: changed for what, changed in _changes(situation) if changed.base == situation.base}
    for (first, one), second in ((item, other) for item in alone.items() for other in alone if other > item[0]):
        both = dict(_changes(one)).get(second)
        if both is None:  # more access of two kinds
            continue
        known = [item for each in (situation, one, alone[second]) for item in _possible(each)]
        for option in _possible(both):
            value = option.value or 0.0
            better = all(value > (item.value or 0.0) + WORTH for item in known if {*item.says} & {*option.says})
            if better and (best is None or _rank(option) < _rank(best[1])):
                best = (f"{first} and {second}", option)
    return best


def _possible(situation: Situation) -> list[Option]:
    """What could reach a verdict, of which something was measured."""
    options = (_option(contestant, situation) for contestant in CONTESTANTS)
    return [item for item in options if item.concludes and not item.missing and item.value is not None]


def _says_more(option: Option, possible: list[Option]) -> bool:
    """Whether it may say something that nothing at hand may."""
    claims = {claim for item in possible for claim in item.says}
    return not claims.issuperset(option.says)


def _changes(situation: Situation) -> list[tuple[str, Situation]]:
    """One further thing each, in words, and what one would then have."""
    changes = []
    offered = get_args(Offered)
    for access in offered[offered.index(situation.access) + 1 :]:
        changes.append((f"more access to the model ({access})", replace(situation, access=access)))
    kinds: tuple[Heldout, ...] = get_args(Heldout)
    if situation.heldout != kinds[1]:
        changes.append(("unread text of the same draw", replace(situation, heldout=kinds[1])))
    needs = {need.name: need for item in CONTESTANTS for need in (*item.needs, RELATED) if not need.values}
    for name, need in needs.items():
        if not getattr(situation, name) and name not in ("canaries", "holdout", "identifiers"):  # which PLANT names
            further: dict[str, Any] = {name: True}
            changes.append((need.what, replace(situation, **further)))
    return changes


# ------------------------------------------------------------------------------------------------------ as text

PLANT = (
    "Texts that are not yet published: publish a half drawn by a sealed key (nonmember plant holdout), or plant "
    "canaries (nonmember plant). Published ones that hold hashes, UUIDs or keys: method=identifiers. No other test "
    "here has a guaranteed error rate."
)
LOOK_UP = (
    "A target whose training text is open (OLMo, Pythia): look the texts up (docs/lookup.md), which needs no test. "
    "Conversations: data=chat in place of a plain file."
)
NAMED = 3  # methods, and additions, that are listed


def as_text(advice: Advice, *, all: bool = False, width: int | None = None) -> str:
    """The best three in two lines each; or `all`, with costs. width: where lines are broken, commands apart."""
    lines = list(_all(advice) if all else _best(advice))
    if width is not None:
        lines = [part for line in lines for part in _wrapped(line, width)]
    return "\n".join(lines) + "\n"


def _wrapped(line: str, width: int) -> list[str]:
    words = line.lstrip()
    if not words or words.startswith("nonmember "):  # a command stays one line, to be copied
        return [line]
    indent = " " * (len(line) - len(words))
    return textwrap.wrap(words, width, initial_indent=indent, subsequent_indent=f"{indent}   ", break_long_words=False)


def _best(advice: Advice) -> Iterator[str]:
    yield f"You have: {advice.situation.in_words()}."
    yield ""
    if not advice.concluding:
        yield "No method can reach a verdict with this access and data."
    elif (number := len(advice.concluding)) > NAMED:
        yield f"The best of {number} methods that can reach a verdict (all=true lists them, with costs and cautions):"
    for index, option in enumerate(advice.concluding[:NAMED], start=1):
        power = [_power(says, cells, option.contestant) for says in option.says if (cells := option.measured.get(says))]
        title, found = (
            option.contestant.title,
            f"With known truth it did for {', '.join(power[0][:2])}." if power else "Not measured.",
        )
        yield f"{index}. {title[:1].upper()}{title[1:]} could conclude: {_claims(option)}. {found}"
        yield f"   {option.command}"
    yield from _further(advice)
    yield ""
    yield PLANT if not (advice.situation.canaries or advice.situation.holdout) else LOOK_UP


def _further(advice: Advice) -> Iterator[str]:
    """What further things would make possible, the best first."""
    if advice.next_things:
        yield ""
        yield "What further things would make possible:"
        for what, option in advice.next_things[:NAMED]:
            yield f"   {what}: {option.contestant.title} could conclude {_claims(option)} ({_in_short(option)})"


def _all(advice: Advice) -> Iterator[str]:
    situation = advice.situation
    yield f"You have: {situation.in_words()}."
    yield ""
    if advice.concluding:
        yield "Methods that can reach a verdict, best first, with what they found; readings are of the whole set:"
        for index, option in enumerate(advice.concluding, start=1):
            yield ""
            yield from _option_lines(f"{index}. ", option, advice)
    else:
        yield "No method can reach a verdict with this access and data."
    if advice.beside:
        yield ""
        yield "Scores and checks, without a verdict about use:"
        for option in advice.beside:
            yield f"   {option.contestant.title}: {option.contestant.caution}{_ranking(option)}"
            yield f"      {option.command}"
    yield from _further(advice)
    if situation.heldout == "other_date":
        yield ""
        yield (
            "Text of another date differs because of its date, and a comparison may detect that instead of membership, "
            "so no method that compares individual texts is advised. The blind baseline measures how far the date "
            "alone separates the two sets."
        )
    yield from _impossible(advice)
    yield ""
    if not (situation.canaries or situation.holdout):
        yield PLANT
    yield LOOK_UP


def _option_lines(mark: str, option: Option, advice: Advice) -> Iterator[str]:
    situation = advice.situation
    item, indent = option.contestant, " " * len(mark)
    yield f"{mark}{item.title} (method={item.name}) could conclude: {_claims(option)}"
    for says in option.says:
        cells = option.measured.get(says)
        power = ", ".join(_power(says, cells, item)) if cells else "power not measured"
        yield f"{indent}{IN_WORDS[says]}: {power}"
    if cells := next(iter(option.measured.values()), None):
        cell = next(iter(cells.values()))
        yield f"{indent}measured in: {cell.study} ({cell.cell.partition(':')[0]}){_nearest(cell, situation)}"
    yield f"{indent}cost: {_cost(option.cost, situation)}"
    if past := advice.past.get(item.name):
        took = f"{past.seconds / 3600:.1f} hours" if past.seconds > 3600 else f"{past.seconds:.0f} seconds"
        yield f"{indent}earlier runs here: {took}, median of {past.number} audits, artifacts in the store reused"
    yield f"{indent}caution: {item.caution}"
    if item.related and not situation.related:
        yield f"{indent}given related text (method.controls.related), it could also conclude used"
    if "general" in item.requirements.inputs:
        yield f"{indent}also needs: general text that contains nothing of the set"
    yield f"{indent}{option.command}"


def _claims(option: Option) -> str:
    sentences = [IN_WORDS[says] for says in option.says]
    less = option.contestant.excludes
    ends = f" {less} times or more" if less > 1 else ""
    return " or ".join(sentences) + ends


def _power(says: Says, cells: Mapping[int, MeasuredPower], contestant: Contestant) -> list[str]:
    """How many sets got the verdict, by how often they were read, or in how many copies they were planted."""
    parts = []
    for dose, item in cells.items():
        what = "unread" if dose == 0 else f"read {dose} times" if dose > 1 else "read once"
        if contestant.planted and dose:
            what = f"with {dose} copies" if dose > 1 else "with one copy"
        wrong = " (false)" if (dose == 0 if says == "membership" else dose >= contestant.excludes) else ""
        interval = "" if item.low is None or item.high is None else f" [{item.low:.0%}, {item.high:.0%}]"
        parts.append(f"{item.count} of {item.of} {what}{interval}{wrong}")
    return parts


def _nearest(cell: MeasuredPower, situation: Situation) -> str:
    if cell.num_documents is None or 0.5 <= situation.documents / cell.num_documents <= 2:
        return ""
    return f"; no size closer to your {situation.documents:,} texts was measured"


def _ranking(option: Option) -> str:
    cells = option.measured.get("ranking", {})
    if READINGS not in cells:
        return ""
    item = cells[READINGS]
    once = f"{cells[1].count} of {cells[1].of} sets read once and " if 1 in cells else ""
    found = f"{once}{item.count} of {item.of} read {READINGS} times"
    return f" (in {item.study.partition(':')[0]} it detected {found}, at 5% false positives)"


def _in_short(option: Option) -> str:
    return (
        "power not measured"
        if option.value is None
        else f"of 100 audits {max(option.value, 0.0) * 100:.0f} more are right than wrong"
    )


def _cost(cost: Cost, situation: Situation) -> str:
    parts = []
    if cost.controls:
        parts.append(f"{cost.controls} models trained on general text that contains the set")
    if cost.tuned:
        models = f"{cost.tuned} model{'s' * (cost.tuned > 1)}"
        parts.append(f"{models} trained on the set ({cost.trained:,} tokens)")
    if cost.read:
        parts.append(f"at least {cost.read:,} tokens processed")
    if cost.requests:
        parts.append(f"{cost.requests:,} requests, {cost.asked:,} input and {cost.answered:,} output tokens")
        parts.append(_money(cost, situation))
    return "; ".join(parts) or "seconds"


def _money(cost: Cost, situation: Situation) -> str:
    if situation.input_price is None or situation.output_price is None:
        return "price unknown: set input_price and output_price (per million tokens)"
    money = (cost.asked * situation.input_price + cost.answered * situation.output_price) / 1e6
    return f"{money:,.2f} in the currency of the prices"


def _impossible(advice: Advice) -> Iterator[str]:
    if advice.impossible:
        yield ""
        yield "Not possible here, for want of:"
    for option in sorted(advice.impossible, key=lambda option: len(option.missing)):
        yield f"   {option.contestant.title}: {'; '.join(option.missing)}"
