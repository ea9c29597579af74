"""The typed roots of the primary configs: unknown keys and wrong types are refused before the work starts.

The leaves (target, data, method ...) stay YAML; `_target_` decides what they become.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import partial, wraps
from pathlib import Path
from typing import Any

import hydra
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.core.plugins import Plugins
from hydra.experimental.callback import Callback
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import MISSING, BooleanNode, DictConfig, FloatNode, IntegerNode, ListConfig, OmegaConf, StringNode
from omegaconf.errors import OmegaConfBaseException

from nonmember.config.choices import config_directory, sweeps_directory
from nonmember.config.hydra_compat import options_first, shared_files
from nonmember.config.safety import checked_composition, environment, instantiate, leaves
from nonmember.config.words import from_home, with_literal_paths
from nonmember.runtime.interruption import Interrupted, check, interruption_of, worker
from nonmember.runtime.naming import folder_name, label_of_path, place, short_hash
from nonmember.runtime.processes import of_a_group, process_rank

FOLDER_VARIABLE = "NONMEMBER_SWEEP_FOLDER"  # inherited by the workers of a launcher, as is the next
WORDS_VARIABLE = "NONMEMBER_SWEEP_WORDS"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")  # of torch, and of NumPy
LONGEST_LABEL = 40
# Where and how a question is answered; what else is set tells it apart from others.
WHERE_AND_HOW = (
    *("name", "outputs", "store", "export", "seal", "logger", "callbacks", "page_text", "lookup"),
    *("trainer", "asking", "launcher", "parts", "fail_fast", "dry_run", "debug"),
    *("hydra", "world", "grid", "experiment", "hparams_search", "optimized_metric"),
)


def cell_name(overrides: str, *, _root_: DictConfig) -> str:
    """The folder and W&B name of a run: of one's own models and documents what they are called and a hash of what
    differs, as in prism-docs-SmolLM2-1a2b3c4d; in the other worlds, of which sweeps are made, the overrides."""
    if OmegaConf.select(_root_, "world.name") != "own":
        return folder_name(overrides)
    differs = {str(key): _plain(_root_, key) for key in _root_ if key not in WHERE_AND_HOW}
    # Numbers depend on the precision a little, and so does the question that is found there.
    differs["precision"] = OmegaConf.select(_root_, "trainer.precision")
    labels = [re.sub(r"[^\w.+-]+", "_", label)[:LONGEST_LABEL].strip("._-") for label in _labels(_root_)]
    return "-".join([*filter(None, labels), short_hash(json.dumps(differs, sort_keys=True, default=str))])


def _labels(config: DictConfig) -> Iterator[str]:
    """Of the method, the documents and the model, as far as they are known."""
    if (method := OmegaConf.select(config, "hydra.runtime.choices.method")) is not None:
        yield str(method).removeprefix("own_")
    yield from labels_of_subject(config)


def labels_of_subject(config: DictConfig) -> Iterator[str]:
    """Of the documents and the model, as far as they are known."""
    for key in ("data.label", "target.label", "target.model", "target.path"):
        with contextlib.suppress(OmegaConfBaseException):  # what it is made of was not given
            value = OmegaConf.select(config, key)
            if isinstance(value, str) and value:
                yield label_of_path(value) if key.endswith(("path", ".model")) else value


def _plain(config: DictConfig, key: Any) -> Any:
    """As it is written where something that it refers to was not given."""
    for resolve in (True, False):
        with contextlib.suppress(OmegaConfBaseException):
            node = config[key] if resolve else config._get_node(key)
            return OmegaConf.to_container(node, resolve=resolve) if OmegaConf.is_config(node) else node
    return None


class SweepsInSearchPath(SearchPathPlugin):
    """Lets `--config-name table2` find the sweeps of the package, without --config-dir."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        search_path.append("nonmember-sweeps", f"file://{sweeps_directory()}")


def schemas() -> dict[str, dict[str, Any]]:
    """Of each command the types of its own keys, and the keys that are null until a group sets them."""
    text, number, flag = (partial(node, MISSING, is_optional=False) for node in (StringNode, IntegerNode, BooleanNode))
    texts = partial(ListConfig, MISSING, element_type=str, ref_type=list[str], is_optional=False)

    def null(*names: str) -> dict[str, Any]:
        return dict.fromkeys(names)

    common = {"outputs": text(), "store": text(), "tokens": {"bos": text()}, **null("world", "cleaning")}
    return {
        "audit": {
            **common,
            "name": text(),
            "seed": number(),
            "truth": StringNode(None),
            "seal": StringNode(None),
            "optimized_metric": StringNode(None),
            "max_layout_auc": FloatNode(None),
            "zlib_text": text(),
            "fail_fast": flag(),
            "dry_run": flag(),
            "page_text": flag(),
            **null("out_models", "general", "gates", "callbacks", "launcher", "experiment", "hparams_search", "debug"),
            "grid": None,  # of a sweep
        },
        "score": {
            **common,
            "scores": texts(),
            "perturbations": texts(),
            "max_tokens": IntegerNode(None),
            "most_tokens": number(),
            "export": StringNode(None),
            **null("out_models", "reference", "general", "prefix", "engine"),
        },
        "train": {**common, "export": StringNode(None), "merge": flag(), **null("callbacks", "debug")},
        "report": {"outputs": text(), "results": texts(), "folder": text(), "formats": texts()},
    }


