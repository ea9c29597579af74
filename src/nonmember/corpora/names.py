"""Chooses the word of a passage to mask: a person's name, else another proper noun, else a common noun.

It needs no model and no network, and is no tagger: a name is a word that is written with a capital letter inside
sentences and hardly ever without one; a person is a name that stands beside a title of address or a verb of saying, or
is a common English first name. It is made for English prose.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, get_args

Kind = Literal["person", "name", "noun"]

BLANK = "[MASK]"
MIN_LETTERS_OF_A_NOUN = 4


class BlankWord(NamedTuple):
    """A word that could be left blank, as it is written.

    kind: person: the name of a person in a single word; name: any other proper noun; noun: a common one, in small
    letters.
    """

    word: str
    kind: Kind


def choices(texts: Sequence[str]) -> list[BlankWord | None]:
    """Of each text the word to be left blank, None where it has none."""
    return [chosen(found) for found in occurrences(texts)]


def chosen(occurrences: Iterable[BlankWord]) -> BlankWord | None:
    """The most frequent person; without one the most frequent name; without one the most frequent noun. Of equally
    frequent ones the first: Counter and max both keep the order in which words come."""
    counts, kinds = Counter(occurrences), get_args(Kind)
    return max(counts, key=lambda item: (-kinds.index(item.kind), counts[item]), default=None)


def blanked(text: str, choice: BlankWord) -> str:
    """The text with every occurrence of the word replaced by `BLANK`: also in capitals, before a possessive or plural
    ending, which stays, and between marks of emphasis (_Alice_). Nouns whatever their case; of a name, a common word
    that is spelt like it (will, rose) stays."""
    return _pattern(choice).sub(BLANK, text)


def is_named(text: str, choice: BlankWord) -> bool:
    """Whether the word stands in a text, a title say."""
    return bool(_pattern(choice).search(text))


def _pattern(choice: BlankWord) -> re.Pattern[str]:
    word = re.escape(choice.word)
    if choice.kind == "noun":
        return re.compile(rf"(?<!{_ALNUM}){word}(?=(?:['’]?s|es)?(?!{_ALNUM}))", re.IGNORECASE)
    capitals = re.escape(choice.word.upper())
    return re.compile(rf"(?<!{_ALNUM})(?:{word}(?=(?:['’]?s)?(?!{_ALNUM}))|{capitals}(?=(?:['’]?[sS])?(?!{_ALNUM})))")


_ALNUM = r"[^\W_]"  # an underscore is a mark of emphasis, not part of a word


# The rules -----------------------------------------------------------------------------------------------------------

MIN_CAPITALISED = 0.75  # of a word's occurrences inside sentences, for a name
MIN_AS_NOUN = 0.2  # of a word's occurrences, at the end of a phrase with an article or the like, for a noun
MAX_WORDS_OF_A_PHRASE = 4

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_POSSESSIVE = re.compile(r"['’]s$")
# What may stand between the end of a sentence and the next word, and what ends one.
_OPENING = " \t\r\n\"'“”‘’«»([{*_-–—"
_ENDING = ".!?:…"
_QUOTED = re.compile(r"(?:^|[\s(\[—–-])[\"'“‘«]+[*_]*$")


class _Token(NamedTuple):
    """A word in a text."""

    word: str  # without a possessive ending
    starts: bool  # the first of a sentence or of something quoted, or it could be: its capital letter says nothing
    joined: bool  # only blanks lie between it and the word before
    ends: bool  # something else than blanks follows

    @property
    def lower(self) -> str:
        return self.word.lower()

    @property
    def is_capitalised(self) -> bool:
        """Like a name: neither in small letters nor all in capitals, and not I, I'm, I'll."""
        head = self.word.partition("'")[0].partition("’")[0]
        return (len(head) > 1 and head[0].isupper() and not head.isupper()) or _is_irish(self.word)


def _is_irish(word: str) -> bool:
    """O'Brien, D'Arcy."""
    head, _, rest = word.replace("’", "'").partition("'")
    return head in ("O", "D") and len(rest) > 1 and rest[0].isupper() and not rest.isupper()


def occurrences(texts: Sequence[str]) -> list[list[BlankWord]]:
    """Of each text what could be left blank, in the order in which it comes. What is a name is learnt from all the
    texts together."""
    tokens_of = [list(_tokens(text)) for text in texts]
    names = _names(tokens_of)
    persons = _persons(tokens_of, names)
    nouns = _nouns(tokens_of, names)
    return [list(_occurrences(tokens, names, persons, nouns)) for tokens in tokens_of]


def _tokens(text: str) -> Iterator[_Token]:
    previous_end, previous_word = 0, ""
    matches = list(_WORD.finditer(text))
    for index, match in enumerate(matches):
        between = text[previous_end : match.start()]
        following = text[match.end() : matches[index + 1].start()] if index + 1 < len(matches) else "."
        word = _POSSESSIVE.sub("", match[0])
        # The point of Mr. or of an initial ends no sentence.
        abbreviated = between.strip(_OPENING) == "." and (previous_word in TITLES or len(previous_word) == 1)
        ended = between.rstrip(_OPENING).endswith(tuple(_ENDING)) and not abbreviated
        starts = not index or ended or bool(_QUOTED.search(between))
        joined = bool(index) and (not between.strip() or abbreviated)
        ends = bool(following.strip()) or word != match[0]
        yield _Token(word, starts, joined, ends)
        previous_end, previous_word = match.end(), word


def _names(tokens_of: Sequence[Sequence[_Token]]) -> set[str]:
    """Words that are written with a capital letter inside sentences and hardly ever without one."""
    inside: Counter[str] = Counter()
    small: Counter[str] = Counter()
    for token in (token for tokens in tokens_of for token in tokens):
        if token.is_capitalised and not token.starts:
            inside[token.word] += 1
        elif token.word == token.lower:
            small[token.lower] += 1
    return {
        word
        for word, number in inside.items()
        if word not in TITLES and number >= MIN_CAPITALISED * (number + small[word.lower()])
    }


def _persons(tokens_of: Sequence[Sequence[_Token]], names: set[str]) -> set[str]:
    """Names with more signs of a person than of a place."""
    signs: Counter[str] = Counter()
    for tokens in tokens_of:
        for index, token in enumerate(tokens):
            if token.word not in names:
                continue
            before, after = _beside(tokens, index)
            if before is not None and (before.word in TITLES or before.lower in SAYING):
                signs[token.word] += 1
            if after is not None and after.lower in SAYING:
                signs[token.word] += 1
            if before is not None and before.lower in ("in", "at", "near"):
                signs[token.word] -= 1
    return {name for name in names if signs[name] > 0 or (name in FIRST_NAMES and signs[name] >= 0)}


def _beside(tokens: Sequence[_Token], index: int) -> tuple[_Token | None, _Token | None]:
    """The words before and behind one, where only blanks lie between."""
    after = tokens[index + 1] if index + 1 < len(tokens) and tokens[index + 1].joined else None
    return tokens[index - 1] if tokens[index].joined and index else None, after


def _nouns(tokens_of: Sequence[Sequence[_Token]], names: set[str]) -> set[str]:
    """Words that often end a phrase which an article or the like begins: the last before a mark or a function word."""
    all_of: Counter[str] = Counter()
    heads: Counter[str] = Counter()
    for tokens in tokens_of:
        all_of.update(token.lower for token in tokens if token.word not in names)
        for index, token in enumerate(tokens):
            if token.lower in DETERMINERS and (head := _head(tokens, index, names)):
                heads[head] += 1
    return {
        word
        for word, number in heads.items()
        if len(word) >= MIN_LETTERS_OF_A_NOUN
        and word.isalpha()
        and not word.endswith(("ly", "ed"))
        and number >= MIN_AS_NOUN * all_of[word]
    }


def _head(tokens: Sequence[_Token], index: int, names: set[str]) -> str:
    """The last word of the phrase that begins at a determiner; empty where it has no end in sight."""
    head = ""
    for token in tokens[index + 1 : index + 2 + MAX_WORDS_OF_A_PHRASE]:
        if not token.joined or token.lower in FUNCTION_WORDS or token.lower in DETERMINERS:
            return head
        if token.word in names:
            return ""
        head = token.lower
        if token.ends:
            return head
    return ""


def _occurrences(tokens: Sequence[_Token], names: set[str], persons: set[str], nouns: set[str]) -> Iterator[BlankWord]:
    for index, token in enumerate(tokens):
        if token.word in names:
            yield BlankWord(token.word, "person" if token.word in persons and _alone(tokens, index, names) else "name")
        elif token.lower in nouns:
            yield BlankWord(token.lower, "noun")


def _alone(tokens: Sequence[_Token], index: int, names: set[str]) -> bool:
    """Whether it is all of a name: no further name, and no initial, beside it."""
    before, after = _beside(tokens, index)
    if before is not None and (before.word in names or (len(before.word) == 1 and before.word not in ("I", "a", "A"))):
        return False
    return after is None or tokens[index].ends or after.word not in names


# The words -----------------------------------------------------------------------------------------------------------


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


TITLES = _words("""
    Mr Mrs Ms Miss Mister Messrs Dr Doctor Prof Professor Sir Lady Lord Madam Madame Mademoiselle Monsieur
    Master Captain Colonel Major General Lieutenant Sergeant Inspector Aunt Uncle Cousin Father Mother Brother
    Sister Reverend Rev St Saint King Queen Prince Princess Count Countess Duke Duchess Baron Baroness Judge
    President
