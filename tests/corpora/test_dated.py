"""Documents by the latest year that they name."""

from __future__ import annotations

import pytest

from nonmember.corpora import Dated

TEXTS = ("Founded in 1950 and rebuilt in 1999.", "Opened in 2008.", "No date, 12345 of them.", "From 1990 to 2021.")


def test_by_the_latest_year(given, build):
    old = build(Dated(given(*TEXTS), last=2000))
    assert [d.doc_id for d in old.documents] == ["d0"], "1990 to 2021 is of 2021"
    assert old.dropped == {"other_years": 2, "no_year": 1}
    assert [d.doc_id for d in build(Dated(given(*TEXTS), first=2005)).documents] == ["d1", "d3"]
    assert [d.doc_id for d in build(Dated(given(*TEXTS), 2008, 2008)).documents] == ["d1"]


def test_says_what_is_wrong(given, build):
    with pytest.raises(ValueError, match="from 2050 to 2099 among 4; widen"):
        build(Dated(given(*TEXTS), first=2050))
    with pytest.raises(ValueError, match="no earlier than `first`"):
        Dated(given("x"), 2005, 2000)
