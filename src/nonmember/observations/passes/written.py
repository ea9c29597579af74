"""Generated texts on disk while they are written: one file per process, so that a stopped run resumes.

A line holds name, text, finished, num_tokens and top_logprobs, and a checksum at its end.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nonmember.runtime.files import write_text_atomically

log = logging.getLogger(__name__)

_PART = ".written-{}.jsonl"
_CHECKSUM_LENGTH = 16


class Written(NamedTuple):
    """What was written after one prompt.

    text: without special tokens.   finished: the model itself ended it.   num_tokens: its end included.
    top_logprobs: per token, pairs of a token's text and its log-probability, the likeliest first.
    """

    text: str
    finished: bool
    num_tokens: int
    top_logprobs: tuple[tuple[tuple[str, float], ...], ...]


def part_of(folder: Path, rank: int) -> Path:
    """Where one process writes."""
    return folder / _PART.format(rank)


def read_all(folder: Path) -> dict[str, Written]:
    written: dict[str, Written] = {}
    for part in sorted(folder.glob(_PART.format("*"))):
        written |= read_part(part)
    return written


def line_of(part: Path, values: Sequence[Any]) -> str:
    """values: name, text, finished, num_tokens, top_logprobs. The checksum comes last."""
    return json.dumps([*values, _checksum(part, values)]) + "\n"


def read_part(part: Path) -> dict[str, Written]:
    """What was written, of lines that are whole alone: the last one of a killed process may be cut, and what was
    damaged, or copied from elsewhere, is written anew."""
    if not part.is_file():
        return {}
    lines = part.read_bytes().splitlines(keepends=True)
    whole = [values for values in (_values_of(part, line) for line in lines) if values is not None]
    if len(whole) < len(lines):
        if len(whole) < sum(line.endswith(b"\n") for line in lines):
            log.warning("%s: %d lines are damaged and are written anew.", part, len(lines) - len(whole))
        # Else the next line would be written behind a cut one.
        write_text_atomically(part, "".join(line_of(part, values) for values in whole))
    return {name: _written(*rest) for name, *rest in whole}


def _values_of(part: Path, line: bytes) -> list[Any] | None:
    try:
        *values, checksum = json.loads(line)
        return values if line.endswith(b"\n") and checksum == _checksum(part, values) else None
    except (ValueError, TypeError):
        return None


def _checksum(part: Path, values: Sequence[Any]) -> str:
    """Of a line, and of the store's entry that is being made there."""
    entry = next((name for name in reversed(part.parts) if name.startswith(".partial-")), part.parent.name)
    return hashlib.sha256(json.dumps([entry, *values]).encode()).hexdigest()[:_CHECKSUM_LENGTH]


def _written(text: str, finished: bool, num_tokens: int, top: Sequence[Sequence[Sequence[Any]]]) -> Written:
    return Written(text, finished, num_tokens, tuple(tuple((item, value) for item, value in step) for step in top))
