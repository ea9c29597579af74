"""The cells of a sweep, composed in this process as a multirun would compose them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from nonmember.config.compose import composed
from nonmember.config.hydra_compat import cells_of_grid
from nonmember.runtime.progress import tracked


def cells_of(name: str, overrides: Sequence[str]) -> Iterator[tuple[DictConfig, Path]]:
    """The config of each cell and its folder, to be read before the next one is requested. As in a multirun, what is
    given replaces the sweep's own axis, and several values between commas are one.

    Args:
        name: Of the primary config: a sweep, or `audit`.
        overrides: As on the command line.
    """
    given = OverridesParser.create().parse_overrides(list(overrides))
    alike = {item.get_key_element(): str(item.input_line) for item in given if not item.is_sweep_override()}
    with composed(name, list(alike.values())) as (config, _):
        grid: Any = OmegaConf.to_container(config.grid, resolve=True) if config.get("grid") else {}
    axes = [f"{key}={value}" for key, value in grid.items() if key not in alike]
    axes += [str(item.input_line) for item in given if item.is_sweep_override()]
    for cell in tracked(cells_of_grid(axes), "composing", "cells"):
        with composed(name, [*alike.values(), *cell]) as (config, folder):
            yield config, folder
