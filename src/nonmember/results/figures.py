"""The pictures of one audit, for its W&B run. Drawn on figures of their own, without pyplot's global state."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from nonmember.records import FloatArray
from nonmember.records.groups import SUSPECT
from nonmember.results.result import AuditResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it reports where it keeps its list of fonts

BLUE, GREY, RED = "#0072b2", "#999999", "#d55e00"
BINS = 60


def of_distribution(result: AuditResult, distribution: FloatArray) -> Figure:
    """The resampled statistic with its value, its interval and zero."""
    figure = _figure(5.6, 3.4)
    axes = figure.subplots()
    sign = "+" if result.statistics.is_signed else ""
    axes.hist(distribution, bins=BINS, color=BLUE, alpha=0.55)
    axes.axvline(0.0, color="black", linewidth=1, linestyle="--", label="0")
    if result.statistics.ci_low is not None and result.statistics.ci_high is not None:
        label = f"interval [{result.statistics.ci_low:{sign}.3f}, {result.statistics.ci_high:{sign}.3f}]"
        axes.axvspan(
            result.statistics.ci_low, result.statistics.ci_high, color=GREY, alpha=0.25, linewidth=0, label=label
        )
    if result.statistics.value is not None:
        axes.axvline(
            result.statistics.value, color=RED, linewidth=1.5, label=f"statistic {result.statistics.value:{sign}.3f}"
        )
    axes.set_xlabel("statistic of the resamples")
    axes.set_ylabel("resamples")
    p_value = "undefined" if result.statistics.p_value is None else f"{result.statistics.p_value:.4g}"
    axes.set_title(
        f"{result.question.subject}\n{result.question.method}, p = {p_value}: {result.verdict.decision}", fontsize=9
    )
    axes.legend(fontsize=8, frameon=False)
    return figure


def has_ranks(columns: Mapping[str, Any]) -> bool:
    """Whether there are scores under the target and another model to be compared with."""
    return "target" in columns and ("reference" in columns or "distilled" in columns)


def of_ranks(result: AuditResult, columns: Mapping[str, Sequence[float | None]]) -> Figure:
    """Rank of each suspect document under the target against that under the reference and the distilled reference."""
    others = [name for name in ("reference", "distilled") if name in columns]
    correlations = {
        "reference": result.statistics.details.get("rho_reference_target"),
        "distilled": result.statistics.details.get("rho_distilled_target"),
    }
    figure = _figure(3.4 * len(others), 3.7)
    for axes, other in zip(np.atleast_1d(figure.subplots(1, len(others))), others, strict=True):
        target, compared = (np.array(columns[name], dtype=np.float64) for name in ("target", other))
        kept = np.isfinite(target) & np.isfinite(compared)
        if "group" in columns:
            kept &= np.array(columns["group"]) == SUSPECT
        size = 12 if kept.sum() < 1000 else 3
        axes.scatter(
            scipy.stats.rankdata(compared[kept]),
            scipy.stats.rankdata(target[kept]),
            s=size,
            color=BLUE,
            alpha=0.5,
            linewidths=0,
            rasterized=True,
        )
        axes.set_xlabel(f"rank under {other}")
        axes.set_ylabel("rank under target")
        axes.set_aspect("equal")
        rho = correlations[other]
        axes.set_title(f"target and {other}" + ("" if rho is None else f": rho = {rho:.3f}"), fontsize=9)
    figure.suptitle(result.question.subject, fontsize=9)
    return figure


def of_readings(result: AuditResult) -> Figure:
    """What the dose meter says of each control when it is made of the others, by what that has read; and the target."""
    statistics = result.statistics
    details: Any = statistics.details
    heaviest = float(details["heaviest_dose"])
    figure = _figure(4.6, 4.4)
    axes = figure.subplots()
    axes.plot([0, heaviest], [0, heaviest], color="black", linewidth=1, linestyle="--")
    for related, colour, label in ((False, BLUE, "controls"), (True, GREY, "controls that read related text too")):
        points = [
            (item["dose"], item["reading"])
            for item in details["controls"]
            if item["reading"] is not None and bool(item["related"]) is related
        ]
        if points:
            planted, estimates = zip(*points, strict=True)
            axes.scatter(planted, estimates, s=16, color=colour, label=label, zorder=3)
    axes.axhline(statistics.value or 0.0, color=RED, linewidth=1.5, label="the target")
    high = heaviest if statistics.ci_high is None else statistics.ci_high
    axes.axhspan(statistics.ci_low or 0.0, high, color=GREY, alpha=0.25, linewidth=0, label="interval")
    axes.set_xlabel("readings that were planted")
    axes.set_ylabel("readings that the meter says")
    axes.set_title(f"{result.question.subject}\n{details['readings']}: {result.verdict.decision}", fontsize=9)
    axes.legend(fontsize=8, frameon=False)
    return figure


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")
