"""Conversations of one's own: rows in the formats that people have, read as turns.

OpenAI's `messages` (role, content), ShareGPT's `conversations` (from, value), pairs of columns (Alpaca's instruction,
input and output; prompt and completion; prompt and response). A document's text is the list of its turns as JSON, which
`nonmember.models.Rendered` writes as a model reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, NamedTuple

from nonmember.artifacts import Builder
from nonmember.checks import Count, first_few
from nonmember.corpora.sources.columns import column_of, is_missing
from nonmember.corpora.sources.documents import Documents, InMemory
from nonmember.corpora.sources.files import File
from nonmember.corpora.sources.rows import NumberedRow, Row, kind_of, rows_of
from nonmember.corpora.specs import CorpusSpec, Transform
from nonmember.records import Corpus, Document

LISTS = ("messages", "conversations", "conversation", "turns")  # columns with a list of turns
# Columns of a request, what may stand beside it, and the answer.
PAIRS = (
    ("instruction", ("input", "context"), "output"),
    ("instruction", ("input", "context"), "response"),
    ("prompt", (), "completion"),
    ("prompt", (), "response"),
)
NAMES = (("role", "content"), ("from", "value"))  # of a turn's speaker and text
ROLES = {
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "gpt", "chatgpt", "bot", "model"), "assistant"),
}
TOOLS = ("tool", "function", "function_call", "function_response", "observation", "ipython")
CALLS = ("tool_calls", "function_call")
THOUGHTS = ("reasoning_content", "reasoning", "thinking")  # of an assistant, beside its text


WEIGHTS = ("weight", "train", "loss")  # of a message: whether it was trained on (OpenAI, Mistral; axolotl; ms-swift)
# Columns that templates or processors write into the prompt, and what says otherwise which parts were trained on.
UNREAD = ("tools", "functions", "documents", "chat_template_kwargs", "images", "image", "audios", "audio", "videos")
UNREAD_OF_A_TURN = ("train_detail", "tools", "functions", "documents", "prefix")


class Turn(NamedTuple):
    """role: system, user or assistant.   scored: whether it is scored, where it is the assistant's."""

    role: str
    content: str
    scored: bool = True


def turns_from_json(text: str) -> list[Turn]:
    """Of a document's text."""
    return [Turn(*item) for item in json.loads(text)]


def _as_json(turns: Sequence[Turn]) -> str:
    return json.dumps([turn[:2] if turn.scored else turn for turn in turns], ensure_ascii=False)


class _Turns:
    """Of sources whose rows are conversations."""

    text_field: str | None

    def _text_field(self, *_: Any) -> str:
        return self.text_field or "turns"

    def _text(self, row: Row, text_field: str, where: str) -> str:
        return turns_as_json(row, self.text_field, where)


@dataclass(frozen=True)
class Conversations(_Turns, Documents):
    """One conversation per row of whatever lies at `path`, found and named as `Documents` finds and names rows.

    Raises ValueError, with file and row, for what is no conversation: none of the known formats, a role that is none,
    an empty turn, no turn of the assistant, calls of tools, tools and documents beside the turns, thoughts beside a
    text, earlier turns in a column of their own, parts that are not text. Turns that were not trained on (`WEIGHTS`)
    are read and not scored.

    Attributes:
        text_field: The column with the list of turns; None: found (`LISTS`, `PAIRS`).
    """

    def identity(self) -> dict[str, Any]:
        return super().identity() | {"kind": "conversations"}

    def read(self, *_: Any) -> Iterator[Document]:
        raise ValueError("Conversations are not streamed. Give them as data=chat, which holds them in memory.")

    def _rows(self, file: File, text_field: str) -> Iterator[NumberedRow]:
        if file.form == "text":
            raise ValueError(f"{file.path} is plain text; conversations are JSON Lines, Parquet or another table.")
        return rows_of(file.path, file.form)


@dataclass(frozen=True)
class ConversationsInMemory(_Turns, InMemory):
    """As `Conversations`, of rows handed to the builder by the program that calls."""

    def identity(self) -> dict[str, Any]:
        return super().identity() | {"kind": "conversations_in_memory"}


@dataclass(frozen=True)
class Dialogues(Transform):
    """Each document of `base` as a conversation: the user says its first `num_words` words, the assistant the rest.

    Documents without more words than these are dropped.
    """

    base: CorpusSpec
    num_words: Annotated[int, Count(1)]

    name: ClassVar[str] = "dialogues"

    def build(self, builder: Builder) -> Corpus:
        base, number = builder.get(self.base), self.num_words
        kept = []
        for document in base.documents:
            if len(words := document.text.split()) > number:
                turns = Turn("user", " ".join(words[:number])), Turn("assistant", " ".join(words[number:]))
                kept.append(replace(document, text=_as_json(turns)))
        dropped = {"too short": len(base) - len(kept)} if len(kept) < len(base) else {}
        return Corpus(tuple(kept), {**base.dropped, **dropped})


def holds_conversations(row: Row) -> bool:
    """Whether a row can only be a conversation: it has a column that is a list of messages."""
    return any(_is_list_of_turns(row.get(name)) for name in LISTS)


def turns_as_json(row: Row, column: str | None, where: str) -> str:
    """The turns of a row as `turns_from_json` reads them. column: with the list; None: found."""
    _refuse(row, UNREAD, where)
    turns = [_turn(item, number, where) for number, item in enumerate(_messages(row, column, where), start=1)]
    system = row.get("system")
    if isinstance(system, str) and system.strip() and not any(turn.role == "system" for turn in turns):
        turns = [Turn("system", system), *turns]
    if not any(turn.role == "assistant" and turn.scored for turn in turns):
        raise ValueError(
            f"{where} has no turn of the assistant that was trained on, which alone is scored. Leave such rows out."
        )
    return _as_json(turns)


