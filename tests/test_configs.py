"""Every YAML composes where it is meant to stand, and every `_target_` in it binds to what it names.

Numbers that are being tuned are not repeated here; those of the papers are.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode
from hydra.utils import get_object, instantiate
from omegaconf import DictConfig, OmegaConf

from nonmember.config import config_directory, file_stem, folder_name, register, require_complete

CONF = config_directory()
SWEEPS = CONF.parent / "sweeps"


def options(group: str) -> list[str]:
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


# Values a user has to give (`???`), by group option.
GIVEN = {
    "data/cleaned": [
        "data.label=x",
        "data.corpus.base.source={_target_: nonmember.corpora.TextFiles, path: x, pattern: '*'}",
    ],
    "data/hub": ["data.path=owner/set", "data.revision=v1"],
    "data/jsonl": ["data.path=folder/wikipedia.jsonl.gz"],
    "data/library_docs": ["data.packages=[networkx]"],
    "data/text_files": ["data.path=folder"],
}
HUB_NAMES = ("pythia_", "olmo_")  # all alike: a name and a revision


def overrides_of(group: str, option: str) -> list[tuple[str, list[str]]]:
    """(command, overrides) that together put an option of a group into every place it is meant for."""
    given = GIVEN.get(f"{group}/{option}", [])
    match group:
        case "model":
            commands = {"audit": ("@target", "@reference"), "score": ("", "@reference"), "train": ("",)}
            if option.startswith(HUB_NAMES):
                del commands["score"], commands["train"]
            overrides = {name: [f"model{at}={option}" for at in places] for name, places in commands.items()}
            if option == "pretrained":
                for name, places in commands.items():
                    overrides[name] += [f"{at.removeprefix('@') or 'model'}.path=folder" for at in places]
            return list(overrides.items())
        case "training" if "distillation" in option:
            return [("audit", [f"training@method.distillation={option}", f"method={m}"]) for m in options("method")]
        case "training":
            # A target with a training of its own, on a base with another, and a reference with a third.
            places = ("target.training", "target.base.training", "reference.training")
            return [
                (
                    "audit",
                    ["model@target=micro_target_low", *(f"training@{place}={option}" for place in places)],
                )
            ]
        case "score":
            return [("audit", [f"score@method.score={option}"])]
        case "data":
            return [(command, [f"data={option}", *given]) for command in ("audit", "score")]
        case "trainer" | "world" | "logger" | "method" | "experiment":
            return [("audit", [f"{group}={option}"])]
    raise AssertionError(f"Say in this test where the options of the new group {group!r} are meant to stand.")


GROUPS = sorted(path.name for path in CONF.iterdir() if path.is_dir())
PLACES = [
    pytest.param(f"{group}/{option}", command, overrides, id=" ".join([command, *overrides][:3]))
    for group in GROUPS
    for option in options(group)
    for command, overrides in overrides_of(group, option)
]
SWEEP_NAMES = sorted(path.stem for path in SWEEPS.glob("*.yaml"))
COMMANDS = ("audit", "score", "train")


def composed(command: str, overrides: list[str], *, beside: Path | None = None, **more: Any) -> DictConfig:
    """As the command composes it. beside: the folder of the primary config where it is not conf/."""
    register()
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(beside or CONF), version_base=None):
        added = [f"hydra.searchpath=[file://{CONF}]"] if beside else []
        return compose(command, overrides=[*added, *overrides], **more)


def nodes(config: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Every node with a `_target_`, inner ones first; interpolations are followed."""
    children = config.items() if isinstance(config, dict) else enumerate(config) if isinstance(config, list) else ()
    for name, value in children:
        yield from nodes(value, f"{key}.{name}".strip("."))
    if isinstance(config, dict) and "_target_" in config:
        yield key, config


def check_targets(config: DictConfig) -> None:
    """Each `_target_` exists and takes the keys beside it, all that it needs among them."""
    container = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    found = list(nodes(container))
    assert found
    for key, node in found:
        target = get_object(node["_target_"])
        arguments = {name: value for name, value in node.items() if name not in ("_target_", "_partial_", "_convert_")}
        try:
            signature = inspect.signature(target)
            bind = signature.bind_partial if node.get("_partial_") else signature.bind
            bind(**arguments)
        except TypeError as error:
            pytest.fail(f"{key}: {node['_target_']} does not take these keys: {error}")


