"""Results carry a seal: what was edited, damaged or lost is refused by whoever reads them, and said with its path."""

from __future__ import annotations

import copy
import errno
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import nonmember as nm
from nonmember.cli import table, view
from nonmember.cli.store import keys_of_results
from nonmember.results.load import load_runs
from nonmember.results.outcomes import outcome_paths, read_outcome
from nonmember.results.result import ERROR, RESULT, AuditResult, Failure
from nonmember.results.seals import _hash_of, with_seal
from nonmember.runtime.terminal import visible
from wandb_helpers import lay_down, lay_down_failure, result


def sealed(folder: Path, **changes) -> Path:
    path = lay_down(folder, result(cell=folder.name, **changes))
    of = result(cell=folder.name, **changes)
    of.save(path, [folder / "scores.parquet", folder / "distribution.parquet"])
    return path


def edit(path: Path, **values: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGE = {
    "verdict": (lambda path: edit(path, verdict="evidence_of_non_membership"), RESULT),
    "statistic": (lambda path: edit(path, statistic=0.9), RESULT),
    "warnings": (lambda path: edit(path, warnings=[]), RESULT),
    "seal": (lambda path: edit(path, seal={"files": {}}), RESULT),
    "no seal at all": (lambda path: edit(path, seal=None), RESULT),
    "scores": (lambda path: flip(path.with_name("scores.parquet")), "scores.parquet"),
    "other scores": (lambda path: path.with_name("scores.parquet").write_bytes(b""), "scores.parquet"),
    "no scores": (lambda path: path.with_name("scores.parquet").unlink(), "scores.parquet"),
    "distribution": (lambda path: flip(path.with_name("distribution.parquet")), "distribution.parquet"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_what_was_changed_is_refused_by_name(tmp_path, what):
    path = sealed(tmp_path / "one")
    assert AuditResult.load(path) == result(cell="one")
    damage, name = DAMAGE[what]
    damage(path)
    expected = rf"(?s)^{re.escape(str(path.with_name(name)))} must .*Start the audit again to make it again"
    with pytest.raises(ValueError, match=expected):
        read_outcome(path)
    with pytest.raises(ValueError, match=r"There is no result\.json below .* \(1 that it cannot\)"):
        load_runs([tmp_path])
    if name != RESULT:
        assert AuditResult.load(path, files_too=False) == result(cell="one")


def test_how_the_file_is_laid_out_does_not_matter(tmp_path):
    path = sealed(tmp_path / "one")
    path.write_text(json.dumps(json.loads(path.read_text()), sort_keys=True))
    assert AuditResult.load(path) == result(cell="one")


def test_a_copy_of_a_result_is_not_counted_again(tmp_path, caplog):
    """As of a folder that was copied before something was tried in it, or an audit made on two machines."""
    for folder, cell, seconds in (("a", "one", 12.5), ("b", "two", 12.5), ("copy", "one", 99.0)):
        lay_down(tmp_path / folder, result(cell=cell, seconds=seconds))
    assert [run.path.split("/")[1] for run in load_runs([tmp_path]).runs] == ["a", "b"]
    with pytest.raises(ValueError, match=r"There is no result\.json below .*/mispelt\. Run audits first, or name"):
        load_runs([tmp_path, tmp_path / "mispelt"])
    assert re.search(r"1 results repeat others and are left out, such as .*copy/.* of .*/a/", caplog.text)


def test_a_folder_that_cannot_be_opened_is_not_passed_over(tmp_path, monkeypatch):
    """As that of another user of a shared disk, whose results need the store as well."""
    for name in ("closed", "open"):
        lay_down(tmp_path / name, result(cell=name))
    scan, read = os.scandir, io.open

    def closed(call):
        def refuses(path, *given, **more):
            if "/closed" in str(path):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return call(path, *given, **more)

        return refuses

    monkeypatch.setattr(os, "scandir", closed(scan))
    monkeypatch.setattr(io, "open", closed(read))
    assert load_runs([tmp_path]).unreadable.keys() == {f"{tmp_path.name}/closed/result.json"}
    assert nm.load_results(tmp_path)["error"].notna().tolist() == [True, False]
    _, problems = keys_of_results([tmp_path])
    assert len(problems) == 1


def test_a_terminal_that_lacks_a_letter_makes_no_result_unusable(tmp_path, monkeypatch):
    lay_down(tmp_path / "one", result(corpus="größe"))
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="backslashreplace")
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(sys, "argv", ["nonmember table", str(tmp_path)])
    table.main()
    terminal.seek(0)
    assert r"gr\xf6\xdfe" in terminal.read()


def test_a_damaged_result_does_not_hide_the_others_in_a_table(tmp_path, monkeypatch, capsys):
    for cell in ("good", "bad"):
        sealed(tmp_path / cell)
    edit(tmp_path / "bad" / RESULT, p_value=0.001)
    monkeypatch.setattr(sys, "argv", ["nonmember table", str(tmp_path)])
    with pytest.raises(ValueError, match=r"1 of 2 results cannot be used\. The first: .*bad/result.json must be what"):
        table.main()
    said = capsys.readouterr().out
    assert "failed  bad: " in said
    assert "0.0010" not in said
    assert said.count("0.9300") == 1


def test_a_failure_that_was_mended_is_not_shown(tmp_path):
    lay_down_failure(tmp_path / "mended")
    sealed_path = tmp_path / "mended" / RESULT
    result().save(sealed_path)
    assert outcome_paths(tmp_path) == [sealed_path]
    lay_down_failure(tmp_path / "failed")
    error = tmp_path / "mended" / ERROR
    os.utime(error, ns=(0, sealed_path.stat().st_mtime_ns + 1))  # another question failed there later
    assert outcome_paths(tmp_path) == [tmp_path / "failed" / ERROR, error, sealed_path]
    assert isinstance(read_outcome(error), Failure)


# What strangers put there -------------------------------------------------------------------------------------------


def changed(*path: Any, value: Any) -> Callable[[Path], None]:
    """A result that says so itself, under a seal of its own."""

    def write(file: Path) -> None:
        values = json.loads(result(cell="bad").to_json())
        node = values
        for item in path[:-1]:
            node = node[item]
        node[path[-1]] = value
        file.write_text(json.dumps(with_seal(values, [])))

    return write


def sealed_with(files: dict[str, str]) -> Callable[[Path], None]:
    def write(file: Path) -> None:
        values = json.loads(result(cell="bad").to_json())
        file.write_text(json.dumps({**values, "seal": {"files": files, "content": _hash_of(values, files)}}))

    return write


UNUSABLE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a folder": (lambda file: file.mkdir(), "cannot be read|can read"),
    "nothing": (lambda file: file.touch(), "Expecting value"),
    "brackets": (lambda file: file.write_text("[" * 100_000), "nested too deeply"),
    "no UTF-8": (lambda file: file.write_bytes(b'{"a": "\xff"}'), "can't decode"),
    "UTF-16": (lambda file: file.write_bytes(result().to_json().encode("utf-16")), "can't decode"),
    "a list": (lambda file: file.write_text("[1]"), "must hold a JSON object"),
    "a name twice": (lambda file: file.write_text('{"a": 1, "a": 2}'), "occurs twice"),
    "NaN": (lambda file: file.write_text('{"a": NaN}'), "NaN is not a JSON number"),
    "5,000 digits": (lambda file: file.write_text(f'{{"a": {"9" * 5_000}}}'), "limit"),
    "a later schema": (changed("schema_version", value=4), r"schema version must be 3; got 4\)"),
    "an earlier schema": (
        changed("schema_version", value=2),
        r"got 2; the last version that reads it is nonmember 0\.1",
    ),
    "a value that is text": (
        changed("statistics", "value", value="abc"),
        "statistics.value: Input should be a valid number",
    ),
    "details that are a list": (
        changed("statistics", "details", value=[1]),
        "statistics.details: Input should be an object",
    ),
    "no settings": (changed("question", "settings", value=None), "question.settings: Input should be an object"),
    "a number beyond all": (changed("statistics", "p_value", value=10**400), "should be a finite number"),
    "a truth that is a number": (
        changed("question", "truth", value=7),
        "question.truth: Input should be a valid string",
    ),
    "true for a number": (changed("statistics", "num_documents", value=True), "should be a valid integer"),
    "a field more": (changed("health", "fever", value=1), "health.fever: Unexpected keyword argument"),
    "a seal of another file": (sealed_with({"/etc/passwd": "0" * 64}), "changed afterwards"),
    "a seal of a missing file": (sealed_with({"../x": "0" * 64}), "it is missing"),
    "no seal": (lambda file: file.write_text(result(cell="bad").to_json()), "changed afterwards"),
}


def test_what_cannot_be_used_hides_nothing_else(tmp_path, monkeypatch, capsys, caplog):
    """In each command: the one good result is there, every other one is named with the reason, and counted."""
    sealed(tmp_path / "good")
    for number, (write, _) in enumerate(UNUSABLE.values()):
        (tmp_path / f"bad-{number}").mkdir()
        write(tmp_path / f"bad-{number}" / RESULT)
    reasons = {f"bad-{number}": reason for number, (_, reason) in enumerate(UNUSABLE.values())}
    monkeypatch.setattr(sys, "argv", ["nonmember", str(tmp_path)])

    with pytest.raises(ValueError, match=rf"^{len(reasons)} of {len(reasons) + 1} results cannot be used"):
        table.main()
    shown = capsys.readouterr().out
    assert shown.count("0.9300") == 1
    for name, reason in reasons.items():
        assert re.search(rf"failed  {name}: .*({reason})", shown), name

    rows = nm.load_results(tmp_path)
    assert rows["verdict"].notna().sum() == 1
    assert rows["error"].notna().sum() == len(reasons)

    monkeypatch.setattr(sys, "argv", ["nonmember", str(tmp_path), "--pages"])
    with pytest.raises(ValueError, match=rf"^{len(reasons)} of {len(reasons) + 1} results cannot be used"):
        view.main()
    assert str(tmp_path / "good" / "audit.html") in capsys.readouterr().out.splitlines()

    found = load_runs([tmp_path])
    assert len(found.runs) == 1
    assert len(found.unreadable) == len(reasons) == sum("is left out" in line for line in caplog.messages)

    keys, problems = keys_of_results([tmp_path])
    assert str(tmp_path / "good") in keys
    assert len(problems) == 9, "all that is no JSON object"


ODD = ("abc", [], {}, None, -1, True, [None])


def test_no_value_of_any_field_ends_in_a_traceback():
    """Each field of a result, and each of its details, with odd values: refused by name, or shown."""
    honest = json.loads(result().to_json())
    read, refused = [], 0
    for path in paths_of(honest):
        for odd in ODD:
            values = copy.deepcopy(honest)
            node = values
            for item in path[:-1]:
                node = node[item]
            node[path[-1]] = odd
            try:
                read.append(AuditResult.of(values))
            except ValueError:
                refused += 1
    table.show(read, console=Console(file=io.StringIO()))
    assert min(refused, len(read)) > 100


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in inner:
        yield from paths_of(item, (*path, name))


def test_hostile_words_are_shown_and_do_not_act(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "red\x1b[31m\u202ename"
    sealed(folder)
    words = "\x1b]0;title\x07 \u202egnp.exe [bold]x[/] <b>"
    lay_down(tmp_path / "words", result(cell=words, target=words, corpus=words, allowed_claim=words))
    for command, more in ((table, []), (view, ["--pages"])):
        monkeypatch.setattr(sys, "argv", ["nonmember", str(tmp_path), *more])
        command.main()
        shown = "".join(capsys.readouterr())
        assert not re.search("[\x1b\x07\u202e]", shown)
    assert r"\x1b]0;title\x07 \u202egnp.exe" in visible(words)
    made = (tmp_path / "words" / "audit.html").read_text(encoding="utf-8")
    assert not re.search("[\x1b\x07\u202e]", made)
    assert "<b>" not in made.partition("</style>")[2].replace("<b>no", "")
