"""Prompts as the ids a model reads: by its chat template where its tokenizer has one, else as plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import TemplateError

from nonmember.models.encoding import encode_pieces
from nonmember.models.reading import position_limit
from nonmember.models.templates import holds, refused, rendered
from nonmember.models.tokenizing import ids_of
from nonmember.records import Prompt, Question

Turns = list[dict[str, Any]]


@dataclass(frozen=True)
class PromptParts:
    """The instruction a model gets before it answers.

    instruction: the system's turn; empty: none.   request: the user's.   plain: both, for a model without a chat form.
    bare: plain for every model.
    """

    instruction: str
    request: str
    plain: str
    bare: bool = False


def prompt_ids(tokenizer: Any, prompt: Prompt, texts: Sequence[str]) -> list[list[int]]:
    """Ids of the prompt about each text, ending where the model is to go on."""
    return encode_prompts(tokenizer, [_parts_of(prompt, text) for text in texts])


def encode_prompts(tokenizer: Any, parts: Sequence[PromptParts]) -> list[list[int]]:
    """Token ids of a prompt, ending where the model continues."""
    if not _has_chat_template(tokenizer) or all(item.bare for item in parts):
        return _encoded_plain(tokenizer, [item.plain for item in parts])
    if any(item.bare for item in parts):
        return [encode_prompts(tokenizer, [item])[0] for item in parts]
    return ids_of(tokenizer, [_chat(tokenizer, item) for item in parts], add_special_tokens=False)


def answer_ids(tokenizer: Any, question: Question) -> list[int]:
    """The first id of each answer where it follows the prompt: " Yes" after the plain cue, "Yes" as a chat turn."""
    return [_first_id(tokenizer, question, answer) for answer in question.answers]


def shortened(tokenizer: Any, texts: Sequence[str], max_tokens: int) -> list[str]:
    """The texts, the longer ones cut on the right to so many tokens."""
    encoded = ids_of(tokenizer, texts, add_special_tokens=False)
    broken = "\N{REPLACEMENT CHARACTER}"  # of a character that was cut in the middle of its bytes
    return [
        text if len(ids) <= max_tokens else tokenizer.decode(ids[:max_tokens]).rstrip(broken)
        for text, ids in zip(texts, encoded, strict=True)
    ]


def room_for_text(tokenizer: Any, model: Any, prompt: Prompt, *, num_new_tokens: int) -> int | None:
    """Tokens of a text that the model can read within the prompt and with so many to come; None where it has no limit.

    Raises ValueError where there is no room at all.
    """
    most = position_limit(model.config)
    if most is None:
        return None
    num_taken = len(prompt_ids(tokenizer, prompt, [""])[0]) + num_new_tokens
    if num_taken >= most:
        raise ValueError(
            f"It reads at most {most} tokens, and the prompt with {num_new_tokens} new ones takes {num_taken}. "
            "Choose a model with a longer context."
        )
    # Two tokens aside: where text and prompt meet, pieces may be cut otherwise than in each alone.
    return max(1, most - num_taken - 2)


def _parts_of(prompt: Prompt, text: str) -> PromptParts:
    request = prompt.request(text)
    return PromptParts(prompt.instruction, request, _joined(prompt.instruction, request))


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _has_chat_template(tokenizer: Any) -> bool:
    return bool(getattr(tokenizer, "chat_template", None))


def _chat(tokenizer: Any, parts: PromptParts, answer: str | None = None) -> str:
    """The dialogue as text, in the first form of which the template leaves nothing out.

    Raises ValueError where there is none.
    """
    why: list[TemplateError] = []
    for turns in _forms(parts, answer):
        try:
            text = rendered(tokenizer, turns, add_generation_prompt=answer is None)
        except TemplateError as error:
            why.append(error)
            continue
        if holds(text, parts.instruction, parts.request, answer or ""):
            return text
        why.append(TemplateError("it leaves out a part of what is asked"))
    raise refused(tokenizer, why[0]) from why[0]


def _forms(parts: PromptParts, answer: str | None) -> Iterator[Turns]:
    """The instruction as the system's turn, or before the user's request; each turn as text, or as a list of parts."""
    answers = [("assistant", answer)] if answer is not None else []
    with_system = [("system", parts.instruction), ("user", parts.request), *answers]
    joined = [("user", _joined(parts.instruction, parts.request)), *answers]
    forms = [with_system, joined] if parts.instruction else [joined]
    yield from ([{"role": role, "content": text} for role, text in form] for form in forms)
    yield from ([{"role": who, "content": [{"type": "text", "text": text}]} for who, text in form] for form in forms)


def _encoded_plain(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """Behind what the tokenizer puts before a text, and without what it puts behind one: the model is to go on."""
    front, encoded = encode_pieces(tokenizer, texts)
    return [[*front, *ids] for ids in encoded]


def _first_id(tokenizer: Any, question: Question, answer: str) -> int:
    """What an answer adds to a prompt; where nothing can be told from that, its first piece alone."""
    (prompt,) = prompt_ids(tokenizer, question, [""])
    parts, alone = _parts_of(question, ""), answer
    if _has_chat_template(tokenizer):
        (whole,) = ids_of(tokenizer, [_chat(tokenizer, parts, answer)], add_special_tokens=False)
    else:
        alone = f" {answer}"
        (whole,) = _encoded_plain(tokenizer, [parts.plain + alone])
    if whole[: len(prompt)] == prompt and len(whole) > len(prompt):
        return whole[len(prompt)]
    return ids_of(tokenizer, [alone], add_special_tokens=False)[0][0]
