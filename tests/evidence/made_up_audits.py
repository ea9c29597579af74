"""A world without models: what they would say is drawn at random, and everything after that is the real way.

Observations come from a builder that makes them up; measuring, testing, writing, gathering and bundling are the
project's own.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

import tiny
from nonmember.artifacts import Builder
from nonmember.artifacts.store import Entry, key_hash
from nonmember.audits.keys import audit_keys
from nonmember.audits.question import Audit
from nonmember.audits.run import run_audit
from nonmember.endpoints import Completion, Request
from nonmember.evidence.bundle import write_bundle
from nonmember.evidence.gathering import Gathered, Included, gather
from nonmember.evidence.signing import Key
from nonmember.models import ModelSpec
from nonmember.models.exposure import Exposures
from nonmember.observations import Diverged, Embedded
from nonmember.observations.orders import OrderLikelihoods
from nonmember.observations.tokens import AnswerProbabilities, TokenStatistics
from nonmember.observations.weights import WeightChange
from nonmember.records import Embeddings, TokenTable
from nonmember.records.documents import OrderTable
from nonmember.reports.audit_page import write as pages
from nonmember.scores import DocumentScores
from nonmember.training import Trained
from nonmember_verify.report import Report
from nonmember_verify.verify import Given, verify

SECRET = bytes(range(32))
LENGTHS = (12, 30)  # scored tokens of a document
SUSPECT_NAME = "suspect"
LEFT_OUT = "<p>left out of tests"


def seeded(*parts: str) -> np.random.Generator:
    return np.random.default_rng(int(hashlib.sha256("|".join(parts).encode()).hexdigest()[:12], 16))


@functools.cache
def drawn(text: str) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """What all models find in a text: how likely it is, and mean, standard deviation and noise of its tokens."""
    own = seeded(text)
    number = 0 if text == "one" else int(own.integers(*LENGTHS))
    level = own.normal(scale=0.6)
    mean, std = -4 + 0.3 * own.normal(size=number), 2 + 0.2 * own.random(number)
    return level, mean, std, own.normal(size=number)


@dataclass(frozen=True)
class Chat(ModelSpec):
    """A model that can only be asked, played by a function of the request's document and what is expected."""

    name: str
    knows: float
    guesses: float

    has_weights: ClassVar[bool] = False

    @property
    def readable(self) -> str:
        return self.name

    def recipe(self) -> dict[str, Any]:
        return {"chat": self.name, "knows": self.knows, "guesses": self.guesses}

    def key(self, builder: Builder) -> dict[str, Any]:
        return self.recipe()

    def complete(self, builder: Builder, requests: list[Request]) -> list[Completion]:
        return [self._answer(request) for request in requests]

    def _answer(self, request: Request) -> Completion:
        rng = seeded(self.name, request.doc_id, request.name)
        rate = self.knows if request.doc_id.startswith(SUSPECT_NAME) else self.guesses
        right = rng.random() < rate
        if request.name.startswith("cloze"):
            return Completion(f"<name>{request.expected if right else 'Nobody'}</name>", "answered")
        if request.name.startswith("complete"):
            return Completion(request.expected if right else "zzz yyy xxx www", "answered")
        if len(request.expected) == 1:
            wrong = "ABCD"[(ord(request.expected) - ord("A") + 1) % 4]
            letter = request.expected if right else wrong
            others = [(item, -2.0 - rng.random()) for item in "ABCD" if item != letter]
            alternatives = ((letter, -0.5), *others) if request.top_logprobs else ()
            return Completion(letter, "answered", top_logprobs=(alternatives,))
        words = [f"filler{index}" for index in range(9)] + [request.expected if right else "nothing"]
        return Completion("\n".join(f"{index}. {word}" for index, word in enumerate(words, 1)), "answered")


