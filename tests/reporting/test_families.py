"""Several sets under one target: which adjustment allows which claim, and what an invalid audit does to it."""

from __future__ import annotations

import made_up
import pytest

from nonmember.cli.table import show, table_of_families
from nonmember.reports.core.families import families
from nonmember.stats.multiplicity import benjamini_hochberg, holm


def audited(p, name, target="model", **more):
    verdict = "evidence_of_non_membership" if p < 0.05 else "inconclusive"
    return made_up.result(p_value=p, corpus=name, target=target, **{"verdict": verdict} | more)


PS = {"a": 0.001, "b": 0.02, "c": 0.03, "d": 0.2}


def test_each_claim_is_guarded_by_its_own_adjustment():
    (family,) = families(audited(p, name) for name, p in PS.items())
    assert [item.holm for item in family.sets.values()] == holm(list(PS.values()))
    assert [item.bh for item in family.sets.values()] == benjamini_hochberg(list(PS.values()))
    assert family.each == ["a"], ".02 times 3 is above .05"
    assert family.screened == ["a", "b", "c"]
    assert family.largest == 0.2
    assert not family.all_together


def test_all_together_needs_no_adjustment():
    (family,) = families(audited(p, name) for name, p in (("a", 0.04), ("b", 0.03)))
    assert family.all_together
    assert family.each == []


def test_an_invalid_audit_supports_no_claim_and_still_counts_as_a_test():
    results = [audited(0.01, "a"), audited(0.001, "b", verdict="invalid"), audited(0.02, "c")]
    (family,) = families(results)
    assert family.sets["b"].p == 1
    assert family.sets["a"].holm == pytest.approx(0.03), "three tests, not two"
    assert family.each == ["a", "c"]
    assert not family.all_together


def test_a_small_p_without_the_verdict_claims_nothing():
    """A gate may have failed."""
    (family,) = families([audited(0.001, "a", verdict="inconclusive"), audited(0.001, "b")])
    assert family.each == family.screened == ["b"]
    assert not family.all_together


def test_of_several_audits_of_a_set_the_worst_counts():
    results = [audited(0.001, "a", seed=1), audited(0.3, "a", seed=2), audited(0.01, "b")]
    (family,) = families(results)
    assert family.sets["a"].p == 0.3
    assert family.each == ["b"]
    assert len(family.sets["a"].results) == 2


def test_a_family_is_one_target_method_and_reference_with_several_sets():
    results = [
        audited(0.01, "a"),
        audited(0.01, "b"),
        audited(0.01, "a", "other"),
        audited(0.01, "b", method="dose"),
        audited(0.01, "a", method="paired_t", verdict="score_only"),
        audited(0.01, "b", method="paired_t", verdict="score_only"),
        audited(0.01, "a", reference="small"),
        audited(0.01, "b", reference="small"),
    ]
    found = families(results)
    assert [(item.method, item.target, item.reference) for item in found] == [
        ("prism", "model", "reference"),
        ("prism", "model", "small"),
    ]
    assert [item.name(found) for item in found] == ["model, reference reference", "model, reference small"]
    assert found[0].name(found[:1]) == "model"


def test_an_undefined_p_is_no_evidence():
    (family,) = families([audited(0.01, "a"), made_up.result(corpus="b", target="model", p_value=None)])
    assert family.sets["b"].p == 1


@pytest.mark.parametrize(("sets", "together", "told"), [(4, False, False), (4, True, True), (1, True, False)])
def test_the_closing_table_tells_it_where_asked(capsys, sets, together, told):
    show([audited(p, name) for name, p in [*PS.items()][:sets]], together=together)
    assert ("It supports no claim about any one set." in capsys.readouterr().out) == told


def test_sets_are_told_by_name_as_far_as_there_is_room():
    results = [audited(p, f"set{number}") for number, p in enumerate([1e-6] * 6 + [0.9])]
    (row,) = zip(*(column.cells for column in table_of_families(families(results)).columns), strict=True)
    assert row == (
        "model",
        "7",
        "6: set0, set1, set2, set3 and 2 more",
        "no (p 0.9)",
        "6: set0, set1, set2, set3 and 2 more",
    )
