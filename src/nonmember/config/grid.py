"""The cells of a sweep, composed in this process as a multirun would compose them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from nonmember.config.choices import config_directory, groups, sweeps_directory
from nonmember.config.compose import composed
from nonmember.config.given import open_keys
from nonmember.config.hydra_compat import cells_of_grid
from nonmember.config.words import renamed
from nonmember.runtime.yaml_files import read_yaml

WORLD = re.compile(r"override /?world: ([a-z_]+)")
PRECISION = "trainer.precision"  # on which numbers depend a little
BASE = "sweep"  # on which all sweeps build


@dataclass(frozen=True)
class GridCell:
    number: int  # its place in the sweep
    overrides: tuple[str, ...]  # what is given for it beside the others, as on the command line
    config: DictConfig  # to be read before the next cell is asked for
    is_open: bool  # whether it leaves values to the user


def cells_of(sweep: str, overrides: Sequence[str], *, few: bool = False) -> Iterator[GridCell]:
    """Cells that choose the same groups come one after the other: these are composed once, and their other values are
    put in, which gives the same config.

    Args:
        sweep: Its name.
        overrides: As on the command line.
        few: Only so many cells that each value of each axis is in one of them.
    """
    fixed, rows = _rows(sweep, overrides)
    parser = OverridesParser.create()
    numbered = sorted(enumerate(_with_each_value(rows) if few else rows), key=lambda item: _chosen(item[1]))
    for chosen, cells in groupby(numbered, key=lambda item: _chosen(item[1])):
        with composed(sweep, [*fixed, *chosen]) as (config, _):
            is_open = None  # alike in all of them, as the same keys are set
            for number, row in cells:
                for override in parser.parse_overrides([word for word in row if word not in chosen]):
                    OmegaConf.update(config, override.key_or_group, override.value())
                is_open = bool(open_keys(config)) if is_open is None else is_open
                yield GridCell(number, tuple(row), config, is_open)


def questions_of(sweep: str, overrides: Sequence[str]) -> list[frozenset[str]]:
    """What each cell asks, as given for it, without composing any of them."""
    fixed, rows = _rows(sweep, overrides)
    (alike,) = cells_of_grid(renamed(sweep, fixed))
    return [question_in([*alike, *row]) for row in rows]


def question_in(words: Sequence[str]) -> frozenset[str]:
    """Those of an audit's words that can change its result: which are not, `conf/hydra_settings.yaml` says."""
    keys = {word: word.partition("=")[0].lstrip("+~") for word in words}
    return frozenset(
        word
        for word, key in keys.items()
        if key == PRECISION or key.partition(".")[0] not in {*_without_effect(), "hydra"}
    )


@cache
def _without_effect() -> tuple[str, ...]:
    settings: Any = read_yaml(config_directory() / "hydra_settings.yaml")
    return tuple(settings["job"]["config"]["override_dirname"]["exclude_keys"])


def sweeps_for(world: str) -> list[str]:
    """The sweeps whose cells are of this world, or of any; by name."""
    return [name for name in _names() if _world_of(name) in (world, None)]


def _rows(sweep: str, overrides: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """What is given for all cells, and the words of each. As in a multirun, what is given replaces the sweep's own
    axis, and several values between commas are one."""
    given = OverridesParser.create().parse_overrides(list(overrides))
    alike = {item.get_key_element(): str(item.input_line) for item in given if not item.is_sweep_override()}
    with composed(sweep, list(alike.values())) as (config, _):
        grid: Any = OmegaConf.to_container(config.grid, resolve=True) or {}
    axes = [f"{key}={value}" for key, value in grid.items() if key not in alike]
    axes += [str(item.input_line) for item in given if item.is_sweep_override()]
    return list(alike.values()), cells_of_grid(axes)


def _with_each_value(rows: Sequence[list[str]]) -> list[list[str]]:
    """Few of the rows, with all words that are in any: always the one with most words that are still lacking."""
    lacking, taken = {word for row in rows for word in row}, [*rows[:1]]
    while lacking := lacking.difference(taken[-1] if taken else ()):
        taken.append(max(rows, key=lambda row: len(lacking.intersection(row))))
    return taken


def _names() -> list[str]:
    return sorted(path.stem for path in sweeps_directory().glob("*.yaml"))


def _world_of(sweep: str) -> str | None:
    """The world that a sweep, or one that it builds on, sets; None where it is for any."""
    text = (sweeps_directory() / f"{sweep}.yaml").read_text(encoding="utf-8")
    if found := WORLD.search(text):
        return found[1]
    defaults = re.search(r"defaults:\s*\[\s*(\w+)", text)
    base = defaults[1] if defaults else BASE
    return None if base == BASE else _world_of(base)


def _chosen(row: Sequence[str]) -> tuple[str, ...]:
    """Those that choose an option of a group."""
    known = set(groups())
    return tuple(word for word in row if word.partition("=")[0].lstrip("+~").partition("@")[0] in known)
