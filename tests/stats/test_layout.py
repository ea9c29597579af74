"""Layout alone: found where texts were prepared in two ways, not where they only say other things."""

from __future__ import annotations

import pytest

import tiny
from nonmember.stats.blind import layout_auc, layout_features

TEXTS = tiny.random_texts(80, seed=1, words=30)
OTHERS = [text.replace("moss", "tundra").replace("fern", "glacier") for text in tiny.random_texts(80, seed=2, words=24)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "changed",
    [
        lambda text: text.replace(" ", "\n    ", 2),
        lambda text: text.replace(" ", "  "),
        lambda text: text + " ",
        lambda text: text.upper(),
        lambda text: f"<p>{text}</p>",
        lambda text: text.replace(" ", "\u00a0"),
    ],
)
def test_another_preparation_is_seen(changed):
    assert layout_auc([changed(text) for text in TEXTS], OTHERS, num_folds=5, seed=0) > 0.95


def test_other_words_and_lengths_are_not():
    assert layout_auc(TEXTS, OTHERS, num_folds=5, seed=0) == pytest.approx(0.5, abs=0.15)


def test_texts_of_no_layout_at_all_give_one_half():
    assert layout_auc(["moss fern"] * 20, ["fern moss"] * 20, num_folds=5, seed=0) == 0.5


def test_empty_texts_have_features():
    assert layout_features(["", "a"]).shape == (2, 14)


def test_fewer_texts_than_folds():
    with pytest.raises(ValueError, match="compared in 5 folds"):
        layout_auc(TEXTS[:3], OTHERS, num_folds=5, seed=0)
