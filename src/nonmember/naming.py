"""What runs and their folders are called: labels out of paths, and names that no two questions share."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

LONGEST_FOLDER_NAME = 120
LONGEST_LABEL = 40
HASH_LENGTH = 8
FILE_SUFFIXES = "jsonl|ndjson|json|csv|tsv|parquet|arrow|feather|txt|gz|bz2|xz|zst|lz4|zip"
# Names that say nothing: the folder above is what people call it by.
SAYS_NOTHING = re.compile(
    r"(final|last|best|latest|merged|my)?[-_]?(model|models|checkpoint|checkpoints|ckpt|weights|adapter|export|output)"
    r"|final|last|best|latest|merged|main|hf|snapshots?|resolve|output|outputs|data|dataset|datasets|text|texts"
    r"|(train|test|validation|valid|val|dev|default|part|shard|file)?([-_.]?\d+)*([-_]of[-_]\d+)?"
    r"|(checkpoint|ckpt|step|global_step|epoch|iter)[-_]?\d+|[0-9a-f]{40}|\.*|\W*",
    re.IGNORECASE,
)
# What tells questions apart; where and how they are answered does not.
WHAT_DIFFERS = (
    "target", "reference", "model", "data", "cleaning", "method", "general", "seed", "truth", "k", "max_tokens",
)  # fmt: skip


def label_of_path(path: object) -> str:
    """What people would call a model or a data set: pile for pile/data.jsonl.gz, SmolLM2 for SmolLM2/checkpoint-100,
    pythia-70m for EleutherAI/pythia-70m; of several paths the first, and how many more there are."""
    paths = list(path) if isinstance(path, list | tuple) else [path]
    if not paths:
        return "documents"
    label = _label(str(paths[0]))
    return label if len(paths) == 1 else f"{label}+{len(paths) - 1}"


def _label(path: str) -> str:
    parts = [_stem(part) for part in path.rstrip("/").split("/")]
    above = [] if path.startswith(("/", "~")) else list(Path.cwd().parts[1:])
    says = [part for part in [*above, *parts] if not SAYS_NOTHING.fullmatch(part)]
    if SAYS_NOTHING.fullmatch(parts[-1]) and says:
        return says[-1]
    return parts[-1] or "documents"


def _stem(part: str) -> str:
    """Without suffixes and wildcards; of a folder in the cache of the Hugging Face hub, the model's name."""
    name = re.sub(rf"(\.({FILE_SUFFIXES}))+$", "", part).replace("*", "").strip("-_ ")
    return re.sub(r"^(models|datasets)--.*--", "", name)


def folder_name(text: str) -> str:
    """A safe name that still reads. Where a character is replaced, or the name is cut, a hash tells it from others."""
    name = re.sub(r"[^A-Za-z0-9_.,=@+-]+", "_", text)
    if name == text and 0 < len(name) <= LONGEST_FOLDER_NAME and name.strip("."):
        return name
    return f"{name[: LONGEST_FOLDER_NAME - HASH_LENGTH - 1]}-{_hash(text)}".lstrip("_") if text else "default"


def cell_name(overrides: str, *, _root_: DictConfig) -> str:
    """The folder and W&B name of a run: of one's own models and documents what they are called and a hash of what
    differs, as in prism-docs-SmolLM2-1a2b3c4d; in the other worlds, of which sweeps are made, the overrides."""
    if OmegaConf.select(_root_, "world.name") != "own":
        return folder_name(overrides)
    differs = {key: _plain(_root_, key) for key in WHAT_DIFFERS}
    # Numbers depend on the precision a little, and so does the question that is found there.
    differs["precision"] = _plain(_root_, "trainer.precision")
    labels = [re.sub(r"[^\w.+-]+", "_", label)[:LONGEST_LABEL].strip("._-") for label in _labels(_root_)]
    return "-".join([*filter(None, labels), _hash(json.dumps(differs, sort_keys=True, default=str))])


def _labels(config: DictConfig) -> Iterator[str]:
    """Of the method, the documents and the model, as far as they are known."""
    if (method := OmegaConf.select(config, "hydra.runtime.choices.method")) is not None:
        yield str(method).removeprefix("own_")
    for key in (
        "data.label",
        "target.label",
        "target.model",
        "target.path",
        "model.label",
        "model.model",
        "model.path",
    ):
        try:
            value = OmegaConf.select(config, key)
        except OmegaConfBaseException:  # what it is made of was not given
            continue
        if isinstance(value, str) and value:
            yield label_of_path(value) if key.endswith(("path", ".model")) else value


def _plain(config: DictConfig, key: str) -> Any:
    for resolve in (True, False):  # unresolved where something it refers to was not given
        try:
            node = OmegaConf.select(config, key) if resolve else config.get(key)
            return OmegaConf.to_container(node, resolve=resolve) if OmegaConf.is_config(node) else node
        except OmegaConfBaseException:
            continue
    return None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LENGTH]


def place(outputs: object, *parts: object) -> str:
    """A folder below the outputs. Raises ValueError where there are none, or a name leads out of them."""
    if not str(outputs).strip():
        raise ValueError("outputs must be a folder; got nothing. Name one, as in outputs=FOLDER.")
    for part in map(str, parts):
        if not part or part.startswith(("/", "~")) or any(step in ("", ".", "..") for step in part.split("/")):
            raise ValueError(
                f"name must be a folder below the outputs; got {part!r}. Use a name like mine or mine/first, and "
                "outputs=FOLDER to write elsewhere."
            )
    return "/".join([str(outputs), *map(str, parts)])
