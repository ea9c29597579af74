"""Audits of a program's own documents and models, as bundles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import nonmember as nm
from nonmember_verify.verify import Given, verify

SHORT = {"method.max_tokens": 100, "gates": "off", "method.num_resamples": 200, "method.distillation.max_tokens": 100}
BUNDLE = ("--new-key", "my.key", "--out", "one.zip")


@pytest.fixture
def in_memory(make_model, texts):
    """An audit of texts that no file holds."""
    paths = {"target": str(make_model(1)), "reference": str(make_model(2))}
    return nm.audit("prism", documents=texts, **paths, overrides=SHORT, trainer="cpu")


@pytest.mark.slow
def test_documents_in_memory_are_bundled_with_their_rows(nonmember, in_memory, texts):
    said = nonmember("bundle", in_memory.folder, *BUNDLE)
    assert (said.status, "--data FILE" in said.err) == (1, True), said.err
    Path("rows.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts))
    said = nonmember("bundle", in_memory.folder, "--data", "rows.jsonl", *BUNDLE, "--documents", "documents.jsonl")
    assert said.status == 0, said.err
    assert not verify(Path("one.zip"), Given()).failures
    assert len(Path("documents.jsonl").read_text().splitlines()) == len(texts)


@pytest.mark.slow
def test_other_rows_are_not_taken_for_them(nonmember, in_memory, texts):
    Path("rows.jsonl").write_text("\n".join(json.dumps(text) for text in texts[::-1]))
    said = nonmember("bundle", in_memory.folder, "--data", "rows.jsonl", *BUNDLE)
    assert (said.status, "as they were given and in their order" in said.err) == (1, True), said.err
    assert not Path("one.zip").exists()


@pytest.mark.slow
def test_models_in_memory_cannot_be_bundled_and_one_sentence_says_so(nonmember, texts, models, tmp_path):
    found = nm.audit("prism", documents=texts, target=models(1), reference=models(2), overrides=SHORT, trainer="cpu")
    Path("rows.jsonl").write_text("\n".join(json.dumps(text) for text in texts))
    said = nonmember("bundle", found.folder, "--data", "rows.jsonl", *BUNDLE)
    assert (said.status, "one on a model in memory cannot be bundled" in said.err) == (1, True), said.err
