"""A model of random weights, with a tokenizer trained here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from nonmember.artifacts import Builder, Spec
from nonmember.artifacts.store import Entry
from nonmember.checks import Checked, Count, require_choice, require_seed, require_text
from nonmember.corpora import Component, CorpusSpec
from nonmember.models.base import ModelSpec

if TYPE_CHECKING:
    from nonmember.models.loading import LoadedModel

TOKENIZER_FORMAT = 1
SMALLEST_VOCABULARY = 257  # a byte each, and the end of the text


@dataclass(frozen=True)
class TrainedTokenizer(Checked, Spec[Any]):
    """Byte-level BPE trained on a corpus; `<|endoftext|>` is its only special token."""

    corpus: CorpusSpec
    vocab_size: Annotated[int, Count(SMALLEST_VOCABULARY)]

    fields_called = "{field} of a tokenizer"
    kind = "tokenizers"

    @property
    def readable(self) -> str:
        return f"bpe-{self.vocab_size}"

    def key(self, builder: Builder) -> dict[str, Any]:
        return {"format": TOKENIZER_FORMAT, "corpus": self.corpus.fingerprint(builder), "vocab_size": self.vocab_size}

    def make(self, builder: Builder, folder: Path) -> None:
        from nonmember.models.loading import train_tokenizer

        train_tokenizer(builder.get(self.corpus), self.vocab_size).save_pretrained(folder)

    def load(self, builder: Builder, entry: Entry) -> Any:
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(entry.path, trust_remote_code=False)


@dataclass(frozen=True)
class Scratch(ModelSpec):
    """Random weights of a configuration: `architecture` names a transformers model type and its settings."""

    model_type: Annotated[str, require_text]
    architecture: Mapping[str, Any]
    tokenizer: TrainedTokenizer
    seed: Annotated[int, require_seed]
    bos: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice(self.bos, ("auto", "never"), "tokens.bos of a model that is made here, without a BOS,")

    @property
    def readable(self) -> str:
        return f"{self.model_type}-scratch"

    @property
    def shape(self) -> str:
        architecture = {**self.architecture, "vocab_size": self.tokenizer.vocab_size}
        return " ".join([self.model_type, *(f"{name}={value}" for name, value in sorted(architecture.items()))])

    def recipe(self) -> dict[str, Any]:
        tokenizer = {"corpus": self.tokenizer.corpus.identity(), "vocab_size": self.tokenizer.vocab_size}
        architecture = {"model_type": self.model_type, **self.architecture}
        return {"architecture": architecture, "tokenizer": tokenizer, "seed": self.seed}

    def key(self, builder: Builder) -> dict[str, Any]:
        return {
            "scratch": self.model_type,
            "architecture": dict(self.architecture),
            "tokenizer": self.tokenizer.key(builder),
            "seed": self.seed,
        }

    def weights(self, builder: Builder) -> LoadedModel:
        from nonmember.models.loading import from_scratch
        from nonmember.models.probing import require_probed

        return require_probed(builder, self, from_scratch(self, self.load_tokenizer(builder)))

    def load_tokenizer(self, builder: Builder) -> Any:
        return builder.get(self.tokenizer)

    def corpora_read(self) -> tuple[tuple[Component, ...], bool]:
        return (), True
