"""Commitments to documents: a salted hash of each, and the root of a Merkle tree over them.

    salt       = HMAC-SHA256(key, length of id, id, text)       key: 32 random bytes that the auditor keeps
    commitment = SHA-256(0x00, salt, SHA-256(text))
    root       = RFC 6962's tree over the commitments in their order, inner nodes SHA-256(0x01, left, right)

Without the key a commitment tells nothing of the text, also not to who guesses it; with the key and the document it can
be recomputed. Texts are UTF-8 and as the audit read them, after cleaning.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from pathlib import Path

KEY_BYTES = 32


def secret_of(path: Path) -> bytes:
    """The secret of commitments in a file. Raises ValueError where it holds none."""
    try:
        secret = bytes.fromhex(json.loads(path.read_bytes())["key"])
        if len(secret) != KEY_BYTES:
            raise ValueError(f"a key of {len(secret)} bytes")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path.name} does not hold the secret of commitments ({error}).") from error
    return secret


def commitment(key: bytes, doc_id: str, text: str) -> str:
    """Of one document, in hexadecimal digits.

    >>> commitment(bytes(32), "one", "text")[:16]
    'a75563c8aff2d6f8'
    """
    name, content = (item.encode("utf-8", "surrogatepass") for item in (doc_id, text))
    salt = hmac.new(key, len(name).to_bytes(8, "big") + name + content, hashlib.sha256).digest()
    return hashlib.sha256(b"\x00" + salt + hashlib.sha256(content).digest()).hexdigest()


def root(commitments: Sequence[str]) -> str:
    """Of the tree over the commitments in their order; of none, the hash of nothing."""
    if len(commitments) < 2:
        return commitments[0] if commitments else hashlib.sha256(b"").hexdigest()
    half = 1 << (len(commitments) - 1).bit_length() - 1  # the largest power of two below their number
    left, right = (bytes.fromhex(root(part)) for part in (commitments[:half], commitments[half:]))
    return hashlib.sha256(b"\x01" + left + right).hexdigest()