def _refuse(values: Mapping[str, Any], names: Sequence[str], where: str) -> None:
    if given := next((name for name in names if _is_given(values.get(name))), None):
        raise ValueError(
            f"{where} has {given!r}, which changes what a model reads and is not read here. Write what the model "
            "read into the turns, or leave such rows out."
        )


def _messages(row: Row, column: str | None, where: str) -> list[Any]:
    name = column or next((name for name in LISTS if not is_missing(row.get(name))), None)
    if name is not None:
        return _list_in(column_of(row, name, where), name, where)
    for request, beside, answer in PAIRS:
        if request in row and answer in row:
            return _pair(row, request, beside, answer, where)
    raise ValueError(
        f"{where} must be a conversation: a column messages ([{{role, content}}]) or conversations ([{{from, "
        f"value}}]), or two columns such as instruction and output, prompt and completion; its columns are "
        f"{first_few(map(repr, row)) or 'none'}. Name the column with the list of turns (data.text_field), or rename "
        "them."
    )


def _is_given(value: object) -> bool:
    return not is_missing(value) and _plain(value) not in ("", "[]", [], {}, False)


def _pair(row: Row, request: str, beside: Sequence[str], answer: str, where: str) -> list[Any]:
    first, last = _plain(row[request]), _plain(row[answer])
    if isinstance(first, list) and isinstance(last, list):  # both are messages
        return [*first, *last]
    if _is_given(row.get("history")):
        raise ValueError(
            f"{where}: column 'history' holds earlier turns, which are not read. Write the whole conversation as a "
            "list of messages, or leave such rows out."
        )
    asked = [first, *(_plain(row[name]) for name in beside if not is_missing(row.get(name)) and row[name] != "")]
    texts = [item for item in asked if isinstance(item, str)]
    if len(texts) < len(asked) or not isinstance(last, str):
        raise ValueError(
            f"{where}: columns {request!r} and {answer!r} must both hold text, or both a list of messages. Correct "
            "such rows, or leave them out."
        )
    return [{"role": "user", "content": "\n\n".join(texts)}, {"role": "assistant", "content": last}]


def _list_in(value: object, column: str, where: str) -> list[Any]:
    found = _plain(value)
    if isinstance(found, str):  # as CSV has it
        with suppress(ValueError, RecursionError):
            found = json.loads(found)
    if not isinstance(found, list):
        raise ValueError(
            f"{where}: column {column!r} must hold a list of messages, but it holds {kind_of(found)}. Name another "
            "(data.text_field), or leave such rows out."
        )
    return found


def _turn(item: object, number: int, where: str) -> Turn:
    who, what = _names_in(item, number, where)
    assert isinstance(item, Mapping)
    speaker, content = item[who], _plain(item.get(what))
    if speaker in TOOLS or any(_is_given(item.get(name)) for name in CALLS):
        raise ValueError(
            f"{where}: message {number} is a call of a tool or its answer, which differ from template to template and "
            "are not scored. Leave such conversations out, or write the call as text of the assistant."
        )
    if any(_is_given(item.get(name)) for name in THOUGHTS):
        raise ValueError(
            f"{where}: message {number} has thoughts beside its text, which differ from template to template and are "
            "not scored. Leave such conversations out, or write the thoughts into the text."
        )
    _refuse(item, UNREAD_OF_A_TURN, f"{where}: message {number}")
    if not isinstance(speaker, str) or speaker not in ROLES:
        raise ValueError(
            f"{where}: message {number} is of {speaker!r}; expected one of {', '.join(ROLES)}. Rename the role, or "
            "leave such rows out."
        )
    if isinstance(content, list):
        content = _text_of_parts(content, number, where)
    if not isinstance(content, str) or not content.strip():
        what_there = "nothing" if content is None or isinstance(content, str) else kind_of(content)
        raise ValueError(
            f"{where}: message {number}, of {speaker!r}, must hold text, but it holds {what_there}. Leave the message "
            "or the row out."
        )
    weights = {name: item[name] for name in WEIGHTS if not is_missing(item.get(name))}
    if wrong := [f"{name}: {value!r}" for name, value in weights.items() if value not in (0, 1)]:
        raise ValueError(
            f"{where}: message {number} has {wrong[0]}; expected 1 or true where it was trained on, 0 or false "
            "where it was not. Only whole turns are scored."
        )
    return Turn(ROLES[speaker], content, all(weights.values()))


def _names_in(item: object, number: int, where: str) -> tuple[str, str]:
    names = next((pair for pair in NAMES if isinstance(item, Mapping) and pair[0] in item), None)
    if names is None:
        there = f"the keys {first_few(map(repr, item)) or 'none'}" if isinstance(item, Mapping) else kind_of(item)
        raise ValueError(
            f"{where}: message {number} must be an object with role and content, or with from and value; got {there}."
        )
    return names


def _text_of_parts(parts: list[Any], number: int, where: str) -> str:
    kinds = [part.get("type") if isinstance(part, Mapping) else kind_of(part) for part in parts]
    if others := [kind for kind in kinds if kind != "text"]:
        raise ValueError(
            f"{where}: message {number} holds a part of the type {others[0]!r}; only text is scored. Leave such "
            "conversations out."
        )
    return "".join(str(part.get("text") or "") for part in parts)


def _is_list_of_turns(value: object) -> bool:
    found = _plain(value)
    return (
        isinstance(found, list)
        and bool(found)
        and all(isinstance(item, Mapping) and any(who in item for who, _ in NAMES) for item in found)
    )


def _plain(value: object) -> object:
    """Lists as Python's own: pandas gives arrays of what Parquet has as lists."""
    return value.tolist() if hasattr(value, "tolist") else list(value) if isinstance(value, tuple) else value
