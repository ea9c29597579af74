"""Pictures of an audit's evidence: a function per kind of picture (`Method.picture`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from nonmember.records import FloatArray
from nonmember.records.groups import SUSPECT
from nonmember.reports.audit_page.content import GROUPS, readable
from nonmember.reports.audit_page.evidence import Evidence
from nonmember.reports.audit_page.svg import SvgPlot, average_ranks, most_of, range_of
from nonmember.reports.core import formats
from nonmember.reports.core.numbers import detail
from nonmember.results.answers import KINDS

BINS = 28
MAX_POINTS = 5000  # of one plot
MAX_PLOTS = 3  # of one kind, where a method has dozens of scores


@dataclass(frozen=True)
class Drawing:
    title: str
    caption: str
    svg: Markup
    legend: tuple[tuple[str, str], ...] = ()  # (class of the colour, name) of what is told apart by colour


def drawings(evidence: Evidence) -> list[Drawing]:
    """Those of the method's kind, plain histograms where its scores are not there; then the resampled statistic."""
    return [
        *(KINDS_OF_PICTURES.get(evidence.result.statistics.picture, scores)(evidence) or scores(evidence)),
        *resampled(evidence),
    ]


# Ranks and pairs ------------------------------------------------------------------------------------------------------


def ranks(evidence: Evidence) -> list[Drawing]:
    """Rank of each suspect document under the target against its rank under reference and distilled reference."""
    result, suspect = evidence.result, np.array(evidence.groups) == SUSPECT
    correlations = {other: detail(f"rho_{other}_target")(result) for other in ("reference", "distilled")}
    found = []
    for other, rho in correlations.items():
        if not {"target", other} <= evidence.columns.keys():
            continue
        x, y = _both_finite(*(evidence.columns[column][suspect] for column in (other, "target")))
        name = {"reference": "reference", "distilled": "distilled reference"}[other]
        limits = range_of([1.0, len(x)])
        plot = SvgPlot(limits, limits, f"rank under the {name}", "rank under the target")
        plot.diagonal()
        plot.points(*_some(average_ranks(x), average_ranks(y)))
        aside = "" if rho is None else f", rho {formats.decimals(rho)}"
        title = f"Target and {name}{aside}"
        found.append(Drawing(title, "Each dot is a document; on the line both models rank it alike.", plot.svg(title)))
    return found


def pairs(evidence: Evidence) -> list[Drawing]:
    """The first two values of each document against each other, and their differences."""
    names = list(evidence.columns)[:2]
    if len(names) < 2:
        return []
    first, second = _both_finite(*(evidence.columns[name] for name in names))
    limits = range_of(first, second)
    plot = SvgPlot(limits, limits, names[0], names[1])
    plot.diagonal()
    plot.points(*_some(first, second))
    title = f"{names[0]} and {names[1]}"
    dots = Drawing(title, "Each dot is a document; on the line both values are equal.", plot.svg(title))
    return [dots, *histogram(f"Differences, {names[0]} less {names[1]}", {"documents": first - second}, zero=True)]


