"""Names of runs and their folders: labels from paths, and unique folder names."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

LONGEST_FOLDER_NAME = 120
HASH_LENGTH = 8
FILE_SUFFIXES = "jsonl|ndjson|json|csv|tsv|parquet|arrow|feather|txt|gz|bz2|xz|zst|lz4|zip"
# Names that say nothing: the folder above is what people call it by.
SAYS_NOTHING = re.compile(
    r"(final|last|best|latest|merged|my)?[-_]?(model|models|checkpoint|checkpoints|ckpt|weights|adapter|export|output)"
    r"|final|last|best|latest|merged|main|hf|snapshots?|resolve|output|outputs|data|dataset|datasets|text|texts"
    r"|(train|test|validation|valid|val|dev|default|part|shard|file)?([-_.]?\d+)*([-_]of[-_]\d+)?"
    r"|(canaries|holdout)\.private|(checkpoint|ckpt|step|global_step|epoch|iter)[-_]?\d+|[0-9a-f]{40}|\.*|\W*",
    re.IGNORECASE,
)


def path_of(name: str) -> Path:
    """~ and ~user stand for a home; where there is no such user they are part of the name."""
    return Path(os.path.expanduser(name))


def outputs_folder() -> Path:
    """The default outputs folder of commands: NONMEMBER_OUTPUTS, else `outputs`."""
    return path_of(os.environ.get("NONMEMBER_OUTPUTS") or "outputs")


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
    return f"{name[: LONGEST_FOLDER_NAME - HASH_LENGTH - 1]}-{short_hash(text)}".lstrip("_") if text else "default"


def dotted(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested settings by their keys: {"controls": {"seed": 1}} as controls.seed."""
    for name, value in settings.items():
        key = f"{prefix}.{name}" if prefix else str(name)
        if isinstance(value, Mapping):
            yield from dotted(value, key)
        else:
            yield key, value


def short_setting(setting: str) -> str:
    """lambda=0.2532 of method.distillation.lambda_=0.2532155603031139, as samplers draw numbers."""
    short = re.sub(r"^[^=]*[.@/]([^=.@/]+=)", r"\1", setting).replace("_=", "=")
    return re.sub(r"(?<==)-?\d+\.\d{5,}(e[+-]?\d+)?$", lambda number: f"{float(number[0]):.4g}", short)


def short_hash(text: str) -> str:
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
