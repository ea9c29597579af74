"""Every YAML composes where it is meant to stand, and every `_target_` in it binds to what it names.

Numbers that are being tuned are not repeated here; those of the papers are.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode
from hydra.utils import get_object
from omegaconf import DictConfig, OmegaConf, open_dict

from marks import thinned
from nonmember.config.build import build_audit
from nonmember.config.choices import config_directory, descriptions, groups, options
from nonmember.config.roots import register, require_complete
from nonmember.config.safety import checked_composition, instantiate
from nonmember.corpora import Streamed
from nonmember.reports.core.published import PAPERS, published_tables
from nonmember.runtime.naming import folder_name, label_of_path

CONF = config_directory()
SWEEPS = CONF.parent / "sweeps"
GROUPS = groups()
COMMANDS = ("audit", "score", "train", "report")
FSD = published_tables(PAPERS / "fsd" / "published.txt")
STUDIES = [
    "dose_study",
    "releases",
    "published",
    "hubble",
    "pythia_steps",
]  # made for a sweep of their own, with axes of their own
SAME_MODELS = ["smollm_kinds", "gemma", "demo"]  # of other text or another base, by the presets of another
REAL = ["smollm", "smollm_kinds", "gemma"]


def plain_yaml(path: Path) -> Any:
    return OmegaConf.to_container(OmegaConf.load(path), resolve=False)


WORLD_FILES = {
    path.relative_to(CONF / "world").with_suffix("").as_posix(): plain_yaml(path)
    for path in CONF.glob("world/**/*.yaml")
}
WORLDS = [  # over which sweeps go: those with axes
    name for name in options("world") if name not in (*STUDIES, *SAME_MODELS, "own")
]
SWEEP_NAMES = sorted(path.stem for path in SWEEPS.glob("*.yaml"))
AXIS = re.compile(r"\$\{(?:world\.axes)?\.(\w+)\}")  # which another follows
WORLDS_OF_SWEEP = {  # the others go over the axes of any world
    **dict.fromkeys(("smollm", "smollm_later", "smollm_lora", "smollm_lora_controls"), REAL),
    **{
        name: [world]
        for world, names in {
            "demo": "demo",
            "micro": "first_audit known_truth weak_references prism_power prism_power_settings prism_power_lambda "
            "prism_power_tau prism_power_rate prism_power_k prism_power_seeds prism_power_documents "
            "prism_power_faint chat chat_dose sampled fsd_protocol decop_replay decop_replay_scores "
            "decop_replay_calibrated",
            "smollm": "demo_real smollm_asked chat_smollm",
            "smollm_kinds": "smollm_kinds smollm_kinds_asked prism_power_smollm",
            "published": "smollm_published",
            "pile": "pile years_pile",
            "releases": "fsd_releases releases_rivals releases_later_reference",
            "dose_study": "dose_chosen dose_chosen_stand_in dose_stand_in dose_again dose_small "
            "dose_reported dose_aligned "
            "dose_large dose_rivals dose_rivals_heldout arena arena_out arena_sizes",
            "hubble": "hubble hubble_asked hubble_planted",
            "pythia_steps": "pythia_steps pythia_steps_planted",
            "pythia": "kds_scripts mc_pdd_wikimia mc_pdd_years mc_pdd_news mc_pdd_arxiv decop_papers decop_books "
            "decop_sizes decop_lengths decop_paraphraser decop_calibrated decop_table3_books fsd_books",
        }.items()
        for name in names.split()
    },
}
LABELLED_BY_NAME = ["fsd", "pile_subsets"]  # of which the Pythia world is made; the others are a set each

# Values a user has to give (`???`), by group option.
SOME_COMMIT = "0123456789abcdef" * 2 + "01234567"
GIVEN = {
    "data/arxivtection": [f"data.sets.revision={SOME_COMMIT}"],  # a branch is resolved when an audit begins
    "labelled/arxivtection": [f"PLACE.revision={SOME_COMMIT}"],
    "data/hubble_suspect": (
        HUBBLE := [f"data.unread.source.revision={SOME_COMMIT}", f"data.sets.read.source.revision={SOME_COMMIT}"]
    ),
    "world/hubble": HUBBLE,
    "data/pythia_steps_suspect": (STEPS := ["data.between_path=between.jsonl", "data.after_path=after.jsonl"]),
    "world/pythia_steps": STEPS,
    "labelled/wikimia_length": ["PLACE.length=32"],
    "data/prepared": [
        "data.label=x",
        "data.corpus.base.source={_target_: nonmember.corpora.Documents, path: x, pattern: '*', split: file}",
    ],
    "data/contaminated": [
        *("+data.label=x", "data.rate=0.5", "data.num_documents=4"),
        *(
            f"+data.sets.{name}={{_target_: nonmember.corpora.Documents, path: x, pattern: '*', split: file}}"
            for name in ("members", "nonmembers")
        ),
    ],
    "data/labelled": [
        "data.label=x",
        *(
            f"data.sets.{name}={{_target_: nonmember.corpora.Documents, path: x, pattern: '*', split: file}}"
            for name in ("members", "nonmembers")
        ),
    ],
    "data/hub": ["data.path=owner/set", "data.revision=v1"],
    "data/canaries": ["data.path=canaries.private.json"],
    "data/holdout": ["data.path=holdout.private.json"],
    "data/jsonl": ["data.path=folder/wikipedia.jsonl.gz"],
    "data/ordered": ["data.path=folder/wikipedia.jsonl.gz"],
    "data/library_docs": ["data.packages=[networkx]"],
    "data/decop_arxivtection": [f"data.revision={SOME_COMMIT}"],
    "data/decop_books": ["data.path=old.jsonl.gz", "data.clean_path=new.jsonl.gz"],
    "data/steam": (STEAM := ["data.read_path=games_2014.jsonl", "data.unread_path=games_2024.jsonl"]),
    "data/pythia_mc_pdd": STEAM,
    "data/monthly": [
        *("data.path=a/b", "data.revision=v1", "data.text_field=text", "data.domain=x"),
        *("data.candidate='2017-03'", "data.against='2025-03'"),
    ],
    "data/bbc_monthly": (BBC := [f"data.revision={SOME_COMMIT}"]),
    "data/arxiv_monthly": (ARXIV := BBC),
    "experiment/mc_pdd_steam": STEAM,
    "experiment/mc_pdd_bbc": BBC,
    "experiment/mc_pdd_arxiv": ARXIV,
    "data/text_files": ["data.path=folder"],
    "data/documents": ["data.path=folder"],
    "data/streamed": ["data.path=folder"],
    "model/pretrained": ["PLACE.path=folder"],
    "model/own_sibling": ["PLACE.base.path=folder"],
    **{f"model/own_{role}": ["PLACE.path=folder"] for role in ("target", "reference", "rephraser", "stand_in", "base")},
    **{
        f"data/{name}": [f"data.{place}path={place}docs.jsonl" for place in ("", "heldout.", "unseen.")]
        for name in ("own_suspect", "chat")
    },
    "model/published_reference": ["PLACE.path=folder"],
    "world/published": ["reference.path=folder"],
    "model/endpoint": ["PLACE.url=http://localhost:8000/v1", "PLACE.model=name"],
    "model/recorded": ["PLACE.path=answers.csv", "PLACE.model=name"],
    "model/masked": ["PLACE.path=folder"],
    "model/llama_3_70b_instruct": ["PLACE.url=http://localhost:8000/v1"],
    "model/deepseek_v3": ["PLACE.url=http://localhost:8000/v1"],
    "controls/pythia_controls": ["PLACE.deviation=0.04"],
    "model/tuned": ["PLACE.base.path=folder", "PLACE.corpus.source.path=unseen.jsonl"],
    "model/tuned_chat": ["PLACE.base.path=folder", "PLACE.corpus.source.path=log.jsonl"],
}


GIVEN_IN_WORLD = {
    "pythia": [f"world.labelled.arxivtection.revision={SOME_COMMIT}"],
    "hubble": HUBBLE,
    "pythia_steps": STEPS,
}


def stands(place: str, option: str) -> tuple[str, list[str]]:
    """(group/option, overrides) that put an option of a group into a place: a group, or group@package."""
    group, _, package = place.partition("@")
    covered = f"{group}/{option}"
    return covered, [f"{place}={option}", *(text.replace("PLACE", package or group) for text in GIVEN.get(covered, []))]


def deck(command: str, places: Mapping[str, Sequence[str]], *more: str) -> list[Any]:
    """As few command lines as let every option stand once in its place: the first ones together, the second, ..."""
    rows = []
    for row in zip_longest(*places.values()):
        chosen = [stands(place, option) for place, option in zip(places, row, strict=True) if option is not None]
        overrides = [*more, *(text for _, texts in chosen for text in texts)]
        rows.append(pytest.param([name for name, _ in chosen], command, overrides, id=" ".join([command, *overrides])))
    return rows


def options_of(world: str, group: str) -> list[str]:
    """Those that stand on what only this world has."""
    others = () if world == "pythia_steps" else ("pythia_steps_",)
    return [name for name in options(group) if name.startswith(f"{world}_") and not name.startswith(others)]


def options_elsewhere(group: str) -> list[str]:
    elsewhere = ("pythia_", "dose_study_", "own_", "smollm_", "demo_", "releases_", "published_", "hubble_", "gemma_")
    return [name for name in options(group) if not name.startswith(elsewhere)]


MODELS = options_elsewhere("model")
DISTILLATIONS = [name for name in options("training") if "distillation" in name]
ADAPTERS = [name for name in options("training") if "fsd" in name]
DATA = options_elsewhere("data")
PYTHIA = options_of("pythia", "experiment")
LABELLED = [name for name in options("labelled") if name not in LABELLED_BY_NAME]
# What can stand anywhere, side by side in one config, which is far cheaper than a config for each.
SHELVES = [
    ("pile", "model", [name for name in MODELS if name.startswith("micro_")]),
    ("micro", "model", MODELS),
    *(
        (world, "model", options_of(world, "model"))
        for world in ("pythia", "smollm", "gemma", "releases", "published", "hubble", "pythia_steps")
    ),
    *(("micro", group, options(group)) for group in ("training", "score")),
    ("micro", "labelled", LABELLED),
    ("micro", "controls", options_elsewhere("controls")),
    *(
        (world, "controls", options_of(world, "controls"))
        for world in ("pythia", "smollm", "gemma", "hubble", "pythia_steps")
    ),
]
PLACES = [
    *deck(
        "audit",
        {
            "model@target": [name for name in MODELS if name.startswith("micro_")][::2],
            "model@reference": [name for name in MODELS if name.startswith("micro_")][1::2],
            "training@method.distillation": DISTILLATIONS,
            "score@method.score": options("score"),
        },
        "method=prism",
    ),
    *deck(
        "audit",
        {
            "method": [name for name in options("method") if name != "dose"],
            "data": DATA,
            "trainer": options("trainer"),
            "asking": options("asking"),
            "logger": options("logger"),
            "launcher": options("launcher"),
            "callbacks": options("callbacks"),
        },
    ),
    *deck("audit", {"debug": options("debug")}),
    *deck("audit", {"method": ["dose"]}),  # its controls are told by the halves that a world's own data have
    *deck("audit", {"data": options_of("pythia", "data")}, "world=pythia"),
    *deck(
        "audit",
        {name: options_of("dose_study", name.partition("@")[0]) for name in ("model@target", "data")}
        | {"model@reference": ["dose_study_reference"], "controls@method.controls": ["dose_study_doses"]}
        | {"panel@method.panel": options("panel")},
        "world=dose_study",
        "method=dose",
    ),
    *deck("audit", {"data": options_of("smollm", "data")}, "world=smollm"),
    *deck("audit", {"data": options_of("gemma", "data")}, "world=gemma"),
    *deck("audit", {"data": options_of("releases", "data")}, "world=releases"),
    *deck("audit", {"data": options_of("published", "data")}, "world=published", "reference=null"),
    *deck("audit", {"data": ["hubble_suspect"], "method": ["dose"]}, "world=hubble"),
    *deck("audit", {"data": ["pythia_steps_suspect"], "method": ["dose"]}, "world=pythia_steps"),
    *deck("audit", {"model@target": ["demo_target"]}, "world=micro"),
    *deck(
        "audit",
        {
            "model@reference": ["demo_reference"],
            "controls@method.controls": ["demo_doses"],
            "data": ["demo_suspect"],
            "gates": ["demo_gates"],
        },
        "world=demo",
        "method=dose",
    ),
    # A target with a training of its own, on a base with another, and a reference with a third.
    *deck(
        "audit",
        {
            "training@target.training": ["continued_pretraining"],
            "training@target.base.training": ["pretraining"],
            "training@reference.training": ["continued_pretraining"],
        },
        "model@target=micro_target_low",
    ),
    *deck("audit", {"training@method.training": ADAPTERS}, "method=fsd", "data=micro_fsd"),
    *deck("audit", {"labelled@data.sets": LABELLED[:1]}, "method=fsd", "data=benchmark"),
    *deck("audit", {"world": [name for name in options("world") if name != "own"]}),
    *deck("audit", {"experiment": [name for name in options("experiment") if not name.startswith("pythia_")]}),
    *deck("audit", {"experiment": PYTHIA}),
    *deck(
        "audit",
        {
            "model@target": ["own_target"],
            "model@reference": ["own_reference"],
            "data": ["own_suspect"],
            "world": ["own"],
        },
        "world.general.path=general.jsonl",
    ),
    *deck(
        "audit",
        {"model@reference": ["own_sibling"], "data": ["own_suspect"]},
        "world=own",
        "target.path=folder",
        "world.general.path=general.jsonl",
    ),
    *deck(
        "audit",
        {
            "model@method.controls.base": ["own_base"],
            "controls@method.controls": ["own_doses"],
            "data": ["own_suspect"],
        },
        "world=own",
        "method=dose",
        "target.path=folder",
        "reference.path=folder",
        "world.general.path=general.jsonl",
    ),
    *deck("audit", {"model@method.rephraser": ["own_rephraser"]}, "method=pacost"),
    *deck("score", {"model@target": MODELS[1:2], "model@reference": MODELS[:1], "data": DATA[:2]}),
    *deck("score", {"engine": options("engine")}),
    *deck("train", {"model": MODELS[1:2], "logger": options("logger"), "trainer": options("trainer")}),
    *deck("train", {"model": ["pythia_410m_cpt"]}, "world=pythia"),
    *deck("report", {"report": options("report")}),
]


@functools.cache
def option(group: str, name: str) -> DictConfig:
    """A file by itself."""
    return OmegaConf.load(CONF / group / f"{name}.yaml")


@functools.cache
def axes_of_world(world: str) -> dict[str, Any]:
    """As they are written, each that follows another with its values."""
    own = WORLD_FILES[world]
    names = [name for name in own.get("defaults", []) if isinstance(name, str) and name != "_self_"]
    axes = {key: values for name in names for key, values in axes_of_world(name.partition("@")[0]).items()}
    return axes | own.get("axes", {})


@functools.cache
def chain_of(sweep: str) -> list[dict[str, Any]]:
    """A sweep's file after those it builds on."""
    own = plain_yaml(SWEEPS / f"{sweep}.yaml")
    return [*(file for name in own["defaults"] if name in SWEEP_NAMES for file in chain_of(name)), own]


