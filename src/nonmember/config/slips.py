"""Common mistakes on the command line, such as a path where an option name belongs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from nonmember.config.choices import options
from nonmember.runtime.naming import FILE_SUFFIXES

CHOICE = re.compile(r"\+{0,2}(?P<group>model|data|target|reference)(@(?P<package>[\w.]+))?=(?P<value>.+)")


def refuse_paths_as_choices(command: str, arguments: Sequence[str]) -> None:
    """model@target=/some/folder: raise ValueError that says which key takes a path."""
    for argument in arguments:
        if (said := CHOICE.fullmatch(argument)) is None or not _is_path(said["group"], said["value"]):
            continue
        group, value = said["group"], said["value"]
        option = {"model": "pretrained", "data": "documents"}.get(group)
        if group == "model" and said["package"] is None and command == "audit":
            use = f"target.path={value} for the model in question, reference.path={value} for the reference"
        else:
            place = said["package"] or group
            # A place that the own world has needs no more than a path; others are filled first.
            chosen = option and (place.count(".") > 1 or _is_other_world(arguments))
            use = f"{group}@{place}={option} {place}.path={value}" if chosen else f"{place}.path={value}"
        raise ValueError(f"{argument} should be one of the names of `nonmember list`; for a path use {use}.")


def _is_path(group: str, value: str) -> bool:
    first = value.strip("'\"").split(",")[0].strip("'\"")
    if first in options(group):
        return False
    is_file = re.search(rf"\.({FILE_SUFFIXES})$", first) is not None
    return first.startswith((".", "~")) or "/" in first or "\\" in first or is_file or Path(first).exists()


def _is_other_world(arguments: Sequence[str]) -> bool:
    return any(argument.startswith("world=") and argument != "world=own" for argument in arguments)
