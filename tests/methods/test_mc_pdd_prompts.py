"""What MC-PDD asks, and what it reads in answers of all kinds."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tiny
from nonmember.endpoints import Completion, Request
from nonmember.methods.mc_pdd.questions import IN_NAME, NO_WORD, MaskedWords, candidates_of, hit, stop_words_of
from nonmember.records import Corpus, Document

PROBE = MaskedWords(
    strategy="max",
    num_words=1,
    show_name=True,
    pooled=None,
    letters_only=False,
    stop_words=(),
    match="whole_word",
    max_new_tokens=200,
    temperature=0.1,
    seed=7,
)
GAMES = Corpus(
    (
        Document("1", "Leon fights. Leon runs. The night falls.", title="Night\n Run"),
        Document("2", "A portal opens and the portal closes.", title="Portal 2"),
        Document("3", "The the night A and", title="Nothing"),
        Document("4", "...", title="Silence"),
    )
)


def asked(probe=PROBE, corpus=GAMES, **others):
    return probe.ask(corpus, others)


# -------------------------------------------------------------------------------------------------- questions


def test_the_prompt_with_the_name_is_the_papers():
    """docs/methods/mc_pdd.md; the paper's figure 2."""
    request = asked().requests[0]
    assert request == Request(
        doc_id="1",
        name="max-1",
        question="Here are the name and introduction of an entity:\n"
        "Entity Name: Night Run\n"
        "Introduction: <blank> fights. <blank> runs. The night falls.\n"
        "List the 10 most likely candidate words for the <blank>, without any explanation:",
        max_new_tokens=200,
        temperature=0.1,
        seed=7,
        expected="leon",
    )


def test_the_prompt_without_the_name_is_the_papers():
    """The paper's figure 4."""
    first, second, *_ = asked(replace(PROBE, show_name=False)).requests
    assert first.question == (
        "Here is the introduction of an entity:\n"
        "Introduction: <blank> fights. <blank> runs. The night falls.\n"
        "List the 10 most likely candidate words for the <blank>, without any explanation:"
    )
    assert (second.doc_id, second.expected) == ("2", "portal")


def test_a_word_in_the_shown_name_is_not_asked_for():
    questions = asked()
    assert [request.doc_id for request in questions.requests] == ["1", "3"]
    assert questions.reasons == {"2": IN_NAME, "4": NO_WORD}


def test_of_several_words_only_those_in_the_name_are_left_out():
    questions = asked(replace(PROBE, num_words=2))
    of_2 = [(request.name, request.expected) for request in questions.requests if request.doc_id == "2"]
    assert of_2 == [("max-2", "opens")]
    assert len({(request.doc_id, request.name) for request in questions.requests}) == len(questions.requests)


def test_braces_in_a_text_are_text():
    corpus = Corpus((Document("1", "{name} {0} zeta zeta", title="{introduction}"), Document("2", "name", title="x")))
    (request, *_) = asked(corpus=corpus).requests
    assert "Entity Name: {introduction}\nIntroduction: {name} {0} <blank> <blank>\n" in request.question


def test_pooled_counts_are_those_of_both_corpora():
    other = tiny.texts(*["leon"] * 20)
    probe = replace(PROBE, pooled=other)
    assert probe.corpora == {"pooled": other}
    pooled = asked(probe, pooled=other.build(None)).requests[0]
    assert (asked().requests[0].expected, pooled.expected) == ("leon", "fights")


def test_random_words_change_with_the_seed_and_not_with_the_company():
    corpus = Corpus(tuple(Document(str(n), " ".join(tiny.WORDS), title="x") for n in range(30)))
    random = replace(PROBE, strategy="random")
    drawn = [[request.expected for request in asked(probe, corpus).requests] for probe in (random, random)]
    assert drawn[0] == drawn[1]
    assert drawn[0] != [request.expected for request in asked(replace(random, seed=8), corpus).requests]
    assert asked(random, Corpus(corpus.documents[5:6])).requests[0].expected == drawn[0][5]


def test_stop_words():
    assert {"the", "and"} < set(stop_words_of("english"))
    assert (stop_words_of(None), stop_words_of(["The"])) == ((), ("the",))
    with pytest.raises(ValueError, match="stop_words must be english"):
        stop_words_of("german")


# ---------------------------------------------------------------------------------------------------- answers

TEN = ["leon", "ada", "chris", "jill", "claire", "wesker", "barry", "rebecca", "carlos", "hunk"]


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(TEN),
        ", ".join(TEN),
        "\n".join(f"{n}. {word}" for n, word in enumerate(TEN, 1)),
        "\n".join(f"{n}) **{word}**" for n, word in enumerate(TEN, 1)),
        " ".join(f"{n}. {word}" for n, word in enumerate(TEN, 1)),
        " ".join(f"({n}) {word}" for n, word in enumerate(TEN, 1)),
        "\n".join(f"- {word}" for word in TEN),
        "Here are the 10 most likely candidate words for the blank:\n\n" + "\n".join(f"* {word}" for word in TEN),
        "Sure, here are some candidates: " + ", ".join(TEN) + ".",
        "Candidates:\n" + "\n".join(f'{n}. "{word}"' for n, word in enumerate(TEN, 1)),
        "\n".join(f"{n}. {word} - a person of whom the game tells much" for n, word in enumerate(TEN, 1)),
        ", ".join([*TEN, "nemesis", "tyrant"]),
    ],
)
def test_lists_of_all_kinds_are_read(text):
    assert candidates_of(text) == TEN


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n ",
        "...",
        "I'm sorry, but I can't help with that.",
        "I cannot complete this request",
        "Leon",
        "1.0, 1.0, 1.0, 1.0, 1.0, 1.0",
        ".. math:: \\frac{x} \\frac{x} \\frac{x} \\frac{x}",
        "Sorry, I do not know, friend",
        "As an AI language model, I cannot know, so no.",
        "The missing word is most probably the name of the hero of the game, which is told at length elsewhere",
        "The function returns an array of the same shape as its input, where every value is replaced by another one\n"
        "so that the sum of all the values in the array is not changed at all by this",
    ],
)
def test_what_is_no_list_has_no_candidates(text):
    assert candidates_of(text) == []


def test_a_hit_is_a_whole_word_in_any_case():
    assert hit("leon", ["Ada", "LEON S. Kennedy"], "whole_word")
    assert hit("leon", ["Leon's"], "whole_word")
    assert not hit("leon", ["Leonard"], "whole_word")
    assert hit("leon", ["Leonard"], "substring")
    assert not hit("half-life", ["half life"], "whole_word")


def test_an_eleventh_candidate_comes_too_late():
    words = [f"word{n}" for n in range(10)]
    assert not hit("leon", candidates_of(", ".join([*words, "leon"])), "whole_word")
    assert hit("leon", candidates_of(", ".join([*words[:9], "leon"])), "whole_word")


def test_an_answer_is_judged_and_what_was_understood_is_kept():
    request = asked().requests[0]
    judged = PROBE.parse(request, Completion("1. Ada\n2. Leon", "answered"))
    assert (judged.valid, judged.correct, judged.read) == (True, True, "Ada; Leon")
    refused = PROBE.parse(request, Completion("I cannot tell, Leon.", "answered"))
    assert (refused.valid, refused.correct, refused.read) == (False, False, "")
