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


@pytest.mark.parametrize(
    ("method", "settings"),
    [("decop", {}), ("mc_pdd", {"reference": "member"}), ("name_cloze", {}), ("prefix_completion", {})],
)
def test_every_method_with_a_claim_makes_families_and_a_score_alone_does_not(method, settings):
    def of(verdict):
        return [audited(0.01, name, method=method, settings=settings, verdict=verdict) for name in "ab"]

    (family,) = families(of("evidence_of_membership"))
    assert (family.method, family.each) == (method, ["a", "b"])
    assert families(of("score_only")) == []


def test_an_undefined_p_is_no_evidence():
    (family,) = families([audited(0.01, "a"), made_up.result(corpus="b", target="model", p_value=None)])
    assert family.sets["b"].p == 1


@pytest.mark.parametrize(("method", "together", "told"), [("prism", False, False), ("prism", True, True)])
def test_the_closing_table_tells_it_where_asked(capsys, method, together, told):
    show([audited(p, name, method=method) for name, p in PS.items()], together=together)
    said = capsys.readouterr().out
    assert ("several sets together" in said) == told
    assert ("It supports no claim about any one set." in said) == told


def test_one_set_is_no_family(capsys):
    show([audited(0.01, "a")], together=True)
    assert "together" not in capsys.readouterr().out


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
