"""Folders of models: whether a path can be one, checks of small files and of weights' headers, hashes of what is in it;
before anything heavy is imported or weights are read."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from nonmember.artifacts.store import SIDECAR
from nonmember.corpora.specs import digest_file, digest_files
from nonmember.runtime.hub import why_out_of_reach
from nonmember.runtime.naming import path_of

CONFIG = "config.json"
ADAPTER = "adapter_config.json"
INDEX = "model.safetensors.index.json"
SAFE, PICKLES = ".safetensors", (".bin", ".pt", ".pth", ".ckpt", ".pkl")
NO_PICKLES = "Pickles can run code when they are read: save the model again with save_pretrained, as safetensors."
EXPECTED = "Expected a folder or hub name with config.json and safetensors weights, of a kind that transformers loads."


def has_config(path: str) -> bool:
    """Whether a local folder holds more than a tokenizer."""
    return any(os.path.lexists(Path(path) / name) for name in (CONFIG, ADAPTER))


def check_folder(path: str) -> None:
    """`ValueError` for a local folder without a readable configuration, or whose weights are pickles. A name of the hub
    passes."""
    folder = Path(path)
    if not folder.is_dir():
        return
    name = ADAPTER if (folder / ADAPTER).is_file() else CONFIG
    if not json_of(folder / name):
        raise ValueError(f"No model could be loaded from {path}: it has no {name} that is a JSON object. {EXPECTED}")
    held = sorted(file.name for file in folder.iterdir())
    if not any(item.endswith(SAFE) for item in held) and (pickles := [item for item in held if item.endswith(PICKLES)]):
        raise ValueError(f"No model could be loaded from {path}: its weights are pickles ({pickles[0]}). {NO_PICKLES}")


# What a folder is known by --------------------------------------------------------------------------------------------

SUFFIXES = {".json", ".safetensors", ".txt", ".model", ".py"}
OF_MODELS_ALONE = {SIDECAR, INDEX, "generation_config.json"}
FURTHER = ("*.jinja", "*.tiktoken", "additional_chat_templates/*.jinja")  # not in all keys from the start


def folder_identity(folder: Path) -> dict[str, Any]:
    """Hashes of the files, as parts of a key. Chat templates, and weights that an index names in folders below, are a
    part of their own, which is there where there are such files.

    Raises ValueError where an index names weights that do not lie in the folder, or where a file cannot be read.
    """
    files = [path for path in sorted(folder.iterdir()) if path.suffix in SUFFIXES]
    digest = hashlib.sha256("".join(f"{path.name} {digest_file(path)}\n" for path in files).encode())
    further = {path for pattern in FURTHER for path in folder.glob(pattern)}
    further |= {path for path in (folder / name for name in _named_weights(folder)) if path.parent != folder}
    named = [(path.relative_to(folder).as_posix(), path) for path in further if path.is_file()]
    return {"files": digest.hexdigest()} | ({"further_files": digest_files(named)} if named else {})


def tokenizer_identity(folder: Path) -> str:
    """One hash of what a tokenizer may be read from: of all files but the weights and what is
    said of these alone."""
    read = [path for path in folder.iterdir() if path.suffix in SUFFIXES - {SAFE} and path.name not in OF_MODELS_ALONE]
    read += [path for pattern in FURTHER for path in folder.glob(pattern)]
    return digest_files((path.relative_to(folder).as_posix(), path) for path in read if path.is_file())


def holds_adapter(folder: Path) -> bool:
    """Whether a folder holds an adapter and no whole weights. Some programs write the base's config.json beside it."""
    whole = any(any(folder.glob(pattern)) for pattern in (f"model*{SAFE}*", "pytorch_model*"))
    return (folder / ADAPTER).is_file() and not (whole and (folder / CONFIG).is_file())


def named_base(adapter: Path) -> tuple[str, str | None]:
    """The base that a file adapter_config.json names, and its revision on the hub where one is named.

    Raises ValueError where it names no model, or another adapter.
    """
    described = json_of(adapter)
    base, revision = described.get("base_model_name_or_path"), described.get("revision")
    expected = f"{adapter} must name a whole model in base_model_name_or_path, by its folder or its name on the hub"
    if not isinstance(base, str) or not base:
        raise ValueError(f"{expected}; got {json.dumps(base)}. Write it there, or merge the adapter into its base.")
    if holds_adapter(Path(base)):
        raise ValueError(f"{expected}; got {base!r}, which is an adapter too. Merge that one into its base first.")
    if revision is not None and not isinstance(revision, str):
        raise ValueError(f"revision in {adapter} must be a commit, tag or branch of the base; got {revision!r}.")
    return base, revision or None


def _named_weights(folder: Path) -> Iterable[str]:
    """Files of weights that an index or the configuration names; the others have names that are known."""
    named = json_of(folder / CONFIG).get("transformers_weights")
    if isinstance(named, str) and not named.endswith(".index.json"):
        return [_within(named, folder / CONFIG)]
    if named is None and (folder / f"model{SAFE}").is_file():  # an index beside it is not read
        return []
    index = folder / (_within(named, folder / CONFIG) if isinstance(named, str) else INDEX)
    file_of = json_of(index).get("weight_map")
    names = set(file_of.values()) if isinstance(file_of, dict) else set()
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


def json_of(file: Path | None) -> Mapping[str, Any]:
    """Empty where there is no such file or it is no JSON object, of which loading the model will tell."""
    try:
        read = json.loads(file.read_bytes()) if file else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


# Whether a path can be a model's --------------------------------------------------------------------------------------

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
MODEL_FILES = (CONFIG, ADAPTER, "tokenizer.json")  # the last for tokens to count in


def require_model(path: str) -> None:
    """A folder with a model in it, or what may be a name on the Hugging Face hub."""
    folder = path_of(path)
    if folder.is_dir():
        if not any((folder / name).is_file() for name in MODEL_FILES):
            raise ValueError(
                f"The folder {path} holds no model: there is no config.json in it. Name a folder that save_pretrained "
                "wrote, or a name on the Hugging Face hub."
            )
    elif folder.is_file():
        raise ValueError(f"{path} is a file; name the folder that it is in, with config.json and the tokenizer.")
    elif not HUB_NAME.fullmatch(path) or (reason := why_out_of_reach("models", path)):
        why = f": {reason}" if HUB_NAME.fullmatch(path) else ""
        raise ValueError(
            f"{path!r} is not a folder on this machine (relative paths start at {Path.cwd()}), and cannot be read from "
            f"the Hugging Face hub{why}. Name a folder that exists, or a model of the hub where there is a network."
        )
