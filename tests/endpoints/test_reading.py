"""An answer is a text, apart from the model's thoughts; a missing one has a reason. Nothing else is taken for it."""

from __future__ import annotations

from typing import Any

import pytest

from nonmember.endpoints import Completion, Request
from nonmember.endpoints.asked import load_completions, save_completions
from nonmember.endpoints.models import Recorded
from nonmember.endpoints.reading import ONLY_THOUGHTS, STILL_THINKING, Unusable, read_completion, without_thoughts
from nonmember.methods.name_cloze import word_of

EMPTY_TEXT = "its text is empty"


def text_part(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def response(content: Any, finish: str = "stop", *, usage: Any = None, **message: Any) -> dict[str, Any]:
    choice = {"message": {"content": content, **message}, "finish_reason": finish}
    return {"choices": [choice], **({"usage": usage} if usage else {})}


def read(answer: dict[str, Any], **settings: Any) -> Completion:
    return read_completion(answer, "", **{"needs_logprobs": False, **settings})


THINKING = {"type": "thinking", "thinking": [text_part("<name>Bob</name>")]}


@pytest.mark.parametrize(
    ("content", "message", "text", "thinks"),
    [
        ("Ada", {}, "Ada", False),
        ([text_part("A"), text_part("da")], {}, "Ada", False),
        ("Ada", {"reasoning_content": "<name>Bob</name>"}, "Ada", True),
        ("Ada", {"reasoning": "Bob?"}, "Ada", True),
        ("Ada", {"reasoning_content": None, "reasoning": ""}, "Ada", False),
        ([text_part("Ada"), {"type": "image_url", "image_url": {}}], {}, "Ada", False),
        ("Ada", {"tool_calls": [{"id": "1"}]}, "Ada", False),
    ],
)
def test_the_text_of_an_answer(content, message, text, thinks):
    found = read(response(content, **message))
    assert (found.text, found.outcome, found.reason, found.has_thoughts) == (text, "answered", "", thinks)


@pytest.mark.parametrize(
    ("answer", "outcome", "reason"),
    [
        (response(None), "empty", EMPTY_TEXT),
        (response(" \n"), "empty", EMPTY_TEXT),
        (response(None, "tool_calls", tool_calls=[{"id": "1"}]), "empty", EMPTY_TEXT),
        (response(None, reasoning_content="Bob"), "empty", ONLY_THOUGHTS),
        (response("", "length", reasoning_content="Bob"), "empty", STILL_THINKING),
        (response("", "length", usage={"completion_tokens_details": {"reasoning_tokens": 9}}), "empty", STILL_THINKING),
        (response("<think>Bob", "length"), "empty", STILL_THINKING),
        (response("<think>Bob"), "empty", ONLY_THOUGHTS),
        (response(None, refusal="No."), "refused", "No."),
        (response("", "content_filter"), "refused", "content_filter"),
        (response("Ada", "SAFETY"), "refused", "SAFETY"),
    ],
)
def test_a_missing_answer_has_a_reason(answer, outcome, reason):
    found = read(answer)
    assert (found.outcome, found.reason) == (outcome, reason)


@pytest.mark.parametrize("answer", [response("Ada", "error"), response("Ada", "abort")])
def test_what_is_no_text_is_no_answer(answer):
    """And never its Python repr."""
    with pytest.raises(Unusable):
        read(answer)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>Is it <name>Bob</name>?</think>\n\n<name>Ada</name>", "ada"),
        ("<THINKING mode=1>Bob</Thinking><name>Ada</name>", "ada"),
        ("Is it <name>Bob</name>?</think><name>Ada</name>", "ada"),
        ("<think>Bob</think><think><name>Bo</name></think>Ada", "ada"),
        ("<think>I <think> of <name>Bob</name></think>Ada", "ada"),
        ("Sure. <think><name>Bob</name></think><name>Ada</name>", "ada"),
        ("[THINK]Bob[/THINK]Ada", "ada"),
        (
            "<|channel|>analysis<|message|><name>Bob</name><|end|><|start|>assistant<|channel|>final<|message|>Ada<|return|>",
            "ada",
        ),
        ("<|channel|>analysis<|message|>Bob<|end|><|channel|>final <|constrain|>json<|message|>Ada", "ada"),
    ],
)
def test_a_name_in_thoughts_is_not_the_answer(text, expected):
    found = read(response(text))
    assert (word_of(found.text), found.has_thoughts) == (expected, True)
    assert read(response(text), keep_thoughts=True).text == text


