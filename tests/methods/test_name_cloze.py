"""Name cloze: what is asked, what is read in an answer, and what follows from right names."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import tiny
from made_up_methods import CLOZE as METHOD
from nonmember.corpora.names import BlankWord
from nonmember.endpoints import Request
from nonmember.methods import Roles
from nonmember.methods.name_cloze import CLOZE, ClozeProbe, fill_in, word_of
from nonmember.models import Pretrained
from scripted_models import EMPTY, REFUSED, Player, corpus_of, played, says

PROBE = ClozeProbe(with_title=False, max_new_tokens=16)
ROLES = Roles(Pretrained("the/target"), Pretrained("the/reference"), tiny.SUSPECT, seed=9, heldout=tiny.GENERAL)
PASSAGE = "When Mr. Hartwell came in, Hartwell's dog was asleep, and nobody had seen HARTWELL before."


# What is asked -------------------------------------------------------------------------------------------------------


def asked(text: str = PASSAGE, probe: ClozeProbe = PROBE, **work: str) -> Request:
    (request,) = probe.ask(corpus_of([text], **work), {}).requests
    return request


def test_the_name_is_nowhere_in_the_question():
    request = asked()
    assert (request.expected, request.name) == ("Hartwell", "cloze-person")
    assert "hartwell" not in request.question.lower()
    assert request.question.endswith(
        "Input: When Mr. [MASK] came in, [MASK]'s dog was asleep, and nobody had seen [MASK] before.\nOutput:"
    )
    assert (request.temperature, request.max_new_tokens) == (0.0, 16)


def test_the_question_has_all_its_parts():
    """docs/methods/name_cloze.md: (1) read in training (2) which name (3) one word (4) guess (5) examples (6) cue"""
    question = fill_in("[MASK] sang.", "person", "", "")
    assert "training data" in question
    assert "Which proper name belongs in the place of [MASK]?" in question
    assert "exactly one word" in question
    assert "not a pronoun" in question
    assert "guess" in question
    examples = re.findall(r"^Input: (.*)\nOutput: <name>([A-Z][a-z]+)</name>$", question, re.MULTILINE)
    assert len(examples) == 2
    assert all("[MASK]" in passage and name not in passage for passage, name in examples)
    assert question.endswith("Input: [MASK] sang.\nOutput:")
    noun = fill_in("The [MASK] sang.", "noun", "", "")
    assert "proper name" not in noun
    assert "Which word belongs" in noun


def test_the_work_is_named_only_where_it_is_wanted():
    work = {"title": "The Ferry", "author": "A. Ash"}
    assert "Ferry" not in asked(**work).question
    assert 'from "The Ferry" by A. Ash.' in asked(probe=replace(PROBE, with_title=True), **work).question


def test_a_name_that_the_title_gives_away_is_left_out():
    corpus = corpus_of([PASSAGE], title="Hartwell's House")
    assert PROBE.ask(corpus, {}).requests
    questions = replace(PROBE, with_title=True).ask(corpus, {})
    assert not questions.requests
    assert questions.reasons == {"d0": "the word left blank stands in the title or the author's name"}


def test_a_text_without_a_word_is_left_out():
    assert PROBE.ask(corpus_of(["and so on"]), {}).reasons == {"d0": "no word to leave blank"}


# What is read --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "word", "right"),
    [
        ("<name>Hartwell</name>", "hartwell", True),
        (" <NAME> hartwell. </NAME>\n\nInput: more", "hartwell", True),
        ("<name>Hartwell", "hartwell", True),
        ("Hartwell.", "hartwell", True),
        ('"HARTWELL", I think', "hartwell", True),
        ("<name>Mr. Hartwell</name>", "mr. hartwell", False),
        ("The name is Hartwell", "the", False),
        ("<name>Ada</name> or <name>Hartwell</name>", "ada", False),
        ("<name>Hartwell's</name>", "hartwell's", False),
        ("— Hartwell", "hartwell", True),
        ("Hartwell</name>", "hartwell", True),
        ("<name>Hartwell<name>", "hartwell", True),
        ("Hartwell\n\nInput: It rained on [MASK].\nOutput: <name>Ada</name>", "hartwell", True),
        ("Input: the passage\nOutput: <name>Hartwell</name>", "hartwell", True),
    ],
)
def test_answers_are_read(text, word, right):
    judged = PROBE.parse(asked(), says(text))
    assert (word_of(text), judged.read, judged.correct, judged.valid) == (word, word, right, True)


@pytest.mark.parametrize(
    "text", ["<name></name>", "...", "I'm sorry, but I cannot tell the name from this passage.", "<name>?</name>"]
)
def test_what_is_no_answer_is_not_valid(text):
    judged = PROBE.parse(asked(), says(text))
    assert (judged.valid, judged.correct) == (False, False)


def test_letters_are_compared_in_any_language():
    request = replace(asked(), expected="Émile")
    assert PROBE.parse(request, says("<name>ÉMILE</name>")).correct


# What follows --------------------------------------------------------------------------------------------------------

NAMES = ["Harriet", "Edwin", "Marchmont", "Penhallow", "Trevanion"]


def books(number: int, per_book: int = 8):
    """Passages with one name each."""
    rng = np.random.default_rng(3)
    texts = [f'"It is late," said {name}.' for name in rng.choice(NAMES, size=number * per_book)]
    return corpus_of(texts, [f"book{n // per_book}" for n in range(number * per_book)])


BOOKS = {number: books(number) for number in (3, 5, 15)}


def player_of(rates: Sequence[float], seed: int, per_book: int = 8) -> Player:
    """Knows each name of a book with the book's rate."""
    rng = np.random.default_rng(seed)

    def player(request: Request):
        known = rng.random() < rates[int(request.doc_id[1:]) // per_book]
        return says(f"<name>{request.expected if known else 'Nobody'}</name>")

    return player


def group_of(rates: Sequence[float], seed: int = 0):
    return played(BOOKS[len(rates)], {CLOZE: (PROBE, player_of(rates, seed))})


def outcome_of(suspect, heldout=None, **changes):
    documents = {"suspect": suspect} | ({"heldout": heldout} if heldout is not None else {})
    return replace(METHOD, **changes).test(documents, np.random.default_rng(0))


def shares(group) -> list[float]:
    return [float(np.mean(group.values[CLOZE][start : start + 8])) for start in range(0, len(group.doc_ids), 8)]


def test_known_names_are_evidence():
    groups = group_of([0.6] * 15, seed=1), group_of([0.2] * 15, seed=2)
    outcome = outcome_of(*groups)
    welch = stats.ttest_ind(*map(shares, groups), equal_var=False)
    assert outcome.p_value == pytest.approx(welch.pvalue)
    assert outcome.statistic == pytest.approx(np.mean(shares(groups[0])) - np.mean(shares(groups[1])))
    assert outcome.verdict == "evidence_of_membership"
    told = outcome.details.to_json()
    assert told["suspect"]["num_units"] == 15
    assert told["suspect"]["share_as_told"] == 1
    assert told["suspect"]["of_kind"]["person"]["num"] == 120
    assert 0.5 <= told["roc_auc"] <= 1
    assert told["few_resamples"]["best_balanced_acc"]["mean"] > 0.8
    json.dumps(told, allow_nan=False)


def test_no_difference_shows_nothing():
    outcome = outcome_of(group_of([0.5] * 15, seed=1), group_of([0.5] * 15, seed=2))
    assert outcome.verdict == "inconclusive"
    assert "not that the documents were not read" in outcome.allowed_claim


def test_the_other_direction_is_inconclusive_however_clear():
    outcome = outcome_of(group_of([0.1] * 15, seed=1), group_of([0.8] * 15, seed=2))
    assert outcome.p_value < 0.001
    assert outcome.verdict == "inconclusive"


def test_with_few_right_names_an_exact_test_decides_too():
    """Five works without a right name seem not to vary, and four of fifteen with one to be certainly more."""

    def one_in(number: int):
        right = {f"d{8 * book}" for book in range(number)}
        return lambda request: says(request.expected if request.doc_id in right else "Nobody")

    suspect, clean = (played(BOOKS[size], {CLOZE: (PROBE, one_in(number))}) for size, number in ((15, 4), (5, 0)))
    outcome = outcome_of(suspect, clean)
    assert outcome.p_value < 0.05
    assert outcome.verdict == "inconclusive"
    assert "an exact test decides too (p = 0.2" in outcome.warnings[0], "C(15, 4) / C(20, 4) is .28"


def test_without_a_clean_group_there_is_no_decision():
    outcome = outcome_of(group_of([0.5] * 15))
    assert (outcome.verdict, np.isnan(outcome.p_value)) == ("score_only", True)
    assert outcome.statistic == pytest.approx(np.mean(shares(group_of([0.5] * 15))))


def test_too_few_works_are_invalid():
    outcome = outcome_of(group_of([0.9] * 3, seed=1), group_of([0.1] * 3, seed=2))
    assert outcome.verdict == "invalid"
    assert "suspect set has 3 works left" in outcome.warnings[0]


def test_a_target_that_does_not_answer_as_told_is_invalid():
    def rambling(request: Request):
        return says(f"{request.expected} and then they all went down to the sea")

    groups = [played(BOOKS[15], {CLOZE: (PROBE, player)}) for player in (rambling, player_of([0.2] * 15, 1))]
    outcome = outcome_of(*groups)
    assert outcome.verdict == "invalid"
    assert outcome.warnings[0].startswith("The target does not follow instructions: 0.0% of its answers about the")
    assert outcome_of(*groups, min_valid_share=0).verdict == "evidence_of_membership"


def test_all_alike_is_nothing_to_test():
    outcome = outcome_of(group_of([0.0] * 15), group_of([0.0] * 15))
    assert outcome.verdict == "inconclusive"
    assert any("t is undefined" in warning for warning in outcome.warnings)
    json.dumps(outcome.details.to_json(), allow_nan=False)


def test_answers_that_are_none_are_counted_and_not_scored():
    answers = {"d0": REFUSED, "d1": EMPTY, "d2": says("I can't help with text from this book.")}
    group = played(
        BOOKS[15], {CLOZE: (PROBE, lambda item: answers.get(item.doc_id, says(f"<name>{item.expected}</name>")))}
    )
    told = outcome_of(group).details.to_json()["suspect"]
    assert (told["num_documents"], told["num_right"], told["mean_of_units"]) == (117, 117, 1.0)
    assert [told[name] for name in ("num_refused", "num_empty", "num_unreadable")] == [1, 1, 1]


def test_the_most_frequent_name_is_the_blind_control():
    """A name that is everywhere in the suspect group and nowhere in the other is guessed by whoever says it always."""
    easy = corpus_of([f'"It is {n} o\'clock," said Harriet.' for n in range(20)])
    hard = corpus_of([f'"It is {n} o\'clock," said {name}.' for n, name in enumerate(NAMES[1:] * 5)])
    groups = [
        played(corpus, {CLOZE: (PROBE, lambda item: says(f"<name>{item.expected}</name>"))}) for corpus in (easy, hard)
    ]
    outcome = outcome_of(*groups)
    control = outcome.details.to_json()["controls"]["most_frequent_name"]
    assert (control["mean_suspect"], control["mean_heldout"]) == (1, 0)
    # No spread within either group leaves t undefined, here and in the control.
    assert outcome.verdict == "inconclusive"


@pytest.mark.slow  # worlds by the hundred
def test_five_in_a_hundred_worlds_without_a_difference_are_rejected():
    """At 5% two-sided, half of it in the direction that counts. Books differ, and their passages with them."""
    rng = np.random.default_rng(11)
    number, small, evidence = 300, 0, 0
    for world in range(number):
        rates = rng.beta(2, 4, size=(2, 15))
        outcome = outcome_of(*(group_of(rates[side], seed=2 * world + side) for side in (0, 1)), num_resamples=20)
        small += outcome.p_value < 0.05
        evidence += outcome.verdict == "evidence_of_membership"
    assert 0.025 <= small / number <= 0.08, small
    assert evidence / number <= 0.05, evidence


# What is measured ----------------------------------------------------------------------------------------------------


def test_titles_that_are_not_there_are_one_sentence():
    with pytest.raises(ValueError, match=r"no document of the suspect set has a title.*method\.with_title=false"):
        replace(METHOD, with_title=True).check({"suspect": corpus_of([PASSAGE])})
    replace(METHOD, with_title=True).check({"suspect": corpus_of([PASSAGE], title="The Ferry")})


def test_the_words_are_the_choices_of_the_whole_corpus():
    requests = PROBE.ask(BOOKS[15], {}).requests
    assert len(requests) == 120
    assert {request.expected for request in requests} == set(NAMES)
    assert all(BlankWord(request.expected, "person") for request in requests)
