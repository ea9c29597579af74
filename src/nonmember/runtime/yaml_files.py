"""YAML, or a sentence with file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(path: Path) -> Any:
    """The content of a YAML file, or a ValueError that says what is wrong with it and where."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), PARSER)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read as YAML: {' '.join(str(error).split())}. Correct the file.") from None


def value_of(name: str, text: str) -> Any:
    """What a setting of a command holds. Raises ValueError where it is no YAML."""
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise ValueError(f"{name} must be a number, a word or a [list]; got {text!r}.") from None