def _both_finite(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    kept = np.isfinite(first) & np.isfinite(second)
    return first[kept], second[kept]


def _some(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Every so manyth of very many points."""
    step = -(-len(x) // MAX_POINTS) or 1
    return x[::step], y[::step]


# Groups of documents --------------------------------------------------------------------------------------------------


def scores(evidence: Evidence) -> list[Drawing]:
    """Histograms of the first scores, by group of documents."""
    return _histograms(evidence, list(evidence.columns)[:MAX_PLOTS])


def groups(evidence: Evidence) -> list[Drawing]:
    """Histograms by group, of the scores with the largest weights where the method weighs them."""
    weights: Any = evidence.result.statistics.details.get("weights")
    names = list(evidence.columns)
    if isinstance(weights, Mapping):
        names.sort(key=lambda name: -abs(weights.get(name) or 0.0))
    return _histograms(evidence, names[:MAX_PLOTS])


def gains(evidence: Evidence) -> list[Drawing]:
    """What each document gains from the reference to the target, by group, and the scores under both."""
    target, reference = (evidence.by_group(name) for name in ("target", "reference"))
    gain = {group: target[group] - reference[group] for group in target}
    return [*histogram("Target less reference", gain, zero=True), *scores(evidence)]


def _histograms(evidence: Evidence, names: list[str]) -> list[Drawing]:
    return [item for name in names for item in histogram(readable(name), evidence.by_group(name))]


def changes(evidence: Evidence) -> list[Drawing]:
    """By how much tuning changed the first score of each document, and that score before it."""
    for name in evidence.columns:
        role, _, score = name.partition("/")
        others = [f"{other}/{score}" for other in ("tuned", "fsd") if f"{other}/{score}" in evidence.columns]
        if role == "target" and others:
            before, after = (evidence.by_group(column) for column in (name, others[0]))
            common = [group for group in before if len(before[group]) == len(after.get(group, ()))]
            change = {group: before[group] - after[group] for group in common}
            return [
                *histogram(f"{readable(score)}: before tuning less after", change, zero=True),
                *histogram(f"{readable(score)} under the target", before),
            ]
    return []


def histogram(title: str, by_group: Mapping[str, FloatArray], *, zero: bool = False) -> list[Drawing]:
    """Of each group the share of its documents in each bin; nothing where there is no value at all."""
    by_group = {GROUPS.get(name, name): values for name, values in by_group.items() if len(values)}
    if not by_group:
        return []
    limits = range_of(*map(most_of, by_group.values()), [0.0] if zero else [])
    edges = np.linspace(*limits, BINS + 1)
    shares = {name: np.histogram(values, edges)[0] / len(values) for name, values in by_group.items()}
    plot = SvgPlot(limits, (0.0, 1.08 * max(share.max() for share in shares.values())), title, "share of documents")
    for index, share in enumerate(shares.values()):
        plot.histogram(edges, share, index)
    if zero:
        plot.upright(0.0, "zero")
    means = ", ".join(f"mean {formats.decimals(values.mean())} in {name}" for name, values in by_group.items())
    legend = tuple((f"s{index}", name) for index, name in enumerate(shares)) if len(shares) > 1 else ()
    caption = f"{means[:1].upper()}{means[1:]}.{_beyond(limits, *by_group.values())}"
    return [Drawing(title, caption, plot.svg(f"{title}: {means}"), legend)]


def _beyond(limits: tuple[float, float], *values: FloatArray) -> str:
    """How many lie far outside; empty where none does."""
    number = sum(int(((some < limits[0]) | (some > limits[1])).sum()) for some in values)
    return f" {number:,} lie far outside the axis." if number else ""


# Shards, answers, AUCs ------------------------------------------------------------------------------------------------


def shards(evidence: Evidence) -> list[Drawing]:
    """Of each shard, how much more likely it is in its own order than in random ones."""
    found = []
    for prefix, name in (("", "the target"), ("control/", "the reference, which has not read it")):
        if not {f"{prefix}canonical", f"{prefix}mean_shuffled"} <= evidence.columns.keys():
            continue
        differences = evidence.columns[f"{prefix}canonical"] - evidence.columns[f"{prefix}mean_shuffled"]
        differences = differences[np.isfinite(differences)]
        plot = SvgPlot(
            (0.0, len(differences) + 1.0), range_of(differences, [0.0]), "shard", "own order less random ones, nats"
        )
        for index, value in enumerate(differences, start=1):
            plot.bar(index, 0.0, float(value), "s0" if value > 0 else "s1")
        plot.level(0.0, "zero")
        above = int((differences > 0).sum())
        title = f"Shards under {name}"
        caption = f"{above} of {len(differences)} shards are more likely in their own order."
        found.append(Drawing(title, caption, plot.svg(f"{title}. {caption}")))
    return found


def answers(evidence: Evidence) -> list[Drawing]:
    """What kinds of answers were given about each group, and the share of right ones of each document."""
    first = list(evidence.columns)[:1]
    per_document = [
        item for name in first for item in histogram("right answers of a document", evidence.by_group(name))
    ]
    if not evidence.answers:
        return per_document
    names = [GROUPS.get(name, name) for name in evidence.answers]
    plot = SvgPlot(
        (0.0, 1.0),
        (len(names) - 0.5, -0.5),
        "share of the answers",
        "",
        y_names=names,
        left=96,
        height=86 + 34 * len(names),
    )
    for index, counts in enumerate(evidence.answers.values()):
        start, total = 0.0, sum(counts.values())
        for kind, number in counts.items():
            plot.lying_bar(index, start, start + number / total, f"kind-{kind}")
            start += number / total
    listed = "; ".join(
        f"{name}: {', '.join(f'{number:,} {kind}' for kind, number in counts.items())}"
        for name, counts in zip(names, evidence.answers.values(), strict=True)
    )
    present = {kind for counts in evidence.answers.values() for kind in counts}
    legend = tuple((f"kind-{kind}", kind) for kind in KINDS if kind in present)
    return [Drawing("Answers", f"{listed}.", plot.svg(f"Answers. {listed}"), legend), *per_document]


def aucs(evidence: Evidence) -> list[Drawing]:
    """How well each kind of features tells the groups apart; one half is chance."""
    found: Any = evidence.result.statistics.details.get("auc")
    intervals: Any = evidence.result.statistics.details.get("intervals")
    if not isinstance(found, Mapping) or not found:
        return []
    ends = {name: (intervals or {}).get(name) or [value, value] for name, value in found.items()}
    limits = range_of(found.values(), *ends.values(), [0.5])
    plot = SvgPlot(
        limits,
        (len(found) - 0.5, -0.5),
        "AUC (one half is chance)",
        "",
        y_names=list(found),
        left=96,
        height=86 + 34 * len(found),
    )
    plot.upright(0.5, "zero")
    for index, (name, value) in enumerate(found.items()):
        low, high = ends[name]
        plot.interval(index, low, high, value)
    listed = "; ".join(
        f"{name} {formats.decimals(value)} {formats.interval(*ends[name])}" for name, value in found.items()
    )
    return [Drawing("How well text alone tells the sets apart", f"{listed}.", plot.svg(listed))]


# Readings -------------------------------------------------------------------------------------------------------------


def dose(evidence: Evidence) -> list[Drawing]:
    """What the meter says of each control when it is made of the others, by what that has read; and of the target."""
    statistics = evidence.result.statistics
    details: Any = statistics.details
    known = [item for item in details.get("controls") or [] if item.get("reading") is not None]
    if not known or statistics.value is None:
        return []
    high = float(details["heaviest_dose"]) if statistics.ci_high is None else statistics.ci_high
    planted = range_of([float(item["dose"]) for item in known])
    shown = range_of([float(item["reading"]) for item in known], [0.0, statistics.value, high])
    plot = SvgPlot(planted, shown, "readings that were planted", "readings that the meter shows")
    plot.lying_band(statistics.ci_low or 0.0, high)
    plot.diagonal()
    for series, related in enumerate((False, True)):
        chosen = [item for item in known if bool(item["related"]) is related]
        xs, ys = (np.array([float(item[name]) for item in chosen]) for name in ("dose", "reading"))
        plot.points(xs, ys, series)
    plot.level(statistics.value, "value")
    title = f"The target: {details['readings']}"
    caption = "Each dot is a control, read by a meter made of the others: on the line it is right."
    legend = (
        ("s0", "controls"),
        ("s1", "controls that read related text too"),
        ("value", "the target"),
        ("band", f"{1 - evidence.result.question.alpha:.0%} interval"),
    )
    return [Drawing(title, caption, plot.svg(f"{title}. {caption}"), legend)]


# The statistic --------------------------------------------------------------------------------------------------------


def resampled(evidence: Evidence) -> list[Drawing]:
    """The distribution of the resampled statistic with zero, its interval and, where there is one, the margin."""
    values, result = evidence.distribution, evidence.result
    if not len(values):
        return []
    name = evidence.result.statistics.name
    margin = result.statistics.details.get("margin")
    margin = float(margin) if isinstance(margin, int | float) and margin else None
    marked = (0.0, margin, result.statistics.value, result.statistics.ci_low, result.statistics.ci_high)
    limits = range_of(most_of(values), [item for item in marked if item is not None])
    counts, edges = np.histogram(values, np.linspace(*limits, 2 * BINS + 1))
    plot = SvgPlot(limits, (0.0, 1.08 * float(counts.max())), name, "resamples")
    legend = [("s0", "resamples")]
    if result.statistics.ci_low is not None and result.statistics.ci_high is not None:
        plot.band(result.statistics.ci_low, result.statistics.ci_high)
        legend.append(("band", f"{1 - result.question.alpha:.0%} interval"))
    plot.histogram(edges, counts.astype(np.float64))
    plot.upright(0.0, "zero")
    if margin is not None:
        plot.upright(margin, "bound")
        legend.append(("bound", f"margin {formats.signed(margin)}"))
    if result.statistics.value is not None:
        plot.upright(result.statistics.value, "value")
        legend.append(("value", f"{name} {formats.statistic(result.statistics)[0]}"))
    title = f"{len(values):,} resamples of {name}"
    below = float((values <= (margin or 0.0)).mean())
    edge = "the margin" if margin is not None else "zero"
    caption = f"{below:.1%} of them are at most {edge} (broken line: zero).{_beyond(limits, values)}"
    return [Drawing(title, caption, plot.svg(f"{title}. {caption}"), tuple(legend))]


KINDS_OF_PICTURES: Mapping[str, Callable[[Evidence], list[Drawing]]] = {
    "ranks": ranks,
    "pairs": pairs,
    "groups": groups,
    "gains": gains,
    "shards": shards,
    "answers": answers,
    "changes": changes,
    "aucs": aucs,
    "dose": dose,
    "scores": scores,
}
