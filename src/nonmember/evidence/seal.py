"""A seal: one signed and dated file that fixes questions before they are put.

It holds no text. Whoever is to believe that it was there before the results has to be given it, or its hash, before:
the date in it is the signer's word.
"""

from __future__ import annotations

import datetime
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nonmember.artifacts import Builder
from nonmember.audits.question import Audit
from nonmember.evidence.question import code, question_of
from nonmember.evidence.redaction import require_no_text
from nonmember.evidence.signing import Key, write_private
from nonmember.runtime.files import write_text_atomically
from nonmember.runtime.source import versions
from nonmember_verify.commitments import KEY_BYTES, commitment, root, secret_of
from nonmember_verify.envelope import SEAL_PREDICATE, Signed, canonical, opened, sha256
from nonmember_verify.questions import differences

SEAL, RECEIPT = "seal.json", "sealed.json"  # in the folder of an audit that was given one
PRIVATE = ".private"  # what the name of the file with the secret of the commitments ends in
TOLD = 3  # differences that a refusal names
OTHERWISE = "{where}: {one} was sealed, {other} is asked"


def now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def cell_of_seal(audit: Audit, builder: Builder, keys: Mapping[str, str], name: str, secret: bytes) -> dict[str, Any]:
    """What a seal says of one audit: its question and its documents."""
    documents, texts = dict[str, Any](), list[str]()
    number: dict[tuple[str, ...], int] = {}  # of documents that belong together, the same in all groups
    for group, described in audit.groups.items():
        items = builder.get(described.corpus).documents
        texts += [item.text for item in items]
        commitments = [commitment(secret, item.doc_id, item.text) for item in items]
        keys_of_units = [(item.cluster_id,) if item.cluster_id else (group, item.doc_id) for item in items]
        units = [number.setdefault(key, len(number)) for key in keys_of_units]
        documents[group] = {"root": root(commitments), "commitments": commitments, "units": units}
    sealed = {**question_of(audit, builder, keys, name), "documents": documents}
    content = json.dumps(sealed, ensure_ascii=False).encode("utf-8", "replace")
    require_no_text({f"The seal of {name}": content}, texts)
    return sealed


def write_seal(cells: Sequence[Mapping[str, Any]], key: Key, path: Path) -> str:
    """The seal of all these audits, none of which may be left out of a bundle. Returns the hash of the file."""
    predicate = {"date": now(), "code": code(), "versions": versions(), "cells": list(cells)}
    subject = [{"name": cell["cell"], "digest": {"sha256": sha256(canonical(cell))}} for cell in cells]
    content = key.sign(SEAL_PREDICATE, subject, predicate)
    write_text_atomically(path, content.decode())
    return sha256(content)


def secret_for(path: Path) -> bytes:
    """The secret of the commitments in a file; where none is kept yet, a new one for `keep_secret`. Whoever has it and
    a document can show that it is a committed one; who has it alone can test guesses."""
    private = path.with_name(path.name + PRIVATE)
    return secret_of(private) if private.is_file() else secrets.token_bytes(KEY_BYTES)


def keep_secret(path: Path, secret: bytes) -> None:
    """Writes it beside the file, unless it is there."""
    private = path.with_name(path.name + PRIVATE)
    if not private.is_file():
        private.parent.mkdir(parents=True, exist_ok=True)
        write_private(private, json.dumps({"key": secret.hex()}).encode() + b"\n")


@dataclass(frozen=True)
class Seal:
    """A seal that was read and whose signature holds."""

    path: Path
    content: bytes
    signed: Signed

    @classmethod
    def load(cls, path: Path) -> Seal:
        if not path.is_file():
            raise ValueError(f"There is no seal at {path}. Make one with: nonmember seal --out {path} ...")
        content = path.read_bytes()
        return cls(path, content, opened(content, SEAL_PREDICATE, f"The seal {path}"))

    @property
    def hash(self) -> str:
        return sha256(self.content)

    @property
    def cells(self) -> dict[str, Mapping[str, Any]]:
        return {cell["cell"]: cell for cell in self.signed.predicate["cells"]}

    def require(self, audit: Audit, builder: Builder, keys: Mapping[str, str], name: str) -> None:
        """Refuse, naming what differs, an audit that is not one of the sealed ones, or another program."""
        asked = question_of(audit, builder, keys, name)

        def unlikeness(cell: Mapping[str, Any]) -> tuple[bool, int]:
            return cell["audit"] != keys["audit"], len(list(differences(cell["identity"], asked["identity"])))

        sealed = self.cells.get(name) or min(self.cells.values(), key=unlikeness)
        stated = {name: value for name, value in sealed.items() if name not in ("documents", "cell", "audit")}
        present = {name: value for name, value in asked.items() if name not in ("cell", "audit")}
        fixed = self.signed.predicate
        differing = [
            *differences(fixed["code"], code(), "code", OTHERWISE),
            *differences(fixed["versions"], versions(), "versions", OTHERWISE),
            *differences(stated, present, words=OTHERWISE),
        ]
        if differing:
            more = f" and {len(differing) - TOLD} more" if len(differing) > TOLD else ""
            raise ValueError(
                f"The seal {self.path} does not match this audit: {'; '.join(differing[:TOLD])}{more}. Run the sealed "
                "audit, or omit the seal."
            )

    def leave(self, folder: Path, audit: str) -> None:
        """A copy in the folder of an audit that begins now, and when it began."""
        write_text_atomically(folder / SEAL, self.content.decode())
        receipt = {"seal": self.hash, "audit": audit, "started": now()}
        write_text_atomically(folder / RECEIPT, json.dumps(receipt, indent=1) + "\n")
