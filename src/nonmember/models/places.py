"""Whether a path can be a model's: a folder here, or a name on the Hugging Face hub. Nothing heavy is imported."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path

from nonmember.runtime.naming import path_of

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
MODEL_FILES = ("config.json", "adapter_config.json", "tokenizer.json")  # the last for tokens to count in


def require_model(path: str) -> None:
    """A folder with a model in it, or what may be a name on the Hugging Face hub; one of its cache, when offline."""
    folder = path_of(path)
    if folder.is_dir():
        if not any((folder / name).is_file() for name in MODEL_FILES):
            raise ValueError(f"The folder {path} holds no model: there is no config.json in it. {_nearby(folder)}")
        return
    if folder.is_file():
        raise ValueError(f"{path} is a file; name the folder that it lies in, with config.json and the tokenizer.")
    if HUB_NAME.fullmatch(path) and not (_is_offline() and not _is_cached(path)):
        return
    offline = ", and not in the cache of the Hugging Face hub, which HF_HUB_OFFLINE keeps it to"
    raise ValueError(f"{path!r} is no folder here{offline if HUB_NAME.fullmatch(path) else ''}. {_advice(path)}")


def _nearby(folder: Path) -> str:
    """Folders below that do hold a model."""
    found = sorted(path.parent.relative_to(folder).as_posix() for path in folder.glob("*/config.json"))
    if found:
        return f"Below it are {', '.join(found[:5])}; name one of them."
    return "Name a folder that save_pretrained wrote, or a name on the Hugging Face hub."


def _advice(path: str) -> str:
    """What lies beside it under a like name."""
    wanted = path_of(path)
    beside = [item.name for item in wanted.parent.iterdir()] if wanted.parent.is_dir() else []
    likely = difflib.get_close_matches(wanted.name, beside, n=3, cutoff=0.6)
    meant = f"Did you mean {' or '.join(str(Path(path).parent / name) for name in likely)}? " if likely else ""
    return f"{meant}Name a folder that exists (relative paths start at {Path.cwd()})."


def _is_offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "YES", "ON")


def _is_cached(name: str) -> bool:
    home = os.environ.get("HF_HOME") or str(Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub").expanduser()
    return (cache / f"models--{name.replace('/', '--')}").is_dir()
