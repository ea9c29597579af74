"""`index.html` beside many audits: one file to sort, filter, search and compare them, with links to their pages.

It fetches nothing, and its one script is the only one that its policy lets run. The folders may be anybody's: texts
stay texts, and a link leads only to a page that begins as ours do.
"""

from __future__ import annotations

import functools
import logging
import urllib.parse
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from markupsafe import Markup

from nonmember.reports.audit_page.write import PAGE, is_page
from nonmember.reports.core import formats
from nonmember.reports.core.formats import VERDICTS
from nonmember.reports.core.grid import UNLEARNED, WHY_UNLEARNED
from nonmember.reports.render.html import beginning, begins_with, rendered
from nonmember.reports.render.page import embedded, policy_of, read, script_of
from nonmember.reports.render.sharing import shared_parts
from nonmember.results.mirror import swept_of
from nonmember.results.outcomes import UNUSABLE, outcome_paths, usable_outcome, without_parts
from nonmember.results.result import AuditResult, Failure
from nonmember.runtime.files import write_text_atomically
from nonmember.runtime.progress import tracked

INDEX = "index.html"
HERE = Path(__file__).parent
UNREADABLE = "unreadable"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Index:
    path: Path  # of the page
    num_audits: int
    unusable: tuple[str, ...]  # of each result that cannot be used, why


def try_to_write_index(folder: Path) -> Path | None:
    """For the end of a sweep, which a page can never make fail: what goes wrong is a warning."""
    try:
        return write_index(folder).path
    except Exception as error:  # whatever it is, the results stand
        log.warning("The page %s could not be written (%s: %s).", folder / INDEX, type(error).__name__, error)
        return None


def write_index(folder: Path) -> Index:
    """Read all results below a folder and write the page over them into it.

    Raises ValueError where there is no result, or where the folder has an index.html of somebody else's.
    """
    path, paths = folder / INDEX, without_parts(outcome_paths(folder))
    if path.exists() and not is_index(path):
        raise ValueError(
            f"{path} must be free, or a page of nonmember view, which replaces it; got another file. Move it away."
        )
    entries = [_entry(item, folder) for item in tracked(paths, "reading audits", "audits")]
    write_text_atomically(path, page(entries))
    unusable = tuple(entry["why"] for entry in entries if entry["decision"] == UNREADABLE)
    return Index(path, len(entries), unusable)


def _entry(path: Path, folder: Path) -> dict[str, Any]:
    """What is shown of an audit; where its file cannot be used, that and why."""
    entry: dict[str, Any] = {}

    def use(outcome: AuditResult | Failure) -> None:
        entry.update(entry_of(outcome, path, folder))
        embedded(entry)  # whose values must all be such as JSON has

    outcome = usable_outcome(path, use)
    return entry_of(outcome, path, folder) if isinstance(outcome, Failure) else entry


def is_index(path: Path) -> bool:
    """Whether a file begins as an index of this or another version does."""
    return begins_with(path, "default-src 'none'; style-src 'unsafe-inline'; script-src ", whole=False)


def _written(outcome: AuditResult | Failure, path: Path) -> str:
    """When a result was made, by itself; of a failure, when its file was."""
    if isinstance(outcome, AuditResult):
        return outcome.answer.finished[:19].replace("T", " ")
    return datetime.fromtimestamp(path.lstat().st_mtime, UTC).strftime("%Y-%m-%d %H:%M:%S")


def entry_of(outcome: AuditResult | Failure, path: Path, folder: Path) -> dict[str, Any]:
    """What the page shows of an audit, or of why there is none. path: of its file, below the folder."""
    page = path.with_name(PAGE)
    beside = {
        "folder": path.parent.relative_to(folder).as_posix(),
        # Relative, with nothing in it that a browser reads as anything but a path.
        "page": f"./{urllib.parse.quote(page.relative_to(folder).as_posix())}" if is_page(page) else None,
        "written": _written(outcome, path),
    }
    if isinstance(outcome, Failure):
        decision = UNREADABLE if outcome.kind == UNUSABLE else "failed"
        return {**beside, "decision": decision, "why": outcome.error}
    asked, found = outcome.question, outcome.statistics
    value, interval = formats.statistic(found)
    exposure = asked.target_exposure
    return {
        **beside,
        **{name: getattr(asked, name) for name in ("method", "corpus", "target", "reference", "cell")},
        "decision": outcome.verdict.decision,
        "claim": " ".join([outcome.answer.sentence, *outcome.answer.lines()[1:]]),
        "warnings": list(outcome.without_answers().verdict.warnings),
        "false": outcome.false_claim,
        "unlearned": outcome.unlearned,
        "statistic": found.name,
        "value": found.value,
        "printed": value,
        "low": found.ci_low,
        "high": found.ci_high,
        "interval": interval,
        "p": outcome.answer.p,
        "p_printed": formats.p_value(outcome.answer.p, asked.alpha),
        "dose": None if exposure is None else exposure.label,
        "n": found.num_documents,
        "axes": {**swept_of(outcome), "documents": found.num_documents},
        "facts": {
            **{name: getattr(asked, name) for name in ("heldout", "score", "alpha", "seed", "world", "sweep")},
            "truth": formats.TRUTHS.get(asked.truth or ""),
            "data": asked.data,
            "settings": asked.settings,
            "versions": outcome.provenance.versions,
            "commit": outcome.provenance.commit,
        },
    }


def page(entries: list[dict[str, Any]]) -> str:
    """The newest first; what failed, or cannot be read, apart."""
    newest = sorted(entries, key=lambda entry: entry["written"], reverse=True)
    audits = [entry for entry in newest if "why" not in entry]
    decisions = Counter(entry["decision"] for entry in newest)
    known = VERDICTS | {name: ("✕", name) for name in ("failed", UNREADABLE)}
    packed = dict(zip(("audits", "shared"), shared_parts(audits), strict=True))
    return rendered(
        HERE / "index.html.j2",
        {"beginning": beginning, "embedded": embedded},
        num_audits=len(audits),
        num_of={known.get(name, ("?", name)): number for name, number in decisions.most_common()},
        choices={
            "method": sorted({entry["method"] for entry in audits}),
            "answer": {name: known.get(name, ("?", name))[1] for name in sorted(decisions) if name in VERDICTS},
        },
        unlearned=f"{UNLEARNED} {WHY_UNLEARNED}." if any(entry["unlearned"] for entry in audits) else "",
        failed=[entry for entry in newest if "why" in entry],
        data=packed | {"verdicts": known},
        style=Markup(read("page.css") + _own("audit_page/audit.css") + _own("index_page/index.css")),
        script=Markup(_script()),
        policy=policy_of(_script()),
    )


@functools.cache
def _script() -> str:
    return script_of("elements.js", "paged.js") + _own("index_page/index.js")


def _own(name: str) -> str:
    return (HERE.parent / name).read_text(encoding="utf-8")
