"""Presets: variants of a config that need only a line or two, as rows of tables instead of files of their own.

conf/presets/*.yaml hold group -> name -> config. A row is to Hydra what a file conf/GROUP/NAME.yaml is, defaults list
included, and is chosen by the same words.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from hydra.core.config_store import ConfigStore
from omegaconf import OmegaConf

PACKAGES = {"experiment": "_global_"}  # of groups whose options may set anything


def store_presets(folder: Path) -> None:
    """Make the rows of a folder's tables options of their groups, where they are not yet."""
    store = ConfigStore.instance()
    if all(f"{next(iter(rows))}.yaml" in store.repo.get(group, {}) for group, rows in load_presets(folder).items()):
        return
    # For every look-up Hydra copies all of the store, which it only reads: seconds, with so many rows in it.
    ConfigStore.__deepcopy__ = lambda self, _: self  # type: ignore[attr-defined]
    for group, rows in load_presets(folder).items():
        for name, config in rows.items():
            store.store(name=name, node=config, group=group, package=PACKAGES.get(group))


@functools.cache
def load_presets(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """group -> name -> config, with interpolations as they are written. Raises ValueError for a name given twice."""
    presets: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*.yaml")):
        table = cast(dict[str, dict[str, Any]], OmegaConf.to_container(OmegaConf.load(path), resolve=False))
        for group, rows in table.items():
            known = presets.setdefault(group, {})
            if twice := known.keys() & rows.keys():
                raise ValueError(f"{path.name} must give new names; got {group}={min(twice)}, which another file has.")
            known.update(rows)
    return presets