def build(node: Any) -> Any:
    return instantiate(node, _convert_="all")


def build_all(command: str, config: DictConfig) -> None:
    """Instantiate what is cheap: recipes, methods, trainers' settings. Nothing is read, made or connected."""
    for name in ("target", "reference", "model", "method", "trainer"):
        if config.get(name) is not None:
            build(config[name])
    if config.get("data"):
        build(config.data.corpus)
    if config.get("logger"):
        build(config.logger)


@pytest.mark.parametrize(("covered", "command", "overrides"), PLACES)
def test_every_option_composes_binds_and_builds(covered, command, overrides):
    config = composed(command, overrides)
    require_complete(config)
    check_targets(config)
    build_all(command, config)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_composes(command):
    config = composed(command, [])
    require_complete(config)
    check_targets(config)
    build_all(command, config)


@pytest.mark.parametrize("name", SWEEP_NAMES)
def test_every_sweep_is_a_primary_config(name):
    """As `--config-dir sweeps --config-name NAME` reads it: its first cell, and others along each axis."""
    config = composed(name, [], beside=SWEEPS, return_hydra_config=True)
    assert config.hydra.mode == RunMode.MULTIRUN
    axes = {key: str(values).split(",") for key, values in config.hydra.sweeper.params.items()}
    assert axes
    first = {key: values[0] for key, values in axes.items()}
    cells = [first] + [first | {key: value} for key, values in axes.items() for value in values[1:]]
    for cell in cells:
        made = composed(name, [f"{key}={value.strip()}" for key, value in cell.items()], beside=SWEEPS)
        assert made.name == name, "results of a sweep lie in a folder of its name"
        require_complete(made)
        check_targets(made)


def test_no_file_is_left_out():
    """A new YAML file must be reached by the tests above: as a command, an option in its place, a sweep."""
    reached = {f"{param.values[0]}.yaml" for param in PLACES}
    reached |= {f"{command}.yaml" for command in COMMANDS} | {"hydra_settings.yaml"}  # which each command includes
    assert {path.relative_to(CONF).as_posix() for path in CONF.rglob("*.y*ml")} == reached
    assert {path.relative_to(SWEEPS).as_posix() for path in SWEEPS.rglob("*.y*ml")} == {
        f"{n}.yaml" for n in SWEEP_NAMES
    }


