"""Docstrings of installed packages, and of releases that are not: out of wheels, and of folders with the same files."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from nonmember.corpora import LibraryDocs, ReleaseDocs

INIT = '''"""The package."""
raise RuntimeError("imported!")
'''
CODE = r'''"""The module, with \d in it."""

class Shape:
    """A shape."""

    @property
    def area(self):
        """Its area."""

    @area.setter
    def area(self, value):
        """Set its area."""

    def silent(self):
        return "not a docstring"

if True:
    def sometimes():
        """Only sometimes."""
        async def inner():
            """Inside."""
else:
    def sometimes():
        """Otherwise."""

def blank():
    """   """
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package that must not be imported; its broken, test and vendored modules do not count."""
    files = {
        "madeup_library/__init__.py": INIT,
        "madeup_library/shapes.py": CODE,
        "madeup_library/template.py": '"""Not Python."""\n{{ name }} = = 1',
        "madeup_library/tests/test_shapes.py": '"""A test."""',
        "madeup_library/test_more.py": '"""A test."""',
        "madeup_library/_vendor/six.py": '"""Somebody else."""',
        "madeup_module.py": '"""One file."""',
        "madeup_silence.py": "x = 1",
    }
    monkeypatch.syspath_prepend(tmp_path)
    return unpacked(tmp_path, files)


def unpacked(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_docstrings_without_importing(package, build):
    corpus = build(LibraryDocs(["madeup_module", "madeup_library"]))
    assert [(d.doc_id, d.text) for d in corpus.documents] == [
        ("madeup_library:madeup_library", "The package."),
        ("madeup_library:madeup_library.shapes", r"The module, with \d in it."),
        ("madeup_library:madeup_library.shapes.Shape", "A shape."),
        ("madeup_library:madeup_library.shapes.Shape.area", "Its area."),
        ("madeup_library:madeup_library.shapes.Shape.area~2", "Set its area."),
        ("madeup_library:madeup_library.shapes.sometimes", "Only sometimes."),
        ("madeup_library:madeup_library.shapes.sometimes.inner", "Inside."),
        ("madeup_library:madeup_library.shapes.sometimes~2", "Otherwise."),
        ("madeup_module:madeup_module", "One file."),
    ]
    assert {d.cluster_id for d in corpus.documents[1:8]} == {"madeup_library.shapes"}
    assert {d.domain for d in corpus.documents} == {"madeup_library", "madeup_module"}
    assert corpus.dropped == {"unparsable_module": 1}
    assert "madeup_library" not in sys.modules
    assert "madeup_module" not in sys.modules


def test_identity_of_uninstalled_code_is_its_content(package: Path):
    spec = LibraryDocs("madeup_library")
    before = spec.identity()
    assert before["packages"]["madeup_library"].startswith("sha256 ")
    (package / "madeup_library/shapes.py").write_text('"""Other words, to be sure."""')
    assert spec.identity() != before


def test_identity_of_installed_packages_is_their_version():
    identity = LibraryDocs(("numpy", "sklearn", "stdlib")).identity()
    versions = identity["packages"]
    assert versions["sklearn"].startswith("scikit-learn ")
    assert versions["numpy"].startswith("numpy ")
    assert versions["stdlib"] == identity["python"] == ".".join(map(str, sys.version_info[:3]))


@pytest.mark.parametrize(
    ("packages", "message"),
    [
        (["madeup_library", "not_installed_at_all"], "needs the package 'not_installed_at_all'"),
        (["madeup_library.shapes"], "top-level packages.*'madeup_library.shapes'"),
        (["madeup_module", "madeup_module"], "names something twice"),
        ([], "a name or a list of names"),
        (["madeup_silence"], "no docstrings of madeup_silence"),
    ],
)
def test_says_what_is_wrong_with_installed_ones(package, build, packages, message):
    with pytest.raises(ValueError, match=message):
        build(LibraryDocs(packages))
    if "not_installed" in message:  # also before any key is made
        with pytest.raises(ValueError, match=message):
            LibraryDocs(packages).identity()


# ----------------------------------------------------------------------------------------- a release in a folder

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
    folder = ReleaseDocs(str(unpacked(tmp_path / "unpacked", OLDER)), "older", ["madeup"])
    assert build(folder).fingerprint == build(packed).fingerprint


def test_identity_is_that_of_the_files_wherever_they_lie(tmp_path):
    here, there, changed = (
        ReleaseDocs(wheel(tmp_path / name, files), "older", ["madeup"])
        for name, files in (("here", OLDER), ("there", OLDER), ("changed", NEWER))
    )
    for item in (here, there):  # zip entries carry the time at which they were made
        Path(item.path, "madeup-1.0-py3-none-any.whl").write_bytes(b"the same bytes")
    assert here.identity() == there.identity() != changed.identity()


def test_says_what_is_missing_of_a_release(tmp_path, build):
    with pytest.raises(ValueError, match=r"not a folder.*pip download"):
        build(ReleaseDocs(str(tmp_path / "nowhere"), "older", ["madeup"]))
    with pytest.raises(ValueError, match="no docstrings of scipy in"):
        build(ReleaseDocs(wheel(tmp_path, OLDER), "older", ["madeup", "scipy"]))
