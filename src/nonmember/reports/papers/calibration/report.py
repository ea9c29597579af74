"""The report of the calibration study: how often plain PRISM and calibrated clearance are wrong, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from nonmember.reports.core.grid import Cell
from nonmember.reports.core.numbers import counted
from nonmember.reports.core.report import Filled, Glance, Part, Report, figures
from nonmember.reports.core.worlds import Scope, select
from nonmember.reports.papers.calibration import figures as pictures
from nonmember.reports.papers.calibration import tables as ours
from nonmember.reports.papers.calibration.cells import (
    DECLARED,
    PRISM,
    SWEEPS,
    clearance,
    false_clearances,
    power,
    runs_of,
)


def _figure_of_rates(scope: Scope) -> Filled:
    return figures(pictures.rates(scope))


def _figure_of_quantiles(scope: Scope) -> Filled:
    return figures(pictures.quantiles(scope))


def _figure_of_deltas(scope: Scope) -> Filled:
    return figures(pictures.deltas(scope))


PARTS = (
    Part(
        "errors", "How often each rule is wrong, and how often it finds",
        "False clearances of targets that read what the clearance excludes, and clearances of targets that read "
        "nothing (power), on the half of the libraries that no rule was chosen on and on the other. In brackets exact "
        "95% intervals.",
        fill=ours.errors, made_by=SWEEPS[:-1],
    ),
    Part(
        "rates", "Cleared, by what was read",
        "The further right, the more of the set the target has read. Clearing is right at the left end only; a "
        "clearance of eight readings says nothing about lighter ones.",
        fill=_figure_of_rates, made_by=SWEEPS[:-2],
    ),
    Part(
        "by-reading", "The same as a table, with the rivals",
        "Each cell: how many of the targets with that reading the rule clears. LLM-DI claims the opposite: how many it "
        "finds to have read.",
        fill=ours.by_reading, made_by=SWEEPS,
    ),
    Part(
        "quantiles", "p-values where clearing is false",
        "A test that keeps its level has them uniform or larger: on the diagonal or above. Grey: where 95% of uniform "
        "values would lie, rank by rank.",
        fill=_figure_of_quantiles, made_by=SWEEPS[:-2],
    ),
    Part(
        "deltas", "Where Delta lies",
        "PRISM asks whether Delta is above 0. What a model that read the set shows depends on the set and on the "
        "distillation; less the Delta of controls that read nothing, it falls with the dose.",
        fill=_figure_of_deltas, made_by=SWEEPS[:-2],
    ),
    Part(
        "gates", "Gates and shams",
        "How often each gate refuses a real distilled reference, and how often it catches a sham.",
        fill=ours.gates, made_by=SWEEPS[:-2],
    ),
    Part(
        "deviations", "How far targets lie from their controls",
        "Controls are made of a stand-in, and a target is another model. What it differs by beyond what controls "
        "differ among themselves belongs into the margin.",
        fill=ours.deviations, made_by=SWEEPS[:-2],
    ),
    Part("by-kind", "Kinds of targets", "Power by what the target is.", fill=ours.by_kind, made_by=SWEEPS[:-2]),
    Part("by-set", "Set by set", "False clearances and power of every rule.", fill=ours.by_set, made_by=SWEEPS[:-2]),
    Part("seeds", "What distillation seeds contribute", "The rest is due to documents.", fill=ours.seeds,
         made_by=SWEEPS[:-2]),
)  # fmt: skip

NOTES = (
    "Truth is known in this world: every model was trained here, on text that its recipe names.",
    ours.CLUSTERED,
    "A dash is a cell without a result. It is never a zero.",
)
GLANCE = "On the reported half. The clearance is that of eight readings of the whole set or more."


def cells_of_glance(scope: Scope) -> Iterator[Cell]:
    runs = select(runs_of(scope), half="reported")
    for rule in (PRISM, clearance(DECLARED), clearance(DECLARED, own_base=True)):
        for found in (false_clearances(rule, runs), power(rule, runs)):
            yield counted(found.found, found.of, scope.world.name)


class CalibrationReport(Report):
    methods: ClassVar = ("clearance", "paired_t", "llm_di")
    parts: ClassVar = PARTS
    glance: ClassVar = Glance(
        tuple(f"{rule}: {what}" for rule in ("PRISM", "clearance", "clearance, own base")
              for what in ("false", "power")),
        cells_of_glance, GLANCE,
    )  # fmt: skip
    notes: ClassVar = NOTES
