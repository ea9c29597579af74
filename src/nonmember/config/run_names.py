"""The name of a run, from its config."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from nonmember.runtime.naming import folder_name, label_of_path, short_hash

LONGEST_LABEL = 40
# What tells questions apart; where and how they are answered does not.
WHAT_DIFFERS = (
    "target",
    "reference",
    "model",  # of no command any more, but names of folders hash it
    "data",
    "cleaning",
    "method",
    "general",
    "seed",
    "truth",
    "k",
    "max_tokens",
)


def cell_name(overrides: str, *, _root_: DictConfig) -> str:
    """The folder and W&B name of a run: of one's own models and documents what they are called and a hash of what
    differs, as in prism-docs-SmolLM2-1a2b3c4d; in the other worlds, of which sweeps are made, the overrides."""
    if OmegaConf.select(_root_, "world.name") != "own":
        return folder_name(overrides)
    differs = {key: _plain(_root_, key) for key in WHAT_DIFFERS}
    # Numbers depend on the precision a little, and so does the question that is found there.
    differs["precision"] = _plain(_root_, "trainer.precision")
    labels = [re.sub(r"[^\w.+-]+", "_", label)[:LONGEST_LABEL].strip("._-") for label in _labels(_root_)]
    return "-".join([*filter(None, labels), short_hash(json.dumps(differs, sort_keys=True, default=str))])


def _labels(config: DictConfig) -> Iterator[str]:
    """Of the method, the documents and the model, as far as they are known."""
    if (method := OmegaConf.select(config, "hydra.runtime.choices.method")) is not None:
        yield str(method).removeprefix("own_")
    for key in ("data.label", "target.label", "target.model", "target.path"):
        try:
            value = OmegaConf.select(config, key)
        except OmegaConfBaseException:  # what it is made of was not given
            continue
        if isinstance(value, str) and value:
            yield label_of_path(value) if key.endswith(("path", ".model")) else value


def _plain(config: DictConfig, key: str) -> Any:
    for resolve in (True, False):  # unresolved where something it refers to was not given
        try:
            node = OmegaConf.select(config, key) if resolve else config.get(key)
            return OmegaConf.to_container(node, resolve=resolve) if OmegaConf.is_config(node) else node
        except OmegaConfBaseException:
            continue
    return None
