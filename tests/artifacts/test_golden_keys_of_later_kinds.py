"""As test_golden_keys, of the kinds that came after golden_keys.json; and no kind is forgotten.

later_keys.json is appended to when a kind is added, and an entry never changes: one that moves is a store that is lost.
method_settings.json holds what of each file of conf/method goes into the keys of audits.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import test_golden_keys as earlier
from hydra import compose, initialize_config_dir

import nonmember
import tiny
from nonmember.artifacts import Spec
from nonmember.artifacts.store import key_hash
from nonmember.audits.keys import settings_of_method
from nonmember.config.build import build
from nonmember.config.choices import config_directory
from nonmember.config.roots import register
from nonmember.config.safety import checked_composition
from nonmember.corpora import (
    Conversations,
    Dated,
    Dialogues,
    Hub,
    Joined,
    NestedMixture,
    Neutral,
    Prefixes,
    Prepared,
    Select,
    Shuffled,
    Titled,
    Works,
)
from nonmember.corpora.sources.documents import Documents, Table
from nonmember.corpora.sources.paraphrases import OtherTexts
from nonmember.corpora.transforms.cleaning import Cleaning
from nonmember.corpora.transforms.streamed import Streamed
from nonmember.corpora.views import Viewed
from nonmember.models import Rendered
from nonmember.observations.scored import BehindPrefix
from nonmember.observations.weights import WeightChange
from nonmember.training import Trained

GOLDEN = json.loads((Path(__file__).parent / "later_keys.json").read_text())
SCRATCH, SUSPECT, GENERAL = tiny.scratch(1), tiny.SUSPECT, tiny.GENERAL
CLEANING = Cleaning("as_is", 2, 10, "cut", "drop", None, 64)
TRAINED = Trained(SCRATCH, tiny.pretraining(), GENERAL, seed=1)
SPECS: dict[str, Spec[Any]] = {
    "select": Select(SUSPECT, num_documents=5, salt="s"),
    "dated": Dated(SUSPECT, 2000, 2010),
    "nested": NestedMixture(SUSPECT, GENERAL, 6, 0.5, "s"),
    "neutral": Neutral(GENERAL, SUSPECT, half="third", num_documents=5, min_characters=3, max_characters=50),
    "joined": Joined(SUSPECT, 3),
    "shuffled": Shuffled(SUSPECT, "s"),
    "prefixes": Prefixes(SUSPECT, (3, 5)),
    "prepared": Prepared(SUSPECT, CLEANING),
    "streamed": Streamed(SUSPECT, cleaning=replace(CLEANING, duplicates="keep")),
    "titled": Titled(SUSPECT, "(?P<title>.+)"),
    "works": Works(SUSPECT, "(?P<title>.+)"),
    "viewed": Viewed(SUSPECT, "lowercase"),
    "other_texts": OtherTexts(SUSPECT, (GENERAL,)),
    "hub": Hub("owner/name", None, "test", "0" * 40, "text", None, domain="x"),
    "behind_prefix": BehindPrefix(SCRATCH, SUSPECT, GENERAL, 2, 64),
    "weight_change": WeightChange(TRAINED, SCRATCH),
    "rendered": Rendered(Dialogues(SUSPECT, 2), None, "plain"),
}
CHAT = '{"id": "c", "messages": [{"role": "user", "content": "moss"}, {"role": "assistant", "content": "fern"}]}\n'
ROWS = '{"id": "a", "text": "moss fern"}\n{"id": "b", "text": "reed pine"}\n'


def files_in(folder: Path) -> dict[str, Spec[Any]]:
    """Sources that are known by what their files hold."""
    file = folder / "rows.jsonl"
    file.write_text(ROWS, encoding="utf-8")
    chat = folder / "chat.ndjson"
    chat.write_text(CHAT, encoding="utf-8")
    return {
        "documents": Documents(str(file)),
        "table": Table(str(file), "{id}", "{text}"),
        "conversations": Conversations(str(chat)),
    }


# Why a kind has no entry here.
WITHOUT = {
    "LibraryDocs": "known by the versions of what is installed",
    "ReleaseDocs": "known by files of a package",
    "Pretrained": "known by its folder (tests/models/test_loading.py)",
    "Gguf": "known by its file (tests/models/test_gguf.py)",
    "PackagedGguf": "known by its file (tests/models/test_gguf.py)",
    "Dequantized": "known by its file (tests/models/test_gguf.py)",
    "Recorded": "known by its file (tests/endpoints/test_recorded.py)",
    "AnsweredQuestions": "its texts are in the key of what is trained on them",
    "TokenIds": "known by a stream that is made",
    "Chunks": "parts of a stream, which are not kept",
    "Canaries": "known by their private file",
    "Identifiers": "nothing of it is kept",
    "Drawn": "known by their private file",
    "InMemory": "nothing of it outlives the process",
    "ConversationsInMemory": "nothing of it outlives the process",
    "Whole": "the model itself, in one piece",
    "Read": "nothing of it is kept",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    return tiny.builder(tmp_path_factory.mktemp("store")), SPECS | files_in(folder)


def test_every_later_kind_is_found_where_it_was(world):
    builder, specs = world
    found = {name: key_hash(spec.lookup_key(builder)) for name, spec in specs.items()}
    assert found == GOLDEN


def test_no_kind_is_forgotten(world):
    for module in pkgutil.walk_packages(nonmember.__path__, "nonmember."):
        importlib.import_module(module.name)
    pinned = set(kinds_in([vars(earlier).get(name) for name in ("MODELS", "CORPORA", "STORED")], world[1]))
    ours = {kind for kind in kinds_below(Spec) if kind.__module__.startswith("nonmember.")}
    assert {kind.__name__ for kind in ours - pinned} == set(WITHOUT)


def settings_of_methods(folder: Path) -> dict[str, dict[str, Any]]:
    """Of each file of conf/method, in the micro world and with gates; composed at once, which takes a tenth of the
    time."""
    names = sorted(path.stem for path in (config_directory() / "method").glob("*.yaml"))
    others = {"data": "micro_suspect", "gates": "standard", "world": "micro"}
    chosen = {f"method@methods.{name}": name for name in names} | others
    defaults = [*({group: option} for group, option in chosen.items()), "_self_"]
    (folder / "all.yaml").write_text(json.dumps({"defaults": defaults, "max_layout_auc": 0.7}))
    register()
    with checked_composition(), initialize_config_dir(str(folder), version_base=None):
        config = compose("all", [f"hydra.searchpath=[file://{config_directory()}]"])
        return {name: settings_of_method(build(config.methods[name])) for name in names}


def test_settings_of_methods_that_go_into_keys_are_what_they_were(tmp_path):
    file = Path(__file__).parent / "method_settings.json"
    found, known = settings_of_methods(tmp_path), json.loads(file.read_text())
    if os.environ.get("NONMEMBER_GOLDEN") == "write":
        rows = [f"{json.dumps(name)}: {json.dumps(settings)}" for name, settings in found.items()]
        file.write_text("{\n" + ",\n".join(rows) + "\n}\n")
        return
    lines, before = (
        {(name, ".".join(key), str(value)) for name, item in methods.items() for key, value in leaves(item)}
        for methods in (found, known)
    )
    assert found == known, (
        f"No audit that was stored is found again, where this changed: {sorted(lines ^ before)[:20]}. For a new file "
        "of conf/method, or a default that was meant to change: NONMEMBER_GOLDEN=write."
    )


def leaves(value: Any, key: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in children:
        yield from leaves(inner, (*key, str(name)))
    if not children:
        yield key, value


def kinds_below(kind: type) -> Iterator[type]:
    for item in kind.__subclasses__():
        if not inspect.isabstract(item) and is_dataclass(item):
            yield item
        yield from kinds_below(item)


def kinds_in(*parts: Any) -> Iterator[type]:
    for part in parts:
        if isinstance(part, Mapping):
            yield from kinds_in(*part.values())
        elif isinstance(part, list | tuple):
            yield from kinds_in(*part)
        elif is_dataclass(part) and not isinstance(part, type):
            yield type(part)
            yield from kinds_in(*(getattr(part, item.name) for item in fields(part)))
