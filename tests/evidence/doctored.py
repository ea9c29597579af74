"""Bundles to doctor, and how they are doctored.

Most are signed anew by the very key of the bundle: a dishonest auditor's, who recomputes hashes as needed.
"""

from __future__ import annotations

import base64
import functools
import io
import json
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from made_up_audits import SECRET, audited, builder, bundled, checked, gathered, key
from made_up_questions import (
    CLUSTERED,
    DIFFERENCE,
    DOSE,
    EXTRACTION,
    HEAVY,
    KDS,
    KNOWING,
    LLM_DI,
    ORDER,
    PACOST,
    PRISM,
    PRISM_GATES,
    READ,
    audit,
    canaries,
    decop,
    identifiers,
    single_passages,
    texts,
)

from nonmember.audits.keys import audit_keys
from nonmember.audits.question import Audit
from nonmember.corpora import Shuffled
from nonmember.evidence.bundle import archived, as_json, as_table
from nonmember.evidence.gathering import Included, gather
from nonmember.evidence.seal import Seal, cell_of_seal, write_seal
from nonmember.evidence.signing import Key
from nonmember_verify.bundle import ENVELOPE
from nonmember_verify.envelope import PREDICATE, SEAL_PREDICATE, opened, sha256
from nonmember_verify.known import INVALID
from nonmember_verify.questions import key_hash

Files = dict[str, bytes]
OTHER_KEY = Key(Ed25519PrivateKey.from_private_bytes(bytes(32)))
ANSWERS = "audits/000/answers.parquet"
RESULT, TOLD, SCORES = "audits/000/result.json", "audits/000/audit.json", "audits/000/scores.parquet"

# Bundles to doctor ----------------------------------------------------------------------------------------------------


@functools.cache
def folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="lies"))


@functools.cache
def sealed() -> Files:
    """Two audits of one seal: PRISM of a reader, and difference in differences of the same."""
    audits = {"one": audit(PRISM, target=READ), "two": audit(DIFFERENCE, target=READ)}
    return under_one_seal(audits, folder() / "sealed")


def under_one_seal(audits: Mapping[str, Audit], root: Path) -> Files:
    root.mkdir()
    cells = []
    for name, item in audits.items():
        artifacts = builder(root / "store", item.suspect)
        cells.append(cell_of_seal(item, artifacts, audit_keys(item, artifacts), name, SECRET))
    write_seal(cells, key(), root / "seal.json")
    seal = Seal.load(root / "seal.json")
    found = []
    for name, item in audits.items():
        (root / name).mkdir()
        artifacts = builder(root / "store", item.suspect)
        seal.require(item, artifacts, audit_keys(item, artifacts), name)
        seal.leave(root / name, audit_keys(item, artifacts)["audit"])
        artifacts = audited(item, root / name, {"seal": seal.hash})
        found.append(gather(item, artifacts, root / name, SECRET, Included()))
    return bundled(found, root / "bundle.zip", Included())


@functools.cache
def plain(name: str) -> Files:
    """One audit without a seal."""
    item = {
        "prism": lambda: audit(PRISM),
        "prism by clusters": lambda: audit(replace(PRISM, sampling_unit="cluster"), suspect=CLUSTERED),
        "gates": lambda: audit(replace(PRISM, gates=PRISM_GATES), general=texts(200, "general")),
        "knowing": lambda: audit(KNOWING, general=texts(200, "general")),
        "dose": lambda: audit(DOSE, heldout=None),
        "canaries": canaries,
        "decop": decop,
        "identifiers": identifiers,
        "pacost": lambda: audit(PACOST),
        "passages": single_passages,
        "difference": lambda: audit(DIFFERENCE, target=READ),
        "extraction": lambda: audit(EXTRACTION, target=HEAVY),
        "llm_di": lambda: audit(LLM_DI),
        "kds": lambda: audit(KDS),
        "order": lambda: audit(replace(ORDER, control=True), suspect=Shuffled(texts(60, "suspect"), "order")),
    }[name]()
    choice = Included(token_ids=name == "extraction")  # which takes tokens in their order
    return bundled([gathered(item, folder() / name, choice)], folder() / f"{name}.zip", choice)


# How they are doctored ------------------------------------------------------------------------------------------------


