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
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

CONTEXT = 256  # characters before an identifier that are read with it, some 64 tokens
LOWER, UPPER, DIGITS = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
HEX, BASE62 = f"{DIGITS}abcdef", f"{DIGITS}{UPPER}{LOWER}"
BASE64, BASE64_URL = f"{BASE62}+/", f"{BASE62}-_"
_START, _END = r"(?<![0-9A-Za-z])", r"(?![0-9A-Za-z])"
_SHORT = rf"(?i:\bcommit(?:s|ted)?\b)(?: (?:hash|id))?[^0-9A-Za-z]{{1,4}}([0-9a-f]{{7,12}}){_END}"
# Form -> the characters of which it is made, and where it stands: the group is what was drawn. What a program computes
# from it, or chose itself (prefixes, checksums, the ends of keys), is left to the context or to what follows.
FORMS: dict[str, tuple[str, list[str]]] = {
    "hash": (HEX, [rf"(?:{_START}|(?<=\b0x))((?i:[0-9a-f]{{64}}|[0-9a-f]{{40}}|[0-9a-f]{{32}})){_END}"]),
    "UUID": (
        HEX,
        [rf"{_START}((?i:[0-9a-f]{{8}}-[0-9a-f]{{4}}-4[0-9a-f]{{3}}-[89ab][0-9a-f]{{3}}-[0-9a-f]{{12}})){_END}"],
    ),
    "commit": (HEX, [_SHORT]),
    "key": (
        BASE62,
        [rf"{_START}sk-(?:proj-)?([0-9A-Za-z]{{20}})", rf"{_START}gh[opsu]_([0-9A-Za-z]{{30}})(?=\w{{6}}\b)"],
    ),
    "public key": (
        BASE64,
        [
            r"AAAAB3NzaC1yc2EAAAADAQABAAAB[0-9A-Za-z+/]{8}([0-9A-Za-z+/]{64})",
            r"AAAAC3NzaC1lZDI1NTE5AAAAI[0-9A-Za-z+/]{2}([0-9A-Za-z+/]{40})",
        ],
    ),
    "short URL": (BASE62, [rf"\bt\.co/([0-9A-Za-z]{{10}}){_END}", rf"\bgoo\.gl/([0-9A-Za-z]{{6}}){_END}"]),
    "video": (BASE64_URL, [r"\byoutu(?:\.be/|be\.com/watch\?v=)([\w-]{10})(?=[\w-](?![\w-]))"]),
}
_PATTERNS = [(form, re.compile(item, re.ASCII)) for form, (_, patterns) in FORMS.items() for item in patterns]
_ROWS = (f"{DIGITS}{LOWER}", f"{DIGITS}{LOWER}"[::-1])  # of which documentation makes examples
_EXAMPLES = {"550e8400-e29b-41d4-a716-446655440000", "919108f7-52d1-4320-9bac-f847db4148a8"}  # of RFC 4122 and 9562
_RUN = 6  # characters in a row that no chance puts there
_SAME = 7  # first characters by which an identifier is known again, as git's abbreviated ones are
_HASHED = """|hello|hello world|Hello World|Hello, World!|hello world!|Hello World!|test|password|admin|root|secret|foo\
|bar|0|123456|12345678|null|{}|[]|abc|abcdefghijklmnopqrstuvwxyz|message digest|blob 0\0|tree 0\0\
|The quick brown fox jumps over the lazy dog|The quick brown fox jumps over the lazy dog."""


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
            context = text[max(0, start - CONTEXT) : start]
            if string.lower() in known:
                reason = "a hash of known text"
            else:
                reason = _unfit(form, string, context) or ("repeated" if string.lower()[:_SAME] in seen else "")
            if reason:
                left_out[reason] += 1
            else:
                found.append(Identifier(f"{form}:{doc_id}:{start}", form, context, string))
            seen.add(string.lower()[:_SAME])
    return found, left_out


def alternatives(item: Identifier, number: int, seed: int) -> list[str]:
    """So many strings of the same form, each as likely as any other that `find` would have taken in its place."""
    alphabets = _alphabets(item.form, item.text)
    return [_drawn(item, alphabets, [seed, item.name, index]) for index in range(number)]


def _drawn(item: Identifier, alphabets: Sequence[str], of: list[object]) -> str:
    def candidate(attempt: int) -> str:
        digits = hashlib.shake_256(json.dumps([*of, attempt]).encode()).digest(8 * len(alphabets))
        numbers = (int.from_bytes(digits[8 * index : 8 * index + 8], "big") for index in range(len(alphabets)))
        return "".join(alphabet[number % len(alphabet)] for alphabet, number in zip(alphabets, numbers, strict=True))

    return next(drawn for drawn in map(candidate, itertools.count()) if not _unfit(item.form, drawn, item.context))


def _alphabets(form: str, string: str) -> list[str]:
    """Of each character, those it might have been: the bits that say that a UUID is of version 4 are fixed, with and
    without dashes."""
    alphabet = FORMS[form][0]
    if alphabet != HEX:
        return [alphabet] * len(string)
    found = ["-" if item == "-" else HEX for item in string.lower()]
    version, variant = (14, 19) if form == "UUID" else (12, 16)
    if form == "UUID" or (len(string) == 32 and string[version] == "4" and string[variant] in "89abAB"):
        found[version], found[variant] = "4", "89ab"
    return [item.upper() for item in found] if string == string.upper() else found


def _unfit(form: str, string: str, context: str) -> str:
    """Why it is left out; empty where it is not. The same holds for what is drawn, so that both are drawn alike."""
    classes = [item for item in (DIGITS, UPPER, LOWER) if set(item) & set(FORMS[form][0])]
    if FORMS[form][0] == HEX:
        classes = [DIGITS, HEX[10:].upper() if string == string.upper() else HEX[10:]]
    if not all(set(string) & set(item) for item in classes):
        return "digits only" if string.isdigit() else "letters only, or words"
    if FORMS[form][0] == HEX and string not in (string.lower(), string.upper()):
        return "small and capital letters"
    lower = string.lower()
    runs = [lower[index : index + _RUN] for index in range(len(lower) - _RUN + 1)]
    if lower in _EXAMPLES or any(len(set(run)) == 1 or any(run in row for row in _ROWS) for run in runs):
        return "a row of characters, or an example"
    return "repeated" if any(run in context.lower() for run in runs) else ""


def _digests(text: str) -> set[str]:
    """Of the words and lines of a text and of strings that are often hashed."""
    known = {*_HASHED.split("|"), *text.split(), *re.findall(r"\w+", text), *text.splitlines()}
    inputs = [item.encode("utf-8", "surrogatepass") + end for item in known for end in (b"", b"\n")]
    return {make(item).hexdigest() for item in inputs for make in (hashlib.md5, hashlib.sha1, hashlib.sha256)}
