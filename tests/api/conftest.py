"""A question that is answered in half a second, for calls from Python."""

from __future__ import annotations

import pytest

SHORT_READING = {"method.max_tokens": 100}
SHORT = {**SHORT_READING, "gates": "off", "method.num_resamples": 200, "method.distillation.max_tokens": 100}


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def texts(texts) -> list[str]:
    return [f"{text} " * 25 for text in texts]


@pytest.fixture
def models(make_model):
    """(model, tokenizer) of a seed, as a program has them in memory."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    def load(seed: int):
        folder = make_model(seed)
        return AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)

    return load
