"""Pictures of an audit's evidence, for its page and its W&B run alike: a function per kind (`Method.picture`).

Drawn on figures of their own, without pyplot's global state.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from nonmember.records import FloatArray
from nonmember.records.groups import HELDOUT, SUSPECT
from nonmember.results.answers import KINDS
from nonmember.results.evidence import Evidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito: told apart by everybody. In the page each becomes a variable with a lighter shade for dark pages.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#5b5b9c", "#7f7f7f")
INK, QUIET = "#000000", "#767676"
STYLE: Any = {  # of matplotlib
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.edgecolor": QUIET,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
    "svg.fonttype": "none",
    "savefig.transparent": True,
    "axes.unicode_minus": True,
    "text.parse_math": False,  # labels come from users
}
VALUE = COLOURS[1]
BINS = 28
PNG_DPI = 110
CLAIMS = {"membership": "used", "non_membership": "not used"}
MAX_PLOTS = 3  # of one kind, where a method has dozens of scores
FAR = 2.0  # widths of the range of most values beyond which a value is left out of a picture
GROUPS = {HELDOUT: "held-out"}  # as printed
ROLES = ("target", "reference", "distilled")
READABLE = {  # loss: its sign is a score's
    "distilled": "distilled reference",
    "kl": "KL divergence",
    "loss": "log-likelihood",
}
CONTROL = re.compile(r"control-(\d+)x(?:(\d+)%)?(?:-related-(\d+)x(?:\d+%)?)?-(\d+(?:-\d+)?)")


@dataclass(frozen=True)
class Drawing:
    name: str  # of its kind, as trackers know it
    title: str
    caption: str
    figure: Figure


def drawings(evidence: Evidence) -> list[Drawing]:
    """Those of the method's kind, plain histograms where its scores are not there; then the resampled statistic."""
    from matplotlib import rc_context

    with rc_context(STYLE):
        return [
            *(KINDS_OF_PICTURES.get(evidence.result.statistics.picture, scores)(evidence) or scores(evidence)),
            *resampled(evidence),
        ]


def readable(role: str) -> str:
    """A model's role, or a column of its scores, for people: "control that read it twice, seed 1: log-likelihood"."""
    return ": ".join(_readable(part) for part in role.split("/"))


def titled(column: str, score: str) -> str:
    """A column of scores: a role with the score that is meant."""
    return f"{readable(column)}: {readable(score)}" if score and column in ROLES else readable(column)


def telling(columns: Mapping[str, FloatArray]) -> list[str]:
    """Those of target, reference and distilled reference first; without constant ones and such as repeat another."""
    places = {role: index for index, role in enumerate(ROLES)}
    kept: list[str] = []
    for name in sorted(columns, key=lambda name: min(places.get(part, len(ROLES)) for part in name.split("/"))):
        values = columns[name]
        repeats = any(np.array_equal(values, columns[other], equal_nan=True) for other in kept)
        if not repeats and np.nanmin(values, initial=math.inf) < np.nanmax(values, initial=-math.inf):
            kept.append(name)
    return kept


def _readable(part: str) -> str:
    if part in READABLE:
        return READABLE[part]
    if (found := CONTROL.fullmatch(part)) is None:
        return part.replace("_", " ")
    times, share, related, seed = found.groups()
    what = f"{share}% of it" if share else "it"
    read = f"control that read {what} {_times(times)}" if int(times) else "control that did not read it"
    return f"{read}{f', related text {_times(related)}' if related else ''}, seed {seed}"


def _times(number: str) -> str:
    return {"1": "once", "2": "twice"}.get(number, f"{number} times")


