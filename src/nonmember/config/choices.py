"""What there is to choose from: the groups of the configs, their options and what these are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from nonmember.config.presets import load_presets
from nonmember.config.roots import config_directory, presets_directory, sweeps_directory

GROUP = re.compile(r"(\w+):\s*$")
ROW = re.compile(r"  (\w+):")


def groups() -> list[str]:
    """Names of all groups, sorted."""
    folders = {path.name for path in config_directory().iterdir() if path.is_dir() and path != presets_directory()}
    return sorted(folders | load_presets(presets_directory()).keys())


def options(group: str) -> list[str]:
    """Names of a group's options, sorted: its files, and its rows in the presets."""
    files = {path.stem for path in (config_directory() / group).glob("*.yaml")}
    return sorted(files | load_presets(presets_directory()).get(group, {}).keys())


def descriptions(group: str) -> dict[str, str]:
    """name -> the first sentence of the comment above it, of each option; of the group `sweep`, of the sweeps."""
    folder = sweeps_directory() if group == "sweep" else config_directory() / group
    found = {path.stem: _sentence(_comment(path)) for path in folder.glob("*.yaml")}
    for path in sorted(presets_directory().glob("*.yaml")):
        found |= {name: _sentence(lines) for row_group, name, lines in _rows(path) if row_group == group}
    return dict(sorted(found.items()))


def _comment(path: Path) -> list[str]:
    """The lines of the comment at the top of a file."""
    lines: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        if not line.startswith("# @package"):
            lines.append(line)
    return lines


def _rows(path: Path) -> Iterator[tuple[str, str, list[str]]]:
    """(group, name, comment) of each row of a table. A comment is also that of the rows after it that have none."""
    group, comment, is_open = "", list[str](), False
    for line in path.read_text(encoding="utf-8").splitlines():
        if found := GROUP.match(line):
            group, comment, is_open = found[1], [], False
        elif line.startswith("  #"):
            comment, is_open = [*(comment if is_open else []), line], True
        elif found := ROW.match(line):
            yield group, found[1], comment
            is_open = False


def _sentence(comment: list[str]) -> str:
    text = " ".join(filter(None, (line.lstrip("# ").strip() for line in comment)))
    return text.split(". ")[0].rstrip(".:")
