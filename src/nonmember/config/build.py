"""Builds an audit's question from its config, and checks settings and paths, before anything heavy is imported."""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig, OmegaConf

from nonmember.artifacts import Spec
from nonmember.audits.question import Audit
from nonmember.audits.walk import specs_in
from nonmember.checks import require_choice
from nonmember.config.safety import instantiate as build
from nonmember.models.base import BOS, ModelSpec


def build_audit(config: DictConfig) -> Audit:
    """The question as specs. Raises ValueError for settings that cannot be."""
    heldout, unseen = config.data.get("heldout"), config.data.get("unseen")
    return Audit(
        target=build(config.target),
        reference=build(config.reference),
        suspect=build(config.data.corpus),
        method=build(config.method),
        seed=config.seed,
        corpus_label=config.data.label,
        truth=config.truth,
        general=build(corpus_of(config.general)),
        heldout=build(heldout.corpus) if heldout else None,
        heldout_label=heldout.label if heldout else None,
        unseen=build(unseen.corpus) if unseen else None,
        unseen_label=unseen.label if unseen else None,
        max_layout_auc=config.max_layout_auc,
        scored_text=config.zlib_text == "scored",
        world=config.data.get("world", "own"),
        sweep=config.name,
        data={str(name): value for name, value in config.data.items() if _is_plain(value) and name != "world"}
        | _cleaning(config),
        page_text=bool(config.get("page_text")),
        out_models=tuple(build(config.get("out_models")) or ()),
    )


def _cleaning(config: DictConfig) -> dict[str, Any]:
    """What was done to the texts, where that was left to the group `cleaning`."""
    if "cleaning" not in config.data:
        return {}
    settings = {name: value for name, value in config.cleaning.items() if name not in ("_target_", "name")}
    return {"cleaning": config.cleaning.name} | {f"cleaning.{name}": value for name, value in settings.items()}


def corpus_of(node: Any) -> Any:
    """The corpus of a data config; of a corpus, the corpus itself."""
    return node.corpus if node is not None and "_target_" not in node else node


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def check_settings(config: DictConfig) -> None:
    """Raise ValueError for settings that cannot be, but for the trainer's class and callbacks, which need Lightning."""
    light = OmegaConf.masked_copy(config, "trainer")
    for name in ("make_trainer", "callbacks"):
        OmegaConf.update(light, f"trainer.{name}", None, merge=False)
    build(light.trainer)
    if "asking" in config:
        build(config.asking)
    if "logger" in config:
        build(config.logger)
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
