"""All checks of a bundle, in order."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nonmember_verify.bundle import ENVELOPE, Audit, read
from nonmember_verify.canaries import commitment_of, read_private
from nonmember_verify.envelope import PREDICATE, Refused, Signed, digests_of, opened, sha256, unread
from nonmember_verify.holdout import read_draw
from nonmember_verify.known import unknown_of
from nonmember_verify.methods import METHODS
from nonmember_verify.methods.canary import check_drawn, check_revealed
from nonmember_verify.questions import check_documents, check_opened, check_question, check_seal
from nonmember_verify.report import Report, some
from nonmember_verify.scores import Tables, check_exclusions, check_scores
from nonmember_verify.verdicts import check_verdict

FORMAT = 1  # of a bundle
SCHEMA_VERSION = 3  # of result.json
FILES = re.compile(
    r"statement\.dsse\.json|seal\.json|observations\.json|tokens/[0-9a-f]{16}\.parquet|"
    r"audits/[0-9]{3,}/(audit\.json|result\.json|(scores|answers|texts)\.parquet)"
)


@dataclass(frozen=True)
class Given:
    """What the checker has beside the bundle."""

    fingerprint: str | None = None  # of the key that should have signed
    documents: Sequence[tuple[str, str]] = ()  # ids and texts of what should be the committed documents
    secret: bytes | None = None  # of the commitments
    canaries: Path | None = None  # the private file of canaries
    model: Path | None = None  # folder of the target
    observe: Again | None = None  # has the target read documents again

    @property
    def has_documents(self) -> bool:
        return bool(self.documents) and self.secret is not None


Again = Callable[[Mapping[str, bytes], list[Audit], Given, Report], None]


def verify(path: Path, given: Given) -> Report:
    """A line for each check. What cannot even be read is a failure, and the last one."""
    report = Report()
    try:
        files = read(path)
        report.ok("archive", f"{len(files)} files, and nothing but files.")
        signed = _check_statement(files, given, report)
        _check_names(files, report)
        if (form := signed.predicate["format"]) != FORMAT:
            report.taken_as_stated(f"format {form!r} of a bundle is unknown to this verifier")
            return report
        audits = _audits(files, signed, report)
        seal, tables = check_seal(files, audits, signed, report), Tables(files)
        check_audits(tables, audits, report, observed=given.model is not None)
        _check_given(files, audits, given, report)
        _tell_unread(report, {ENVELOPE: signed.predicate, "seal.json": seal, "observations.json": tables.keys})
    except OSError:  # of a file that cannot be read
        raise
    except Refused as error:
        report.failed("bundle", str(error))
    except Exception as error:  # whatever values lead to that are not what a bundle holds
        report.failed("bundle", f"It does not hold what a bundle holds ({type(error).__name__}: {error}).")
    return report


# The statement and its files ------------------------------------------------------------------------------------------


def _check_statement(files: Mapping[str, bytes], given: Given, report: Report) -> Signed:
    if ENVELOPE not in files:
        raise Refused(f"{ENVELOPE} is missing: nothing is signed.")
    signed = opened(files[ENVELOPE], PREDICATE, "The statement")
    if given.fingerprint is None:
        report.ok("signature", f"by {signed.fingerprint}.")
        why = "whose key that is; compare its fingerprint with one that you had otherwise (--signer FILE.pub)"
        report.unchecked("signer", why)
    else:
        report.require(
            "signature",
            given.fingerprint == signed.fingerprint,
            f"by the key you named, {signed.fingerprint}.",
            f"by another key ({signed.fingerprint}) than you named ({given.fingerprint}).",
        )
    stated = digests_of(signed)
    found = {name: sha256(content) for name, content in files.items() if name != ENVELOPE}
    problems = [
        f"{name} is missing" if name not in found else f"{name} was changed after it was signed"
        for name in sorted(stated)
        if found.get(name) != stated[name]
    ] + [f"{name} is there and was not signed" for name in sorted(found.keys() - stated.keys())]
    report.require_none("files", problems, f"all {len(stated)} have the signed hashes.")
    return signed


def _check_names(files: Mapping[str, bytes], report: Report) -> None:
    """A bundle holds data alone, and of those only what checks read."""
    if opened_elsewhere := [name for name in files if not name.endswith((".json", ".parquet"))]:
        report.failed("files", f"a bundle holds no {opened_elsewhere[0]}, which no check reads: do not open it.")
    if strange := [name for name in files if not FILES.fullmatch(name) and name not in opened_elsewhere]:
        report.unchecked("further files", f"{some(strange)}, which this verifier does not know or does not read")


def _audits(files: Mapping[str, bytes], signed: Signed, report: Report) -> list[Audit]:
    listed: list[Mapping[str, Any]] = list(signed.predicate["audits"])
    folders = {"/".join(name.split("/")[:2]) for name in files if name.startswith("audits/")}
    audits = [Audit(item["folder"], files) for item in listed]
    wrong = []
    if folders != {item["folder"] for item in listed} or len(folders) != len(listed):
        wrong.append("the audits in the archive are not those of the statement")
    for item, audit in zip(listed, audits, strict=True):
        found = {"cell": audit.cell, "audit": audit.described["audit"]}
        found |= {"method": audit.question["method"], "decision": audit.result["verdict"]["decision"]}
        wrong += [
            f"{name} of {item['folder']} is {value!r} in its files and {item[name]!r} in the statement"
            for name, value in found.items()
            if item[name] != value
        ]
    described = some([f"{item['cell']} by {item['method']}, {item['decision']}" for item in listed])
    report.require_none("statement", wrong, f"of {len(audits)} audits, which are those in the files ({described}).")
    return audits


# Audits ---------------------------------------------------------------------------------------------------------------


def check_audits(tables: Tables, audits: list[Audit], report: Report, *, observed: bool = False) -> None:
    """Everything that concerns single audits and needs no signature. observed: whether the target is asked as well."""
    for audit in audits:
        own = report.of(audit, audits)
        trained = []
        try:
            _check_audit(audit, tables, own)
            trained = [role for role, recipe in audit.described["recipes"].items() if "teacher" in recipe]
        except Exception as error:
            own.failed("result", f"it lacks what a result of its method has ({type(error).__name__}: {error}).")
        _tell_unread(own, {"result.json": audit.result, "audit.json": audit.described})
        if trained:
            why = f"that {some(trained)} came from the stated recipes; running the audit again shows it"
            own.unchecked("training", why)
        if not observed:
            own.unchecked("observation", "that the models said what is stated; --model observes documents again")


def _check_audit(audit: Audit, tables: Tables, report: Report) -> None:
    """What this verifier does not know, as later versions may write it, is no lie: it is named, and nothing that hangs
    on it is recomputed."""
    if (version := audit.result["schema_version"]) != SCHEMA_VERSION:
        report.taken_as_stated(f"schema version {version!r} is unknown to this verifier")
        return
    check_question(audit, report)
    check_documents(audit, report)
    if unknown := unknown_of(audit):
        report.taken_as_stated(f"{', '.join(unknown)} is unknown to this verifier")
        return
    check_scores(audit, tables, report)
    if (method := audit.question["method"]) in METHODS:
        check_verdict(audit, METHODS[method](audit, report), report)
        check_exclusions(audit, tables, report)
    else:
        report.taken_as_stated(f"the arithmetic of {method} is not implemented here a second time")


def _tell_unread(report: Report, objects: Mapping[str, Any]) -> None:
    """The fields that no check has read, by file: whoever signed may have written anything there."""
    found = {name: fields for name, item in objects.items() if (fields := list(unread(item)))}
    if found:
        number = sum(map(len, found.values()))
        names = "; ".join(f"{name}: {', '.join(fields)}" for name, fields in found.items())
        report.unchecked("fields that no check reads", f"{number}, taken as stated (--fields names them)", names)


# What the checker has -------------------------------------------------------------------------------------------------


def _check_given(files: Mapping[str, bytes], audits: list[Audit], given: Given, report: Report) -> None:
    if given.has_documents:
        for audit in audits:
            check = check_drawn if audit.question["method"] == "identifiers" else check_opened
            check(audit, given.documents, given.secret or b"", report.of(audit, audits))
    elif given.documents or (given.secret is not None and given.canaries is None):
        report.failed("text of the documents", "not checked as requested: it needs --documents and --secret together.")
    else:
        report.unchecked("text of the documents", "needs --documents and --secret")
    _check_canaries(audits, given, report)
    if given.model is None:
        return
    if given.observe is None or not given.has_documents:
        report.failed(
            "model", "not looked at: it needs --documents, --secret and the whole package (nonmember verify)."
        )
    else:
        given.observe(files, audits, given, report)


def _check_canaries(audits: list[Audit], given: Given, report: Report) -> None:
    readers: dict[str, Callable[[Path], Any]] = {"canary": read_private, "holdout": read_draw}
    asked = [audit for audit in audits if audit.question["method"] in readers]
    if given.canaries is None:
        if asked:
            report.unchecked("choice of the published variants", "needs the revealed private file (--canaries)")
        return
    if not asked:
        report.failed("canaries", "not checked as requested: no audit in the bundle is by method=canary or holdout.")
    digest = commitment_of(given.canaries.read_bytes())
    for audit in asked:
        try:
            texts = readers[audit.question["method"]](given.canaries).texts()
            check_revealed(audit, texts, digest, given.secret, report.of(audit, audits))
        except ValueError as error:
            report.failed("canaries", str(error))
