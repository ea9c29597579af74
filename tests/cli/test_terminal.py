"""Labels, file names and a server's words are text wherever they are shown: no markup, no escapes, no new lines."""

from __future__ import annotations

import io
import logging
import re

import pytest
from tqdm import tqdm

from nonmember.cli.table import show
from nonmember.reports.render.markdown import _prose, escape
from nonmember.results.result import Failure
from nonmember.runtime.terminal import LogFormatter, LogHandler, for_rich, visible
from wandb_helpers import result

EVIL = "[/x] [draft] docs \x1b[2J\x1b]0;owned\x07 \r\nverdict: member \u202e\x9b31m \ud83d"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, Grüße 日本 👩‍👧", "plain, Grüße 日本 👩‍👧"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("two\nlines\r\t", r"two\nlines\r\t"),
        ("\u202eback\u2028\x9b\x7f", r"\u202eback\u2028\x9b\x7f"),
        ("half \ud83d", r"half \ud83d"),
    ],
)
def test_control_characters_are_shown(text, shown):
    assert visible(text) == shown
    visible(text).encode()


def test_what_looks_like_markup_keeps_its_name_and_ends_nothing(capsys):
    cells = [result(corpus=f"{EVIL}{n}", allowed_claim=EVIL, warnings=(EVIL,), cell=f"seed={n}") for n in (1, 2)]
    show(cells[:1])
    show([*cells, Failure(EVIL, EVIL, "ValueError")])
    said = capsys.readouterr().out
    assert said.count("[/x] [draft] docs") > 5
    assert said.isprintable() or not [item for item in said if not item.isprintable() and item != "\n"]


def test_rich_shows_it_as_it_is():
    from rich.text import Text

    assert Text.from_markup(for_rich(EVIL)).plain == visible(EVIL)


def test_log_lines_stay_lines():
    def line(message: str, *arguments: object) -> str:
        record = logging.LogRecord("nonmember", logging.INFO, "", 1, message, arguments, None)
        return LogFormatter("%(message)s").format(record)

    assert line("%s: %d of %.1f\nfound", EVIL, 3, 0.5) == f"{visible(EVIL)}: 3 of 0.5\nfound"
    assert line(f"a \x1b {EVIL}").count("\x1b") == 0
    assert line("%s", ValueError("a\nb")) == r"a\nb"


def test_log_lines_are_printed_above_a_progress_bar():
    stream = io.StringIO()
    with tqdm(total=2, file=stream):
        LogHandler(stream).emit(logging.makeLogRecord({"msg": "a message"}))
    assert stream.getvalue().partition("a message\n")[0].endswith(" \r"), "the bar is wiped away"


@pytest.mark.parametrize("label", ["a ` <img src=x>", "`<img src=x>```", "``<img src=x>`", "<b>`</b>", "[x](y)\n# z"])
def test_a_backtick_does_not_switch_escaping_off(label):
    """In report.md, of which the page is made, beside a command of ours."""
    assert _prose("Not run; `make demo` runs <it>.") == "Not run; `make demo` runs \\<it\\>."
    note = f"{label}: not run; `make demo` runs it."
    markdown = _prose(note)
    assert not re.search(r"(?<!\\)[<>\[\]]|\n", markdown)
    assert not re.search(r"(?<!\\)[<>\[\]`]|\n", escape(label))