@functools.cache
def axes_of(sweep: str, world: str) -> dict[str, list[str]]:
    """key -> values, as the two files name them."""
    axes = axes_of_world(world)

    def followed(values: str) -> str:
        for axis in AXIS.findall(values):
            assert axis in axes, f"the sweep {sweep} goes over the axis {axis}, which the world {world} has not"
        return AXIS.sub(lambda axis: followed(str(axes[axis[1]])), values)

    grid = {key: values for file in chain_of(sweep) for key, values in file.get("grid", {}).items()}
    return {key: followed(str(values)).replace(" ", "").split(",") for key, values in grid.items()}


def given_of(sweep: str, world: str) -> list[str]:
    """What a user must give for the data and the first models of a sweep in a world."""
    defaults = [line for file in chain_of(sweep) for line in file["defaults"]]
    overrides = {group: option for line in defaults if isinstance(line, dict) for group, option in line.items()}
    chosen = [str(overrides.get("override /data", "")).replace("${world}", world)]
    data = [text for option in chosen for text in GIVEN.get(f"data/{option}", [])]
    first = [stands(key, values[0])[1][1:] for key, values in axes_of(sweep, world).items() if is_group(key)]
    return [*data, *(text for texts in first for text in texts)]


def is_group(key: str) -> bool:
    return key.partition("@")[0] in GROUPS


