"""Conversations as a model reads them: by its own chat template, with what the assistant says told apart from the rest.

A template is an untrusted program, run as `models.templates` runs it. Where in its text a turn stands is found by a
second rendering with marks in place of the turns, and certain: text and marks must agree, character by character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from nonmember.artifacts import Builder
from nonmember.checks import require_kind
from nonmember.corpora.sources.conversations import Turn, turns_from_json
from nonmember.corpora.specs import CorpusSpec
from nonmember.models.base import ModelSpec
from nonmember.models.tokenizing import name_of
from nonmember.records import Corpus
from nonmember.runtime.progress import tracked

MARK = "\ue000{}\ue001"  # of the private use area: in no template
IN_MARKS = re.compile("\ue000(\\d+)\ue001")
THOUGHTS = re.compile(r"<think>.*</think>\s*", re.DOTALL)
ASSISTANT = "assistant"
PLAIN = "plain"  # the template without a program: "User: ...", an empty line, "Assistant: ..."
WHAT_TO_DO = "Give data.template=plain, which writes 'User: ...' and 'Assistant: ...' before the turns"


class Refusal(Exception):
    """Why a template cannot write a conversation."""


def _require_model(value: object, name: str, *, or_null: bool = False) -> None:
    require_kind(value, ModelSpec, name, "a model", hint="Name one: target.path=FOLDER.", or_null=or_null)


@dataclass(frozen=True)
class Rendered(CorpusSpec):
    """The conversations of `source` as `model` reads them; what the assistant says is all that is scored.

    Raises ValueError, with the document, where the model has no chat template, or where its template refuses a
    conversation or changes what is said in it.

    Attributes:
        source: Conversations, such as `nonmember.corpora.Conversations`.
        model: Whose chat template is used; all models of an audit read the same text.
        template: None: the model's own; plain: "User: ...", an empty line, "Assistant: ...", which needs no model.
    """

    source: CorpusSpec
    model: Annotated[ModelSpec | None, _require_model]
    template: Literal["plain"] | None = None

    stored: ClassVar[bool] = False

    def build(self, builder: Builder) -> Corpus:
        source = builder.get(self.source)
        write = plainly if self.template == PLAIN else ChatTemplate(self._tokenizer(builder))
        documents = []
        for document in tracked(source.documents, "writing conversations"):
            try:
                pieces = write(turns_from_json(document.text))
            except Refusal as error:
                assert isinstance(write, ChatTemplate)
                raise ValueError(
                    f"The chat template of {name_of(write.tokenizer)} refuses the conversation {document.doc_id!r}: "
                    f"{error}. Leave it out, or mend its turns (most templates want user and assistant in "
                    f"turn). {WHAT_TO_DO}."
                ) from error
            documents.append(replace(document, text="".join(pieces), pieces=pieces))
        return Corpus(tuple(documents), source.dropped)

    def identity(self) -> dict[str, Any]:
        by: Mapping[str, Any] | str = PLAIN if self.template or self.model is None else self.model.recipe()
        return {"kind": "rendered", "source": self.source.identity(), "by": by}

    def _tokenizer(self, builder: Builder) -> Any:
        if self.model is None:
            raise ValueError(f"Conversations are written by a model's chat template, and none is named. {WHAT_TO_DO}.")
        try:
            tokenizer = self.model.load_tokenizer(builder)
        except ValueError as error:
            raise ValueError(f"{str(error).partition('. ')[0]}. {WHAT_TO_DO}.") from error
        if not getattr(tokenizer, "chat_template", None):
            raise ValueError(
                f"{self.model.readable} has no chat template, so nobody knows how it reads conversations. "
                f"{WHAT_TO_DO}; or put chat_template.jinja beside its tokenizer."
            )
        return tokenizer


def plainly(turns: Sequence[Turn]) -> tuple[str, ...]:
    """The pieces of a conversation (`nonmember.records.Document`) by the plain template."""
    begin = ["\n\n" * (index > 0) + f"{turn.role.capitalize()}: " for index, turn in enumerate(turns)]
    return _pieces(turns, [*begin, "\n"], [turn.content for turn in turns])


class ChatTemplate:
    """Writes conversations by the chat template of a tokenizer of transformers."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self._frames: dict[tuple[str, ...], list[str]] = {}

    def __call__(self, turns: Sequence[Turn]) -> tuple[str, ...]:
        """The pieces of a conversation (`nonmember.records.Document`).

        Raises:
            Refusal: The template refuses it, or changes what is said.
            ValueError: It does not end.
        """
        why: list[Refusal] = []
        for form in _forms(turns):
            heads = [_thoughts(turn) for turn in form]
            try:
                text, frame = self._text(form), self._frame(tuple(turn.role for turn in form), tuple(heads))
            except Refusal as error:
                why.append(error)
                continue
            rests = [turn._replace(content=turn.content[len(head) :]) for turn, head in zip(form, heads, strict=True)]
            for index, head in enumerate(heads):
                if not frame[index].endswith(head):
                    raise _changed(index, form)
            before = [item[: len(item) - len(head)] for item, head in zip(frame, [*heads, ""], strict=True)]
            contents = zip(heads, _contents(text, frame, rests), strict=True)
            return _pieces(form, before, [head + content for head, content in contents])
        raise why[0]

    def _text(self, turns: Sequence[Turn]) -> str:
        from jinja2 import TemplateError

        from nonmember.models.templates import rendered

        try:
            return rendered(
                self.tokenizer,
                [{"role": turn.role, "content": turn.content} for turn in turns],
                add_generation_prompt=False,
            )
        except TemplateError as error:
            line = (str(error).splitlines() or [type(error).__name__])[0]
            raise Refusal(line[:200].rstrip(".")) from error

    def _frame(self, roles: tuple[str, ...], heads: tuple[str, ...]) -> list[str]:
        """What the template writes before, between and behind turns of these roles, which begin with these thoughts."""
        key = (*roles, *heads)
        if key not in self._frames:
            numbered = enumerate(zip(roles, heads, strict=True))
            marked = [Turn(role, head + MARK.format(index)) for index, (role, head) in numbered]
            parts = IN_MARKS.split(self._text(marked))
            if parts[1::2] != [str(index) for index in range(len(roles))]:
                raise Refusal("it does not write each turn once, in their order")
            self._frames[key] = parts[::2]
        return self._frames[key]