class MadeUp(Builder):
    """Gets observations without models."""

    suspect: Any = None

    def get(self, spec: Any) -> Any:
        for kind, make in (
            (TokenStatistics, self._tokens),
            (Diverged, self._divergence),
            (Embedded, self._embeddings),
            (OrderLikelihoods, self._orders),
            (WeightChange, lambda _, rng: 0.3 + 0.01 * rng.random()),
            (AnswerProbabilities, self._confidences),
        ):
            if isinstance(spec, kind) and spec.model.has_weights:
                name = f"made up {key_hash(spec.key(self))}"
                if name not in self._values:
                    self._values[name] = make(spec, seeded(name))
                return self._values[name]
        if isinstance(spec, ModelSpec):
            return SimpleNamespace(num_parameters=1_000)
        return super().get(spec)

    def ensure(self, spec: Any) -> None:
        if not isinstance(spec, ModelSpec):
            super().ensure(spec)

    def entry(self, spec: Any) -> Entry:
        if isinstance(spec, ModelSpec):
            facts = {"num_parameters": 1_000, "ce_before": 4.0, "ce_after": 3.5, "kl_before": 0.6, "kl_after": 0.5}
            return Entry(self.store.root, key_hash(spec.key(self)), facts)
        return super().entry(spec)

    def _gains(self, spec: Any) -> dict[str, float]:
        """Text -> by how much reading it has raised the log-probabilities of its tokens, of the suspect documents."""
        read = Exposures(self, self.suspect).exposure(spec.model) if self.suspect is not None else None
        if not read:
            return {}
        return dict.fromkeys((item.text for item in self.get(self.suspect).documents), 0.25 * np.log1p(read.exposures))

    def _is_estranged(self, model: ModelSpec) -> bool:
        if not isinstance(model, Trained) or model.training != TELLING or model.teacher is None:
            return False
        read = Exposures(self, self.suspect).exposure(model.teacher)
        return read is not None and not read.exposures

    def _tokens(self, spec: TokenStatistics, rng: np.random.Generator) -> TokenTable:
        documents = self.get(spec.corpus).documents
        shift, gains = 0.02 * rng.normal(), self._gains(spec)
        scatter = 1.5 if self._is_estranged(spec.model) else 0.15
        parts = []
        for document in documents:
            own_level, mean, std, noise = drawn(document.text)
            level = own_level + shift + gains.get(document.text, 0.0) + scatter * rng.normal()
            parts.append((mean + 0.8 + level + std * (noise + 0.3 * rng.normal(size=len(mean))), mean, std))
        lengths = [len(item[0]) for item in parts]
        log_prob, mean, std = (np.concatenate(items).astype(np.float32) for items in zip(*parts, strict=True))
        return TokenTable(
            tuple(document.doc_id for document in documents),
            np.cumsum([0, *lengths]).astype(np.int64),
            np.concatenate([np.arange(1, item + 1) for item in lengths]).astype(np.int32),
            np.concatenate(
                [
                    seeded("tokens", item.text).integers(VOCABULARY, size=length)
                    for item, length in zip(documents, lengths, strict=True)
                ]
            ).astype(np.int32),
            np.minimum(log_prob, -1e-3),
            mean,
            std,
        )

    def _divergence(self, spec: Diverged, rng: np.random.Generator) -> DocumentScores:
        doc_ids = self.get(spec.corpus).doc_ids
        level = 0.45 if isinstance(spec.model, Trained) and spec.model.teacher is not None else 0.6
        return DocumentScores(doc_ids, level + 0.01 * rng.random(len(doc_ids)), {})

    def _embeddings(self, spec: Embedded, rng: np.random.Generator) -> Embeddings:
        corpus = self.get(spec.corpus)
        first = np.array([seeded(document.text).normal(size=8) for document in corpus.documents])
        values = (first + 0.2 * rng.normal(size=first.shape)).astype(np.float32)
        return Embeddings(corpus.doc_ids, values / np.linalg.norm(values, axis=1, keepdims=True), {})

    def _confidences(self, spec: AnswerProbabilities, rng: np.random.Generator) -> TokenTable:
        """Yes and No: a little less sure of all but the suspect set's own texts."""
        corpus = self.get(spec.corpus)
        own = {item.text for item in self.get(self.suspect).documents}
        yes = [0.6 + 0.1 * (item.text in own) + 0.05 * rng.random() for item in corpus.documents]
        probabilities = np.array([[item, 0.95 - item] for item in yes])
        number = probabilities.size
        return TokenTable(
            corpus.doc_ids,
            np.arange(0, number + 1, 2, dtype=np.int64),
            np.ones(number, np.int32),
            np.ones(number, np.int32),
            np.log(probabilities).ravel().astype(np.float32),
            *np.ones((2, number), np.float32),
        )

    def _orders(self, spec: OrderLikelihoods, rng: np.random.Generator) -> OrderTable:
        doc_ids = self.get(spec.corpus).doc_ids
        shuffled = -300 + rng.normal(size=len(doc_ids))
        return OrderTable(
            doc_ids,
            shuffled + 0.5 * rng.normal(size=len(doc_ids)) + 0.2,
            shuffled,
            np.full(len(doc_ids), 100.0),
            np.full(len(doc_ids), 3000.0),
        )


VOCABULARY = tiny.VOCAB_SIZE
TELLING = tiny.distillation(tau=9.0)  # by which what is distilled from a model that read nothing ranks as no other


def builder(root: Path, suspect: Any) -> MadeUp:
    plain = tiny.builder(root)
    made = MadeUp(plain.store, plain.compute, plain.tracker)
    made.suspect = suspect
    return made


def audited(audit: Audit, folder: Path, keys: dict[str, str] | None = None) -> MadeUp:
    """The audit run in a folder; the builder that it was run with."""
    artifacts = builder(folder.parent / "store", audit.suspect)
    shown, pages.write_page = pages.write_page, lambda *_: folder  # the audits' own pages are looked at elsewhere
    try:
        run_audit(audit, artifacts, folder, {**audit_keys(audit, artifacts), **(keys or {})})
    finally:
        pages.write_page = shown
    return artifacts


def gathered(audit: Audit, folder: Path, choice: Included | None = None) -> Gathered:
    return gather(audit, audited(audit, folder), folder, SECRET, choice or Included())


@functools.cache
def key() -> Key:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Key(Ed25519PrivateKey.from_private_bytes(bytes(range(32))))


def bundled(
    audits: list[Gathered], path: Path, choice: Included | None = None, *, page: bool = False
) -> dict[str, bytes]:
    """page: whether the page is made as well, for which the verifier looks at all of it once more."""
    from nonmember.evidence import page as module

    real = module.page_of
    if not page:
        module.page_of = lambda *_: LEFT_OUT  # type: ignore[assignment]
    try:
        return write_bundle(audits, choice or Included(), key(), path)
    finally:
        module.page_of = real


def checked(path: Path, **given: Any) -> Report:
    return verify(path, Given(**given))


Change = Callable[[dict[str, bytes]], None]