def _axes(x_label: str, y_label: str, height: float = 3.1) -> tuple[Figure, Axes]:
    """Without a title, which stands beside the picture."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2, height), layout="constrained")
    axes = figure.subplots()
    axes.locator_params(nbins=5)
    axes.set(xlabel=x_label, ylabel=y_label)
    return figure, axes


def _legend(figure: Figure, columns: int = 3) -> None:
    figure.legend(loc="outside lower left", ncols=columns)


def _points(axes: Axes, x: FloatArray, y: FloatArray, colour: str = COLOURS[0], label: str = "") -> None:
    many = len(x) > 1000
    axes.plot(
        x, y, ".", color=colour, alpha=0.6, markersize=3 if many else 8, mew=0, rasterized=many, label=label or None
    )


def _diagonal(axes: Axes) -> None:
    axes.axline((0, 0), slope=1, color=QUIET, linewidth=0.8, linestyle="--", zorder=0)


def _both_finite(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    kept = np.isfinite(first) & np.isfinite(second)
    return first[kept], second[kept]


def ranks(evidence: Evidence) -> list[Drawing]:
    """Rank of each suspect document under the target against its rank under reference and distilled reference."""
    suspect, details = np.array(evidence.groups) == SUSPECT, evidence.result.statistics.details
    found = []
    for other, name in (("reference", "reference"), ("distilled", "distilled reference")):
        if not {"target", other} <= evidence.columns.keys():
            continue
        x, y = _both_finite(*(evidence.columns[column][suspect] for column in (other, "target")))
        rho = details.get(f"rho_{other}_target")
        title = f"Target and {name}" + (f", rho {rho:.3f}" if isinstance(rho, float) else "")
        score = readable(evidence.result.question.score or "score")
        figure, axes = _axes(f"rank by {score} under the {name}", f"rank by {score} under the target")
        _diagonal(axes)
        _points(axes, scipy.stats.rankdata(x), scipy.stats.rankdata(y))
        caption = "Each dot is a document; on the line both models rank it alike."
        found.append(Drawing(f"ranks/{other}", title, caption, figure))
    return found


def pairs(evidence: Evidence) -> list[Drawing]:
    """The first two values of each document against each other, and their differences."""
    names = list(evidence.columns)[:2]
    if len(names) < 2:
        return []
    first, second = _both_finite(*(evidence.columns[name] for name in names))
    labels = [titled(name, evidence.result.question.score) for name in names]
    title = " and ".join(labels)
    figure, axes = _axes(labels[0], labels[1])
    _diagonal(axes)
    _points(axes, first, second)
    dots = Drawing("pairs", title, "Each dot is a document; on the line both values are equal.", figure)
    return [dots, *histogram(f"Differences, {' less '.join(labels)}", {"documents": first - second}, zero=True)]


# Groups of documents --------------------------------------------------------------------------------------------------


def scores(evidence: Evidence) -> list[Drawing]:
    """Histograms of the first scores, by group of documents."""
    return _histograms(evidence, telling(evidence.columns)[:MAX_PLOTS])


def groups(evidence: Evidence) -> list[Drawing]:
    """Histograms by group, of the scores with the largest weights where the method weighs them."""
    weights: Any = evidence.result.statistics.details.get("weights")
    names = telling(evidence.columns)
    if isinstance(weights, Mapping):
        names.sort(key=lambda name: -abs(weights.get(name) or 0.0))
    return _histograms(evidence, names[:MAX_PLOTS])


def gains(evidence: Evidence) -> list[Drawing]:
    """What each document gains from the reference to the target, by group, and the scores under both."""
    target, reference = (evidence.by_group(name) for name in ("target", "reference"))
    gain = {group: target[group] - reference[group] for group in target}
    score = readable(evidence.result.question.score or "score")
    return [*histogram(f"{score}: target less reference", gain, zero=True), *scores(evidence)]


def _histograms(evidence: Evidence, names: list[str]) -> list[Drawing]:
    score = evidence.result.question.score
    return [item for name in names for item in histogram(titled(name, score), evidence.by_group(name))]


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
    ends = [*map(most_of, by_group.values()), *([(0.0, 0.0)] if zero else [])]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    room = 0.04 * (high - low)
    edges = np.linspace(low - room, high + room, BINS + 1)
    figure, axes = _axes(title, "share of documents")
    for colour, (name, values) in zip(COLOURS * 9, by_group.items(), strict=False):
        share = np.histogram(values, edges)[0] / len(values)
        axes.stairs(share, edges, fill=True, alpha=0.5, color=colour, label=name)
    if zero:
        axes.axvline(0.0, color=QUIET, linewidth=0.8, linestyle="--")
    if len(by_group) > 1:
        _legend(figure)
    means = ", ".join(f"mean {values.mean():.3f} in {name}" for name, values in by_group.items())
    caption = f"{means[:1].upper()}{means[1:]}.{_beyond((edges[0], edges[-1]), *by_group.values())}"
    return [Drawing("histogram", title, caption, figure)]


def most_of(values: FloatArray) -> tuple[float, float]:
    """The range of the finite values; where a few lie far from all others, of all but the outermost hundredth on either
    side, since they would leave no room for the rest."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return 0.0, 1.0
    low, high = np.quantile(finite, [0.01, 0.99])
    room = FAR * (high - low)
    is_far = high > low and (finite.min() < low - room or finite.max() > high + room)
    return (float(low), float(high)) if is_far else (float(finite.min()), float(finite.max()))


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
        above = int((differences > 0).sum())
        title = f"Shards under {name}"
        figure, axes = _axes("shard", "own order less random ones, nats")
        axes.bar(range(1, len(differences) + 1), differences, color=[COLOURS[int(value <= 0)] for value in differences])
        axes.axhline(0.0, color=QUIET, linewidth=0.8)
        caption = f"{above} of {len(differences)} shards are more likely in their own order."
        found.append(Drawing(f"shards/{prefix}", title, caption, figure))
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
    figure, axes = _lying("share of the answers", names)
    starts = np.zeros(len(names))
    totals = np.array([sum(counts.values()) for counts in evidence.answers.values()])
    present = [kind for kind in KINDS if any(counts.get(kind) for counts in evidence.answers.values())]
    for colour, kind in zip(COLOURS, present, strict=False):
        shares = np.array([counts.get(kind, 0) for counts in evidence.answers.values()]) / totals
        axes.barh(range(len(names)), shares, left=starts, color=colour, label=kind)
        starts = starts + shares
    _legend(figure)
    listed = "; ".join(
        f"{name}: {', '.join(f'{number:,} {kind}' for kind, number in counts.items())}"
        for name, counts in zip(names, evidence.answers.values(), strict=True)
    )
    return [Drawing("answers", "Answers", f"{listed}.", figure), *per_document]