def signed(files: Files, by: Key | None = None, **changes: Any) -> Files:
    """Signed anew, with what the statement tells of the audits as the files have it."""
    predicate = dict(opened(files[ENVELOPE], PREDICATE, "it").predicate)
    files = {name: content for name, content in files.items() if name != ENVELOPE}
    for item in predicate["audits"]:
        result, told = (json.loads(files[f"{item['folder']}/{name}"]) for name in ("result.json", "audit.json"))
        item |= {"decision": result["verdict"]["decision"], "audit": told["audit"], "cell": told["cell"]}
        item |= {"method": result["question"]["method"]}
    subject = [{"name": name, "digest": {"sha256": sha256(files[name])}} for name in sorted(files)]
    return files | {ENVELOPE: (by or key()).sign(PREDICATE, subject, predicate | changes)}


def edited(name: str, change: Callable[[Any], object], **files: Any) -> Callable[[Files], Files]:
    """A JSON file changed and everything signed anew."""

    def lie(files: Files) -> Files:
        value = json.loads(files[name])
        change(value)
        return signed({**files, name: as_json(value)})

    return lie


def together(*lies: Callable[[Files], Files]) -> Callable[[Files], Files]:
    return lambda files: functools.reduce(lambda done, lie: lie(done), lies, files)


def rows(name: str, change: Callable[[dict[str, list[Any]]], object]) -> Callable[[Files], Files]:
    """A table changed and everything signed anew."""

    def lie(files: Files) -> Files:
        columns = pq.read_table(io.BytesIO(files[name])).to_pydict()
        change(columns)
        columns = {
            column: [np.array(item, np.float32) for item in values]
            if values and isinstance(values[0], list)
            else values
            for column, values in columns.items()
        }
        return signed({**files, name: as_table(columns)})

    return lie


def put(*path: Any) -> Callable[[Any], None]:
    """The last of these at the place that the others name."""
    *places, last, value = path

    def change(node: Any) -> None:
        for place in places:
            node = node[place]
        node[last] = value(node[last]) if callable(value) else value

    return change


def in_result(*path: Any) -> Callable[[Files], Files]:
    return edited(RESULT, put(*path))


def in_numbers(*path: Any) -> Callable[[Files], Files]:
    return in_result("statistics", *path)


def in_details(*path: Any) -> Callable[[Files], Files]:
    return in_numbers("details", *path)


def gate_lost(name: str) -> Callable[[Files], Files]:
    return in_details("gates", lambda gates: {other: gate for other, gate in gates.items() if other != name})


def in_told(*path: Any) -> Callable[[Files], Files]:
    return edited(TOLD, put(*path))


def in_scores(*path: Any) -> Callable[[Files], Files]:
    return rows(SCORES, put(*path))


def drop_row(columns: dict[str, list[Any]]) -> None:
    for values in columns.values():
        values.pop(3)


def another_digit(value: float) -> float:
    return float(np.nextafter(value, 2))


def reseal(change: Callable[[dict[str, Any]], None], by: Key | None = None) -> Callable[[Files], Files]:
    """Another seal in the bundle, and all hashes of it as they should be."""

    def lie(files: Files) -> Files:
        statement = opened(files["seal.json"], SEAL_PREDICATE, "it").statement
        predicate = json.loads(json.dumps(statement["predicate"]))
        change(predicate)
        content = (by or key()).sign(SEAL_PREDICATE, statement["subject"], predicate)
        files = {**files, "seal.json": content}
        for number in range(2):
            for name, edit in (
                ("result.json", put("provenance", "keys", "seal", sha256(content))),
                ("audit.json", put("receipt", "seal", sha256(content))),
            ):
                value = json.loads(files[f"audits/00{number}/{name}"])
                edit(value)
                files[f"audits/00{number}/{name}"] = as_json(value)
        return signed(files, seal=sha256(content))

    return lie


def with_identity(change: Callable[[dict[str, Any]], None]) -> Callable[[Files], Files]:
    """Another question throughout: settings, identity and the hash that names the audit."""

    def lie(files: Files) -> Files:
        told, result = json.loads(files[TOLD]), json.loads(files[RESULT])
        change(told["identity"])
        told["audit"] = result["provenance"]["keys"]["audit"] = key_hash(told["identity"])
        result["question"]["settings"] = told["identity"]["method"]
        asked = told["identity"]["method"]
        result["question"] |= {"seed": told["identity"]["seed"], "alpha": asked["alpha"], "method": asked["method"]}
        return signed({**files, TOLD: as_json(told), RESULT: as_json(result)})

    return lie


def without(*names: str) -> Callable[[Files], Files]:
    return lambda files: {name: content for name, content in files.items() if name not in names}


