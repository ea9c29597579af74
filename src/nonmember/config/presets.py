"""Presets: variants of a config that need only a line or two, as rows of tables instead of files of their own.

conf/presets/*.yaml hold group -> name -> config. A row is to Hydra what a file conf/GROUP/NAME.yaml is, defaults list
included, and is chosen by the same words. Its key `description` says what it is.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import yaml
from hydra.core.config_store import ConfigStore

from nonmember.config.hydra_compat import keep_store_in_place, plain_yaml, store_rows
from nonmember.config.untrusted import leaves

DESCRIPTION = "description"  # of a row: for `nonmember list`, no part of the config
PACKAGES = {"experiment": "_global_"}  # of groups whose options may set anything


def store_presets(folder: Path) -> None:
    """Make the rows of a folder's tables options of their groups, where they are not yet."""
    store = ConfigStore.instance()
    if all(f"{next(iter(rows))}.yaml" in store.repo.get(group, {}) for group, rows in load_presets(folder).items()):
        return
    keep_store_in_place()
    for group, rows in load_presets(folder).items():
        store_rows(group, rows, PACKAGES.get(group))


@functools.cache
def load_presets(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """group -> name -> config, with interpolations as they are written. Raises ValueError for a name given twice."""
    presets: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*.yaml")):
        table = cast(dict[str, dict[str, Any]], plain_yaml(path))
        for group, rows in table.items():
            known = presets.setdefault(group, {})
            if twice := known.keys() & rows.keys():
                raise ValueError(f"{path.name} must give new names; got {group}={min(twice)}, which another file has.")
            known.update({name: _without(row, DESCRIPTION) for name, row in rows.items()})
    return presets


def described_rows(path: Path) -> Iterator[tuple[str, str, str]]:
    """(group, name, description) of each row of a table; where a row has no description of its own, what is known of it
    by its content. YAML's merges (<<) pass no description on."""
    node = yaml.compose(path.read_text(encoding="utf-8"))
    table = yaml.safe_load(path.read_text(encoding="utf-8"))
    for group, rows in node.value:
        for name, row in rows.value:
            own = [value.value for key, value in row.value if key.value == DESCRIPTION]
            yield group.value, name.value, own[0] if own else _content(table[group.value][name.value])


def _content(row: Mapping[str, Any]) -> str:
    """Such as "EleutherAI/pythia-160m" or "as dose_study_target with label=long"."""
    if row.get("path"):
        return str(row["path"])
    choices = [item for item in row.get("defaults", ()) if item != "_self_"]
    bases = [choice.partition("@")[0] for choice in choices if isinstance(choice, str)]
    values = [
        f"{key.removeprefix('override ').lstrip('/')}={value}"
        for choice in choices
        if isinstance(choice, dict)
        for key, value in choice.items()
    ]
    values += [
        f"{'.'.join(key)}={value}"
        for key, value in leaves(row, whole_lists=True)
        if value is not None and not key[-1].startswith("_") and key not in (("defaults",), (DESCRIPTION,))
    ]
    return " with ".join(filter(None, [f"as {bases[-1]}" if bases else "", ", ".join(values)]))


def _without(row: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != key}
