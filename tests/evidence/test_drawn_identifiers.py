"""Identifiers before those who have the documents: what was scored must be what these and the seed give."""

from __future__ import annotations

import pytest
from doctored import in_scores, put, require_found, with_identity, written
from made_up_audits import SECRET, bundled, checked, gathered
from made_up_questions import identifiers

DOCUMENTS = [(item.doc_id, item.text) for item in identifiers().suspect.documents]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("identifiers")
    return bundled([gathered(identifiers(), folder / "run")], folder / "bundle.zip")


def test_who_has_the_documents_finds_and_draws_the_same(files, tmp_path):
    report = checked(written(files, tmp_path / "bundle.zip"), documents=DOCUMENTS, secret=SECRET)
    assert not report.failures, "\n".join(map(str, report.failures))
    assert "the 12 are those of the documents" in " ".join(line.told for line in report.lines if line.kind == "ok")


@pytest.mark.parametrize(
    ("lie", "sentence"),
    [
        (with_identity(put("seed", 6)), "not those of the documents and the seed: the alternatives set"),
        (in_scores("unit", 3, 11), "counted with those of another unit"),
    ],
)
def test_alternatives_that_the_seed_did_not_draw_are_found(files, lie, sentence, tmp_path):
    require_found(written(lie(files), tmp_path / "bundle.zip"), sentence, documents=DOCUMENTS, secret=SECRET)


def test_an_identifier_that_is_not_of_the_documents_is_found(files, tmp_path):
    other = [(name, text.replace("-4", "-1")) for name, text in DOCUMENTS]  # UUIDs of another version
    path = written(files, tmp_path / "bundle.zip")
    for sentence in ("the suspect set", "by form there are"):
        require_found(path, sentence, documents=other, secret=SECRET)
