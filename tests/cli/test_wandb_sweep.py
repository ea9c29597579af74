"""A W&B sweep goes over exactly the cells of the Hydra sweep it was made from, in the same folders."""

from __future__ import annotations

import functools
import itertools
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig

from marks import slow
from nonmember.cli import audit, wandb_sweep
from nonmember.cli.wandb_sweep import ALLOWED, Search, as_wandb, grid_of, name_of, overrides_of_agent, value_of
from nonmember.sweeps.sweep import Sweep

SWEEPS = Path(__file__).parents[2] / "sweeps"
NAMES = sorted(path.stem for path in SWEEPS.glob("*.yaml"))
ONE_CELL = {"decop_calibrated", "mc_pdd_wikimia"}  # nothing to go over


@pytest.fixture(autouse=True, scope="module")
def each_sweep_is_composed_once():
    compose = functools.cache(wandb_sweep._composed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wandb_sweep, "_composed", lambda name, folder, words: compose(name, folder, tuple(words)))
        yield


@pytest.fixture
def call(monkeypatch, capsys):
    """What `nonmember wandb-sweep` writes."""

    def call(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["nonmember wandb-sweep", *arguments])
        wandb_sweep.main()
        return capsys.readouterr().out

    return call


def commands_of(sweep: dict[str, Any]) -> list[list[str]]:
    """The commands that agents of this sweep would run, put together by W&B's own code."""
    from wandb.sdk.launch.sweeps.utils import create_sweep_command_args  # seconds to import

    names, columns = list(sweep["parameters"]), []
    for told in sweep["parameters"].values():
        columns.append(told["values"] if "values" in told else [told["value"]])
    commands = []
    for values in itertools.product(*columns):
        # W&B keeps a cell as JSON, in which a whole number has no fraction.
        cell = {name: {"value": json.loads(json.dumps(value))} for name, value in zip(names, values, strict=True)}
        macros = create_sweep_command_args({"args": cell})
        macros |= {"env": ["/usr/bin/env"], "program": [sweep["program"]]}
        words = ([word] if not word.startswith("${") else macros[word[2:-1]] for word in sweep["command"])
        commands.append([word for some in words for word in some])
    return commands


def overrides_in(command: list[str]) -> list[str]:
    """The `key=value` words that reach Hydra, told apart from options and from what only says how to run."""
    assert command[:2] == ["/usr/bin/env", "nonmember"]
    if command[2] == "wandb-sweep":
        assert command[-2] == "--run"
        fixed, of_axes = overrides_of_agent(command[6:-2], command[-1])
        words = [*fixed, *of_axes]
    else:
        assert command[2] == "audit"
        assert command[7:9] == ["hydra.mode=RUN", "logger.wandb.mode=online"]
        words = command[9:]
    return sorted(words)


def cells_of_hydra(sweep: DictConfig) -> list[list[str]]:
    """As Hydra's own sweeper divides the file."""
    params = [f"{key}={value}" for key, value in sweep.hydra.sweeper.params.items()]
    (cells,) = BasicSweeper.split_arguments(OverridesParser.create().parse_overrides(params), None)
    return sorted(sorted(cell) for cell in cells)


# Each has something that the others have not; they are composed one like another.
DIFFERENT = {
    "fsd_adapter",  # files chosen by what the world names
    "order_chunks",  # null
    "red_team",  # experiments and methods
}


@pytest.mark.parametrize("name", [name if name in DIFFERENT else slow(name) for name in NAMES if name not in ONE_CELL])
def test_agents_run_the_cells_of_the_sweep(name):
    composed = wandb_sweep._composed(name, SWEEPS, [])
    sweep = yaml.safe_load(yaml.safe_dump(as_wandb(name, "sweeps", grid_of(name, SWEEPS))))
    commands = commands_of(sweep)
    assert sorted(overrides_in(command) for command in commands) == cells_of_hydra(composed)
    for command in commands:
        assert name in command[3:7]
    assert sweep["method"] == "grid"
    check_schema(sweep)


def check_schema(sweep: dict[str, Any]) -> None:
    """What W&B's schema for sweeps asks of a grid; the schema itself is not part of W&B's package."""
    assert sweep.keys() == {"name", "program", "command", "method", "parameters"}
    assert all(isinstance(sweep[key], str) for key in ("name", "program"))
    assert all(isinstance(word, str) for word in sweep["command"])
    assert sweep["parameters"]
    for name, told in sweep["parameters"].items():
        assert ALLOWED.fullmatch(name)
        assert told.keys() in ({"values"}, {"value"})
        values = told.get("values", [told.get("value")])
        assert values
        assert all(isinstance(value, str | int | float) for value in values)


