"""A bundle: finished audits in one signed file. The same audits, key and secret give the same bytes.

statement.dsse.json          in-toto Statement: the hash of every other file, and what the bundle is
seal.json                    the seal that the audits were given
observations.json            what determines each table of observations, by its hash
tokens/HASH.parquet          token statistics, a row per document
audits/000/audit.json        question, commitments to the documents, how each column was measured
audits/000/result.json       without names of documents
audits/000/*.parquet         scores, answers without their text
"""

from __future__ import annotations

import io
import json
import os
import platform
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nonmember.evidence.gathering import Gathered, Included
from nonmember.evidence.page import page_of
from nonmember.evidence.question import code
from nonmember.evidence.redaction import require_no_text
from nonmember.evidence.seal import SEAL
from nonmember.evidence.signing import Key
from nonmember.results.result import DISTRIBUTION
from nonmember.runtime.files import replacing
from nonmember_verify.bundle import ENVELOPE
from nonmember_verify.envelope import PREDICATE, sha256

PAGE = "page.html"
EPOCH = (1980, 1, 1, 0, 0, 0)  # the date of every file in the archive


def write_bundle(audits: Sequence[Gathered], choice: Included, key: Key, path: Path) -> dict[str, bytes]:
    """Returns its files; a page lies beside it. Raises ValueError for text of documents in one, or several seals."""
    files = contents(audits)
    page = page_of(audits, files, choice).encode()
    require_no_text(files | {PAGE: page}, (text for item in audits for _, text in item.texts))
    predicate = {
        "format": 1,
        "code": code(),
        # Numbers may depend on it in their last digits, and trained weights in more.
        "machine": {"system": platform.system(), "architecture": platform.machine(), "cores": os.cpu_count()},
        "observations": bool(choice.observations),
        "token_ids": choice.token_ids,
        "seal": sha256(files[SEAL]) if SEAL in files else None,
        "audits": [
            {
                "folder": f"audits/{number:03}",
                "cell": item.described["cell"],
                "audit": item.described["audit"],
                "method": item.result["question"]["method"],
                "decision": item.result["verdict"]["decision"],
            }
            for number, item in enumerate(audits)
        ],
    }
    subject = [{"name": name, "digest": {"sha256": sha256(files[name])}} for name in sorted(files)]
    files[ENVELOPE] = key.sign(PREDICATE, subject, predicate)
    with replacing(path) as temporary:
        temporary.write_bytes(archived(files))
    path.with_suffix(".html").write_bytes(page)
    return files


def contents(audits: Sequence[Gathered]) -> dict[str, bytes]:
    """All files but page and statement."""
    if not audits:
        raise ValueError("A bundle needs one finished audit or more.")
    seals = {item.seal for item in audits}
    if len(seals) > 1:
        raise ValueError(
            "These audits were given different seals, or some of them none. Put those of one seal into one bundle."
        )
    files: dict[str, bytes] = {}
    keys: dict[str, Any] = {}
    for number, item in enumerate(audits):
        folder = f"audits/{number:03}"
        files[f"{folder}/audit.json"] = as_json(item.described)
        files[f"{folder}/result.json"] = as_json(item.result)
        tables = {name: item.tables[name] for name in item.tables if name != DISTRIBUTION}  # the seed gives it again
        files |= {f"{folder}/{name}": as_table(columns) for name, columns in tables.items()}
        files |= {f"tokens/{name}.parquet": as_table(columns) for name, columns in item.tokens.items()}
        keys |= item.keys
    files["observations.json"] = as_json(keys)
    if (seal := next(iter(seals))) is not None:
        files[SEAL] = seal
    return files


def as_json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def as_table(columns: Mapping[str, Any]) -> bytes:
    """Parquet. Values that are arrays themselves become lists."""
    sink = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), sink, compression="zstd")
    return sink.getvalue()


def archived(files: Mapping[str, bytes]) -> bytes:
    """A zip archive of files in the order of their names, stored as they are: Parquet is compressed already."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.create_system, entry.external_attr = 3, 0o100644 << 16
            archive.writestr(entry, content)
    return sink.getvalue()
