"""Builds an audit's question from its config. Reads no files and imports nothing heavy."""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig

from nonmember.audits.question import Audit
from nonmember.config.safety import instantiate


def build(node: Any) -> Any:
    """What a config's node describes."""
    return instantiate(node)


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
