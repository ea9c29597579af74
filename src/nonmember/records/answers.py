"""Requests to a model that answers with text, and its answers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

# answered: there is text.   empty: there is none.   refused: the server says that it or the model declined.
# failed: the server did not accept this very request (too long, say); nothing is known of the model's answer.
Outcome = Literal["answered", "empty", "refused", "failed"]


@dataclass(frozen=True)
class Request:
    """One question about one document.

    doc_id, name: which question it is; unique together within one probe, and how a recorded answer is found again.
    instruction: the system's turn; empty: none.   question: the user's turn.
    plain: what a model without a chat form goes on with; empty: instruction, blank line, question.
    max_new_tokens, temperature, seed: of the decoding; temperature 0 takes the likeliest token.
    top_logprobs: how many alternatives to every written token are wanted with their log-probabilities; 0: none.
    expected: what the right answer is, where there is one.   options: what there is to choose among, as the question
    shows it. Neither is ever sent by itself, nor part of a request's key.
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

    def key(self) -> dict[str, Any]:
        """What determines the answer."""
        settings = asdict(self)
        del settings["expected"], settings["options"]
        return settings

    @property
    def as_text(self) -> str:
        """For a model without a chat form."""
        return self.plain or "\n\n".join(part for part in (self.instruction, self.question) if part)


@dataclass(frozen=True)
class Completion:
    """A model's response.

    text: without the prompt.   finish_reason: as the server says, such as stop or length.   served_model, date: who
    answered and when (UTC, ISO 8601), as far as is known.   top_logprobs: per written token, pairs of a token's text
    and its log-probability, the likeliest first; empty where none were requested or returned.
    prompt_tokens, completion_tokens: as the server counts, 0 where it does not.   reason: of what is not answered.
    has_thoughts: whether the model thought before it answered; its thoughts are no part of text and top_logprobs.
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
    """What a probe reads in a completion. valid: it can be read as an answer to the question at all; what cannot is
    counted and never right.   correct: it is the expected one.   read: the answer as it was understood."""

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
