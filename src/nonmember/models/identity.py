"""Identity of a model folder: hashes of its files and of what they refer to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from nonmember.corpora.specs import digest_file, digest_files
from nonmember.models.folders import check_entries
from nonmember.runtime.files import content_of

SUFFIXES = {".json", ".safetensors", ".txt", ".model", ".py"}
FURTHER = ("*.jinja", "*.tiktoken", "additional_chat_templates/*.jinja")  # not in all keys from the start
ADAPTER, CONFIG = "adapter_config.json", "config.json"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


def folder_identity(folder: Path) -> dict[str, Any]:
    """Hashes of the files, as parts of a key. Chat templates, and weights that an index names in folders below, are a
    part of their own, which is there where there are such files.

    Raises ValueError where an index names weights that do not lie in the folder, or where a file cannot be read.
    """
    check_entries(folder)
    files = [path for path in sorted(folder.iterdir()) if path.suffix in SUFFIXES]
    digest = hashlib.sha256("".join(f"{path.name} {digest_file(path)}\n" for path in files).encode())
    further = {path for pattern in FURTHER for path in folder.glob(pattern)}
    further |= {path for path in (folder / name for name in _named_weights(folder)) if path.parent != folder}
    named = [(path.relative_to(folder).as_posix(), path) for path in further if path.is_file()]
    return {"files": digest.hexdigest()} | ({"further_files": digest_files(named)} if named else {})


def base_of_adapter(folder: Path) -> str | None:
    """Folder or hub name of the model that a folder's adapter is put on; None where the folder holds whole weights.

    Raises ValueError where the adapter names no model, or another adapter.
    """
    if (folder / CONFIG).is_file() or not (folder / ADAPTER).is_file():
        return None
    return named_base(folder / ADAPTER)


def named_base(adapter: Path) -> str:
    """The base that a file adapter_config.json names."""
    base = _read(adapter).get("base_model_name_or_path")
    expected = f"{adapter} must name a whole model in base_model_name_or_path, by its folder or its name on the hub"
    if not isinstance(base, str) or not base:
        raise ValueError(f"{expected}; got {json.dumps(base)}. Write it there, or merge the adapter into its base.")
    if (Path(base) / ADAPTER).is_file() and not (Path(base) / CONFIG).is_file():
        raise ValueError(f"{expected}; got {base!r}, which is an adapter too. Merge that one into its base first.")
    return base


def _named_weights(folder: Path) -> Iterable[str]:
    """Files of weights that an index or the configuration names; the others have names that are known."""
    named = _read(folder / CONFIG).get("transformers_weights")
    if isinstance(named, str) and not named.endswith(".index.json"):
        return [_within(named, folder / CONFIG)]
    if named is None and (folder / WEIGHTS).is_file():  # an index beside it is not read
        return []
    index = folder / (_within(named, folder / CONFIG) if isinstance(named, str) else INDEX)
    places = _read(index).get("weight_map")
    names = set(places.values()) if isinstance(places, dict) else set()
    return sorted(_within(name, index) for name in names)


def _within(name: object, source: Path) -> str:
    """The name of a file in the folder of `source`, which names it."""
    path = PurePosixPath(str(name))
    if path.is_absolute() or ".." in path.parts or "\\" in str(name):
        raise ValueError(
            f"{source} must name weights in its own folder; got {str(name)!r}. What lies elsewhere may change without "
            "the model's folder. Copy the file into the folder and name it there."
        )
    if not path.name.endswith((".safetensors", ".safetensors.index.json")):
        raise ValueError(f"{source} must name safetensors files; got {str(name)!r}. Save the model as safetensors.")
    return str(name)


def _read(path: Path) -> dict[str, Any]:
    """Empty where there is no such file or it is no JSON object, of which loading the model will tell."""
    try:
        read = json.loads(content_of(path))
    except (OSError, ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}
