"""`nonmember wandb-sweep SWEEP`: the same grid as `nonmember audit -m`, as a W&B sweep that agents share out.

    nonmember wandb-sweep demo > demo-wandb.yaml
    wandb sweep --project nonmember demo-wandb.yaml      (prints the command that starts an agent)

An agent runs each cell as `nonmember audit ... key=value ...` with the very words Hydra's sweeper would use, so the
results lie in the same folders, and what is there already is not done again.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import math
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from nonmember.config.choices import config_directory, sweeps_directory
from nonmember.config.roots import checked, register

Value = str | int | float

ALLOWED = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")  # what W&B's schema takes as the name of a parameter
RUN_WORDS = ("hydra.mode=RUN", "logger.wandb.mode=online")
WRITTEN = {"@": ".at.", "/": ".in."}  # and how Hydra's groups are written in such a name


@dataclass(frozen=True)
class Grid:
    """axes: key -> the values' words, in Hydra's order.   fixed: words that stand in every command."""

    axes: Mapping[str, Sequence[str]]
    fixed: Sequence[str] = field(default_factory=list)

    def cells(self) -> Iterator[list[str]]:
        """The `key=value` words of each cell."""
        for values in itertools.product(*self.axes.values()):
            yield [f"{key}={value}" for key, value in zip(self.axes, values, strict=True)]


def main() -> None:
    """Entry of `nonmember wandb-sweep`."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False,
        prog="nonmember wandb-sweep",
        description="A sweep file as a W&B sweep: wandb sweep --project P FILE.",
    )
    parser.add_argument("sweep", help="the name of a file in the sweeps folder, for example demo")
    parser.add_argument("--sweeps", metavar="DIR", help="a folder of your own; default: the project's sweeps")
    parser.add_argument("--run", metavar="JSON", help="run one cell; for agents, where names had to be rewritten")
    parser.add_argument("overrides", nargs="*", help="key=value or key=value,value, as on the command line of a sweep")
    given = parser.parse_intermixed_args()
    if given.run is not None:
        run(given.sweep, given.sweeps, [*given.overrides, *overrides_of_json(given.run)])
        return
    grid = grid_of(given.sweep, Path(given.sweeps or sweeps_directory()), given.overrides)
    number = math.prod(len(values) for values in grid.axes.values())
    head = f"# {number} audits. Made by: nonmember wandb-sweep {' '.join(sys.argv[1:])}\n"
    sys.stdout.write(head + OmegaConf.to_yaml(as_wandb(given.sweep, given.sweeps, grid)))


def grid_of(sweep: str, folder: Path, overrides: Sequence[str] = ()) -> Grid:
    """The axes of a sweep file, with overrides from the command line as `nonmember audit -m` would take them.

    Raises ValueError where there is no such file or it says nothing to go over.
    """
    if not (folder / f"{sweep}.yaml").is_file():
        known = ", ".join(sorted(path.stem for path in folder.glob("*.yaml"))) or "none"
        raise ValueError(
            f"There is no sweep {sweep!r} in {folder}; there is {known}. Name another, or give --sweeps DIR."
        )
    parser = OverridesParser.create()
    given = parser.parse_overrides(list(overrides))
    settings = _composed(
        sweep, folder, [str(item.input_line) for item in given if not item.is_sweep_override()]
    ).hydra.sweeper
    if not str(settings._target_).endswith(".BasicSweeper"):
        raise ValueError(f"Only grids of Hydra's own sweeper can be translated, but {sweep} uses {settings._target_}.")
    params = parser.parse_overrides([f"{key}={value}" for key, value in (settings.params or {}).items()])
    axes: dict[str, list[str]] = {}
    fixed = []
    for item in [*params, *given]:
        if item.key_or_group.startswith(("hydra.", "hydra/")):
            fixed.append(str(item.input_line))
        elif not item.is_sweep_override():
            axes[item.get_key_element()] = [item.get_value_element_as_str()]
        elif item.is_discrete_sweep():
            axes[item.get_key_element()] = [str(value) for value in item.sweep_string_iterator()]
        else:
            raise ValueError(
                f"{item.input_line!r} is no list of values; a grid needs one, as in {item.key_or_group}=1,2."
            )
    if not any(len(values) > 1 for values in axes.values()):
        raise ValueError(f"{sweep} has no axis. Add one, as in seed=1,2, or run it with nonmember audit.")
    return Grid(axes, fixed)


def _composed(sweep: str, folder: Path, overrides: Sequence[str]) -> DictConfig:
    register()
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(folder.resolve()), version_base=None), checked():
        path = f"hydra.searchpath=[file://{config_directory()}]"
        return compose(sweep, [path, *overrides], return_hydra_config=True)


def as_wandb(sweep: str, folder: str | None, grid: Grid) -> dict[str, Any]:
    """W&B's description of the grid. Values keep their words: numbers only where they are written the same way.

    folder: of the sweep's file; None: the project's own, which is found wherever an agent is started."""
    constant = {key: values[0] for key, values in grid.axes.items() if len(values) == 1 and not ALLOWED.fullmatch(key)}
    axes = {key: values for key, values in grid.axes.items() if key not in constant}
    fixed = [*grid.fixed, *(f"{key}={value}" for key, value in constant.items())]
    names = {key: name_of(key) for key in axes}
    if names == {key: key for key in axes}:
        command = ["audit", *_config_dir(folder), "--config-name", sweep, *RUN_WORDS, *fixed, "${args_no_hyphens}"]
    else:
        own = [] if folder is None else ["--sweeps", folder]
        command = ["wandb-sweep", sweep, *own, *fixed, "--run", "${args_json}"]
    return {
        "name": sweep,
        "program": "nonmember",
        "command": ["${env}", "${program}", *command],
        "method": "grid",
        "parameters": {
            names[key]: {"value": value_of(values[0])} if len(values) == 1 else {"values": list(map(value_of, values))}
            for key, values in axes.items()
        },
    }


def _config_dir(folder: str | None) -> list[str]:
    return [] if folder is None else ["--config-dir", folder]


def value_of(word: str) -> Value:
    """A number where W&B, which passes 1.0 on as 1, would write the very same word again; the word itself otherwise."""
    for kind in (int, float):
        try:
            value = kind(word)
        except ValueError:
            continue
        if str(value) == word and (kind is int or not float(value).is_integer()) and math.isfinite(value):
            return value
    return word


def name_of(key: str) -> str:
    """A name W&B allows for a key of Hydra's: model.at.target for model@target."""
    name = key
    for sign, written in WRITTEN.items():
        name = name.replace(sign, written)
    if not ALLOWED.fullmatch(name):
        raise ValueError(f"W&B has no way to write the axis {key!r}. Put it into an experiment in conf/presets.")
    return name


def overrides_of_json(text: str) -> list[str]:
    """The `key=value` words of a cell as an agent gives it."""
    overrides = []
    for name, value in json.loads(text).items():
        for sign, written in WRITTEN.items():
            name = name.replace(written, sign)
        overrides.append(f"{name}={value}")
    return overrides


def run(sweep: str, folder: str | None, overrides: Sequence[str]) -> None:
    """Run one cell in this process, as `nonmember audit` would."""
    sys.argv[1:] = [*_config_dir(folder), "--config-name", sweep, *RUN_WORDS, *overrides]
    os.environ["NONMEMBER_COMMAND"] = "audit"
    importlib.import_module("nonmember.cli.audit").main()
