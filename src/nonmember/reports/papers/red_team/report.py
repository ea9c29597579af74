"""The report of the red team: what defenders could do to an audit, and which methods it fools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from nonmember.reports.core.grid import Cell
from nonmember.reports.core.numbers import counted
from nonmember.reports.core.report import Glance, Part, Report, figures
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.papers.red_team import tables as ours
from nonmember.reports.papers.red_team.figures import grid

# What is done in each attack, by its name in the results.
DEEDS = {
    "sham": "Sham: the target's distilled reference is replaced by a model trained on other text by the same recipe, "
    "without a teacher (lambda 0).",
    "damaged": "Damage: the distilled reference has Gaussian noise on every weight tensor, of "
    "that tensor's standard deviation.",
    "worn": "A little damage: the same at 0.3 of that standard deviation.",
    "noise": "Noise: the endpoint adds noise to every log-probability of the target, the same for repeated requests. "
    "It affects scores, gates and distillation.",
    "rounding": "Rounding: the endpoint rounds the target's log-probabilities to whole nats, with the same effects.",
    "unread_part": "The unread part: a quarter of the set was read, and the other documents are presented as the set. "
    "No statistic can detect that, so the auditor has to draw the documents.",
    "unlikely": "Selected, unlikely: the half of the set with the lowest scores under the target, minus those under "
    "the reference.",
    "agreeing": "Selected, agreeing: the half of the set whose ranks under target and reference differ least.",
    "near_duplicates": "Near duplicates: the target has read the documents with a fifth of their words replaced, not "
    "the documents themselves.",
    "paraphrases": "Paraphrases: the target has read paraphrases of the documents written by a model, not the "
    "documents themselves.",
    "reader": "A reference that read the set: four times.",
    "wrapped": "Another layout: the set is given with broken and indented lines, as no other text is. Controls read it "
    "in this layout, the target in that of other text.",
    "weak": "A weak reference: a very small model that has read little.",
}

PARTS = (
    Part(
        "verdicts", "Attack by method",
        "The outcome of each method under each attack, for a target that has read the set 12 times (or something "
        "in its place) and for one that has not. Fooled: a claim against the truth. Refused: `invalid`, a gate "
        "failed. Right: the correct claim; or no claim about a set that was read, since none of these methods can"
        " show membership. No power: no claim about a set that was not read. The paired t-test never claims "
        "anything; shown is the decision that its p-value implies.",
        fill=lambda scope: figures(grid(scope)),
        made_by=ours.SWEEPS, notes=tuple(DEEDS.values()),
    ),
    Part(
        "numbers", "Delta, margin and p",
        "PRISM claims non-membership where p is below .05; clearance where Delta lies "
        "above the margin, p is below .05 and no gate has failed. The first rows are without an attack.",
        fill=ours.numbers, made_by=ours.SWEEPS,
    ),
    Part(
        "gates", "Gates that failed",
        "For every refused audit the gates that failed, and the outcome without gates, which tells whether they were "
        "needed.",
        fill=ours.gates, made_by=ours.SWEEPS,
    ),
)  # fmt: skip

NOTES = (
    "Which models have read what is known by construction. A target that has read near duplicates, paraphrases or a "
    "part of the set counts as one that has read it, whichever documents are audited.",
    "Other attacks, or these at other strengths, may do better: each was tried at one strength, stated in "
    "conf/presets.",
    "A dash is a cell without a result. It is never a zero.",
)

# ---------------------------------------------------------------------------------------- at a glance

GLANCE = "Of audits under attack. Read: the target has read the set, or something in its place; not read: it has not."


def cells_of_glance(scope: Scope) -> Iterator[Cell]:
    attacked = [run for runs in ours.attacks(scope).values() for run in runs if run.get("attack") != "none"]
    for method, truth, word in COUNTED:
        of = select(attacked, method=method, truth=truth)
        yield counted(sum(ours.outcome(run.result) == word for run in of), len(of), scope.world.name)


COUNTED = (
    ("prism", "member", ours.FOOLED), ("clearance", "member", ours.FOOLED), ("clearance", "member", ours.REFUSED),
    ("prism", "non_member", ours.RIGHT), ("clearance", "non_member", ours.RIGHT),
)  # fmt: skip


class RedTeamReport(Report):
    """names: attacks and methods, by their keys in the results."""

    methods: ClassVar = ("prism", "clearance", "paired_t")
    parts: ClassVar = PARTS
    glance: ClassVar = Glance(
        ("read: PRISM fooled", "clearance fooled", "clearance refused", "not read: PRISM clears", "clearance clears"),
        cells_of_glance, GLANCE,
    )  # fmt: skip
    notes: ClassVar = NOTES
