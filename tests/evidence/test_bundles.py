"""Bundles: the same bytes again, what is left out of them, and their page."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from doctored import RESULT, edited, in_numbers, in_result, made_invalid, plain, require_found, written
from made_up_audits import SECRET, TELLING, Chat, audited, builder, bundled, checked, gathered
from made_up_questions import CLOZE, DOSE, PRISM, PRISM_GATES, REFERENCE, audit, decop, every, named, texts

import tiny
from nonmember.audits.keys import audit_keys
from nonmember.audits.question import Audit
from nonmember.cli.bundle import _write_documents
from nonmember.evidence.bundle import contents
from nonmember.evidence.gathering import Included, KeptStore, gather
from nonmember.evidence.redaction import Redaction, require_no_text
from nonmember.evidence.seal import cell_of_seal
from nonmember.methods import Blind
from nonmember.records import Corpus, Document
from nonmember.reports.render.page import WITHOUT_SCRIPT
from nonmember_verify import cli

BLIND = Blind(num_folds=3, inverse_penalty=1.0, num_resamples=100, alpha=0.05, max_tokens=64)


def test_the_same_audits_give_the_same_bytes(tmp_path):
    item = gathered(audit(PRISM), tmp_path / "run")
    for name in ("one", "two"):
        bundled([item], tmp_path / name, page=True)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_the_page_fetches_nothing_and_says_what_was_checked(tmp_path):
    bundled([gathered(audit(PRISM), tmp_path / "run")], tmp_path / "bundle.zip", page=True)
    page = (tmp_path / "bundle.html").read_text(encoding="utf-8")
    assert f'<meta http-equiv="Content-Security-Policy" content="{WITHOUT_SCRIPT}">'.replace("'", "&#39;") in page
    assert not re.search(r"<script|https?://(?!www\.w3\.org/)|\son\w+=|@import|<iframe", page)
    assert "Were the documents &#34;suspect texts&#34; used to train &#34;target&#34;?" in page
    assert "from 200 resamples with the seed, to the last digit" in page
    assert page.count("<svg ") >= 3


def test_token_statistics_tell_no_order_and_no_ids(tmp_path):
    artifacts = audited(audit(PRISM), tmp_path / "run")
    item, other = (
        gather(audit(PRISM), artifacts, tmp_path / "run", SECRET, choice)
        for choice in (Included(), Included(token_ids=True))
    )
    for table in item.tokens.values():
        assert "token_id" not in table
        assert table["document"] == sorted(table["document"]), "by their commitments"
        assert all((values[:-1] <= values[1:]).all() for values in table["log_prob"])
    assert all("token_id" in table for table in other.tokens.values())
    bundled([other], tmp_path / "bundle", Included(token_ids=True))
    assert not checked(tmp_path / "bundle").failures, "scores do not hang on the order"


def test_without_observations_the_verifier_says_that_scores_are_not_checked(tmp_path):
    choice = Included(observations=False)
    files = bundled([gathered(audit(PRISM), tmp_path / "run", choice)], tmp_path / "bundle", choice)
    assert not any(name.startswith("tokens/") for name in files)
    report = checked(tmp_path / "bundle")
    assert not report.failures
    (line,) = [line for line in report.lines if line.what.startswith("scores")]
    assert (line.kind, line.told) == ("not checked", "the bundle holds no token statistics for them")


def without_weights(result: Any) -> None:
    del result["statistics"]["details"]["gates"]["weights"]


def unmeasured(result: Any) -> None:
    del result["health"]["training"]["kl_after"]
    why = "The health of the distilled reference was not measured (trainer.measure_health=false)"
    made_invalid(result)
    result["verdict"]["warnings"] = [why]


NOT_CHECKED: dict[str, tuple[str | Callable[[], Audit], Callable[[Any], None] | None, str, str]] = {
    "weights": ("dose", without_weights, "gate weights", "the target's weights were not at hand"),
    "a refusal": (
        lambda: audit(replace(PRISM, distillation=TELLING)),
        unmeasured,
        "verdict",
        "invalid, for a reason that needs text or models: The health",
    ),
    "the target itself": (
        lambda: audit(replace(PRISM, gates=PRISM_GATES), target=REFERENCE, general=texts(200, "general")),
        None,
        "statistic, interval and p",
        "no distilled reference was made: reference and target are one",
    ),
    "calibration": (
        lambda: decop(calibrate=True),
        None,
        "statistic, interval, p and verdict",
        "needs the letters' probabilities",
    ),
    "recipes with paths": (
        lambda: audit(CLOZE, target=Chat("/home/me/chat", 0.8, 0.3), suspect=named(24, "suspect"), heldout=None),
        None,
        "models",
        "paths were left out of their recipes",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NOT_CHECKED)
def test_what_cannot_be_checked_is_said_and_not_held_against_anybody(name, tmp_path):
    of, change, what, told = NOT_CHECKED[name]
    files = plain(of) if isinstance(of, str) else bundled([gathered(of(), tmp_path / "run")], tmp_path / "honest")
    report = checked(written(files if change is None else edited(RESULT, change)(files), tmp_path / "bundle"))
    assert not report.failures
    said = [line.told for line in report.lines if (line.kind, line.what) == ("not checked", what)]
    assert any(told in item for item in said), said


@pytest.mark.slow
@pytest.mark.parametrize("name", ["decop baselines", "fsd", "kds", "rank agreement", "rank shift"])
def test_numbers_that_no_verdict_rests_on_are_said_to_be_unchecked(name, tmp_path, capsys):
    """And a verdict or a claim that such a method cannot have is found."""
    files = bundled([gathered(dict(every())[name], tmp_path / "run")], tmp_path / "honest")
    other = in_numbers("value", 0.123)(files)
    for path in (tmp_path / "honest", written(other, tmp_path / "other")):
        report = checked(path)
        assert not report.failures
        (line,) = [line for line in report.lines if line.as_stated]
        assert line.told.startswith("no verdict rests on the numbers of")
        assert any(
            "statistics.value" in line.fields for line in report.lines if line.what == "fields that no check reads"
        )
        assert cli.main([str(path)]) == 3
        assert "Verified in part" in capsys.readouterr().out
    for place, value, sentence in (
        ("decision", "evidence_of_membership", "evidence_of_membership is stated, and the numbers say score_only"),
        ("decision", "evidence_of_non_membership", "and the numbers say score_only"),
        ("allowed_claim", "It was read.", "what is claimed is more, or other"),
    ):
        require_found(written(in_result("verdict", place, value)(files), tmp_path / "lie"), sentence)


def test_which_sets_of_documents_were_not_given_is_said(tmp_path):
    path = written(plain("dose"), tmp_path / "bundle")
    suspect = [(item.doc_id, item.text) for item in texts(40, "suspect").documents]
    report = checked(path, documents=suspect, secret=SECRET)
    assert not report.failures
    said = {line.what: line.told for line in report.lines if line.what.startswith("documents of the")}
    further = checked(path, documents=[*suspect, ("another", "text")], secret=SECRET).lines
    (line,) = [line for line in further if line.what == "further documents"]
    assert line.told == "1 of the 41 given are in no set of this audit"
    assert said == {
        "documents of the suspect set": "all 40 are the committed ones.",
        "documents of the third set": "none of them was given",
    }


@pytest.mark.slow
def test_a_recipe_that_names_its_documents_is_cut_and_the_verifier_says_so(tmp_path):
    own = tiny.Texts(texts(60, "general").documents)
    asked = audit(replace(DOSE, controls=replace(DOSE.controls, general=own)), heldout=None)
    files = bundled([gathered(asked, tmp_path / "run")], tmp_path / "bundle")
    assert not any(b"zqword" in content for content in files.values())
    report = checked(tmp_path / "bundle")
    assert not report.failures
    assert any(line.kind == "not checked" and line.what == "question" for line in report.lines)


def test_a_seal_holds_no_text_either(tmp_path):
    own = tiny.Texts(texts(60, "general").documents)
    asked = audit(replace(DOSE, controls=replace(DOSE.controls, general=own)), heldout=None)
    artifacts = builder(tmp_path / "store", asked.suspect)
    told = json.dumps(cell_of_seal(asked, artifacts, audit_keys(asked, artifacts), "one", SECRET))
    assert "zqword" not in told
    assert "-doc-" not in told
    assert json.loads(told)["redacted"] == ["identity"]


def test_text_in_a_label_is_refused_and_not_repeated(tmp_path):
    label = texts(40, "suspect").documents[3].text
    with pytest.raises(ValueError, match="would hold text of the documents") as refusal:
        bundled([gathered(audit(PRISM, corpus_label=label), tmp_path / "run")], tmp_path / "bundle")
    assert "zqword" not in str(refusal.value)
    assert not (tmp_path / "bundle").exists()


def test_two_sets_may_name_their_documents_alike(tmp_path):
    """As files do that count theirs from 0: no text goes unsearched, and all can be shown."""
    first, second = (texts(40, name).documents for name in ("suspect", "heldout"))
    heldout = tiny.Texts(tuple(replace(item, doc_id=of.doc_id) for item, of in zip(second, first, strict=True)))
    made = gathered(audit(BLIND, heldout=heldout), tmp_path / "run")
    bundled([made], tmp_path / "bundle")
    _write_documents([made], tmp_path / "documents.jsonl")
    report = checked(tmp_path / "bundle", documents=cli._documents(tmp_path / "documents.jsonl"), secret=SECRET)
    assert not report.failures
    assert sum(line.told == "all 40 are the committed ones." for line in report.lines) == 2
    label = gathered(audit(BLIND, heldout=heldout, corpus_label=first[3].text), tmp_path / "label")
    with pytest.raises(ValueError, match="would hold text of the documents"):
        bundled([label], tmp_path / "text")


def test_short_texts_and_rows_of_digits():
    require_no_text({"a.json": b'"0 0 0 0 0 0 0 0 0 0"'}, ["0 0 0 0 0 0 0 0 0 0 0"])
    with pytest.raises(ValueError, match=r"a\.json would hold"):
        require_no_text({"a.json": b'{"x": "An Extraordinary  little-fish"}'}, ["an extraordinary little fish"])


def test_names_paths_and_examples_are_replaced():
    corpus = Corpus((Document("doc-one", "a", cluster_id="The Book"), Document("7", "b")))
    redaction = Redaction.of({"suspect": corpus}, {"suspect": {"doc-one": "c1", "7": "c7"}})
    given = {
        "doc-one": 1,
        "x": ["suspect/doc-one", "cluster:The Book", "7", "/home/me/file", "~/file", "C:\\file"],
        "warning": '3 of 40 answers cannot be read, such as "a word" (doc-one) (all: answers.jsonl).',
        "text": {"doc_id": "doc-one", "text": "a", "cluster_id": ""},
    }
    assert redaction.of_json(given) == {
        "c1": 1,
        "x": ["c1", "unit-0", "7", *["[path left out]"] * 3],
        "warning": "3 of 40 answers cannot be read.",
        "text": "[document left out]",
    }


def test_what_the_store_no_longer_has_is_named(tmp_path):
    store = KeptStore(tmp_path)
    with pytest.raises(ValueError, match=r"no longer has target-original .*--store"):
        store.get_or_make("observations", "target-original", {"a": 1}, lambda folder: None)
    assert store.get_or_make("corpora", "texts", {"a": 1}, lambda folder: None).path.is_dir()


def test_a_result_of_other_documents_is_refused(tmp_path):
    artifacts = audited(audit(PRISM), tmp_path / "run")
    with pytest.raises(ValueError, match="answers another question"):
        gather(audit(PRISM, seed=6), artifacts, tmp_path / "run", SECRET, Included())


def test_audits_of_different_seals_do_not_go_together(tmp_path):
    item = gathered(audit(PRISM), tmp_path / "run")
    with pytest.raises(ValueError, match="different seals"):
        contents([item, replace(item, seal=b"another")])
    with pytest.raises(ValueError, match="one finished audit or more"):
        contents([])
    assert json.loads(contents([item])["audits/000/audit.json"])["cell"] == "run"
