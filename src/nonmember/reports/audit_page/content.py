"""Content of an audit's page, as rows and sentences for its template."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nonmember.records import FloatArray
from nonmember.records.groups import HELDOUT, SUSPECT
from nonmember.reports.audit_page.gates import gates_of
from nonmember.reports.core import formats
from nonmember.reports.core.formats import VERDICTS
from nonmember.results.evidence import Evidence
from nonmember.results.mirror import Texts
from nonmember.results.pictures import CLAIMS, GROUPS, readable, telling, titled
from nonmember.results.result import AuditResult

MAX_DOCUMENTS = 20_000  # in the page's table, a megabyte; scores.parquet has all
MAX_COLUMNS = 6
MAX_LISTED = 24  # entries of a list among the details
FIRST_WORDS = 14
FAILED = "FAILED"
DIGITS = 4  # of the documents' scores
CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


@dataclass(frozen=True)
class PageTable:
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]  # cells as they are printed, the first of each names the row
    kind: str = ""  # what the style knows it by


@dataclass(frozen=True)
class DocumentTables:
    columns: Sequence[str]
    # id, group where there are several, scores (None: undefined), first words where these are shown.
    rows: Sequence[Sequence[str | float | None]]
    note: str  # on what is left out
    what: str  # the rows are


def question(result: AuditResult) -> str:
    if result.question.target is None:
        other = f" and {result.question.heldout}" if result.question.heldout else ""
        return f"What distinguishes {result.question.corpus}{other}, without any model?"
    return f'Were the documents "{result.question.corpus}" used to train "{result.question.target}"?'


def identity(result: AuditResult) -> str:
    """What the answer is about, and when it was made by what."""
    answer = result.answer
    target = f"target {answer.target.name} ({answer.target.hash}), " if answer.target.name else ""
    documents = f"{answer.documents.number:,} documents {answer.documents.name} ({answer.documents.fingerprint})"
    program = f"nonmember {result.provenance.versions.get('nonmember', '')}".strip()
    return f"{answer.finished[:10]}, {target}{documents}, {program}"


def verdict(result: AuditResult) -> tuple[str, str]:
    """A sign and words; of an unknown one its name."""
    return VERDICTS.get(result.verdict.decision, ("?", result.verdict.decision))


def truth(result: AuditResult) -> str:
    """What is known by construction, and whether the verdict contradicts it."""
    if result.question.truth is None:
        return ""
    known = f"Known by construction: the documents were {formats.TRUTHS[result.question.truth]}."
    wrong = result.false_claim
    return f"{known} This verdict is a {wrong}." if wrong else known


SMALL_P = {"non_membership": "; a small p means: not used", "membership": "; a small p means: used"}


def numbers(evidence: Evidence) -> dict[str, tuple[str, str]]:
    """Name -> (value, what belongs to it): the few numbers to see first."""
    result = evidence.result
    shown: dict[str, tuple[str, str]] = {}
    if result.answer.conclusion == "invalid":
        why = next(iter(result.answer.because), "see the warnings").partition(". ")[0]
        found = (gate for gate in gates_of(result) if not gate.passed)
        failed = min(found, key=lambda gate: gate.value[:4] not in why, default=None)
        about = ("", why) if failed is None else (f"{failed.value}, must be {failed.side} {failed.bound}", failed.what)
        shown["failed precondition"] = about
    elif result.answer.p is not None:
        meaning = SMALL_P.get(result.question.claim or "", "")
        alpha = result.question.alpha
        error = result.statistics.p_error
        drawn = "" if error is None else f", Monte-Carlo error {error:.1g}"
        shown["p"] = (formats.p_value(result.answer.p, alpha), f"alpha {alpha:g}{drawn}{meaning}")
    if result.statistics.value is not None:
        value, interval = formats.statistic(result.statistics)
        aside = f"{1 - result.question.alpha:.0%} interval {interval}" if interval else ""
        shown[result.statistics.name] = (value, aside)
    tokens = "" if result.statistics.num_tokens is None else f"{result.statistics.num_tokens:,} tokens"
    excluded = f"{result.exclusions.num_documents} excluded" if result.exclusions.num_documents else ""
    shown["documents"] = (f"{result.statistics.num_documents:,}", ", ".join(filter(None, (tokens, excluded))))
    return shown


# The tests of method=auto ---------------------------------------------------------------------------------------------


def parts(result: AuditResult) -> dict[str, Any] | None:
    """Of method=auto: what each test found (`tests`), where its page is (`links`), what more would allow (`more`)."""
    if "lacking" not in (details := result.statistics.details):
        return None
    tests: Mapping[str, Any] = details["tests"]
    rows = [
        (
            CLAIMS[claim],
            test["method"],
            "invalid" if test["verdict"] == "invalid" else formats.p_value(test["p_value"], result.question.alpha),
            test["because"],
        )
        for claim, test in tests.items()
    ]
    more = [(CLAIMS[claim], "a test", text) for claim, text in details["lacking"].items()]
    more += [("", name, why) for name, why in details.get("passed_over", {}).items()]
    links = {test["method"]: f"{str(test['result']).rpartition('/')[0]}/audit.html" for test in tests.values()}
    if details.get("largest_blind_auc") is not None:
        links["blind"] = "parts/blind/audit.html"
    return {
        "tests": PageTable(("answer", "test", "p", "why"), rows, "cards"),
        "more": PageTable(("answer", "method", "needs"), more, "cards") if more else None,
        "links": links,
    }


# Gates and health -----------------------------------------------------------------------------------------------------

HEALTH = {
    "ce": "Cross-entropy of the distilled reference on the documents, nats per token",
    "kl": "Divergence of the distilled reference from the target there, nats per token",
}


def gates(result: AuditResult) -> PageTable | None:
    """What had to hold, with the measured number, its bound, and what would be let through without it."""
    rows = [
        (
            item.what,
            "passed" if item.passed else FAILED,
            item.value,
            f"{item.side} {item.bound}",
            item.guards or formats.DASH,
        )
        for item in gates_of(result)
    ]
    return PageTable(("gate", "", "measured", "must be", "guards against"), rows, "gates cards") if rows else None


def health(result: AuditResult) -> PageTable | None:
    """What distilling or tuning did, before and after."""
    names = dict.fromkeys(re.sub(r"_(before|after)$", "", name) for name in result.health.training)
    rows = []
    for name in names:
        before, after = (result.health.training.get(f"{name}_{when}") for when in ("before", "after"))
        change = formats.signed(after - before) if before is not None and after is not None else formats.DASH
        rows.append((HEALTH.get(name, name), formats.decimals(before), formats.decimals(after), change))
    return PageTable(("measured", "before", "after", "change"), rows) if rows else None


def models(result: AuditResult) -> PageTable | None:
    """What the models make of the text. nll: of the documents."""
    labels = {"target": result.question.target, "reference": result.question.reference}
    rows = [
        (
            readable(role),
            labels.get(role) or formats.DASH,
            formats.decimals(known.get("nll")),
            formats.count(known.get("num_parameters")),
        )
        for role, known in result.health.capability.items()
    ]
    return PageTable(("role", "model", "nats per token", "parameters"), rows) if rows else None


def passages(result: AuditResult) -> dict[str, PageTable]:
    """Of method=extraction: how many documents have a passage so likely, and ids of the likeliest; never text."""
    details = result.statistics.details
    if "most_extractable" not in details:
        return {}
    sets = {name: details[name] for name in (SUSPECT, HELDOUT) if name in details}
    names = [GROUPS.get(name, name) for name in sets]
    tables = {
        title: PageTable(
            (counted, *names),
            [(level, *(plain(item[key][level]) for item in sets.values())) for level in sets[SUSPECT][key]],
        )
        for title, counted, key in (
            ("Share of documents with a passage at least so likely", "probability", "share_at_least"),
            ("Documents of which a passage comes in so many tries with probability .5", "tries", "num_discoverable"),
        )
    }
    most = [
        (name, *map(plain, (item["probability"], item["tries"]))) for name, item in details["most_extractable"].items()
    ]
    return tables | {"Most extractable documents": PageTable(("document", "probability", "expected tries"), most)}


# Documents ------------------------------------------------------------------------------------------------------------


def documents(evidence: Evidence, texts: Texts | None) -> DocumentTables | None:
    """A row per document: id, group, scores; the first words only where the texts are given."""
    if not evidence.doc_ids or not (evidence.columns or texts):
        return None
    several, names = len(set(evidence.groups)) > 1, telling(evidence.columns)[:MAX_COLUMNS]
    titles = [titled(name, evidence.result.question.score) for name in names]
    columns = ["document", *(["group"] if several else []), *titles]
    scores = [_rounded(evidence.columns[name]) for name in names]
    rows: list[tuple[str | float | None, ...]] = []
    for index, (doc_id, group) in enumerate(zip(evidence.doc_ids[:MAX_DOCUMENTS], evidence.groups, strict=False)):
        begins = [_first_words(texts.get(group, {}).get(doc_id, ""))] if texts is not None else []
        rows.append(
            (doc_id, *([GROUPS.get(group, group)] if several else []), *(column[index] for column in scores), *begins)
        )
    columns += ["first words"] if texts is not None else []
    asked = sum(group == SUSPECT for group in evidence.groups)
    what = f"texts, {asked:,} of them the documents in question" if several else "documents"
    return DocumentTables(columns, rows, _left_out(evidence, len(rows), len(names)), what)


def _rounded(values: FloatArray) -> list[float | None]:
    """None where undefined; as whole numbers where all are, as of tokens."""
    is_count = bool(np.all(np.mod(values[np.isfinite(values)], 1) == 0))
    return [
        (int(value) if is_count else round(value, DIGITS)) if math.isfinite(value) else None
        for value in values.tolist()
    ]


def _first_words(text: str) -> str:
    words = text.split(None, FIRST_WORDS)
    return " ".join(words[:FIRST_WORDS]) + (" ..." if len(words) > FIRST_WORDS else "")


def _left_out(evidence: Evidence, num_rows: int, num_columns: int) -> str:
    omitted = []
    if (more := len(evidence.doc_ids) - num_rows) > 0:
        omitted.append(f"{more:,} further documents")
    if (more := len(evidence.columns) - num_columns) > 0:
        omitted.append(f"{more} further columns")
    return f"scores.parquet has {' and '.join(omitted)}." if omitted else ""


def exclusions(result: AuditResult) -> PageTable | None:
    """Documents without a score, and what the making of the corpora left out, by reason."""
    left = [
        (reason, f"{number:,}", "before the audit") for reason, number in result.exclusions.dropped.items() if number
    ]
    excluded = [
        (doc_id if group == SUSPECT else f"{group}/{doc_id}", why)
        for group, documents in result.exclusions.documents.items()
        for doc_id, why in documents.items()
    ]
    by_reason = Counter(why for _, why in excluded)
    for reason, number in by_reason.most_common():
        ids = [doc_id for doc_id, why in excluded if why == reason]
        more = f" and {number - MAX_LISTED:,} more" if number > MAX_LISTED else ""
        left.append((reason, f"{number:,}", f"{', '.join(ids[:MAX_LISTED])}{more}"))
    return PageTable(("reason", "documents", "which"), left) if left else None


# Everything else ------------------------------------------------------------------------------------------------------


def facts(values: Mapping[str, Any]) -> PageTable | None:
    """Dotted names and plain values; long lists by their number of entries."""
    rows = list(_flat(values))
    return PageTable(("name", "value"), rows) if rows else None


def _flat(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            if len(value) > MAX_LISTED:
                yield f"{above}{name}", f"{len(value)} entries; see result.json"
            else:
                yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", plain(value)


def plain(value: Any) -> str:
    if value is None:
        return formats.DASH
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        return f"{value:.4g}".replace("-", formats.MINUS)
    if isinstance(value, list | tuple):
        return f"{len(value)} entries; see result.json" if len(value) > MAX_LISTED else ", ".join(map(plain, value))
    return str(value)


def command(evidence: Evidence) -> str:
    """What made it, for a shell; empty where that is not known. Names and passwords in addresses are left out."""
    if evidence.overrides is None:
        return ""
    parts = ["nonmember", "audit", *evidence.config, *evidence.overrides]
    return " ".join(shlex.quote(CREDENTIALS.sub("", part)) for part in parts)


NUMBER = re.compile(r"(?:above |below )?[+−]?[\d.,]+(?:e[+−-]?\d+)?%?(?: \(.*\))?|–")


def kind_of_cell(text: str) -> str:
    """ "number": of what must never be broken in two, however narrow the screen; "failed": of a gate."""
    return "failed" if text == FAILED else "number" if NUMBER.fullmatch(text) else ""