""")
SAYING = _words("""
    said says say asked asks replied replies cried cries answered answers thought thinks exclaimed whispered
    muttered murmured shouted called added began continued observed remarked returned repeated inquired laughed
    smiled nodded sighed growled screamed told knew felt wanted looked stared frowned shrugged grinned
""")
DETERMINERS = _words("""
    the a an this that these those my your his her its our their some any every each no another such one two
    three
""")
FUNCTION_WORDS = _words("""
    i you he she it we they me him us them who whom which what whose where when why how there here then than as
    if and or but nor for so yet because though although while until unless since after before of in on at by to
    from with without within into onto upon over under above below between among through during against about
    around across along behind beside beyond toward towards off out up down away back again am is are was were
    be been being have has had having do does did done can could will would shall should may might must not
    never always often too also very just only even still now once already almost quite rather all both more
    most much many few less least own same other said says came went got made took gave let seemed looked
    amongst
""")
# Common English first names; those that are words as well are left to the other signs.
FIRST_NAMES = _words("""
    Adam Agnes Albert Alexander Alfred Alice Amelia Amy Andrew Anna Anne Annie Anthony Arthur Barbara Beatrice
    Ben Benjamin Bernard Bertha Bob Caroline Catherine Cecilia Charles Charlotte Christopher Clara Daniel David
    Deborah Diana Donald Dorothy Edgar Edith Edmund Edward Eleanor Eliza Elizabeth Ella Ellen Emily Emma Eric
    Ernest Esther Ethel Eva Fanny Florence Frances Francis Frank Fred Frederick George Gerald Gilbert Hannah
    Harold Harriet Harry Helen Henry Herbert Hilda Hugh Isabel Isabella Jacob James Jane Janet Jean Jennifer
    Jessica Jim Joan John Jonathan Joseph Josephine Joshua Julia Julian Karen Kate Katherine Laura Lawrence
    Leonard Lewis Linda Louis Louisa Lucas Lucy Lydia Mabel Margaret Maria Marianne Marie Martha Martin Mary
    Matthew Maurice Michael Mildred Nancy Nathan Nathaniel Nicholas Nora Oliver Oscar Patricia Patrick Paul
    Peter Philip Phoebe Rachel Ralph Raymond Rebecca Richard Robert Roger Ronald Rosa Rosamond Rupert Ruth Sally
    Samuel Sarah Sebastian Sheila Simon Sophia Sophie Stephen Susan Sylvia Theodore Thomas Tom Ursula Victoria
    Vincent Virginia Walter William Winifred
""")
