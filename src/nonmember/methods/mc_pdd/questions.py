"""Which words of a document MC-PDD masks, how it asks for them, and how it reads the answers.

The two prompts are the paper's, word for word (figures 2 and 4). How a list of words is told from anything else is
ours: the paper does not say.

A word is a maximal run of letters and digits, with apostrophes and hyphens inside it; an apostrophe at its edge is a
quotation mark. Words are counted without regard to case. A word *occurs* wherever it stands between characters that are
neither letters nor digits: "Leon" also in "Leon's" and in "leon_s". One rule serves for masking, where anything less
would leave the answer in the prompt, for names and for reading answers.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from nonmember.artifacts import Builder
from nonmember.checks import Checked, Count, Number, require_seed
from nonmember.corpora import CorpusSpec
from nonmember.endpoints import Completion, ParsedAnswer, Probe, Questions, Request
from nonmember.records import Corpus, Document
from nonmember.records.requirements import Requirements

# Words ----------------------------------------------------------------------------------------------------------------


Strategy = Literal["max", "random"]

BLANK = "<blank>"
LETTER = r"[^\W_]"  # of any script, or a digit
WORD = re.compile(rf"{LETTER}+(?:['’-]{LETTER}+)*")
ENGLISH_LETTERS = re.compile("[A-Za-z]+")
DIGITS_OF_A_WEIGHT = 12  # weights that are equal in exact arithmetic may differ in the last bit


def words_of(text: str) -> list[str]:
    """In their order, in one case."""
    return [word.casefold() for word in WORD.findall(text)]


def document_frequencies(texts: Iterable[str]) -> Counter[str]:
    """In how many of the texts each word occurs."""
    return Counter(word for text in texts for word in set(words_of(text)))


def weights(words: Sequence[str], frequencies: Mapping[str, int], num_documents: int) -> dict[str, float]:
    """TF-IDF of each word of a document, in the order of its first occurrence: count / length * ln(N / df), nothing
    smoothed."""
    return {
        word: count / len(words) * math.log(num_documents / frequencies[word]) for word, count in Counter(words).items()
    }


def chosen(
    text: str,
    frequencies: Mapping[str, int],
    num_documents: int,
    *,
    strategy: Strategy,
    number: int,
    letters_only: bool,
    stop_words: Collection[str],
    name: str,
) -> list[str]:
    """At most so many different words of a text, the first to be masked first.

    max: of the largest weights, of equal ones the earliest in the text.   random: drawn alike from all different ones;
    name: of this draw.   letters_only: only of words of English letters alone.
    """
    found = {
        word: weight
        for word, weight in weights(words_of(text), frequencies, num_documents).items()
        if word not in stop_words and (not letters_only or ENGLISH_LETTERS.fullmatch(word))
    }
    if strategy == "random":
        order = _generator(name).permutation(len(found))
        return [list(found)[index] for index in order[:number]]
    return sorted(found, key=lambda word: -round(found[word], DIGITS_OF_A_WEIGHT))[:number]  # stable


def _generator(name: str) -> np.random.Generator:
    """One for each name, whatever else is drawn."""
    return np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode("utf-8", "replace")).digest()[:16], "big"))


def occurs(word: str, text: str) -> bool:
    """Whether a word, in one case, occurs in a text in any."""
    return next(_occurrences(word, text.casefold()), None) is not None


def masked(word: str, text: str) -> str:
    """The text with a blank for every occurrence of a word, in any case."""
    indices = [index for index, letter in enumerate(text) for _ in letter.casefold()]  # one letter may become two
    parts, last = [], 0
    for found in _occurrences(word, text.casefold()):
        parts += [text[last : indices[found.start()]], BLANK]
        last = indices[found.end() - 1] + 1
    return "".join([*parts, text[last:]])


def _occurrences(word: str, text: str) -> Iterator[re.Match[str]]:
    return re.finditer(rf"(?<!{LETTER}){re.escape(word)}(?!{LETTER})", text)


# Questions and answers ------------------------------------------------------------------------------------------------


Match = Literal["whole_word", "substring"]

WITH_NAME = (
    "Here are the name and introduction of an entity:\n"
    "Entity Name: {name}\n"
    "Introduction: {introduction}\n"
    "List the 10 most likely candidate words for the <blank>, without any explanation:"
)
WITHOUT_NAME = (
    "Here is the introduction of an entity:\n"
    "Introduction: {introduction}\n"
    "List the 10 most likely candidate words for the <blank>, without any explanation:"
)

NO_WORD = "no word to mask"
IN_NAME = "the masked word stands in the name that is shown"

NUM_CANDIDATES = 10
FEWEST_CANDIDATES = 2  # different ones, of the ten that are asked for
LONGEST_CANDIDATE = 5  # words; what is longer is a sentence
REFUSAL = re.compile(
    r"\W*(?:(?:i['’]?m|i am) (?:sorry|unable|not able)|sorry\b|i (?:can['’]?t|cannot|won['’]?t)\b"
    r"|as an ai\b|unfortunately\b)",
    re.IGNORECASE,
)
HEADING = re.compile(r"^[^\n:]*\b(?:here|words?|candidates?|list|options)\b[^\n:]*:\s", re.IGNORECASE)
BETWEEN = re.compile(r"[\n,;]|(?:^|(?<=\s))\(?\d{1,2}[.):](?=\s|\D)")  # lines, commas, and numbers of a list
EXPLANATION = re.compile(r"\s+[-–—(]|:\s")  # what begins one
MARKUP = " \t\r\"'`“”‘’*_•·-–—.<>[](){}"


def candidates_of(text: str) -> list[str]:
    """The first ten candidates of an answer; none where it is no list of words but a refusal, mostly sentences, or the
    same word again and again."""
    pieces = [
        piece if _is_short(piece) else EXPLANATION.split(piece, maxsplit=1)[0].strip(MARKUP)
        for piece in _pieces_of(text)
    ]
    short = [piece for piece in pieces if _is_short(piece)]
    is_list = 2 * len(short) > len(pieces) and len({piece.casefold() for piece in short}) >= FEWEST_CANDIDATES
    return short[:NUM_CANDIDATES] if is_list and not REFUSAL.match(text) else []


def _pieces_of(text: str) -> list[str]:
    """What stands between line breaks, commas and numbers of a list, headings left out."""
    pieces = (piece.strip() for piece in BETWEEN.split(HEADING.sub("", text)))
    return [bare for piece in pieces if not piece.endswith(":") and (bare := piece.strip(MARKUP))]


def _is_short(piece: str) -> bool:
    return 0 < len(piece.split()) <= LONGEST_CANDIDATE


def hit(word: str, candidates: list[str], match: Match) -> bool:
    """Whether the masked word is among the candidates: as a word of one, or anywhere in one."""
    if match == "substring":
        return any(word in candidate.casefold() for candidate in candidates)
    return any(occurs(word, candidate) for candidate in candidates)


@dataclass(frozen=True)
class MaskedWords(Checked, Probe):
    """A question for each masked word of a document, all of whose occurrences are blanks.

    strategy, num_words, letters_only: as of `chosen`.
    """

    strategy: Strategy
    num_words: Annotated[int, Count(1)]
    show_name: bool  # whether the prompt tells the document's title; a word that stands in it is then not asked for
    pooled: CorpusSpec | None  # a corpus that documents are counted in beside the one asked about; None: in that alone
    letters_only: bool
    stop_words: tuple[str, ...]  # never masked, in one case
    match: Match  # when a candidate is the masked word
    # max_new_tokens, temperature, seed: of the decoding; the seed is that of random words too
    max_new_tokens: Annotated[int, Count(1)]
    temperature: Annotated[float, Number("[0, 10)")]
    seed: Annotated[int, require_seed]

    name = "mc_pdd"

    @property
    def requirements(self) -> Requirements:
        return replace(super().requirements, questions=self.num_words)

    @property
    def corpora(self) -> Mapping[str, CorpusSpec]:
        return {} if self.pooled is None else {"pooled": self.pooled}

    def ask(self, corpus: Corpus, others: Mapping[str, Corpus]) -> Questions:
        counted = [*corpus.documents, *(document for other in others.values() for document in other.documents)]
        frequencies = document_frequencies(document.text for document in counted)
        requests: list[Request] = []
        reasons: dict[str, str] = {}
        for document in corpus.documents:
            words = chosen(
                document.text,
                frequencies,
                len(counted),
                strategy=self.strategy,
                number=self.num_words,
                letters_only=self.letters_only,
                stop_words=self.stop_words,
                name=f"{self.seed}:{document.doc_id}",
            )
            asked = [word for word in words if not (self.show_name and occurs(word, document.title))]
            if not asked:
                reasons[document.doc_id] = IN_NAME if words else NO_WORD
            requests += [self._request(document, word, words.index(word) + 1) for word in asked]
        return Questions(tuple(requests), reasons)

    def _request(self, document: Document, word: str, rank: int) -> Request:
        prompt = WITH_NAME if self.show_name else WITHOUT_NAME
        return Request(
            doc_id=document.doc_id,
            name=f"{self.strategy}-{rank}",
            question=prompt.format(name=" ".join(document.title.split()), introduction=masked(word, document.text)),
            max_new_tokens=self.max_new_tokens,
            temperature=self.temperature,
            seed=self.seed,
            expected=word,
        )

    def parse(self, request: Request, completion: Completion) -> ParsedAnswer:
        candidates = candidates_of(completion.text)
        found = hit(request.expected, candidates, self.match)
        return ParsedAnswer(valid=bool(candidates), correct=found, read="; ".join(candidates))


def stop_words_of(named: str | list[str] | tuple[str, ...] | None) -> tuple[str, ...]:
    """english: scikit-learn's list; a list: these; None: none. In one case."""
    if isinstance(named, str):
        if named != "english":
            raise ValueError(f"stop_words must be english, a list of words, or null; got {named!r}.")
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS  # takes seconds

        return tuple(sorted(ENGLISH_STOP_WORDS))
    return tuple(word.casefold() for word in named or ())


