"""Signed statements: an in-toto Statement (v1) in a DSSE envelope, by Ed25519.

The public key stands in the statement, so a signature says that nothing was changed since, and not whose key it is:
who needs to know that compares the key's fingerprint with one that came another way.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE, SEAL_PREDICATE = "urn:nonmember:evidence:v1", "urn:nonmember:seal:v1"


class Refused(ValueError):
    """The archive, or what a file in it says, cannot be what `nonmember bundle` writes."""


class Fields(dict[str, Any]):
    """A JSON object that notes which of its fields are read: what no check reads is told (`unread`)."""

    def __init__(self, values: Mapping[str, Any] | list[tuple[str, Any]]):
        super().__init__(values)
        self.seen: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.seen.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.seen.add(name)
        return super().get(name, default)

    def items(self) -> Any:
        self.seen.update(self)
        return super().items()

    def values(self) -> Any:
        return [value for _, value in self.items()]


def unread(value: Any, name: str = "") -> Iterator[str]:
    """Dotted names of the fields that were not read; of an object of which none was, its own."""
    if isinstance(value, Fields):
        for field, inner in dict.items(value):
            below = f"{name}.{field}" if name else field
            if field in value.seen:
                yield from unread(inner, below)
            else:
                yield below
    elif isinstance(value, list):
        yield from dict.fromkeys(item for inner in value for item in unread(inner, name))


def plain(value: Any) -> Any:
    """The same value; nothing of it counts as read."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in dict.items(value)}
    return [plain(item) for item in value] if isinstance(value, list) else value


@dataclass(frozen=True)
class Signed:
    statement: Mapping[str, Any]  # what was signed
    fingerprint: str  # of the key that signed it, as ssh-keygen -l shows it

    @property
    def predicate(self) -> Any:
        return self.statement["predicate"]


def opened(content: bytes, predicate_type: str, what: str) -> Signed:
    """The statement of an envelope, its signature checked by the public key in it.

    Raises Refused, in a sentence that begins with `what`, where it is none, was changed, or is of another type.
    """
    from cryptography.exceptions import InvalidSignature

    try:
        envelope = strict_json(content)
        payload = base64.b64decode(envelope["payload"], validate=True)
        statement = strict_json(payload, Fields)
        (signature,) = envelope["signatures"]
        signed = base64.b64decode(signature["sig"], validate=True)
        key = public_key(statement["predicate"]["signer"]["public_key"].encode())
    except (ValueError, KeyError, TypeError, AttributeError, binascii.Error) as error:
        raise Refused(f"{what} is not a DSSE envelope with one signature and its public key ({error}).") from error
    if envelope.get("payloadType") != PAYLOAD_TYPE or statement.get("_type") != STATEMENT_TYPE:
        raise Refused(f"{what} must be an in-toto Statement v1; got another type.")
    if statement.get("predicateType") != predicate_type:
        raise Refused(f"{what} must state a {predicate_type}; got {statement.get('predicateType')!r}.")
    try:
        key.verify(signed, pre_authentication(payload))
    except InvalidSignature:
        raise Refused(f"{what} was changed after it was signed, or signed by another key than it names.") from None
    return Signed(statement, fingerprint(key))


def digests_of(signed: Signed) -> dict[str, str]:
    """Name of what was signed -> its sha256. Raises Refused where a name occurs twice, which readers take
    differently."""
    subject = signed.statement["subject"]
    digests = {item["name"]: item["digest"]["sha256"] for item in subject}
    if len(digests) < len(subject):
        raise Refused("what was signed has a name twice")
    return digests


def pre_authentication(payload: bytes) -> bytes:
    """What DSSE signs: the payload with its type."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def public_key(content: bytes) -> Any:
    """An Ed25519 key from PEM, or from a line as in id_ed25519.pub. Raises ValueError for anything else."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        is_ssh = content.lstrip().startswith(b"ssh-")
        key = (serialization.load_ssh_public_key if is_ssh else serialization.load_pem_public_key)(content.strip())
    except (UnsupportedAlgorithm, ValueError) as error:
        raise ValueError(f"the signer's must be a public Ed25519 key in PEM or SSH form ({error})") from error
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError(f"the signer's must be a public Ed25519 key; got a {type(key).__name__}")
    return key


def fingerprint(key: Any) -> str:
    """As ssh-keygen -l shows it: SHA256 and base64 of the key in SSH's own form."""
    from cryptography.hazmat.primitives import serialization

    line = key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    digest = hashlib.sha256(base64.b64decode(line.split()[1])).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def strict_json(content: bytes, kind: type[dict[str, Any]] = dict) -> Any:
    """JSON without NaN and without a name twice in one object, which readers take differently. kind: of its objects.
    Raises ValueError."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = kind(pairs)
        if len(found) < len(pairs):
            raise ValueError("a name occurs twice in one object")
        return found

    try:
        text = content.decode()  # else json would guess the encoding
        return json.loads(text, object_pairs_hook=once, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def canonical(value: object) -> bytes:
    """One text for one meaning: sorted keys, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")
