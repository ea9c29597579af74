"""Housekeeping never loses what is needed, never mixes what differs, and can be stopped anywhere."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from pathlib import Path

import pytest

from nonmember.artifacts import keeping
from nonmember.artifacts.card import card, export
from nonmember.artifacts.keeping import Kept, entries, merge, users_of
from nonmember.artifacts.store import Entry, Store, key_hash

BASE = {"scratch": "gpt", "architecture": {"width": 16}, "tokenizer": {"vocab_size": 9}, "seed": 1}
TARGET = {"base": BASE, "recipe": {"kind": "Pretraining", "rate": 0.1}, "corpus": "text", "seed": 1, "teacher": None}
TUNED = {"base": TARGET, "recipe": {"kind": "Pretraining", "rate": 0.2}, "corpus": "more", "seed": 2, "teacher": None}
LONELY = {**TARGET, "seed": 3}


def put(root: Path, kind: str, key: dict, text: str = "data") -> Entry:
    def make(folder: Path) -> dict[str, object]:
        (folder / "data.txt").write_text(text)
        return {"label": kind}

    return Store(root).get_or_make(kind, f"a-{kind}", key, make)


def run(source: Path, target: Path) -> keeping.Merged:
    *_, record = merge(source, target)
    return record


def contents(root: Path) -> dict[str, str]:
    return {f"{item.kind}/{item.hash}": (item.path / "data.txt").read_text() for item in entries(root)}


@pytest.fixture
def store(tmp_path) -> Path:
    root = tmp_path / "one"
    for key in (TARGET, TUNED, LONELY):
        put(root, "models", key)
    put(root, "tokenizers", BASE["tokenizer"])
    for model in (TUNED, LONELY):
        for corpus in ("asked", "other"):
            put(root, "observations", {"model": model, "corpus": corpus})
    put(root, "corpora", {"recipe": 1})
    return root


def test_a_result_needs_its_models_what_they_are_made_of_and_what_they_say_of_its_documents(store):
    results = {"one": {"target": key_hash(TUNED), "corpus": "asked"}, "two": {"corpus": "other"}}
    kept = entries(store)
    users = {(item.kind, item.hash): users_of(kept, results)[item.path] for item in kept}
    assert users["models", key_hash(TUNED)] == users["models", key_hash(TARGET)] == ["one"]
    assert users["tokenizers", key_hash(BASE["tokenizer"])] == ["one"]
    assert users["observations", key_hash({"model": TUNED, "corpus": "asked"})] == ["one"]
    assert users["corpora", key_hash({"recipe": 1})] == ["one", "two"]
    assert users["models", key_hash(LONELY)] == []
    assert users["observations", key_hash({"model": TUNED, "corpus": "other"})] == [], "only the second asks about it"
    assert users["observations", key_hash({"model": LONELY, "corpus": "asked"})] == []


def test_what_is_removed_is_gone_at_once_and_all_else_stays(store):
    before = contents(store)
    lonely = next(item for item in entries(store) if item.hash == key_hash(LONELY))
    keeping.remove(lonely.path)
    assert contents(store).keys() == before.keys() - {f"models/{lonely.hash}"}
    assert not list(store.glob(f"*/{keeping.REMOVED}*"))


def test_a_merge_copies_once_and_names_both_places_of_a_conflict(store, tmp_path):
    other = tmp_path / "other"
    put(other, "models", TARGET)
    mine = put(other, "models", LONELY, "trained on another machine")
    record = run(store, other)
    assert (len(record.copied), len(record.there), len(record.conflicts)) == (7, 1, 1)
    assert all(str(path) in record.conflicts[0] for path in (store, mine.path))
    assert (mine.path / "data.txt").read_text() == "trained on another machine", "nobody decides for the user"
    again = run(store, other)
    assert (len(again.copied), len(again.there)) == (0, 8)
    assert all(keeping.damage(item) is None for item in entries(other))


def test_what_is_damaged_is_found_and_not_spread(store, tmp_path):
    bad = next(item for item in entries(store) if item.kind == "tokenizers")
    (bad.path / "data.txt").write_text("dat.")
    assert "was changed" in (keeping.damage(bad) or "")
    record = run(store, tmp_path / "other")
    assert len(record.damaged) == 1
    assert f"tokenizers/{bad.hash}" not in contents(tmp_path / "other")


def test_an_entry_under_anothers_name_or_without_its_sidecar_is_found(store, tmp_path):
    item, other = [entry for entry in entries(store) if entry.kind == "models"][:2]
    sidecar = keeping.SIDECAR
    shutil.copy2(other.path / sidecar, item.path / sidecar)
    assert "its key belongs to another entry" in (keeping.damage(Kept(item.path)) or "")
    for content in ("{", '{"key": 1}', "[]"):
        (item.path / sidecar).write_text(content)
        assert f"its {sidecar} cannot be read" in (keeping.damage(Kept(item.path)) or ""), content
    assert len(run(store, tmp_path / "other").damaged) == 1


def test_a_link_is_removed_and_not_what_it_leads_to(store, tmp_path):
    """As of an entry that lies on another disk."""
    item = entries(store)[0]
    elsewhere = tmp_path / "elsewhere"
    shutil.move(item.path, elsewhere)
    item.path.symlink_to(elsewhere)
    keeping.remove(item.path)
    assert not item.path.is_symlink()
    assert (elsewhere / "data.txt").read_text() == "data"


def test_a_store_is_not_merged_into_itself(store, tmp_path):
    (tmp_path / "same").symlink_to(store)
    with pytest.raises(ValueError, match="must be two"):
        run(store, tmp_path / "same")


def test_a_copy_that_is_not_what_was_copied_is_not_kept(store, tmp_path, monkeypatch):
    """As of a disk that fails in silence."""
    copy = shutil.copy2

    def lossy(source, to):
        copy(source, to)
        Path(to).write_bytes(Path(to).read_bytes()[:-1])

    monkeypatch.setattr(shutil, "copy2", lossy)
    with pytest.raises(OSError, match="was not copied exactly"):
        run(store, tmp_path / "other")
    assert contents(tmp_path / "other") == {}
    monkeypatch.undo()
    assert len(run(store, tmp_path / "other").copied) == len(entries(store))


@pytest.mark.parametrize("where", ["copy2", "replace"])
def test_a_full_disk_or_a_kill_leaves_nothing_half_done_and_it_goes_on(store, tmp_path, monkeypatch, where):
    other, place = tmp_path / "other", shutil if where == "copy2" else os
    work, calls = getattr(place, where), []

    def fails(*given):
        calls.append(given)
        if len(calls) == 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) if where == "copy2" else KeyboardInterrupt
        return work(*given)

    monkeypatch.setattr(place, where, fails)
    with pytest.raises((OSError, KeyboardInterrupt)) as caught:
        run(store, other)
    if where == "copy2":
        assert str(other) in str(caught.value), "which disk is full"
    monkeypatch.undo()
    assert all(keeping.damage(item) is None for item in entries(other))
    assert 0 < len(entries(other)) < len(entries(store))
    run(store, other)
    assert contents(other) == contents(store)
    assert not list(other.glob(f"*/{keeping.MERGING}*"))


def test_two_merges_at_once_copy_everything_once(store, tmp_path):
    other, records = tmp_path / "other", []
    both = [threading.Thread(target=lambda: records.append(run(store, other))) for _ in range(2)]
    for item in both:
        item.start()
    for item in both:
        item.join()
    assert sorted(len(record.copied) + len(record.there) for record in records) == [9, 9]
    assert sum(len(record.copied) for record in records) == 9
    assert contents(other) == contents(store)


def test_tables_of_answers_are_taken_along_and_never_mixed(store, tmp_path):
    other, table = tmp_path / "other", store / keeping.ANSWERS / "a-model-1234"
    table.mkdir(parents=True)
    (table / "completions.sqlite").write_text("answers")
    assert table in run(store, other).copied
    (other / keeping.ANSWERS / table.name / "completions.sqlite").write_text("others")
    assert len(run(store, other).conflicts) == 1


def test_a_card_tells_every_step_and_an_export_is_complete(store, tmp_path):
    (tuned,) = [item for item in entries(store) if item.hash == key_hash(TUNED)]
    text = card(tuned)
    steps = [line for line in text.splitlines() if line[:2] in ("1.", "2.", "3.")]
    assert [word in step for word, step in zip(("gpt", "rate 0.1", "rate 0.2"), steps, strict=True)] == [True] * 3
    assert "`more`" in steps[2]
    folder = export(tuned, tmp_path / "out")
    assert {path.name for path in folder.iterdir()} == {"README.md", "data.txt"}
    with pytest.raises(ValueError, match="already exists"):
        export(tuned, folder)
    (tuned.path / "data.txt").unlink()
    with pytest.raises(ValueError, match="missing"):
        export(Kept(tuned.path), tmp_path / "second")
