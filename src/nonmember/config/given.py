"""Asks for missing inputs that the method needs, in one sentence, before anything heavy is imported.

Values that are missing (`???`) are filled with marks. The method then says what it would measure, and the marks in that
are what it needs; the others are left out of the config.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from nonmember.audits.question import Audit
from nonmember.checks import MARK
from nonmember.config.build import build, build_audit
from nonmember.config.roots import missing_keys
from nonmember.corpora import Documents
from nonmember.methods.base import MissingText
from nonmember.observations import Scored
from nonmember.reports.core import formats

GENERAL = "world.general"
OPTIONAL = ("data.heldout", "data.unseen", "general")  # there or not: methods look
MODELS = {
    "target": "a target model",
    "reference": "a reference model that has not read the documents",
    "method.rephraser": "a model that rephrases",
    "method.paraphraser": "a model that paraphrases",
    "method.controls.stand_in": "a model of the target's size for its controls",
    "method.controls.base": "the model that the target was continued from",
}
TEXTS = {
    "data": "documents",
    "data.heldout": "unread text of the same kind to compare with",
    "data.unseen": "further unread text to tune the target on",
    GENERAL: "general text without the documents",
}

VALUES = {  # what a key is to be given, and what stands for it in the command
    "data.read_path": ("games from before the end of the model's training (JSON Lines: id, name, description)", "FILE"),
    "data.unread_path": ("games from after it (JSON Lines likewise)", "FILE"),
    "data.between_path": ("sequences that the target read and the reference did not (JSON Lines: id, text)", "FILE"),
    "data.after_path": ("sequences of batches that neither read (JSON Lines likewise)", "FILE"),
    "target.url": ("the address of a server that has the target", "http://HOST/v1"),
}


class IncompleteQuestion(ValueError):
    """An audit lacks what its method needs.

    who: the method.   what: is missing, in words.   keys: of the config, that would be set by it.
    """

    def __init__(self, who: str, keys: Iterable[str]) -> None:
        order = {node: number for number, node in enumerate((*MODELS, *TEXTS))}
        self.keys = sorted(keys, key=lambda key: (order.get(_node_of(key), len(order)), key))
        named = {**MODELS, **TEXTS, **{key: value[0] for key, value in VALUES.items()}}
        what = [named.get(key, named.get(_node_of(key), f"a value for {key}")) for key in self.keys]
        self.who, self.what = who, formats.listed(what)
        # prism needs a target model and documents; add target.path=FOLDER_OR_HUB_NAME data.path=FILE to the command.
        super().__init__(f"{who} needs {self.what}; add {' '.join(map(_addition, self.keys))} to the command.")


def given(config: DictConfig) -> tuple[DictConfig, Audit]:
    """The config without what was not given, and the question.

    Raises IncompleteQuestion, which names all that the method needs and that is missing.
    """
    keys = open_keys(config)
    marked = config.copy()
    for key in keys:
        OmegaConf.update(marked, key, MARK + key)
    for node in OPTIONAL:
        if any(marks_in(OmegaConf.select(marked, node))):
            OmegaConf.update(marked, node, None)
    try:
        audit = build_audit(marked)
    except (HydraException, OmegaConfBaseException, ValueError, TypeError, AttributeError):
        if others := [key for key in keys if _node_of(key) not in MODELS | TEXTS]:  # which may refuse a mark
            raise IncompleteQuestion("The audit", others) from None
        raise
    if needed := set(_needed(audit, config)) & {*keys, *TEXTS}:  # other marks are in labels
        raise IncompleteQuestion(audit.method.name, needed)
    for key in keys:
        if not key.startswith(GENERAL):
            OmegaConf.update(marked, _node_of(key), None)
    reference: Any = None if any(marks_in(audit.reference)) else audit.reference
    return marked, replace(audit, method=build(marked.method), reference=reference)


def open_keys(config: DictConfig) -> list[str]:
    """The keys of what was not given and may be needed."""
    return [key for key in missing_keys(config) if not key.startswith("world.") or key.startswith(GENERAL)]


def _needed(audit: Audit, config: DictConfig) -> Iterator[str]:
    """The keys of what the method would look at and that was not given."""
    asked_for = []
    while True:
        try:
            groups = audit.groups
            break
        except MissingText as error:
            asked_for.append(_key_of(f"data.{error.role}", config))
            text = Documents(("README",))  # so that it goes on to what it needs beside
            audit = replace(audit, heldout=text) if error.role == "heldout" else replace(audit, unseen=text)
    yield from marks_in(groups)
    yield from asked_for
    inputs = {
        name for item in audit.measurements if isinstance(item, Scored) for name in item.score.requirements.inputs
    }
    if audit.general is None and "general" in inputs:
        yield _key_of(GENERAL, config)
    if audit.unseen is None and "unseen" in inputs:
        yield _key_of("data.unseen", config)


def _key_of(place: str, config: DictConfig) -> str:
    """What sets a text: its path where the config has a place for it, else the place."""
    node = OmegaConf.select(config, place)
    return f"{place}.path" if isinstance(node, DictConfig) and "path" in node.keys() else place  # noqa: SIM118 (`???`)


def marks_in(node: Any, seen: dict[int, Any] | None = None) -> Iterator[str]:
    """The keys of the marks in a spec, or in containers of specs. seen: by id, what need not be looked at again."""
    seen = {} if seen is None else seen
    if id(node) in seen:
        return
    seen[id(node)] = node
    match node:
        case str():
            if node.startswith(MARK):
                yield node.removeprefix(MARK)
        case DictConfig():
            yield from marks_in(OmegaConf.to_container(node, resolve=True), seen)
        case Mapping():
            yield from marks_in(list(node.values()), seen)
        case Scored():
            beside = [*node.compared_with().values(), node.general(), *node.further_corpora().values()]
            yield from marks_in([node.model, node.corpus, *beside], seen)
        case list() | tuple():
            for item in node:
                yield from marks_in(item, seen)
        case _ if is_dataclass(node):
            yield from marks_in([getattr(node, field.name) for field in fields(node)], seen)


def _node_of(key: str) -> str:
    return key.removesuffix(".path")


def _addition(key: str) -> str:
    if key in VALUES:
        return f"{key}={VALUES[key][1]}"
    if key in TEXTS:  # the config has no place for it
        group = "general" if key == GENERAL else key
        return f"+data@{group}=documents {group}.path=FILE"
    return f"{key}={'FILE' if _node_of(key) in TEXTS else 'FOLDER_OR_HUB_NAME' if _node_of(key) in MODELS else 'VALUE'}"
