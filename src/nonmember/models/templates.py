"""Chat templates are untrusted programs: rendered in jinja's sandbox, with bounds on time and output.

The bound is a number of executed lines and not of seconds, so that the same template gives the same answer on every
machine, in any thread and however busy it is. (The sandbox itself bounds `range`, but not loops within loops.)
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from jinja2 import TemplateError

# A dialogue of two turns takes some thousand lines, and the templates of 2026 are compiled within a million.
MOST_LINES = 10_000_000
MOST_CHARACTERS = 50_000_000


class _TooManyLinesError(BaseException):  # which nothing between here and the template catches
    pass


def rendered(tokenizer: Any, turns: Sequence[dict[str, str]], *, add_generation_prompt: bool) -> str:
    """The dialogue as text by the tokenizer's chat template.

    Raises TemplateError where the template refuses these turns, ValueError where it does not end or fails otherwise.
    """
    name = getattr(tokenizer, "name_or_path", "") or "this tokenizer"
    try:
        text = _limited(
            MOST_LINES,
            lambda: tokenizer.apply_chat_template(
                list(turns), tokenize=False, add_generation_prompt=add_generation_prompt
            ),
        )
    except TemplateError:
        raise
    except _TooManyLinesError:
        raise ValueError(_wrong(name, f"it did not end within {MOST_LINES:,} steps")) from None
    except Exception as error:  # of a program that is not ours
        said = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise ValueError(_wrong(name, said.rstrip("."))) from error
    if len(text) > MOST_CHARACTERS:
        raise ValueError(_wrong(name, f"it wrote more than {MOST_CHARACTERS:,} characters"))
    return text


def refused(tokenizer: Any, error: TemplateError) -> ValueError:
    """The sentence for a template that no form of a dialogue suits."""
    name = getattr(tokenizer, "name_or_path", "") or "this tokenizer"
    return ValueError(_wrong(name, str(error).splitlines()[0][:200] if str(error) else type(error).__name__))


def _wrong(name: str, why: str) -> str:
    return (
        f"The chat template of {name} cannot be used: {why}. Mend chat_template.jinja (or chat_template in "
        "tokenizer_config.json), or remove it to ask in plain text."
    )


def _limited(most_lines: int, run: Callable[[], str]) -> str:
    """What it gives, ended after so many lines of Python, this thread's and no other's."""
    left = most_lines

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise _TooManyLinesError
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return run()
    finally:
        sys.settrace(before)  # in the frame that put it aside: a debugger, or coverage, sees each call that it saw end
