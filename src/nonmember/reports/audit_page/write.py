"""`audit.html`: one file that fetches nothing, so that it can be kept, sent and shown. Its one script, which alone its
policy lets run, sorts and searches the documents; all else is there without it.

It holds document ids and scores; the documents' first words only where that was asked for (`page_text=true`).
"""

from __future__ import annotations

import functools
import logging
from pathlib import Path
from typing import Any

from markupsafe import Markup

from nonmember.reports.audit_page import content
from nonmember.reports.core import formats
from nonmember.reports.render.html import beginning, begins_with, rendered
from nonmember.reports.render.page import embedded, policy_of, read, script_of
from nonmember.results.evidence import Evidence, load
from nonmember.results.mirror import Texts
from nonmember.results.pictures import drawings
from nonmember.results.result import PARTS
from nonmember.runtime.files import write_text_atomically

PAGE = "audit.html"
HERE = Path(__file__).parent
FIRST_ROWS = 25  # of the documents, without the script; paged.js shows as many a page

log = logging.getLogger(__name__)


def try_to_write_page(folder: Path, texts: Texts | None = None) -> None:
    """For the end of an audit, which a page can never make fail: what goes wrong is a warning."""
    try:
        write_page(folder, texts)
    except Exception as error:  # whatever it is, the result stands
        log.warning("The page %s could not be written (%s: %s).", folder / PAGE, type(error).__name__, error)


def write_page(folder: Path, texts: Texts | None = None) -> Path:
    """Make the page of the audit in a folder, from its files. texts: of which the first words are shown.

    Raises ValueError where there is no result that can be read.
    """
    path = folder / PAGE
    write_text_atomically(path, page(load(folder), folder, texts))
    return path


def page(evidence: Evidence, folder: Path, texts: Texts | None = None) -> str:
    result = evidence.result if texts is not None else evidence.result.without_answers()
    asked = result.question
    sign, verdict = content.verdict(result)
    script = _script()
    return rendered(
        HERE / "audit.html.j2",
        {"kind": content.kind_of_cell, "decimals": formats.decimals, "embedded": embedded, "beginning": beginning},
        result=result,
        question=content.question(result),
        identity=content.identity(result),
        sign=sign,
        verdict=verdict,
        truth=content.truth(result),
        parts=content.parts(result),
        whole=f"../../{PAGE}" if folder.parent.name == PARTS else None,
        numbers=content.numbers(evidence),
        drawings=drawn(evidence),
        checks={
            **content.passages(result),
            "Gates": content.gates(result),
            "Health": content.health(result),
            "Models": content.models(result),
        },
        documents=content.documents(evidence, texts),
        first=FIRST_ROWS,
        digits=content.DIGITS,
        exclusions=content.exclusions(result),
        settings={
            "Settings": content.facts({**asked.settings, "seed": asked.seed, "score": asked.score}),
            "Data": content.facts({"corpus": asked.corpus, "heldout": asked.heldout, **asked.data}),
            "Further numbers": content.facts(result.statistics.details),
            "Keys": content.facts(result.provenance.keys),
            "Versions": content.facts(result.provenance.versions),
            "Tokens added to each text": content.facts(result.provenance.tokens),
            "What this run made": content.facts({**result.provenance.made, "seconds": result.provenance.seconds}),
        },
        command=content.command(evidence),
        style=Markup(read("page.css") + (HERE / "audit.css").read_text(encoding="utf-8")),
        script=Markup(script),
        policy=policy_of(script),
    )


def drawn(evidence: Evidence, name: str = "plot") -> list[dict[str, Any]]:
    """Pictures for a page, with their titles and captions. name: with which the ids within the pictures begin."""
    from nonmember.reports.render.figures import svg_of

    return [
        {"title": item.title, "caption": item.caption, "svg": Markup(svg_of(item.figure, f"{name}{index}", item.title))}
        for index, item in enumerate(drawings(evidence))
    ]


def is_page(path: Path) -> bool:
    """Whether a file of a folder that may be anybody's begins as pages of audits do, so that no script of others runs
    in it whatever else was written there."""
    return begins_with(path, policy_of(_script()))


@functools.cache
def _script() -> str:
    return script_of("elements.js", "paged.js") + (HERE / "documents.js").read_text(encoding="utf-8")