SWEEPS_IN_WORLDS = [(name, world) for name in SWEEP_NAMES for world in WORLDS_OF_SWEEP.get(name, WORLDS)]


def cells_of(world: str) -> list[Any]:
    """What sweeps put into a world other than the usual one, in which PLACES stand; its own options are there too."""
    places: dict[str, list[str]] = {}
    for name, its_world in SWEEPS_IN_WORLDS:
        axes = axes_of(name, its_world) if its_world == world else {}
        for key in filter(is_group, axes):
            known = places.setdefault(key, [])
            known += [value for value in axes[key] if value not in known and not value.startswith(f"{world}_")]
    alone = [deck("audit", {key: places.pop(key, [])}, f"world={world}") for key in ("experiment", "method")]
    tuned = {key: places.pop(key) for key in list(places) if key == "training@method.training"}
    alone.append(deck("audit", tuned, f"world={world}", "method=fsd", f"data={world}_fsd"))
    writers = {key: places.pop(key) for key in list(places) if key == "model@method.paraphraser"}
    alone.append(deck("audit", writers, f"world={world}", "method=decop"))
    return [row for rows in (deck("audit", places, f"world={world}", "method=prism"), *alone) for row in rows]


CELLS = [cell for world in WORLDS if world != "micro" for cell in cells_of(world)]


def composed(command: str, overrides: list[str], *, beside: Path | None = None, **more: Any) -> DictConfig:
    """As the command composes it, in the micro world where no other is named. beside: the folder of the primary config
    where it is not conf/."""
    register()
    if command in ("audit", "score", "train") and not any(map(names_world, overrides)):
        overrides = ["world=micro", *overrides]
    GlobalHydra.instance().clear()
    with checked_composition(), initialize_config_dir(str(beside or CONF), version_base=None):
        added = [f"hydra.searchpath=[file://{CONF}]"] if beside else []
        return compose(command, overrides=[*added, *overrides], **more)


