"""What many results have alike is kept once, and comes back as it was."""

from __future__ import annotations

import json

import made_up
import pytest

from nonmember.reports.render.page import full
from nonmember.reports.render.sharing import SHARED, shared_parts
from nonmember.results.load import load_runs


def restored(value, entries):
    """As page.js does."""
    if isinstance(value, dict):
        if SHARED in value:
            return entries[value[SHARED]]
        return {name: restored(part, entries) for name, part in value.items()}
    return [restored(part, entries) for part in value] if isinstance(value, list) else value


@pytest.mark.slow
def test_results_come_back_as_they_were_and_take_less(tmp_path):
    values = [full(run) for run in load_runs([made_up.write(tmp_path, *made_up.everything())]).runs]
    packed, entries = shared_parts(values)
    for index, entry in enumerate(entries):  # each refers to earlier ones alone
        entries[index] = restored(entry, entries[:index])
    before = json.loads(json.dumps(values))
    assert restored(packed, entries) == before
    assert len(json.dumps(shared_parts(values))) < 0.6 * len(json.dumps(before))


def test_what_is_inside_a_shared_part_is_not_shared_by_itself():
    outer = {"inner": {"name": "x" * 50}, "other": ["y" * 50]}
    assert shared_parts([outer, outer])[1] == [outer]
