"""A report as one HTML file: report.md by markdown-it, with its pictures in it. No network, no script.

Beside it what the pages of audits have in common: their policy, and data for their scripts.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from html import escape, unescape
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markupsafe import Markup

from nonmember.reports.core.grid import ReportDocument
from nonmember.reports.render.html import beginning
from nonmember.runtime.terminal import visible

HERE = Path(__file__).parent
WITHOUT_SCRIPT = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
IMAGE = re.compile(r'<img src="figures/([^"]+)\.svg" alt="([^"]*)" ?/?>')
HEADING = re.compile(r"<h2>(.*?)</h2>")


def page(document: ReportDocument, text: str) -> str:
    """The whole page. text: of report.md."""
    pictures = {figure.name: figure.svg for section in document.sections for figure in section.figures}
    keys = iter([section.key for section in document.sections])
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    body = HEADING.sub(lambda found: f'<h2 id="{escape(next(keys))}">{found[1]}</h2>', body)
    body = IMAGE.sub(lambda found: _picture(pictures[unescape(found[1])], found[2]), body)
    style = f"<style>{read('page.css')}</style>"
    head = f"{beginning(WITHOUT_SCRIPT)}<title>{escape(document.title)}</title>\n{style}\n</head>"
    return visible(f"{head}\n<body><main>\n{body}</main></body>\n</html>\n", keep="\n")


def _picture(svg: str, alt: str) -> str:
    """The figure's SVG with a name for those who cannot see it. Its text was escaped when it was drawn."""
    named = svg.replace("<svg ", f'<svg role="img" aria-label="{alt}" ', 1)
    return f"<figure>{named}</figure>"


# What pages of audits share ------------------------------------------------------------------------------------------


def read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def script_of(*names: str) -> str:
    return "".join(map(read, names))


def policy_of(script: str) -> str:
    """Only this very script may run, nothing may be fetched, and no form may be sent."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    sources = f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:"
    return f"default-src 'none'; {sources}; base-uri 'none'; form-action 'none'"


def embedded(value: object) -> Markup:
    """JSON that cannot end the element it stands in, and in which no character acts when a script shows it."""
    text = json.dumps(_shown(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _shown(value: Any) -> Any:
    match value:
        case str():
            return visible(value, keep="\n")
        case Mapping():
            return {visible(name): _shown(item) for name, item in value.items()}
        case list() | tuple():
            return [_shown(item) for item in value]
    return value
