"""A real model behind real servers says what it says as a local chat model: SmolLM2 by `transformers serve` and by
llama.cpp's server. The servers say themselves what they do not give, or do not say it; the client has to notice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import smollm2
import tiny
from lab_server.running import limits
from nonmember.artifacts import Builder
from nonmember.endpoints import Request
from nonmember.endpoints.asked import complete
from nonmember.endpoints.models import Endpoint
from nonmember.endpoints.reading import EndpointError
from nonmember.methods.pacost import IS_IT_CORRECT
from nonmember.observations import AnswerProbabilities, TokenStatistics
from real_servers import TRANSFORMERS, llama_server, transformers_serve

pytestmark = pytest.mark.slow

LIMITS = limits(1, timeout=300, max_retries=1, max_questions=100)
# In the forms of the methods: one word, one letter, a list, a continuation.
QUESTIONS = [
    Request("a", "q", "Which city is the capital of France?", 8, 0.0, 0, instruction="Answer in one word."),
    Request("b", "q", "Which is a fruit?\nA. stone\nB. apple\nC. table\nD. river\nAnswer:", 4, 0.0, 0),
    Request("c", "q", "List three colours, separated by commas.", 12, 0.0, 0),
    Request("d", "q", "Continue this text: The quick brown fox jumps over the", 12, 0.0, 0),
]
DOCUMENTS = tiny.texts(
    "Water boils at 100 degrees Celsius at sea level.",
    "The ferry to Mull was late again, so we ate our sandwiches in the rain and counted gulls.",
    "def mean(values):\n    return sum(values) / len(values)",
)
WITH_ALTERNATIVES = [replace(question, top_logprobs=5) for question in QUESTIONS]


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Builder:
    return replace(tiny.builder(tmp_path_factory.mktemp("shop")), asking=LIMITS)


@pytest.fixture(scope="module")
def local() -> Any:
    return smollm2.model()


@pytest.fixture(scope="module")
def by_transformers(shop, local) -> Iterator[Endpoint]:
    if not TRANSFORMERS.exists():
        pytest.skip("the command `transformers` is not installed beside Python")
    folder = local._as_folder(shop).path
    with transformers_serve(folder) as url:
        yield Endpoint(url, folder, "chat", "NO_KEY")


@pytest.fixture(scope="module")
def by_llama(local) -> Iterator[Endpoint]:
    pytest.importorskip("xllamacpp", reason="llama.cpp is not installed: pip install xllamacpp")
    with llama_server(local.files[0]) as url:
        yield Endpoint(url, "smollm2", "chat", "NO_KEY")


def test_transformers_serve_answers_as_the_local_model(shop, local, by_transformers):
    """The same weights in 32 bits, the same chat template, the likeliest token: the same text to the last letter. (Why
    an answer ends is told otherwise where its end is the last token that was wanted.)"""
    ours, theirs = (complete(shop, model, QUESTIONS) for model in (local, by_transformers))
    assert [item.text.strip() for item in theirs] == [item.text.strip() for item in ours]


def test_transformers_serve_gives_no_probabilities(shop, by_transformers):
    with pytest.raises(EndpointError, match="answers with text alone"):
        complete(shop, by_transformers, WITH_ALTERNATIVES)
    with pytest.raises(EndpointError, match="answers with text alone"):
        shop.get(AnswerProbabilities(by_transformers, DOCUMENTS, IS_IT_CORRECT, max_tokens=256))


def test_llama_cpp_gives_the_probabilities_of_the_local_model(shop, local, by_llama):
    """Of the first token, since after another one they speak of another text. llama.cpp calculates in 8 bits, which
    moves a log-probability by .1 to .2 (tests/models/test_llama_cpp.py)."""
    ours, theirs = (complete(shop, model, WITH_ALTERNATIVES) for model in (local, by_llama))
    assert [item.prompt_tokens for item in theirs] == [item.prompt_tokens for item in ours], "the same chat template"
    gaps = []
    for item, other in zip(ours, theirs, strict=True):
        mine, yours = dict(item.top_logprobs[0]), dict(other.top_logprobs[0])
        assert len(other.top_logprobs) == other.completion_tokens or other.finish_reason == "stop"
        assert len(mine.keys() & yours.keys()) >= 3
        gaps += [mine[token] - yours[token] for token in mine.keys() & yours.keys()]
    assert np.sqrt(np.mean(np.square(gaps))) < 0.3


def test_llama_cpp_finds_answers_as_probable_as_the_local_model(shop, local, by_llama):
    """PaCoST's question."""
    ours, theirs = (
        shop.get(AnswerProbabilities(model, DOCUMENTS, IS_IT_CORRECT, max_tokens=256)) for model in (local, by_llama)
    )
    listed = np.isfinite(theirs.log_prob)
    assert listed.sum() >= 3
    assert np.abs(ours.log_prob - theirs.log_prob)[listed].max() < 1


@pytest.mark.parametrize("server", ["by_transformers", "by_llama"])
def test_neither_scores_a_text(shop, request, server):
    """llama.cpp's and transformers' servers take no notice of `echo`, and say nothing of it."""
    with pytest.raises(EndpointError, match="needs the log-probability of each token of a given text"):
        shop.get(TokenStatistics(request.getfixturevalue(server), DOCUMENTS, view="original", max_tokens=64))
