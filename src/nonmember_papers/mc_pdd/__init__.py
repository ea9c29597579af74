"""What of MC-PDD's report is computed: which documents a line of the figure of contamination is of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import ClassVar

from nonmember.reports.core.worlds import Scope
from nonmember.reports.declared.facts import parts_of
from nonmember.reports.declared.plots import Plot
from nonmember.reports.declared.report import DeclaredReport, Filled, tables
from nonmember.results.load import Run

EPOCHS = Plot(
    rows=["domain?", "each"],
    x="epochs",
    cell="{details.each.hit_rate:.2%}",
    numbers=["rate, %"],
    title="Hit rates by epochs of tuning",
    labels=("epochs", "hit rate"),
    alt="Share of masked words among the ten candidates against epochs of tuning on unread documents: in these, in "
    "those read before and in clean ones; a panel per set.",
    sweep="contamination",
    corner="set, documents",
    names={"each": {"read": "read before", "unread_1": "tuned on", "clean": "clean"}},
    panels=True,
)


def by_epochs(scope: Scope) -> Filled:
    """Clean documents, which all results of a model share, are a line of their own."""
    runs = scope.of("contamination")
    parts = [part for run in runs for part in parts_of(run, {run.get("candidate"): "suspect", "clean": "heldout"})]
    return tables(EPOCHS.figure(replace(scope, runs=tuple(parts))))


class McPddReport(DeclaredReport):
    special: ClassVar = {"contamination": by_epochs}

    def scopes(self, runs: Sequence[Run]) -> list[Scope]:
        """Of levels, which many studies measure, those of the paper's sweeps."""
        own = set(chain(*self.sweeps.values()))
        return super().scopes([run for run in runs if run.question.method != "levels" or run.question.sweep in own])
