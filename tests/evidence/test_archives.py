"""Archives that play tricks, each refused with the sentence that names the trick; nothing is ever unpacked to disk."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Callable, Iterator

import pytest
from doctored import plain, require_found, written

import nonmember_verify.archive
import nonmember_verify.bundle


def entry(name: str, mode: int = stat.S_IFREG | 0o644) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(name)
    made.create_system, made.external_attr = 3, mode << 16
    return made


def encrypted(content: bytes) -> bytes:
    """With the bit set that says so, in the first row of the directory."""
    place = content.index(b"PK\1\2") + 8
    return content[:place] + bytes([content[place] | 1]) + content[place + 1 :]


def tricks() -> Iterator[tuple[str, Callable[[zipfile.ZipFile], None], str]]:
    for name in ("../outside.json", "/etc/outside.json", "a\\..\\outside.json", "audits/../../x", "c:outside"):
        yield name, lambda item, name=name: item.writestr(entry(name), b"x"), "a path that leaves the bundle"
    yield "symlink", lambda item: item.writestr(entry("a.json", stat.S_IFLNK | 0o777), b"/etc"), "is a symbolic link"
    yield "device", lambda item: item.writestr(entry("a.json", stat.S_IFCHR | 0o777), b""), "is not a plain file"
    yield "folder", lambda item: item.writestr(entry("folder/"), b""), "is not a plain file"
    yield "twice", lambda item: item.writestr(entry("page.html"), b"other"), "page.html more than once"
    yield "capitals", lambda item: item.writestr(entry("Page.html"), b"other"), "differ in capitals alone"
    large = bytes(2**22)
    yield "bomb", lambda item: item.writestr(entry("a.json"), large, zipfile.ZIP_DEFLATED), "cannot be a zip bomb"
    yield "comment", lambda item: setattr(item, "comment", b"hidden"), "holds bytes beside its files"


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(("trick", "sentence"), [pytest.param(*item, id=name) for name, *item in tricks()])
def test_a_trick_of_the_archive_is_found(trick, sentence, tmp_path):
    path = written(plain("prism"), tmp_path / "bundle.zip")
    with zipfile.ZipFile(path, "a") as archive:
        trick(archive)
    require_found(path, sentence)
    assert not list(tmp_path.glob("**/outside*"))


@pytest.mark.parametrize(
    ("limit", "most", "sentence"),
    [("MOST_FILES", 3, "a bundle has at most 3"), ("MOST_BYTES", 1_000, "a bundle has at most 1,000")],
)
def test_an_archive_that_is_larger_than_any_bundle_is_found(limit, most, sentence, tmp_path, monkeypatch):
    monkeypatch.setattr(nonmember_verify.archive, limit, most)
    require_found(written(plain("prism"), tmp_path / "bundle.zip"), sentence)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (lambda item: b"#!/bin/sh\n" + item, "holds bytes beside its files"),
        (lambda item: item + b"more", "holds bytes beside its files|cannot be read"),
        (lambda item: item[: len(item) // 2], "cannot be read"),
        (lambda item: b"no archive", "cannot be read"),
        (lambda item: item.replace(b"page.html", b"pagf.html", 1), "cannot be read"),
        (encrypted, "is encrypted"),
    ],
)
def test_a_damaged_archive_is_found(content, sentence, tmp_path):
    path = written(plain("prism"), tmp_path / "bundle.zip")
    path.write_bytes(content(path.read_bytes()))
    require_found(path, sentence)


def test_a_table_that_unpacks_to_more_than_there_can_be_is_found(tmp_path, monkeypatch):
    path = written(plain("prism"), tmp_path / "bundle.zip")
    monkeypatch.setattr(nonmember_verify.bundle, "MOST_CELLS", 100)
    require_found(path, "a table of a bundle has at most 100")


def test_what_is_there_is_not_a_bundle(tmp_path):
    require_found(tmp_path, "is a folder")
    require_found(tmp_path / "none.zip", "There is no file")
