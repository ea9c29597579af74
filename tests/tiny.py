"""A world small enough for tests: random words, models of two layers and width 16, a builder."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import lightning
import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, PreTrainedTokenizerFast

from nonmember.artifacts import Builder
from nonmember.artifacts.store import Store
from nonmember.corpora import CorpusSpec, Documents
from nonmember.models import Scratch, TrainedTokenizer
from nonmember.records import Corpus, Document
from nonmember.runtime.compute import Compute
from nonmember.runtime.quiet import quieten
from nonmember.tracking.trackers import NoTracker
from nonmember.training.recipes import Distillation, Optimization, Pretraining

quieten()

VOCAB_SIZE = 280
ARCHITECTURE = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 128,
}
WORDS = [
    "moss",
    "fern",
    "reed",
    "pine",
    "lark",
    "wren",
    "hare",
    "vole",
    "dusk",
    "rain",
    "mist",
    "tide",
    "clay",
    "flint",
    "ash",
    "elm",
]


def jsonl(path: str | Sequence[str], id_field: str | None, text_field: str, *fields: str, **more: Any) -> Documents:
    """A file whose columns are named. fields: of clusters."""
    return Documents(path, text_field, id_field, *fields, **more)


def text_files(folder: str, pattern: str, domain: str = "") -> Documents:
    """A document each."""
    return Documents((folder,), domain=domain, pattern=pattern, split="file")


@dataclass(frozen=True)
class Texts(CorpusSpec):
    """The documents themselves."""

    documents: tuple[Document, ...]

    stored: ClassVar[bool] = False

    def build(self, builder: Builder) -> Corpus:
        return Corpus(self.documents)

    def identity(self) -> dict[str, Any]:
        return {"kind": "texts", "fingerprint": Corpus(self.documents).fingerprint}


class WithoutStore:
    """Makes corpora, each once."""

    def __init__(self) -> None:
        self._made: dict[str, Corpus] = {}

    def get(self, spec: CorpusSpec) -> Corpus:
        name = repr(spec.identity())
        if name not in self._made:
            self._made[name] = spec.build(self)  # type: ignore[arg-type]
        return self._made[name]


def build(spec: CorpusSpec) -> Corpus:
    """A corpus without a store."""
    return WithoutStore().get(spec)


def random_texts(number: int, *, seed: int, words: int = 12) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size=rng.integers(words // 2, words + 1))) for _ in range(number)]


def texts(*given: str, name: str = "d") -> Texts:
    return Texts(tuple(Document(f"{name}{index}", text) for index, text in enumerate(given)))


GENERAL = texts(*random_texts(40, seed=1), name="general")
SUSPECT = texts(*random_texts(34, seed=2), name="suspect")


def scratch(seed: int, corpus: CorpusSpec = GENERAL, **architecture: Any) -> Scratch:
    return Scratch("gpt_neox", ARCHITECTURE | architecture, TrainedTokenizer(corpus, VOCAB_SIZE), seed)


def optimization(**changes: Any) -> Optimization:
    plain = Optimization(
        learning_rate=1e-2,
        batch_size=8,
        epochs=1,
        warmup=0.1,
        schedule="linear",
        final_fraction=0.0,
        betas=(0.9, 0.99),
        epsilon=1e-8,
        weight_decay=0.0,
        gradient_clip=1.0,
    )
    return replace(plain, **changes)


def pretraining(sequence_length: int = 32, **changes: Any) -> Pretraining:
    return Pretraining(optimization(**changes), sequence_length)


def distillation(lambda_: float = 0.7, tau: float = 2.0, max_tokens: int = 64, **changes: Any) -> Distillation:
    return Distillation(optimization(**changes), lambda_, tau, max_tokens)


def compute(**changes: Any) -> Compute:
    plain = Compute(
        make_trainer=functools.partial(lightning.Trainer, accelerator="cpu", devices=1),
        precision="32-true",
        micro_batch_size=8,
        max_batch_tokens=512,
        logits_budget_mib=16,
        block_mib=4,
        checkpoint_seconds=1e9,
        gradient_checkpointing=False,
    )
    return replace(plain, **changes)


def builder(root: Path, **changes: Any) -> Builder:
    return Builder(Store(root), compute(**changes), NoTracker())


def model(seed: int, vocab_size: int = 60, **architecture: Any) -> GPTNeoXForCausalLM:
    """Random weights with logits far from uniform."""
    torch.manual_seed(seed)
    made = GPTNeoXForCausalLM(GPTNeoXConfig(**ARCHITECTURE | {"vocab_size": vocab_size} | architecture)).eval()
    made.get_output_embeddings().weight.data.mul_(20)
    return made


def model_folder(folder: Path, seed: int) -> Path:
    """A model saved with a tokenizer that needs no training."""
    words = {"<|endoftext|>": 0, **{word: index for index, word in enumerate(WORDS, start=1)}}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<|endoftext|>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>").save_pretrained(folder)
    model(seed, vocab_size=len(words)).save_pretrained(folder)
    return folder


def sequences_of_ids(
    number: int, *, seed: int = 0, vocab_size: int = 60, lengths: tuple[int, int] = (3, 20)
) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(vocab_size, size=rng.integers(*lengths)).tolist() for _ in range(number)]


def weights(of: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in of.state_dict().items()}


def assert_equal_weights(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor], atol: float = 0.0) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        torch.testing.assert_close(value, other[name], rtol=0, atol=atol, msg=lambda text, name=name: f"{name}: {text}")


def lengths(sequences: Sequence[Sequence[int]]) -> list[int]:
    return [len(ids) for ids in sequences]
