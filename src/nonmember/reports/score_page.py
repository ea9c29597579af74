"""How well scores tell documents from unread ones: AUC with intervals, and a page of histograms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import rc_context
from pandas import DataFrame

from nonmember.reports.render.figures import svg_of
from nonmember.reports.render.html import beginning
from nonmember.reports.render.page import WITHOUT_SCRIPT, read
from nonmember.results.pictures import STYLE, histogram
from nonmember.runtime.files import write_text_atomically
from nonmember.stats.classification import cluster_counts, resampled, roc_auc


def aucs(scores: DataFrame, unread: DataFrame) -> dict[str, str]:
    """Name of a score -> its AUC with a 95% interval over resampled documents."""
    told: dict[str, str] = {}
    for name in map(str, scores):
        both = [frame[name].dropna().to_numpy() for frame in (scores, unread)]
        values, is_suspect = np.concatenate(both), np.repeat([True, False], list(map(len, both)))
        counts_NB = cluster_counts(range(len(values)), 2000, np.random.default_rng(0))
        low, high = np.nanquantile(resampled(values, is_suspect, counts_NB)[0], (0.025, 0.975))
        told[name] = f"{roc_auc(values, is_suspect):.3f} [{low:.3f}, {high:.3f}]"
    return told


def write_page(path: Path, scores: DataFrame, unread: DataFrame) -> Path:
    sides = {"documents": scores, "unread": unread}
    with rc_context(STYLE):
        drawn = [histogram(name, {side: frame[name].dropna() for side, frame in sides.items()}) for name in scores]
    figures = "".join(f"<figure>{svg_of(i.figure, i.title, i.title)}</figure>" for some in drawn for i in some)
    style = f"<style>{read('page.css')} main {{ padding: 1rem; }} figure {{ max-width: 28rem; }}</style>"
    head = f"{beginning(WITHOUT_SCRIPT)}<title>Scores</title>{style}</head><body><main>"
    write_text_atomically(path, f"{head}{figures}</main></body></html>\n")
    return path
