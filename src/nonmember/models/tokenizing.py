"""Tokenizers are made by others: every call of one goes through `encoded`, which names the text that it fails at, and
some things are tried when one is loaded.

What a file leaves switched on by mistake (dropout) is switched off.
"""

from __future__ import annotations

import itertools
import json
import logging
import operator
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

PROBE = "The quick brown fox jumps over the lazy dog, 12 times: naïve café, 中文; (x + y) != 'z'\n\tEnd."
CHARACTERS_PER_TOKEN = 100  # more than any ordinary text has; what is longer is looked at piece by piece
SURELY_WHOLE = 100_000  # characters: so much is always given to the tokenizer at once
SMALLEST_SHARED_VOCABULARY = 0.99  # of the tokens of the suspect set
SURE_TOKENS = 16  # a cut text must have so many more tokens than are kept, so that none of these lies at the cut


class UnreadableText(ValueError):
    """A text that a tokenizer cannot read. index: its place among those that were given."""

    def __init__(self, name: str, index: int, why: str, document: str | None = None) -> None:
        which = f"text {index + 1} of those given" if document is None else f"document {document!r}"
        super().__init__(
            f"The tokenizer of {name} cannot read {which}: {why}. Leave the document out, or correct the tokenizer."
        )
        self.name, self.index, self.why = name, index, why


@contextmanager
def naming(doc_ids: Sequence[str]) -> Iterator[None]:
    """Has a text that cannot be read called by the id of its document. doc_ids: of the texts that are encoded."""
    try:
        yield
    except UnreadableText as error:
        raise UnreadableText(error.name, error.index, error.why, doc_ids[error.index]) from error


def name_of(tokenizer: Any) -> str:
    """For messages."""
    return str(getattr(tokenizer, "name_or_path", "") or "this model")


# Calling a tokenizer -------------------------------------------------------------------------------------------------


def encoded(tokenizer: Any, texts: Sequence[str], **options: Any) -> Any:
    """What the tokenizer makes of the texts; never cut nor padded, whatever its files say, unless `options` ask for it.

    Args:
        tokenizer: of transformers.
        texts: each is read alone.
        options: passed on, as add_special_tokens or return_offsets_mapping.

    Returns:
        Lists by name, of which `input_ids` has the ids of each text.

    Raises:
        UnreadableText: The tokenizer fails at a text.
    """
    texts = list(texts)
    if not texts:
        return {"input_ids": [], "offset_mapping": []}
    try:
        made = tokenizer(texts, **options)
    except BaseException as error:
        if not is_failure(error):
            raise
        for index, text in enumerate(texts if len(texts) > 1 else ()):
            try:
                encoded(tokenizer, [text], **options)
            except UnreadableText as error_of_one:
                raise UnreadableText(error_of_one.name, index, error_of_one.why) from error
        raise UnreadableText(name_of(tokenizer), 0, _why(error, texts[0])) from error
    for index, ids in enumerate(made["input_ids"]):
        if None in ids:
            raise UnreadableText(name_of(tokenizer), index, "a part of it has no id, and there is no unknown token")
    return made


def ids_of(tokenizer: Any, texts: Sequence[str], **options: Any) -> list[list[int]]:
    """The ids of each text alone, with special tokens unless add_special_tokens=False; see `encoded`."""
    ids: list[list[int]] = encoded(tokenizer, texts, **options)["input_ids"]
    return ids


def encode_beginnings(tokenizer: Any, texts: Sequence[str], max_tokens: int | None, **options: Any) -> list[list[int]]:
    """Ids of each text alone, with the tokenizer's own special tokens: the first `max_tokens` of them. So what a
    tokenizer puts behind a text (an end-of-text token, say) is read of texts alone that are not cut.

    Tokenizers read a text to its end before they cut it, and one endless word can take them minutes: of a text that is
    absurdly long for so many tokens, only a beginning that surely holds them is read.
    """
    if max_tokens is not None:
        texts = [sure_beginning(tokenizer, text, max_tokens) for text in texts]
    return [ids[:max_tokens] for ids in ids_of(tokenizer, texts, **options)]


