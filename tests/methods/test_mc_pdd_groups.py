"""MC-PDD and its rivals over groups of documents and over single ones."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import tiny
from mc_pdd_world import SETTINGS, chat_model, entities, ids, measured
from nonmember.methods import Roles, Scored
from nonmember.methods.mc_pdd.groups import McPddGroups
from nonmember.methods.mc_pdd.mc_pdd import HITS, McPdd
from nonmember.models import Pretrained
from nonmember.scores import Loss, ReferenceRatio, Zlib
from nonmember.stats.classification import roc_auc

MEMBERS, OTHERS = entities(120, "members"), entities(100, "others")
ROLES = Roles(Pretrained("the/target"), Pretrained("the/reference"), MEMBERS, seed=3, heldout=OTHERS)
METHOD = McPddGroups(
    mc_pdd=McPdd(**SETTINGS | {"control": False, "reference": "member", "sizes": []}),
    scores=[Loss(), Zlib(), ReferenceRatio()],
    group_size=25,
    num_reference=40,
    num_repetitions=4,
    num_folds=2,
    inverse_penalty=0.1,
    num_blind_resamples=20,
    alpha=0.05,
    max_tokens=64,
)


def documents(method=METHOD, knows=0.8, loss_gap=0.0, seed=0):
    """Hits of a chat model that has read the members, and losses of so much difference, in standard deviations."""
    rng = np.random.default_rng(seed)
    found = measured(method.groups(ROLES), chat_model(ids(MEMBERS), rng, knows=knows))
    for name, group in found.items():
        shift = loss_gap if name == "suspect" else 0.0
        noise = {score.name: rng.normal(shift, size=len(group.doc_ids)) for score in METHOD.scores}
        found[name] = replace(group, values={**group.values, **noise})
    return found


def outcome(method=METHOD, **settings):
    return method.test(documents(method, **settings), np.random.default_rng(1))


def test_every_document_is_asked_about_and_scored():
    groups = METHOD.groups(ROLES)
    assert list(groups) == ["suspect", "heldout"]
    for group in groups.values():
        assert list(group.measured) == [HITS, "loss", "zlib", "ref_ratio"]
        assert isinstance(item := group.measured["ref_ratio"], Scored)
        assert (item.model, item.reference, item.corpus) == (ROLES.target, ROLES.reference, group.corpus)


def test_groups_are_disjoint_and_all_scores_are_over_the_same():
    found = outcome()
    assert (found.details.to_json()["num_member_groups"], found.details.to_json()["num_nonmember_groups"]) == (
        3,
        4,
    )  # (120 - 40) / 25, 100 / 25
    assert list(found.details.to_json()["scores"]) == ["mc_pdd", "loss", "zlib", "ref_ratio"]
    json.dumps(found.details.to_json(), allow_nan=False)


def test_groups_tell_more_than_documents():
    """Hits of .8 against .3: over documents an AUC of .75, over groups of 25 nearly 1."""
    found = outcome()
    scores = found.details.to_json()["scores"]
    assert scores["mc_pdd"]["auc"] == pytest.approx(0.75, abs=0.07)
    assert scores["mc_pdd"]["group_auc"]["mean"] == found.statistic > 0.95
    assert found.details.to_json()["decision_accuracy"]["mean"] > 0.85
    assert (found.verdict, np.isnan(found.p_value)) == ("score_only", True)


@pytest.mark.slow
def test_a_score_that_knows_nothing_is_at_chance_and_one_that_knows_is_not():
    seen = [outcome(seed=seed).details.to_json()["scores"]["loss"] for seed in range(8)]
    assert np.mean([item["auc"] for item in seen]) == pytest.approx(0.5, abs=0.06)
    assert np.mean([item["group_auc"]["mean"] for item in seen]) == pytest.approx(0.5, abs=0.25)
    assert outcome(loss_gap=2.0).details.to_json()["scores"]["loss"]["auc"] == pytest.approx(0.92, abs=0.05)


def test_the_document_level_auc_is_that_of_the_hits():
    found = documents()
    values = np.concatenate([found[name].values[HITS] for name in ("suspect", "heldout")])
    labels = np.repeat([1, 0], [120, 100])
    assert METHOD.test(found, np.random.default_rng(0)).details.to_json()["scores"]["mc_pdd"]["auc"] == roc_auc(
        values, labels
    )


@pytest.mark.slow
@pytest.mark.parametrize("reference", ["member", "non_member"])
def test_decisions_of_both_directions(reference):
    method = replace(METHOD, mc_pdd=replace(METHOD.mc_pdd, reference=reference), num_reference=25)
    found = outcome(method, knows=0.95)
    assert found.details.to_json()["decision_accuracy"]["mean"] > 0.85
    blank = outcome(method, knows=0.3)  # both are unread: never found to differ but by chance
    kinds = {"member": "num_member_groups", "non_member": "num_nonmember_groups"}
    share = blank.details.to_json()[kinds[reference]] / sum(blank.details.to_json()[kind] for kind in kinds.values())
    assert blank.details.to_json()["decision_accuracy"]["mean"] == pytest.approx(share, abs=0.15)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_groups():
    assert outcome().details.to_json() == outcome().details.to_json()


def test_too_few_documents_and_settings_that_make_no_sense_are_refused():
    corpora = {"suspect": MEMBERS.build(None), "heldout": OTHERS.build(None)}
    METHOD.check(corpora)
    with pytest.raises(ValueError, match=r"suspect set needs 165 documents.*there are 120"):
        replace(METHOD, group_size=125).check(corpora)
    with pytest.raises(ValueError, match="group_size must be a whole number"):
        replace(METHOD, group_size=0)
    with pytest.raises(ValueError, match="control=false"):
        replace(METHOD, mc_pdd=replace(METHOD.mc_pdd, control=True))
    left = documents()
    left["heldout"] = replace(left["heldout"], doc_ids=left["heldout"].doc_ids[:20])
    with pytest.raises(ValueError, match="held-out set needs 25"):
        METHOD.test(left, np.random.default_rng(0))


def test_texts_that_differ_are_said():
    """The two sets have words of their own, which a classifier of words tells apart only if they repeat."""
    other = tiny.Texts(tuple(replace(item, text=f"{item.text} always") for item in OTHERS.documents))
    roles = replace(ROLES, heldout=other)
    found = measured(METHOD.groups(roles), chat_model(ids(MEMBERS), np.random.default_rng(0)))
    for name, group in found.items():
        found[name] = replace(group, values=group.values | {score.name: group.values[HITS] for score in METHOD.scores})
    outcome = METHOD.test(found, np.random.default_rng(0))
    assert outcome.details.to_json()["auroc_blind"] > 0.9
    assert any("Text alone tells the two sets apart" in warning for warning in outcome.warnings)