def _forms(turns: Sequence[Turn]) -> Iterator[Sequence[Turn]]:
    """As they are; and, for templates without a system's turn, with that before the user's first."""
    yield turns
    if len(turns) > 1 and turns[0].role == "system" and turns[1].role == "user":
        yield [Turn("user", f"{turns[0].content}\n\n{turns[1].content}"), *turns[2:]]


def _thoughts(turn: Turn) -> str:
    """That an assistant's turn begins with: templates look for them, and write turns with and without otherwise."""
    found = THOUGHTS.match(turn.content) if turn.role == ASSISTANT else None
    return found[0] if found else ""


def _changed(index: int, turns: Sequence[Turn]) -> Refusal:
    return Refusal(f"it changes what is said in turn {index + 1} ({turns[index].role})")


def _contents(text: str, frame: Sequence[str], turns: Sequence[Turn]) -> list[str]:
    """The turns as they stand in the text, white space around them aside, which templates trim."""
    contents, position = [], len(frame[0])
    matches = text.startswith(frame[0])
    for index, (turn, behind) in enumerate(zip(turns, frame[1:], strict=True)):
        forms = (turn.content, turn.content.strip(), turn.content.lstrip(), turn.content.rstrip())
        content = next((form for form in forms if text.startswith(form + behind, position)), None)
        if content is None or not matches:
            # What stands behind a turn that is there belongs to the next.
            is_there = index + 1 < len(turns) and any(text.startswith(form, position) for form in forms)
            raise _changed(index + is_there, turns)
        contents.append(content)
        position += len(content) + len(behind)
    if position != len(text):
        raise Refusal("it goes on behind the last turn, depending on what is said")
    return contents


def _pieces(turns: Sequence[Turn], frame: Sequence[str], contents: Sequence[str]) -> tuple[str, ...]:
    pieces = [frame[0]]
    for turn, content, behind in zip(turns, contents, frame[1:], strict=True):
        if turn.role == ASSISTANT and turn.scored:
            pieces += [content, behind]
        else:
            pieces[-1] += content + behind
    return tuple(pieces)
