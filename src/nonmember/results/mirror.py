"""Logs a finished audit to the tracker, live or from the disk.

All of it can be read off the run's folder: the disk has it first, and W&B has a copy. Names are in `trackers`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nonmember.records.groups import SUSPECT
from nonmember.results.evidence import columns_of, load
from nonmember.results.result import RESULT, SCORES, AuditResult
from nonmember.tracking.trackers import Tracker

FACTS = "cell"  # where W&B's config has them

Plain = str | float | bool | None
Texts = Mapping[str, Mapping[str, str]]  # group of documents -> document id -> text


def mirror(tracker: Tracker, result: AuditResult, folder: Path, texts: Texts | None = None) -> None:
    """Tell the tracker all there is to a result whose files lie in `folder`; missing files are left out.

    texts: sent along with the scores where the tracker was asked to (`log_text`), ignored otherwise.
    """
    tracker.describe(FACTS, facts_of(result))
    provenance = asdict(result.provenance)
    told = {name: provenance[name] for name in ("keys", "versions", "commit", "sources", "tokens")}
    tracker.describe("provenance", told | {"schema_version": result.schema_version})
    tracker.summarise(summary_of(result))
    if not tracker.takes_media:
        return
    from nonmember.results.pictures import of_run, png_of

    evidence = load(folder)
    if len(evidence.distribution):
        tracker.histogram("test/distribution", evidence.distribution.tolist())
    for drawing in of_run(evidence):
        tracker.figure(f"figure/{drawing.name}", png_of(drawing.figure))
    if columns := columns_of(folder / SCORES):
        if tracker.log_text and texts is not None:
            columns["text"] = _texts_of(columns, texts)
        tracker.scores("scores", columns)
    files: dict[str, bytes | Path] = {name: folder / name for name in (RESULT, SCORES) if (folder / name).is_file()}
    if (shown := result.without_answers()).verdict != result.verdict and not tracker.log_text:
        files[RESULT] = shown.to_json().encode()
    tracker.files(f"audit-{result.provenance.keys.get('audit', 'unknown')}", files)


def facts_of(result: AuditResult) -> dict[str, Plain]:
    """What an audit can be grouped and compared by: plain values under flat names, absent ones None.

    First what every audit has; then the method's settings, outer ones before inner ones of the same name; then the
    data's. `lambda`, `tau`, `k`, `rank_metric`, `learning_rate`, `epochs`, `domain` and `half` are always there.
    """
    names = ("method", "score", "target", "reference", "corpus", "heldout", "world", "truth", "seed", "sweep")
    facts: dict[str, Plain] = {name: getattr(result.question, name) for name in names}
    facts |= {"score": facts["score"] or None, "name": result.question.cell}
    for name, value in [*_settings(result.question.settings), *result.question.data.items()]:
        facts.setdefault(name.rstrip("_"), value)
    for name in ("lambda", "tau", "k", "rank_metric", "learning_rate", "epochs", "domain", "half"):
        facts.setdefault(name, None)
    return facts


def swept_of(result: AuditResult) -> dict[str, float | None]:
    """What sweeps vary, as numbers: k, lambda and tau of the method, and how often the target read the set on average;
    None where the method has no such setting, or where it is not known."""
    facts = facts_of(result)
    plain = {name: value for name in ("k", "lambda", "tau") if isinstance(value := facts[name], int | float)}
    read = result.question.target_exposure
    dose = None if read is None else read.exposures * read.share
    return {**dict.fromkeys(("k", "lambda", "tau")), **plain, "dose": dose}


def _settings(settings: Mapping[str, Any]) -> Iterator[tuple[str, Plain]]:
    """Plain values, breadth first."""
    inner: list[Mapping[str, Any]] = [settings]
    while inner:
        level, inner = inner, []
        for node in level:
            for name, value in node.items():
                if isinstance(value, Mapping):
                    inner.append(value)
                elif name != "kind" and (value is None or isinstance(value, str | int | float | bool)):
                    yield name, value


def summary_of(result: AuditResult) -> dict[str, float | str]:
    """All final values of a result under the names that never change; undefined ones are left out."""
    values: dict[str, Any] = {
        "test/statistic": result.statistics.value,
        f"test/{re.sub(r'[^A-Za-z0-9_]', '_', result.statistics.name)}": result.statistics.value,
        **{f"test/{name}": getattr(result.statistics, name) for name in ("p_value", "ci_low", "ci_high", "p_error")},
        "test/alpha": result.question.alpha,
        "verdict": result.verdict.decision,
        "allowed_claim": result.verdict.allowed_claim,
        "answer": "\n".join(result.answer.lines()),
        "num_documents": result.statistics.num_documents,
        "num_excluded": result.exclusions.num_documents,
        "num_tokens": result.statistics.num_tokens,
        "num_warnings": len(result.verdict.warnings),
        "warnings": "\n".join(result.without_answers().verdict.warnings),
        "seconds": result.provenance.seconds,
        **{f"health/{name}": value for name, value in result.health.training.items()},
        **{
            f"capability/{role}/{name}": v
            for role, measured in result.health.capability.items()
            for name, v in measured.items()
        },
        **{_name_of_detail(name): value for name, value in _numbers(result.statistics.details)},
    }
    return {name: value for name, value in values.items() if value is not None}


def objective(result: AuditResult, metric: str) -> float:
    """The number that a search optimizes, by its name in the summary or the last part of it.

    Raises:
        ValueError: Where the result has no such number, or several.
    """
    numbers = {name: float(v) for name, v in summary_of(result).items() if not isinstance(v, str)}
    found = [metric] if metric in numbers else [name for name in numbers if name.rpartition("/")[2] == metric]
    if len(found) != 1:
        raise ValueError(
            f"optimized_metric must be one number of the result; got {metric!r}, which "
            f"{'it has not' if not found else 'is ' + ' and '.join(found)}. It has {', '.join(numbers)}."
        )
    return numbers[found[0]]


def _numbers(details: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, float]]:
    for name, value in details.items():
        if isinstance(value, Mapping):
            yield from _numbers(value, f"{above}{name}/")
        elif isinstance(value, int | float):
            yield f"{above}{name}", value


def _name_of_detail(name: str) -> str:
    """A dot would be read as a path by W&B's charts."""
    name = re.sub(r"[^A-Za-z0-9_/]", "_", name)
    if name.startswith("rho_"):
        return f"rho/{name.removeprefix('rho_')}"
    return f"score/{name}" if name == "auroc" or name.startswith("tpr_at_") else f"detail/{name}"


def _texts_of(columns: Mapping[str, Any], texts: Texts) -> list[str | None]:
    """Joined by group and id; None where there is no such document."""
    doc_ids = columns["doc_id"]
    groups = columns.get("group", [SUSPECT] * len(doc_ids))
    return [texts.get(group, {}).get(doc_id) for group, doc_id in zip(groups, doc_ids, strict=True)]
