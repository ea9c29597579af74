"""The question of `nonmember score`: which scores of which documents under which model."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args

from nonmember import scores as family
from nonmember.artifacts import Builder
from nonmember.artifacts.store import key_hash
from nonmember.audits.keys import tokens_read
from nonmember.checks import Checked, Count, require_choice, require_distinct
from nonmember.corpora import CorpusSpec
from nonmember.models import Access, ModelSpec, label_of
from nonmember.models.probing import recorded
from nonmember.models.reading import position_limit
from nonmember.observations import access_of
from nonmember.scores.relative import Perturbation, Quantity
from nonmember.scoring.engines import OnRay

log = logging.getLogger(__name__)

PLAIN: Mapping[str, Callable[[], family.Score]] = {
    "log_likelihood": family.Loss,
    "neg_perplexity": family.Perplexity,
    "zlib": family.Zlib,
}
OF_K: Mapping[str, Callable[[float], family.Score]] = {
    "min_k": family.MinK,
    "min_k_plus_plus": family.MinKPlusPlus,
    "max_k": family.MaxK,
}
ONE_PASS = (*PLAIN, *OF_K)
FURTHER = ("wbc", "lira", "rmia")  # with settings of their own
COSTS = {
    "lowercase": "a forward pass over the lowercased texts",
    "wbc": "a forward pass of the reference",
    "lira": "a forward pass of each out-model",
    "rmia": "a forward pass of each out-model, and of all over the unread texts",
}


DuplicateIds = Literal["refuse", "first"]


@dataclass(frozen=True)
class Parts(Checked):
    """How a streamed corpus is scored.   mib: of ids and text in a part, about.   duplicate_ids: of documents with one
    id none is scored (refuse), or the first.   engine: who does it; None: this process."""

    mib: Annotated[int, Count(1)] = 4
    duplicate_ids: DuplicateIds = "refuse"
    engine: OnRay | None = None

    fields_called = "parts.{field}"


@dataclass(frozen=True)
class Scoring(Checked):
    """The question.

    ks: shares of tokens of Min-K% and Min-K%++.   scores: names of `ONE_PASS`, `COSTS`, `FURTHER`.   max_tokens: a
    document's tokens that are read; None: what the models read, at most `most_tokens`.   general: text in which DC-PDD
    counts tokens.   perturbations: whose scores are wanted, another pass each.   prefix: unread texts that ReCaLL
    (`recall`) puts before each document.   further: the scores of `FURTHER` that are wanted, and one's
    own.   settings: recorded in the table's metadata.   parts: how a streamed corpus is scored.   out_models: that LiRA
    and RMIA compare with.
    """

    model: ModelSpec
    corpus: CorpusSpec
    ks: Sequence[float]
    max_tokens: Annotated[int | None, Count(2)]
    most_tokens: Annotated[int, Count(2)]
    dc_pdd: family.DcPdd
    reference: ModelSpec | None = None
    general: CorpusSpec | None = None
    perturbations: Sequence[Perturbation] = ()
    prefix: CorpusSpec | None = None
    recall: family.Recall | None = None
    scores: Sequence[str] = ONE_PASS
    further: Mapping[str, family.Score] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    parts: Parts = field(default_factory=Parts)
    out_models: tuple[ModelSpec, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.ks or len(set(self.ks)) < len(self.ks):
            raise ValueError(f"k must be a share of the tokens or a list of different ones; got {list(self.ks)}.")
        if unknown := set(self.perturbations) - set(get_args(Perturbation)):
            raise ValueError(f"perturbations must be of {', '.join(get_args(Perturbation))}; got {min(unknown)!r}.")
        self.wanted()  # which refuses a K that cannot be

    def costs(self) -> str:
        """What the scores take beyond one pass, in words; empty where that is nothing."""
        names = {cost: [name for name in self.scores if COSTS.get(name) == cost] for cost in COSTS.values()}
        return "; ".join(
            f"{', '.join(found)} take{'s' if len(found) == 1 else ''} {cost}" for cost, found in names.items() if found
        )

    def wanted(self) -> dict[str, family.Score]:
        """By column. With one K the columns of Min-K% are min_k and min_k_plus_plus, else they end in K."""
        simple = {**PLAIN, "lowercase": family.Lowercase}
        wanted: dict[str, family.Score] = {name: score() for name, score in simple.items() if name in self.scores}
        for k in self.ks:
            end = "" if len(self.ks) == 1 else f"_{k:g}"
            wanted |= {name + end: score(k) for name, score in OF_K.items() if name in self.scores}
        for name in self.perturbations:
            for quantity in get_args(Quantity):
                wanted[f"{name}_{quantity}"] = family.Perturbed(name, quantity)
        if self.reference is not None:
            wanted |= {"ref_diff": family.ReferenceDifference(), "ref_ratio": family.ReferenceRatio()}
        if self.general is not None:
            wanted["dc_pdd"] = self.dc_pdd
        if self.prefix is not None and self.recall is not None:
            wanted["recall"] = self.recall
        if taken := wanted.keys() & self.further.keys():
            raise ValueError(f"A column of own_scores must have a name of its own; got {min(taken)!r}, another's name.")
        wanted |= self.further
        if not self.model.has_weights:  # which tells neither whole distributions nor its tokenizer
            left_out = [name for name, item in wanted.items() if access_of(item) > Access.PROMPT_LOGPROBS]
            log.info("%s returns only token log-probabilities: %s left out.", label_of(self.model), ", ".join(left_out))
            wanted = {name: item for name, item in wanted.items() if name not in left_out}
        return wanted

    def limit(self, builder: Builder) -> int:
        """Tokens of a document that are read."""
        if self.max_tokens is not None:
            return self.max_tokens
        named = (self.model, self.reference, *self.out_models)
        models = [item for item in named if item is not None and item.has_weights]
        limits = [limit for item in models if (limit := _limit_of(item, builder)) is not None]
        return min([self.most_tokens, *limits])

    def tokens(self, builder: Builder) -> dict[str, dict[str, str | None]]:
        """What is read around each text, by model."""
        return tokens_read({"model": self.model, "reference": self.reference}, builder)

    def about(self, builder: Builder, limit: int) -> dict[str, Any]:
        """What the scores depend on, as JSON."""
        wanted = self.wanted()
        about: dict[str, Any] = {
            "model": label_of(self.model),
            "model_key": key_hash(self.model.key(builder)),
            "corpus": self.corpus.fingerprint(builder),
            "k": list(self.ks),
            "max_tokens": limit,
            "views": {name: list(item.views) for name, item in wanted.items()},
            "scores": {name: item.name for name, item in wanted.items()},
            **self.settings,
        }
        if self.reference is not None:
            about |= {"reference": label_of(self.reference)}
            about |= {"reference_key": key_hash(self.reference.key(builder))}
        if self.out_models:
            about["out_model_keys"] = [key_hash(item.key(builder)) for item in self.out_models]
        if self.general is not None:
            about["general"] = self.general.fingerprint(builder)
        if self.prefix is not None:
            about["prefix"] = self.prefix.fingerprint(builder)
        return about


def names_of_scores(names: Iterable[str]) -> list[str]:
    """The scores that are asked for, `one_pass` written out. Raises ValueError for others and for none."""
    choices, found = ("one_pass", *ONE_PASS, *COSTS), list(names)
    require_distinct(found, "scores", f"a list of some of {', '.join(choices)}, each once")
    for name in found:
        require_choice(name, choices, "scores", hint="One of your own: +score@own_scores.NAME=PRESET, NAME its column.")
    return list(dict.fromkeys(item for name in found for item in (ONE_PASS if name == "one_pass" else [name])))


def _limit_of(model: ModelSpec, builder: Builder) -> int | None:
    """Tokens that it reads at once; None: it sets no limit."""
    known: Mapping[str, int | None] = recorded(builder, model)
    return known["position_limit"] if "position_limit" in known else position_limit(builder.get(model).model.config)
