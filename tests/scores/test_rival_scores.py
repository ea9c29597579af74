"""Neighbourhood comparison, ReCaLL and gradient norms against what their authors' programs compute, written out here.

Sources: github.com/ruoyuxie/recall, src/run.py at 1b03b6b; github.com/iamgroot42/mimir, mimir/attacks/neighborhood.py
at 05e5efd and gradnorm.py at 576339b.
"""

from __future__ import annotations

import hashlib
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from test_scores import table
from transformers import BertForMaskedLM

import nonmember as nm
import tiny
from nonmember.corpora.views import RandomNeighbours
from nonmember.models import Access
from nonmember.models.neighbours import DROPPED, MaskedNeighbours
from nonmember.observations import Scored, access_of
from nonmember.observations.scored import contexts_of, shots_that_fit
from nonmember.records.documents import NORMS, GradientNorms
from nonmember.records.neighbours import text_of_neighbour
from nonmember.scores import Codec, GradNorm, Neighbourhood, Recall, ScoreInputs
from tiny_bert import WORDS, save_bert, tokenizer_of

MODEL = tiny.scratch(3)
UNREAD = tiny.texts(*tiny.random_texts(6, seed=9), name="unread")
SOME = tiny.texts(*tiny.random_texts(5, seed=2), "moss")


@pytest.fixture
def shop(tmp_path):
    return tiny.builder(tmp_path)


def scores(shop, score, corpus=SOME, **more):
    return score(Scored("target", MODEL, corpus, score, 64, **more).inputs(shop)).values


def log_likelihood(model, ids, context=()):
    """get_ll and get_conditional_ll of ReCaLL's program: -loss with the labels of the context at -100."""
    whole = torch.tensor([[*context, *ids]])
    labels = whole.clone()
    labels[:, : len(context)] = -100
    with torch.no_grad():
        return -float(model(whole, labels=labels).loss)


def test_recall_is_that_of_its_authors(shop):
    loaded = shop.get(MODEL)
    found = scores(shop, Recall(2), prefix=UNREAD)
    prefix = [loaded.tokenizer(doc.text)["input_ids"] for doc in UNREAD.documents[:2]]
    for document, value in zip(SOME.documents, found, strict=True):
        ids = loaded.tokenizer(document.text)["input_ids"]
        if len(ids) < 2:
            assert np.isnan(value)
            continue
        expected = log_likelihood(loaded.model, ids, [*prefix[0], *prefix[1]]) / log_likelihood(loaded.model, ids)
        assert value == pytest.approx(expected, rel=2e-5)


def test_as_many_unread_texts_as_the_model_can_read(shop):
    assert shots_that_fit([], [[1] * 40, [2] * 40, [3] * 40], 30, 128) == [[1] * 40, [2] * 40]
    assert shots_that_fit([7], [[1] * 97, [2]], 30, 128) == [[1] * 97]
    with pytest.raises(ValueError, match="No text of the prefix fits before a document of 30 tokens"):
        shots_that_fit([], [[1] * 99], 30, 128)
    np.testing.assert_array_equal(
        scores(shop, Recall(6), prefix=UNREAD)[:2], scores(shop, Recall(60), prefix=UNREAD)[:2]
    )


def test_no_document_stands_before_itself(shop):
    """Texts of the prefix that are audited are left out of it."""
    mixed = tiny.Texts((*SOME.documents, *UNREAD.documents))
    np.testing.assert_array_equal(scores(shop, Recall(2), prefix=mixed), scores(shop, Recall(2), prefix=UNREAD))
    with pytest.raises(ValueError, match="Every text of the prefix is one of the documents"):
        scores(shop, Recall(2), prefix=SOME)
    with pytest.raises(ValueError, match="reads unread texts before each document; name them"):
        scores(shop, Recall(2))


def test_gradient_norms_are_those_of_mimir(shop):
    """With the sign turned: the program returns minus the norm, and takes lower for members."""
    loaded = shop.get(MODEL)
    found = {norm: scores(shop, GradNorm(norm)) for norm in ("l1", "l2", "max")}
    flags = [parameter.requires_grad for parameter in loaded.model.parameters()]
    model = loaded.model.requires_grad_(True)
    for index, document in enumerate(SOME.documents):
        ids = torch.tensor([loaded.tokenizer(document.text)["input_ids"]])
        if ids.shape[1] < 2:
            assert np.isnan(found["l2"][index])
            continue
        model.zero_grad()
        log_probs = F.log_softmax(model(ids).logits[0, :-1], dim=-1)
        (-log_probs.gather(1, ids[0, 1:, None]).mean()).backward()
        for norm, p in (("l1", 1), ("l2", 2), ("max", np.inf)):
            norms = [item.grad.norm(p) for item in model.parameters() if item.grad is not None]
            assert found[norm][index] == pytest.approx(-float(torch.stack(norms).mean()), rel=1e-4)
    for parameter, flag in zip(model.parameters(), flags, strict=True):
        parameter.grad = None
        parameter.requires_grad_(flag)


