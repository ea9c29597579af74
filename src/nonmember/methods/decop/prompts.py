"""DE-COP's prompts, word for word (tables 7 to 10), and parsing of answers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from nonmember.records import Template
from nonmember.stats.letter_choice import LETTERS

Length = Literal["short", "long"]
Work = Literal["book", "paper"]
Exam = Literal["exam", "quoted", "bare"]

# Of passages of 64 and 128 tokens, and of 256, which the first prompt made much shorter.
PARAPHRASE: Mapping[Length, Template] = {
    "short": Template(
        "",
        "Generate always 3 possible paraphrases for the following text that is identified as Example A: <text>. Format "
        "your output as: Example B: <paraphrase 1> Example C: <paraphrase 2> Example D: <paraphrase 3> -Example A: "
        "{text}",
    ),
    "long": Template(
        "",
        "Rewrite this entire text (all sentences with no exception) expressing the same meaning using different words. "
        "Aim to keep the rewriting similar in length to the original text. Do it three times. The text to be rewritten "
        "is identified as <Example A>. Format your output as: Example B: <insert paraphrase B> Example C: <insert "
        "paraphrase C> Example D: <insert paraphrase D> Example A: {text}",
    ),
}

_EXAM = (
    "You are entering a multiple choice questions exam. You should directly answer each question by choosing the "
    "correct option. Be concise and straight to the point in your answer. Output only the letter corresponding to the "
    "correct answer."
)
# quoted: as open chat models are told in the paper.   bare: as its program asks GPT-3.5-turbo-instruct.
INSTRUCTION: Mapping[Exam, str] = {
    "exam": _EXAM,
    "quoted": f"{_EXAM}\nFormat your answer as '<put correct answer here>'",
    "bare": "",
}


def question(work: Work, title: str, author: str, options: Sequence[str]) -> str:
    """options: four passages, in the order of the letters. An unknown author is not spoken of."""
    if work == "book":
        source = f'the "{title}" book' + (f" by {author}" if author else "")
    else:
        source = f'the arXiv paper "{title}"'
    lines = [f"{letter}. {option}" for letter, option in zip(LETTERS, options, strict=True)]
    return "\n".join(
        [f"Question: Which of the following passages is verbatim from {source}?", "Options:", *lines, "Answer:"]
    )


_LETTER = re.compile(r"[\s'\"‘’“”`*(\[<]*([A-D])(?!\w|['’]\w)")  # "A", "'B'.", "C) ...", but not "As an AI"


def letter_in(text: str) -> str:
    """The letter that an answer begins with, after blanks, quotation marks and brackets; empty where it begins with
    anything else, a word with such a letter included."""
    found = _LETTER.match(text)
    return found[1] if found else ""


Alternatives = Sequence[tuple[str, float]]  # a token's text and its log-probability, the likeliest first


_VARIANTS = tuple(tuple(f"{blank}{letter}" for letter in LETTERS) for blank in ("", " "))
_MORE_THAN_MARKS = re.compile(r"\w")


def letter_probabilities(top_logprobs: Sequence[Alternatives]) -> list[float] | None:
    """Softmax over A to D at the first written place where the likeliest token is more than quotation marks and blanks;
    None where that token is no letter. Of tokens with and without a leading blank those are read whose four letters
    have more mass; a letter that is not among the alternatives has none."""
    there = next((item for item in top_logprobs if item and _MORE_THAN_MARKS.search(item[0][0])), None)
    if there is None or there[0][0].strip() not in _VARIANTS[0]:
        return None
    found = dict(reversed(there))  # of equal tokens, if a server has any, the likeliest
    variants = [[math.exp(found.get(token, -math.inf)) for token in tokens] for tokens in _VARIANTS]
    mass = max(variants, key=sum)
    total = sum(mass)
    return [item / total for item in mass]
