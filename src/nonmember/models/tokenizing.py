"""Tokenizers are made by others: every call of one goes through `encoded`, which names the text that it fails at. What
is tried when one is loaded is in `tokenizer_checks`."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

PROBE = "The quick brown fox jumps over the lazy dog, 12 times: naïve café, 中文; (x + y) != 'z'\n\tEnd."
MOST_IDS_PER_BYTE = 16  # of a text; byte-level tokenizers have one
FEW_IDS = 2**17  # which harm nobody, whatever they are made of
PATIENCE, BYTES_PER_SECOND = 120.0, 20_000  # seconds for any call, and the slowest that is waited for beyond these


class UnreadableText(ValueError):
    """A text that a tokenizer cannot read. index: its place among those that were given."""

    def __init__(self, name: str, index: int, why: str, document: str | None = None) -> None:
        which = f"text {index + 1} of those given" if document is None else f"document {document!r}"
        super().__init__(
            f"The tokenizer of {name} cannot read {which}: {why}. Leave the document out, or mend the tokenizer."
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
        UnreadableText: The tokenizer fails at a text, does not end, or makes far more of it than it holds.
    """
    texts = list(texts)
    if not texts:
        return {"input_ids": [], "offset_mapping": []}
    sizes = [len(text.encode("utf-8", "surrogatepass")) for text in texts]
    seconds = PATIENCE + sum(sizes) / BYTES_PER_SECOND
    try:
        made = _within(seconds, lambda: tokenizer(texts, **options))
    except TimeoutError:
        longest = max(range(len(texts)), key=sizes.__getitem__)
        raise UnreadableText(name_of(tokenizer), longest, f"it did not end within {seconds:.0f} seconds") from None
    except BaseException as error:
        if not is_failure(error):
            raise
        for index, text in enumerate(texts if len(texts) > 1 else ()):
            try:
                encoded(tokenizer, [text], **options)
            except UnreadableText as one:
                raise UnreadableText(one.name, index, one.why) from error
        raise UnreadableText(name_of(tokenizer), 0, _why(error, texts[0])) from error
    for index, (ids, size) in enumerate(zip(made["input_ids"], sizes, strict=True)):
        if len(ids) > max(FEW_IDS, MOST_IDS_PER_BYTE * size):
            raise UnreadableText(name_of(tokenizer), index, f"of its {size:,} bytes it makes {len(ids):,} tokens")
        if None in ids:
            raise UnreadableText(name_of(tokenizer), index, "a part of it has no id, and there is no unknown token")
    return made


def ids_of(tokenizer: Any, texts: Sequence[str], **options: Any) -> list[list[int]]:
    """The ids of each text alone, with special tokens unless add_special_tokens=False; see `encoded`."""
    ids: list[list[int]] = encoded(tokenizer, texts, **options)["input_ids"]
    return ids


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


def _within(seconds: float, run: Callable[[], T]) -> T:
    """What it gives. Raises TimeoutError where it does not end; it then goes on by itself until the process ends, since
    nothing stops a library in the middle of its work."""
    answers: list[tuple[Any, BaseException | None]] = []

    def work() -> None:
        try:
            answers.append((run(), None))
        except BaseException as error:  # raised where it is waited for
            answers.append((None, error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    if not answers:
        raise TimeoutError
    value, error = answers[0]
    if error is not None:
        raise error
    return value


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
