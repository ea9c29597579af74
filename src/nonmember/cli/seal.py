"""`nonmember seal`: fixes the question of an audit, or of a grid of them, in one signed file before it is put."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from nonmember.cli import parser_of
from nonmember.evidence.signing import Key

DESCRIPTION = """\
Write one signed and dated file that fixes the question: the documents (a salted hash of each), the models, the method
with all its settings, thresholds, seeds, and the program itself. Nothing is run.

  nonmember seal --key KEY --out seal.json ARGUMENTS-OF-AN-AUDIT
  nonmember audit seal=seal.json ARGUMENTS-OF-AN-AUDIT

An audit with seal=FILE then refuses to run with any other settings, models or documents. Give the seal, or its hash, to
the other side before the audit is run: nobody else certifies the date in it. Keep the file OUT.private: without it
nobody can show which documents were meant."""

SEVERAL = (
    "A seal covers the question of one method, but method=auto runs several; which ones depends on what the blind "
    "baseline finds. Seal each that `nonmember advise` names, as in method=prism."
)


def main() -> None:
    """Print what was sealed and the hash of the file."""
    parser = parser_of("seal", DESCRIPTION)
    parser.add_argument("--out", type=Path, required=True, help="where the seal goes, for example seal.json")
    add_key(parser)
    given, overrides = parser.parse_known_args()
    if given.out.exists():
        raise ValueError(f"{given.out} already exists, and a seal is not written twice. Name another file.")
    from nonmember.evidence.seal import cell_of_seal, keep_secret, secret_for, write_seal

    key = key_of(given)
    secret = secret_for(given.out)
    # In this process, one after the other: nothing here takes long.
    sys.argv[1:] = [*(word for word in overrides if not word.startswith(("launcher=", "seal="))), "launcher=basic"]
    cells: list[dict[str, Any]] = []
    looks: list[int] = []

    def seal(config: DictConfig, folder: Path) -> None:
        from nonmember.audits.answer import other_looks
        from nonmember.audits.keys import audit_keys
        from nonmember.config.runs import builder_of, cell_of
        from nonmember.methods import Auto

        cell, builder = cell_of(config, folder), builder_of(config)
        if isinstance(cell.audit.method, Auto):
            raise ValueError(SEVERAL)
        keys = audit_keys(cell.audit, builder)
        _require_unanswered(keys["audit"], folder.parents[1])
        looks.append(other_looks(keys, builder))
        cells.append(cell_of_seal(cell.audit, builder, keys, folder.name, secret))

    from nonmember.config.roots import run_with_hydra

    run_with_hydra("audit", seal)
    if not cells:  # as with --help and --cfg
        return
    key.save()
    keep_secret(given.out, secret)
    digest = write_seal(cells, key, given.out.absolute())
    number = sum(len(group["commitments"]) for cell in cells for group in cell["documents"].values())
    sys.stdout.write(
        f"Sealed {len(cells)} audit{'s' if len(cells) > 1 else ''} with {number} documents, signed by "
        f"{key.fingerprint}.\n{given.out}  sha256 {digest}\n"
    )
    if any(looks):
        sys.stdout.write(
            f"{max(looks)} other audits of these documents and a target of these were made before, in this store: a "
            "seal fixes the question from now on, and says nothing of looks that were had. Say so to who checks.\n"
        )


def _require_unanswered(audit: str, audits: Path) -> None:
    """Raises ValueError where the question has a result below `audits`, under whatever name it was put."""
    from nonmember.cli.store import keys_of_results

    for path, keys in keys_of_results([audits])[0].items():
        if keys.get("audit") == audit:
            raise ValueError(
                f"This question already has a result, {path}, so a seal could not show that it was fixed in advance. "
                "Seal a question that has not been run yet."
            )


def add_key(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--key", type=Path, help="private Ed25519 key: PEM, or an SSH key such as ~/.ssh/id_ed25519")
    group.add_argument("--new-key", type=Path, help="make a key in this file (and FILE.pub), without a password")


def key_of(given: argparse.Namespace) -> Key:
    return Key.new(given.new_key.expanduser()) if given.new_key else Key.load(given.key.expanduser())
