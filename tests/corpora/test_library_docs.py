from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nonmember.corpora import LibraryDocs

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
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


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


def test_equal_whatever_the_order_and_repeatable(package, build):
    item, other = LibraryDocs(["omegaconf", "madeup_module"]), LibraryDocs(("madeup_module", "omegaconf"))
    assert item == other
    assert hash(item) == hash(other)
    assert build(item).fingerprint == build(other).fingerprint


@pytest.mark.parametrize(
    ("packages", "message"),
    [
        (["madeup_library", "not_installed_at_all"], "needs the package 'not_installed_at_all'"),
        (["madeup_library.shapes"], "top-level packages.*'madeup_library.shapes'"),
        (["madeup_module", "madeup_module"], "names something twice"),
        ([], "a name or a list of names"),
        (["madeup_silence"], "no docstrings in madeup_silence"),
    ],
)
def test_says_what_is_wrong(package, build, packages, message):
    with pytest.raises(ValueError, match=message):
        build(LibraryDocs(packages))


def test_a_missing_package_is_named_before_any_key_is_made():
    with pytest.raises(ValueError, match="needs the package 'not_installed_at_all'"):
        LibraryDocs(("not_installed_at_all",)).identity()
