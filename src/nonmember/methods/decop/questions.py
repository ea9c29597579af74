"""The questions of DE-COP, word for word (tables 7 to 10), and how answers are read: which of four passages is the
original, in many orders of the four.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Annotated, Literal

from nonmember.checks import Checked, Count, wrong
from nonmember.corpora import CorpusSpec
from nonmember.corpora.sources.paraphrases import paraphrase_id
from nonmember.corpora.transforms.cleaning import normalise
from nonmember.endpoints import Completion, ParsedAnswer, Probe, Questions, Request
from nonmember.records import Corpus, Document, Template
from nonmember.records.requirements import Requirements
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


_MARKS = r"(?:\\boxed|\\text|[\s'\"‘’“”`*_(\[<{$])*"  # that may stand before a letter
_END = r"(?![\w'’-]*\w)"  # not "As an AI", "A's", "A-level"
_ANOTHER = rf"(?!\W*(?:(?:or|and)\b)?\W*[A-D]{_END})"  # not "B or D", "A, C"
_NO_ARTICLE = r"(?!(?<=A) (?!(?:or|and|is|because|since|as)\b)\w)"
# Forms of an answer, each with the letter as its group. The first that an answer has is read, and by that form all
# letters in it must be one.
FORMS = (
    rf"^{_MARKS}([A-Da-d])\W*$",  # alone: A, (b), '**C**.'
    rf"(?i:\b(?:answer|option|choice)(?:\s+(?:is|would\s+be))?\s*:?){_MARKS}([A-D]){_END}{_NO_ARTICLE}{_ANOTHER}",
    rf"(?i:\banswer\s*:){_MARKS}([a-d]){_END}(?! \w)",
    rf"\\boxed{{{_MARKS}([A-D])\W*}}",
    rf"^{_MARKS}([A-D])(?=[\W_])(?! ){_END}{_ANOTHER}",  # with a mark behind it: C) ..., D<line break>because
    rf"^{_MARKS}([B-D])(?= ){_ANOTHER}",  # which is no article
)


def letter_in(text: str) -> str:
    """The letter that an answer names by the first of `FORMS` that it has; empty where it has none or names several."""
    for form in FORMS:
        if found := {letter.upper() for letter in re.findall(form, text)}:
            return found.pop() if len(found) == 1 else ""
    return ""


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


# What is asked --------------------------------------------------------------------------------------------------------


AnswerReading = Literal["text", "probabilities"]

NUM_PARAPHRASES = 3
ORDERS = tuple(permutations(range(1 + NUM_PARAPHRASES)))  # lexicographic; 0 is the original
NO_PARAPHRASES = "no three different paraphrases of it are at hand"
NO_TITLE = "no title to ask by"
NO_TEXT = "its text is not at hand"
NOT_RECORDED = "no question about it was recorded"


def balanced(num_orders: int) -> list[int]:
    """Numbers in `ORDERS`, ascending: each letter holds the original equally often, and the paraphrases turn through
    the other places in the same way for each letter.

    Raises ValueError for a number that is not 4, 8, ... 24.
    """
    if isinstance(num_orders, bool | float) or num_orders not in range(4, len(ORDERS) + 1, 4):
        raise ValueError(wrong("num_orders", "one of 4, 8, 12, 16, 20 and 24", num_orders))
    turns = [(1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 3, 2), (3, 2, 1), (2, 1, 3)][: num_orders // len(LETTERS)]
    wanted = {(*turn[:index], 0, *turn[index:]) for turn in turns for index in range(len(LETTERS))}
    return [number for number, order in enumerate(ORDERS) if order in wanted]


@dataclass(frozen=True)
class _Choice(Checked, Probe):
    # By the letter in the text, or by the letters' probabilities, for which the alternatives to each written token are
    # asked for (`top_logprobs` of them).
    reading: AnswerReading
    max_new_tokens: Annotated[int, Count(1)]
    top_logprobs: Annotated[int, Count(len(LETTERS))]
    seed: int

    name = "decop"
    fields_called = "`{field}` of DE-COP"

    def _request(
        self,
        doc_id: str,
        name: str,
        expected: str,
        *,
        question: str = "",
        instruction: str = "",
        options: tuple[str, ...] = (),
    ) -> Request:
        return Request(
            doc_id,
            name,
            question,
            max_new_tokens=self.max_new_tokens,
            temperature=0.0,
            seed=self.seed,
            instruction=instruction,
            top_logprobs=self.top_logprobs if self.reading == "probabilities" else 0,
            expected=expected,
            options=options,
        )

    def parse(self, request: Request, completion: Completion) -> ParsedAnswer:
        if self.reading == "text":
            letter = letter_in(completion.text)
        else:
            probabilities = letter_probabilities(completion.top_logprobs)
            letter = "" if probabilities is None else LETTERS[probabilities.index(max(probabilities))]
        return ParsedAnswer(valid=bool(letter), correct=letter == request.expected, read=letter)


@dataclass(frozen=True)
class MultipleChoice(_Choice):
    """White space is made the same in all four options: line breaks would give the original away."""

    paraphrases: CorpusSpec  # documents d#1, d#2 and d#3 for each document d
    num_orders: int
    work: Work
    exam: Exam  # how the model is instructed

    def __post_init__(self) -> None:
        super().__post_init__()
        balanced(self.num_orders)

    @property
    def requirements(self) -> Requirements:
        return replace(super().requirements, questions=self.num_orders, shown=len(LETTERS))

    @property
    def corpora(self) -> Mapping[str, CorpusSpec]:
        return {"paraphrases": self.paraphrases}

    def ask(self, corpus: Corpus, others: Mapping[str, Corpus]) -> Questions:
        text_of = {document.doc_id: normalise(document.text) for document in others["paraphrases"].documents}
        requests: list[Request] = []
        reasons: dict[str, str] = {}
        for document in corpus.documents:
            four = [normalise(document.text)]
            four += [
                text_of.get(paraphrase_id(document.doc_id, number), "") for number in range(1, NUM_PARAPHRASES + 1)
            ]
            if reason := _cannot_be_asked(document, four):
                reasons[document.doc_id] = reason
                continue
            requests += [self._about(document, four, number) for number in balanced(self.num_orders)]
        return Questions(tuple(requests), reasons)

    def _about(self, document: Document, four: list[str], number: int) -> Request:
        """four: the original and its paraphrases.   number: of the order in which they are shown."""
        options = tuple(four[index] for index in ORDERS[number])
        return self._request(
            document.doc_id,
            str(number),
            LETTERS[ORDERS[number].index(0)],
            question=question(self.work, document.title, document.author, options),
            instruction=INSTRUCTION[self.exam],
            options=options,
        )


def _cannot_be_asked(document: Document, four: list[str]) -> str:
    if not four[0]:
        return NO_TEXT
    if not document.title:
        return NO_TITLE
    return NO_PARAPHRASES if "" in four or len(set(four)) < len(four) else ""


@dataclass(frozen=True)
class RecordedChoice(_Choice):
    """Questions that were put elsewhere and of which only the answers are at hand."""

    # A document for each, of which the id is its name, the cluster the id of the passage that it is about, and the text
    # the letter of the right option.
    questions: CorpusSpec

    @property
    def corpora(self) -> Mapping[str, CorpusSpec]:
        return {"questions": self.questions}

    def ask(self, corpus: Corpus, others: Mapping[str, Corpus]) -> Questions:
        known = set(corpus.doc_ids)
        requests = [
            self._request(item.cluster_id, item.doc_id, _letter(item))
            for item in others["questions"].documents
            if item.cluster_id in known
        ]
        asked = {request.doc_id for request in requests}
        return Questions(tuple(requests), {doc_id: NOT_RECORDED for doc_id in corpus.doc_ids if doc_id not in asked})


def _letter(recorded: Document) -> str:
    letter = recorded.text.strip()
    if letter not in tuple(LETTERS):
        raise ValueError(
            f"The right option of the recorded question {recorded.doc_id!r} must be one of A, B, C and D; got "
            f"{recorded.text!r}. Correct the pattern `text` of method.questions."
        )
    return letter
