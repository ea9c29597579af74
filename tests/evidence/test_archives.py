"""Archives that play tricks, each refused with the sentence that names the trick; nothing is ever unpacked to disk."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from doctored import SCORES, Files, plain, require_found, signed, written
from made_up_audits import checked

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


def with_column(values: Any) -> Files:
    """One more column of scores."""
    sink, table = io.BytesIO(), pq.read_table(io.BytesIO(plain("prism")[SCORES]))
    pq.write_table(table.append_column("more", values), sink, compression="zstd")
    return signed({**plain("prism"), SCORES: sink.getvalue()})


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (pa.array([[0.0] * 10_000] * 40), r"The tables hold \d+,\d+ numbers"),
        (pa.array([b"x" * 10_000] * 40), "holds a column of binary"),
        (pa.array([["x"]] * 40), "holds a column of list<element: string>"),
    ],
)
def test_a_table_that_unpacks_to_more_than_there_can_be_is_found(values, sentence, tmp_path, monkeypatch):
    monkeypatch.setattr(nonmember_verify.bundle, "MOST_CELLS", 100_000)
    require_found(written(with_column(values), tmp_path / "bundle.zip"), sentence)


def test_a_column_that_is_told_of_nowhere_is_named(tmp_path):
    lines = checked(written(with_column(pa.array([0.5] * 40)), tmp_path / "bundle.zip")).lines
    assert [line.told[:24] for line in lines if line.what == "further columns"] == ["more of scores.parquet, "]


@pytest.mark.parametrize(("place", "other"), [(8, b"\x08"), (18, b"\x05"), (6, b"\x08"), (10, b"\x01")])
def test_a_file_that_is_another_to_who_reads_its_own_header_is_found(place, other, tmp_path):
    """By method, size, flags or time; the directory at the end is as it was."""
    path = written(plain("prism"), tmp_path / "bundle.zip")
    content = path.read_bytes()
    place += content.index(b"PK\3\4", 1)
    path.write_bytes(content[:place] + other + content[place + 1 :])
    require_found(path, "has another header before it than in the directory")


def test_what_is_there_is_not_a_bundle(tmp_path):
    require_found(tmp_path, "is a folder")
    require_found(tmp_path / "none.zip", "There is no file")
