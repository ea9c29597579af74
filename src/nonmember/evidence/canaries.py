"""Plants canaries in documents before they are published: variants, the choice among them, the texts with them."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import logging
import os
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nonmember.artifacts import Builder
from nonmember.checks import first_few, require_choice, require_count, require_kind, require_number
from nonmember.corpora.sources.columns import name_of
from nonmember.corpora.sources.rows import rows_of
from nonmember.corpora.specs import document
from nonmember.corpora.transforms.cleaning import normalise
from nonmember.endpoints import Request
from nonmember.endpoints.asked import complete
from nonmember.evidence.signing import write_private
from nonmember.models import ModelSpec
from nonmember.records import Corpus, Document
from nonmember.runtime.files import write_text_atomically
from nonmember.runtime.naming import path_of
from nonmember_verify.canaries import KEY_BYTES, KINDS, Canary, PrivateFile, chosen, commitment_of

log = logging.getLogger(__name__)

DOCUMENTS, PRIVATE, COMMITMENT = "documents.jsonl", "canaries.private.json", "commitment.txt"
WORD = re.compile(r"[^\W\d_]{2,}")
FEWEST_WORDS = 100  # different ones in the documents, to draw from
PROMPT_WORDS = 8  # of a document, that a sampling model goes on from
FEWEST_SAMPLED = 3  # words of a continuation; of fewer there is nothing to score or to remember
ROUNDS = 100  # of sampling, for what was too short or came out twice

IDLE = {  # settings without a meaning, by kind
    "random": ("temperature",),
    "sampled": (),
    "paraphrase": ("canaries", "variants", "copies", "length", "temperature"),
}

Variants = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Making:
    """How canaries are made."""

    kind: str = "random"  # random, sampled or paraphrase
    canaries: int = 10  # independent ones
    variants: int = 100  # of each, one of which is published
    copies: int = 1  # documents that each goes into
    length: int = 12  # words of a random canary, most tokens of a sampled one
    temperature: float = 1.5
    paraphrases: str | None = None  # file of them

    @classmethod
    def of(cls, given: Mapping[str, Any], *, has_model: bool) -> Making:
        """Raises ValueError for a setting that has no meaning with the kind, or is missing. None: not given."""
        given = {name: value for name, value in given.items() if value is not None}
        require_choice(kind := given.get("kind", cls.kind), KINDS, "kind")
        if idle := [name for name in IDLE[kind] if name in given]:
            raise ValueError(f"{idle[0]} has no meaning with kind={kind}. Leave it out.")
        if (kind == "paraphrase") != ("paraphrases" in given):
            raise ValueError("kind=paraphrase and paraphrases=FILE belong together; one of them was given alone.")
        if kind == "sampled" and not has_model:
            raise ValueError(
                "kind=sampled needs a model that writes the variants. Name it: target.path=FOLDER_OR_HUB_NAME, or from "
                "Python model=."
            )
        if has_model and kind != "sampled":
            raise ValueError(f"A model has no meaning with kind={kind}. Leave it out, or give kind=sampled.")
        require_kind(given.get("paraphrases"), str | os.PathLike, "paraphrases", "a file", or_null=True)
        return cls(**given)

    def variants_of(self, documents: Corpus, key: bytes, builder: Builder, model: ModelSpec | None) -> Variants:
        """model: that samples them."""
        size = {"canaries": self.canaries, "variants": self.variants, "length": self.length}
        if self.paraphrases is not None:
            return paraphrases_in(path_of(os.fspath(self.paraphrases)), documents)
        if model is None:
            return random_variants(documents, key, **size)
        return sampled_variants(documents, key, builder, model, **size, temperature=self.temperature)


@dataclass(frozen=True)
class PlantedCanaries:
    """Where planted canaries lie."""

    documents: Path  # file to publish, with the ids of the documents
    private: Path  # file to keep secret, which each test needs
    commitment: str  # hash of the private file; make it public before the documents
    num_variants: tuple[int, ...]  # of each canary
    num_documents: int  # published, those without a canary too


def make(
    making: Making, folder: Path, documents: Corpus, builder: Builder, model: ModelSpec | None = None
) -> PlantedCanaries:
    """Plants canaries by a new key, and writes the files.

    Args:
        folder: Where none of these files is yet (`require_new`).
        builder: Whose store keeps nothing: what a model samples must stay secret.
        model: That samples the variants, of that kind.
    """
    if model is not None and not model.has_weights:
        log.warning(
            "%s is a service, and its operator sees all variants that it samples: a test says nothing of models "
            "of theirs. Take a model with weights for those.",
            model.readable,
        )
    key = secrets.token_bytes(KEY_BYTES)
    variants = making.variants_of(documents, key, builder, model)
    planted, private = plant(documents, variants, key, kind=making.kind, copies=making.copies)
    commitment = write(folder, planted, private)
    numbers = tuple(map(len, variants.values()))
    return PlantedCanaries(folder / DOCUMENTS, folder / PRIVATE, commitment, numbers, len(documents))


def draw(key: bytes, *names: object) -> int:
    """A whole number from 0 to 2^256 - 1: by the key, and by what it is for. Nothing of others follows from it."""
    return int.from_bytes(hmac.new(key, json.dumps(names).encode(), hashlib.sha256).digest(), "big")


def names_of(num_canaries: int) -> list[str]:
    require_count(num_canaries, 1, "canaries")
    return [f"canary-{number}" for number in range(1, num_canaries + 1)]


def random_variants(documents: Corpus, key: bytes, *, canaries: int, variants: int, length: int) -> Variants:
    """Random sequences of `length` of the documents' own different words, each as likely as any other.

    Raises:
        ValueError: Where the documents have fewer than 100 different words, or too few for so many sequences.
    """
    require_count(variants, 2, "variants")
    require_count(length, 1, "length")
    words = sorted({word.lower() for item in documents.documents for word in WORD.findall(item.text)})
    if len(words) < FEWEST_WORDS or len(words) ** length < 1000 * variants:
        raise ValueError(
            f"kind=random draws {length} words from those of the documents and needs at least {FEWEST_WORDS} different "
            f"ones, and 1000 times as many sequences as variants; they have {len(words)}. Use kind=sampled with "
            "target.path=MODEL, or a greater length."
        )

    def sequence(name: str, number: int) -> str:
        return " ".join(words[draw(key, "word", name, number, index) % len(words)] for index in range(length))

    found: dict[str, dict[str, None]] = {name: {} for name in names_of(canaries)}
    for name, texts in found.items():
        numbers = itertools.count()
        while len(texts) < variants:
            texts[sequence(name, next(numbers))] = None
    return {name: list(texts) for name, texts in found.items()}


def sampled_variants(
    documents: Corpus,
    key: bytes,
    builder: Builder,
    model: ModelSpec,
    *,
    canaries: int,
    variants: int,
    length: int,
    temperature: float,
) -> Variants:
    """What a model goes on with from the beginning of a document, at a high temperature; alike for all of a canary.

    Args:
        length: Tokens of a continuation, at most.

    Raises:
        ValueError: Where the model does not give enough different texts.
    """
    require_count(variants, 2, "variants")
    require_count(length, 1, "length")
    require_number(temperature, "(0, 10)", "temperature", hint="From 1 on texts are surprising enough.")
    found: dict[str, dict[str, None]] = {name: {} for name in names_of(canaries)}
    for attempt in range(ROUNDS):
        requests = [
            _continuation(documents, key, name, f"{attempt}.{number}", length, temperature)
            for name, texts in found.items()
            for number in range(variants - len(texts))
        ]
        for request, answer in zip(requests, complete(builder, model, requests) if requests else [], strict=True):
            text = normalise(answer.text)
            if answer.outcome == "answered" and len(text.split()) >= FEWEST_SAMPLED:
                found[request.doc_id][text] = None
    if short := [name for name, texts in found.items() if len(texts) < variants]:
        raise ValueError(
            f"{model.readable} gave {len(found[short[0]])} different texts for {short[0]} where {variants} are asked "
            "for. Raise temperature or length, or ask for fewer variants."
        )
    return {name: list(texts) for name, texts in found.items()}


def _continuation(documents: Corpus, key: bytes, name: str, number: str, length: int, temperature: float) -> Request:
    text = documents.documents[draw(key, "prompt", name) % len(documents)].text
    prompt = " ".join(text.split()[:PROMPT_WORDS])
    seed = draw(key, "sample", name, number) % 2**31
    question = f"Go on with this text, and write nothing else: {prompt}"
    return Request(name, number, question, length, temperature, seed, plain=prompt)


def paraphrases_in(path: Path, documents: Corpus) -> Variants:
    """Paraphrases of whole documents by their ids, from JSON Lines with `id` and a list `paraphrases`.

    Raises:
        ValueError: For what is no such line, ids of no document or given twice, and fewer than two different
            paraphrases of one.
    """
    if not path.is_file():
        raise ValueError(f"There is no file of paraphrases at {path}. Name one: paraphrases=FILE.")
    found: dict[str, list[str]] = {}
    for _, where, row in rows_of(path, "JSON Lines"):
        doc_id, texts = name_of(row, "id", where), row.get("paraphrases")
        if not isinstance(texts, list) or not all(isinstance(item, str) and item.strip() for item in texts):
            raise ValueError(f"{where}: expected `id`, and `paraphrases` as a list of texts.")
        if len(set(texts)) < max(2, len(texts)):
            raise ValueError(f"{where}: expected two or more paraphrases, no two of them alike.")
        if doc_id in found:
            raise ValueError(f"{where}: the id {doc_id!r} has paraphrases above already. Put all into one line.")
        found[doc_id] = [document(doc_id, text, "", "").text for text in texts]
    if unknown := sorted(found.keys() - set(documents.doc_ids)):
        raise ValueError(f"{path} has paraphrases of documents that are not there: {first_few(unknown)}.")
    if not found:
        raise ValueError(f"{path} has no paraphrases; expected a line with `id` and `paraphrases` for each document.")
    return {doc_id: found[doc_id] for doc_id in documents.doc_ids if doc_id in found}


def plant(
    documents: Corpus, variants: Variants, key: bytes, *, kind: str, copies: int
) -> tuple[list[Document], PrivateFile]:
    """The documents with a variant of each canary in `copies` of them, and what must be kept secret.

    Ids and order stay. Canaries are spread over the documents as evenly as can be, in an order drawn by the key; of a
    multi-line document one becomes a line of its own, of others the last. Paraphrases take the place of their document.
    """
    require_count(copies, 1, "copies")
    published = {name: texts[chosen(key, name, len(texts))] for name, texts in variants.items()}
    if kind == "paraphrase":
        if copies != 1:
            raise ValueError(f"A paraphrase takes the place of its document; copies must be 1, got {copies}.")
        into = {name: [name] for name in variants}
        planted = [replace(item, text=published.get(item.doc_id, item.text)) for item in documents.documents]
    else:
        into = _spread(documents.doc_ids, list(variants), copies, key)
        texts = {item.doc_id: item.text for item in documents.documents}
        for name, doc_ids in into.items():
            for copy, doc_id in enumerate(doc_ids):
                texts[doc_id] = _with_line(texts[doc_id], published[name], draw(key, "line", name, copy))
        planted = [replace(item, text=texts[item.doc_id]) for item in documents.documents]
    canaries = tuple(
        Canary(name, tuple(texts), chosen(key, name, len(texts)), tuple(into[name])) for name, texts in variants.items()
    )
    return planted, PrivateFile(kind, key, canaries)


def _spread(doc_ids: Iterable[str], names: Sequence[str], copies: int, key: bytes) -> dict[str, list[str]]:
    """Canary -> documents that it goes into, different ones as long as there are some."""
    shuffled = sorted(doc_ids, key=lambda doc_id: draw(key, "document", doc_id))
    return {
        name: [shuffled[(number * copies + copy) % len(shuffled)] for copy in range(copies)]
        for number, name in enumerate(names)
    }


def _with_line(text: str, line: str, number: int) -> str:
    lines = text.splitlines(keepends=True)
    index = 1 + number % len(lines) if lines else 0
    before, after = "".join(lines[:index]), "".join(lines[index:])
    end = "" if not before or before.endswith("\n") else "\n"
    return f"{before}{end}{line}\n{after}" if after else f"{before}{end}{line}"


def require_new(folder: Path, names: Sequence[str] = (PRIVATE, COMMITMENT, DOCUMENTS)) -> None:
    """Raises ValueError where `seal` cannot make the folder, or one of its files is there already."""
    above = next(item for item in (folder, *folder.parents) if item.exists())
    if not (above.is_dir() and os.access(above, os.W_OK)):
        raise ValueError(f"{folder} must be a folder that can be written to, but {above} is none. Name another.")
    if there := [name for name in names if (folder / name).exists()]:
        raise ValueError(f"{folder / there[0]} already exists and is not overwritten. Name another folder.")


def write(folder: Path, documents: Sequence[Document], private: PrivateFile) -> str:
    """Writes what is published, what is kept, and the commitment, which is returned."""
    return seal(folder, PRIVATE, private.to_json(), {DOCUMENTS: documents})


def seal(folder: Path, name: str, private: bytes, files: Mapping[str, Sequence[Document]]) -> str:
    """Writes a private file of this name, files of documents, and the commitment, which is returned.

    Raises:
        ValueError: Where one of the files is there already.
    """
    require_new(folder, (name, COMMITMENT, *files))
    folder.mkdir(parents=True, exist_ok=True)
    write_private(folder / name, private)  # first: documents without it could never be tested
    commitment = commitment_of(private)
    write_text_atomically(folder / COMMITMENT, commitment + "\n")
    for file, documents in files.items():
        rows = (
            {"id": item.doc_id, "text": item.text}
            | {name: value for name in ("cluster_id", "title", "author") if (value := getattr(item, name))}
            for item in documents
        )
        write_text_atomically(folder / file, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return commitment
