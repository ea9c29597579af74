"""Draws by a new key which documents are published and which are kept, for an exact test later."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from scipy.stats import norm

from nonmember.checks import require_number
from nonmember.evidence.canaries import COMMITMENT, seal
from nonmember.records import Corpus
from nonmember_verify.canaries import KEY_BYTES
from nonmember_verify.holdout import Draw, Drawn, drawn

PUBLISHED, KEPT, PRIVATE = "published.jsonl", "kept.jsonl", "holdout.private.json"
FILES = (PRIVATE, COMMITMENT, PUBLISHED, KEPT)
SHIFTS = (0.25, 0.5, 1.0)  # in standard deviations of a cluster's score


@dataclass(frozen=True)
class SealedHoldout:
    private: Path  # file to keep secret, which each test needs
    commitment: str  # its hash; make it public before the documents
    num_documents: tuple[int, int]  # published, kept
    num_clusters: tuple[int, int]  # likewise


def make(folder: Path, documents: Corpus, share: float = 0.5) -> SealedHoldout:
    """Draws and writes. Documents of one cluster stay together; one without a cluster is one by itself.

    Raises:
        ValueError: For fewer than four clusters, and where one of the files is there already.
    """
    require_number(share, "(0, 1)", "share")
    key = secrets.token_bytes(KEY_BYTES)
    clusters = [item.cluster_id or item.doc_id for item in documents.documents]
    number = len(set(clusters))
    if number < 4:
        raise ValueError(f"A hold-out needs at least 4 documents, or clusters of them; there are {number}.")
    published = drawn(key, clusters, share)
    rows = [
        Drawn(item.doc_id, cluster, item.text, cluster in published)
        for item, cluster in zip(documents.documents, clusters, strict=True)
    ]
    files = {
        name: [item for item, row in zip(documents.documents, rows, strict=True) if row.published == public]
        for name, public in ((PUBLISHED, True), (KEPT, False))
    }
    commitment = seal(folder, PRIVATE, Draw(key, share, tuple(rows)).to_json(), files)
    (folder / KEPT).chmod(0o600)  # what nobody else may read, or train on
    return SealedHoldout(
        folder / PRIVATE,
        commitment,
        (len(files[PUBLISHED]), len(files[KEPT])),
        (len(published), number - len(published)),
    )


def holdout_power(shift: float, published: int, kept: int, alpha: float) -> float:
    """Normal approximation to the power of the one-sided test.

    Args:
        shift: By how many standard deviations of a cluster's score reading moves it.
        published: Clusters.
        kept: Clusters.

    >>> round(holdout_power(0.5, 50, 50, 0.05), 2)
    0.8
    """
    return float(norm.cdf(shift * (published * kept / (published + kept)) ** 0.5 - norm.isf(alpha)))
