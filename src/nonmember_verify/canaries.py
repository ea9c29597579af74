"""The private file of canaries: variants, which of them was published, and the key that chose it.

    commitment = SHA-256 of the file's bytes                              made public before anybody reads the documents
    published  = HMAC-SHA256(key, "published" NUL id) mod number of variants       key: 32 random bytes in the file

The key makes the commitment hide what it is of; that the choice follows from it shows that no score led to it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nonmember_verify.envelope import strict_json

KEY_BYTES = 32
FORMAT = 1
KINDS = ("random", "sampled", "paraphrase")


@dataclass(frozen=True)
class Canary:
    name: str
    variants: tuple[str, ...]  # equally likely to be published
    published: int  # index of the one that was
    documents: tuple[str, ...]  # ids of those that it was put into, once for every copy


@dataclass(frozen=True)
class PrivateFile:
    kind: str
    key: bytes
    canaries: tuple[Canary, ...]

    def to_json(self) -> bytes:
        """As it is written, and hashed."""
        canaries = [
            {"id": item.name, "published": item.published, "documents": item.documents, "variants": item.variants}
            for item in self.canaries
        ]
        content = {"format": FORMAT, "kind": self.kind, "key": self.key.hex(), "canaries": canaries}
        return (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode()


def chosen(key: bytes, name: str, num_variants: int) -> int:
    """Index of the variant of a canary that is published.

    >>> chosen(bytes(32), "canary-1", 100)
    29
    """
    digest = hmac.new(key, b"published\x00" + name.encode(), hashlib.sha256).digest()
    return int.from_bytes(digest, "big") % num_variants


def commitment_of(content: bytes) -> str:
    """To a private file."""
    return hashlib.sha256(content).hexdigest()


def read_private(path: Path) -> PrivateFile:
    """Raises ValueError where it is no private file of canaries, or its key did not choose what it says."""
    content = path.read_bytes()
    try:
        found = strict_json(content)
        canaries = tuple(map(_canary, found["canaries"]))
        private = PrivateFile(found["kind"], bytes.fromhex(found["key"]), canaries)
        if found["format"] != FORMAT or private.kind not in KINDS or len(private.key) != KEY_BYTES or not canaries:
            raise ValueError(f"format {found['format']!r}, kind {private.kind!r}")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise unreadable(path, error) from error
    for item in canaries:
        if len(set(item.variants)) < max(2, len(item.variants)):
            raise ValueError(f"{item.name} in {path.name} must have two or more variants, no two of them alike.")
        if item.published != chosen(private.key, item.name, len(item.variants)):
            raise ValueError(
                f"Variant {item.published} of {item.name} is not the one that the key in {path.name} chooses: the file "
                "was changed, or the choice was not left to chance."
            )
    return private


def unreadable(path: Path, error: Exception) -> ValueError:
    return ValueError(
        f"{path.name} must be the private file that `nonmember plant` wrote; it cannot be read as one "
        f"({type(error).__name__}: {error})."
    )


def _canary(row: Mapping[str, Any]) -> Canary:
    variants, documents = tuple(row["variants"]), tuple(row["documents"])
    if not all(isinstance(item, str) for item in (row["id"], *variants, *documents)):
        raise TypeError("ids and variants must be text")
    return Canary(row["id"], variants, int(row["published"]), documents)
