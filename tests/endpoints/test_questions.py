"""A real model behind a server says what it says when its weights are at hand; texts and answers of a made-up one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tiny
from lab_server.running import KEY_VARIABLE, RunningLab, limits, running_model
from marks import slow
from nonmember import scores
from nonmember.artifacts import Builder
from nonmember.endpoints.models import Endpoint
from nonmember.endpoints.reading import EndpointError
from nonmember.endpoints.rephrased import Written
from nonmember.models import Pretrained
from nonmember.models.loading import load_pretrained, save
from nonmember.observations import AnswerProbabilities, Scored, TokenStatistics
from nonmember.records import Document, Prompt, Question

LIMITS = limits(8, timeout=30)
IS_IT = Question("Is this text correct? Answer Yes or No.", answers=("Yes", "No"))


@pytest.fixture(scope="module")
def folder(make_model, tmp_path_factory) -> Path:
    """A model to which Yes and No are now and then among the likeliest words."""
    plain = make_model(3, words=" ".join([*tiny.WORDS, IS_IT.instruction, "Text: Response: Yes No"] * 20))
    loaded = load_pretrained(Pretrained(str(plain)))
    head, ids = loaded.model.get_output_embeddings().weight.data, loaded.tokenizer.convert_tokens_to_ids
    head[ids("\u0120Yes")], head[ids("\u0120No")] = 1.1 * head[ids("g")], 0.9 * head[ids("K")]
    made = tmp_path_factory.mktemp("answering")
    save(loaded, made)
    return made


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[RunningLab]:
    with running_model(folder) as lab:
        yield lab


@pytest.fixture
def real(served: RunningLab) -> RunningLab:
    """The model of `folder` behind a server."""
    served.setup(model="tiny")
    return served


@pytest.fixture
def shop(tmp_path: Path) -> Builder:
    return replace(tiny.builder(tmp_path), asking=LIMITS)


def endpoint(lab: RunningLab) -> Endpoint:
    return lab.endpoint("completions", model="tiny")


DOCUMENTS = tiny.texts(*tiny.random_texts(20, seed=4, words=30), "moss", "", "Fern und Farn: déjà vu – 雨")


@pytest.mark.parametrize(
    ("view", "max_tokens"), [("original", 512), ("lowercase", 10), slow("lowercase", 512), slow("original", 10)]
)
def test_scores_of_whole_texts_are_those_of_the_model(real, shop, folder, view, max_tokens):
    local = shop.get(TokenStatistics(Pretrained(str(folder)), DOCUMENTS, view=view, max_tokens=max_tokens))
    found = shop.get(TokenStatistics(endpoint(real), DOCUMENTS, view=view, max_tokens=max_tokens))
    assert found.doc_ids == local.doc_ids
    assert found.num_tokens.tolist() == local.num_tokens.tolist()
    assert found.position.tolist() == local.position.tolist()
    np.testing.assert_allclose(found.log_prob, local.log_prob, atol=1e-4)
    assert np.isnan(found.mean).all()
    assert np.isnan(found.std).all()
    assert set(found.token_id) == {-1}


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"refuses": ["max_tokens=0"]}, {"zero_tokens": 9}, {"refuses": ["max_tokens=1"]}])
def test_servers_that_must_write_a_token_or_none(real, shop, folder, settings):
    """Or take none for as many as they like, whose scores are not the text's."""
    real.setup(model="tiny", **settings)
    found = shop.get(TokenStatistics(endpoint(real), DOCUMENTS, view="original", max_tokens=512))
    local = shop.get(TokenStatistics(Pretrained(str(folder)), DOCUMENTS, view="original", max_tokens=512))
    assert found.num_tokens.tolist() == local.num_tokens.tolist()
    np.testing.assert_allclose(found.log_prob, local.log_prob, atol=1e-4)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"refuses": ["max_tokens=1"], "zero_tokens": 9}, r"and tiny .* does not give it"),
        # As llama-cpp-python 0.3.36 gives them for models whose texts begin with no token of their own.
        ({"shifted": True}, r"scores of a text that are not its own: a token that it wrote with"),
    ],
)
def test_scores_of_what_was_written_or_of_other_tokens_are_refused(real, shop, settings, reason):
    real.setup(model="tiny", **settings)
    with pytest.raises(EndpointError, match=reason):
        shop.get(TokenStatistics(endpoint(real), DOCUMENTS, view="original", max_tokens=512))


@pytest.mark.slow
@pytest.mark.parametrize("score", [slow(scores.Loss()), slow(scores.Zlib()), scores.Lowercase(), scores.MinK(0.2)])
def test_scores_that_need_no_more(real, shop, folder, score):
    def values(model):
        return score(Scored("target", model, DOCUMENTS, score, 64).inputs(shop)).values

    np.testing.assert_allclose(values(endpoint(real)), values(Pretrained(str(folder))), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("score", "needed"),
    [(scores.MinKPlusPlus(0.2), "whole next-token distributions"), (scores.DcPdd(0.01), "weights and tokenizer")],
)
def test_scores_that_need_more_are_refused_for_nothing(real, shop, score, needed):
    real.forget()
    with pytest.raises(
        EndpointError, match=rf"The score .* needs {needed} of the model, but tiny .* can only be queried"
    ):
        Scored("target", endpoint(real), DOCUMENTS, score, 64, counted_in=DOCUMENTS).inputs(shop)
    assert real.ledger()["received"] == 0


