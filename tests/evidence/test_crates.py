"""Bundles as RO-Crates, read back with the library that others read them with."""

from __future__ import annotations

import hashlib
import json
import sys

import pytest
from made_up_audits import bundled, gathered, key
from made_up_questions import PRISM, WITH_SHORT, audit

from nonmember.evidence.crate import METADATA, write_crate

REASON = "target: no scored token: the text has fewer than two tokens"  # for which a document was left out


@pytest.fixture
def written(tmp_path):
    pytest.importorskip("rocrate", reason="needs rocrate: pip install nonmember[crate]")
    item = gathered(audit(PRISM, suspect=WITH_SHORT), tmp_path / "run")
    files = bundled([item], tmp_path / "bundle")
    write_crate(files, [text for _, text in item.texts], tmp_path / "crate")
    return item, files


def test_it_reads_back_with_files_question_and_verdict(written, tmp_path):
    from rocrate.rocrate import ROCrate

    item, files = written
    crate = ROCrate(tmp_path / "crate")
    assert {entity.id for entity in crate.data_entities} == files.keys()
    for name, content in files.items():
        assert (tmp_path / "crate" / name).read_bytes() == content
        assert crate.dereference(name)["sha256"] == hashlib.sha256(content).hexdigest()
    (action,) = crate.root_dataset["mentions"]
    assert action.type == "CreateAction"
    assert action["identifier"] == item.described["audit"]
    assert "suspect texts" in action["name"]
    assert action["description"] == f"Documents left out: 1 ({REASON})."
    assert action["agent"]["identifier"] == crate.root_dataset["author"]["identifier"] == key().fingerprint
    program, versions = action["instrument"], item.result["provenance"]["versions"]
    assert (program["name"], program["softwareVersion"]) == ("nonmember", versions["nonmember"])
    assert {library["name"]: library["softwareVersion"] for library in program["softwareRequirements"]} == {
        name: version for name, version in versions.items() if name != "nonmember"
    }
    claim = next(entity for entity in action["result"] if entity.type == "Claim")
    verdict = item.result["verdict"]
    assert (claim["name"], claim["text"]) == (verdict["decision"], verdict["allowed_claim"])
    objects = {entity.id: entity for entity in action["object"]}
    assert objects["#target-000"]["identifier"] == item.result["provenance"]["keys"]["target"]
    assert "40 documents" in objects["#documents-suspect-000"]["description"]


def test_it_has_no_text_and_no_name_of_a_document(written, tmp_path):
    content = (tmp_path / "crate" / METADATA).read_text()
    assert "@graph" in json.loads(content)
    for forbidden in ("zqword", "-doc-", str(tmp_path)):
        assert forbidden not in content


def test_text_would_be_refused_before_anything_is_written(written, tmp_path):
    files = written[1]
    with pytest.raises(ValueError, match=f"{METADATA} would hold text"):
        write_crate(files, [REASON], tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_folder_with_other_files_is_refused(written, tmp_path):
    with pytest.raises(ValueError, match="empty or not there yet"):
        write_crate(written[1], [], tmp_path / "crate")


def test_without_the_library_one_sentence_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rocrate", None)
    with pytest.raises(ValueError, match=r'library rocrate, which is missing .*pip install "nonmember\[crate\]"'):
        write_crate({}, [], tmp_path / "crate")