class RememberSweepFolder(Callback):
    """Tells the starting process, in which no cell may ever run, the sweep's folder; cells what all are given."""

    def on_multirun_start(self, config: DictConfig, **_: object) -> None:
        params = OmegaConf.select(config, "hydra.sweeper.params", default=None) or {}
        words = json.dumps([*config.hydra.overrides.task, *(f"{key}={value}" for key, value in params.items())])
        os.environ |= {FOLDER_VARIABLE: str(Path(config.hydra.sweep.dir).absolute()), WORDS_VARIABLE: words}
        if "joblib" in config.hydra.launcher._target_:
            # joblib would divide the threads among its workers, and sums in another order make other weights.
            if (number := os.environ.get(THREADS[0])) is None:
                import torch

                number = str(torch.get_num_threads())
            os.environ.update({name: number for name in THREADS if name not in os.environ})


def swept_in(folder: Path) -> dict[str, str]:
    """Key -> value of what is given for the sweep's cell of this folder, and not for all cells; {} without a sweep."""
    kept = folder / ".hydra" / "overrides.yaml"
    if FOLDER_VARIABLE not in os.environ or not kept.is_file():
        return {}
    for_all = set(json.loads(os.environ[WORDS_VARIABLE]))
    given = (str(word).partition("=") for word in OmegaConf.load(kept) if word not in for_all)
    return {key: value for key, _, value in given}


def number_seen(num_documents: int, rate: float) -> int:
    """How many documents of a mixture have been read."""
    from nonmember.corpora.transforms import mixtures

    return mixtures.number_seen(num_documents, rate)


def register() -> None:
    """Make the schemas and resolvers known to Hydra, before anything is composed."""
    store = ConfigStore.instance()
    if "audit_schema.yaml" not in store.repo:
        for command, schema in schemas().items():
            store.store(name=f"{command}_schema", node=schema)
    Plugins.instance().register(SweepsInSearchPath)
    for resolver in (folder_name, cell_name, place, number_seen):
        OmegaConf.register_new_resolver(resolver.__name__, resolver, replace=True)
    OmegaConf.register_new_resolver("file_stem", label_of_path, replace=True)
    OmegaConf.register_new_resolver("oc.env", environment, replace=True)


def run_with_hydra(command: str, task: Callable[[DictConfig, Path], object]) -> None:
    """Compose the command's config and run `task(config, run folder)`; with -m once per cell, come what may. What the
    task returns is what a sweeper that searches (Optuna's) optimizes.

    The first error is raised when all is done, and by us: Hydra would write a line of its own before it. An
    interruption ends the sweep; in a launcher's worker it ends the cell, and those after it are not begun.
    """
    sys.argv[1:] = with_literal_paths(from_home(options_first(sys.argv[1:])))
    register()
    pid, errors = os.getpid(), []

    @hydra.main(config_path=str(config_directory()), config_name=command, version_base=None)
    @wraps(task)
    def run(config: DictConfig) -> object:
        folder = Path(HydraConfig.get().runtime.output_dir)
        result: object = None
        if os.getpid() != pid:  # in a launcher's worker only Hydra can carry the error home
            with contextlib.suppress(Interrupted), worker():
                check()
                try:
                    result = task(config, folder)
                except (KeyboardInterrupt, SystemExit) as error:
                    raise interruption_of(error) or error from None
            return result
        try:
            _require_group(config)
            result = task(config, folder)
        except Exception as error:
            check()
            traceback.clear_frames(error.__traceback__)  # a kept error must keep nothing open
            errors.append(error)
        return result

    with shared_files(), checked_composition():
        run()
    check()
    if errors:
        raise errors[0]


def _require_group(config: DictConfig) -> None:
    """Raises ValueError in a further process of a run that by its config has only one: it would wait for ever."""
    if process_rank() > 0 and "trainer" in config and instantiate(config.trainer).in_one_process:
        raise ValueError(
            f"This run has one process (trainer.make_trainer.devices=1), but {of_a_group()}; if they are meant, use "
            "trainer=ddp with as many devices."
        )


# What no command but an audit looks at, and of an audit only some methods (nonmember.config.given).
NOT_ALWAYS_NEEDED = ("world.", "data.heldout.", "data.unseen.")


def require_complete(config: DictConfig) -> None:
    """Raise ValueError for the values that the YAML leaves to the user (`???`) and that were not given."""
    if missing := [key for key in missing_keys(config) if not key.startswith(NOT_ALWAYS_NEEDED)]:
        added = " ".join(f"{key}=VALUE" for key in missing)
        raise ValueError(f"No value was given for {' and '.join(missing)}; add {added} to the command.")


def missing_keys(config: DictConfig) -> list[str]:
    """The keys of the values that the YAML leaves to the user and that were not given."""
    return [key for key, value in leaves(OmegaConf.to_container(config, resolve=False)) if value == MISSING]


def plain(config: DictConfig) -> dict[str, Any]:
    """The resolved config of a cell as plain containers. What of the world is used stands resolved where it is used."""
    values = {str(name): config[name] for name in config if name not in ("world", "grid", "dry_run")}
    return {
        name: OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
        for name, value in values.items()
    }