@pytest.mark.parametrize(
    "text",
    ["Ada", "the <think> tag begins thoughts", "a < b", "I think </b>", "analysis of the text", "<thinker>", " x "],
)
def test_a_text_that_only_looks_like_thoughts_stays(text):
    assert without_thoughts(text, "stop") == (text, False, "")


@pytest.mark.parametrize("text", ["<|channel|>analysis<|message|>Bob", "<think>a</think><think>Bob"])
def test_thoughts_that_were_cut_are_no_answer(text):
    assert without_thoughts(text, "length") == ("", True, STILL_THINKING)


def chat_tokens(*tokens: str) -> dict[str, Any]:
    listed = [
        {"token": token, "logprob": -0.5, "top_logprobs": [{"token": token, "logprob": -0.5}]} for token in tokens
    ]
    return {"content": listed}


@pytest.mark.parametrize(
    ("content", "tokens", "message"),
    [
        ("<think>A?</think>\n\nB.", ["<think>", "A", "?", "</think>", "\n\n", "B", "."], {}),
        ("B.", ["<think>", "A", "?", "</think>", "\n\n", "B", ".", "<|im_end|>"], {"reasoning_content": "A?"}),
        ("B.", ["B", "."], {"reasoning_content": "A?"}),
    ],
)
def test_log_probabilities_are_those_of_the_answer(content, tokens, message):
    """The first letter's, say, and not those of the first thought."""
    answer = response(content, **message)
    answer["choices"][0]["logprobs"] = chat_tokens(*tokens)
    found = read(answer, needs_logprobs=True)
    assert found.top_logprobs[:2] == ((("B", -0.5),), ((".", -0.5),))
    answer["choices"][0]["logprobs"] = chat_tokens("<think>", "C")
    with pytest.raises(Unusable, match="cannot be told from those of its thoughts"):
        read(answer, needs_logprobs=True)


@pytest.mark.parametrize("logprob", [0.5, float("nan"), 5])
def test_alternatives_of_any_answer_are_checked(logprob):
    answer = response("B")
    tops = [{"token": "B", "logprob": logprob}]
    answer["choices"][0]["logprobs"] = {"content": [{"token": "B", "logprob": logprob, "top_logprobs": tops}]}
    with pytest.raises(Unusable, match="cannot be such"):
        read(answer, needs_logprobs=True)


def test_minus_infinity_among_alternatives_is_the_floor():
    answer = response("B")
    tops = [{"token": token, "logprob": value} for token, value in (("B", -0.1), ("C", -9999.0), ("D", float("-inf")))]
    answer["choices"][0]["logprobs"] = {"content": [{"token": "B", "logprob": -0.1, "top_logprobs": tops}]}
    found = read(answer, needs_logprobs=True)
    assert found.top_logprobs == ((("B", -0.1), ("C", -100.0), ("D", -100.0)),)


def test_answers_of_local_models_and_recorded_ones_are_read_alike(tmp_path):
    """Also those that an earlier version kept whole."""
    request = Request("d", "n", "Who?", 9, 0.0, 0)
    tokens = ["<think>", "Bob", "</think>", " ", "Ada"]
    rows = tuple(((token, -0.1), ("x", -3.0)) for token in tokens)
    kept = [
        Completion("".join(tokens), "answered", "stop", top_logprobs=rows),
        Completion("<think>Bob", "answered", "length"),
        Completion("Ada", "answered", "stop"),
    ]
    save_completions([request] * 3, kept, tmp_path / "kept.parquet")
    thought, cut, plain = load_completions(tmp_path / "kept.parquet")
    assert (thought.text, thought.has_thoughts, thought.top_logprobs) == ("Ada", True, rows[4:])
    assert (cut.text, cut.outcome, cut.reason) == ("", "empty", STILL_THINKING)
    assert plain == kept[2]
    (tmp_path / "answers.csv").write_text("doc_id,name,text\nd,n,<think>Bob</think>Ada\n")
    (recorded,) = Recorded(str(tmp_path / "answers.csv"), "m").complete(None, [request])
    assert (recorded.text, recorded.has_thoughts) == ("Ada", True)
