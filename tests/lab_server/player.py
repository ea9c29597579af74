"""A made-up model: it has read some documents and answers questions about them with stated probabilities.

Every draw is a function of the seed and of what was asked, so the same question gets the same answer in any order.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from lab_server.settings import Settings

FILLER = ("time", "people", "water", "house", "light", "music", "river", "paper", "garden", "stone", "window", "summer")
LETTERS = "ABCD"
REFUSAL = "I cannot help with that request."


def uniform(*parts: object) -> float:
    """A draw from [0, 1) that depends on its arguments alone."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


@dataclass(frozen=True)
class Said:
    """text, and the probabilities of its first token where the model weighs some."""

    text: str
    first: Mapping[str, float] = field(default_factory=dict)
    refused: bool = False


@dataclass(frozen=True)
class Player:
    settings: Settings

    @cached_property
    def _documents(self) -> list[tuple[str, bool]]:
        return [(_flat(item["text"]), bool(item["read"])) for item in self.settings.documents]

    def answer(self, prompt: str, max_tokens: int) -> Said:
        """prompt: all turns as one text."""
        settings = self.settings
        if uniform(settings.seed, "refused", prompt) < settings.refused:
            return Said(REFUSAL, refused=True)
        if uniform(settings.seed, "empty", prompt) < settings.empty:
            return Said("")
        if uniform(settings.seed, "unreadable", prompt) < settings.unreadable:
            return Said("As a made-up model I would rather not say.")
        for kind in (self._options, self._rephrasing, self._blank, self._mask, self._judgement, self._continuation):
            if (said := kind(prompt, max_tokens)) is not None:
                return said
        return Said("It is blue.")

    def _probability(self, kind: str, read: bool) -> float:
        return self.settings.hit.get(kind, [0.0, 1.0])[read]

    def _hits(self, kind: str, read: bool, prompt: str) -> bool:
        return uniform(self.settings.seed, kind, prompt) < self._probability(kind, read)

    def _options(self, prompt: str, max_tokens: int) -> Said | None:
        """DE-COP: the letter of the passage it has read, else a letter by its bias. hit: P(knows the passage)."""
        options = dict(re.findall(r"^([A-D])\. (.*?)(?=\n[A-D]\. |\nAnswer|\Z)", prompt, flags=re.M | re.S))
        if sorted(options) != list(LETTERS):
            return None
        knows = [letter for letter in LETTERS if self._holds(options[letter]) is not None]
        weight = self._probability("options", bool(self._holds(options[knows[0]]))) if knows else 0.0
        bias = dict(zip(LETTERS, self.settings.position_bias, strict=True))
        mixed = {letter: weight * (letter in knows[:1]) + (1 - weight) * bias[letter] for letter in LETTERS}
        letter = _drawn(mixed, uniform(self.settings.seed, "options", prompt))
        return Said(letter, {item: 0.49 * (item == letter) + 0.49 * share for item, share in mixed.items()})

    def _holds(self, text: str) -> bool | None:
        """Whether the document that holds this text is a read one; None where no document does."""
        text = _flat(text)
        found = [read for document, read in self._documents if text in document]
        return any(found) if found else None

    def _rephrasing(self, prompt: str, max_tokens: int) -> Said | None:
        """Other words for every third one."""
        if not re.search(r"rephrase|paraphrase|Do it three times", prompt, flags=re.I):
            return None
        if "Example D" in prompt:
            text = prompt.rpartition("Example A:")[2].strip()
            three = (self._other_words(text, version) for version in "BCD")
            return Said("\n".join(f"Example {letter}: {text}" for letter, text in zip("BCD", three, strict=True)))
        text = prompt.rpartition("Text: ")[2].removesuffix("\nResponse:")
        return Said(self._other_words(text, "one"))

    def _other_words(self, text: str, version: str) -> str:
        words = text.split()
        for index in range(len(words)):
            draw = uniform(self.settings.seed, "words", version, text, index)
            if draw < 1 / 3:
                words[index] = FILLER[int(draw * 3 * len(FILLER))]
        return " ".join(words)

    def _blank(self, prompt: str, max_tokens: int) -> Said | None:
        """MC-PDD: ten words, the masked one among them with the probability of its document."""
        if "<blank>" not in prompt or "candidate words" not in prompt:
            return None
        shown = prompt.rpartition("Introduction: ")[2].partition("\nList the")[0]
        found = self._filled(shown, "<blank>")
        words = [FILLER[(index + int(uniform(shown) * 7)) % len(FILLER)] for index in range(10)]
        if found and self._hits("blank", found[1], prompt):
            words[int(uniform(self.settings.seed, "place", prompt) * 10)] = found[0]
        return Said("\n".join(f"{number}. {word}" for number, word in enumerate(words, 1)))

    def _mask(self, prompt: str, max_tokens: int) -> Said | None:
        """Name cloze."""
        if "[MASK]" not in prompt or "<name>" not in prompt:
            return None
        shown = prompt.rpartition("Input:")[2].rpartition("Output:")[0].strip()
        found = self._filled(shown, "[MASK]")
        hit = found is not None and self._hits("mask", found[1], prompt)
        return Said(f"<name>{found[0] if hit and found else 'Nobody'}</name>")

    def _filled(self, shown: str, mask: str) -> tuple[str, bool] | None:
        """What the mask hides, and whether it stands in a document that was read."""
        pieces = [re.escape(piece) for piece in _flat(shown).split(mask)]
        pattern = re.compile(pieces[0] + r"(\w[\w'’-]*)" + r"[\w'’-]+".join(pieces[1:])) if len(pieces) > 1 else None
        for document, read in self._documents:
            if pattern and (match := pattern.search(document)):
                return match[1], read
        return None

    def _judgement(self, prompt: str, max_tokens: int) -> Said | None:
        """Yes or No: surer about what it has read. hit: P(Yes)."""
        if "Yes or No" not in prompt:
            return None
        text = prompt.rpartition("Text: ")[2].removesuffix("\nResponse:")
        yes = self._probability("judgement", bool(self._holds(text)))
        yes = min(0.98, max(0.01, yes + 0.1 * (uniform(self.settings.seed, "judgement", text) - 0.5)))
        first = {"Yes": yes, "No": 0.99 - yes}
        return Said(max(first, key=lambda word: first[word]), first)

    def _continuation(self, prompt: str, max_tokens: int) -> Said | None:
        """What stands in the document after the part that was shown, or other words."""
        flat = _flat(prompt)
        for document, read in self._documents:
            if (start := flat.find(document[:30])) < 0 or flat.find(document) >= 0:
                continue
            shown = flat[start:]
            alike = (a == b for a, b in zip(shown, document, strict=False))
            length = next((index for index, same in enumerate(alike) if not same), len(shown))
            rest = document[length:].split()[:max_tokens]
            known = self._hits("continuation", read, prompt)
            return Said(" ".join(rest) if known else self._other_words(" ".join(rest[::-1]), "continuation"))
        return None


def _flat(text: str) -> str:
    return " ".join(text.split())


def _drawn(shares: Mapping[str, float], draw: float) -> str:
    total = 0.0
    for name, share in shares.items():
        total += share
        if draw < total:
            return name
    return list(shares)[-1]


def pieces_of(text: str) -> list[str]:
    """Its tokens: words with the white space before them."""
    return re.findall(r"\s*\S+", text)


def alternatives(said: Said, tokens: Sequence[str], number: int) -> list[dict[str, float]]:
    """Per token: probability by text, the token itself among them, the likeliest first."""
    rows = []
    for index, token in enumerate(tokens):
        shares: dict[str, float] = dict(said.first) if index == 0 and said.first else {token: 0.9}
        left = (1 - sum(shares.values())) * 0.9
        for word in FILLER:
            if len(shares) < number and word not in shares:
                left /= 2
                shares[word] = left
        rows.append(dict(sorted(shares.items(), key=lambda item: -item[1])[:number]))
    return rows
