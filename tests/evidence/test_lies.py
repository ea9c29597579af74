"""Bundles that were doctored, each found with the sentence that names the lie."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from doctored import (
    OTHER_KEY,
    RESULT,
    SCORES,
    TOLD,
    Files,
    another_digit,
    another_signature,
    drop_row,
    dropped_everywhere,
    edited,
    excluded,
    in_details,
    in_numbers,
    in_result,
    in_scores,
    in_told,
    observation,
    one_cell_less,
    payload,
    plain,
    put,
    raw,
    require_found,
    reseal,
    rows,
    sealed,
    signed,
    tables_exchanged,
    together,
    tokens_of,
    two_signatures,
    with_identity,
    without,
    written,
)
from made_up_audits import SECRET, checked, key
from made_up_questions import texts

import nonmember_verify.verify
from marks import slow, thinned
from nonmember.evidence.bundle import as_json
from nonmember_verify.bundle import ENVELOPE
from nonmember_verify.envelope import PREDICATE, SEAL_PREDICATE, opened
from nonmember_verify.report import Report
from nonmember_verify.verify import Given

TELLS = "allowed_claim"
STRONG = "There is proof that the target never saw this dataset."
HIDDEN = "A precondition of the test failed; nothing may be concluded."
NUMBERS = ("statistics",)
SEALED_LIES: dict[str, tuple[Callable[[Files], Files], str]] = {
    # Changed after it was signed.
    "a byte of the scores": (lambda files: {**files, SCORES: files[SCORES] + b"\0"}, "was changed after it was signed"),
    "p in the file alone": (raw(RESULT, b'"p_value": 0.', b'"p_value": 0.0'), "result.json was changed after"),
    "a file lost": (without("audits/001/scores.parquet"), "scores.parquet is missing"),
    "a file more": (lambda files: {**files, "audits/000/more.json": b"{}"}, "is there and was not signed"),
    "the statement changed": (payload(put("predicate", "machine", {})), "changed after it was signed, or signed by an"),
    "a signature of another key": (another_signature, "changed after it was signed, or signed by another key"),
    "no statement": (without(ENVELOPE), "nothing is signed"),
    "two signatures": (two_signatures, "not a DSSE envelope with one signature"),
    "another type of payload": (raw(ENVELOPE, b"in-toto+json", b"in-toto+text"), "must be an in-toto Statement v1"),
    "a name twice in the statement": (
        raw(ENVELOPE, b'"payloadType"', b'"payloadType": "x",\n "payloadType"'),
        "occurs twice in one object",
    ),
    "another public key in the statement": (
        payload(put("predicate", "signer", "public_key", OTHER_KEY._public_line.decode())),
        "signed by another key",
    ),
    # Numbers.
    "one digit of p": (in_numbers("p_value", another_digit), "p is stated as"),
    "a smaller p": (in_numbers("p_value", 0.004), "p is stated as 0.004"),
    "another statistic": (in_numbers("value", lambda item: item + 0.05), "Delta is stated as"),
    "a narrower interval": (in_numbers("ci_low", lambda item: item + 0.01), "low is stated as"),
    "an interval moved": (in_numbers("ci_high", lambda item: item + 0.01), "high is stated as"),
    "another correlation": (in_details("rho_reference_target", 0.99), "rho_reference_target is stated as"),
    "a score of one document": (in_scores("target", 5, lambda item: item + 0.2), "and its tokens give"),
    "scores in another order": (rows(SCORES, lambda columns: columns["document"].reverse()), "stand in another order"),
    "log-probabilities of a document": (
        lambda files: rows(f"tokens/{tokens_of(files, 'target')}.parquet", put("log_prob", 4, 0, -20.0))(files),
        "and its tokens give",
    ),
    "t of the second audit": (
        edited("audits/001/result.json", put(*NUMBERS, "value", lambda item: item - 1)),
        "difference is stated as",
    ),
    "p of the second audit": (
        edited("audits/001/result.json", put(*NUMBERS, "p_value", 0.001)),
        "p is stated as 0.001",
    ),
    "an interval where there is none": (
        edited("audits/001/result.json", put(*NUMBERS, "ci_low", -1.0)),
        "low is stated as",
    ),
    # Verdicts.
    "a verdict": (
        in_result("verdict", "decision", "evidence_of_non_membership"),
        "is stated, and the numbers say inconc",
    ),
    "a verdict of a test that has none": (
        edited("audits/001/result.json", put("verdict", "decision", "score_only")),
        "numbers say evidence_of_membership",
    ),
    "a stronger claim": (in_result("verdict", TELLS, STRONG), "what is claimed is more, or other"),
    "a finding hidden as invalid": (
        together(in_result("verdict", "decision", "invalid"), in_result("verdict", TELLS, HIDDEN)),
        "invalid is stated, and the numbers say",
    ),
    "another verdict in the statement": (
        lambda files: signed(
            files,
            audits=[
                {**item, "decision": "evidence_of_non_membership"}
                for item in opened(files[ENVELOPE], PREDICATE, "it").predicate["audits"]
            ],
        ),
        "in the statement",
    ),
    # Documents.
    "a document dropped": (rows(SCORES, drop_row), "1 committed documents of the suspect set are neither scored nor"),
    "a document dropped without a trace": (dropped_everywhere, "documents of the suspect set are not the sealed ones"),
    "a document excluded that can be scored": (excluded, "was left out .* and can be scored"),
    "a document exchanged": (in_scores("document", 2, "ab" * 32), "not among the committed ones"),
    "a commitment exchanged": (
        together(in_scores("document", 2, "ab" * 32), in_told("documents", "suspect", 2, "ab" * 32)),
        "not the sealed ones",
    ),
    "a document twice": (
        lambda files: edited(TOLD, lambda told: told["documents"]["suspect"].append(told["documents"]["suspect"][0]))(
            files
        ),
        "committed to twice",
    ),
    "another number of documents": (in_numbers("num_documents", 4000), "the result counts 4000"),
    # Models.
    "scores of another model": (tables_exchanged, "scored under another model than target"),
    "observations called those of another model": (
        observation("model", "another", rename=False),
        "not those that their hash names",
    ),
    "observations of another model": (observation("model", "another", rename=True), "under another model than target"),
    "observations of other documents": (observation("corpus", "ff" * 32, rename=True), "scored on other documents"),
    "a recipe exchanged": (in_told("recipes", "target", {"scratch": "x"}), "the recipe of target is not that"),
    "a model called another": (in_result("provenance", "keys", "target", "0" * 16), "the recipe of target is not that"),
    "a recipe left out": (
        edited(TOLD, lambda told: told["recipes"].pop("distilled")),
        "the recipe of distilled is not",
    ),
    # The question.
    "alpha in the result": (in_result("question", "alpha", 0.99), "alpha is 0.99 in the result and 0.05"),
    "alpha in the settings": (
        together(in_result("question", "alpha", 0.99), in_result("question", "settings", "alpha", 0.99)),
        "made with others than it was asked with: settings.alpha",
    ),
    "alpha in the question": (in_told("identity", "method", "alpha", 0.99), "was exchanged, or a setting"),
    "alpha throughout": (with_identity(put("method", "alpha", 0.99)), "not what was sealed: .*identity.method.alpha"),
    "another seed until it is significant": (with_identity(put("seed", 77)), "not what was sealed: .*identity.seed"),
    "a margin that clears": (with_identity(put("method", "margin", 0.0001)), "not what was sealed: .*method.margin"),
    "more resamples": (with_identity(put("method", "num_resamples", 201)), "sealed: .*method.num_resamples"),
    "a threshold": (in_told("thresholds", "max_excluded", 0.9), "not what was sealed: thresholds.max_excluded"),
    "versions swapped": (in_result("provenance", "versions", "torch", "1.0"), "not what was sealed: versions.torch"),
    # The seal and its cells.
    "a cell left out": (one_cell_less, "1 of 2 sealed audits were left out, first 'two'"),
    "the seal left out": (
        lambda files: signed(without("seal.json")(files), seal=None),
        "the audits were given a seal, and the bundle leaves",
    ),
    "a seal that is missing": (lambda files: signed(without("seal.json")(files)), "names one, and it is missing"),
    "a seal made afterwards": (
        together(edited(RESULT, lambda result: result["provenance"]["keys"].pop("seal")), in_told("receipt", None)),
        "it was answered without one, and sealed afterwards",
    ),
    "another seal": (
        lambda files: signed(
            {
                **files,
                "seal.json": key().sign(SEAL_PREDICATE, [], opened(files["seal.json"], SEAL_PREDICATE, "it").predicate),
            }
        ),
        "sealed afterwards",
    ),
    "a seal of a later date": (reseal(put("date", "2999-01-01T00:00:00Z")), "made on 2999-01-01T00:00:00Z, after the"),
    "a seal of another key": (reseal(lambda item: None, OTHER_KEY), "signed by another key"),
    "a seal changed": (
        lambda files: signed({**files, "seal.json": files["seal.json"].replace(b'"payload": "ey', b'"payload": "eY')}),
        "The seal is not a DSSE envelope|The seal was changed",
    ),
    "a seal of other documents": (
        reseal(lambda item: item["cells"][0]["documents"]["suspect"]["commitments"].reverse()),
        "root of the sealed documents",
    ),
    "a cell that was not sealed": (
        reseal(lambda item: item["cells"][0].update(cell="other", audit="0" * 16)),
        "this audit was not sealed",
    ),
    "an audit that the seal leaves out": (reseal(lambda item: item["cells"].pop(1)), "this audit was not sealed"),
    "an audit beside the listed ones": (
        lambda files: signed({**files, "audits/002/result.json": files[RESULT]}),
        "not those of the statement",
    ),
    # Files that are no such files.
    "NaN": (
        lambda files: signed(raw(RESULT, b'"p_value": 0.', b'"q": NaN, "p_value": 0.')(files)),
        "NaN is not a JSON number",
    ),
    "a result without statistics": (edited(RESULT, lambda result: result["statistics"].pop("value")), "KeyError"),
    "no Parquet": (lambda files: signed({**files, SCORES: b"PAR1"}), "not a readable Parquet table"),
}


def test_there_are_enough():
    assert len(SEALED_LIES) >= 60


def test_what_is_doctored_was_honest(tmp_path):
    for number, files in enumerate([sealed(), *map(plain, ("prism", "gates", "dose", "order"))]):
        report = checked(written(files, tmp_path / f"{number}.zip"))
        assert not report.failures, "\n".join(map(str, report.failures))
    for files in (sealed(), plain("prism")):
        assert not checked(written(signed(files), tmp_path / "anew.zip")).failures, "signing anew is no lie"


@pytest.mark.parametrize("name", thinned(SEALED_LIES, 2))
def test_a_lie_about_sealed_audits_is_found(name, tmp_path):
    lie, sentence = SEALED_LIES[name]
    require_found(written(lie(sealed()), tmp_path / "bundle.zip"), sentence)


def test_a_bundle_of_another_signer_is_found(tmp_path):
    path = written(signed(sealed(), OTHER_KEY), tmp_path / "bundle.zip")
    require_found(path, "by another key .* than you named", fingerprint=key().fingerprint)


def test_other_documents_are_found(tmp_path):
    path = written(plain("prism"), tmp_path / "bundle.zip")
    documents = [(item.doc_id, item.text) for item in texts(40, "suspect").documents]
    assert not checked(path, documents=documents, secret=SECRET).failures
    changed = [(name, "something else" if name == "suspect-doc-3" else text) for name, text in documents]
    require_found(path, "1 of 40 committed documents are not among", documents=changed, secret=SECRET)
    require_found(path, "40 of 40 committed documents", documents=documents, secret=bytes(32))


# Every field ----------------------------------------------------------------------------------------------------------


def fields_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Where each value stands in a JSON object; a list of plain values is one."""
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from fields_of(item, (*path, name))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for index, item in enumerate(value):
            yield from fields_of(item, (*path, index))
    elif path:
        yield path, value


