"""The typed roots of the primary configs: unknown keys and wrong types are refused before anything heavy starts.

The leaves (target, data, method ...) stay YAML; `_target_` decides what they become.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING, OmegaConf

LONGEST_FOLDER_NAME = 120


def config_directory() -> Path:
    """The YAML tree: inside the installed package, or at the top of the repository in an editable install."""
    packaged = Path(__file__).parent / "conf"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "conf"


@dataclass
class AuditConfig:
    """`nonmember audit`."""

    name: str = MISSING
    seed: int = MISSING
    outputs: str = MISSING
    store: str = MISSING
    truth: str | None = None
    target: Any = MISSING
    reference: Any = MISSING
    data: Any = MISSING
    method: Any = MISSING
    trainer: Any = MISSING
    logger: Any = MISSING
    world: Any = None
    experiment: Any = None


@dataclass
class ScoreConfig:
    """`nonmember score`."""

    outputs: str = MISSING
    store: str = MISSING
    k: float = MISSING
    max_tokens: int = MISSING
    model: Any = MISSING
    data: Any = MISSING
    trainer: Any = MISSING
    reference: Any = None
    world: Any = None


@dataclass
class TrainConfig:
    """`nonmember train`."""

    outputs: str = MISSING
    store: str = MISSING
    export: str | None = None
    model: Any = MISSING
    trainer: Any = MISSING
    logger: Any = MISSING
    world: Any = field(default=None)


def folder_name(text: str) -> str:
    """A safe folder name that still reads: slashes and spaces replaced, long names cut and told apart by a hash."""
    name = re.sub(r"[^A-Za-z0-9_.,=@+-]+", "_", text).strip("_") or "default"
    if len(name) <= LONGEST_FOLDER_NAME:
        return name
    return f"{name[: LONGEST_FOLDER_NAME - 9]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def file_stem(path: object) -> str:
    """wikipedia for folder/wikipedia.jsonl.gz; the last part of a hub name."""
    return re.sub(r"(\.(jsonl|json|gz|txt))+$", "", str(path).rstrip("/").rsplit("/", 1)[-1]) or "documents"


def register() -> None:
    """Make the schemas and resolvers known to Hydra; called by each entry before it composes."""
    store = ConfigStore.instance()
    for schema in (AuditConfig, ScoreConfig, TrainConfig):
        store.store(name=f"{schema.__name__.removesuffix('Config').lower()}_schema", node=schema)
    OmegaConf.register_new_resolver("folder_name", folder_name, replace=True)
    OmegaConf.register_new_resolver("file_stem", file_stem, replace=True)
