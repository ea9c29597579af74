"""Housekeeping never loses what is needed, and finds what is damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nonmember.artifacts import keeping
from nonmember.artifacts.keeping import Kept, entries, users_of
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


def test_what_is_damaged_is_found(store):
    bad = next(item for item in entries(store) if item.kind == "tokenizers")
    (bad.path / "data.txt").write_text("dat.")
    assert "was changed" in (keeping.damage(bad) or "")


def test_an_entry_under_anothers_name_or_without_its_sidecar_is_found(store):
    item, other = [entry for entry in entries(store) if entry.kind == "models"][:2]
    sidecar = keeping.SIDECAR
    shutil.copy2(other.path / sidecar, item.path / sidecar)
    assert "its key belongs to another entry" in (keeping.damage(Kept(item.path)) or "")
    for content in ("{", '{"key": 1}', "[]"):
        (item.path / sidecar).write_text(content)
        assert f"its {sidecar} cannot be read" in (keeping.damage(Kept(item.path)) or ""), content


def test_a_link_is_removed_and_not_what_it_leads_to(store, tmp_path):
    """As of an entry that lies on another disk."""
    item = entries(store)[0]
    elsewhere = tmp_path / "elsewhere"
    shutil.move(item.path, elsewhere)
    item.path.symlink_to(elsewhere)
    keeping.remove(item.path)
    assert not item.path.is_symlink()
    assert (elsewhere / "data.txt").read_text() == "data"
