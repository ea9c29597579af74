"""Makes HTML of templates: the one place where texts of others are kept from acting in a page."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

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


def beginning(policy: str) -> Markup:
    """Of every page, with its content policy, before anything of others: what comes after it can run, fetch and send
    nothing that the policy does not allow."""
    return Markup(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" content="{}">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        '<link rel="icon" href="data:,">\n'
    ).format(policy)


def begins_with(path: Path, policy: str, *, whole: bool = True) -> bool:
    """Whether a file that somebody else may have put there begins as a page with this policy does; without `whole`,
    with a policy that begins so."""
    head = beginning(policy).encode()
    head = head if whole else head.partition(b'">\n<meta name="color-scheme')[0]
    try:
        with path.open("rb") as stream:
            return stream.read(len(head)) == head
    except OSError:
        return False
