"""A report as one HTML file: no network, no library; every number of a table leads to the result it is from."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from nonmember.reports.core import formats
from nonmember.reports.core.explorer import AXIS_WIDTH, axis_of, false_claim, row_of, statistics_of
from nonmember.reports.core.grid import MEANINGS, PUBLISHED, Figure, Numeral, ReportDocument, TableCell
from nonmember.reports.render.html import beginning, rendered
from nonmember.reports.render.sharing import shared_parts
from nonmember.results.load import Run
from nonmember.runtime.terminal import visible

HERE = Path(__file__).parent


def page(document: ReportDocument, runs: Sequence[Run], facts: Mapping[str, str]) -> str:
    """The whole page. facts: name -> what, for the head.   runs: results, for the explorer."""
    script, style = script_of("elements.js", "page.js"), read("page.css")
    axis = axis_of(runs)
    return rendered(
        HERE / "page.html.j2",
        FILTERS,
        document=document,
        facts=facts,
        marks=document.marks,
        published=PUBLISHED,
        rows=[row_of(run, axis) for run in runs],
        axis=axis,
        statistics=statistics_of(runs),
        axis_width=AXIS_WIDTH,
        choices=choices(runs),
        data=embedded(dict(zip(("runs", "shared"), shared_parts([full(run) for run in runs]), strict=True))),
        script=Markup(script),
        style=Markup(style),
        policy=policy_of(script),
    )


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


def full(run: Run) -> dict[str, Any]:
    """Everything about a run that the page shows on demand; long lists are left to the file."""
    values = _plain(run.result.without_answers())
    details, excluded = run.statistics.details, run.result.exclusions
    values["statistics"]["details"] = {name: shortened(value) for name, value in details.items()}
    values["exclusions"] |= {
        "documents": {group: shortened(dict(reasons)) for group, reasons in excluded.documents.items()},
        "num_documents": excluded.num_documents,
    }
    found = {"anchor": run.anchor, "path": run.path, "sha256": run.sha256, "domain": run.domain}
    return values | found | {"false_claim": false_claim(run.result)}


def _plain(value: Any) -> Any:
    """As `asdict` gives it, without copies of what is in it."""
    if value is None or isinstance(value, str | int | float):  # nearly all: to ask first is a third of the time
        return value
    if is_dataclass(value):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


MAX_LISTED = 24


def shortened(value: Any) -> Any:
    """Long lists and mappings by their number of entries."""
    if isinstance(value, list | tuple | dict) and len(value) > MAX_LISTED:
        return f"{len(value)} entries; see the file"
    return value


def choices(runs: Sequence[Run]) -> dict[str, list[str]]:
    """What the filters offer."""
    names = ("world", "sweep", "method", "verdict", "truth")
    return {name: sorted({fact(run, name) for run in runs}) for name in names}


def fact(run: Run, name: str) -> str:
    return run.verdict.decision if name == "verdict" else str(run.get(name) or "unknown")


def cell_html(cell: TableCell) -> Markup:
    ours = numbers_html(cell, cell.ours)
    if not cell.published:
        return ours
    return Markup('{} <span class="paper" title="published">({})</span>').format(
        ours, numbers_html(cell, cell.published)
    )


def numbers_html(cell: TableCell, numbers: tuple[Numeral, ...]) -> Markup:
    return Markup("").join(
        escape(piece) if isinstance(piece, str) else number_html(piece) for piece in cell.pieces(numbers)
    )


def number_html(number: Numeral) -> Markup:
    """A link to the result; of several, to all of them together."""
    text: Markup = escape(number.text)
    if number.runs:
        anchors = list(dict.fromkeys(number.runs))
        href = f"#{anchors[0]}" if len(anchors) == 1 else f"#runs?only={','.join(anchors)}"
        several = "" if len(anchors) == 1 else Markup(' class="several"')
        title = Markup(' title="{}"').format(number.note) if number.note else ""
        text = Markup('<a href="{}"{}{}>{}</a>').format(href, several, title, text)
    if number.missing:
        text = Markup('<span class="none">{}</span>').format(text)
    if number.mark:
        text += Markup('<span class="mark" title="{}">{}</span>').format(MEANINGS[number.mark], number.mark)
    if number.adjusted:
        text = Markup('<span class="tested">{}<small title="Holm-adjusted">{}</small></span>').format(
            text, number.adjusted
        )
    return text


def prose(text: str) -> Markup:
    """Escaped, with what stands in backticks as code."""
    parts = [
        Markup("<code>{}</code>").format(part) if index % 2 else escape(part)
        for index, part in enumerate(text.split("`"))
    ]
    return Markup("").join(parts)


def picture(figure: Figure) -> Markup:
    """The figure's SVG with a name for those who cannot see it. Its text was escaped when it was drawn."""
    label = Markup('<svg role="img" aria-label="{}" ').format(f"{figure.title}. {figure.alt}")
    width, height = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', figure.svg).groups()  # type: ignore[union-attr]
    svg = re.sub(r'\s(width|height)="[\d.]+pt"', "", figure.svg, count=2)
    return Markup(svg.replace("<svg ", f"{label}", 1).replace("<svg ", f'<svg style="--w:{width};--h:{height}" ', 1))


FILTERS: Mapping[str, Callable[..., Any]] = {
    "beginning": beginning,
    "cell": cell_html,
    "prose": prose,
    "picture": picture,
    "decimals": formats.decimals,
    "p": formats.p_value,
}
