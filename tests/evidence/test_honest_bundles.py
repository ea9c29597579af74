"""Honest bundles of all methods: every check holds, and none of them holds a word of the documents."""

from __future__ import annotations

import json
import zipfile

import pytest
from made_up_audits import bundled, checked, gathered
from made_up_questions import every

from marks import slow

AUDITS = dict(every())
WITHOUT_STATISTIC = {
    "blind", "decop, calibrated", "decop of works without a title", "kds of few",
    "prism by a ladder that finds no rate", "prism of the reference itself",
}  # fmt: skip
# Each verdict of each method, by the audit that reaches it: a bundle of an audit that asked nothing shows nothing.
VERDICTS = {
    "prism that rules out": "evidence_of_non_membership",
    "prism with gates that rules out": "evidence_of_non_membership",
    "prism with too small a Delta": "inconclusive",
    "prism of too few documents": "invalid",
    "prism of many that cannot be scored": "invalid",
    "prism by a ladder that finds no rate": "invalid",
    "prism of the reference itself": "invalid",
    "clearance that rules out half": "evidence_of_non_membership",
    "clearance with shams": "invalid",
    "dose": "evidence_of_non_membership",
    "dose of a reader": "inconclusive",
    "dose of a heavy reader": "evidence_of_membership",
    "dose of a heavy reader without related text": "score_only",
    "order": "evidence_of_membership",
    "order with control": "invalid",
    "pacost": "evidence_of_membership",
    "pacost of few documents": "invalid",
    "mc_pdd": "evidence_of_membership",
    "mc_pdd with a control that fails": "invalid",
    "difference in differences": "evidence_of_membership",
    "decop": "evidence_of_membership",
    "decop, calibrated": "evidence_of_membership",
    "decop of works without a title": "invalid",
    "name cloze": "evidence_of_membership",
    "name cloze alone": "score_only",
    "prefix completion": "evidence_of_membership",
    "prefix completion alone": "score_only",
    "kds": "score_only",
    "kds of few": "invalid",
}
# Looked at in test_lies.py too, before they are doctored; and what of others is in rows beside them.
ELSEWHERE = {
    "prism", "prism of a reader", "prism with gates", "paired t",
    "clearance with one seed",  # clearance that rules out half
    "dose with estimated shape",  # dose of other features
}  # fmt: skip


def test_there_are_enough():
    assert len(AUDITS) >= 40
    assert AUDITS.keys() >= ELSEWHERE
    assert VERDICTS.keys() | WITHOUT_STATISTIC <= AUDITS.keys()


@pytest.mark.parametrize("name", [slow(name) if name in ELSEWHERE else name for name in AUDITS])
def test_every_check_holds(name, tmp_path):
    audit = AUDITS[name]
    one = gathered(audit, tmp_path / "run")
    files = bundled([one], tmp_path / "bundle.zip")
    report = checked(tmp_path / "bundle.zip")
    assert not report.failures, "\n".join(map(str, report.lines))
    held = {line.what for line in report.lines if line.kind == "ok"}
    assert {"archive", "files", "question", "documents"} <= held
    assert "verdict" in held or audit.method.name == "blind", "no verdict passes in silence"
    assert any(what.startswith("statistic") for what in held) == (name not in WITHOUT_STATISTIC)
    decision = json.loads(files["audits/000/result.json"])["verdict"]["decision"]
    assert decision == VERDICTS.get(name, decision)
    with zipfile.ZipFile(tmp_path / "bundle.zip") as archive:
        content = b"".join(archive.read(entry) for entry in archive.infolist())
    for forbidden in (b"zqword", b"-doc-", b"-book-", str(tmp_path).encode()):
        assert forbidden not in content, forbidden