def names_world(override: str) -> bool:
    """An override of the world, or an experiment that belongs to one."""
    key, _, name = override.partition("=")
    if key == "experiment":
        return "override /world" in str(option("experiment", name).defaults)
    return key == "world"


def nodes(config: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Every node with a `_target_`, inner ones first; interpolations are followed."""
    children = config.items() if isinstance(config, dict) else enumerate(config) if isinstance(config, list) else ()
    for name, value in children:
        yield from nodes(value, f"{key}.{name}".strip("."))
    if isinstance(config, dict) and "_target_" in config:
        yield key, config


object_of, signature_of = functools.cache(get_object), functools.cache(inspect.signature)


def check_targets(config: DictConfig, *, whole_world: bool = True) -> None:
    """Each `_target_` exists and takes the keys beside it, all that it needs among them.

    What of the world is used stands where it is used; the rest of it is looked at where the world itself is the option.
    """
    container = {
        name: OmegaConf.to_container(value, resolve=True, throw_on_missing=True)
        for name, value in config.items()
        if OmegaConf.is_config(value) and (name != "world" or whole_world)
    }
    found = list(nodes(container))
    assert found
    for key, node in found:
        target = object_of(node["_target_"])
        arguments = {name: value for name, value in node.items() if name not in ("_target_", "_partial_", "_convert_")}
        try:
            signature = signature_of(target)
            bind = signature.bind_partial if node.get("_partial_") else signature.bind
            bind(**arguments)
        except TypeError as error:
            pytest.fail(f"{key}: {node['_target_']} does not take these keys: {error}")


def build(node: Any) -> Any:
    return instantiate(node)


def build_all(command: str, config: DictConfig) -> None:
    """Instantiate what is cheap: recipes, methods, trainers' settings. Nothing is read, made or connected."""
    for name in ("target", "reference", "model", "method", "trainer", "asking", "engine"):
        if config.get(name) is not None:
            build(config[name])
    if config.get("data"):
        for role in (config.data, config.data.get("heldout"), config.data.get("unseen")):
            if role:
                build(role.corpus)
    if config.get("logger"):
        build(config.logger)


@pytest.mark.parametrize(
    ("world", "group", "names"), thinned([pytest.param(*row, id="-".join(row[:2])) for row in SHELVES], 4)
)
def test_every_option_that_stands_anywhere_binds_and_builds(world, group, names):
    places = [stands(f"{group}@world.shelf.{name}", name)[1] for name in names]
    given = [*(f"+{place}" for place, *_ in places), *(text for _, *texts in places for text in texts)]
    config = composed("audit", [f"world={world}", *given, *GIVEN_IN_WORLD.get(world, [])])
    shelf = OmegaConf.to_container(config.world, resolve=False)["shelf"]
    assert list(shelf) == names
    for name in names:
        check_targets(OmegaConf.create({name: OmegaConf.to_container(config.world.shelf[name], resolve=True)}))
        build(config.world.shelf[name])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "label"), [("smollm", "SmolLM2-135M-Instruct.Q4_1"), ("gemma", "gemma-3-270m-q4_k_m")]
)
def test_models_of_a_real_world_are_continuations_of_its_base(world, label):
    names = ["general", "reference", "planted", "planted_lora", "planted_later", "ordered"]
    given = [f"+model@world.shelf.{name}=smollm_{name}" for name in names]
    shelf = composed("audit", [f"world={world}", f"data={world}_suspect", "data.reading=twice", *given]).world.shelf
    bases = {name: build(node).continued_from().readable for name, node in shelf.items()}
    assert bases == {**dict.fromkeys(names, label), "planted_later": f"{label}+2x"}


@pytest.mark.parametrize(("covered", "command", "overrides"), thinned(PLACES, 8))
def test_every_option_composes_binds_and_builds(covered, command, overrides):
    if "engine=ray" in overrides:
        pytest.importorskip("ray", reason="Ray Data is not installed")
    config = composed(command, overrides)
    if command == "score" and OmegaConf.is_missing(config.reference, "path"):
        config.reference = None  # which is then not asked for
    require_complete(config)
    check_targets(config, whole_world=any(name.startswith("world/") and name != "world/demo" for name in covered))
    build_all(command, config)


@pytest.mark.slow
@pytest.mark.parametrize(("covered", "command", "overrides"), thinned(CELLS, 12))
def test_every_cell_composes_and_builds_in_other_worlds(covered, command, overrides):
    config = composed(command, overrides)
    require_complete(config)
    build_all(command, config)


@pytest.mark.parametrize(("name", "world"), thinned(SWEEPS_IN_WORLDS, 20))
def test_every_sweep_is_a_primary_config_in_every_world(name, world):
    """As `--config-dir sweeps --config-name NAME world=WORLD` reads it: its first cell, and plain values of others."""
    axes = axes_of(name, world)
    first = [f"{key}={values[0]}" for key, values in axes.items()]
    given = [f"world={world}", *GIVEN_IN_WORLD.get(world, []), *given_of(name, world)]
    config = composed(name, [*given, *first], beside=SWEEPS, return_hydra_config=True)
    assert config.hydra.mode == RunMode.MULTIRUN
    assert {key: str(values).replace(" ", "").split(",") for key, values in config.hydra.sweeper.params.items()} == axes
    preset = (CONF / "experiment" / f"{axes['experiment'][0]}.yaml").read_text() if "experiment" in axes else ""
    if named := re.search(r"override /method: (\w+)", preset):
        assert config.method["_target_"] == option("method", named[1])["_target_"], "a preset's method is the sweep's"
    with open_dict(config):
        del config["hydra"]
    assert config.name == name, "results of a sweep lie in a folder of its name"
    require_complete(config)
    build_all("audit", config)
    for key, values in ((name, values[1:]) for name, values in axes.items() if not is_group(name)):
        part = key.partition(".")[0]
        for value in values:
            OmegaConf.update(config, key, OmegaConf.create(f"value: {value}").value)
            if part == "data":
                build(config.data.corpus)
            elif part == "method":
                build(config.method)
        if part == "data" and values:
            build_all("audit", config)


