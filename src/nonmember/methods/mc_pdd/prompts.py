"""MC-PDD's prompts and parsing of answers.

The two prompts are the paper's, word for word (figures 2 and 4). How a list of words is told from anything else is
ours: the paper does not say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

from nonmember.checks import require_choice, require_count, require_number, require_seed
from nonmember.corpora import CorpusSpec
from nonmember.endpoints import Completion, ParsedAnswer, Probe, Questions, Request
from nonmember.methods.mc_pdd.words import Strategy, chosen, document_frequencies, masked, occurs
from nonmember.records import Corpus, Document
from nonmember.records.requirements import Requirements

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
    pieces = [_without_explanation(piece) for piece in _pieces_of(text)]
    short = [piece for piece in pieces if _is_short(piece)]
    is_list = 2 * len(short) > len(pieces) and len({piece.casefold() for piece in short}) >= FEWEST_CANDIDATES
    return short[:NUM_CANDIDATES] if is_list and not REFUSAL.match(text) else []


def _pieces_of(text: str) -> list[str]:
    """What stands between line breaks, commas and numbers of a list, headings left out."""
    pieces = (piece.strip() for piece in BETWEEN.split(HEADING.sub("", text)))
    return [bare for piece in pieces if not piece.endswith(":") and (bare := piece.strip(MARKUP))]


def _without_explanation(piece: str) -> str:
    return piece if _is_short(piece) else EXPLANATION.split(piece, maxsplit=1)[0].strip(MARKUP)


def _is_short(piece: str) -> bool:
    return 0 < len(piece.split()) <= LONGEST_CANDIDATE


def hit(word: str, candidates: list[str], match: Match) -> bool:
    """Whether the masked word is among the candidates: as a word of one, or anywhere in one."""
    if match == "substring":
        return any(word in candidate.casefold() for candidate in candidates)
    return any(occurs(word, candidate) for candidate in candidates)


@dataclass(frozen=True)
class MaskedWords(Probe):
    """A question for each masked word of a document, all of whose occurrences are blanks.

    strategy, num_words, letters_only: as of `mc_pdd_words.chosen`.   stop_words: never masked, in one case.
    show_name: whether the prompt tells the document's title; a word that stands in it is then not asked for.
    pooled: a corpus that documents are counted in beside the one asked about; None: in that alone.
    match: when a candidate is the masked word.   max_new_tokens, temperature, seed: of the decoding; the seed is that
    of random words too.
    """

    strategy: Strategy
    num_words: int
    show_name: bool
    pooled: CorpusSpec | None
    letters_only: bool
    stop_words: tuple[str, ...]
    match: Match
    max_new_tokens: int
    temperature: float
    seed: int

    name: ClassVar[str] = "mc_pdd"

    def __post_init__(self) -> None:
        require_choice(self.strategy, get_args(Strategy), "strategy")
        require_choice(self.match, get_args(Match), "match")
        require_count(self.num_words, 1, "num_words")
        require_count(self.max_new_tokens, 1, "max_new_tokens")
        require_number(self.temperature, "[0, 10)", "temperature")
        require_seed(self.seed)

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
