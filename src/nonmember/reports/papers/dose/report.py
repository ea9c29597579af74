"""The report of the dose study: how often the meter is wrong, what it finds, and how well it counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from nonmember.reports.core.grid import FALSE, Cell
from nonmember.reports.core.report import Filled, Glance, Part, Report, figures
from nonmember.reports.core.worlds import Scope
from nonmember.reports.papers.dose import again, protocol, rivals
from nonmember.reports.papers.dose import figures as pictures
from nonmember.reports.papers.dose import tables as ours
from nonmember.reports.papers.dose.cells import of_own_base, rate, rate_cell
from nonmember.reports.papers.dose.rival_tables import rivals as beside_others
from nonmember.results.load import Run


def _figure_of_power(scope: Scope) -> Filled:
    return figures(pictures.power(scope))


def _figure_of_readings(scope: Scope) -> Filled:
    return figures(pictures.readings(scope))


HALVES = ("reported", "again", "aligned", "chosen")
PARTS = (
    Part(
        "errors", "How often the meter is wrong, and how often it finds",
        "Clearances of targets that have read the set, claims of membership of targets that have not, and what is "
        "found of both, on the half of the libraries that no feature was chosen on and on the other. Targets are "
        "continued from the controls' own base.",
        fill=ours.errors, made_by=HALVES,
    ),
    Part(
        "power", "Verdicts by what was read",
        "At the left end, where nothing was read, every claim of membership is false; everywhere else every clearance "
        "is. Dashed: 5%.",
        fill=_figure_of_power, made_by=("reported",),
    ),
    Part(
        "dose", "How well readings are counted",
        "The meter's estimate against what was planted, and how often its 95% interval holds that.",
        fill=ours.by_dose, made_by=HALVES,
    ),
    Part(
        "readings", "Estimated and true readings",
        "On the reported half. Off the diagonal the meter counts wrongly; above it too much.",
        fill=_figure_of_readings, made_by=("reported",),
    ),
    Part(
        "size", "How many documents it takes",
        "The same audits on fewer documents of the set: the smallest dose that is excluded, and what is cleared.",
        fill=again.sizes, made_by=("reported",),
    ),
    Part(
        "ablation", "What each feature contributes",
        "The same audits read with each feature alone, and with all but one. Several features are read jointly, which "
        "tells related text from reading.",
        fill=again.ablation, made_by=("reported", "chosen"),
    ),
    Part(
        "attacks", "Targets that were changed",
        "What could hide that a set was read, done to targets that read it and to some that did not.",
        fill=ours.attacks, made_by=("attacks", "attacks_again"),
    ),
    Part(
        "rivals", "Beside other methods",
        "The same targets and sets, audited by other methods, and by simple scores. Each gives a statistic that is the "
        "higher, the more was read; compared is what it tells apart at equal errors, whatever its own rule says.",
        fill=beside_others, made_by=rivals.KEYS,
    ),
    Part(
        "stand-in", "Targets of other bases",
        "Controls are made of one base, targets of another.",
        fill=ours.stand_ins, made_by=("stand_in",),
    ),
    Part(
        "protocol", "What was fixed before",
        "Settings, sets and what is to be reported were written down before any audit of the reported half; results "
        "carry the hash of that file.",
        fill=protocol.protocol, made_by=("reported", "again", "aligned", "attacks", "attacks_again", "stand_in"),
    ),
)  # fmt: skip

NOTES = (
    "Truth is known in this world: every model was trained here, on text that its recipe names.",
    ours.CLUSTERED,
    "A dash is a cell without a result. It is never a zero.",
)
GLANCE = "On the reported half, targets of the controls' own base."
AT_A_GLANCE = (
    "false clearance, read once or more",
    "power, without related reading",
    "power, with related reading",
    "false membership, with related reading",
    "membership found, read 1x",
)


def cells_of_glance(scope: Scope) -> Iterator[Cell]:
    runs, asked = of_own_base(scope, "reported"), ours.questions((1,))
    for name in AT_A_GLANCE:
        counted, decides, mark = asked[name]
        yield rate_cell(rate(counted(runs), decides), scope.world.name, mark)


class DoseReport(Report):
    methods: ClassVar = ("dose",)
    parts: ClassVar = PARTS
    glance: ClassVar = Glance(AT_A_GLANCE, cells_of_glance, GLANCE)
    notes: ClassVar = NOTES
    marks: ClassVar = {FALSE: "the truth says otherwise"}

    def scopes(self, runs: Sequence[Run]) -> list[Scope]:
        """With the audits of other methods that are compared with the meter's, and no others of these methods."""
        compared = {sweep for key in rivals.KEYS for sweep in self.sweeps[key]}
        others = [run for run in runs if run.question.sweep in compared and run.question.method in rivals.METHODS]
        return [
            replace(one, runs=(*one.runs, *(run for run in others if run.question.world == one.world.name)))
            for one in super().scopes(runs)
        ]
