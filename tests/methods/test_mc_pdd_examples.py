"""Questions with their answers: a model that goes on as they do answers MC-PDD readably, and rightly."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tiny
from mc_pdd_world import entities
from nonmember.endpoints import Completion
from nonmember.methods.mc_pdd.questions import AnsweredQuestions, candidates_of

GAMES = entities(40, "game")
EXAMPLES = AnsweredQuestions(GAMES, num_words=1, show_name=True, seed=3)


def built(spec=EXAMPLES):
    return tiny.build(spec)


def test_a_text_is_the_question_and_a_list_that_is_judged_right():
    probe, corpus = EXAMPLES._probe(), built()
    requests = probe.ask(GAMES.build(None), {}).requests
    assert len(corpus) == len(requests) == 40
    for request, document in zip(requests, corpus.documents, strict=True):
        assert document.text.startswith(f"{request.as_text}\n1. {request.expected}\n2. ")
        answer = document.text.removeprefix(request.as_text)
        judged = probe.parse(request, Completion(answer, "answered"))
        assert (judged.valid, judged.correct) == (True, True)
        assert candidates_of(answer).count(request.expected) == 1
        assert document.cluster_id == request.doc_id


def test_the_other_words_are_masked_words_of_the_same_domain():
    half = tuple(replace(item, domain="b" if index % 2 else "a") for index, item in enumerate(GAMES.documents))
    words = {document.doc_id: document.text for document in half}
    for document in built(replace(EXAMPLES, base=tiny.Texts(half))).documents:
        listed = candidates_of(document.text.rpartition("explanation:")[2])
        others = {item.domain for item in half for word in listed if word in words[item.doc_id].split()}
        assert others == {document.domain}


def test_several_words_are_several_texts_with_ids_of_their_own():
    corpus = built(replace(EXAMPLES, num_words=2))
    assert len(set(corpus.doc_ids)) == len(corpus) == 80


def test_the_same_settings_give_the_same_texts():
    assert built().fingerprint == built().fingerprint != built(replace(EXAMPLES, seed=4)).fingerprint
    assert EXAMPLES.identity() != replace(EXAMPLES, show_name=False).identity()


@pytest.mark.parametrize("show_name", [True, False])
def test_names_are_shown_or_not(show_name):
    (first, *_) = built(replace(EXAMPLES, show_name=show_name)).documents
    assert ("Entity Name: Entity 0 of game" in first.text) == show_name
