"""`transformers serve`, a real server that ignores a request for log-probabilities without saying so."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lab_server.running import limits
from nonmember.artifacts.store import Store
from nonmember.endpoints import Access, Request, questions
from nonmember.endpoints.client import EndpointClient, Session
from nonmember.endpoints.models import Endpoint
from nonmember.endpoints.questions import require
from nonmember.endpoints.reading import EndpointError
from real_servers import TRANSFORMERS, transformers_serve

LIMITS = limits(timeout=60, max_retries=1, max_questions=50)
TEMPLATE = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not TRANSFORMERS.exists(), reason="the command `transformers` is not installed beside Python"),
]


@pytest.fixture(scope="module")
def served(make_model, tmp_path_factory) -> Iterator[tuple[str, Path]]:
    """Address and folder of the model."""
    folder = tmp_path_factory.mktemp("served") / "tiny"
    shutil.copytree(make_model(1), folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    with transformers_serve(folder) as url:
        yield url, folder


@pytest.mark.parametrize("form", ["chat", "completions"])
def test_that_log_probabilities_are_ignored_is_noticed(served, tmp_path, form):
    url, folder = served
    client = EndpointClient(Endpoint(url, str(folder), form, "NO_KEY"), Store(tmp_path), LIMITS, Session())
    question = Request("d", "q", "moss fern", 4, 0.0, 0)
    (answer,) = questions.completions(client, [question])
    assert answer.outcome in ("answered", "empty")
    with pytest.raises(EndpointError, match="answers with text alone"):
        require(client, Access.TOP_LOGPROBS, "decop")
    with pytest.raises(EndpointError, match="answers with text alone"):
        questions.completions(client, [replace(question, top_logprobs=4)])
    with pytest.raises(EndpointError, match="does not give it"):
        require(client, Access.PROMPT_LOGPROBS, "min_k")
