"""Chat templates are untrusted programs: rendered in jinja's sandbox, with bounds on time and output.

The bound is a number of executed lines and not of seconds, so that the same template gives the same answer on every
machine, in any thread and however busy it is; what one line may do is bounded by the sizes it works on. Dates and draws
are the same at each rendering, so that a prompt is too.
"""

from __future__ import annotations

import functools
import json
import math
import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from types import FrameType
from typing import Any

from jinja2 import TemplateError
from jinja2.defaults import DEFAULT_FILTERS
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from transformers.utils import chat_template_utils as _transformers

# A dialogue of two turns takes some thousand lines, and the templates of 2026 are compiled within a million.
MOST_LINES = 10_000_000
MOST_CHARACTERS = 50_000_000  # of a prompt, and of a text that is put together by +
library: Any = _transformers  # whose parts are replaced below while a template is compiled and rendered
MOST_HANDLED = 500_000_000  # that functions return while a prompt is rendered
LARGEST_STEP = 10**8  # of one operation: the product of the sizes of all it works on
LARGEST_NUMBER = 10**18
NOW = datetime(2024, 7, 26)  # for a template that asks: the date in Llama's own templates where there is no clock
GROWING_FILTERS = ("batch", "center", "format", "indent", "join", "replace", "slice", "tojson", "wordwrap")


class _TooMuchError(BaseException):  # which nothing between here and the template catches
    pass


class _Bounded(ImmutableSandboxedEnvironment):
    """Refuses single operations that make much of little, such as 'a' * 10**10, which no number of lines bounds."""

    intercepted_binops = frozenset({"*", "**", "%", "+"})

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.filters = _Filters({})
        for name, run in DEFAULT_FILTERS.items():
            self.filters[name] = run

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if operator == "**" and not (numbers and abs(right) <= 64 and abs(left) <= LARGEST_STEP):
            raise SecurityError("it raises to a large power")
        if operator == "%" and isinstance(left, str):
            _require_small(_Widths(left), *(right if isinstance(right, tuple) else [right]))
        if operator == "+" and not numbers and _size(left) + _size(right) > MOST_CHARACTERS:
            raise SecurityError("it makes a text of more than it may")
        if operator == "*" and not numbers:
            _require_small(left, right)
        result = super().call_binop(context, operator, left, right)
        if isinstance(result, int) and abs(result) > LARGEST_NUMBER:
            raise SecurityError("it makes a number of more digits than it may")
        return result

    def call(self, context: Any, called: Any, *args: Any, **options: Any) -> Any:
        owner = getattr(getattr(called, "__wrapped__", called), "__self__", None)  # jinja wraps str.format
        if isinstance(owner, str):
            widths = [_Widths(owner)] if called.__name__ in ("format", "format_map") else []
            _require_small(owner, *widths, *args, *options.values())
        return super().call(context, called, *args, **options)


class _Widths(str):
    """A pattern for formatting, as large as the largest width in it."""


def _size(value: Any) -> int:
    if isinstance(value, _Widths):
        return max(map(int, re.findall(r"\d{1,12}", value)), default=1)
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list | tuple | dict):
        items = value.values() if isinstance(value, dict) else value
        return sum(len(item) if isinstance(item, str) else 1 for item in items)
    return int(min(abs(value), LARGEST_NUMBER)) if isinstance(value, int | float) and math.isfinite(value) else 1


def _require_small(*values: Any) -> None:
    if math.prod(max(1, _size(value)) for value in values) > LARGEST_STEP:
        raise SecurityError("one step of it makes more than it may")


class _Filters(dict[str, Any]):
    """Those that can make much of little are bounded, also where transformers replaces one by its own."""

    def __setitem__(self, name: str, run: Callable[..., Any]) -> None:
        super().__setitem__(name, _bounded(run) if name in GROWING_FILTERS else run)


def _bounded(run: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(run)
    def checked(*args: Any, **options: Any) -> Any:
        texts = [_Widths(item) for item in args if isinstance(item, str)] if run.__name__ == "do_format" else []
        _require_small(*texts, *args, *options.values())
        return run(*args, **options)

    return checked


def rendered(tokenizer: Any, turns: Sequence[dict[str, Any]], *, add_generation_prompt: bool) -> str:
    """The dialogue as text by the tokenizer's chat template.

    Raises TemplateError where the template refuses these turns or fails at them, ValueError where it does not end.
    """
    name = getattr(tokenizer, "name_or_path", "") or "this tokenizer"
    try:
        with _fixed():
            text = _limited(
                lambda: tokenizer.apply_chat_template(
                    list(turns), tokenize=False, add_generation_prompt=add_generation_prompt
                )
            )
    except TemplateError:
        raise
    except _TooMuchError as error:
        raise ValueError(_wrong(name, str(error))) from None
    except Exception as error:  # of a program that is not ours
        raise TemplateError(str(error) or type(error).__name__) from error
    if not isinstance(text, str) or len(text) > MOST_CHARACTERS:
        raise ValueError(_wrong(name, f"its prompt has more than {MOST_CHARACTERS:,} characters"))
    return text


def holds(prompt: str, *parts: str) -> bool:
    """Whether each part of what is asked stands in a rendered prompt; white space aside, which templates trim, and
    perhaps as JSON writes it."""
    written = _without_space(prompt)
    return all(
        _without_space(part) in written or _without_space(json.dumps(part, ensure_ascii=False)[1:-1]) in written
        for part in parts
    )


def refused(tokenizer: Any, error: TemplateError) -> ValueError:
    """The sentence for a template that no form of a dialogue suits."""
    name = getattr(tokenizer, "name_or_path", "") or "this tokenizer"
    line = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    return ValueError(_wrong(name, line.rstrip(".")))


def _without_space(text: str) -> str:
    return "".join(text.split())


def _wrong(name: str, why: str) -> str:
    return (
        f"The chat template of {name} cannot be used: {why}. Correct chat_template.jinja (or chat_template in "
        "tokenizer_config.json), or remove it to ask in plain text."
    )


@contextmanager
def _fixed() -> Iterator[None]:
    """Has transformers compile templates as `_compiled` does, and jinja draw the same each time."""
    compiler, draws = library._compile_jinja_template, random.getstate()
    random.seed(0)
    library._compile_jinja_template = _compiled
    try:
        yield
    finally:
        library._compile_jinja_template = compiler
        random.setstate(draws)


@functools.lru_cache(maxsize=16)
def _compiled(template: str) -> Any:
    """As transformers does it, in the bounded sandbox and without a clock."""
    sandbox = library.ImmutableSandboxedEnvironment
    library.ImmutableSandboxedEnvironment = _Bounded
    try:
        compiled = library._cached_compile_jinja_template(template)
    finally:
        library.ImmutableSandboxedEnvironment = sandbox
    compiled.environment.globals["strftime_now"] = NOW.strftime
    return compiled


def _limited(run: Callable[[], str]) -> str:
    """What it gives, ended after so many lines of Python, this thread's and no other's, or so much text that functions
    return or a template yields."""
    lines = characters = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines, characters
        lines += 1
        if event == "return" and isinstance(argument, str):
            characters += len(argument)
        if lines > MOST_LINES:
            raise _TooMuchError(f"it did not end within {MOST_LINES:,} steps")
        if characters > MOST_HANDLED:
            raise _TooMuchError(f"it made more than {MOST_HANDLED:,} characters on the way")
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return run()
    finally:
        sys.settrace(before)  # in the frame that put it aside: a debugger, or coverage, sees each call that it saw end