def test_every_axis_of_every_sweep_has_a_name_that_wandb_takes_and_gives_back():
    files = [yaml.load((SWEEPS / f"{name}.yaml").read_text(), yaml.CSafeLoader) for name in NAMES]
    axes = set().union(*(item.get("grid", ()) for item in files))
    assert len(axes) > 30
    for axis in axes:
        assert overrides_of_agent([], json.dumps({name_of(axis): "value"})) == ([], [f"{axis}=value"])


def test_what_is_written_is_that_sweep(call):
    written = call("known_truth", "--sweeps", str(SWEEPS))
    assert written.startswith("# 15 audits. Made by: nonmember wandb-sweep known_truth ")
    sweep = yaml.safe_load(written)
    assert sweep == as_wandb("known_truth", str(SWEEPS), grid_of("known_truth", SWEEPS))
    assert sweep["command"] == [
        *("${env}", "${program}", "audit", "--config-dir", str(SWEEPS), "--config-name", "known_truth"),
        *("hydra.mode=RUN", "logger.wandb.mode=online", "${args_no_hyphens}"),
    ]


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("seed=1,2,3", ("seed", [1, 2, 3])),
        ("seed=range(1,4)", ("seed", [1, 2, 3])),
        ("seed=choice(4,5)", ("seed", [4, 5])),
        ("method.score.k=0.1,1.0,0.25", ("method.score.k", [0.1, 1, 0.25])),
        ("data.label='a,b',c", ("data.label", ["'a,b'", "c"])),
        ("data.label=null,x", ("data.label", ["null", "x"])),
        ("data.domain=scipy", ("data.domain", "scipy")),  # takes the place of the file's axis
    ],
)
def test_overrides_are_read_as_hydra_does(override, expected):
    name, values = expected
    told = as_wandb("known_truth", "sweeps", grid_of("known_truth", SWEEPS, [override]))["parameters"][name]
    assert told == ({"values": values} if isinstance(values, list) else {"value": values})


def test_interpolated_axes_follow_the_world(tmp_path):
    (tmp_path / "two.yaml").write_text(
        "defaults: [audit, {override /world: micro}, _self_]\nname: two\n"
        "hydra:\n  mode: MULTIRUN\n  sweeper:\n    params:\n"
        "      seed: ${world.num_documents},${trainer.checkpoint_seconds}\n"
    )
    with_defaults = grid_of("two", tmp_path).axes["seed"]
    changed = grid_of("two", tmp_path, ["world.num_documents=7"]).axes
    assert changed["seed"] == ["7", with_defaults[1]]
    assert changed["world.num_documents"] == ["7"]


def test_groups_get_names_that_wandb_allows():
    sweep = as_wandb(
        "known_truth", "sweeps", grid_of("known_truth", SWEEPS, ["model@target=micro_target,micro_target_high"])
    )
    assert list(sweep["parameters"]) == ["data.domain", "experiment", "model.at.target"]
    assert sweep["command"] == [
        "${env}",
        "${program}",
        "wandb-sweep",
        "known_truth",
        "--sweeps",
        "sweeps",
        "--run",
        "${args_json}",
    ]
    assert name_of("score@method.score") == "score.at.method.score"
    assert overrides_of_agent([], '{"model.at.target": "a", "seed": 1}') == ([], ["model@target=a", "seed=1"])
    check_schema(sweep)


