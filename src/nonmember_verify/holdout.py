"""The private file of a sealed hold-out: all documents, and the key that chose which clusters were published.

order     = clusters of a stratum by HMAC-SHA256(key, "holdout" NUL cluster)
published = the first round(share * number) of them; of a single stratum at least 2 and at most all but 2
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nonmember_verify.canaries import Text, opened, written


@dataclass(frozen=True)
class Drawn:
    name: str
    cluster: str
    text: str
    published: bool
    stratum: str = ""


@dataclass(frozen=True)
class Draw:
    key: bytes
    share: float
    documents: tuple[Drawn, ...]

    def to_json(self) -> bytes:
        """As it is written, and hashed."""
        rows = [
            {"id": item.name, "cluster": item.cluster, "stratum": item.stratum, "published": item.published}
            | {"text": item.text}
            for item in self.documents
        ]
        return written({"kind": "holdout", "key": self.key.hex(), "share": self.share, "documents": rows})

    def texts(self) -> list[Text]:
        return [
            Text("suspect" if item.published else "heldout", item.name, item.text, item.cluster, item.stratum)
            for item in self.documents
        ]


def drawn(key: bytes, strata: Mapping[str, str], share: float) -> set[str]:
    """Clusters that are published. strata: cluster -> its stratum.

    >>> sorted(drawn(bytes(32), dict.fromkeys("abcdef", ""), 0.5))
    ['b', 'c', 'd']
    """
    order = sorted(strata, key=lambda name: hmac.digest(key, b"holdout\x00" + name.encode(), hashlib.sha256))
    names, published = dict.fromkeys(strata.values()), set[str]()
    least = 2 if len(names) == 1 else 0
    for stratum in names:
        members = [name for name in order if strata[name] == stratum]
        published |= set(members[: min(max(least, round(share * len(members))), len(members) - least)])
    return published


def read_draw(path: Path) -> Draw:
    """Raises ValueError where it is no private file of a hold-out, or its key did not draw what it says."""

    def draw_of(found: Any, key: bytes) -> Draw:
        if found["kind"] != "holdout":
            raise ValueError(f"kind {found['kind']!r}")
        rows = (
            Drawn(str(row["id"]), str(row["cluster"]), str(row["text"]), bool(row["published"]), str(row["stratum"]))
            for row in found["documents"]
        )
        return Draw(key, float(found["share"]), tuple(rows))

    draw = opened(path, draw_of)
    published = drawn(draw.key, {item.cluster: item.stratum for item in draw.documents}, draw.share)
    if wrong := [item.name for item in draw.documents if item.published != (item.cluster in published)]:
        raise ValueError(
            f"{wrong[0]} in {path.name} is not where the key draws it: the file was changed, or the draw was not left "
            "to chance."
        )
    return draw
