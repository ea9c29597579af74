"""`audit.html`: one file without a script that fetches nothing, so that it can be kept, sent and shown.

It holds document ids and scores; the documents' first words only where that was asked for (`page_text=true`).
"""

from __future__ import annotations

import logging
from pathlib import Path

from markupsafe import Markup

from nonmember.reports.audit_page import content
from nonmember.reports.audit_page.evidence import Evidence, load
from nonmember.reports.audit_page.pictures import drawings
from nonmember.reports.render.html import rendered
from nonmember.results.mirror import Texts
from nonmember.runtime.files import write_text_atomically

PAGE = "audit.html"
HERE = Path(__file__).parent
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"

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
    write_text_atomically(path, page(load(folder), texts))
    return path


def page(evidence: Evidence, texts: Texts | None = None) -> str:
    result = evidence.result
    asked = result.question
    sign, verdict = content.verdict(result)
    return rendered(
        HERE / "audit.html.j2",
        result=result,
        question=content.question(result),
        sign=sign,
        verdict=verdict,
        truth=content.truth(result),
        numbers=content.numbers(evidence),
        drawings=drawings(evidence),
        checks={
            "Parts": content.parts(result),
            "Gates": content.gates(result),
            "Health": content.health(result),
            "Models": content.models(result),
        },
        documents=content.documents(evidence, texts),
        exclusions=content.exclusions(result),
        settings={
            "Settings": content.facts({**asked.settings, "seed": asked.seed, "score": asked.score}),
            "Data": content.facts({"corpus": asked.corpus, "heldout": asked.heldout, **asked.data}),
            "Further numbers": content.facts(result.statistics.details),
            "Keys": content.facts(result.provenance.keys),
            "Versions": content.facts(result.provenance.versions),
            "Tokens around each text": content.facts(result.provenance.tokens),
            "What this run made": content.facts({**result.provenance.made, "seconds": result.provenance.seconds}),
        },
        command=content.command(evidence),
        style=Markup((HERE.parent / "render" / "page.css").read_text(encoding="utf-8"))
        + Markup((HERE / "audit.css").read_text(encoding="utf-8")),
        policy=POLICY,
    )