def sure_beginning(tokenizer: Any, text: str, max_tokens: int) -> str:
    """The text, or a beginning of it with the same first `max_tokens` tokens."""
    length = max(SURELY_WHOLE, CHARACTERS_PER_TOKEN * max_tokens)
    while length < len(text):
        if len(ids_of(tokenizer, [text[:length]])[0]) >= max_tokens + SURE_TOKENS:
            return text[:length]
        length *= 4
    return text


def spans_of(tokenizer: Any, conversations: Sequence[str]) -> list[list[tuple[int, int]]]:
    """Where each token of each conversation begins and ends."""
    if not tokenizer.is_fast:
        raise ValueError(
            "Conversations need a tokenizer that says where its tokens lie in a text; one with a tokenizer.json does."
        )
    made = encoded(tokenizer, conversations, add_special_tokens=False, return_offsets_mapping=True)
    return [[(start, end) for start, end in spans] for spans in made["offset_mapping"]]


def is_failure(error: BaseException) -> bool:
    """Whether it is an error of a library. Panics of Rust are no `Exception`; neither are Ctrl-C and its like, which
    are no failures."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _why(error: BaseException, text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return "it holds half a character (a lone surrogate)"
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return line.replace(text, "...").rstrip(".")[:200] if text else line.rstrip(".")[:200]


# What stands around a text -------------------------------------------------------------------------------------------


def around(tokenizer: Any) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Ids that the tokenizer puts before and behind a text; None where it gives other ids to a text with its special
    tokens than without them."""
    for text in _probes(tokenizer):
        whole, own = ids_of(tokenizer, [text])[0], ids_of(tokenizer, [text], add_special_tokens=False)[0]
        for start in range(len(whole) - len(own) + 1 if own else 0):
            if whole[start : start + len(own)] == own:
                return tuple(whole[:start]), tuple(whole[start + len(own) :])
        if own:
            return None
    return (), ()


def _probes(tokenizer: Any) -> Iterator[str]:
    yield PROBE
    yield from itertools.islice(tokenizer.get_vocab(), 100)  # of a vocabulary in which the probe has no token


def read_around(tokenizer: Any) -> dict[str, str | None]:
    """For people: the tokens that are read before each text (bos) and behind each text that is not cut (eos)."""
    front, back = around(tokenizer) or ((), ())
    return {
        name: " ".join(map(str, tokenizer.convert_ids_to_tokens(list(ids)))) or None
        for name, ids in (("bos", front), ("eos", back))
    }


def require_shared_vocabulary(share: float, label: str, other: str, purpose: str) -> None:
    """share: of the documents' tokens that two models read alike, as `read_alike` gives it."""
    if share < SMALLEST_SHARED_VOCABULARY:
        raise ValueError(
            f"Only {share:.1%} of the documents' tokens are the same in the tokenizers of both {label} and {other}; "
            f"{purpose} {SMALLEST_SHARED_VOCABULARY:.0%}. Choose a reference with the target's tokenizer."
        )


def lasting(tokenizer: Any) -> str:
    """What a fast tokenizer is, without truncation and padding, which are as they were last used and stand before."""
    described: str = tokenizer.backend_tokenizer.to_str()
    return described[described.index('"added_tokens"') :]


log = logging.getLogger(__name__)

# What is tried when one is loaded -------------------------------------------------------------------------------------

SAMPLED_TOKENS, FEWEST_WORDS = 2000, 50  # of the vocabulary, evenly; with fewer words among them it is not judged
LETTERS_OF_A_WORD, LEAST_WHOLE = 4, 0.3


def prepared(tokenizer: Any, bos: str = "auto", name: str = "this model") -> Any:
    """The same tokenizer, changed so that it reads each text whole and alike each time.

    Args:
        tokenizer: of transformers.
        bos: of `base.BOS`.
        name: of the model, for messages.

    Raises:
        ValueError: It cuts the words of its own vocabulary into pieces, or has no beginning-of-text token where one is
            wanted.
    """
    try:
        tokenizer.truncation_side = "right"
        if tokenizer.is_fast:
            _switch_off_draws(tokenizer)
        _require_merges(tokenizer)
        if bos != "auto":
            _set_front(tokenizer, bos)
    except BaseException as error:  # whatever tokenizers say of files that are not ours
        if not is_failure(error):
            raise
        raise ValueError(f"The tokenizer of {name} cannot be used: {error}") from error
    return tokenizer


