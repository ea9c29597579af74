"""What gates measure and what each guards against, for pages and terminals: results keep their names and numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nonmember.checks import told_apart
from nonmember.reports.core.formats import DASH, MINUS
from nonmember.results.result import AuditResult

# Gate -> (what is measured, what it guards against). More: docs/gates.md, docs/dose.md.
OF_TRAINING = {
    "ce": (
        "fall of the distilled reference's cross-entropy on the set",
        "A distillation that taught the model nothing, or ruined it.",
    ),
    "kl": (
        "fall of its divergence from the target on the set",
        "A model that moves away from its teacher, which looks like a target that has not read the set.",
    ),
    "kl_third": (
        "rise of that divergence on other text",
        "A learning rate so large that the model is damaged everywhere.",
    ),
    "nll_third": ("rise of its loss on other text", "A distilled reference that forgot what it knew of language."),
}
OF_MODELS = {
    "reference_gain": (
        "lead of the reference over the target on the set, less its lead on other text",
        "A reference that has read the set itself, or was swapped with the target.",
    ),
    "rank_correlation": ("rank correlation of reference and target", "Two models that are one and the same."),
    "distinct": ("documents with different words, as a share of all", "Copies of a few texts that count as many."),
    "spread": (
        "standard deviation of the scores as a share of their mean",
        "Documents whose scores hardly differ: their ranks would be rounding errors.",
    ),
    "target_gain": (
        "lead of the target over the reference on the set, less its lead on other text",
        "A set whose reading shows in the target, though distillation left still more of a trace.",
    ),
    "third_kind": (
        "AUC of telling the set from the third text by layout or words",
        "A third text of another kind, on which the target leads by another amount whatever it has read.",
    ),
    "delta": ("Delta", "A difference that many documents make significant though it is too small to matter."),
    "layout": (
        "AUC of telling the set from other text by layout alone",
        "Texts that were prepared in two ways, so that a model has learnt the format.",
    ),
}
OF_DOSE = {
    "separation": (
        "distance of the heaviest readers from controls that read nothing, in standard deviations",
        "A set that leaves no trace when it is read: any number would be noise.",
    ),
    "order": (
        "rank correlation of what controls have read with what the meter says",
        "A meter that does not rise with what was read.",
    ),
    "left_out": (
        "p-value of so many controls outside the meter's interval, each read by a meter that was not told its dose",
        "Intervals that do not hold what is known to be true.",
    ),
    "fit": (
        "p of the target's being like any model that read the set, or nothing",
        "A target that was changed on these texts, as by unlearning or by noise.",
    ),
    "base": (
        "distance of the target from the controls on other text, as a multiple of the largest among these",
        "A target that was not continued from the controls' base.",
    ),
    "shift": (
        "shift of the target from the controls on other text, in standard deviations",
        "A target that read much more or less other text than the controls.",
    ),
    "weights": (
        "how many times farther, or less far, its weights moved than any control's",
        "A target that was trained at another rate, by an adapter, or on more text than the controls.",
    ),
}
OF_METHOD = {"dose": {**OF_MODELS, **OF_DOSE}}


@dataclass(frozen=True)
class GateRow:
    """what: is measured.   guards: against what; empty where that is not known.   value, bound: as they are shown."""

    name: str
    what: str
    guards: str
    value: str
    side: str
    bound: str
    passed: bool


def gates_of(result: AuditResult) -> Iterator[GateRow]:
    """What had to hold, with the measured number and its bound."""
    found = result.statistics.details.get("gates")
    known = OF_METHOD.get(result.question.method, {**OF_TRAINING, **OF_MODELS})
    for name, gate in found.items() if isinstance(found, Mapping) else ():
        if isinstance(gate, Mapping) and {"value", "bound", "passed"} <= gate.keys():
            what, guards = known.get(name, (name.replace("_", " "), ""))
            yield GateRow(name, what, guards, *_shown(gate), bool(gate["passed"]))


def _shown(gate: Mapping[str, Any]) -> tuple[str, str, str]:
    value, bound = told_apart(_number(gate["value"]), _number(gate["bound"]), ".4g")
    side = "below" if gate.get("upper") else "above"
    return value.replace("-", MINUS).replace("nan", DASH), side, bound.replace("-", MINUS).replace("nan", DASH)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else math.nan
