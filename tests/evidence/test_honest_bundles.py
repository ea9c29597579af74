"""Honest bundles of all methods: every check holds, and none of them holds a word of the documents."""

from __future__ import annotations

import zipfile

import pytest
from made_up_audits import bundled, checked, gathered
from made_up_questions import every

AUDITS = dict(every())


def test_there_are_enough():
    assert len(AUDITS) >= 40


@pytest.mark.parametrize("name", AUDITS)
def test_every_check_holds(name, tmp_path):
    audit = AUDITS[name]
    one = gathered(audit, tmp_path / "run")
    bundled([one], tmp_path / "bundle.zip")
    report = checked(tmp_path / "bundle.zip")
    assert not report.failures, "\n".join(map(str, report.lines))
    assert {"archive", "files", "question", "documents"} <= {line.what for line in report.lines if line.kind == "ok"}
    verdicts = [line for line in report.lines if line.what.endswith("verdict") and line.kind == "ok"]
    assert verdicts or audit.method.name == "blind", "no verdict passes in silence"
    with zipfile.ZipFile(tmp_path / "bundle.zip") as archive:
        content = b"".join(archive.read(entry) for entry in archive.infolist())
    for forbidden in (b"zqword", b"-doc-", b"-book-", str(tmp_path).encode()):
        assert forbidden not in content, forbidden