@pytest.mark.slow
def test_what_was_observed_is_found(real, shop, tmp_path):
    first = shop.get(TokenStatistics(endpoint(real), DOCUMENTS, view="original", max_tokens=64))
    real.forget()
    again = replace(tiny.builder(tmp_path), asking=LIMITS)
    found = again.get(TokenStatistics(endpoint(real), DOCUMENTS, view="original", max_tokens=64))
    assert np.array_equal(found.log_prob, first.log_prob)
    assert real.ledger()["received"] == 0
    assert (again.counters.answers_asked, again.counters.answers_found) == (0, 22)


@pytest.mark.slow
def test_probabilities_of_answers_are_those_of_the_model(real, shop, folder):
    documents = tiny.texts(*tiny.random_texts(15, seed=5))
    local = shop.get(AnswerProbabilities(Pretrained(str(folder)), documents, IS_IT, max_tokens=64))
    found = shop.get(AnswerProbabilities(endpoint(real), documents, IS_IT, max_tokens=64))
    listed = np.isfinite(found.log_prob)
    assert found.num_tokens.tolist() == [2] * 15
    np.testing.assert_allclose(found.log_prob[listed], local.log_prob[listed], atol=1e-4)
    assert listed.sum() >= 15
    assert np.exp(local.log_prob[~listed]).max(initial=0) < 1 / 21, "it is less likely than 20 others"


def test_answers_that_are_not_listed_are_told(real, shop):
    question = replace(IS_IT, answers=("Yes", "Certainly"))
    table = shop.get(
        AnswerProbabilities(endpoint(real), tiny.texts(*tiny.random_texts(15, seed=5)), question, max_tokens=64)
    )
    assert np.isneginf(table.log_prob[1::2]).all()
    (warning,) = shop.warnings()
    num_absent = np.isneginf(table.log_prob).sum()
    assert f"In {num_absent} of 30 cases an answer was not among the 20 tokens that tiny at" in warning


def test_answers_of_a_chat_model(lab, shop):
    lab.setup(
        documents=[{"text": "moss fern reed", "read": True}, {"text": "pine lark wren", "read": False}],
        hit={"judgement": [0.3, 0.7]},
    )
    table = shop.get(
        AnswerProbabilities(lab.endpoint(), tiny.texts("moss fern reed", "pine lark wren"), IS_IT, max_tokens=64)
    )
    yes, no = np.exp(table.log_prob[::2]), np.exp(table.log_prob[1::2])
    assert yes[0] == pytest.approx(0.7, abs=0.051)
    assert yes[1] == pytest.approx(0.3, abs=0.051)
    assert yes + no == pytest.approx(0.99)


def test_a_text_that_is_certainly_too_long_is_refused(lab, shop):
    with pytest.raises(
        ValueError, match=r"'d0' has 12 words and max_tokens is 11, but the tokenizer of lab at .* is not"
    ):
        shop.get(AnswerProbabilities(lab.endpoint(), tiny.texts(" ".join(["rain"] * 12)), IS_IT, max_tokens=11))
    assert lab.ledger()["paid"] <= 2


def test_answers_that_are_refused_leave_the_document_out(lab, shop):
    lab.setup(refused=0.3)
    documents = tiny.texts(*tiny.random_texts(30, seed=6))
    score = scores.AnswerProbability(IS_IT, "Yes")
    found = score(Scored("target", lab.endpoint(), documents, score, 64).inputs(shop))
    assert 0 < len(found.reasons) < 30
    assert set(found.reasons.values()) == {"the model gave no probabilities of its answer"}
    assert {doc for doc, value in zip(found.doc_ids, found.values, strict=True) if math.isnan(value)} == set(
        found.reasons
    )


def written(lab: RunningLab, documents: tiny.Texts, **changes: object) -> Written:
    plain = Written(documents, lab.endpoint(), Prompt("Rephrase the text."), 0.1, 64, 64, 0)
    return replace(plain, **changes)


def test_an_endpoint_writes_a_corpus(lab, shop, tmp_path):
    documents = tiny.texts(*tiny.random_texts(20, seed=7, words=50))
    corpus = shop.get(written(lab, documents))
    assert corpus.doc_ids == shop.get(documents).doc_ids
    assert all(new.text != old.text for new, old in zip(corpus.documents, documents.documents, strict=True))
    lab.forget()
    again = replace(tiny.builder(tmp_path), asking=LIMITS)
    assert again.get(written(lab, documents)) == corpus
    assert lab.ledger()["received"] == 0


def test_what_was_not_written_is_left_out_and_counted(lab, shop):
    lab.setup(refused=0.2, empty=0.2)
    documents = tiny.texts(*tiny.random_texts(40, seed=8))
    corpus = shop.get(written(lab, documents))
    assert set(corpus.dropped) == {"written: empty", "written: refused"}
    assert len(corpus) + sum(corpus.dropped.values()) == 40
    assert all(item.text for item in corpus.documents)


def test_half_a_rephrasing_is_left_out(lab, shop):
    cut = written(lab, tiny.texts(*tiny.random_texts(4, seed=7, words=50)), max_new_tokens=16)
    assert shop.get(cut).dropped == {"written: cut at max_new_tokens=16": 4}


def test_documents_keep_their_marks(lab, shop):
    documents = tiny.Texts((Document("a", "moss fern reed", "book", "library", "Moss", "Ada"),))
    (item,) = shop.get(written(lab, documents)).documents
    assert (item.cluster_id, item.domain, item.title, item.author) == ("book", "library", "Moss", "Ada")


def test_where_no_weights_are_at_hand(shop):
    with pytest.raises(ValueError, match="can only be queried: its weights are not available"):
        shop.get(Endpoint("http://localhost/v1", "m", "chat", KEY_VARIABLE))
