"""Public names of a package that are imported when they are first used (PEP 562)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def lazily(package: str, modules: Mapping[str, Sequence[str]]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package. modules: module below it -> names of its that are public; none:
    the module itself is."""
    place = {name: module for module, names in modules.items() for name in names or [module]}

    def get(name: str) -> Any:
        if name not in place:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(f"{package}.{place[name]}")
        found = getattr(module, name) if modules[place[name]] else module
        setattr(sys.modules[package], name, found)
        return found

    def names() -> list[str]:
        return sorted([*place, *(name for name in vars(sys.modules[package]) if name.startswith("__"))])

    return get, names