METHODS_AT_SCALE = [
    pytest.param(name, world, method, id=f"{name}-{method}")
    for name, world in SWEEPS_IN_WORLDS
    if world in ("hubble", "pythia_steps")
    for method in axes_of(name, world)["method"]
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "world", "method"), METHODS_AT_SCALE)
def test_every_method_composes_at_scale(name, world, method):
    """In the worlds of published models, which no audit of these tests can run; of read and of unread texts."""
    first = {key: values[0] for key, values in axes_of(name, world).items()}
    for reading in ("0", "1"):
        cell = [f"{key}={value}" for key, value in (first | {"method": method, "data.reading": reading}).items()]
        config = composed(name, [f"world={world}", *GIVEN_IN_WORLD[world], *cell], beside=SWEEPS)
        audit = build_audit(config)
        assert audit.groups
        assert audit.truth == {"0": "non_member", "1": "member"}[reading]


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_every_half_of_every_domain(world):
    """The suspect sets that an audit can name, and what each is compared with."""
    config = composed("audit", [f"world={world}"])
    axes = config.world.axes
    names = ("domains", "domains_with_tuning", "tuning_domains", "other_domains")
    domains = {domain for name in names for domain in axes[name].split(",")}
    assert domains <= set(config.world.suspects)
    other_half = dict(config.world.other_half)
    for domain, half in [
        *((domain, "a") for domain in sorted(domains)),
        *((min(domains), half) for half in other_half),
    ]:
        config.data.domain, config.data.half = domain, half
        assert build(config.data.corpus) != build(config.data.heldout.corpus)
        assert (config.data.label, config.data.heldout.half) == (f"{domain}-{half}", other_half[half])
    assert set(config.world.axes) >= set(composed("audit", []).world.axes), "every sweep is for every world"


def test_what_sweeps_of_the_papers_make_stands_in_a_report():
    reports = [plain_yaml(path) for path in (CONF / "report").glob("*.yaml")]
    shown = {name for report in reports for names in report.get("sweeps", {}).values() for name in names}
    assert {name for name, world in SWEEPS_IN_WORLDS if world == "pythia"} <= shown
    worlds = next(report["worlds"] for report in reports if report["name"] == "kds")
    targets = next(world["targets"] for world in worlds if world["name"] == "pythia")
    models = {name for sweep in ("kds_benchmarks", "kds_scripts") for name in axes_of(sweep, "pythia")["model@target"]}
    assert {label_of_path(option("model", name).path) for name in models} <= set(targets)


def test_no_file_is_left_out():
    """A new YAML file must be reached by the tests above: as a command, an option in its place, a sweep."""
    reached = {f"{covered}.yaml" for line in PLACES for covered in line.values[0]}
    reached |= {f"{group}/{name}.yaml" for _, group, names in SHELVES for name in names}
    reached |= {f"{command}.yaml" for command in COMMANDS} | {"hydra_settings.yaml"}  # which each command includes
    reached |= {"sweep.yaml"}  # which each sweep includes
    reached |= {"hparams_search/optuna.yaml"}  # which needs another sweeper
    reached |= {f"labelled/{name}.yaml" for name in LABELLED_BY_NAME}
    reached |= {f"{group}/{name}.yaml" for group in ("cleaning", "gates", "out_models") for name in options(group)}
    files = {path.relative_to(CONF).as_posix() for path in CONF.rglob("*.y*ml")}
    reached |= {path.relative_to(CONF).as_posix() for path in CONF.glob("*/base/*.yaml")}  # which others include
    assert files == reached
    assert {path.relative_to(SWEEPS).as_posix() for path in SWEEPS.rglob("*.y*ml")} == {
        f"{n}.yaml" for n in SWEEP_NAMES
    }


@pytest.mark.slow
def test_sweeps_of_one_paper_ask_a_model_the_same():
    """DE-COP's open models, as the paper asked them: tables that share a model and texts share its answers."""
    asked: dict[str, set[Any]] = {}
    for sweep in (
        name for name in SWEEP_NAMES if name.startswith("decop_") and "pythia" in WORLDS_OF_SWEEP.get(name, ())
    ):
        first = {key: values[0] for key, values in axes_of(sweep, "pythia").items()}
        for method in axes_of(sweep, "pythia").get("method", [""]):
            cell = [f"{key}={value}" for key, value in (first | ({"method": method} if method else {})).items()]
            config = composed(sweep, ["world=pythia", *given_of(sweep, "pythia"), *cell], beside=SWEEPS)
            if config.target._target_.endswith("Pretrained") and config.method._target_.endswith(".Decop"):
                here = asked.setdefault(sweep, set())
                here.add((config.method.exam, config.method.reading, config.method.num_orders))
    assert {"decop_books", "decop_sizes", "decop_lengths", "decop_calibrated", "decop_papers"} <= set(asked)
    assert set().union(*asked.values()) == {("quoted", "probabilities", 24)}


def test_every_file_says_what_it_is():
    for path in sorted([*CONF.rglob("*.yaml"), *SWEEPS.glob("*.yaml")]):
        lines = path.read_text(encoding="utf-8").splitlines()
        assert lines[0].startswith("# "), path
        long = [f"{path}:{number}: {len(line)}" for number, line in enumerate(lines, start=1) if len(line) > 160]
        assert not long, "columns, of 160 at most"


def test_every_option_says_what_it_is():
    for group in GROUPS:
        described = {name: what for rows in descriptions(group).values() for name, what in rows.items()}
        assert sorted(described) == options(group)
        assert all(described.values()), f"{group}: {[name for name, what in described.items() if not what]}"


# ----------------------------------------------------------------------------- numbers of the papers


