"""The private file of canaries: variants, which of them was published, and the key that chose it.

    commitment = SHA-256 of the file's bytes                              made public before anybody reads the documents
    published  = HMAC-SHA256(key, "published" NUL id) mod number of variants       key: 32 random bytes in the file

The key makes the commitment hide what it is of; that the choice follows from it shows that no score led to it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from nonmember_verify.envelope import strict_json

KEY_BYTES = 32
FORMAT = 1
KINDS = ("random", "sampled", "paraphrase")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Text:
    """A text that an audit commits to. group: its set.   unit: what counts together."""

    group: str
    name: str
    text: str
    unit: str
    stratum: str = ""


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
        return written({"kind": self.kind, "key": self.key.hex(), "canaries": canaries})

    def texts(self) -> list[Text]:
        return [
            Text("suspect" if index == item.published else "private", f"{item.name}/{index}", text, item.name)
            for item in self.canaries
            for index, text in enumerate(item.variants)
        ]


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

    def private_file(found: Any, key: bytes) -> PrivateFile:
        if found["kind"] not in KINDS or not found["canaries"]:
            raise ValueError(f"kind {found['kind']!r}")
        return PrivateFile(found["kind"], key, tuple(map(_canary, found["canaries"])))

    private = opened(path, private_file)
    for item in private.canaries:
        if len(set(item.variants)) < max(2, len(item.variants)):
            raise ValueError(f"{item.name} in {path.name} must have two or more variants, no two of them alike.")
        if item.published != chosen(private.key, item.name, len(item.variants)):
            raise ValueError(
                f"Variant {item.published} of {item.name} is not the one that the key in {path.name} chooses: the file "
                "was changed, or the choice was not left to chance."
            )
    return private


def written(content: Mapping[str, Any]) -> bytes:
    return (json.dumps({"format": FORMAT, **content}, ensure_ascii=False, indent=1) + "\n").encode()


def opened(path: Path, made: Callable[[Any, bytes], Made]) -> Made:
    """What is made of the content of a private file and of its key."""
    try:
        found = strict_json(path.read_bytes())
        key = bytes.fromhex(found["key"])
        if found["format"] != FORMAT or len(key) != KEY_BYTES:
            raise ValueError(f"format {found['format']!r}, a key of {len(key)} bytes")
        return made(found, key)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{path.name} must be the private file that `nonmember plant` wrote; it cannot be read as one "
            f"({type(error).__name__}: {error})."
        ) from error


def _canary(row: Mapping[str, Any]) -> Canary:
    variants, documents = tuple(row["variants"]), tuple(row["documents"])
    if not all(isinstance(item, str) for item in (row["id"], *variants, *documents)):
        raise TypeError("ids and variants must be text")
    return Canary(row["id"], variants, int(row["published"]), documents)
