"""`nonmember reproduce`: a paper's sweeps, then its report."""

from __future__ import annotations

import subprocess

import pytest

from nonmember.cli import reproduce


@pytest.fixture
def started(monkeypatch):
    """Commands that were started; the report ends with an error."""
    commands: list[list[str]] = []

    def run(command, **_):
        commands.append(command[3:])
        return subprocess.CompletedProcess(command, 1 if "report" in command else 0)

    monkeypatch.setattr(reproduce.subprocess, "run", run)
    return commands


def test_the_sweeps_are_run_and_the_report_written(nonmember, started):
    said = nonmember("reproduce", "order", "logger=none")
    assert said.status == 1, "that of the report"
    sweeps = ["order_duplication", "order_null", "order_shards", "order_chunks"]
    of_sweeps = [["audit", "-m", "--config-name", sweep, "logger=none"] for sweep in sweeps]
    assert sorted(started[:-1]) == sorted(of_sweeps)
    assert started[-1] == ["report", "report=order"]


def test_a_dry_run_writes_no_report(nonmember, started):
    assert nonmember("reproduce", "order", "dry_run=true").status == 0
    assert all("dry_run=true" in command for command in started)


def test_a_word_that_is_no_setting_is_refused(nonmember, started):
    assert "Settings must be written key=value; got fsd." in nonmember("reproduce", "order", "fsd").err
