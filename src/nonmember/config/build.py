"""Builds an audit's question from its config. Reads no files and imports nothing heavy."""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig, OmegaConf

from nonmember.audits.question import Audit
from nonmember.checks import MARK
from nonmember.config.safety import instantiate
from nonmember.feasibility.descriptions import hub_models
from nonmember.lookup import Lookup

LOOKED_UP = ("index", "infinigram")  # values of `truth` that are no answer but where to look for one


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
        truth=None if config.truth in LOOKED_UP else config.truth,
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
        lookup=_lookup(config),
    )


def _lookup(config: DictConfig) -> Lookup | None:
    """What `truth` names, where that is no answer but a corpus to look into."""
    if config.truth not in LOOKED_UP:
        return None
    settings = config.lookup[config.truth]
    if config.truth == "infinigram" and settings.index is None:
        target = str(OmegaConf.select(config, "target.path", default=""))
        known = hub_models().get(target)
        if known is None or not known.infinigram:
            raise ValueError(
                "Where to look is known of OLMo and Pythia alone, not of "
                f"{'this target' if not target or target.startswith(MARK) else target}. Name an index of "
                "infini-gram: lookup.infinigram.index=v4_dolma-v1_7_llama."
            )
        settings = OmegaConf.merge(settings, {"index": known.infinigram})
    lookup: Lookup = build(settings)
    return lookup


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
