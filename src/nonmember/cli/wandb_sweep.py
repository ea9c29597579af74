"""`nonmember wandb-sweep SWEEP`: the same grid as `nonmember audit -m`, as a W&B sweep that agents share out.

    nonmember wandb-sweep demo > demo-wandb.yaml
    nonmember wandb-sweep demo --method bayes --metric health/kl_after 'method.distillation.lambda_=interval(0.1,0.9)'
    wandb sweep --project nonmember demo-wandb.yaml      (prints the command that starts an agent)

An agent runs each cell as `nonmember audit ... key=value ...` with the very words Hydra's sweeper would use, so the
results lie in the same folders, and what is there already is not done again. Numbers are numbers in W&B; where it would
write one in other words (1 for 1.0), the agent's command finds the words of the sweep again.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import math
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from nonmember.checks import require_count
from nonmember.config.choices import config_directory, sweeps_directory
from nonmember.config.roots import checked, register

Value = str | int | float

ALLOWED = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")  # what W&B's schema takes as the name of a parameter
RUN_WORDS = ("hydra.mode=RUN", "logger.wandb.mode=online")
METHODS = ("grid", "random", "bayes")
NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
LARGEST_WHOLE = 2**53  # above, a float stands for several whole numbers
WRITTEN = {"@": ".at.", "/": ".in."}  # and how Hydra's groups are written in such a name


@dataclass(frozen=True)
class Search:
    """How W&B chooses cells."""

    method: str = "grid"
    metric: str | None = None  # of a run's summary, such as health/kl_after; for bayes alone
    goal: str = "minimize"
    num_runs: int | None = None  # None: all of a grid, else until it is stopped

    def __post_init__(self) -> None:
        require_count(self.num_runs, 1, "--runs", or_null=True)
        if (self.method == "bayes") != (self.metric is not None):
            raise ValueError(
                "--metric is what --method bayes optimizes, and no other method takes one. Write --method bayes "
                "--metric health/kl_after; never search by p or the verdict, since the smallest of many p-values is "
                "not a p-value."
            )

    def as_wandb(self) -> dict[str, Any]:
        metric = {} if self.metric is None else {"metric": {"name": self.metric, "goal": self.goal}}
        return {"method": self.method, **metric, **({} if self.num_runs is None else {"run_cap": self.num_runs})}


@dataclass(frozen=True)
class Grid:
    axes: Mapping[str, Sequence[str]]  # key -> the values as written, in Hydra's order
    fixed: Sequence[str] = field(default_factory=list)  # overrides that stand in every command
    # Key -> bounds of a search, as W&B describes them.
    ranges: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)

    def cells(self) -> Iterator[list[str]]:
        """The overrides of each cell."""
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
    parser.add_argument("--method", choices=METHODS, default="grid", help="default: all cells of the grid")
    parser.add_argument(
        "--metric", metavar="NAME", help="for bayes: a number of a run's summary, such as health/kl_after"
    )
    parser.add_argument("--goal", choices=("minimize", "maximize"), default="minimize", help="default: %(default)s")
    parser.add_argument("--runs", type=int, metavar="N", help="for random and bayes: the number of audits")
    parser.add_argument("--run", metavar="JSON", help="run one cell; for agents, where names had to be rewritten")
    parser.add_argument("overrides", nargs="*", help="key=value or key=value,value, as on the command line of a sweep")
    given = parser.parse_intermixed_args()
    if given.run is not None:
        fixed, of_axes = overrides_of_agent(given.overrides, given.run)
        run(given.sweep, given.sweeps, [*fixed, *of_axes])
        return
    search = Search(given.method, given.metric, given.goal, given.runs)
    grid = grid_of(given.sweep, Path(given.sweeps or sweeps_directory()), given.overrides)
    number = f"{math.prod(len(values) for values in grid.axes.values())} audits" if not grid.ranges else "A search"
    head = f"# {number}. Made by: nonmember wandb-sweep {shlex.join(sys.argv[1:])}\n"
    sys.stdout.write(head + OmegaConf.to_yaml(as_wandb(given.sweep, given.sweeps, grid, search)))


def grid_of(sweep: str, folder: Path, overrides: Sequence[str] = ()) -> Grid:
    """The axes of a sweep file, with overrides from the command line as `nonmember audit -m` would take them, and
    intervals as Hydra's sweepers that search take them: interval(0.1,0.9), tag(log,interval(1e-5,1e-3)).

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
    ranges: dict[str, dict[str, Value]] = {}
    fixed = []
    for item in [*params, *given]:
        if item.key_or_group.startswith(("hydra.", "hydra/")):
            fixed.append(str(item.input_line))
        elif not item.is_sweep_override():
            axes[item.get_key_element()] = [item.get_value_element_as_str()]
        elif item.is_discrete_sweep():
            axes[item.get_key_element()] = [str(value) for value in item.sweep_string_iterator()]
        else:
            axes.pop(item.get_key_element(), None)
            ranges[item.get_key_element()] = _range_of(item.value())
    if not ranges and not any(len(values) > 1 for values in axes.values()):
        raise ValueError(f"{sweep} has no axis. Add one, as in seed=1,2, or run it with nonmember audit.")
    return Grid(axes, fixed, ranges)


