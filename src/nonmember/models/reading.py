"""Truncation: which part of each text is scored, and how many tokens are cut."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from nonmember.artifacts import Builder, Spec
from nonmember.artifacts.planner import NotMade
from nonmember.artifacts.store import key_hash
from nonmember.corpora import CorpusSpec
from nonmember.models.base import ModelSpec
from nonmember.models.lengths import lengths_of
from nonmember.models.tokenizing import around, encode_beginnings, encoded, ids_of, naming, spans_of, sure_beginning
from nonmember.records import Document
from nonmember.records.spans import scored_spans, turns_of

LONGEST_COUNTED = 1_000_000  # characters: of longer texts that are cut the tokens are not counted
NUM_SAMPLED = 200  # documents whose tokens are counted where a number is only expected
USUAL_CHARACTERS_PER_TOKEN = 3  # where the tokenizer is still to be made, of a small vocabulary then
MOST_UNKNOWN = 0.5  # share of the tokens
DEFAULT_WINDOW = 2048
LARGEST_LIMIT = 10**9  # some configurations and tokenizers name absurd numbers for "no limit"
# What configurations call the number of positions; transformers gives most of them the first name too.
POSITIONS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "max_sequence_length",
    "n_ctx",
    "seq_length",
    "max_target_positions",
)
# Types that have recurrence, or biases by distance, in place of positions, whatever their files say beside.
WITHOUT_POSITIONS = {"bloom", "cpmant", "falcon_mamba", "mamba", "mamba2", "recurrent_gemma", "rwkv", "xlnet", "xlstm"}


@dataclass(frozen=True)
class TextsRead:
    """Per document, in the order of the texts.

    parts: what is read of each; the very text where nothing is cut.   num_read: tokens read, the first one and special
    ones included.   num_all: tokens there are; None for a cut text too long to be counted.   num_special: texts with
    special tokens in their midst.   unknown: share of the tokens that are unknown ones.   keeps_case: whether capitals
    are other tokens than small letters.   num_assistant: of conversations, the assistant's tokens that are read; their
    parts are what it says.   num_returns: texts with Windows line ends.
    """

    parts: tuple[str, ...]
    num_read: tuple[int, ...]
    num_all: tuple[int | None, ...]
    num_special: int = 0
    unknown: float = 0.0
    keeps_case: bool = True
    num_assistant: tuple[int, ...] | None = None
    num_returns: int = 0

    @property
    def num_scored(self) -> list[int]:
        """The first token has nothing before it; of conversations the assistant's alone count."""
        return [max(0, number - 1) for number in self.num_read] if self.num_assistant is None else [*self.num_assistant]

    @property
    def is_cut(self) -> tuple[bool, ...]:
        return tuple(read != there for read, there in zip(self.num_read, self.num_all, strict=True))

    @property
    def warnings(self) -> list[str]:
        sentences = []
        if self.num_special:
            sentences.append(
                f"{self.num_special} of {len(self.parts)} documents hold text that is read as special tokens, such as "
                "an end of text in their midst; it is read so under all models with this tokenizer. Take it out if it "
                "is not meant."
            )
        if self.num_returns:
            sentences.append(
                f"{self.num_returns} of {len(self.parts)} documents have Windows line ends (\\r\\n), which are other "
                "tokens than \\n and move scores. Write all texts alike, as the model is likely to have read them."
            )
        if self.unknown > MOST_UNKNOWN:
            sentences.append(
                f"{self.unknown:.0%} of the tokens read are unknown ones, which are all alike: the scores say little "
                "about the texts. Check that the tokenizer is the model's own."
            )
        if not self.keeps_case:
            sentences.append("The tokenizer reads capitals as small letters, so that the score lowercase says nothing.")
        return sentences


@dataclass(frozen=True)
class Read(Spec[TextsRead]):
    """What `model` reads of the documents of `corpus`. In the store is a note of it, with the parts of what is cut."""

    model: ModelSpec
    corpus: CorpusSpec
    max_tokens: int

    stored: ClassVar[bool] = False

    def key(self, builder: Builder) -> dict[str, Any]:
        model, corpus = self.model.key(builder), self.corpus.fingerprint(builder)
        return {"read": self.max_tokens, "model": model, "corpus": corpus}

    def build(self, builder: Builder) -> TextsRead:
        texts = [document.text for document in builder.get(self.corpus).documents]

        def find() -> dict[str, Any]:
            read = self._read(builder)
            others = {str(index): part for index, part in enumerate(read.parts) if part != texts[index]}
            return {**vars(read), "parts": others}

        noted = builder.noted("read", self.key(builder), find)
        noted = {name: tuple(value) if isinstance(value, list) else value for name, value in noted.items()}
        parts = tuple(noted["parts"].get(str(index), text) for index, text in enumerate(texts))
        return TextsRead(**{**noted, "parts": parts})

    def _read(self, builder: Builder) -> TextsRead:
        from nonmember.models.encoding import ids_of_corpus

        tokenizer, corpus = self.model.load_tokenizer(builder), builder.get(self.corpus)
        with naming(corpus.doc_ids):
            if corpus.has_conversations:
                return conversations_read(tokenizer, corpus.documents, self.max_tokens)
            kept = ids_of_corpus(tokenizer, corpus, self.max_tokens)
            return texts_read(tokenizer, [document.text for document in corpus.documents], self.max_tokens, kept)


