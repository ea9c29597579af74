"""ReCaLL against what its authors' program computes, written out here: github.com/ruoyuxie/recall, src/run.py at
1b03b6b."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tiny
from nonmember.observations import Scored
from nonmember.observations.scored import shots_that_fit
from nonmember.scores import Recall

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
