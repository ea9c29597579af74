"""Dataclasses as plain JSON data, for keys and results."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

# Fields that came after results had been stored, and the value that older versions meant: left out of keys at that.
LATER_FIELDS: dict[str, Any] = {
    "optimizer": "adamw",
    "quantization": "none",
    "attention": "auto",
    "bos": "auto",
    "max_counted_tokens": None,
    "request_settings": {},
    "extra_body": {},
    "extra_query": {},
    "extra_headers": {},
    "thinking": "strip",
    "num_steps": None,
    "near_kl": None,
    "max_target_gain": None,
    "max_gain_of_start": None,
    "min_third_delta": None,
    "min_third_agreement": None,
    "prompt": "instruction",
}


def settings_of(recipe: Any) -> dict[str, Any]:
    """All fields of a dataclass, nested ones too."""
    return asdict(recipe, dict_factory=_settings)


def _settings(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in pairs if name not in LATER_FIELDS or value != LATER_FIELDS[name]}
