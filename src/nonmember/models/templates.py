"""Chat templates as transformers renders them, in jinja's sandbox, but for the clock: prompts are alike every day."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from jinja2 import TemplateError
from transformers.utils import chat_template_utils

from nonmember.models.tokenizing import name_of

NOW = datetime(2024, 7, 26)  # for a template that asks: the date in Llama's own templates where there is no clock
_compile: Any = chat_template_utils._compile_jinja_template


@functools.wraps(_compile)
def _compiled(template: str) -> Any:
    compiled = _compile(template)
    compiled.environment.globals["strftime_now"] = NOW.strftime
    return compiled


chat_template_utils._compile_jinja_template = _compiled


def rendered(tokenizer: Any, turns: Sequence[dict[str, Any]], *, add_generation_prompt: bool) -> str:
    """The dialogue as text. Raises TemplateError where the template refuses these turns or fails at them."""
    try:
        further = getattr(tokenizer, "chat_template_kwargs", {})
        text = tokenizer.apply_chat_template(
            list(turns), tokenize=False, add_generation_prompt=add_generation_prompt, **further
        )
    except TemplateError:
        raise
    except Exception as error:  # of a program that is not ours
        raise TemplateError(str(error) or type(error).__name__) from error
    return str(text)


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
    return ValueError(
        f"The chat template of {name_of(tokenizer)} cannot be used: {str(error).rstrip('.')}. Correct "
        "chat_template.jinja, or remove it to ask in plain text."
    )


def _without_space(text: str) -> str:
    return "".join(text.split())
