"""YAML of others is read within bounds, or refused with file and line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nonmember.runtime.yaml_files import MAX_BYTES, MAX_NODES, read_yaml

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("a: [1,\nb: }", 2, "did not find expected node content"),
        ("a:\n\tb: 1", 2, "found character that cannot start any token"),
        ('a: 1\nb: "x', 2, "found unexpected end of stream"),
        ("a: 1\n---\nb: 2", 2, "another document"),
        ("a: !!python/object/apply:os.system [x]", 1, "python/object/apply:os.system' is not allowed"),
        ("a: 1\nb: !mine 1", 2, "the tag '!mine' is not allowed"),
        ("a: 1\nb: \xff", 2, "not text in UTF-8"),
        ("a: 1\nb: x\x00", 2, "the control character '\\x00'"),
        ("a: \x1b[31m", 1, "the control character"),
        ("[" * 100_000, 1, "nested more than 40 deep"),
        ("? " * 100_000, 1, "nested more than 40 deep"),
        ("".join(f"{' ' * n}a:\n" for n in range(100)), 41, "nested more than 40 deep"),
        (BOMB, 4, "more than 4,000 values, aliases followed"),
        ("- 1\n" * (MAX_NODES + 1), MAX_NODES, "more than 4,000 values"),
        ("a: &a [*a]", 1, "*a stands for nothing that is complete before it"),
        ("a: &a\n  <<: *a\n", 2, "*a stands for nothing"),
        ("a: *b", 1, "*b stands for nothing"),
    ],
)
def test_file_and_line_are_named(content, line, reason, tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(ValueError) as error:
        read_yaml(path)
    assert str(error.value).startswith(f"{path}, line {line} cannot be read as YAML: ")
    assert reason in str(error.value)


def test_what_is_no_yaml_file(tmp_path):
    os.mkfifo(tmp_path / "fifo.yaml")
    (tmp_path / "large.yaml").write_bytes(b"#" * (MAX_BYTES + 1))
    (tmp_path / "number.yaml").write_text("a: " + "9" * 5000)
    for path, reason in (
        (tmp_path / "fifo.yaml", "no regular file"),
        (Path("/dev/zero"), "no regular file"),
        (tmp_path, "a folder"),
        (tmp_path / "large.yaml", "at most 256 KiB"),
        (tmp_path / "number.yaml", "cannot be read as YAML: Exceeds the limit"),
    ):
        with pytest.raises(ValueError, match=reason):
            read_yaml(path)
    with pytest.raises(FileNotFoundError):
        read_yaml(tmp_path / "none.yaml")


def test_what_is_sound_is_read(tmp_path):
    path = tmp_path / "good.yaml"
    path.write_text("base: &base {a: 1, b: [x, é]}\nmine: {<<: *base, a: !!str 2}\n")
    assert read_yaml(path) == {"base": {"a": 1, "b": ["x", "é"]}, "mine": {"a": "2", "b": ["x", "é"]}}
