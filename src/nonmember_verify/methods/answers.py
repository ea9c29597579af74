"""Answers of models about documents, without their text: what each was judged to be."""

from __future__ import annotations

import math

from nonmember_verify.bundle import Audit, table_of

PRECONDITION = "A precondition failed; nothing may be concluded."

Answers = dict[str, list[tuple[str, bool]]]


def answers_of(audit: Audit, group: str, measurement: str) -> Answers:
    """Scored document -> kind of each of its answers, and whether it is right."""
    if not audit.groups[group].documents:
        return {}
    table = table_of(audit.files, f"{audit.folder}/answers.parquet")
    found: Answers = {name: [] for name in audit.groups[group].documents}
    rows = zip(table["group"], table["document"], table["measurement"], table["kind"], table["correct"], strict=True)
    for of_group, document, of_measurement, kind, correct in rows:
        if of_group == group and of_measurement == measurement and document in found:
            found[document].append((kind, bool(correct)))
    return found


def valid_share(answers: Answers) -> float:
    kinds = [kind for ones in answers.values() for kind, _ in ones]
    return sum(kind in ("right", "wrong") for kind in kinds) / len(kinds) if kinds else math.nan
