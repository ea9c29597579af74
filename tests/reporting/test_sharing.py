"""What many results have alike is kept once, and comes back as it was."""

from __future__ import annotations

from nonmember.reports.render.sharing import shared_parts


def test_what_is_inside_a_shared_part_is_not_shared_by_itself():
    outer = {"inner": {"name": "x" * 50}, "other": ["y" * 50]}
    assert shared_parts([outer, outer])[1] == [outer]
