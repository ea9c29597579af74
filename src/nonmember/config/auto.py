"""`method=auto`: which methods are run, and the audit of each from the same words with another method."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from nonmember.advice import Advice, Option, Situation, advise
from nonmember.advice.contestants import SAME_DRAW
from nonmember.advice.situation import about_texts, offered
from nonmember.artifacts import Builder
from nonmember.audits.cell import Cell, run_cell
from nonmember.config.choices import options
from nonmember.config.runs import cell_of
from nonmember.config.words import override
from nonmember.methods import Auto, method_named
from nonmember.methods.auto import VERDICTS, AutoDetails, ChosenTest, Found
from nonmember.methods.base import Claim, Method
from nonmember.methods.protocols import TestsBothClaims
from nonmember.records.requirements import Access
from nonmember.reports.core.formats import listed
from nonmember.results.result import PARTS, RESULT, AuditResult
from nonmember.runtime.naming import dotted
from nonmember.stats.blind import INTERPRETABLE_UP_TO

BLIND = "blind"
NAMED = 2  # methods whose wants are told

# Name of a method, further words -> a context with the config of the command by that method (`compose.composed`).
Compose = Callable[[str, Sequence[str]], AbstractContextManager[tuple[DictConfig, Path]]]


@dataclass
class Parts:
    """The audits that an audit by method=auto is made of.   config: of the command."""

    cell: Cell
    config: DictConfig
    compose: Compose
    builder: Builder
    results: dict[str, AuditResult] = field(default_factory=dict)  # by method
    passed_over: dict[str, str] = field(default_factory=dict)  # method -> why it was not run

    @cached_property
    def method(self) -> Auto:
        method = self.cell.audit.method
        assert isinstance(method, Auto)
        if unknown := method.given.keys() - set(options("method")):
            raise ValueError(
                f"method.given has settings of {min(unknown)}, which is no method (nonmember list methods)."
            )
        return method

    @cached_property
    def advice(self) -> Advice:
        """From what is given. Of models for controls only those count that are among the settings of dose."""
        audit, controls = self.cell.audit, self.method.given.get("dose", {}).get("controls", {})
        situation = {
            **about_texts(self.builder.get(audit.suspect)),
            "access": "none" if audit.target is None else offered(self.builder, audit.target),
            "reference": audit.reference is not None,
            "base": "base" in controls,
            "stand_in": "stand_in" in controls,
            "related": "related" in controls,
            "heldout": self.method.heldout if audit.heldout is not None else "none",
            "unseen": audit.unseen is not None,
            "out_models": bool(audit.out_models),
            "order": bool(self.config.data.get("in_public_order", False)),
            "follows": self.method.follows,
        }
        return advise(Situation.of(situation))

    def candidates(self, claim: Claim) -> list[Option]:
        """Those that may conclude it, best first; what was run for the other claim before all."""
        level = self.advice.situation.level
        # Of a target that gives log-probabilities nothing is asked unless it follows instructions: writing takes hours.
        may_ask = self.method.follows or level is None or level < Access.PROMPT_LOGPROBS
        found = [
            item
            for item in self.advice.concluding
            if claim in item.says and (may_ask or not item.contestant.requirements.questions)
        ]
        return sorted(found, key=lambda item: item.name not in self.results)

    def part(self, name: str, variant: str = "") -> Cell:
        """Raises ValueError where its question cannot be put."""
        given = dotted(self.method.given.get(name, {}), "method")
        words = [*variant.split(), *(override(*item) for item in given)]
        with self.compose(name, words) as (config, _):
            cell = cell_of(config, self.cell.folder / PARTS / name)
        return replace(cell, audit=replace(cell.audit, swept=self.cell.audit.swept))

    def foreseen(self) -> list[Cell]:
        """What will be run, as far as that is known before anything is."""
        found = {BLIND: self.part(BLIND)} if self.cell.audit.heldout is not None else {}
        for claim in VERDICTS:
            for option in self.candidates(claim):
                with contextlib.suppress(ValueError):
                    found.setdefault(option.name, self.part(option.name, option.contestant.variant))
                    break
        return list(found.values())

    def run(self) -> AuditResult:
        """Each part in a folder of its own, and the result that names both tests in the cell's."""
        if self.cell.seal is not None:
            raise ValueError("A seal covers the question of one method, but method=auto runs several. Seal each one.")
        blind = self._run(BLIND) if self.cell.audit.heldout is not None else None
        auc = None if blind is None else blind.statistics.value
        told_apart = ""
        if auc is not None and auc > INTERPRETABLE_UP_TO:
            told_apart = (
                f"Text alone tells the suspect from the held-out set: AUC {auc:.3f}, above {INTERPRETABLE_UP_TO}."
            )
        chosen = {claim: result for claim in VERDICTS if (result := self._first(claim, told_apart)) is not None}
        details = AutoDetails(
            tests={claim: _as_test(claim, result) for claim, result in chosen.items()},
            lacking={claim: self._lacking(claim) for claim in VERDICTS if claim not in chosen},
            passed_over=self.passed_over,
            largest_blind_auc=auc,
        )
        warnings = [f"{name}: {text}" for name, item in self.results.items() for text in item.verdict.warnings]
        claims = {name: item.verdict.allowed_claim for name, item in self.results.items()}
        level = self.advice.situation.level
        scores = not chosen and level is not None and level >= Access.PROMPT_LOGPROBS
        method = replace(self.method, found=Found(details, claims, tuple(warnings), scores))
        result = run_cell(replace(self.cell, audit=replace(self.cell.audit, method=method)), self.builder)
        made = [Counter(item.provenance.made) for item in (result, *self.results.values())]
        return result.that_made({name: sum(item[name] for item in made) for name in result.provenance.made})

    def _first(self, claim: Claim, told_apart: str) -> AuditResult | None:
        for option in self.candidates(claim):
            if told_apart and SAME_DRAW in option.contestant.needs:
                self.passed_over[option.name] = told_apart
            elif result := self.results.get(option.name) or self._run(option.name, option.contestant.variant):
                return result
        return None

    def _run(self, name: str, variant: str = "") -> AuditResult | None:
        """What one method cannot work with does not hinder another."""
        try:
            cell = self.part(name, variant)
            cell.folder.mkdir(parents=True, exist_ok=True)
            self.results[name] = run_cell(cell, self.builder)
        except ValueError as error:
            self.passed_over.setdefault(name, str(error))
        return self.results.get(name)

    def _lacking(self, claim: Claim) -> str:
        reasons = [self.passed_over[item.name] for item in self.candidates(claim) if item.name in self.passed_over]
        if reasons:
            return " ".join(dict.fromkeys(reasons))
        out = ("canary", "holdout", "identifiers")  # too late for published documents, or not of any document
        others = [item for item in self.advice.impossible if claim in item.says and item.name not in out]
        needs: dict[str, list[str]] = {}
        for item in sorted(others, key=lambda item: len(item.missing))[:NAMED]:
            needs.setdefault(listed(item.missing), []).append(item.contestant.title)
        found = [(f"either {' or '.join(names)}" if names[1:] else names[0], what) for what, names in needs.items()]
        return "; ".join(f"{name} needs {what}" for name, what in found)


def _as_test(claim: Claim, result: AuditResult) -> ChosenTest:
    asked, statistics = result.question, result.statistics
    p_values = p_values_of(method_named(asked.method), asked.settings, statistics.p_value, statistics.details)
    return {
        "method": asked.method,
        "p_value": p_values.get(claim),
        "p_error": statistics.p_error,
        "verdict": result.verdict.decision,
        "null_hypothesis": asked.null_hypothesis,
        "guarantee": result.answer.guarantee,
        "because": result.answer.because[0] if result.answer.because else "",
        "next": result.answer.next,
        "result": f"{PARTS}/{asked.method}/{RESULT}",
        "audit": result.provenance.keys["audit"],
    }


def p_values_of(
    method: type[Method], settings: Mapping[str, Any], p_value: float | None, details: Mapping[str, Any]
) -> Mapping[Claim, float]:
    """The p-values of a result by what they speak for, one-sided; empty where there is no test."""
    if isinstance(method, TestsBothClaims):
        return method.p_values(p_value, details)
    claim, _ = method.hypothesis(settings)
    p_value = details.get("p_value_greater", p_value)  # where that of the result is two-sided
    return {} if claim is None or p_value is None else {claim: p_value}
