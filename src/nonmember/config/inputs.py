"""Checks of settings and paths before anything heavy is imported."""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig, OmegaConf

from nonmember.artifacts import Spec
from nonmember.audits.walk import specs_in
from nonmember.checks import require_choice
from nonmember.config.build import build
from nonmember.config.safety import instantiate
from nonmember.models.base import BOS, ModelSpec
from nonmember.tracking.trackers import Loggings


def check_settings(config: DictConfig) -> None:
    """Raise ValueError for settings of the commands that cannot be. The trainer's own class and callbacks are left for
    later: they need Lightning."""
    light = OmegaConf.masked_copy(config, "trainer")
    for name in ("make_trainer", "callbacks"):
        OmegaConf.update(light, f"trainer.{name}", None, merge=False)
    instantiate(light.trainer)
    if "asking" in config:
        build(config.asking)
    if "logger" in config:
        Loggings(build(config.logger))
    for name in ("outputs", "store"):
        if not str(config[name]).strip():
            raise ValueError(f"{name} must be a folder; got nothing. Name one, as in {name}=FOLDER.")


def check_tokens(config: DictConfig, *specs: Any) -> None:
    """Raise ValueError where tokens.bos is asked for and some model, anywhere in these, does not follow it."""
    bos = config.tokens.bos
    require_choice(bos, BOS, "tokens.bos")
    if bos == "auto":
        return
    models = [item for item in specs_in(specs) if isinstance(item, ModelSpec) and hasattr(item, "bos")]
    if not models:
        raise ValueError(
            f"tokens.bos={bos} is for models with weights here; what is only queried reads its texts by itself. Use "
            "tokens.bos=auto."
        )
    if other := next((item for item in models if getattr(item, "bos", bos) != bos), None):
        raise ValueError(
            f"tokens.bos={bos} is not what the configuration of {other.readable} says. Write bos: ${{tokens.bos}} "
            "there, or leave one of both out."
        )


def check_places(*specs: Any) -> None:
    """Raise ValueError where a model's folder or a corpus's files, anywhere in these, are not there."""
    for spec in specs_in(specs):
        if isinstance(spec, Spec):
            spec.validate()