def aucs(evidence: Evidence) -> list[Drawing]:
    """How well each kind of features tells the groups apart; one half is chance."""
    found: Any = evidence.result.statistics.details.get("auc")
    intervals: Any = evidence.result.statistics.details.get("intervals")
    if not isinstance(found, Mapping) or not found:
        return []
    ends = {name: (intervals or {}).get(name) or [value, value] for name, value in found.items()}
    title = "How well text alone tells the sets apart"
    figure, axes = _lying("AUC (one half is chance)", list(found))
    axes.axvline(0.5, color=QUIET, linewidth=0.8, linestyle="--")
    axes.hlines(range(len(found)), *zip(*ends.values(), strict=True), color=COLOURS[0])
    axes.plot(list(found.values()), range(len(found)), "o", color=COLOURS[0])
    listed = "; ".join(
        f"{name} {value:.3f} [{ends[name][0]:.3f}, {ends[name][1]:.3f}]" for name, value in found.items()
    )
    return [Drawing("aucs", title, f"{listed}.", figure)]


def _lying(x_label: str, names: Sequence[str]) -> tuple[Figure, Axes]:
    figure, axes = _axes(x_label, "", 0.9 + 0.45 * len(names))
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    return figure, axes


# Readings, and the statistic ------------------------------------------------------------------------------------------


def dose(evidence: Evidence) -> list[Drawing]:
    """What the meter says of each control when it is made of the others, by what that has read; and of the target."""
    statistics = evidence.result.statistics
    details: Any = statistics.details
    known = [item for item in details.get("controls") or [] if item.get("reading") is not None]
    if not known or statistics.value is None:
        return []
    high = float(details["heaviest_dose"]) if statistics.ci_high is None else statistics.ci_high
    title = f"The target: {details['readings']}"
    figure, axes = _axes("readings that were planted", "readings that the meter shows")
    label = f"{1 - evidence.result.question.alpha:.0%} interval"
    axes.axhspan(statistics.ci_low or 0.0, high, color=QUIET, alpha=0.25, linewidth=0, label=label)
    _diagonal(axes)
    for colour, related, label in (
        (COLOURS[0], False, "controls"),
        (COLOURS[2], True, "controls that read related text too"),
    ):
        chosen = [item for item in known if bool(item["related"]) is related]
        xs, ys = (np.array([float(item[name]) for item in chosen]) for name in ("dose", "reading"))
        _points(axes, xs, ys, colour, label)
    axes.axhline(statistics.value, color=VALUE, label="the target")
    _legend(figure, 2)
    caption = "Each dot is a control whose dose the meter was not told; on the line it found that dose."
    return [Drawing("readings", title, caption, figure)]


