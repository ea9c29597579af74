"""Texts become ids: by one tokenizer once, and by two as far as they agree."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from nonmember.models.forward import Ids
from nonmember.models.hub import identity_of_shared
from nonmember.models.tokenizing import UnreadableText, around, encode_beginnings, ids_of, lasting, naming, spans_of
from nonmember.records import Corpus, Document, Stream
from nonmember.records.spans import Spans, scored_spans
from nonmember.runtime.progress import Stage

if TYPE_CHECKING:
    from nonmember.models.loading import LoadedModel

ENCODED_AT_ONCE = 1000
MOST_KEPT = 2_000_000  # tokens of encoded corpora, some 70 MB


def encode(tokenizer: Any, texts: Sequence[str], max_tokens: int | None, **options: Any) -> list[list[int]]:
    """Ids of each text alone, with the tokenizer's own special tokens, cut on the right (methods: text to tokens)."""
    ids: list[list[int]] = []
    with Stage("encoding", len(texts), "documents") as stage:
        for start in range(0, len(texts), ENCODED_AT_ONCE):  # in parts, so that a signal is heard
            part = texts[start : start + ENCODED_AT_ONCE]
            try:
                ids += encode_beginnings(tokenizer, part, max_tokens, **options)
            except UnreadableText as error:
                raise UnreadableText(error.name, start + error.index, error.why) from error
            stage.advance(len(part))
    return ids


def encode_corpus(loaded: LoadedModel, corpus: Corpus, max_tokens: int | None) -> list[list[int]]:
    """Ids of each document, in the corpus's order; see `encode`. Of a conversation, whose template writes the special
    tokens, without those of the tokenizer. Raises ValueError for a corpus that is streamed."""
    if isinstance(corpus, Stream):
        raise ValueError(
            "A streamed corpus, which is not held in memory, can only be trained on by next-token prediction "
            "(nonmember.training.recipes.Pretraining) and scored (nonmember score). Take a corpus that is not streamed "
            "here, such as a `Select` of it."
        )
    return ids_of_corpus(loaded.tokenizer, corpus, max_tokens)


# Ids of the corpora encoded last, for all models with one tokenizer: those of an audit (target, references, tuned ones)
# read the same documents, some of them several times.
_KEPT: OrderedDict[tuple[Any, ...], list[list[int]]] = OrderedDict()


def ids_of_corpus(tokenizer: Any, corpus: Corpus, max_tokens: int | None) -> list[list[int]]:
    """The same by a tokenizer alone; of fast ones, ids are kept for the next who asks: none may change those of a
    document."""
    with naming(corpus.doc_ids):
        if not getattr(tokenizer, "is_fast", False):  # of others it is not known what they are made of
            return encode_documents(tokenizer, corpus.documents, max_tokens)
        key = *_identity(tokenizer), corpus.fingerprint, max_tokens
        if key not in _KEPT:
            _KEPT[key] = encode_documents(tokenizer, corpus.documents, max_tokens)
        _KEPT.move_to_end(key)
        found = list(_KEPT[key])
        while sum(len(ids) for kept in _KEPT.values() for ids in kept) > MOST_KEPT:
            _KEPT.popitem(last=False)
        return found


def encode_documents(tokenizer: Any, documents: Sequence[Document], max_tokens: int | None) -> list[list[int]]:
    """As `encode_corpus`."""
    found: dict[int, list[int]] = {}
    for is_conversation in (False, True):
        indices = [index for index, item in enumerate(documents) if bool(item.pieces) is is_conversation]
        if not indices:
            continue
        options = {"add_special_tokens": False} if is_conversation else {}
        try:
            ids = encode(tokenizer, [documents[index].text for index in indices], max_tokens, **options)
        except UnreadableText as error:
            raise UnreadableText(error.name, indices[error.index], error.why) from error
        found |= zip(indices, ids, strict=True)
    return [found[index] for index in range(len(documents))]


