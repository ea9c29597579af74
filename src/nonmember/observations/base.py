"""Base classes of observations and measurements.

An observation is an artifact: what one model says about a corpus, read in one pass and kept. A measurement is what a
method asks for: a number per document under a model, in a role. Most measurements are observations themselves; a score
is arithmetic on some.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from nonmember.artifacts import Builder, Spec
from nonmember.artifacts.store import Entry
from nonmember.corpora.specs import CorpusSpec
from nonmember.models.base import ModelSpec
from nonmember.models.reading import expected_tokens
from nonmember.records import Corpus, Embeddings
from nonmember.records.requirements import Access
from nonmember.runtime.compute import MIB
from nonmember.scores import DocumentScores

if TYPE_CHECKING:
    import lightning

    from nonmember.models.loading import LoadedModel

T = TypeVar("T")

# Logits of one block. Large enough for the matrix product to be efficient (each block reads the whole output
# matrix again: at V = 50,304, 16 rows at a time take three times as long as 300), small beside the body's
# activations.
BLOCK_BYTES = 64 * MIB
FORMAT = 2  # raise it when a change of code moves what observations hold: older entries are then left alone


@dataclass(frozen=True)
class Reading:
    """How a model reads, and where what comes of it is written."""

    out_dir: Path  # gets part-<rank>.parquet of each process
    make_trainer: Callable[..., lightning.Trainer]  # takes the arguments of that, some of which are set by the pass
    max_batch_tokens: int  # most tokens of a batch, padding included; a longer document goes alone
    block_bytes: int = BLOCK_BYTES  # of the logits that are made at a time
    description: str = "scoring"  # what the progress bar says


@dataclass(frozen=True)
class Observation(Spec[T]):
    """What `model` says about `corpus`. A subclass says what it reads and what determines it beside these two."""

    model: ModelSpec
    corpus: CorpusSpec

    kind = "observations"
    joint = True
    suffix: ClassVar[str] = ""
    cannot: ClassVar[str] = "be observed"  # how an error that the model caused goes on
    table: ClassVar[Any]  # of `records`: loads the parts, in the order of the documents

    @property
    def stored(self) -> bool:
        """What an endpoint or a record answers is kept by that kind of model, answer by answer."""
        return self.model.has_weights

    @property
    def readable(self) -> str:
        return f"{self.model.readable}-{self.suffix}"

    @abstractmethod
    def settings(self, builder: Builder) -> Mapping[str, Any]:
        """What determines it beside model, corpus and precision; JSON."""

    @abstractmethod
    def observe(self, builder: Builder, loaded: LoadedModel, folder: Path) -> dict[str, int]:
        """Write part-<rank>.parquet into the folder, and return what was counted, `num_tokens` at least. Raises
        ValueError where the model cannot."""

    def reading(self, builder: Builder, folder: Path, description: str) -> Reading:
        compute = builder.compute
        return Reading(folder, compute.trainer, compute.max_batch_tokens, compute.block_mib * MIB, description)

    def content(self, builder: Builder) -> str:
        """Fingerprint of the documents."""
        return self.corpus.fingerprint(builder)

    def key(self, builder: Builder) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "model": self.model.key(builder),
            "corpus": self.content(builder),
            **self.settings(builder),
            "precision": builder.compute.precision,
        }

    def parents(self) -> Iterable[Spec[Any]]:
        return (self.model,)

    def expected_tokens(self, builder: Builder) -> int | None:
        """One pass over the documents, of as many tokens as the observation reads of each."""
        return expected_tokens(builder, self.model, self.corpus, getattr(self, "max_tokens", None))

    def alike(self) -> str:
        return f"{type(self).__name__} of {self.model.shape}"

    def make(self, builder: Builder, folder: Path) -> dict[str, Any]:
        loaded = builder.get(self.model)
        try:
            counts = self.observe(builder, loaded, folder)
        except ValueError as error:
            raise ValueError(f"{self.model.readable} cannot {self.cannot}. {error}") from error
        builder.counters.tokens_observed += counts["num_tokens"]
        return counts

    def load(self, builder: Builder, entry: Entry) -> T:
        loaded: T = self.table.load(parts_of(entry), builder.get(self.corpus).doc_ids)
        return loaded


def parts_of(entry: Entry) -> list[Path]:
    """The files that the processes of a run have written."""
    return entry.paths("part-*.parquet")


@dataclass(frozen=True)
class Measured:
    """values: per document, or vectors.   nll: of the text itself, nats per token, None where it is not read as it is.
    num_tokens: scored ones of that text."""

    values: DocumentScores | Embeddings
    nll: float | None = None
    num_tokens: int | None = None


class Measurement(ABC):
    """What a method asks for. A frozen dataclass with these fields and more.

    role: what the model is in the audit (target, reference, distilled, control ...).
    """

    role: str
    model: ModelSpec
    corpus: CorpusSpec

    @property
    @abstractmethod
    def access(self) -> Access:
        """What the model must offer."""

    def under(self, model: ModelSpec) -> Self:
        """The same measurement under another model."""
        other: Self = replace(self, model=model)  # type: ignore[type-var]  # all measurements are dataclasses
        return other

    @abstractmethod
    def measure(self, builder: Builder) -> Measured:
        """The values of all documents of the corpus."""

    def needs(self) -> Iterable[Spec[Any]]:
        """What it will get from the builder, as far as that is known before documents are read."""
        return (self,) if isinstance(self, Spec) else ()

    def compared_with(self) -> Mapping[str, ModelSpec]:
        """Further models, by role, whose observations the values depend on: their keys are part of the audit's."""
        return {}

    def counted_by(self) -> Iterable[ModelSpec]:
        """Models in whose tokens something is counted."""
        return ()

    def general(self) -> CorpusSpec | None:
        """General text that the values depend on."""
        return None

    def further_corpora(self) -> Mapping[str, CorpusSpec]:
        """Corpora that the questions are made with, by name."""
        return {}

    def failed(self, measured: Measured) -> Mapping[str, int]:
        """Questions that were not answered, by reason."""
        return {}


def scored_by_id(loaded: LoadedModel, corpus: Corpus, max_tokens: int | None) -> Mapping[str, list[bool]] | None:
    """Document id -> which of its ids (`encode_corpus`) are scored; None where all are of all documents."""
    from nonmember.models.encoding import scored_tokens

    scored = scored_tokens(loaded, corpus, max_tokens)
    return None if scored is None else dict(zip(corpus.doc_ids, scored, strict=True))


def require_plain(corpus: Corpus, what: str) -> None:
    """Raise ValueError for conversations. what: cannot be done with them."""
    if corpus.has_conversations:
        raise ValueError(
            f"{what} plain documents; these are conversations, of which only what the assistant says is scored. Give "
            "its texts as plain documents (data=documents), or use a method that reads tokens, such as "
            "difference_in_differences."
        )


def texts_of(corpus: Corpus) -> list[str]:
    return [document.text for document in corpus.documents]
