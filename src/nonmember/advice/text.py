"""Advice as text, for the terminal and for pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nonmember.advice.advise import READINGS, Advice, Option
from nonmember.advice.contestants import Cost
from nonmember.advice.measured import Measured, Says
from nonmember.advice.situation import Situation

CLAIMS = {"non_membership": "not used", "membership": "used"}
NAMED = 3  # additions that are listed
LACKING = 2  # a method that lacks more is only named


def as_text(advice: Advice) -> str:
    return "\n".join(_lines(advice)) + "\n"


def _lines(advice: Advice) -> Iterator[str]:
    situation = advice.situation
    yield f"You have: {situation.in_words()}."
    yield ""
    if advice.concluding:
        yield "Methods that can reach a verdict, best first (power minus false verdicts; readings of the whole set):"
        for place, option in enumerate(advice.concluding, start=1):
            yield ""
            yield from _option(f"{place}. ", option, advice)
    else:
        yield "No method can reach a verdict with this access and data."
    if advice.beside:
        yield ""
        yield "Scores and checks, without a verdict about use:"
        for option in advice.beside:
            yield f"   {option.contestant.title}: {option.contestant.caution}{_ranking(option)}"
            yield f"      {option.command}"
    if advice.next_things:
        yield ""
        yield "What one addition would make possible:"
        for what, option in advice.next_things[:NAMED]:
            yield f"   {what}: {option.contestant.title} could conclude {_claims(option)} ({_in_short(option)})"
    if situation.heldout == "other_date":
        yield ""
        yield (
            "Text of another date differs because of its date, and a comparison may detect that instead of membership, "
            "so no method that compares individual texts is advised. The blind baseline measures how far the date "
            "alone separates the two sets."
        )
    yield from _impossible(advice)


def _option(mark: str, option: Option, advice: Advice) -> Iterator[str]:
    situation = advice.situation
    one, indent = option.contestant, " " * len(mark)
    yield f"{mark}{one.title} (method={one.name}) could conclude: {_claims(option)}"
    for says in option.says:
        cells = option.measured.get(says)
        power = _power(says, cells, one.excludes) if cells else "power not measured"
        yield f"{indent}{CLAIMS[says]}: {power}"
    if cells := next(iter(option.measured.values()), None):
        cell = next(iter(cells.values()))
        yield f"{indent}measured in: {cell.study} ({cell.cell.partition(':')[0]}){_nearest(cell, situation)}"
    yield f"{indent}cost: {_cost(option.cost, situation)}"
    if past := advice.past.get(one.name):
        took = f"{past.seconds / 3600:.1f} hours" if past.seconds > 3600 else f"{past.seconds:.0f} seconds"
        yield f"{indent}earlier runs here: {took}, median of {past.number} audits, artifacts in the store reused"
    yield f"{indent}caution: {one.caution}"
    if one.related and not situation.related:
        yield f"{indent}given related text (method.controls.related), it could also conclude used"
    if one.general:
        yield f"{indent}also needs: general text that contains nothing of the set"
    yield f"{indent}{option.command}"


def _claims(option: Option) -> str:
    said = [CLAIMS[says] for says in option.says]
    less = option.contestant.excludes
    ends = f" {less} times or more" if less > 1 else ""
    return " or ".join(said) + ends


def _power(says: Says, cells: Mapping[int, Measured], excludes: int) -> str:
    """How many sets got the verdict, by how often they were read."""
    parts = []
    for dose, one in cells.items():
        what = "unread" if dose == 0 else f"read {dose} times" if dose > 1 else "read once"
        wrong = " (false)" if (dose == 0 if says == "membership" else dose >= excludes) else ""
        parts.append(f"{one.count} of {one.of} {what}{_interval(one)}{wrong}")
    return ", ".join(parts)


def _interval(one: Measured) -> str:
    return "" if one.low is None or one.high is None else f" [{one.low:.0%}, {one.high:.0%}]"


def _nearest(cell: Measured, situation: Situation) -> str:
    if 0.5 <= situation.documents / cell.num_documents <= 2:
        return ""
    return f"; no size closer to your {situation.documents:,} texts was measured"


def _ranking(option: Option) -> str:
    cells = option.measured.get("ranking", {})
    if READINGS not in cells:
        return ""
    one = cells[READINGS]
    once = f"{cells[1].count} of {cells[1].of} sets read once and " if 1 in cells else ""
    found = f"{once}{one.count} of {one.of} read {READINGS} times"
    return f" (in {one.study.partition(':')[0]} it detected {found}, at 5% false positives)"


def _in_short(option: Option) -> str:
    return "power not measured" if option.value is None else f"power minus false verdicts {max(option.value, 0.0):.0%}"


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
    near = [option for option in advice.impossible if len(option.missing) <= LACKING]
    if near:
        yield ""
        yield "Not possible here, with one or two things missing:"
    for option in near:
        yield f"   {option.contestant.title}: {'; '.join(option.missing)}"
    if further := [option.contestant.title for option in advice.impossible if len(option.missing) > LACKING]:
        yield f"   with more than two missing: {', '.join(further)}"
