"""What this verifier takes into account: what later versions add it cannot know, and it says so."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from nonmember_verify.bundle import Audit
from nonmember_verify.envelope import plain

FORMAT = 2  # of an audit's question; a change of code that moves results raises it
KINDS = ("Scored", "Diverged", "Reordered", "Asked", "Embedded")  # of columns of scores
_TABLE: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("methods.toml").read_text(encoding="utf-8"))
_EVERY = _TABLE.pop("every")
INVALID = _EVERY["invalid"]
CONCLUSIONS, SENTENCES = _TABLE.pop("conclusions"), _TABLE.pop("sentences")  # by verdict
NOT_SCORED = _TABLE.pop("names")  # of columns -> their kind
# Gate -> where the question has its bound; upper bounds begin with max_.
BOUNDS: Mapping[str, list[str]] = {name: names.split() for name, names in _TABLE.pop("gates").items()}
_GATES = " ".join([_EVERY["gates"], *(f"gates.{name}" for names in BOUNDS.values() for name in names)])
METHOD_SETTINGS = {name: row["settings"].replace("GATES", _GATES) for name, row in _TABLE.items()}


def draws_clusters(audit: Audit) -> bool:
    """Whether documents that belong together count as one draw."""
    return audit.question["method"] in _EVERY["by_units"].split() or "sampling_unit" in audit.settings


def has_drawn_p(method: str) -> bool:
    """Whether its p is made of random draws."""
    return method in _EVERY["drawn"].split()


def claim(method: str, decision: str, **words: object) -> str:
    """The sentence that a verdict of a method allows, completed with its words."""
    return _TABLE[method].get(decision, INVALID if decision == "invalid" else "").format(**words)


def kinds_of(method: str) -> list[str]:
    """What columns of scores a method may have."""
    return _TABLE[method]["columns"].split() if method in _TABLE else list(KINDS)


def least_of(method: str) -> int:
    """Documents that each set must have left where some could not be scored."""
    return int(_TABLE[method].get("least", 0)) if method in _TABLE else 0


def unknown_of(audit: Audit) -> list[str]:
    """What of a question and its verdict is not taken into account here. A setting of a later version stands in a
    result only where it has another value than its default."""
    method, form = audit.question["method"], audit.described["identity"]["format"]
    decision = audit.result["verdict"]["decision"]
    kinds = {how["kind"] for columns in audit.described["columns"].values() for how in columns.values()}
    return [
        *(f"measurement {item!r}" for item in sorted(kinds.difference(KINDS)) if method in _TABLE),
        *([f"format {form!r}"] if form != FORMAT else []),
        *([f"verdict {decision!r}"] if decision not in CONCLUSIONS else []),
        *(f"gate {name}" for name in (audit.details or {}).get("gates") or {} if name not in BOUNDS),
        *(f"setting {item}" for item in unknown_settings(audit.settings, known_of_method(method))),
    ]


def known_of_method(method: str) -> str:
    """Of a method that is not recomputed, any."""
    return f"{_EVERY['settings']} {METHOD_SETTINGS.get(method, '*')}"


def unknown_settings(settings: Mapping[str, Any], known: str) -> list[str]:
    """Names of settings, with dots, that are not among the known ones or have no known value."""
    found, parts = [], (item.partition("=") for item in known.split())
    choices = {name: values.split("|") if values else None for name, _, values in parts}
    for name, value in _leaves(plain(settings)):
        for pattern, values in choices.items():
            nothing = value in (None, [], {}) and pattern.startswith(f"{name}.")  # of what else has settings of its own
            if (nothing or fnmatchcase(name, pattern)) and (values is None or value in values):
                break
        else:
            found.append(name)
    return list(dict.fromkeys(found))


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted names and their values; the members of a list share a name."""
    if isinstance(value, dict) and value:
        for inner, item in value.items():
            yield from _leaves(item, f"{name}.{inner}" if name else inner)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for item in value:
            yield from _leaves(item, name)
    else:
        yield name, value
