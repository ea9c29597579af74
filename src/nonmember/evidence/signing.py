"""Keys, and statements signed with them. `nonmember_verify.envelope` reads what is written here."""

from __future__ import annotations

import getpass
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nonmember_verify.envelope import PAYLOAD_TYPE, STATEMENT_TYPE, canonical, fingerprint

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

HOW = "Make one with `ssh-keygen -t ed25519 -f FILE`, or give --new-key with the name of a file that is not there."


class Key:
    """A private Ed25519 key: an OpenSSH key or PEM."""

    def __init__(self, private: Ed25519PrivateKey, unwritten: Path | None = None):
        self._private = private
        self._unwritten = unwritten

    @classmethod
    def load(cls, path: Path) -> Key:
        """Asks for its password on the terminal where it has one. Raises ValueError where it is no such key."""
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        if not path.is_file():
            raise ValueError(f"There is no key at {path}. {HOW}")
        content = path.read_bytes()
        is_ssh = b"OPENSSH PRIVATE KEY" in content
        load: Any = serialization.load_ssh_private_key if is_ssh else serialization.load_pem_private_key
        try:
            try:
                private = load(content, None)
            except TypeError:  # it has a password
                private = load(content, getpass.getpass(f"Password of {path}: ").encode())
        except (ValueError, UnsupportedAlgorithm) as error:
            raise ValueError(f"{path} must be a private Ed25519 key in OpenSSH or PEM form ({error}). {HOW}") from error
        if not isinstance(private, Ed25519PrivateKey):
            raise ValueError(f"{path} must be an Ed25519 key; got a {type(private).__name__}. {HOW}")
        return cls(private)

    @classmethod
    def new(cls, path: Path) -> Key:
        """Makes one, which is in no file before `save`. Raises ValueError where there is a file."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        if path.exists():
            raise ValueError(f"{path} already exists; give it as --key, or name another file.")
        return cls(Ed25519PrivateKey.generate(), path)

    def save(self) -> None:
        """Writes a new one to a file that only its owner may read, and the public part to FILE.pub."""
        from cryptography.hazmat.primitives import serialization

        if (path := self._unwritten) is None:
            return
        content = self._private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, content)
        path.with_name(f"{path.name}.pub").write_bytes(self._public_line + b"\n")
        self._unwritten = None

    @property
    def _public_line(self) -> bytes:
        from cryptography.hazmat.primitives import serialization

        public = self._private.public_key()
        return public.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)

    @property
    def fingerprint(self) -> str:
        return fingerprint(self._private.public_key())

    def sign(self, predicate_type: str, subject: Sequence[Mapping[str, Any]], predicate: Mapping[str, Any]) -> bytes:
        """An in-toto Statement with the public key in its predicate, in a DSSE envelope."""
        from securesystemslib.dsse import Envelope
        from securesystemslib.signer import CryptoSigner

        signer = {"public_key": self._public_line.decode(), "fingerprint": self.fingerprint}
        statement = {
            "_type": STATEMENT_TYPE,
            "subject": list(subject),
            "predicateType": predicate_type,
            "predicate": {**predicate, "signer": signer},
        }
        envelope = Envelope(canonical(statement), PAYLOAD_TYPE, {})
        envelope.sign(CryptoSigner(self._private))
        return (json.dumps(envelope.to_dict(), indent=1) + "\n").encode()


def write_private(path: Path, content: bytes) -> None:
    """A new file that only its owner may read, on the disk. Raises FileExistsError where there is one."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