def another(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case [_, *_]:
            return value[:-1]
        case _:
            return f"{value or ''}x"


def declared(report: Report, file: str) -> set[str]:
    """The fields of a file that the report calls unchecked, by their names."""
    told = [line.fields for line in report.lines if line.what.endswith("fields that no check reads")]
    parts = [part.partition(": ") for line in told for part in line.split("; ")]
    gates = {line.what.removeprefix("gate ") for line in report.lines if line.what.startswith("gate ")}
    scores = [line.what.removeprefix("scores ") for line in report.lines if line.what.startswith("scores ")]
    return {
        *(f"columns.{column.replace('/', '.', 1)}.tables" for names in scores for column in names.split(", ")),
        *(name for where, _, names in parts if where == file for name in names.split(", ")),
        *(f"statistics.details.gates.{name}" for name in gates),
        *(("schema_version", "verdict.decision") if report.num_as_stated else ()),
        *(("kind",) if any("unknown to this verifier" in line.told for line in report.lines) else ()),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["pacost", *(slow(name) for name in ("prism", "gates", "dose", "decop", "passages", "kds", "order"))]
)
def test_a_change_of_any_field_is_found_or_the_field_is_told_to_be_unchecked(name, monkeypatch):
    files = plain(name)
    honest = verified(files, monkeypatch)
    assert not honest.failures
    number = 0
    for file in (RESULT, TOLD, "observations.json"):
        content, told = json.loads(files[file]), declared(honest, Path(file).name)
        for path, value in fields_of(content):
            dotted = ".".join(item for item in path if isinstance(item, str))

            def is_told(names: set[str], dotted: str = dotted) -> bool:
                return any(f"{dotted}.".startswith(f"{item}.") or dotted.endswith(f".{item}") for item in names)

            if is_told(told):
                continue
            lied = copy.deepcopy(content)
            put(*path, another(value))(lied)
            report = verified(signed({**files, file: as_json(lied)}), monkeypatch)
            assert report.failures or is_told(declared(report, Path(file).name)), f"{file}: {dotted}"
            number += 1
    assert number > 20


def verified(files: Files, monkeypatch: pytest.MonkeyPatch) -> Report:
    """Without the archive, which each of many changes would be packed into."""
    monkeypatch.setattr(nonmember_verify.verify, "read", lambda path: files)
    return nonmember_verify.verify.verify(Path("bundle.zip"), Given())
