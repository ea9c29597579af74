"""The audits of the calibration study as decisions: what each target has read, and which rules clear it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonmember.records.exposure import Exposure
from nonmember.reports.core.numbers import number_in
from nonmember.reports.core.worlds import Scope
from nonmember.results.load import Run
from nonmember.stats.margins import prediction_p_value

SWEEPS = ("study", "more", "own", "large", "rivals", "llm_di")  # keys of conf/report/calibration.yaml
EXCLUDED = tuple(Exposure(1.0, exposures) for exposures in (4, 8, 12))  # lightest readings that a rule may exclude
LIGHTEST = Exposure(0.01, 1)
DECLARED = Exposure(1.0, 8)  # what is excluded where one rule is shown; that of conf/method/clearance.yaml
UNTOUCHED = "0x"
SEPARATION = "separation"  # the gate that depends on what is excluded


def runs_of(scope: Scope) -> list[Run]:
    """Those of the study; audits under attack, say, are of the same world and no part of it."""
    return [run for sweep in SWEEPS for run in scope.of(sweep)]


def reading_of(run: Run) -> Exposure:
    """What the target has read of the audited set, as the study planted it."""
    return Exposure(float(run.get("share")), int(run.get("exposures")))


def size_of(run: Run) -> str:
    """Sets of the study are large or small."""
    return "n = 500" if run.statistics.num_documents > 300 else "n = 100"


def point_of(run: Run, reading: Exposure) -> dict[str, Any]:
    """Of the audit's detection curve; empty where it has none."""
    curve = run.statistics.details.get("detection")
    points: Sequence[dict[str, Any]] = curve["points"] if isinstance(curve, dict) else ()
    wanted = (reading.share, reading.exposures)
    return next((point for point in points if (point["share"], point["exposures"]) == wanted), {})


def p_at_least(run: Run, reading: Exposure) -> float | None:
    """Of the hypothesis that the target is one more control that read so or more."""
    return number_in(point_of(run, reading), "p_at_least")


def prism_p(run: Run) -> float | None:
    """Of PRISM's own test, which stands beside every clearance, with the first of its distilled references."""
    return number_in(run.statistics.details, "prism", "p_value")


@dataclass(frozen=True)
class DecisionRule:
    """What a method makes of an audit."""

    name: str
    lightest: Exposure  # a clearance says that the target has not read so, or more; clearing one that has is false
    decides: Callable[[Run], bool | None]  # True, False, or None where it has no say on this result
    refuses: Callable[[Run], bool] = lambda run: False  # whether it calls the audit invalid

    def is_false_for(self, reading: Exposure) -> bool:
        return reading.exposures > 0 and reading.at_least(self.lightest)


def refused(run: Run, lightest: Exposure) -> bool:
    """Whether an audit that excludes this reading would be invalid: by a gate, or by a sham that passed them."""
    gates, shams = run.statistics.details.get("gates"), run.statistics.details.get("shams")
    if not isinstance(gates, Mapping) or not isinstance(shams, Mapping):
        return run.verdict.decision == "invalid"
    by_gate = any(not item["passed"] for name, item in gates.items() if name != SEPARATION)
    by_controls = SEPARATION in gates and _separation(run, lightest) <= gates[SEPARATION]["bound"]
    return by_gate or by_controls or any(not item["refused"] for item in shams.values())


def _separation(run: Run, lightest: Exposure) -> float:
    """How far controls with this reading or a heavier one lie below those that read nothing (methods/gates.py)."""
    controls = run.statistics.details["control_deltas"]
    assert isinstance(controls, Mapping)
    curve: Any = run.statistics.details["detection"]
    excluded = [
        item["mean"] for item in curve["points"] if Exposure(item["share"], int(item["exposures"])).at_least(lightest)
    ]
    return float(np.mean(controls[UNTOUCHED])) - max(excluded)


def shares_base(run: Run) -> bool:
    """Whether the target was continued from the very model that the controls are made of."""
    return root_of(run) in {control.root for control in run.question.controls.values()}


def root_of(run: Run) -> str:
    """Label of the model that a target was continued from."""
    return str(run.question.models["target"].root)