def _set_front(tokenizer: Any, bos: str) -> None:
    """Have every text read with a beginning-of-text token, or without one. bos: always or never."""
    marks = around(tokenizer)
    if marks is None:
        raise ValueError("It gives a text different ids with special tokens than without. Use tokens.bos=auto.")
    now, back = marks
    if bool(now) == (bos == "always"):
        return
    if bos == "always" and tokenizer.bos_token_id is None:
        raise ValueError("It has no beginning-of-text token (bos_token). Use tokens.bos=auto, or give it one.")
    if not tokenizer.is_fast:
        raise ValueError("It can only be chosen for tokenizers with a tokenizer.json (tokens.bos). Save it as one.")
    from tokenizers import processors

    front = [tokenizer.bos_token_id] if bos == "always" else []
    pieces = [*tokenizer.convert_ids_to_tokens(front), "$A", *tokenizer.convert_ids_to_tokens(list(back))]
    special = {tokenizer.convert_ids_to_tokens(item): item for item in (*front, *back)}
    # As lists, since tokens may hold blanks and colons, which a template in one piece of text would be cut at.
    template = processors.TemplateProcessing(single=pieces, pair=[*pieces, "$B"], special_tokens=list(special.items()))
    backend = tokenizer.backend_tokenizer
    steps = _steps(json.loads(backend.to_str())["post_processor"])
    offsets = [item for item in steps if item["type"] == "ByteLevel"]
    kept = [processors.ByteLevel(trim_offsets=item["trim_offsets"]) for item in offsets]
    backend.post_processor = processors.Sequence([*kept, template]) if kept else template


def _require_merges(tokenizer: Any) -> None:
    """The words of a vocabulary are read as themselves, but for a few. Where a conversion lost or reordered the merges
    (of 201 words of Gemma 3, transformers 5.17 made two so from a GGUF file, and 5.23 all), texts are cut into pieces
    that the model was not trained on, and every score is another."""
    vocabulary = sorted(tokenizer.get_vocab().items(), key=operator.itemgetter(1))
    words: dict[int, str] = {}
    for token, index in vocabulary[:: max(1, len(vocabulary) // SAMPLED_TOKENS)]:
        word = tokenizer.convert_tokens_to_string([token]).strip()
        if len(word) >= LETTERS_OF_A_WORD and word.isascii() and word.isalpha():
            words[index] = word
    texts = [text for word in words.values() for text in (word, f" {word}")]
    try:
        ids = ids_of(tokenizer, texts, add_special_tokens=False)
    except UnreadableText:  # of a vocabulary without a blank and an unknown token, which documents may do without
        return
    num_whole = sum(index in ids[2 * i] or index in ids[2 * i + 1] for i, index in enumerate(words))
    if len(words) >= FEWEST_WORDS and num_whole < LEAST_WHOLE * len(words):
        raise ValueError(
            f"It reads {num_whole} of {len(words)} words of its own vocabulary as one token each, and cuts the others "
            "into pieces: its merges are not those that the model was trained with. Where it was converted (from a "
            "GGUF file, say), install the newest transformers, or take the model's own tokenizer.json."
        )


def _switch_off_draws(tokenizer: Any) -> None:
    """Dropout of merges serves training alone; files keep it when they are saved in the middle of it."""
    model = tokenizer.backend_tokenizer.model
    drawn = [name for name in ("dropout", "alpha", "nbest_size") if getattr(model, name, None)]
    for name in drawn:
        log.warning(
            "The tokenizer of %s draws its tokens at random (%s = %s), which serves training; it was switched off.",
            name_of(tokenizer),
            name,
            getattr(model, name),
        )
        setattr(model, name, None)


def _steps(state: Any) -> list[Mapping[str, Any]]:
    """Of a post-processor, as tokenizer.json has it: those of which it consists."""
    if not state:
        return []
    return [step for item in state["processors"] for step in _steps(item)] if "processors" in state else [state]