# Texts to train on ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AnsweredQuestions(CorpusSpec):
    """A text for each of so many words of each document: the question, then a list of ten with the masked word first.
    The others are masked words of other documents of the domain, drawn by the seed."""

    base: CorpusSpec
    num_words: int
    show_name: bool  # whether the question tells the document's title
    seed: int

    stored: ClassVar[bool] = False

    def build(self, builder: Builder) -> Corpus:
        base = builder.get(self.base)
        domains = {document.doc_id: document.domain for document in base.documents}
        requests = self._probe().ask(base, {}).requests
        words: dict[str, list[str]] = {}
        for request in requests:
            words.setdefault(domains[request.doc_id], []).append(request.expected)
        rng = np.random.default_rng(self.seed)
        documents = []
        for request in requests:
            domain = domains[request.doc_id]
            others = [word for word in rng.choice(words[domain], size=NUM_CANDIDATES) if word != request.expected]
            answer = [request.expected, *others][:NUM_CANDIDATES]
            listed = "\n".join(f"{index}. {word}" for index, word in enumerate(answer, 1))
            text = f"{request.as_text}\n{listed}"
            documents.append(Document(f"{request.doc_id}/{request.name}", text, request.doc_id, domain))
        return Corpus(tuple(documents))

    def identity(self) -> dict[str, Any]:
        return {
            "kind": "answered_questions",
            "rules": 1,
            "base": self.base.identity(),
            "num_words": self.num_words,
            "show_name": self.show_name,
            "seed": self.seed,
        }

    def _probe(self) -> MaskedWords:
        return MaskedWords(
            strategy="max",
            num_words=self.num_words,
            show_name=self.show_name,
            pooled=None,
            letters_only=False,
            stop_words=(),
            match="whole_word",
            max_new_tokens=1,
            temperature=0.0,
            seed=self.seed,
        )
