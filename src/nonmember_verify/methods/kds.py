"""Kernel divergence, from whole tables of distances."""

from __future__ import annotations

import numpy as np

from nonmember_verify.bundle import Audit, FloatArray, table_of
from nonmember_verify.methods.conclusion import Conclusion
from nonmember_verify.report import Report

CLAIM = (
    "None about these documents by themselves: the score may be compared with that of other sets of as many documents, "
    "under the same model and the same recipe. A higher one means that tuning moved them less, as it moves documents "
    "that were read before; sets that differ in length, date or style differ in it too."
)
INVALID = "A precondition failed; nothing may be concluded."
SMALLEST, SMALLEST_DISTANCE = 1e-6, 1e-6
MOST_DOCUMENTS = 6000


def recompute(audit: Audit, report: Report) -> Conclusion:
    columns = audit.described["columns"]["suspect"]
    tables = [columns[f"{role}/embedding"]["tables"] for role in ("target", "tuned")]
    stated = audit.statistics["value"]
    if not all(tables):
        report.unchecked("statistic", "the embeddings that it comes from are not in the bundle (--with-embeddings)")
        decision = "invalid" if stated is None or abs(stated) < SMALLEST else "score_only"
        return Conclusion(decision, CLAIM if decision == "score_only" else INVALID)
    documents = audit.groups["suspect"].documents
    if len(documents) < 3:
        return Conclusion("invalid", INVALID)
    if len(documents) > MOST_DOCUMENTS:
        report.unchecked("statistic", f"{len(documents)} documents are more than fit into a table of distances")
        return Conclusion("score_only" if stated is not None else "invalid", CLAIM)
    before, after = (_distances(audit, name, documents) for (name,) in tables)
    kind = audit.settings["bandwidth"]
    upper = np.triu_indices(len(documents), k=1)
    medians = [float(np.median(np.sqrt(one[upper]))) for one in (before, after)]
    if kind != "fixed" and min(medians) < SMALLEST_DISTANCE:
        return Conclusion("invalid", INVALID)
    gamma = audit.settings["gamma"] if kind == "fixed" else 1 / medians[0]
    gamma_after = 1 / medians[1] if kind == "per_kernel_median" else gamma
    kernel = np.exp(-gamma * before)
    score = -float((kernel * np.abs(gamma_after * after - gamma * before)).sum() / np.sqrt(kernel.sum()))
    report.numbers("statistic", {"KDS": (stated, score)}, "from the embeddings, all distances at once", tolerance=1e-6)
    report.unchecked("what stands beside it", "means of other scores are taken as stated")
    decision = "invalid" if abs(score) < SMALLEST else "score_only"
    return Conclusion(decision, CLAIM if decision == "score_only" else INVALID)


def _distances(audit: Audit, name: str, documents: list[str]) -> FloatArray:
    """[N, N] squared."""
    table = table_of(audit.files, f"embeddings/{name}.parquet")
    place = {document: number for number, document in enumerate(table["document"])}
    points = np.array([table["vector"][place[document]] for document in documents], dtype=np.float64)
    return np.asarray(((points[:, None] - points[None]) ** 2).sum(axis=2) if len(points) < 200 else _by_rows(points))


def _by_rows(points: FloatArray) -> FloatArray:
    return np.array([((points - point) ** 2).sum(axis=1) for point in points])
