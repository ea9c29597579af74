"""A model of the store as a folder for others: its files and a README that says how it was made."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nonmember.artifacts.keeping import Kept, damage

README = "README.md"


def export(entry: Kept, to: Path) -> Path:
    """A new folder with the model's files and README.md. Raises ValueError where it exists or the entry is damaged."""
    if to.exists():
        raise ValueError(f"{to} already exists; name a new folder.")
    if (wrong := damage(entry)) is not None:
        raise ValueError(wrong)
    beside = to.with_name(f".{to.name}.partial")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        for name in entry.sidecar["files"]:
            (beside / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(entry.path / name, beside / name)
        (beside / README).write_text(card(entry), encoding="utf-8")
        beside.rename(to)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return to


def is_adapter(entry: Kept) -> bool:
    return any(Path(name).name == "adapter_config.json" for name in entry.sidecar["files"])


def card(entry: Kept) -> str:
    """A model card from the recipe: Markdown behind YAML, as model hubs read it."""
    facts, key = entry.sidecar["facts"], entry.sidecar["key"]
    adapter = is_adapter(entry)
    label = facts.get("label", entry.label)
    lines = ["---", f"library_name: {'peft' if adapter else 'transformers'}", "pipeline_tag: text-generation"]
    lines += ["tags: [nonmember]", "---", "", f"# {label}", ""]
    lines += ["Made by `nonmember` to test what can be learned about a model's training data; for no other use.", ""]
    if adapter:
        needed = "This is only an adapter. It needs the base that it was tuned on, described below: "
        lines += [f"{needed}`peft.PeftModel.from_pretrained(base, FOLDER)`.", ""]
    lines += ["## How it was made", ""]
    lines += [f"{number}. {step}" for number, step in enumerate(_steps(key), start=1)]
    if isinstance(key.get("teacher"), Mapping):
        lines += ["", "Its teacher:", ""]
        lines += [f"{number}. {step}" for number, step in enumerate(_steps(key["teacher"]), start=1)]
    lines += ["", "A corpus is named by the hash of its documents, which are not part of this folder.", ""]
    lines += ["## Facts of the last step", "", *(f"- {name}: {value}" for name, value in sorted(facts.items()))]
    lines += ["", "## Identity", "", f"- key: `{entry.hash}`, the hash of all above", "- files (sha256):"]
    lines += [f"  - `{name}`: `{digest}`" for name, digest in sorted(entry.sidecar["files"].items())]
    return "\n".join(lines) + "\n"


def _steps(key: Mapping[str, Any]) -> Iterator[str]:
    """From the first weights on."""
    if isinstance(key.get("base"), Mapping):
        yield from _steps(key["base"])
    if isinstance(recipe := key.get("recipe"), Mapping):
        settings = ", ".join(_settings({name: value for name, value in recipe.items() if name != "kind"}))
        taught = ", by a teacher" if key.get("teacher") else ""
        yield (
            f"{recipe.get('kind', 'trained')}{taught} on corpus `{key.get('corpus')}`, seed {key.get('seed')}, "
            f"precision {key.get('precision')}: {settings}"
        )
    elif "scratch" in key:
        size = ", ".join(_settings(key.get("architecture", {})))
        vocabulary = key.get("tokenizer", {}).get("vocab_size")
        yield f"Random weights of {key['scratch']} ({size}), {vocabulary} tokens, seed {key.get('seed')}"
    else:
        yield ", ".join(_settings(key))


def _settings(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _settings(value)
        else:
            yield f"{name.rstrip('_')} {value}"
