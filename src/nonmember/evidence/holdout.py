"""Draws by a new key which documents are published and which are kept, for an exact test later."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scipy.stats import norm

from nonmember.checks import require_choice, require_number
from nonmember.evidence.canaries import COMMITMENT, seal
from nonmember.records import Corpus
from nonmember_verify.canaries import KEY_BYTES
from nonmember_verify.holdout import Draw, Drawn, drawn

PUBLISHED, KEPT, PRIVATE = "published.jsonl", "kept.jsonl", "holdout.private.json"
FILES = (PRIVATE, COMMITMENT, PUBLISHED, KEPT)
STRATA = ("title", "author", "domain", "length")
# Readings -> by how many standard deviations they moved a document's loss in the micro world, and its loss less that of
# a model that read none (docs/methods/holdout.md).
SHIFTS = {1: (0.21, 0.55), 2: (0.38, 1.16), 4: (0.86, 2.13)}


@dataclass(frozen=True)
class SealedHoldout:
    private: Path  # file to keep secret, which each test needs
    commitment: str  # its hash; make it public before the documents
    num_documents: tuple[int, int]  # published, kept
    num_clusters: tuple[int, int]  # likewise


def make(folder: Path, documents: Corpus, share: float = 0.5, strata: str | None = None) -> SealedHoldout:
    """Draws and writes. Documents of one cluster stay together; one without a cluster is one by itself.

    strata: of `STRATA`; of each the share is drawn by itself, so that both parts are alike in it.

    Raises:
        ValueError: For fewer than four clusters, for strata that leave fewer than two on a side, and where one of the
            files is there already.
    """
    require_number(share, "(0, 1)", "share")
    key = secrets.token_bytes(KEY_BYTES)
    clusters = [item.cluster_id or item.doc_id for item in documents.documents]
    number = len(set(clusters))
    if number < 4:
        raise ValueError(f"A hold-out needs at least 4 documents, or clusters of them; there are {number}.")
    stratum_of = _strata(documents, clusters, strata)
    published = drawn(key, stratum_of, share)
    if not 2 <= len(published) <= number - 2:
        raise ValueError(
            f"strata={strata} makes {len(set(stratum_of.values()))} strata of {number} clusters, and draws "
            f"{len(published)} of these. Leave strata out, or give more documents of each."
        )
    rows = [
        Drawn(item.doc_id, cluster, item.text, cluster in published, stratum_of[cluster])
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


def _strata(documents: Corpus, clusters: Sequence[str], by: str | None) -> dict[str, str]:
    """Cluster -> stratum: that of its first document, or the quarter of all clusters that its length lies in."""
    require_choice(by, STRATA, "strata", or_null=True)
    first = {cluster: item for item, cluster in zip(documents.documents[::-1], clusters[::-1], strict=True)}
    if by != "length":
        return {cluster: str(getattr(first[cluster], by)) if by else "" for cluster in dict.fromkeys(clusters)}
    lengths = Counter[str]()
    for item, cluster in zip(documents.documents, clusters, strict=True):
        lengths[cluster] += len(item.text)
    order = sorted(lengths, key=lambda cluster: (lengths[cluster], cluster))
    return {cluster: f"length {4 * rank // len(order) + 1}" for rank, cluster in enumerate(order)}


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