def tokens_of(files: Mapping[str, bytes], column: str) -> str:
    return str(json.loads(files[TOLD])["columns"]["suspect"][column]["tables"][0])


def one_cell_less(files: Files) -> Files:
    files = {name: content for name, content in files.items() if not name.startswith("audits/001/")}
    listed = opened(files[ENVELOPE], PREDICATE, "it").predicate["audits"][:1]
    predicate = {**opened(files[ENVELOPE], PREDICATE, "it").predicate, "audits": listed}
    subject = [{"name": name, "digest": {"sha256": sha256(files[name])}} for name in sorted(files) if name != ENVELOPE]
    return {**files, ENVELOPE: key().sign(PREDICATE, subject, predicate)}


def tables_exchanged(files: Files) -> Files:
    told = json.loads(files[TOLD])
    columns = told["columns"]["suspect"]
    columns["target"]["tables"] = columns["reference"]["tables"]
    scores = pq.read_table(io.BytesIO(files[SCORES])).to_pydict()
    scores["target"] = scores["reference"]
    return signed({**files, TOLD: as_json(told), SCORES: as_table(scores)})


def observation(place: str, value: str, *, rename: bool) -> Callable[[Files], Files]:
    """The key of the target's token statistics changed; with `rename` it gets the hash that it then has."""

    def lie(files: Files) -> Files:
        name, keys, told = tokens_of(files, "target"), json.loads(files["observations.json"]), json.loads(files[TOLD])
        changed = {**keys[name], place: value}
        new = key_hash(changed) if rename else name
        keys[new] = changed
        files = {**files, f"tokens/{new}.parquet": files[f"tokens/{name}.parquet"]}
        told["columns"]["suspect"]["target"]["tables"] = [new]
        return signed({**files, "observations.json": as_json(keys), TOLD: as_json(told)})

    return lie


def dropped_everywhere(files: Files) -> Files:
    """A document that was never there: neither committed nor scored, and the result counts without it."""
    files = rows(SCORES, drop_row)(files)
    files = edited(TOLD, lambda told: told["documents"]["suspect"].pop(3))(files)
    return in_numbers("num_documents", lambda number: number - 1)(files)


def excluded(files: Files) -> Files:
    document = json.loads(files[TOLD])["documents"]["suspect"][3]
    reason = {"suspect": {document: "target: no scored token: the text has fewer than two tokens"}}
    files = rows(SCORES, drop_row)(files)
    files = in_result("exclusions", "documents", reason)(files)
    return in_numbers("num_documents", lambda number: number - 1)(files)


def payload(change: Callable[[dict[str, Any]], None]) -> Callable[[Files], Files]:
    """The statement changed under its old signature."""

    def lie(files: Files) -> Files:
        envelope = json.loads(files[ENVELOPE])
        statement = json.loads(base64.b64decode(envelope["payload"]))
        change(statement)
        envelope["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()
        return {**files, ENVELOPE: as_json(envelope)}

    return lie


def raw(name: str, old: bytes, new: bytes) -> Callable[[Files], Files]:
    def lie(files: Files) -> Files:
        assert old in files[name]
        return {**files, name: files[name].replace(old, new, 1)}

    return lie


def another_signature(files: Files) -> Files:
    envelope = json.loads(files[ENVELOPE])
    theirs = json.loads(OTHER_KEY.sign(PREDICATE, [], {}))
    envelope["signatures"] = theirs["signatures"]
    return {**files, ENVELOPE: as_json(envelope)}


def two_signatures(files: Files) -> Files:
    envelope = json.loads(files[ENVELOPE])
    return {**files, ENVELOPE: as_json({**envelope, "signatures": envelope["signatures"] * 2})}


def written(files: Files, path: Path) -> Path:
    path.write_bytes(archived(files))
    return path


def made_invalid(result: Any) -> None:
    """Verdict and answer of an audit of which nothing may be concluded."""
    documents = f'these {result["statistics"]["num_documents"]} documents ("{result["question"]["corpus"]}")'
    sentence = f"No conclusion can be drawn about {documents}: a precondition of the test failed."
    result["verdict"] |= {"decision": "invalid", "allowed_claim": INVALID}
    result["answer"] |= {"conclusion": "invalid", "sentence": sentence, "p": None, "p_error": None}


def require_found(path: Path, sentence: str, **given: Any) -> None:
    failures = checked(path, **given).failures
    assert failures, "it passed"
    assert any(re.search(sentence, line.told) for line in failures), "\n".join(map(str, failures))