@pytest.mark.parametrize("path", sorted([*CONF.rglob("*.yaml"), *SWEEPS.glob("*.yaml")]), ids=lambda path: path.stem)
def test_every_file_says_what_it_is(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    assert max(map(len, lines)) <= 160


def test_help_shows_every_group():
    for command in COMMANDS:
        assert "$APP_CONFIG_GROUPS" in (CONF / f"{command}.yaml").read_text()


# ----------------------------------------------------------------------------- numbers of the papers


def test_distillation_is_the_papers():
    """Methods, sections 1.8 and 3.2 item 3. Precision (float32 master weights) is the trainer's."""
    distillation = build(composed("audit", ["training@method.distillation=distillation"]).method.distillation)
    assert dataclasses.asdict(distillation) == {
        "lambda_": 0.7,
        "tau": 2.0,
        "max_tokens": 512,
        "optimization": {
            "learning_rate": 5e-5,
            "batch_size": 16,
            "epochs": 1,
            "warmup": 0.05,
            "schedule": "linear",
            "final_fraction": 0.0,
            "betas": (0.9, 0.999),
            "epsilon": 1e-8,
            "weight_decay": 0.0,
            "gradient_clip": 1.0,
        },
    }


def test_prism_is_the_papers():
    config = composed("audit", [])
    prism = build(config.method)
    assert (prism.score.name, prism.num_resamples, prism.alpha) == ("minkpp(0.2)", 10_000, 0.05)
    assert (prism.rank_metric, prism.margin, prism.max_tokens) == ("spearman", 0.0, 512)
    assert config.seed == 1234


def test_the_papers_documents():
    data = composed("audit", ["data=jsonl", "data.path=x"]).data
    assert (data.min_words, data.max_words) == (100, 200)


def test_pythia_and_olmo_are_pinned_and_paired():
    """A revision of the hub in each; target plain, reference deduped."""
    names = [name for name in options("model") if name.startswith(HUB_NAMES)]
    assert len(names) == 15
    for name in names:
        model = OmegaConf.load(CONF / "model" / f"{name}.yaml")
        assert model.revision, name
        spelt = model.path.partition("/")[2].lower().replace("-hf", "").replace("-", "_").replace(".", "_")
        assert spelt == name
    plain = {name for name in names if name.startswith("pythia") and not name.endswith("_deduped")}
    assert {f"{name}_deduped" for name in plain} <= set(names)


# ----------------------------------------------------------------------------------------- composing


def test_without_an_experiment():
    assert composed("audit", []).experiment is None


def test_an_experiment_is_a_preset():
    config = composed("audit", ["experiment=pythia_410m", "seed=3"])
    assert config.target.path == "EleutherAI/pythia-410m"
    assert config.reference.path == "EleutherAI/pythia-1b-deduped"
    assert config.method.distillation.optimization.learning_rate == 5e-5
    assert config.trainer.make_trainer.accelerator == "gpu"
    assert config.seed == 3


def test_the_command_line_wins_over_an_experiment():
    config = composed("audit", ["experiment=high_on_b", "model@target=micro_target", "data.half=a"])
    assert config.target.label == composed("audit", ["model@target=micro_target"]).target.label
    assert config.data.half == "a"


@pytest.mark.parametrize("data", ["jsonl", "hub", "library_docs", "text_files"])
def test_what_must_be_given_is_named(data):
    keys = [given.partition("=")[0] for given in GIVEN[f"data/{data}"]]
    with pytest.raises(ValueError, match=" and ".join(keys)) as refusal:
        require_complete(composed("audit", [f"data={data}"]))
    for key in keys:
        assert f"{key}=VALUE" in str(refusal.value)


def test_labels_come_from_names_of_files():
    config = composed("audit", ["data=jsonl", "data.path=../data/pile/wikipedia.jsonl.gz"])
    assert config.data.label == "wikipedia"
    assert file_stem("EleutherAI/the_pile/") == "the_pile"
    assert file_stem(".jsonl") == "documents"


def test_folder_names_are_safe_and_tell_apart():
    assert folder_name("") == "default"
    assert folder_name("data.path=a/b c,seed=1") == "data.path=a_b_c,seed=1"
    long = [folder_name("x" * 300 + end) for end in "ab"]
    assert long[0] != long[1]
    assert max(map(len, long)) <= 120


# ------------------------------------------------------------------- no scientific setting in Python


SCIENTIFIC = {
    "k", "lambda_", "tau", "alpha", "num_resamples", "margin", "rank_metric", "max_tokens", "a",
    "vocab_size", "sequence_length", "learning_rate", "batch_size", "epochs", "warmup", "schedule",
    "final_fraction", "betas", "epsilon", "weight_decay", "gradient_clip", "min_words", "max_words",
    "long_documents", "near_duplicate_threshold", "num_perm",
}  # fmt: skip


def test_scientific_settings_have_no_default_in_python():
    """The YAML states them, once."""
    source = Path(inspect.getfile(config_directory)).parent
    for path in sorted(source.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                fields = [item for item in node.body if isinstance(item, ast.AnnAssign) and item.value is not None]
                named = {item.target.id for item in fields if isinstance(item.target, ast.Name) and not _missing(item)}
                assert not named & SCIENTIFIC, f"{path.name}: {node.name}"
            if isinstance(node, ast.FunctionDef):
                defaults = dict(zip(reversed(node.args.args), reversed(node.args.defaults), strict=False))
                defaults |= dict(zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True))
                named = {argument.arg for argument, default in defaults.items() if default is not None}
                assert not named & SCIENTIFIC, f"{path.name}: {node.name}"


def _missing(item: ast.AnnAssign) -> bool:
    assert item.value is not None
    return ast.unparse(item.value) in ("MISSING", "None") or ast.unparse(item.annotation).startswith("ClassVar")
