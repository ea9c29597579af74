"""The parts of `method=auto`: which methods, and the audit of each from the same words with another method."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from nonmember.advice import advise
from nonmember.advice.contestants import CONTESTANTS, SAME_DRAW, Cost
from nonmember.advice.situation import Situation, about_texts, offered
from nonmember.artifacts import Builder
from nonmember.audits.joined import JoinedPart
from nonmember.audits.question import Audit
from nonmember.config.choices import options
from nonmember.config.runs import cell_of
from nonmember.config.words import override
from nonmember.methods import Auto
from nonmember.records.requirements import Access
from nonmember.results.result import PARTS

AUTO = ("nonmember.methods.Auto", "nonmember.methods.auto.Auto")
BLIND = "blind"

Compose = Callable[[str, Sequence[str]], AbstractContextManager[tuple[DictConfig, Path]]]


def is_auto(config: DictConfig) -> bool:
    return config.method._target_ in AUTO


def overrides_of_part(overrides: Sequence[str], method: str, more: Sequence[str]) -> list[str]:
    """The command's words with another method, and without what was said of this one."""
    return [*(word for word in overrides if not _is_about_method(word)), f"method={method}", *more]


def settings_as_overrides(settings: Mapping[str, Any], prefix: str = "method") -> Iterator[str]:
    """Nested settings as overrides: {"controls": {"seed": 1}} as method.controls.seed=1."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from settings_as_overrides(value, f"{prefix}.{key}")
        else:
            yield override(f"{prefix}.{key}", value)


def _is_about_method(word: str) -> bool:
    key = word.lstrip("+~").partition("=")[0]
    return key == "method" or key.startswith("method.") or "@method." in key


def parts_of(asked: tuple[DictConfig, Audit], folder: Path, compose: Compose, builder: Builder) -> list[JoinedPart]:
    """The methods that are advised for what the config gives, or those it names, cheapest first.

    asked: `config.given.given` of the config, found within its block.

    compose: name of a method, further words -> a context with the config of the command (`compose.composed`).
    """
    config, audit = asked
    method = audit.method
    assert isinstance(method, Auto)
    if unknown := method.given.keys() - set(options("method")):
        raise ValueError(f"method.given has settings of {min(unknown)}, which is no method (nonmember list methods).")
    situation = Situation.of(_situation(config, audit, builder))
    ranked = [item.contestant for item in advise(situation).concluding]
    advised = {item.name: item for item in reversed(ranked)}  # the best of each method
    contestants = {item.name: item for item in reversed(CONTESTANTS)} | advised
    # Of a target that gives log-probabilities nothing is asked unless it follows instructions: writing takes hours.
    may_ask = method.follows or situation.level is None or situation.level < Access.PROMPT_LOGPROBS
    names = list(method.methods or (name for name in advised if may_ask or not advised[name].requirements.questions))
    costs = {name: contestants[name].cost(situation) for name in names if name in contestants}
    names.sort(key=lambda name: costs[name].in_order() if name in costs else (0,))
    compares = {name for name in names if name in contestants and SAME_DRAW in contestants[name].needs}
    if compares and BLIND not in names:
        names.insert(0, BLIND)
    parts = []
    for name in names:
        cells, reason = [], ""
        for variant in dict.fromkeys(item.variant for item in ranked if item.name == name) or ("",):
            try:
                with compose(name, [*variant.split(), *settings_as_overrides(method.given.get(name, {}))]) as (own, _):
                    cells.append(cell_of(own, folder / PARTS / name))
            except ValueError as error:  # an incomplete question among them
                reason = reason or str(error)
        parts.append(JoinedPart(name, *_cost_of(costs.get(name)), name in compares, cells, "" if cells else reason))
    return parts


def _cost_of(cost: Cost | None) -> tuple[int, int, int]:
    return (0, 0, 0) if cost is None else (cost.models, cost.tokens, cost.requests)


def _situation(config: DictConfig, audit: Any, builder: Builder) -> dict[str, Any]:
    """What is there. Bases and stand-ins are taken to be; a method that lacks them is left out with its reason."""
    heldout = audit.method.heldout if config.data.get("heldout") else "none"
    return {
        **about_texts(builder.get(audit.suspect)),
        "access": offered(builder, audit.target),
        "reference": config.get("reference") is not None,
        "base": True,
        "stand_in": True,
        "heldout": heldout,
        "unseen": config.data.get("unseen") is not None,
        "order": bool(config.data.get("in_public_order", False)),
        "follows": audit.method.follows,
    }
