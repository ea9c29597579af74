"""The question of an audit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from nonmember.checks import require_choice, require_kind, require_seed, require_text, returned
from nonmember.corpora import CorpusSpec
from nonmember.corpora.specs import require_spec
from nonmember.methods import DocumentGroup, Method, Roles
from nonmember.methods.protocols import RunsOthers
from nonmember.models import ModelSpec
from nonmember.observations import Measurement, Scored
from nonmember.records.groups import HELDOUT, SUSPECT, UNSEEN


@dataclass(frozen=True)
class Audit:
    """The question: was `suspect` used to train `target`?"""

    target: ModelSpec
    reference: ModelSpec
    suspect: CorpusSpec
    method: Method
    seed: int
    corpus_label: str  # how people call the suspect set
    # member or non_member where the asker knows; None: derived from the recipes where these tell.
    truth: str | None = None
    general: CorpusSpec | None = None  # text disjoint from it, where DC-PDD counts tokens
    heldout: CorpusSpec | None = None  # certainly unseen text of the same kind, read by the methods that compare
    heldout_label: str | None = None
    unseen: CorpusSpec | None = None  # further such text, on which some methods tune the target
    unseen_label: str | None = None
    # How well layout alone may distinguish suspect and held-out text; None: not looked at.
    max_layout_auc: float | None = None
    # Texts that are compressed (zlib) go as far as they are read, and how many are cut is said.
    scored_text: bool = False
    # world, sweep, swept, data: where it stands among other audits, as the result records it; nothing depends on them
    world: str = "own"
    sweep: str = ""
    swept: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, str | float | bool | None] = field(default_factory=dict)
    obstacle: str = ""  # what was found to stand in the way of a distilled reference
    page_text: bool = False  # whether the page beside the result shows the first words of the documents
    # Further models that have not read the texts, which LiRA and RMIA compare with.
    out_models: tuple[ModelSpec, ...] = ()

    def __post_init__(self) -> None:
        for role, model in (("target", self.target), ("reference", self.reference)):
            hint = "Name one: model@target=NAME, or target.path=FOLDER."
            require_kind(model, ModelSpec, role, "a model", hint=hint.replace("target", role), or_null=True)
        require_kind(self.method, Method, "method", "a method of auditing", hint="Name one: method=prism.")
        require_spec(self.suspect, "data.corpus")
        require_text(self.corpus_label, "data.label", hint="It is the name of the data set in tables.")
        for group, label in ((HELDOUT, self.heldout_label), (UNSEEN, self.unseen_label)):
            require_text(label, f"data.{group}.label", or_null=True)
        if self.truth is not None:
            require_choice(self.truth, ("member", "non_member"), "truth", hint="null stands for unknown.")
        require_seed(self.seed)

    @cached_property
    def roles(self) -> Roles:
        models, texts = (self.target, self.reference), (self.heldout, self.unseen, self.general)
        return Roles(*models, self.suspect, self.seed, *texts, self.obstacle, tuple(self.out_models))

    @cached_property
    def groups(self) -> dict[str, DocumentGroup]:
        """What the method measures, by group of documents; the suspect set first."""
        groups = self.method.groups(self.roles)
        for group in returned(groups, self.method, "dict").values():
            returned(group, self.method, "DocumentGroup")
        return {name: _with_scored_text(group) for name, group in groups.items()} if self.scored_text else groups

    @cached_property
    def measurements(self) -> list[Measurement]:
        """Those of all groups."""
        return [item for group in self.groups.values() for item in group.measured.values()]

    @cached_property
    def models(self) -> dict[str, ModelSpec]:
        """By role."""
        asked = self.method.asked_of(self.roles) if isinstance(self.method, RunsOthers) else {}
        return {**asked, **{item.role: item.model for item in self.measurements}}

    @property
    def labels(self) -> dict[str, str]:
        """How people call the documents, by group."""
        return {SUSPECT: self.corpus_label, HELDOUT: self.heldout_label or "", UNSEEN: self.unseen_label or ""}

    def compared_with(self) -> dict[str, ModelSpec]:
        """The models that scores compare with, by role."""
        return {role: model for item in self.measurements for role, model in item.compared_with().items()}


def _with_scored_text(group: DocumentGroup) -> DocumentGroup:
    measured = {
        name: replace(item, scored_text=True) if isinstance(item, Scored) and item.score.needs_texts else item
        for name, item in group.measured.items()
    }
    return replace(group, measured=measured)


def other_corpora(group: DocumentGroup) -> dict[str, CorpusSpec]:
    """What is measured beside the group's own documents, under the name of the first measurement on it."""
    others: dict[str, CorpusSpec] = {}
    for name, item in group.measured.items():
        if item.corpus != group.corpus and item.corpus not in others.values():
            others[name] = item.corpus
    return others


def further_corpora(group: DocumentGroup) -> dict[str, CorpusSpec]:
    """What the group's questions are made with beside its own documents."""
    return {
        f"{name}/{other}": corpus
        for name, item in group.measured.items()
        for other, corpus in item.further_corpora().items()
    }
