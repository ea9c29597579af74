"""Untrusted text (labels, file names, answers, server messages) made safe for terminals and log files."""

from __future__ import annotations

import contextlib
import logging
import re
import sys
from typing import TYPE_CHECKING, Any

from nonmember.checks import hidden

if TYPE_CHECKING:
    from rich.console import Console

WIDTH_OF_FILES = 150
# Control characters, what reverses the direction of text, line ends that only some know, and half characters.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: object, keep: str = "") -> str:
    """A text whose control characters are shown as escapes, such as \\x1b, instead of acting. keep: those that may."""
    return _CONTROLS.sub(lambda match: match[0] if match[0] in keep else ascii(match[0])[1:-1], str(text))


def for_rich(text: object) -> str:
    """The same for rich's tables and prints: what looks like its markup, as in `[draft] docs`, is text."""
    from rich.markup import escape

    return escape(visible(text))


def console_of(width: int = WIDTH_OF_FILES, like: Console | None = None) -> Console:
    """The terminal, or one like that given; of a file, which has no width of its own, with this one."""
    from rich.console import Console

    console = like or Console()
    return console if console.is_terminal else Console(file=console.file, width=width)


def say(console: Console, text: object) -> None:
    """Print a sentence as it is, broken between words on a terminal."""
    console.print(for_rich(text), soft_wrap=not console.is_terminal, highlight=False)


class LogHandler(logging.StreamHandler):
    """Prints above the progress bars, where some are shown."""

    def emit(self, record: logging.LogRecord) -> None:
        bars: Any = getattr(sys.modules.get("tqdm"), "tqdm", None)
        with bars.external_write_mode(self.stream) if getattr(bars, "_instances", ()) else contextlib.nullcontext():
            super().emit(record)


class LogFormatter(logging.Formatter):
    """What a message is given as arguments may come from others, and starts no new line; its own text may. What looks
    like a secret is left out."""

    def format(self, record: logging.LogRecord) -> str:
        if isinstance(record.args, tuple):
            arguments = tuple(item if isinstance(item, int | float) else visible(item) for item in record.args)
            record = logging.makeLogRecord(record.__dict__ | {"args": arguments})
        return visible(hidden(super().format(record)), keep="\n\t")
