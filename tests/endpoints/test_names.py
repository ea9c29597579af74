"""Which word is left blank, and that none of its occurrences stays."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from nonmember.corpora.names import BlankWord, blanked, choices, chosen, is_named


def choice_of(*texts: str) -> BlankWord | None:
    """Of the first of the texts; what is a name is learnt from all of them."""
    return choices(texts)[0]


# The order of preference ---------------------------------------------------------------------------------------------


def test_a_person_goes_before_a_name_before_a_noun():
    person, name, noun = BlankWord("Ada", "person"), BlankWord("Paris", "name"), BlankWord("table", "noun")
    assert chosen([noun, noun, name, name, person]) == BlankWord("Ada", "person")
    assert chosen([noun, noun, name]) == BlankWord("Paris", "name")
    assert chosen([noun]) == BlankWord("table", "noun")
    assert chosen([]) is None


def test_the_most_frequent_and_of_equals_the_first():
    def words(text: str) -> list[BlankWord]:
        return [BlankWord(word, "person") for word in text.split()]

    assert chosen(words("Ada Ben Ben")) == BlankWord("Ben", "person")
    assert chosen(words("Ben Ada Ada Ben")) == BlankWord("Ben", "person")


# Rules ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The door opened, and old Mr. Hartwell came in with the lamp.", BlankWord("Hartwell", "person")),
        ('"You are late," said Marchmont, and the others laughed at him.', BlankWord("Marchmont", "person")),
        ("There was nobody but Harriet's brother in the kitchen.", BlankWord("Harriet", "person")),
        ("They went by way of Nottingham to the sea.", BlankWord("Nottingham", "name")),
        ("He saw that Mr. O'Brien had left his hat.", BlankWord("O'Brien", "person")),
        # The only person is a single word; Jarvis Lorry is two.
        ("So Jarvis Lorry sat down. Then Mr. Stryver spoke of Jarvis Lorry again.", BlankWord("Stryver", "person")),
        # Two persons once each: the first.
        ('"No," said Edmund. "Yes," said Clara.', BlankWord("Edmund", "person")),
        # No name at all.
        ("They pulled the boat up. The boat was old, and the water ran out of it.", BlankWord("boat", "noun")),
        ("and so on and on", None),
    ],
)
def test_what_the_rules_find(text, expected):
    assert choice_of(text) == expected


def test_the_first_word_of_a_sentence_is_no_name_for_its_capital():
    assert (
        choice_of("Nobody came. Perhaps they had seen the light. “Quickly,” he said, “to the window!”").kind == "noun"
    )


def test_a_word_that_is_mostly_written_small_is_no_name():
    text = "It was then that Hope left them."
    assert choice_of(text, "There was no hope of it, no hope whatever, and hope was all.").kind == "noun"
    assert choice_of(text) == BlankWord("Hope", "name")


def test_initials_and_titles_end_no_sentence():
    assert choice_of("She had met Mrs. Penhallow and J. Trevanion there, and Mrs. Penhallow twice.") == BlankWord(
        "Penhallow", "person"
    )


# Blanks --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Alice fell. So Alice's cat and Alice’s fan fell.", "[MASK] fell. So [MASK]'s cat and [MASK]’s fan fell."),
        ("ALICE! _Alice_ *Alice*, (Alice) —Alice—", "[MASK]! _[MASK]_ *[MASK]*, ([MASK]) —[MASK]—"),
        ("ALICE'S and ALICES", "[MASK]'S and [MASK]S"),
        ("both Alices, Alice-like", "both [MASK]s, [MASK]-like"),
        ("Alicia and malice, alice", "Alicia and malice, alice"),
    ],
)
def test_every_occurrence_of_a_name_is_blank(text, expected):
    assert blanked(text, BlankWord("Alice", "person")) == expected


def test_a_noun_is_blank_whatever_its_case_and_ending():
    text = "Box on box; the BOX's lid, two boxes, a boxer."
    assert blanked(text, BlankWord("box", "noun")) == "[MASK] on [MASK]; the [MASK]'s lid, two [MASK]es, a boxer."


def test_marks_in_a_word_are_themselves():
    assert blanked("O'Brien, OxBrien", BlankWord("O'Brien", "person")) == "[MASK], OxBrien"


def test_a_title_names_the_word():
    assert is_named("Alice's Adventures", BlankWord("Alice", "person"))
    assert not is_named("Malice", BlankWord("Alice", "person"))


# By a tagger ---------------------------------------------------------------------------------------------------------


class Sentence(list):
    """Jarvis Lorry met Harriet's dog in Dover, as spaCy shows it: tokens, and entities made of them."""

    def __init__(self) -> None:
        words = [
            ("Jarvis", "PROPN"),
            ("Lorry", "PROPN"),
            ("met", "VERB"),
            ("Harriet", "PROPN"),
            ("'s", "PART"),
            ("dog", "NOUN"),
            ("in", "ADP"),
            ("Dover", "PROPN"),
            ("yesterday", "NOUN"),
            (".", "PUNCT"),
        ]
        super().__init__(SimpleNamespace(text=text, pos_=pos, i=index) for index, (text, pos) in enumerate(words))
        self.ents = [Entity(self[:2], "PERSON"), Entity(self[3:5], "PERSON"), Entity(self[7:8], "GPE")]


class Entity(list):
    def __init__(self, tokens: list[SimpleNamespace], label: str) -> None:
        super().__init__(tokens)
        self.label_ = label
