"""Instructions to a model about a text. They are rendered in `nonmember.models.prompting`."""

from __future__ import annotations

from dataclasses import dataclass


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