def scored_tokens(loaded: LoadedModel, corpus: Corpus, max_tokens: int | None) -> list[list[bool]] | None:
    """Which of the ids of `encode_corpus` are scored: all of a plain document; of a conversation those in which the
    assistant says something. None where all are of all documents."""
    if isinstance(corpus, Stream) or not corpus.has_conversations:
        return None
    ids = encode_corpus(loaded, corpus, max_tokens)
    scored = [[True] * len(item) for item in ids]
    talks = [index for index, document in enumerate(corpus.documents) if document.pieces]
    spans = spans_of(loaded.tokenizer, [corpus.documents[index].text for index in talks])
    for index, found in zip(talks, spans, strict=True):
        scored[index] = scored_spans(corpus.documents[index].pieces, found[: len(ids[index])])
    return scored


def _identity(tokenizer: Any) -> tuple[str, str]:
    """All that decides which ids a text gets, but for where it is cut. Computed anew each time of one that its owner
    may change."""
    if (shared := identity_of_shared(tokenizer)) is not None:
        return shared, tokenizer.truncation_side
    return hashlib.sha256(lasting(tokenizer).encode()).hexdigest(), tokenizer.truncation_side


def encode_behind_end_of_text(loaded: LoadedModel, corpus: Corpus, max_tokens: int) -> list[list[int]]:
    """The same with the end-of-text id in front, so that a text's first token is scored too. A tokenizer that puts a
    special token there by itself is left alone."""
    end_of_text, special = loaded.tokenizer.eos_token_id, set(loaded.tokenizer.all_special_ids)
    if end_of_text is None:
        raise ValueError("The tokenizer has no end-of-text token to put before texts. Use prepend_eos=false.")
    return [
        ids if ids and ids[0] in special else [end_of_text, *ids][:max_tokens]
        for ids in encode_corpus(loaded, corpus, max_tokens)
    ]


def token_spans(tokenizer: Any) -> Spans:
    """Where each token of a text begins and ends, special ones left out."""
    if not tokenizer.is_fast:
        raise ValueError("The tokenizer does not say where its tokens lie in a text; one with a tokenizer.json does.")
    return lambda text: spans_of(tokenizer, [text])[0]


def encode_pieces(tokenizer: Any, pieces: Sequence[str]) -> tuple[list[int], list[list[int]]]:
    """Ids of texts that are to be read one after the other: what the tokenizer puts before a text, such as a
    beginning-of-text token, which then stands there once; and the ids of each piece without it."""
    marks = around(tokenizer)
    if marks is None:
        raise ValueError(
            "The tokenizer gives other ids to a text with its special tokens than without them, so that texts cannot "
            "be put together. Choose a model whose tokenizer only adds tokens around a text."
        )
    return list(marks[0]), ids_of(tokenizer, pieces, add_special_tokens=False)


def shared_ids(student: Any, teacher: Any) -> tuple[Ids, Ids]:
    """Ids (student's, teacher's) of the strings both tokenizers have; slices where these are 0, 1, 2 ... in both."""
    ours, theirs = student.get_vocab(), teacher.get_vocab()
    pairs = sorted((ours[string], theirs[string]) for string in ours.keys() & theirs.keys())
    if not pairs:
        raise ValueError(
            "The reference's and the target's tokenizers have no token in common; PRISM needs related ones."
        )
    if all(pair == (index, index) for index, pair in enumerate(pairs)):
        return slice(len(pairs)), slice(len(pairs))
    student_ids, teacher_ids = zip(*pairs, strict=True)
    return torch.tensor(student_ids), torch.tensor(teacher_ids)


def read_alike(ours: Sequence[list[int]], theirs: Sequence[list[int]], shared: Ids) -> tuple[list[list[int]], float]:
    """The documents that have the same ids under both tokenizers, and their share of the tokens.

    ours, theirs: the same texts' ids.   shared: our ids of the strings both have; others do not count in the share.
    """
    alike = [ids for ids, other in zip(ours, theirs, strict=True) if ids == other]
    known = range(shared.stop) if isinstance(shared, slice) else set(shared.tolist())
    total = sum(len(ids) for ids in ours)
    return alike, sum(token in known for ids in alike for token in ids) / total if total else 1.0