def test_a_gradient_that_is_no_number_is_a_reason():
    """As that of a token without a probability."""
    norms = GradientNorms(("a", "b"), dict.fromkeys(NORMS, np.array([np.nan, 2.0])))
    found = GradNorm()(ScoreInputs(table({"a": [-1.0], "b": [-1.0]}), gradients=norms))
    assert found.values[1] == -2
    assert found.reasons == {"a": "what was observed of the text is no number"}


def test_gradients_change_nothing(shop):
    before, flags = tiny.weights(shop.get(MODEL).model), [p.requires_grad for p in shop.get(MODEL).model.parameters()]
    scores(shop, GradNorm())
    after = shop.get(MODEL).model
    tiny.assert_equal_weights(before, tiny.weights(after))
    assert [p.requires_grad for p in after.parameters()] == flags
    assert all(p.grad is None for p in after.parameters())


def test_the_neighbourhood_is_the_mean_of_the_neighbours(shop):
    """loss - mean(losses of neighbours) in mimir, negated once."""
    score = Neighbourhood(4)
    loaded = shop.get(MODEL)
    neighbours = shop.get(RandomNeighbours(SOME, 4, 0.3, 2, 1))
    losses = {}
    for document in neighbours.documents:
        ids = loaded.tokenizer(document.text)["input_ids"]
        losses.setdefault(text_of_neighbour(document.doc_id), []).append(-log_likelihood(loaded.model, ids))
    found = scores(shop, score)
    for document, value in zip(SOME.documents[:5], found, strict=False):
        own = -log_likelihood(loaded.model, loaded.tokenizer(document.text)["input_ids"])
        assert value == pytest.approx(np.mean(losses[document.doc_id]) - own, rel=1e-4, abs=1e-5)
    assert nm.scores.neighbourhood([-1.0, -3.0], [[-3.0], [-5.0]]) == 2.0


def test_random_neighbours_change_the_share_of_words_that_mimir_changes(shop):
    text = " ".join(f"word{number}" for number in range(120))
    corpus = tiny.texts(text, "moss fern", "moss")
    made = shop.get(RandomNeighbours(corpus, 20, 0.3, 2, 1))
    assert len(made) == 60
    own = text.split()
    changed = [
        sum(word != other for word, other in zip(own, document.text.split(), strict=True))
        for document in made.documents
        if text_of_neighbour(document.doc_id) == "d0"
    ]
    spans = int(0.3 * 120 / (2 + 2))
    assert max(changed) <= 2 * spans, "n_spans = pct * words / (span + 2 buffer), each of two words"
    assert np.mean(changed) > 2 * spans - 1, "a word replaced by itself is rare"
    assert len({document.text for document in made.documents[:20]}) == 20
    assert made.fingerprint == tiny.build(RandomNeighbours(corpus, 20, 0.3, 2, 1)).fingerprint


def test_a_long_word_takes_its_memory_once(shop):
    corpus = tiny.texts(" ".join(f"word{number}" for number in range(1000)), "x" * 10_000)
    tracemalloc.start()
    shop.get(RandomNeighbours(corpus, 1, 0.3, 2, 1))
    assert tracemalloc.get_traced_memory()[1] < 10**7, "an array has 40 MB"
    tracemalloc.stop()


