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
    "sham": "A sham: for the target's distilled reference the audit is given one that was trained on other text, and "
    "without the target for a teacher.",
    "damaged": "Damage: it is given the real one with as much noise on its weights as they vary.",
    "worn": "A little damage: the same with so little noise, 0.3 of that, that it may pass for the real one.",
    "noise": "Noise: whoever serves the target puts noise on every log-probability, always the same for the same "
    "question; scores, gates and the distillation all see it.",
    "rounding": "Rounding: log-probabilities are served in whole nats, to all of these too.",
    "unread_part": "The unread part: a quarter of the set was read, and the other documents are given for the set. "
    "That they were not read is true; that they are the set is not, and no number can tell. Who audits has to draw the "
    "documents.",
    "unlikely": "Picked, unlikely: of the set the half is given whose documents the target likes least compared with "
    "the reference.",
    "agreeing": "Picked, agreeing: the half whose ranks under target and reference differ least.",
    "near_duplicates": "Near duplicates: the target has read the documents with a fifth of their words exchanged, and "
    "not the documents.",
    "paraphrases": "Paraphrases: the target has read what a model made of the documents, and not the documents.",
    "reader": "A reader for a reference: the reference has itself read the set, four times.",
    "wrapped": "Another layout: the set is given with broken and indented lines, which nothing else has; controls read "
    "it so, the target has read it as general text is.",
    "weak": "A weak reference: a very small model that has read little.",
}

PARTS = (
    Part(
        "verdicts", "Attack by method",
        "What each method makes of each attack, on a target that has read the set 12 times (or something in its place) "
        "and on one that has not. Fooled: a claim against the truth. Refused: `invalid`, a gate failed. Right: the "
        "correct claim, and silence about a set that was read, since none of these methods convicts. No power: silence "
        "about a set that was not read. The paired t-test never claims anything; its word is what its p-value would "
        "say.",
        fill=lambda scope: figures(grid(scope)),
        made_by=ours.SWEEPS, notes=tuple(DEEDS.values()),
    ),
    Part(
        "numbers", "Delta, margin and p",
        "The numbers behind the words. PRISM claims non-membership where p is below .05; clearance where Delta lies "
        "above the margin, p is below .05 and no gate has failed. The first rows are without an attack.",
        fill=ours.numbers, made_by=ours.SWEEPS,
    ),
    Part(
        "gates", "What stopped it",
        "For every refused audit the gates that failed, and what its numbers alone would have come to: whether the "
        "gate was needed.",
        fill=ours.gates, made_by=ours.SWEEPS,
    ),
)  # fmt: skip

NOTES = (
    "Which models have read what is known by construction. A target that has read near duplicates, paraphrases or a "
    "part of the set counts as one that has read it, whatever the documents that are handed over.",
    "An attack that is not here may do better, and these may do better in other hands: each was tried at one strength, "
    "stated in conf/presets.",
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
