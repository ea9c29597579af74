"""Docstrings of releases that are not installed: out of wheels, and of folders with the same files."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from nonmember.corpora import ReleaseDocs
from nonmember.corpora.sources import docstrings

OLDER = {
    "madeup/__init__.py": '"""The package."""\nraise RuntimeError("imported!")\n',
    "madeup/shapes.py": 'class Shape:\n    """A shape."""\n    def area(self):\n        """Its area."""\n',
    "madeup/tests/test_shapes.py": '"""A test."""',
    "madeup/broken.py": "= = 1",
    "madeup-1.0.dist-info/METADATA": "Name: madeup",
    "other/__init__.py": '"""Another package in the wheel."""',
}
NEWER = OLDER | {"madeup/shapes.py": 'def area(shape):\n    """The area of a shape, in its own words."""\n'}


def wheel(folder: Path, files: dict[str, str]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "madeup-1.0-py3-none-any.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return str(folder)


def test_two_releases_of_a_package_stay_apart(tmp_path, build):
    older = build(ReleaseDocs(wheel(tmp_path / "older", OLDER), "older", ["madeup"]))
    assert [(d.doc_id, d.text, d.cluster_id, d.domain) for d in older.documents] == [
        ("madeup-older:madeup", "The package.", "madeup", "madeup-older"),
        ("madeup-older:madeup.shapes.Shape", "A shape.", "madeup.shapes", "madeup-older"),
        ("madeup-older:madeup.shapes.Shape.area", "Its area.", "madeup.shapes", "madeup-older"),
    ]
    assert older.dropped == {"unparsable_module": 1}
    newer = build(ReleaseDocs(wheel(tmp_path / "newer", NEWER), "newer", ["madeup"]))
    assert [d.doc_id for d in newer.documents] == ["madeup-newer:madeup", "madeup-newer:madeup.shapes.area"]
    assert {d.cluster_id for d in older.documents} == {d.cluster_id for d in newer.documents}


def test_an_unpacked_wheel_is_read_as_the_wheel(tmp_path, build):
    packed = ReleaseDocs(wheel(tmp_path / "packed", OLDER), "older", ["madeup"])
    for name, text in OLDER.items():
        path = tmp_path / "unpacked" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    unpacked = ReleaseDocs(str(tmp_path / "unpacked"), "older", ["madeup"])
    assert build(unpacked).fingerprint == build(packed).fingerprint


def test_identity_is_that_of_the_files_wherever_they_lie(tmp_path):
    here, there, changed = (
        ReleaseDocs(wheel(tmp_path / name, files), "older", ["madeup"])
        for name, files in (("here", OLDER), ("there", OLDER), ("changed", NEWER))
    )
    for item in (here, there):  # zip entries carry the time at which they were made
        Path(item.path, "madeup-1.0-py3-none-any.whl").write_bytes(b"the same bytes")
    assert here.identity() == there.identity() != changed.identity()


def test_a_module_that_unpacks_to_too_much_is_not_read(tmp_path, build, monkeypatch):
    monkeypatch.setattr(docstrings, "MOST_BYTES", 60)
    corpus = build(ReleaseDocs(wheel(tmp_path, OLDER), "older", ["madeup"]))
    assert [d.doc_id for d in corpus.documents] == ["madeup-older:madeup"]


def test_says_what_is_missing(tmp_path, build):
    with pytest.raises(ValueError, match=r"no folder.*pip download"):
        build(ReleaseDocs(str(tmp_path / "nowhere"), "older", ["madeup"]))
    with pytest.raises(ValueError, match="no docstrings of scipy in"):
        build(ReleaseDocs(wheel(tmp_path, OLDER), "older", ["madeup", "scipy"]))
    with pytest.raises(ValueError, match="`release` of ReleaseDocs"):
        ReleaseDocs(str(tmp_path), "1.0", ["madeup"])
