"""From the config of a command to the work that it describes. Commands import it once their config is composed."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from omegaconf import DictConfig, ListConfig, OmegaConf, open_dict

from nonmember.artifacts import Builder, Memory
from nonmember.artifacts.planner import Planner
from nonmember.artifacts.store import Store
from nonmember.config.build import build, check_places, check_settings, check_tokens, corpus_of
from nonmember.config.compose import composed, explained
from nonmember.config.given import given
from nonmember.config.revisions import kept_in, pin_branches
from nonmember.config.roots import plain, require_complete, swept_in
from nonmember.config.words import override
from nonmember.corpora.transforms.cleaning import with_blank
from nonmember.models import label_of
from nonmember.runtime.naming import path_of
from nonmember.runtime.quiet import quieten
from nonmember.scoring.question import FURTHER, Scoring, names_of_scores
from nonmember.tracking.trackers import Loggings, NoTracker

if TYPE_CHECKING:
    from nonmember.audits.cell import Cell
    from nonmember.evidence.seal import Seal

AnyBuilder = TypeVar("AnyBuilder", bound=Builder)
IN_MEMORY = ("nonmember.corpora.InMemory", "nonmember.corpora.ConversationsInMemory")  # texts of the calling program


def cell_of(config: DictConfig, folder: Path) -> Cell:
    """The audit of a composed config. Raises ValueError, before anything heavy is imported, for what cannot be."""
    pin_branches(config, kept_in(Path(config.store).absolute()))
    config, audit = given(config)
    check_settings(config)
    check_tokens(config, audit.groups)
    check_places(audit.groups)
    from nonmember.audits.cell import Cell

    labels = [config.data.label, *([label_of(audit.target)] if config.target is not None else [])]
    audit = replace(audit, swept=swept_in(folder))
    return Cell(audit, folder, plain(config), labels, Loggings(build(config.logger)), _seal_of(config))


def _seal_of(config: DictConfig) -> Seal | None:
    if config.get("seal") is None:
        return None
    from nonmember.evidence.seal import Seal

    return Seal.load(path_of(config.seal))


def with_heldout(config: DictConfig) -> DictConfig | None:
    """The same config of `score` for the held-out documents; None where none are given."""
    if not _is_given(config.data.get("heldout")):
        return None
    other = config.copy()
    with open_dict(other):
        other.data, other.export = other.data.heldout, None
    return other


def scoring_of(config: DictConfig) -> Scoring:
    """What a composed config of `score` describes. Raises as `cell_of` does."""
    for name in ("reference", "general", "prefix"):  # there or not
        if not _is_given(config[name]):
            config[name] = None
    require_complete(config)
    pin_branches(config, kept_in(Path(config.store).absolute()))
    check_settings(config)
    scores = names_of_scores(config.scores)
    model, reference, corpus, dc_pdd = map(build, (config.target, config.reference, config.data.corpus, config.dc_pdd))
    out_models = tuple(build(config.out_models) or ())
    general, prefix = (build(corpus_of(config[name])) for name in ("general", "prefix"))
    scoring = Scoring(
        model,
        with_blank(corpus),  # whose rows stay, with the reason why they have no score
        list(config.k) if isinstance(config.k, ListConfig) else [config.k],
        config.max_tokens,
        config.most_tokens,
        dc_pdd,
        reference=reference,
        general=general,
        perturbations=list(config.perturbations),
        prefix=prefix,
        recall=build(config.recall),
        scores=scores,
        further={name: build(config[name]) for name in FURTHER if name in scores}
        | {str(name): build(node) for name, node in config.own_scores.items()},
        settings={"cleaning": plain(config.cleaning)} if "cleaning" in config.data else {},
        parts=build(config.parts),
        out_models=out_models,
    )
    check_tokens(config, model, reference)
    check_places(model, reference, *out_models, corpus, general, prefix)
    return scoring


def _is_given(node: DictConfig | None) -> bool:
    """Whether a model or text has a path, or was handed over by the calling program and needs none."""
    if node is None or "path" not in node.keys():  # noqa: SIM118 (`???`)
        return node is not None
    if OmegaConf.is_missing(node, "path") or node.path is None:
        return OmegaConf.select(node, "corpus.base.source._target_", default="") in IN_MEMORY
    return True


def builder_of(config: DictConfig, store: Store | None = None, memory: Memory | None = None) -> Builder:
    """Of the config's store and trainer. store, memory: those that several runs of a process share."""
    quieten()
    return _of_config(Builder, config, store, memory)


def planner_of(config: DictConfig, store: Store, memory: Memory) -> Planner:
    """As `builder_of`, of what makes nothing. It needs no Lightning, and does not wait for its import."""
    return _of_config(Planner, config, store, memory)


def _of_config(kind: type[AnyBuilder], config: DictConfig, store: Store | None, memory: Memory | None) -> AnyBuilder:
    compute, asking = build(config.trainer), build(config.asking)
    store = store or Store(Path(config.store).absolute())
    return kind(store, compute, NoTracker(), memory or Memory(), asking=asking)


@contextlib.contextmanager
def reading(documents: str, overrides: Sequence[str]) -> Iterator[tuple[DictConfig, Any, Builder]]:
    """`score`'s config for these documents, their corpus and a builder, for commands that read texts as it does. In a
    store of its own, which is removed: that of audits would keep what must stay secret."""
    words = [override("data.path", documents), *overrides]
    with explained(), tempfile.TemporaryDirectory() as store, composed("score", words) as (config, _):
        yield config, corpus_to_read(config), builder_of(config, Store(Path(store)))


def corpus_to_read(config: DictConfig) -> Any:
    """The documents of a command that reads them by itself. Raises ValueError where their files are not there, and for
    conversations that no model is named for."""
    if "template" in config.data and OmegaConf.is_missing(config.target, "path"):
        raise ValueError(
            "Conversations are written by a model's chat template, and no model is named here. Give what the assistant "
            "says as plain documents."
        )
    corpus = build(config.data.corpus)
    check_places(corpus)
    return corpus