def texts_read(
    tokenizer: Any, texts: Sequence[str], max_tokens: int, kept: Sequence[Sequence[int]] | None = None
) -> TextsRead:
    """What is left of texts that are cut behind `max_tokens` tokens.   kept: the ids of that."""
    kept = encode_beginnings(tokenizer, texts, max_tokens) if kept is None else kept
    parts, num_all = list(texts), [len(ids) for ids in kept]
    counts: list[int | None] = [*num_all]
    for index, ids in enumerate(kept):
        if len(ids) < max_tokens:
            continue
        long = len(texts[index]) > LONGEST_COUNTED
        counts[index] = None if long else len(ids_of(tokenizer, [texts[index]])[0])
        if counts[index] != len(ids):
            parts[index] = _beginning(tokenizer, texts[index], ids, max_tokens)
    num_returns = sum("\r\n" in text for text in texts)
    return TextsRead(tuple(parts), tuple(num_all), tuple(counts), *_oddities(tokenizer, kept), num_returns=num_returns)


def conversations_read(tokenizer: Any, documents: Sequence[Document], max_tokens: int) -> TextsRead:
    """What is left of conversations that are cut behind `max_tokens` tokens."""
    spans = spans_of(tokenizer, [document.text for document in documents])
    read = [item[:max_tokens] for item in spans]
    parts, num_assistant = [], []
    for document, kept in zip(documents, read, strict=True):
        end = max((last for _, last in kept), default=0)
        turns = turns_of(document.pieces)
        parts.append("".join(document.text[first : min(last, end)] for first, last in turns if first < end))
        num_assistant.append(sum(scored_spans(document.pieces, kept)[1:]))
    return TextsRead(
        tuple(parts),
        tuple(map(len, read)),
        tuple(map(len, spans)),
        num_assistant=tuple(num_assistant),
        num_returns=sum("\r\n" in document.text for document in documents),
    )


def _oddities(tokenizer: Any, kept: Sequence[Sequence[int]]) -> tuple[int, float, bool]:
    front, back = around(tokenizer) or ((), ())
    special, unknown = set(getattr(tokenizer, "all_special_ids", ())), getattr(tokenizer, "unk_token_id", None)
    inner = [_without(ids[len(front) :], back) for ids in kept]
    num_special = sum(not (special - {unknown}).isdisjoint(ids) for ids in inner)
    num_tokens = sum(map(len, inner))
    num_unknown = sum(ids.count(unknown) for ids in inner) if unknown is not None else 0
    large, small = ids_of(tokenizer, ["ABC", "abc"])
    return num_special, num_unknown / max(1, num_tokens), large != small


def _without(ids: Sequence[int], back: tuple[int, ...]) -> Sequence[int]:
    return ids[: len(ids) - len(back)] if tuple(ids[len(ids) - len(back) :]) == back else ids


def _beginning(tokenizer: Any, text: str, ids: Sequence[int], max_tokens: int) -> str:
    """The text up to the end of the last token kept; where the tokenizer does not say where that is, as it is written
    by the tokens."""
    if not getattr(tokenizer, "is_fast", False):
        return str(tokenizer.decode(ids, skip_special_tokens=True))
    head = text if len(text) <= LONGEST_COUNTED else sure_beginning(tokenizer, text, max_tokens)
    (offsets,) = encoded(tokenizer, [head], return_offsets_mapping=True)["offset_mapping"]
    return text[: max((end for _, end in offsets[:max_tokens]), default=0)]


def expected_tokens(builder: Builder, model: ModelSpec, corpus: CorpusSpec, max_tokens: int | None) -> int | None:
    """About how many tokens the documents have for the model: counted in some of them. None where that cannot be known
    without making a corpus or asking a model."""
    if not model.has_weights:
        return None
    root = model.root()

    def count() -> int:
        texts = [document.text for document in builder.get(corpus).documents]
        some = texts[:: max(1, len(texts) // NUM_SAMPLED)]
        try:
            sizes = [len(ids) for ids in encode_beginnings(root.load_tokenizer(builder), some, max_tokens)]
        except NotMade:
            sizes = [len(text) // USUAL_CHARACTERS_PER_TOKEN for text in some]
            sizes = [min(size, max_tokens) if max_tokens else size for size in sizes]
        return round(sum(sizes) * len(texts) / max(1, len(some)))

    try:
        name = ("expected tokens", key_hash(root.key(builder)), corpus.fingerprint(builder), max_tokens)
    except NotMade:
        return None
    return builder.resource(name, count)


def position_limit(config: Any) -> int | None:
    """Tokens that a model of this transformers configuration reads at once; None: it sets no limit.

    Asked of rotary embeddings that stretch, then of the first attribute that holds a number. What is no positive number
    (-1, as XLNet has it) or absurdly large stands for no limit.
    """
    text = config.get_text_config()
    if most := lengths_of(config).most:
        return most
    if getattr(text, "model_type", None) in WITHOUT_POSITIONS:
        return None
    for name in POSITIONS:
        value = getattr(text, name, None)
        if isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value):
            return int(value) if 0 < value <= LARGEST_LIMIT else None
    return None
