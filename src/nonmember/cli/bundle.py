"""`nonmember bundle FOLDER...`: finished audits as one signed file that others can check."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nonmember.artifacts import Memory
from nonmember.artifacts.builder import NotHandedOver
from nonmember.cli import parser_of
from nonmember.cli.seal import add_key, key_of
from nonmember.corpora.sources.documents import InMemory, digest_of
from nonmember.corpora.sources.rows import rows_of
from nonmember.models import InMemory as ModelInMemory
from nonmember.results.outcomes import reason_of
from nonmember.results.result import CONFIG, PARTS, RESULT
from nonmember.runtime.files import file_hash, files_below, json_object
from nonmember_verify.commitments import secret_of

if TYPE_CHECKING:
    from nonmember.evidence.gathering import Gathered, Included

DESCRIPTION = """\
Write one signed file with finished audits: results, what their numbers come from, hashes of models, the seal, and a
page for people. It holds no text and no name of a document. Nothing is computed by a model: what the audits observed is
taken from the store.

  nonmember bundle outputs/audits/mine --key ~/.ssh/id_ed25519 --out mine.evidence.zip
  nonmember verify mine.evidence.zip"""

IN_MEMORY = (
    "An audit by nm.audit on documents in memory is bundled with their rows in a file (--data FILE: JSON Lines, as "
    "they were given and in their order); one on a model in memory cannot be bundled: save the model and audit that."
)
REVEALS = "The bundle holds the ids of all tokens in their order: with the tokenizer that is the text of the documents."


def main() -> None:
    """Print what the bundle holds and its hash."""
    given = _parser().parse_args()
    folders = _folders(given.folder)
    from nonmember.evidence.bundle import write_bundle
    from nonmember.evidence.gathering import Included
    from nonmember.evidence.seal import SEAL, keep_secret, secret_for

    key = key_of(given)
    sealed = any((folder / SEAL).is_file() for folder in folders)
    if sealed and given.secret is None:
        raise ValueError(
            "These audits were sealed; name the secret of the seal's commitments: --secret SEAL.private, the file that "
            "`nonmember seal` left beside the seal."
        )
    secret = secret_of(given.secret) if given.secret else secret_for(given.out)
    choice = Included(given.observations == "tokens", given.with_tokens)
    rows = [[dict(item.row) for item in rows_of(path, "JSON Lines", split=None)] for path in given.data]
    audits = _gathered(folders, given.store, secret, choice, rows, given.trust_remote_code)
    key.save()
    if given.secret is None:
        keep_secret(given.out, secret)
    files = write_bundle(audits, choice, key, given.out.absolute())
    if choice.token_ids:
        sys.stderr.write(f"{REVEALS}\n")
    if given.documents:
        _write_documents(audits, given.documents)
    sys.stdout.write(
        f"Bundled {len(audits)} audit{'s' if len(audits) > 1 else ''} in {len(files)} files, signed by "
        f"{key.fingerprint}.\n{given.out}  sha256 {file_hash(given.out)}\n"
    )


def _parser() -> argparse.ArgumentParser:
    parser = parser_of("bundle", DESCRIPTION)
    parser.add_argument("folder", type=Path, nargs="+", help="of one audit or of many; all below it are taken")
    parser.add_argument("--out", type=Path, required=True, help="the bundle, for example mine.evidence.zip")
    add_key(parser)
    parser.add_argument("--store", type=Path, help="the artifact store, if it was moved since the audit")
    parser.add_argument(
        "--data",
        type=Path,
        action="append",
        default=[],
        help="documents that nm.audit was given in memory: the same rows as JSON Lines (more than once for several)",
    )
    parser.add_argument(
        "--trust-remote-code", action="store_true", help="run the code of models of which the audits say so"
    )
    parser.add_argument("--secret", type=Path, help="the seal's file SEAL.private; without a seal OUT.private is made")
    parser.add_argument(
        "--observations",
        choices=("tokens", "scores"),
        default="tokens",
        help="token statistics (log-probabilities without ids and order), or scores of documents alone",
    )
    parser.add_argument("--with-tokens", action="store_true", help="token ids in their order: THIS IS THE TEXT")
    parser.add_argument("--documents", type=Path, help="also write the documents, for those who may see them")
    return parser


def _folders(given: Sequence[Path]) -> list[Path]:
    """Of finished audits, each once, by their names. Of a joined one (method=auto) its parts are taken."""
    found = {folder: files_below(folder, RESULT) for folder in given}
    folders = {path.parent.resolve() for paths in found.values() for path in paths}
    if empty := [folder for folder, paths in found.items() if not paths]:
        raise ValueError(f"There is no {RESULT} below {empty[0]}. Run an audit first, or name the folder of one.")
    joined = {folder for folder in folders if any(item.parent == folder / PARTS for item in folders)}
    for folder in sorted(joined):
        sys.stderr.write(f"{folder} joins several audits: its parts are bundled, and what joins them is not.\n")
    return sorted(folders - joined, key=lambda folder: (folder.name, str(folder)))


def _gathered(
    folders: Sequence[Path],
    store: Path | None,
    secret: bytes,
    choice: Included,
    rows: Sequence[list[dict[str, Any]]],
    trust_remote_code: bool,
) -> list[Gathered]:
    from omegaconf import OmegaConf

    from nonmember.config import runs
    from nonmember.config.roots import register
    from nonmember.config.safety import CODE, leaves
    from nonmember.config.words import literal
    from nonmember.evidence.gathering import KeptStore, gather

    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    register()
    memory, audits = Memory(), []
    for folder in folders:
        path = folder / CONFIG
        if not path.is_file():
            raise ValueError(f"{path} must lie beside the result: it holds the question. Run the audit again.")
        try:
            kept = json_object(path)
        except (ValueError, OSError) as error:
            raise ValueError(f"{path} cannot be read ({error}). Run the audit again.") from error
        if not trust_remote_code and any(value and key.endswith(CODE) for key, value in leaves(kept)):
            raise ValueError(f"{path} would have a model's own code run. If you trust it, add --trust-remote-code.")
        config = OmegaConf.create({**literal(kept), "seal": None})
        assert OmegaConf.is_dict(config)
        builder = runs.builder_of(config, KeptStore((store or Path(config.store)).absolute()), memory)
        for item in rows:
            InMemory(digest_of(item)).provide(builder, item)
        try:
            audit = runs.cell_of(config, folder).audit
            if any(isinstance(model.root(), ModelInMemory) for model in audit.models.values()):
                raise NotHandedOver("One of its models was in the memory of another program.")
            audits.append(gather(audit, builder, folder, secret, choice))
        except NotHandedOver as error:
            raise ValueError(f"{folder}: {error} {IN_MEMORY}") from None
        except (LookupError, TypeError, AttributeError, ArithmeticError) as error:
            raise ValueError(f"{folder} cannot be bundled: {reason_of(error)}. Run the audit again.") from error
    return audits


def _write_documents(audits: Sequence[Gathered], path: Path) -> None:
    texts = dict.fromkeys(pair for item in audits for pair in item.texts)
    lines = [json.dumps({"id": doc_id, "text": text}, ensure_ascii=False) for doc_id, text in texts]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