@pytest.mark.slow
def test_masked_neighbours_are_the_likeliest_single_words(tmp_path, shop):
    """p(proposal) / (1 - p(token)) with the token's embedding dropped out, over all places (Mattern et al., 3.1)."""
    folder = save_bert(tmp_path / "bert", 34)
    text = "harriet said the edwin"
    made = shop.get(MaskedNeighbours(tiny.texts(text), 5, str(folder)))
    model, tokenizer = BertForMaskedLM.from_pretrained(folder).eval(), tokenizer_of(WORDS)
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(f"neighbours\0{text}".encode()).digest()[:8]))
    ids = tokenizer(text)["input_ids"]
    weights = {}
    for index in range(1, len(ids) - 1):
        embedded = model.bert.embeddings.word_embeddings(torch.tensor([ids])).detach().clone()
        embedded[0, index] *= torch.tensor(rng.random(16) >= DROPPED) / (1 - DROPPED)
        with torch.no_grad():
            p = model(inputs_embeds=embedded).logits[0, index].softmax(-1)
        for other in p.topk(6).indices.tolist():
            if other != ids[index] and other >= 5:
                words = [*text.split()]
                words[index - 1] = WORDS[other].replace("##", "")
                weights[" ".join(words)] = float(p[other] / (1 - p[ids[index]]))
    expected = sorted(weights, key=lambda item: -weights[item])[:5]
    assert [document.text for document in made.documents] == expected
    assert np.isfinite(scores(shop, Neighbourhood(5, str(folder)), tiny.texts(text, text))).all()


def test_what_a_model_must_offer():
    assert access_of(Neighbourhood(2)) == Access.PROMPT_LOGPROBS
    assert access_of(Recall(2)) == access_of(GradNorm()) == Access.WEIGHTS


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (lambda: GradNorm("frobenius"), "norm must be one of l1, l2, max"),
        (lambda: Recall(0), "num_shots must be a whole number"),
        (lambda: Neighbourhood(0), "number must be a whole number"),
        (lambda: Neighbourhood(1, share=0.0), "share must be a number in"),
    ],
)
def test_settings_that_cannot_be(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        settings()


def test_a_folder_that_holds_no_masked_model(tmp_path: Path, shop):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="empty"):
        shop.get(MaskedNeighbours(SOME, 5, str(tmp_path / "empty")))


# CoDeC ----------------------------------------------------------------------------------------------------------------


def test_codec_is_the_share_of_contexts_that_lower_the_likelihood(shop):
    corpus = tiny.texts(*tiny.random_texts(8, seed=4))
    loaded, contexts = shop.get(MODEL), contexts_of(corpus.documents, 3)
    ids = {document.doc_id: loaded.tokenizer(document.text)["input_ids"] for document in corpus.documents}
    expected = {name: [] for name in ids}
    for name, context in contexts.items():
        own = ids[text_of_neighbour(name)]  # its first token has no likelihood alone
        behind = log_likelihood(loaded.model, own[1:], [*ids[context], own[0]])
        expected[text_of_neighbour(name)].append(behind < log_likelihood(loaded.model, own))
    found = scores(shop, Codec(3), corpus)
    assert found == pytest.approx([np.mean(item) for item in expected.values()])
    assert 0 < found.mean() < 1, "else this shows little"


def test_codec_of_texts_without_tokens(shop):
    """They have no score, and are no context of the others."""
    texts = [*tiny.random_texts(4, seed=4), "", " ", "m"]
    inputs = Scored("target", MODEL, tiny.texts(*texts), Codec(3), 64).inputs(shop)
    assert np.isnan(Codec(3)(inputs).values).tolist() == [False] * 4 + [True] * 3
    assert not {"d4", "d5"} & set(contexts_of(tiny.texts(*texts).documents, 3).values())


def test_contexts_are_other_documents_in_an_order_of_their_own():
    documents = tiny.texts(*tiny.random_texts(9, seed=4)).documents
    contexts = contexts_of(documents, 4)
    assert all(text_of_neighbour(name) != context for name, context in contexts.items())
    assert contexts == contexts_of(tuple(reversed(documents)), 4)
    of_first = {context for name, context in contexts.items() if text_of_neighbour(name) == "d0"}
    assert len(of_first) > 1, "drawn anew"
    works = tuple(replace(item, cluster_id=f"work{index % 2}") for index, item in enumerate(documents))
    assert all(int(name[1]) % 2 != int(context[1]) % 2 for name, context in contexts_of(works, 2).items())


def test_contexts_that_cannot_be(shop):
    long = tiny.texts("moss fern " * 200, "reed pine " * 200)
    with pytest.raises(ValueError, match=r"takes up to 200 tokens, and the model reads 128\. Set max_tokens to 64 or"):
        Codec(1)(Scored("target", MODEL, long, Codec(1), 100).inputs(shop))
    with pytest.raises(ValueError, match="no document of another work to put before 'd0'"):
        contexts_of(tiny.texts("moss fern", "moss fern").documents, 1)
    with pytest.raises(ValueError, match="num_contexts must be a whole number"):
        Codec(0)