def test_sweeps_of_the_project_are_found_from_any_folder(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sweep = yaml.safe_load(call("known_truth"))
    assert sweep["command"][:5] == ["${env}", "${program}", "audit", "--config-name", "known_truth"]
    grouped = yaml.safe_load(call("known_truth", "model@target=micro_target,micro_target_high"))
    assert grouped["command"][:6] == ["${env}", "${program}", "wandb-sweep", "known_truth", "--run", "${args_json}"]


def test_what_does_not_vary_stands_in_the_command():
    overrides = ["model@target=micro_target", "hydra.job.num=1", "+data.more=1"]
    sweep = as_wandb("known_truth", "sweeps", grid_of("known_truth", SWEEPS, overrides))
    assert sweep["command"][-4:] == [
        "hydra.job.num=1",
        "model@target=micro_target",
        "+data.more=1",
        "${args_no_hyphens}",
    ]


@pytest.mark.parametrize("word", ["007", "1_000", "nan", "inf", "true", "1.", "0x1"])
def test_what_is_no_number_stays_a_word(word):
    assert value_of(word) == word


@pytest.mark.parametrize(
    ("word", "value"), [("1", 1), ("-3", -3), ("0.5", 0.5), ("1.0", 1), ("1e-3", 0.001), ("1.50", 1.5), ("2e3", 2000)]
)
def test_numbers_are_numbers_and_the_agent_finds_their_words_again(word, value):
    assert value_of(word) == value
    assert overrides_of_agent(["seed=7", f"k=0.25,{word}"], json.dumps({"k": value})) == (["seed=7"], [f"k={word}"])


def test_a_search_goes_over_intervals():
    words = [
        "method.distillation.lambda_=interval(0.1,0.9)",
        "seed=int(interval(1,9))",
        "alpha=tag(log,interval(1e-5,1e-3))",
    ]
    grid = grid_of("known_truth", SWEEPS, words)
    sweep = as_wandb("known_truth", None, grid, Search("bayes", "health/kl_after", num_runs=20))
    assert (sweep["method"], sweep["metric"], sweep["run_cap"]) == (
        "bayes",
        {"name": "health/kl_after", "goal": "minimize"},
        20,
    )
    assert sweep["parameters"]["method.distillation.lambda_"] == {"distribution": "uniform", "min": 0.1, "max": 0.9}
    assert sweep["parameters"]["seed"]["distribution"] == "int_uniform"
    assert sweep["parameters"]["alpha"] == {"distribution": "log_uniform_values", "min": 1e-5, "max": 1e-3}
    assert len(sweep["parameters"]["experiment"]["values"]) > 1
    assert as_wandb("known_truth", None, grid_of("known_truth", SWEEPS), Search("random"))["method"] == "random"
    with pytest.raises(ValueError, match="--metric is what --method bayes optimizes"):
        Search("bayes")


@pytest.fixture
def folders(monkeypatch, tmp_path) -> list[tuple[str, str]]:
    """Sweep folder and cell of the audits that would have been run, and the mode of W&B."""

    def run_cell(config: Any, folder: Path) -> None:
        ran.append((folder.relative_to(tmp_path).as_posix(), config.logger.wandb.mode))
        raise ValueError("seen enough")

    ran: list[tuple[str, str]] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NONMEMBER_OUTPUTS", str(tmp_path))
    monkeypatch.setenv("NONMEMBER_COMMAND", "wandb-sweep")
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    monkeypatch.setattr(audit, "run_cell", run_cell)
    # What the cells would need is told in test_sweep.py; for the micro world's it reads the documents of all libraries.
    monkeypatch.setattr(Sweep, "see", lambda *_: None)
    return ran


@pytest.mark.slow
@pytest.mark.parametrize("axis", ["model@target=micro_target,micro_target_high", "method.score.k=0.1,1.0"])
def test_both_run_in_the_same_folders(folders, monkeypatch, axis):
    """Hydra's multirun and the commands of agents, both for real, but for the audits themselves."""
    narrow = ["data.domain=scipy", "experiment=untouched_on_a"]
    monkeypatch.setattr(
        sys, "argv", ["audit", "-m", "--config-dir", str(SWEEPS), "--config-name", "known_truth", *narrow, axis]
    )
    with pytest.raises(ValueError, match="seen enough"):
        audit.main()
    of_hydra = [folder for folder, _ in folders]
    assert len(set(of_hydra)) == 2
    assert all(folder.startswith("audits/known_truth/") for folder in of_hydra)
    folders.clear()
    for command in commands_of(as_wandb("known_truth", str(SWEEPS), grid_of("known_truth", SWEEPS, [*narrow, axis]))):
        monkeypatch.setattr(sys, "argv", command[2:])
        main = wandb_sweep.main if command[2] == "wandb-sweep" else audit.main
        with pytest.raises(ValueError, match="seen enough"):
            main()
    assert folders == [(folder, "online") for folder in of_hydra]


def test_mistakes_are_told(call, tmp_path):
    with pytest.raises(ValueError, match=r"no sweep 'dmo' in .*; there is .*known_truth.*--sweeps DIR"):
        call("dmo", "--sweeps", str(SWEEPS))
    with pytest.raises(ValueError, match="which is not a list of values; give one"):
        call("known_truth", "--sweeps", str(SWEEPS), "seed=interval(1,2)")
    with pytest.raises(ValueError, match="has no axis"):
        call("known_truth", "--sweeps", str(SWEEPS), "data.domain=scipy", "experiment=untouched_on_a")
    with pytest.raises(ValueError, match=r"no way to write the axis '\+data.more'"):
        call("known_truth", "--sweeps", str(SWEEPS), "+data.more=1,2")
    (tmp_path / "other.yaml").write_text(
        "defaults: [audit, _self_]\nname: other\nhydra:\n  sweeper:\n    _target_: somebody.elses.Sweeper\n"
    )
    with pytest.raises(ValueError, match=r"sets hydra\.sweeper\._target_, which only the command line may"):
        call("other", "--sweeps", str(tmp_path))
