"""`page.html` of a bundle: for each audit the question, the answer, how sure it is, what was checked, pictures.

One file without a script that fetches nothing; it names no document.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from nonmember.evidence.gathering import Gathered, Included
from nonmember.reports.audit_page import content
from nonmember.reports.audit_page.write import drawn
from nonmember.reports.render.html import rendered
from nonmember.reports.render.page import WITHOUT_SCRIPT
from nonmember.results.evidence import Evidence
from nonmember.results.result import DISTRIBUTION, SCORES, AuditResult
from nonmember_verify.bundle import NAMES, Audit
from nonmember_verify.report import Report
from nonmember_verify.scores import Tables
from nonmember_verify.verify import check_audits

HERE = Path(__file__).parent
STYLES = ("reports/render/page.css", "reports/audit_page/audit.css", "evidence/page.css")


def page_of(audits: Sequence[Gathered], files: Mapping[str, bytes], choice: Included) -> str:
    """files: of the bundle, as they will be."""
    return rendered(
        HERE / "page.html.j2",
        {"kind": content.kind_of_cell},
        audits=[_shown(item, index, files) for index, item in enumerate(audits)],
        choice=choice,
        sealed=audits[0].seal is not None,
        style=Markup("".join((HERE.parent / name).read_text(encoding="utf-8") for name in STYLES)),
        policy=WITHOUT_SCRIPT,
    )


def _shown(item: Gathered, index: int, files: Mapping[str, bytes]) -> dict[str, Any]:
    result = AuditResult.of(item.result)
    evidence = _evidence(result, item.tables)
    sign, verdict = content.verdict(result)
    report = Report()
    check_audits(Tables(files), [Audit(f"audits/{index:03}", files)], report)
    return {
        "place": index,
        "cell": item.described["cell"],
        "result": result,
        "question": content.question(result),
        "sign": sign,
        "verdict": verdict,
        "numbers": content.numbers(evidence),
        "drawings": drawn(evidence, f"plot{index}-"),
        "lines": report.lines,
        "num_failed": len(report.failures),
        "tables": {
            "Gates": content.gates(result),
            "Health": content.health(result),
            "Settings": content.facts({**result.question.settings, "seed": result.question.seed}),
            "Hashes of models and documents": content.facts(result.provenance.keys),
            "Versions": content.facts(result.provenance.versions),
        },
        "receipt": item.described["receipt"],
    }


def _evidence(result: AuditResult, tables: Mapping[str, Mapping[str, Any]]) -> Evidence:
    scores = tables[SCORES]
    distribution = np.asarray(tables.get(DISTRIBUTION, {}).get("statistic", ()), dtype=np.float64)
    answers: defaultdict[str, Counter[str]] = defaultdict(Counter)
    if kept := tables.get("answers.parquet"):
        for group, kind in zip(kept["group"], kept["kind"], strict=True):
            answers[group][kind] += 1
    return Evidence(
        result=result,
        columns={name: np.array(item, dtype=np.float64) for name, item in scores.items() if name not in NAMES},
        doc_ids=(),
        groups=scores["group"],
        distribution=distribution[np.isfinite(distribution)],
        answers=answers,
    )