def test_distillation_is_the_papers():
    """docs/methods/prism.md, item 3 and settings. Precision (float32 master weights) is the trainer's."""
    distillation = build(composed("audit", ["world=own", "method=prism"]).method.distillation)
    assert asdict(distillation) == {
        "lambda_": 0.7,
        "tau": 2.0,
        "max_tokens": 512,
        "num_steps": None,
        "optimization": {
            "optimizer": "adamw",
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
    config = composed("audit", ["method=prism"])
    prism = build(config.method)
    assert (prism.score.name, prism.num_resamples, prism.alpha) == ("minkpp(0.2)", 10_000, 0.05)
    assert (prism.rank_metric, prism.margin, prism.max_tokens) == ("spearman", 0.0, 512)
    assert config.seed == 1234


def test_fsd_is_the_papers():
    """docs/methods/fsd.md: four scores, perplexity itself, Min-K% at .2."""
    config = composed("audit", ["world=pythia", "data=pythia_fsd", "method=fsd"])
    fsd = build(config.method)
    assert [score.name for score in fsd.scores] == ["perplexity", "lowercase", "zlib", "mink(0.2)"]
    assert (fsd.view, fsd.compat, fsd.max_tokens, config.data.tuning_share) == ("original", False, 1024, 0.3)
    tuning = fsd.training.optimization
    assert (tuning.learning_rate, tuning.epochs, tuning.batch_size, tuning.warmup) == (1e-3, 3, 8, 10)


@pytest.mark.slow
def test_fsd_asks_in_the_pythia_world_what_the_paper_asked():
    """docs/methods/fsd.md: tables 1, 4 and 12; 3 and 13; 2 and 15. Tables 5 to 7, 16 and 17 are of LLaMA-7B."""
    main, sizes, pretraining = (axes_of(name, "pythia") for name in ("fsd_main", "fsd_target_size", "fsd_pretraining"))
    assert main["data.domain"] == ["wikimia", "arxivtection", "booktection", "bookmia"]
    assert main["model@target"] == ["gpt_j_6b", "opt_6_7b", "pythia_6_9b", "llama_7b", "gpt_neox_20b"]
    assert sizes["model@target"] == ["llama_7b", "llama_13b", "llama_30b"]
    assert axes_of("fsd_lr", "pythia")["model@target"] == ["llama_7b"]
    assert len(set(pretraining["data.domain"])) == len(FSD["table15"].rows) == 20
    sweep = composed("fsd_pretraining", ["world=pythia", "data.domain=ubuntu"], beside=SWEEPS)
    assert (sweep.target.path, sweep.data.read) == ("EleutherAI/pythia-6.9b", "once")
    assert composed("fsd_pretraining", ["data.domain=torch"], beside=SWEEPS).target == composed("audit", []).target


def test_the_report_names_sets_and_models_as_the_paper_prints_them():
    report = composed("report", ["report=fsd"]).report
    world = next(world for world in report.worlds if world.name == "pythia")

    def printed(kind: str, table: str) -> list[str]:
        return [world[kind][label] for label in world[f"{kind}_of"][table]]

    for table, paper in {name: FSD[name] for name in ("table1", "table12")}.items():
        assert list(paper.columns) == printed("targets", table)
        assert {row.partition(",")[0] for row in paper.rows} == set(printed("domains", table))
    assert list(FSD["table4-auc"].columns) == printed("domains", "table4")
    assert list(FSD["table15"].rows) == printed("domains", "table15")
    for sweep in ("fsd_main", "fsd_target_size", "fsd_pretraining"):
        axes = axes_of(sweep, "pythia")
        assert set(axes["data.domain"]) <= set(world.domains)
        for model in axes.get("model@target", []):
            assert option("model", model).path.rpartition("/")[2] in world.targets


@pytest.mark.slow
def test_every_labelled_set_has_both_classes_at_a_pinned_commit():
    world = composed("audit", ["world=pythia", *GIVEN_IN_WORLD["pythia"]]).world
    assert len(world.labelled) == 20 + 11
    for name, labelled in world.labelled.items():
        assert labelled.name == name
        sides = [json.dumps(build(labelled[side]).identity()) for side in ("members", "nonmembers")]
        assert sides[0] != sides[1]
        revisions = [re.findall(r'"revision": "(.+?)"', side) for side in sides]
        assert revisions[0] == revisions[1] != []
        assert all(map(COMMIT.fullmatch, revisions[0]))
        has_clusters = re.search(r'"cluster_(field|words)": (?!null)', sides[0])
        assert labelled.split_by == ("cluster" if has_clusters else "document")
    files = {name: option("labelled", name) for name in LABELLED}
    assert [name for name, labelled in files.items() if labelled.get("revision") == "main"] == ["arxivtection"]


@pytest.mark.slow
@pytest.mark.parametrize("read", ["once", "many"])
def test_what_fsd_tunes_on_and_what_it_tests(read):
    """Two parts of one cut of the non-members; of the members, the part of the same clusters as is tested."""
    config = composed("audit", ["data=micro_fsd", "method=fsd", f"data.read={read}"])
    parts = [
        build(node).identity()["base"]
        for node in (config.data.corpus, config.data.heldout.corpus, config.data.unseen.corpus)
    ]
    assert [part["take"] for part in parts] == ["rest", "rest", "tuning"]
    assert len({json.dumps(part["sizes"]) + part["salt"] + part["by"] for part in parts}) == 1, "one cut of all"
    members, heldout, unseen = (json.dumps(part["base"]) for part in parts)
    assert members != heldout == unseen


def test_the_order_test_is_the_papers():
    """docs/methods/order.md."""
    method = composed("audit", ["world=own", "method=order"]).method
    names = ("num_shards", "max_examples", "num_orders", "window", "stride", "compat", "alpha")
    assert [method[name] for name in names] == [50, 5000, 250, 2048, 1024, False, 0.05]


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("number", [0, 1])
def test_the_ordered_target_reads_the_very_file_that_is_tested(world, number):
    """As often as the world says, in the order the world says; or general text alone."""
    domain = axes_of("order_chunks", world)["data.domain"][number]

    def made(*overrides: str) -> tuple[Any, list[Any]]:
        """The file, and what is read how often."""
        config = composed("audit", [f"world={world}", f"data={world}_order", f"data.domain={domain}", *overrides])
        components = build(config.world.ordered.training).components
        read = [(getattr(item.corpus, "base", None), item.exposures) for item in components if item.exposures]
        return build(config.data.corpus), read

    file, read = made("world.ordered.duplication=7")
    assert (file, 7) in read
    other, read = made("world.ordered.duplication=7", "world.ordered.draw=1")
    assert other != file
    assert (other, 7) in read
    file, read = made("world.ordered.duplication=0")
    assert len(read) == 1
    assert file != read[0][0]


def test_windows_of_the_order_test_fit_the_micro_models():
    config = composed("audit", ["model@target=micro_ordered", "method=order", "data=micro_order"])
    method, target = build(config.method), build(config.target)
    assert method.window == method.max_tokens == target.base.base.architecture["max_position_embeddings"]
    assert method.window == target.training.sequence_length


@pytest.mark.slow
def test_kds_is_the_papers():
    """docs/methods/kds.md: LoRA of rank 8 by plain SGD, one pass over the documents; each kernel's own median."""
    config = composed("audit", ["world=pythia", "data=pythia_kds", "method=kds"])
    kds = build(config.method)
    assert (kds.bandwidth, kds.layer, kds.compat, kds.max_tokens) == ("per_kernel_median", -1, False, 1024)
    told = asdict(kds.training)
    assert told["adapter"] == {"kind": "lora", "rank": 8, "alpha": 32, "dropout": 0.1, "target_modules": None}
    names = ("optimizer", "learning_rate", "batch_size", "epochs", "schedule", "weight_decay", "gradient_clip")
    assert [told["optimization"][name] for name in names] == ["sgd", 1e-4, 4, 1, "constant", 0.0, None]
    assert not told["drop_last"]
    beside = build(composed("audit", ["world=pythia", "data=pythia_kds", "method=kds_all"]).method)
    assert [score.name for score in beside.baselines] == ["zlib", "perplexity", "mink(0.2)", "minkpp(0.2)"]
    assert beside.fsd == build(composed("audit", ["world=pythia", "method=fsd"]).method.training)
    model = composed("train", ["model=mistral_7b_instruct_v0_2"]).model
    assert (model.path, len(model.revision)) == ("mistralai/Mistral-7B-Instruct-v0.2", 40)


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_what_kds_mixes_is_what_fsd_tells_apart(world):
    """The two sets whole; how many are seen stands in the result."""
    given = [f"world={world}", "data.rate=0.35", "data.num_documents=70", "data.draw=3"]
    data = composed("audit", [f"data={world}_kds", *given]).data
    mixture = build(data.corpus)
    assert (data.num_seen, mixture.num_documents, mixture.rate, mixture.salt) == (25, 70, 0.35, "draw-3")
    sets = composed("audit", [f"world={world}", f"data={world}_fsd"]).data.sets
    assert (mixture.seen, mixture.unseen) == (build(sets.members), build(sets.nonmembers))
    assert data.heldout is data.unseen is None


def test_the_papers_documents():
    config = composed("audit", ["data=jsonl", "data.path=x", "cleaning=paper"])
    cleaned = build(config.data.corpus.base)._same()
    assert (cleaned.min_words, cleaned.max_words, cleaned.near_duplicate_threshold) == (100, 200, 0.7)


COMMIT = re.compile("[0-9a-f]{40}")
NOT_PINNED = ("pythia_1_4b_deduped",)


def test_fsds_models_are_pinned():
    """docs/methods/fsd.md."""
    names = {name for sweep in ("fsd_main", "fsd_target_size") for name in axes_of(sweep, "pythia")["model@target"]}
    for name in names:
        model = option("model", name)
        assert COMMIT.fullmatch(model.revision) or (name, model.revision) == ("opt_6_7b", "refs/pr/31"), name


def test_pythia_and_olmo_are_pinned_and_paired():
    """A commit of the hub in each; target plain, reference deduped."""
    names = [name for name in options("model") if re.fullmatch(r"(pythia|olmo)_[0-9_]+[mb](_deduped)?", name)]
    assert len(names) == 15
    for name in names:
        model = option("model", name)
        assert COMMIT.fullmatch(model.revision) or (name in NOT_PINNED and model.revision == "main"), name
        spelt = model.path.partition("/")[2].lower().replace("-hf", "").replace("-", "_").replace(".", "_")
        assert spelt == name
    plain = {name for name in names if name.startswith("pythia") and not name.endswith("_deduped")}
    assert {f"{name}_deduped" for name in plain} <= set(names)


# docs/methods/prism.md (table 6).
SIZES = {
    "pubmed": 500,
    "hackernews": 500,
    "arxiv": 500,
    "pile_cc": 500,
    "wikipedia": 500,
    "ubuntu": 688,
    "freelaw": 990,
    "enron": 359,
    "reddit": 650,
}


def test_the_papers_halves():
    world = composed("audit", ["world=pythia"]).world
    parts = {domain: build(part) for domain, part in world.halves.a.items()}
    assert {domain: dict(part.sizes) for domain, part in parts.items()} == {name: {"a": n} for name, n in SIZES.items()}
    members = [component.corpus.identity() for component in build(world.members).components]
    assert sorted(members, key=str) == sorted((part.identity() for part in parts.values()), key=str)
    assert {component.exposures for component in build(world.members).components} == {1}
    assert set(world.suspects) == set(SIZES)


# docs/methods/prism.md (table 6): tokens of each half.
TOKENS = {"pubmed": 154_387, "ubuntu": 294_341, "enron": 118_004}


def test_the_papers_continuation_is_streamed_at_its_own_size():
    spec = build(composed("audit", ["world=pythia", "model@target=pythia_410m_cpt"]).target)
    recipe = spec.training
    continuation, members = (component.corpus for component in spec.corpus.components)
    sets = [component.corpus for component in continuation.components]
    assert len(sets) == 5
    assert all(isinstance(item, Streamed) for item in sets)
    num_tokens = sum(item.num_words for item in sets) * 4 / 3  # tokens a word, roughly
    assert num_tokens == pytest.approx(6e9)
    assert len(members.components) == len(SIZES)
    shares = {name: tokens / num_tokens for name, tokens in TOKENS.items()}
    assert all(1.9e-5 < share < 5e-5 for share in shares.values())
    steps = num_tokens / (recipe.sequence_length * recipe.optimization.batch_size)
    assert steps == pytest.approx(293_000, rel=0.01)


def test_dated_sources_of_the_papers_are_filtered_by_date():
    world = composed("audit", ["world=pythia"]).world
    dates = {name: build(item).source.at_least for name, item in world.common_pile.items()}
    late = (("created", "2021-02"),)
    assert dates == {"uspto": late, "usgpo": late, "arxiv_papers": late, "libretexts": None, "doab": late}
    reddit = build(world.sets.reddit).source
    assert (reddit.at_least, reddit.undated) == ((("created", "2021-01"),), "keep")


def test_an_audit_of_the_papers_reads_its_own_domain_at_a_pinned_commit():
    world = composed("audit", ["world=pythia"]).world
    sources: dict[str, Any] = {}
    for domain in SIZES:
        for half in world.other_half:
            node = json.dumps(build(world.halves[half][domain]).identity())
            (sources[domain],) = {
                (path, name) for path, name in re.findall(r'"path": "(.+?)".*"domain": "(.+?)"', node)
            }
    assert {domain: name for domain, (_, name) in sources.items()} == {domain: domain for domain in SIZES}
    everything = json.dumps([build(world[name]).identity() for name in ("members", "continuation", "general")])
    revisions = re.findall(r'"revision": "(.+?)"', everything)
    assert len(revisions) == 9 + 5 + 1
    assert all(map(COMMIT.fullmatch, revisions))


@pytest.mark.slow
@pytest.mark.parametrize("domain", ["arxiv", "reddit"])
def test_the_papers_references(domain):
    """Table 2: 1b for 410m, 410m for larger targets, OLMo-1b for Reddit."""
    for reference, usual in (
        ("pythia_reference", "pythia_1b_deduped"),
        ("pythia_small_reference", "pythia_410m_deduped"),
    ):
        config = composed("audit", ["world=pythia", f"model@reference={reference}", f"data.domain={domain}"])
        expected = option("model", "olmo_1b" if domain == "reddit" else usual)
        assert (config.reference.path, config.reference.revision) == (expected.path, expected.revision)


@pytest.mark.slow
def test_the_papers_models_for_other_documents():
    for data in (["data=jsonl", "data.path=x"], ["data=hub", "data.path=a/b", "data.revision=v1"]):
        config = composed("audit", ["world=pythia", *data])
        assert config.reference.path == "EleutherAI/pythia-1b-deduped"
        check_targets(config)


def test_the_papers_member_target():
    """docs/methods/prism.md."""
    config = composed("train", ["world=pythia", "model=pythia_410m_cpt"])
    model = build(config.model)
    assert (model.base.path, model.label, model.seed) == ("EleutherAI/pythia-410m", "pythia-410m-cpt", 1234)
    optimization = model.training.optimization
    assert (model.training.sequence_length, optimization.batch_size, optimization.learning_rate) == (512, 40, 1e-4)
    assert (optimization.schedule, optimization.warmup, optimization.weight_decay) == ("cosine", 0.005, 0.0)


# ----------------------------------------------------------------------------------------- composing


def test_an_experiment_is_a_preset():
    config = composed("audit", ["method=prism", "experiment=pythia_410m", "seed=3"])
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


def test_all_conversations_of_an_audit_are_written_by_one_template():
    paths = [f"data.{place}path={place}log.jsonl" for place in ("", "heldout.", "unseen.")]
    data = composed("audit", ["data=chat", *paths, "data.template=plain"]).data
    assert {text.corpus.base.template for text in (data, data.heldout, data.unseen)} == {"plain"}


def test_labels_come_from_names_of_files():
    config = composed("audit", ["data=jsonl", "data.path=../data/pile/wikipedia.jsonl.gz"])
    assert config.data.label == "wikipedia"
    said = {
        "EleutherAI/the_pile/": "the_pile",
        "SmolLM2/checkpoint-100": "SmolLM2",
        "a/mine/final_model": "mine",
        f"hub/models--EleutherAI--pythia-70m/snapshots/{'0f' * 20}": "pythia-70m",
        "novels/data.jsonl.gz": "novels",
        "novels/train-00000-of-00002.parquet": "novels",
        "planted-16/canaries.private.json": "planted-16",
        "/月.jsonl": "月",
        "/": "documents",
    }
    assert {path: label_of_path(path) for path in said} == said
    assert label_of_path(["a.jsonl", "b.jsonl"]) == "a+1"


def test_folder_names_are_safe_and_tell_apart():
    """A hash wherever a character is replaced or a name is cut."""
    assert folder_name("") == "default"
    assert folder_name("data.domain=scipy,seed=1") == "data.domain=scipy,seed=1"
    odd = [
        "data.path=x/a.jsonl",
        "data.path=x_a.jsonl",
        "日",
        "月",
        "_",
        "/",
        "..",
        *(f"{'x' * 300}{end}" for end in "ab"),
    ]
    names = [folder_name(text) for text in odd]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_.,=@+-]{1,120}", name) and name.strip(".") for name in names)


def test_cells_of_sweeps_keep_their_names():
    """No value in them is one that a folder name must replace."""
    for name, world in SWEEPS_IN_WORLDS:
        cells = [f"{key}={value}" for key, values in axes_of(name, world).items() for value in values]
        assert [folder_name(cell) for cell in cells] == cells, (name, world)


# ------------------------------------------------------------------- no scientific setting in Python


SCIENTIFIC = {
    *("k", "lambda_", "tau", "alpha", "num_resamples", "margin", "rank_metric", "max_tokens", "a", "vocab_size"),
    *("sequence_length", "learning_rate", "batch_size", "epochs", "warmup", "schedule", "final_fraction", "betas"),
    *("epsilon", "weight_decay", "gradient_clip", "min_words", "max_words", "long_documents"),
    *("near_duplicate_threshold", "num_perm"),
}


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


@pytest.mark.slow
def test_texts_of_ones_own_are_as_they_are_and_those_of_the_worlds_as_their_numbers_were_made():
    for data in ("documents", "jsonl", "text_files", "wikimia"):
        config = composed("audit", [f"data={data}", *([] if data == "wikimia" else ["data.path=x"])])
        assert config.cleaning.name == "as_is"
        assert config.data.cleaning == config.cleaning, "and the result says so"
    for world in ("micro", "pile", "pythia"):
        config = composed("audit", [f"world={world}"])
        assert (config.max_layout_auc, config.zlib_text) == (None, "whole")
    own = build(composed("audit", ["data=ordered", "data.path=examples.txt"]).data.corpus)
    assert own.source.split == "lines"
