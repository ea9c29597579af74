"""What models are asked about texts (rendered in `models.prompting`), requests for text, and their answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

# answered: there is text.   empty: there is none.   refused: the server says that it or the model declined.
# failed: the server did not accept this very request (too long, say); nothing is known of the model's answer.
Outcome = Literal["answered", "empty", "refused", "failed"]


@dataclass(frozen=True)
class Request:
    """One question about one document.

    Neither `expected` nor `options` is ever sent by itself, nor part of a request's key.

    Attributes:
        doc_id: Of the document the question is about.
        name: Which question it is; together with `doc_id` unique within one probe, and how a recorded answer is found
            again.
        question: The user's turn.
        max_new_tokens: Of the decoding.
        temperature: Of the decoding; 0 takes the likeliest token.
        seed: Of the decoding.
        instruction: The system's turn; empty: none.
        plain: What a model without a chat form goes on with; empty: instruction, blank line, question.
        bare: A model with a chat form is to go on with `plain` too, wherever it can be asked without that form.
        top_logprobs: How many alternatives to every written token are wanted with their log-probabilities; 0: none.
        expected: What the right answer is, where there is one.
        options: What there is to choose among, as the question shows it.
    """

    doc_id: str
    name: str
    question: str
    max_new_tokens: int
    temperature: float
    seed: int
    instruction: str = ""
    plain: str = ""
    top_logprobs: int = 0
    expected: str = ""
    options: tuple[str, ...] = ()
    bare: bool = False

    def key(self) -> dict[str, Any]:
        """What determines the answer."""
        left_out = ("expected", "options") if self.bare else ("expected", "options", "bare")
        return {name: value for name, value in vars(self).items() if name not in left_out}

    @property
    def as_text(self) -> str:
        """For a model without a chat form."""
        return self.plain or "\n\n".join(part for part in (self.instruction, self.question) if part)


@dataclass(frozen=True)
class Completion:
    """A model's response.

    Attributes:
        text: Without the prompt.
        finish_reason: As the server says, such as stop or length.
        served_model: Who answered, as far as is known.
        date: When (UTC, ISO 8601), as far as is known.
        top_logprobs: Per written token, pairs of a token's text and its log-probability, the likeliest first; empty
            where none were requested or returned.
        prompt_tokens: As the server counts, 0 where it does not.
        completion_tokens: As the server counts, 0 where it does not.
        reason: Of what is not answered.
        has_thoughts: Whether the model thought before it answered; its thoughts are no part of text and top_logprobs.
    """

    text: str
    outcome: Outcome
    finish_reason: str = ""
    served_model: str = ""
    date: str = ""
    top_logprobs: tuple[tuple[tuple[str, float], ...], ...] = ()
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reason: str = ""
    has_thoughts: bool = False


@dataclass(frozen=True)
class ParsedAnswer:
    """What a probe reads in a completion.

    Attributes:
        valid: It can be read as an answer to the question at all; what cannot is counted and never right.
        correct: It is the expected one.
        read: The answer as it was understood.
    """

    valid: bool
    correct: bool
    read: str = ""


@dataclass(frozen=True)
class Answer:
    """A question, its completion and what was read in it."""

    request: Request
    completion: Completion
    parsed: ParsedAnswer


Answers = tuple[Answer, ...]  # about one document, in the order of the requests


@dataclass(frozen=True)
class Prompt:
    """An instruction about a text. Rendering, by chat template or as plain text, is in `models.prompting`."""

    instruction: str

    def request(self, text: str) -> str:
        """The text and the cue: all but the instruction."""
        return f"Text: {text}\nResponse:"


@dataclass(frozen=True)
class Template(Prompt):
    """A prompt with a place of its own for the text.

    Attributes:
        template: The request, with {text} where it stands.
    """

    template: str

    def request(self, text: str) -> str:
        return self.template.replace("{text}", text)


@dataclass(frozen=True)
class Question(Prompt):
    """A prompt that is answered in one word.

    Attributes:
        answers: Those whose probabilities are wanted.
    """

    answers: tuple[str, ...]