def tests(evidence: Evidence) -> list[Drawing]:
    """Of method=auto: p of the test of each answer beside alpha."""
    from matplotlib.ticker import LogLocator

    found: Any = evidence.result.statistics.details["tests"]
    known: dict[str, float] = {}
    said = []
    for claim, test in found.items():
        answer, method = CLAIMS.get(claim, claim), test["method"]
        p = "invalid" if test["verdict"] == "invalid" else test["p_value"]
        if isinstance(p, float):
            known[f"{answer}\n{method}"] = max(p, 1e-12)
        said.append(f"{answer}, by {method}: {f'p = {p:.2g}' if isinstance(p, float) else p or 'no p'}")
    if not known:
        return []
    figure, axes = _lying("p", list(known))
    axes.set(xscale="log", xlim=(min(*known.values(), 0.01) / 2, 1.5))
    axes.xaxis.set_major_locator(LogLocator(numticks=5))
    axes.xaxis.set_major_formatter("{x:g}")  # where mathematics is not parsed, the usual one shows its source
    axes.minorticks_off()
    axes.axvline(evidence.result.question.alpha, color=QUIET, linewidth=0.8, linestyle="--")
    axes.plot([*known.values()], range(len(known)), "o", color=COLOURS[0])
    caption = f"{'; '.join(said)}. Left of the broken line a test concludes."
    return [Drawing("tests", "One test for each answer", caption, figure)]


def resampled(evidence: Evidence) -> list[Drawing]:
    """The distribution of the resampled statistic with zero and its interval."""
    values, statistics = evidence.distribution, evidence.result.statistics
    if not len(values):
        return []
    sign = "+" if statistics.is_signed else ""
    title = f"{len(values):,} resamples of {statistics.name}"
    figure, axes = _axes(statistics.name, "resamples")
    limits = most_of(values)
    axes.stairs(*np.histogram(values, 2 * BINS, limits), fill=True, color=COLOURS[0], alpha=0.5)
    axes.axvline(0.0, color=QUIET, linewidth=0.8, linestyle="--", label="zero")
    if statistics.ci_low is not None and statistics.ci_high is not None:
        label = f"{1 - evidence.result.question.alpha:.0%} interval"
        axes.axvspan(statistics.ci_low, statistics.ci_high, color=QUIET, alpha=0.25, linewidth=0, label=label)
    if statistics.value is not None:
        axes.axvline(statistics.value, color=VALUE, label=f"{statistics.name} {statistics.value:{sign}.3f}")
    _legend(figure)
    below = float((values <= 0.0).mean())
    caption = f"{below:.1%} of them are at most zero (broken line).{_beyond(limits, values)}"
    return [Drawing("distribution", title, caption, figure)]


KINDS_OF_PICTURES: Mapping[str, Callable[[Evidence], list[Drawing]]] = {
    item.__name__: item for item in (ranks, pairs, groups, gains, shards, answers, changes, aucs, dose, tests, scores)
}


def of_run(evidence: Evidence) -> Iterable[Drawing]:
    """Those that a W&B run shows: ranks, readings, p of tests and the resampled statistic."""
    kinds = ("ranks", "readings", "tests", "distribution")
    return (item for item in drawings(evidence) if item.name.partition("/")[0] in kinds)


def png_of(figure: Figure, dpi: int = PNG_DPI) -> bytes:
    """On white; at a resolution for screens, where none is given."""
    from matplotlib import rc_context

    png = io.BytesIO()
    with rc_context(STYLE):
        figure.savefig(png, format="png", dpi=dpi, transparent=False, facecolor="white", metadata={"Software": None})
    return png.getvalue()
