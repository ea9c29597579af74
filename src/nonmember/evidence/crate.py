"""A bundle as an RO-Crate, for archives of research data: its files in a folder, and ro-crate-metadata.json."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from nonmember.evidence.redaction import require_no_text
from nonmember.evidence.seal import SEAL
from nonmember_verify.archive import ENVELOPE
from nonmember_verify.bundle import Audit
from nonmember_verify.commitments import root
from nonmember_verify.envelope import PREDICATE, SEAL_PREDICATE, Signed, opened, sha256

METADATA = "ro-crate-metadata.json"
FORMATS = {".json": "application/json", ".html": "text/html", ".parquet": "application/vnd.apache.parquet"}
PROGRAM = "#nonmember"
SIGNER = "#signer"


def library() -> Any:
    """The modules of rocrate. Raises ValueError where it is missing."""
    try:
        import rocrate.model
        import rocrate.rocrate
    except ImportError as error:
        raise ValueError(
            f'A crate is made with the library rocrate, which is missing ({error}): pip install "nonmember[crate]"'
        ) from error
    return rocrate


def require_room(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} must be a folder that is empty or not there yet; a crate has nothing else in it.")


def write_crate(files: Mapping[str, bytes], texts: Iterable[str], folder: Path) -> None:
    """files: of a bundle.   texts: of the documents, none of which may get into the metadata.

    Raises ValueError where rocrate is missing, the folder is not empty, or the metadata would hold text.
    """
    require_room(folder)
    crate = _crate(files, library())
    metadata = json.dumps(crate.metadata.generate(), ensure_ascii=False)
    require_no_text({METADATA: metadata.encode("utf-8", "replace")}, texts)
    crate.write(folder)


def _crate(files: Mapping[str, bytes], rocrate: Any) -> Any:
    crate = rocrate.rocrate.ROCrate()
    signed = opened(files[ENVELOPE], PREDICATE, "The statement")
    audits = [Audit(item["folder"], files) for item in signed.predicate["audits"]]

    def add(identifier: str, kind: str, /, **properties: Any) -> Any:
        known = {name: value for name, value in properties.items() if value not in (None, "", [])}
        return crate.add(rocrate.model.ContextEntity(crate, identifier, {"@type": kind, **known}))

    signer = add(
        SIGNER,
        "Person",
        name=f"Holder of the key {signed.fingerprint}",
        identifier=signed.fingerprint,
        description="Known by an Ed25519 key alone, with which the bundle is signed.",
    )
    crate.name = f"Evidence from {len(audits)} audit{'s' if len(audits) > 1 else ''} of training data"
    crate.description = "; ".join(dict.fromkeys(_asked(item) for item in audits)) + ". Check it with nonmember-verify."
    crate.root_dataset["author"] = signer
    for name, content in files.items():
        crate.add_file(io.BytesIO(content), name, properties=_file(name, content))
    program = add(PROGRAM, "SoftwareApplication", **_program(signed))
    libraries: dict[str, Any] = {}
    actions = []
    for number, audit in enumerate(audits):
        for name, version in audit.result["provenance"]["versions"].items():
            if name != "nonmember" and (identifier := f"#{name}-{version}") not in libraries:
                libraries[identifier] = add(identifier, "SoftwareApplication", name=name, softwareVersion=version)
        claim = add(f"#verdict-{number:03}", "Claim", **_claim(audit))
        asked = [add(f"#{what}-{number:03}", kind, **described) for what, kind, described in _objects(audit)]
        own = [crate.dereference(name) for name in files if name.startswith(f"{audit.folder}/")]
        actions.append(
            add(
                f"#audit-{number:03}",
                "CreateAction",
                name=_asked(audit),
                description=_excluded(audit),
                identifier=audit.described["audit"],
                agent=signer,
                instrument=program,
                object=asked,
                result=[claim, *own],
            )
        )
    program["softwareRequirements"] = list(libraries.values())
    crate.root_dataset["mentions"] = actions
    return crate


def _file(name: str, content: bytes) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "sha256": sha256(content),
        "contentSize": str(len(content)),
        "encodingFormat": FORMATS.get(Path(name).suffix, "application/octet-stream"),
    }
    if name == ENVELOPE:
        properties["description"] = "in-toto Statement in a DSSE envelope: the hash of every other file, signed."
    if name == SEAL:
        date = opened(content, SEAL_PREDICATE, "The seal").predicate["date"]
        properties |= {
            "dateCreated": date,
            "description": "The question, fixed beforehand; the date is the signer's word.",
        }
    return properties


def _program(signed: Signed) -> dict[str, Any]:
    code, machine = signed.predicate["code"], signed.predicate["machine"]
    return {
        "name": "nonmember",
        "softwareVersion": code["nonmember"],
        "identifier": f"sha256 of its sources: {code['sources']}",
        "description": "The bundle was written on: " + ", ".join(f"{name} {item}" for name, item in machine.items()),
    }


def _asked(audit: Audit) -> str:
    question = audit.question
    return f"Was {question['corpus']} used to train {question['target'] or 'the model'}? (method {question['method']})"


def _claim(audit: Audit) -> dict[str, Any]:
    verdict, statistics = audit.result["verdict"], audit.statistics
    numbers = f"{statistics['name']} {statistics['value']}, p-value {statistics['p_value']}"
    return {"name": verdict["decision"], "text": verdict["allowed_claim"], "description": numbers}


def _objects(audit: Audit) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """What was asked about: name, kind and properties of the models and of the groups of documents."""
    for role in ("target", "reference"):
        if role in audit.described["recipes"]:
            label, key = audit.question.get(role), audit.result["provenance"]["keys"].get(role)
            description = f"The {role}, a language model. Its recipe is in {audit.folder}/audit.json."
            yield role, "CreativeWork", {"name": label or role, "identifier": key, "description": description}
    labels = {"suspect": audit.question["corpus"], "heldout": audit.question["heldout"]}
    for group, commitments in audit.described["documents"].items():
        description = f"{len(commitments)} documents, which are not in the crate. Identified by their Merkle root."
        described = {"name": labels.get(group) or group, "identifier": root(commitments), "description": description}
        yield f"documents-{group}", "Dataset", described


def _excluded(audit: Audit) -> str:
    reasons = Counter(
        reason for documents in audit.result["exclusions"]["documents"].values() for reason in documents.values()
    )
    counted = ", ".join(f"{number} ({reason})" for reason, number in sorted(reasons.items()))
    return f"Documents left out: {counted or 'none'}."
