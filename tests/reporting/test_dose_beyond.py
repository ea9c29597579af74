"""The second report of the dose study: parts of a set, other text beside, changed targets."""

from __future__ import annotations

import dataclasses

from made_up_dose import audit
from reading import block, built, text

from nonmember.reports.core.grid import FALSE


def counted(found, row, column):
    return text(found, row, column).split(" \\[")[0].split(" [")[0]


def part(dose, share, *regions, **more):
    """regions: dose, low, high, whether it fits."""
    item = audit(dose, share=share, sweep="dose_shares", **more)
    told = [
        {"dose": d, "share": (low + high) / 2, "low": low, "high": high, "log_likelihood": 0.0, "compatible": fits}
        for d, low, high, fits in regions
    ]
    details = item.statistics.details | {"partial_use": told}
    return dataclasses.replace(item, statistics=dataclasses.replace(item.statistics, details=details))


def test_a_part_is_told_where_no_fitting_number_of_readings_allows_the_whole(dose_beyond_paper):
    results = [
        part(4, 0.5, (2, 0.9, 1.0, False), (4, 0.4, 0.6, True), estimate=1.9, low=1.5, high=2.1, verdict="found"),
        part(4, 0.5, (2, 0.9, 1.0, True), (4, 0.55, 0.6, True), estimate=1.0, low=0.5, high=1.5),
        part(0, 1.0, (4, 0.0, 0.1, True), verdict="cleared"),
        part(0, 1.0, (4, 0.1, 0.2, True), verdict="found"),
    ]
    found = block(built(dose_beyond_paper, *results)["shares"], "shares")
    assert [row.name for row in found.rows] == ["nothing", "50% of it 4x"]
    half = {column: counted(found, "50% of it 4x", column) for column in found.columns}
    assert half == {
        "audits": "2",
        "not read": "0 of 2",
        "read": "1 of 2",
        "invalid": "0",
        "readings per document": "2.00",
        "median estimate": "1.45",
        "interval holds them": "1 of 2",
        "told to be a part": "1 of 2",
        "its share told": "1 of 2",
    }
    assert counted(found, "nothing", "told to be a part") == f"1{FALSE} of 2"
    assert counted(found, "nothing", "read") == f"1{FALSE} of 2"
    assert text(found, "nothing", "its share told") == "–"


def test_a_changed_target_had_read_what_the_unchanged_one_has(dose_beyond_paper):
    """Unlearning counts as further reading and near duplicates as none, in the recipe."""
    more = {"sweep": "dose_attacks_more", "run": 304}
    results = [
        audit(4, attack="none", place=1, **more),
        audit(0, attack="none", place=5, **more),
        audit(5, attack="unlearned", place=1, verdict="cleared", low=3, high=4.5, **more),
        audit(1, attack="unlearned", place=5, verdict="cleared", **more),
        audit(0, attack="near_duplicates", place=1, verdict="found", **more),
        audit(4, attack="read_reference", place=1, run=304, sweep="dose_read_reference"),
    ]
    found = block(built(dose_beyond_paper, *results)["attacks"], "changes")
    assert [row.name for row in found.rows] == [
        "no change, nothing",
        "no change, 4x",
        "near duplicates read (a fifth of the words are others), 4x",
        "unlearned (distilled from the base, on the sets), nothing",
        "unlearned (distilled from the base, on the sets), 4x",
        "a reference that has read, 4x",
    ]
    assert counted(found, found.rows[4].name, "not read") == f"1{FALSE} of 1"
    assert counted(found, found.rows[4].name, "interval holds it") == "1 of 1"
    assert counted(found, found.rows[3].name, "not read") == "1 of 1"


def test_what_would_be_cleared_were_weights_not_looked_at(dose_beyond_paper):
    def refused(p_value, **gates):
        made = audit(4, attack="slower", verdict="invalid", sweep="dose_attacks_more", run=304)
        told = {name: {"value": 1.0, "bound": 0.5, "upper": True, "passed": passed} for name, passed in gates.items()}
        details = made.statistics.details | {"gates": told, "p_value_of_exceeded": 0.9}
        return dataclasses.replace(
            made, statistics=dataclasses.replace(made.statistics, details=details, p_value=p_value)
        )

    results = [refused(0.01, weights=False, fit=True), refused(0.01, weights=False, fit=False), refused(0.2, fit=True)]
    found = block(built(dose_beyond_paper, *results)["attacks"], "changes")
    assert counted(found, "half the learning rate, 4x", "not read, but for weights") == f"1{FALSE} of 3"
    assert counted(found, "half the learning rate, 4x", "invalid") == "3"


def test_rows_by_the_text_beside(dose_beyond_paper):
    results = [audit(1, sweep="dose_dilution", beside=item, verdict="cleared") for item in ("more", "little")]
    found = block(built(dose_beyond_paper, *results)["dilution"], "dilution")
    assert [row.name for row in found.rows] == ["1/20 of what is read, 1x", "1/100, 1x"]
    assert counted(found, "1/100, 1x", "not read") == f"1{FALSE} of 1"


def test_what_was_read_of_paraphrases_is_what_fellows_read_of_the_set(dose_beyond_paper):
    more = {"sweep": "dose_paraphrases", "run": 310, "place": 4}
    results = [
        audit(4, attack="none", verdict="found", **more),
        audit(0, attack="paraphrases", verdict="cleared", **more),
    ]
    found = block(built(dose_beyond_paper, *results)["paraphrases"], "paraphrases")
    assert [row.name for row in found.rows] == ["the passages, 4x", "paraphrases of them, 4x"]
    assert counted(found, "paraphrases of them, 4x", "not read") == f"1{FALSE} of 1"