def _range_of(interval: Any) -> dict[str, Value]:
    is_whole = isinstance(interval.start, int) and isinstance(interval.end, int)
    kind = "log_uniform_values" if "log" in interval.tags else "int_uniform" if is_whole else "uniform"
    return {"distribution": kind, "min": interval.start, "max": interval.end}


def _composed(sweep: str, folder: Path, overrides: Sequence[str]) -> DictConfig:
    register()
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(folder.resolve()), version_base=None), checked():
        path = f"hydra.searchpath=[file://{config_directory()}]"
        return compose(sweep, [path, *overrides], return_hydra_config=True)


def as_wandb(sweep: str, folder: str | None, grid: Grid, search: Search | None = None) -> dict[str, Any]:
    """W&B's description of the grid or search.

    folder: of the sweep's file; None: the project's own, which is found wherever an agent is started.

    Raises ValueError where a grid is to go over what only a search can.
    """
    search = search or Search()
    if grid.ranges and search.method == "grid":
        raise ValueError(
            f"{min(grid.ranges)} has an interval, which is not a list of values; give one, as in "
            f"{min(grid.ranges)}=1,2, or search with --method random or bayes."
        )
    constant = {key: values[0] for key, values in grid.axes.items() if len(values) == 1 and not ALLOWED.fullmatch(key)}
    axes = {key: values for key, values in grid.axes.items() if key not in constant}
    rewritten = {key: [text for text in values if str(value_of(text)) != text] for key, values in axes.items()}
    rewritten = {key: values for key, values in rewritten.items() if values}
    fixed = [*grid.fixed, *(f"{key}={value}" for key, value in constant.items())]
    names = {key: name_of(key) for key in (*axes, *grid.ranges)}
    if not rewritten and all(key == name for key, name in names.items()):
        command = ["audit", *_config_dir(folder), "--config-name", sweep, *RUN_WORDS, *fixed, "${args_no_hyphens}"]
    else:
        own = [] if folder is None else ["--sweeps", folder]
        fixed += [f"{key}={','.join(values)}" for key, values in rewritten.items()]
        command = ["wandb-sweep", sweep, *own, *fixed, "--run", "${args_json}"]
    return {
        "name": sweep,
        "program": "nonmember",
        "command": ["${env}", "${program}", *command],
        **search.as_wandb(),
        "parameters": {
            names[key]: {"value": value_of(values[0])} if len(values) == 1 else {"values": list(map(value_of, values))}
            for key, values in axes.items()
        }
        | {names[key]: dict(value) for key, value in grid.ranges.items()},
    }


def _config_dir(folder: str | None) -> list[str]:
    return [] if folder is None else ["--config-dir", folder]


def value_of(text: str) -> Value:
    """A number as W&B passes it on, which makes 1 of 1.0; other text as it is."""
    if not NUMBER.fullmatch(text):
        return text
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < LARGEST_WHOLE else value


def name_of(key: str) -> str:
    """A name W&B allows for a key of Hydra's: model.at.target for model@target."""
    name = key
    for sign, written in WRITTEN.items():
        name = name.replace(sign, written)
    if not ALLOWED.fullmatch(name):
        raise ValueError(f"W&B has no way to write the axis {key!r}. Put it into an experiment in conf/presets.")
    return name


def overrides_of_agent(given: Sequence[str], text: str) -> tuple[list[str], list[str]]:
    """The overrides of every command, and those of a cell, each value as the sweep writes it.

    given: of the command, with the values of an axis that W&B writes differently: method.score.k=1.0,2.0.   text: the
    cell's values as JSON.
    """
    values = {}
    for name, value in json.loads(text).items():
        for sign, written in WRITTEN.items():
            name = name.replace(written, sign)
        values[name] = value
    axes = {key: listed.split(",") for key, _, listed in (item.partition("=") for item in given) if key in values}
    fixed = [item for item in given if item.partition("=")[0] not in axes]
    overrides = []
    for key, value in values.items():
        matching = (item for item in axes.get(key, ()) if value_of(item) == value)
        overrides.append(f"{key}={next(matching, value)}")
    return fixed, overrides


def run(sweep: str, folder: str | None, overrides: Sequence[str]) -> None:
    """Run one cell in this process, as `nonmember audit` would."""
    sys.argv[1:] = [*_config_dir(folder), "--config-name", sweep, *RUN_WORDS, *overrides]
    os.environ["NONMEMBER_COMMAND"] = "audit"
    importlib.import_module("nonmember.cli.audit").main()
