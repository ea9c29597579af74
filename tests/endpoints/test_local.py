"""A local model answers requests: what it is shown, what it writes, how probably; and it goes on after a stop."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import tiny
from nonmember.endpoints import Request
from nonmember.endpoints.asked import Completions, load_completions, save_completions
from nonmember.endpoints.local import complete_locally
from nonmember.models.loading import LoadedModel, train_tokenizer
from nonmember.models.prompting import PromptParts, encode_prompts
from nonmember.observations.passes import writing
from nonmember.observations.passes.writing import token_text

# As of many chat models: no turn for the system in the second.
WITH_SYSTEM = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<a>{% endif %}"
)
WITHOUT = WITH_SYSTEM.replace(
    "{% for", "{% if messages[0].role == 'system' %}{{ raise_exception('none') }}{% endif %}{% for", 1
)


@pytest.fixture(scope="module")
def loaded():
    tokenizer = train_tokenizer(tiny.GENERAL.build(lambda spec: spec), tiny.VOCAB_SIZE)
    return LoadedModel(tiny.model(3, len(tokenizer)), tokenizer)


def requests(number: int = 6, **changes) -> list[Request]:
    plain = {"max_new_tokens": 5, "temperature": 0.0, "seed": 1} | changes
    return [
        Request(f"d{index // 2}", str(index), text, **plain)
        for index, text in enumerate(tiny.random_texts(number, seed=4))
    ]


def complete(loaded, asked, folder):
    folder.mkdir(exist_ok=True)
    return complete_locally(loaded, asked, tiny.compute(), folder, "asking")


@pytest.mark.slow
def test_answers_are_the_likeliest_tokens_and_so_are_the_alternatives(loaded, tmp_path):
    asked = requests(top_logprobs=4)
    for request, completion in zip(asked, complete(loaded, asked, tmp_path / "a"), strict=True):
        ids = loaded.tokenizer(request.question)["input_ids"]
        num_prompt = len(ids)
        for index in range(completion.completion_tokens):
            with torch.no_grad():
                found = loaded.model(torch.tensor([ids])).logits[0, -1].log_softmax(-1).topk(4)
            expected = [token_text(loaded.tokenizer, item) for item in found.indices.tolist()]
            assert [token for token, _ in completion.top_logprobs[index]] == expected
            values = [value for _, value in completion.top_logprobs[index]]
            assert values == pytest.approx(found.values.tolist(), abs=1e-4)
            ids.append(int(found.indices[0]))
        assert completion.text == loaded.tokenizer.decode(ids[num_prompt:], skip_special_tokens=True)
        assert (completion.outcome, completion.prompt_tokens) == ("answered", num_prompt)
        assert len(completion.top_logprobs) == completion.completion_tokens <= 5
        assert completion.finish_reason == ("stop" if ids[-1] == loaded.tokenizer.eos_token_id else "length")


def test_each_request_is_decoded_as_it_says(loaded, tmp_path):
    """Also where those of several kinds come together, in any order."""
    kinds = [{}, {"max_new_tokens": 2}, {"temperature": 1.0}, {"temperature": 1.0, "seed": 2}, {"top_logprobs": 1}]
    asked = [request for number, kind in enumerate(kinds) for request in requests(6, **kind)]
    asked = [replace(request, name=f"{index}") for index, request in enumerate(asked)]
    together = complete(loaded, asked, tmp_path / "together")
    backwards = complete(loaded, asked[::-1], tmp_path / "backwards")[::-1]
    assert [item.text for item in backwards] == [item.text for item in together]
    alone = complete(loaded, asked[12:18], tmp_path / "alone")
    assert [item.text for item in alone] == [item.text for item in together[12:18]]
    assert {item.completion_tokens for item in together[6:12]} <= {1, 2}
    assert [item.text for item in together[12:18]] != [item.text for item in together[18:24]]
    assert [bool(item.top_logprobs) for item in together] == [False] * 24 + [True] * 6
    assert [item.text for item in together[24:]] == [item.text for item in together[:6]], "looking changes nothing"


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        (None, "Do it.\n\nWhich?"),
        (WITH_SYSTEM, "<system>Do it.<user>Which?<a>"),
        (WITHOUT, "<user>Do it.\n\nWhich?<a>"),
    ],
)
def test_what_is_shown_follows_the_tokenizers_template(loaded, template, shown, monkeypatch):
    monkeypatch.setattr(loaded.tokenizer, "chat_template", template)
    request = Request("d", "n", "Which?", 1, 0.0, 0, instruction="Do it.")
    alone = Request("d", "n", "Which?", 1, 0.0, 0)
    plain = Request("d", "n", "Which?", 1, 0.0, 0, instruction="Do it.", plain="Go on:")
    always_plain = replace(plain, bare=True)
    assert plain.key() != always_plain.key()
    asked = (request, alone, plain, always_plain)
    parts = [PromptParts(item.instruction, item.question, item.as_text, item.bare) for item in asked]
    texts = [loaded.tokenizer.decode(ids) for ids in encode_prompts(loaded.tokenizer, parts)]
    assert texts[0] == shown
    assert texts[1] == ("Which?" if template is None else "<user>Which?<a>")
    assert texts[2] == ("Go on:" if template is None else shown)
    assert texts[3] == "Go on:"


def test_what_the_model_cannot_read_has_failed_and_the_rest_is_answered(loaded, tmp_path):
    asked = requests(3)
    asked[1] = replace(asked[1], question="moss " * 200)
    found = complete(loaded, asked, tmp_path / "a")
    assert [item.outcome for item in found] == ["answered", "failed", "answered"]
    assert found[1].reason.startswith("the model reads at most 128 tokens")


def test_an_empty_answer_is_empty(loaded, tmp_path, monkeypatch):
    monkeypatch.setattr(loaded.model.generation_config, "eos_token_id", list(range(tiny.VOCAB_SIZE)))
    (found,) = complete(loaded, requests(1), tmp_path / "a")
    assert (found.finish_reason, found.completion_tokens) == ("stop", 1)
    monkeypatch.setattr(loaded.tokenizer, "batch_decode", lambda ids, **_: [" \n" for _ in ids])
    (found,) = complete(loaded, requests(1), tmp_path / "b")
    assert found.outcome == "empty"


def test_a_stopped_run_goes_on_where_it_was(loaded, tmp_path, monkeypatch):
    asked = [*requests(8), *requests(8, temperature=0.5)]
    whole = complete(loaded, asked, tmp_path / "whole")
    step, written = writing.Writer.predict_step, []

    def stopping(self, batch, batch_idx):
        if len(written) == 1:
            raise KeyboardInterrupt
        written.append(len(batch["doc_index"]))
        return step(self, batch, batch_idx)

    monkeypatch.setattr(writing.Writer, "predict_step", stopping)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        complete(loaded, asked, tmp_path / "stopped")

    def counted(self, batch, batch_idx):
        written.append(len(batch["doc_index"]))
        return step(self, batch, batch_idx)

    monkeypatch.setattr(writing.Writer, "predict_step", counted)
    assert complete(loaded, asked, tmp_path / "stopped") == whole
    assert sum(written) == len(asked), "nothing is written twice"


def test_completions_are_kept_whole(loaded, tmp_path):
    asked = requests(top_logprobs=2)
    found = complete(loaded, asked, tmp_path / "a")
    save_completions(asked, found, tmp_path / "kept.parquet")
    assert load_completions(tmp_path / "kept.parquet") == found


def test_a_workshop_asks_once(tmp_path):
    model, asked = tiny.scratch(1), requests()
    made = tiny.builder(tmp_path).get(Completions(model, tuple(asked)))
    builder = tiny.builder(tmp_path)
    assert builder.get(Completions(model, tuple(asked))) == made
    assert (builder.counters.observations_found, builder.counters.tokens_observed) == (1, 0)
    builder.get(Completions(model, tuple([replace(item, seed=9) for item in asked])))
    assert builder.counters.tokens_observed > 0


def test_what_is_never_sent_is_not_in_the_key():
    (request,) = requests(1)
    assert replace(request, expected="A", options=("x", "y")).key() == request.key()
    assert replace(request, instruction="Do it.").key() != request.key()
