"""Models as specs: by name or by recipe, nested to any depth.

Every field of a spec changes the weights, or what the model answers. What does not (devices, micro-batches, memory
budgets) lives in `runtime.compute.Compute`. A kind of model is one class, which says how it is identified, loaded and
tokenized, what it has read and what it offers; nothing else asks for the kind.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from nonmember.artifacts import Builder, Spec
from nonmember.checks import Checked, require_choice
from nonmember.corpora import Component
from nonmember.records import Corpus, Question, TokenTable
from nonmember.records.answers import Completion, Request
from nonmember.records.requirements import Access

if TYPE_CHECKING:
    from nonmember.models.loading import LoadedModel

BOS = ("auto", "always", "never")  # read before each text: what the tokenizer itself puts there; always; never
LOADED_MODELS = 3  # kept in memory: target, reference, and what is being made of them
FORMAT = 2  # raise it when a change of code moves what trained models hold: older entries are then left alone


def require_bos(value: object, name: str) -> None:
    require_choice(value, BOS, "tokens.bos")  # as it is set


class ModelSpec(Checked, Spec["LoadedModel"]):
    """A model. Most kinds have weights here; of the others (`has_weights` is False) only answers can be obtained, and
    they implement some of `complete`, `token_table` and `answer_table`."""

    kind = "models"
    pool = "models"
    gives = ("LoadedModel",)
    max_in_memory = LOADED_MODELS
    has_weights: ClassVar[bool] = True
    answers_by_name: ClassVar[bool] = False  # by the name of a question, without its text
    stored: ClassVar[bool] = False

    @property
    def adapts(self) -> bool:
        """Whether it is read as a base with an adapter beside its weights, and not as weights of its own."""
        return False

    @property
    def shape(self) -> str:
        """What its speed depends on: models of one shape take the same time per token."""
        before = self.continued_from()
        return self.readable if before is None else before.shape

    @abstractmethod
    def recipe(self) -> dict[str, Any]:
        """The spec as plain JSON, corpora by their identities. Its key is more exact: hashes of files, precision."""

    # Models with weights -------------------------------------------------------------------------------------------

    def weights(self, builder: Builder) -> LoadedModel:
        """A copy of its own, all of whose weights can be changed."""
        raise self.only_answers("weights")

    def build(self, builder: Builder) -> LoadedModel:
        """Ready to use and shared: callers must not modify it."""
        return self.weights(builder)

    def load_tokenizer(self, builder: Builder) -> Any:
        """Its tokenizer, without its weights."""
        raise self.only_answers("tokenizer")

    def num_parameters(self, builder: Builder) -> int | None:
        """None where only answers can be obtained."""
        return builder.get(self).num_parameters if self.has_weights else None

    def require_trainable(self) -> None:
        """Raise ValueError where neither the weights nor an adapter beside them can be trained."""

    def require_changeable(self) -> None:
        """Raise ValueError where the weights themselves cannot be changed."""
        self.require_trainable()

    # Models of which only answers can be obtained ------------------------------------------------------------------

    def complete(self, builder: Builder, requests: Sequence[Request]) -> list[Completion]:
        """Answers to requests, in their order."""
        raise self.lacks("answers no questions")

    def token_table(self, builder: Builder, shown: Corpus, max_tokens: int) -> TokenTable:
        """The log-probability of each token of the documents, of their first `max_tokens` tokens."""
        raise self.lacks("gives no log-probabilities of a text")

    def answer_table(self, builder: Builder, shown: Corpus, question: Question, max_tokens: int) -> TokenTable:
        """The log-probability of each of a question's answers about each document."""
        raise self.lacks("gives no probabilities of answers")

    # All models ----------------------------------------------------------------------------------------------------

    def require(self, builder: Builder, access: Access, what: str) -> None:
        """Raise ValueError where the model does not offer what `what` (a method, say) needs, before anything is made or
        paid for."""

    def made_of(self) -> Iterable[tuple[Access, ModelSpec]]:
        """The models that it starts from or learns from, with the access that this needs."""
        return ()

    def corpora_read(self) -> tuple[tuple[Component, ...], bool]:
        """The corpora that the recipe names as read, each with how often, and whether these are all that the model has
        read."""
        return (), False

    def continued_from(self) -> ModelSpec | None:
        """The model whose weights it starts from."""
        return None

    def root(self) -> ModelSpec:
        """The model that it is made of in the end, whose tokenizer it has."""
        base = self.continued_from()
        return self if base is None else base.root()

    def source(self, builder: Builder) -> str:
        """Where its first weights were read: a name with the commit on the hub, or with a hash of the files. Empty
        where they were not read."""
        base = self.continued_from()
        return "" if base is None else base.source(builder)

    def kept_curves(self, builder: Builder) -> Path | None:
        """Where the curves of its training lie, if it was found in the store and not trained by this builder."""
        return None

    def only_answers(self, needed: str) -> ValueError:
        return self.lacks(f"can only be queried: its {needed} {'are' if needed == 'weights' else 'is'} not available")

    def lacks(self, what: str) -> ValueError:
        return ValueError(f"{self.readable} {what}. Choose another method, or a model that has what it needs.")


@dataclass(frozen=True)
class Whole(Spec["LoadedModel"]):
    """A model all of whose weights are its own: an adapter is merged into its base."""

    model: ModelSpec

    kind = "models"
    pool = "models"
    max_in_memory = LOADED_MODELS
    stored: ClassVar[bool] = False

    @property
    def readable(self) -> str:
        return self.model.readable

    def key(self, builder: Builder) -> Mapping[str, Any]:
        key = self.model.key(builder)
        # What lies in the same pool with its adapter apart is another model; all else is in memory once.
        return {"merged": key} if self.model.adapts and self.model.pool == self.pool else key

    def parents(self) -> Iterable[Spec[Any]]:
        return (self.model,)

    def build(self, builder: Builder) -> LoadedModel:
        return self.model.weights(builder)


def label_of(model: ModelSpec) -> str:
    """A short readable name."""
    return model.readable


def last_part(path: str) -> str:
    """pythia-160m of EleutherAI/pythia-160m."""
    return path.rstrip("/").rsplit("/", 1)[-1]
