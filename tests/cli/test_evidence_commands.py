"""seal, audit, bundle, verify: what a newcomer types, on tiny models."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import pytest

from command_line import only, write_rows


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("sealed") / "all"


@pytest.fixture
def sealed(nonmember, ask, kept):
    """The words of an audit that a seal fixes. Sealed once for all tests; each has a copy of what that left."""
    words = ask()[1:]
    if kept.exists():
        shutil.copytree(kept, ".", dirs_exist_ok=True)
        return words
    said = nonmember("seal", "--new-key", "my.key", "--out", "seal.json", *words)
    assert said.status == 0, said.err
    assert "Sealed 1 audit with 40 documents" in said.out
    shutil.copytree(".", kept)
    return words


def test_the_whole_way(nonmember, sealed):
    for secret in ("my.key", "seal.json.private"):
        assert stat.S_IMODE(Path(secret).stat().st_mode) == 0o600
    said = nonmember("audit", *sealed, "seal=seal.json")
    assert said.status == 0, said.err
    result = only(Path("outputs/audits/mine"), "*/result.json")
    assert (result.parent / "seal.json").read_bytes() == Path("seal.json").read_bytes()

    said = nonmember("bundle", result.parent, "--key", "my.key", "--out", "one.zip")
    assert (said.status, "--secret" in said.err) == (1, True), "a sealed audit needs the secret of its seal"
    bundle = ["bundle", result.parent, "--key", "my.key", "--secret", "seal.json.private", "--documents", "docs.jsonl"]
    assert nonmember(*bundle, "--out", "one.zip").status == nonmember(*bundle, "--out", "two.zip").status == 0
    assert Path("one.zip").read_bytes() == Path("two.zip").read_bytes()
    said = nonmember(*bundle, "--out", "text.zip", "--with-tokens")
    assert said.status == 0, said.err
    assert "with the tokenizer that is the text of the documents" in said.err

    said = nonmember("verify", "one.zip", "--signer", "my.key.pub")
    assert (said.status, said.out.startswith("Verified: ")) == (0, True), said.out
    assert "question, documents, models, settings, seed and versions are the sealed ones" in said.out

    more = ["--documents", "docs.jsonl", "--secret", "seal.json.private"]
    target = next(word.partition("=")[2] for word in sealed if word.startswith("target.path="))
    said = nonmember("verify", "one.zip", *more, "--model", target)
    assert said.status == 0, said.out
    assert "all 40 are the committed ones" in said.out
    assert "8 documents drawn now" in said.out
    other = next(word.partition("=")[2] for word in sealed if word.startswith("reference.path="))
    said = nonmember("verify", "one.zip", *more, "--model", other)
    assert (said.status, "This is another model" in said.out) == (1, True), said.out

    assert nonmember("verify", "one.zip", *more, "--model", "nowhere").status == 2
    Path("empty").mkdir()
    said = nonmember("verify", "one.zip", *more, "--model", "empty")
    assert said.status == 1, "what was asked for was not checked"
    assert "FAILED       model: not checked as requested: it could not be observed" in said.out
    assert "bundle:" not in said.out, "nothing is wrong with the bundle"


@pytest.mark.slow
def test_the_audit_refuses_another_question_and_says_which(nonmember, sealed, tmp_path):
    said = nonmember("audit", *sealed, "seal=seal.json", "method.num_resamples=300")
    assert said.status == 1
    assert "identity.method.num_resamples: 200 was sealed, 300 is asked" in said.err
    said = nonmember("audit", *sealed, "seal=seal.json", "seed=2")
    assert "identity.seed: 1234 was sealed, 2 is asked" in said.err
    documents = tmp_path / "documents.jsonl"
    rows = [json.loads(line) for line in documents.read_text().splitlines()]
    write_rows(documents, [*rows[:-1], {"id": "another", "text": "moss and fern and reed and pine and lark"}])
    said = nonmember("audit", *sealed, "seal=seal.json")
    assert "identity.parts.corpus" in said.err
    assert not list(Path("outputs").rglob("result.json")), "nothing was answered"


@pytest.mark.slow
def test_a_seal_for_what_was_answered_before_is_refused(nonmember, sealed):
    assert nonmember("audit", *sealed).status == 0
    said = nonmember("audit", *sealed, "seal=seal.json")
    assert (said.status, "was computed without this seal" in said.err) == (1, True)
    said = nonmember("seal", "--key", "my.key", "--out", "late.json", *sealed, "name=other")
    assert (said.status, "already has a result" in said.err) == (1, True)
    assert not Path("late.json").exists()


def test_a_seal_is_not_written_twice(nonmember, sealed):
    said = nonmember("seal", "--key", "my.key", "--out", "seal.json", *sealed)
    assert (said.status, "a seal is not written twice" in said.err) == (1, True)


@pytest.mark.slow
def test_what_cannot_be_is_said(nonmember, sealed, tmp_path):
    Path("seal.json").write_text(Path("seal.json").read_text().replace("A", "B", 5))
    said = nonmember("audit", *sealed, "seal=seal.json")
    assert (said.status, "The seal seal.json" in said.err) == (1, True)
    assert "There is no seal at none.json" in nonmember("audit", *sealed, "seal=none.json").err
    assert "There is no key at none" in nonmember("seal", "--key", "none", "--out", "x.json", *sealed).err
    for slip in ("--no-option", "no.key=1", "data.path=nowhere.jsonl"):
        said = nonmember("seal", "--new-key", "late.key", "--out", "late.json", *sealed, slip)
        assert (said.status, list(Path().glob("late*"))) == (1, []), "no file of what was not sealed"
    assert "There is no result.json below" in nonmember("bundle", tmp_path / "no", "--key", "my.key", "--out", "x").err
    said = nonmember("verify", "none.zip")
    assert (said.status, "No such file or directory: 'none.zip'" in said.err) == (2, True)
    assert nonmember("verify", "none.zip", "--signer", "none.pub").status == 2


@pytest.fixture
def unfinished(nonmember) -> tuple[str, ...]:
    """The words of a bundle of an audit whose config is gone."""
    Path("cell").mkdir()
    Path("cell/result.json").write_text("{}")
    return ("bundle", "cell", "--new-key", "my.key", "--out", "one.zip")


def test_a_bundle_needs_what_was_asked_and_rows_that_can_be_read(nonmember, unfinished):
    said = nonmember(*unfinished)
    assert (said.status, "must lie beside the result: it holds the question" in said.err) == (1, True), said.err
    assert not Path("my.key").exists(), "no key of what was not bundled"
    for content in ("[1]", "null", "[" * 100_000, "{"):
        Path("cell/config.json").write_text(content)
        said = nonmember(*unfinished)
        assert (said.status, "config.json cannot be read (" in said.err) == (1, True), said.err
    Path("rows.jsonl").write_text('{"text": "moss"}\nfern\n')
    said = nonmember(*unfinished, "--data", "rows.jsonl")
    assert (said.status, "rows.jsonl, line 2 must be one JSON object" in said.err) == (1, True), said.err
    assert not Path("one.zip").exists()
