"""Makes HTML of templates: the one place where texts of others are kept from acting in a page."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from nonmember.runtime.terminal import visible


def rendered(template: Path, filters: Mapping[str, Callable[..., Any]] | None = None, **values: Any) -> str:
    """The page. What is no Markup is text; control characters and changes of direction, by which a name could show as
    another one, are written out as escapes wherever they stand."""
    environment = _environment(template.parent)
    environment.filters |= filters or {}
    return visible(environment.get_template(template.name).render(values), keep="\n")


@functools.cache
def _environment(folder: Path) -> Environment:
    return Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