def clearance(lightest: Exposure, *, own_base: bool = False) -> DecisionRule:
    """Calibrated clearance at the audit's alpha, its gates kept, with this reading as the one to be excluded; of
    targets that share their base model with the controls, or of those that do not."""

    def decides(run: Run) -> bool | None:
        p = p_at_least(run, lightest)
        if run.question.method != "clearance" or p is None or shares_base(run) is not own_base:
            return None
        return not refused(run, lightest) and p < run.question.alpha

    name = f"clearance of {lightest.label}" + (", own base" if own_base else "")
    return DecisionRule(name, lightest, decides, lambda run: refused(run, lightest))


def _prism(run: Run) -> bool | None:
    p = prism_p(run)
    return None if run.question.method != "clearance" or p is None else p < run.question.alpha


def _of_method(method: str) -> Callable[[Run], bool | None]:
    def decides(run: Run) -> bool | None:
        p = run.statistics.p_value
        return None if run.question.method != method or p is None else p < run.question.alpha

    return decides


PRISM = DecisionRule("PRISM", LIGHTEST, _prism)
PAIRED_T = DecisionRule("paired t", LIGHTEST, _of_method("paired_t"))
DECLARED_RULES = (clearance(DECLARED), clearance(DECLARED, own_base=True))
RULES = (PRISM, PAIRED_T, *map(clearance, EXCLUDED), *(clearance(reading, own_base=True) for reading in EXCLUDED))
FEWER_RULES = (PRISM, PAIRED_T, *DECLARED_RULES)
FINDS = DecisionRule("LLM-DI finds membership", LIGHTEST, _of_method("llm_di"))


@dataclass(frozen=True)
class RuleCount:
    """How many of some audits a rule decides so."""

    found: int
    runs: Sequence[Run]


def count(rule: DecisionRule, runs: Iterable[Run]) -> RuleCount:
    """Of the audits that the rule has a say on."""
    decided = [(run, decision) for run in runs if (decision := rule.decides(run)) is not None]
    return RuleCount(sum(decision for _, decision in decided), [run for run, _ in decided])


def false_clearances(rule: DecisionRule, runs: Iterable[Run]) -> RuleCount:
    return count(rule, [run for run in runs if rule.is_false_for(reading_of(run))])


def power(rule: DecisionRule, runs: Iterable[Run]) -> RuleCount:
    """Of targets that have read nothing of the set."""
    return count(rule, [run for run in runs if not reading_of(run).exposures])


def invalid(rule: DecisionRule, runs: Iterable[Run]) -> RuleCount:
    """Of targets that have read nothing: how many audits the rule gives up."""
    of = power(rule, runs).runs
    return RuleCount(sum(map(rule.refuses, of)), of)


@dataclass(frozen=True)
class Deviation:
    run: Run
    value: float  # Delta of a target less the mean of the controls with its reading
    expected: float  # variance of that, were the target one more of these controls


def deviation(run: Run) -> Deviation | None:
    controls = run.statistics.details.get("control_deltas")
    margins = run.statistics.details.get("margins")
    delta = run.statistics.value
    if not isinstance(controls, Mapping) or not isinstance(margins, Mapping) or delta is None:
        return None
    own = controls.get(reading_of(run).label, ())
    spread = next((number_in(item, "spread") for item in margins.values()), None)
    if not own or spread is None:
        return None
    return Deviation(run, delta - float(np.mean(own)), spread**2 * (1 + 1 / len(own)))


def extra_deviation(deviations: Sequence[Deviation]) -> tuple[float, int]:
    """Standard deviation of targets about controls of their reading, beyond what controls differ among themselves, and
    its degrees of freedom: the number of sets, since targets of one set share its controls and often their base."""
    beyond = float(np.mean([item.value**2 - item.expected for item in deviations]))
    return math.sqrt(max(0.0, beyond)), len({item.run.question.corpus for item in deviations})


def judged_by_one_another(run: Run) -> list[float]:
    """p of each control that read something, by the others: that it is one more of those with its reading. Uniform
    where seeds of one base model are all that targets and controls differ by."""
    controls: Any = run.statistics.details.get("control_deltas") or {}
    readers = {label: tuple(values) for label, values in controls.items() if label != UNTOUCHED}
    found = []
    for label, values in readers.items():
        for index, value in enumerate(values):
            others = {**readers, label: values[:index] + values[index + 1 :]}
            if others[label] and max(map(len, others.values())) > 1:
                found.append(prediction_p_value(value, others, label))
    return found
