"""How well scores tell documents from unread ones: AUC with intervals, and a page of histograms."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from markupsafe import Markup
from matplotlib import rc_context

from nonmember.records import FloatArray
from nonmember.reports.render.figures import svg_of
from nonmember.reports.render.html import beginning, rendered
from nonmember.reports.render.page import WITHOUT_SCRIPT, read
from nonmember.results.pictures import STYLE, histogram
from nonmember.runtime.files import write_text_atomically
from nonmember.stats.classification import cluster_counts, resampled, roc_auc

MEANING = (
    "An AUC of .5 is chance. Text of another date or source differs by itself (method=blind), and no score says by "
    "itself that a document was used (nonmember audit)."
)


Scores = Mapping[str, FloatArray]  # of all documents where they are defined


def aucs(scores: Scores, unread: Scores) -> dict[str, str]:
    """Name of a score -> its AUC with a 95% interval over resampled documents."""
    told: dict[str, str] = {}
    for name in scores:
        both = [scores[name], unread[name]]
        values, is_suspect = np.concatenate(both), np.repeat([True, False], list(map(len, both)))
        counts_NB = cluster_counts(range(len(values)), 2000, np.random.default_rng(0))
        low, high = np.nanquantile(resampled(values, is_suspect, counts_NB)[0], (0.025, 0.975))
        told[name] = f"{roc_auc(values, is_suspect):.3f} [{low:.3f}, {high:.3f}]"
    return told


def write_page(path: Path, title: str, scores: Scores, unread: Scores, found: Mapping[str, str]) -> Path:
    """Into the folder of a run, which names what was scored. found: as of `aucs`."""
    figures: dict[str, Markup] = {}
    for name, auc in found.items():
        with rc_context(STYLE):
            drawn = histogram(name, {"documents": scores[name], "unread": unread[name]})
        figures |= {f"{name}: AUC {auc}": Markup(svg_of(item.figure, name, name)) for item in drawn}
    page = rendered(
        Path(__file__).with_suffix(".html.j2"),
        {"beginning": beginning},
        policy=WITHOUT_SCRIPT,
        title=title,
        style=Markup(read("page.css")),
        name=path.absolute().parent.name,
        meaning=MEANING,
        figures=figures,
    )
    write_text_atomically(path, page)
    return path
