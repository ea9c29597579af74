"""Whole texts in windows: by hand, against transformers itself, and against lm-eval."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import nonmember as nm
import tiny
from nonmember.models.kinds.pretrained import load_folder
from nonmember.models.tokenizing import prepare
from nonmember.observations.passes.rolling import windows
from nonmember.records import TokenTable
from nonmember.scores import Rolling, ScoreInputs

QUANTITIES = ("loglikelihood_rolling", "word_perplexity", "byte_perplexity", "bits_per_byte")
LONG = " ".join(tiny.random_texts(1, seed=3, words=90))
TEXTS = [
    "moss fern  reed\n\tpine",
    "a",  # a token: it stands behind the prefix
    "Ärger: 中文, naïve café 🦉🦉 und Größe",
    LONG,  # four windows and a rest
    f"<|endoftext|>{LONG[:40]}",
    f" {LONG[:200]} ",
    "",
]


def test_each_token_is_scored_once_behind_the_context_there_is():
    parts = list(windows([1, 2, 3, 4, 5, 6, 7], prefix=0, most=3))
    assert [list(window.ids) for window in parts] == [[0, 1, 2, 3], [3, 4, 5, 6], [4, 5, 6, 7]]
    assert [(window.start, window.first_scored) for window in parts] == [(0, 1), (3, 1), (4, 3)]
    assert [list(window.ids) for window in windows([1, 2], prefix=0, most=3)] == [[0, 1, 2]]
    assert list(windows([], prefix=0, most=3)) == []


def test_the_quantities_by_hand():
    log_prob = np.log([0.5, 0.25, 0.5], dtype=np.float32)
    tokens = TokenTable(("a", "b"), np.array([0, 3, 3]), *(np.zeros(3, np.int32),) * 2, *(log_prob,) * 3)
    inputs = ScoreInputs(tokens, texts=["é ab ", ""])  # three words, of which one is empty, as lm-eval has it; 6 bytes
    found = {quantity: Rolling(quantity)(inputs) for quantity in QUANTITIES}
    expected = (-4 * math.log(2), -(2 ** (4 / 3)), -(2 ** (4 / 6)), -4 / 6)
    assert [item.values[0] for item in found.values()] == pytest.approx(expected, rel=1e-6)
    assert all(math.isnan(item.values[1]) and "b" in item.reasons for item in found.values())
    steep = TokenTable(("a",), np.array([0, 9]), *(np.zeros(9, np.int32),) * 2, *(np.full(9, -100, np.float32),) * 3)
    assert Rolling("word_perplexity")(ScoreInputs(steep, texts=["中"])).reasons == {
        "a": "the perplexity is too large for a number"
    }
    with pytest.raises(ValueError, match="quantity must be one of loglikelihood_rolling"):
        Rolling("bits_per_word")


def test_windows_are_those_of_the_model(make_model, tmp_path, monkeypatch):
    """Behind the end-of-text token; max_tokens cuts other scores and not these, which alone take one pass."""
    monkeypatch.chdir(tmp_path)
    table = nm.score(TEXTS, make_model(0), scores=["rolling"], max_tokens=8)
    assert [name for name in QUANTITIES if name in table] == list(QUANTITIES)
    assert "loss" not in table
    assert table.attrs["nonmember"]["views"]["bits_per_byte"] == ["whole"]
    loaded = load_folder(make_model(0))
    most = loaded.model.config.max_position_embeddings
    for text, value in zip(TEXTS, table["loglikelihood_rolling"], strict=True):
        ids = loaded.tokenizer(text)["input_ids"]
        behind, expected = torch.tensor([loaded.tokenizer.eos_token_id, *ids]), 0.0
        for first in range(0, len(ids), most):
            end = min(first + most, len(ids))
            start = max(0, end - most)
            with torch.no_grad():
                log_probs = loaded.model(behind[None, start:end]).logits[0].double().log_softmax(-1)
            expected += float(log_probs.gather(-1, behind[start + 1 : end + 1, None])[first - start :].sum())
        assert math.isnan(value) if not ids else value == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("own_front", [False, True])
def test_lm_eval_gives_the_same(make_model, tmp_path, monkeypatch, own_front):
    """own_front: whether the tokenizer puts a beginning-of-text token before each text by itself."""
    pytest.importorskip("lm_eval", reason="lm-eval is not installed; make setup EXTRAS=peers installs it")
    from lm_eval.api.instance import Instance
    from lm_eval.api.metrics import bits_per_byte, weighted_perplexity
    from lm_eval.api.task import PerplexityTask
    from lm_eval.models.huggingface import HFLM

    monkeypatch.chdir(tmp_path)
    loaded = load_folder(make_model(0))
    loaded.tokenizer.bos_token = loaded.tokenizer.eos_token
    prepare(loaded.tokenizer, "always" if own_front else "auto")
    texts = [text for text in TEXTS if text]
    table = nm.score(texts, (loaded.model, loaded.tokenizer), scores=["rolling"])
    theirs = HFLM(pretrained=loaded.model, tokenizer=loaded.tokenizer, batch_size=3)
    requests = [Instance("loglikelihood_rolling", {}, (text,), 0) for text in texts]
    sums = theirs.loglikelihood_rolling(requests, disable_tqdm=True)
    assert table["loglikelihood_rolling"].to_numpy() == pytest.approx(sums, rel=1e-6)
    for text, total, row in zip(texts, sums, table.to_dict("records"), strict=True):
        words, num_bytes = PerplexityTask.count_words(text), PerplexityTask.count_bytes(text)
        assert -row["word_perplexity"] == pytest.approx(weighted_perplexity([(total, words)]), rel=1e-4)
        assert -row["byte_perplexity"] == pytest.approx(weighted_perplexity([(total, num_bytes)]), rel=1e-4)
        assert -row["bits_per_byte"] == pytest.approx(bits_per_byte([(total, num_bytes)]), rel=1e-4)
