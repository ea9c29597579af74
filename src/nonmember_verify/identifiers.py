"""Identifiers in documents (hashes, UUIDs, keys, commits, short URLs), which chance chose, and others of the same form
that it might have chosen, drawn now: who audits and who verifies find and draw the same.

    character i of alternative j = digit i of SHAKE-256(seed, identifier, j, attempt), modulo the size of its alphabet

Source: Rossi et al. 2026 (arXiv 2606.24408).
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import struct
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

CONTEXT = 256  # characters before an identifier that are read with it, some 64 tokens
HEX = "0123456789abcdef"
_TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
FORMS: dict[str, str] = {form: row["alphabet"] for form, row in _TABLE["forms"].items()}
_PATTERNS = [(form, re.compile(item, re.ASCII)) for form, row in _TABLE["forms"].items() for item in row["patterns"]]
_ROW = "0123456789abcdefghijklmnopqrstuvwxyz"  # of which documentation makes examples, and backwards
_RUN = 6  # characters in a row that no chance puts there
_SAME = 7  # first characters by which an identifier is known again, as git's abbreviated ones are


@dataclass(frozen=True)
class Identifier:
    """name: form, document and place, with colons between.   context: what stands before it."""

    name: str
    form: str
    context: str
    text: str


def find(documents: Iterable[tuple[str, str]]) -> tuple[list[Identifier], Counter[str]]:
    """The identifiers of documents (ids and texts), in order, each where it comes first; and reason -> how many strings
    of a form were left out."""
    found: list[Identifier] = []
    left_out: Counter[str] = Counter()
    seen: set[str] = set()
    for doc_id, text in documents:
        places = sorted({(match.start(1), match[1], form) for form, item in _PATTERNS for match in item.finditer(text)})
        known = _digests(text) if places else set()
        for start, string, form in places:
            item = Identifier(f"{form}:{doc_id}:{start}", form, text[max(0, start - CONTEXT) : start], string)
            begins = string.lower()[:_SAME]
            reason = "a hash of known text" if string.lower() in known else _unfit(item, string)
            if reason := reason or ("repeated" if begins in seen else ""):
                left_out[reason] += 1
            else:
                found.append(item)
            seen.add(begins)
    return found, left_out


def alternatives(item: Identifier, number: int, seed: int) -> list[str]:
    """So many strings of the same form, each as likely as any other that `find` would have taken in its place."""
    alphabets = _alphabets(item)

    def candidates(index: int) -> Iterator[str]:
        for attempt in itertools.count():
            digits = hashlib.shake_256(json.dumps([seed, item.name, index, attempt]).encode())
            numbers = struct.unpack(f">{len(alphabets)}Q", digits.digest(8 * len(alphabets)))
            yield "".join(alphabet[number % len(alphabet)] for alphabet, number in zip(alphabets, numbers, strict=True))

    return [next(drawn for drawn in candidates(index) if not _unfit(item, drawn)) for index in range(number)]


def _alphabets(item: Identifier) -> list[str]:
    """Of each character, those it might have been: the bits that say that a UUID is of version 4 are fixed, with and
    without dashes."""
    string, alphabet = item.text, FORMS[item.form]
    found = [char if char == "-" and alphabet == HEX else alphabet for char in string]
    version, variant = (14, 19) if item.form == "UUID" else (12, 16)
    if alphabet == HEX and len(string) in (32, 36) and string[version] == "4" and string[variant] in "89abAB":
        found[version], found[variant] = "4", "89ab"
    return [char.upper() for char in found] if alphabet == HEX and string == string.upper() else found


def _unfit(item: Identifier, string: str) -> str:
    """Why a string in its place is left out; empty where it is not. The same holds for what is drawn, so that both are
    drawn alike."""
    kinds, lower = [any(map(kind, string)) for kind in (str.isdigit, str.isupper, str.islower)], string.lower()
    if sum(kinds) < (2 if FORMS[item.form] == HEX else 3):
        return "digits only" if string.isdigit() else "letters only, or words"
    if FORMS[item.form] == HEX and string not in (lower, string.upper()):
        return "small and capital letters"
    runs = [lower[index : index + _RUN] for index in range(len(lower) - _RUN + 1)]
    if lower in _TABLE["examples"] or any(len(set(run)) == 1 or run in _ROW or run in _ROW[::-1] for run in runs):
        return "a row of characters, or an example"
    return "repeated" if any(run in item.context.lower() for run in runs) else ""


def _digests(text: str) -> set[str]:
    """Of the words and lines of a text and of strings that are often hashed."""
    known = {*_TABLE["hashed"], *text.split(), *re.findall(r"\w+", text), *text.splitlines()}
    inputs = [item.encode("utf-8", "surrogatepass") + end for item in known for end in (b"", b"\n")]
    return {make(item).hexdigest() for item in inputs for make in (hashlib.md5, hashlib.sha1, hashlib.sha256)}
