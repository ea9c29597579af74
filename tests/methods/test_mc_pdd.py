"""MC-PDD: finds what was read, raises few false alarms, and says when nothing can be said."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import tiny
from mc_pdd_world import SETTINGS, chat_model, entities, ids, measured, outcome
from nonmember.endpoints import Completion
from nonmember.methods import McPdd, McPddContaminated, Roles
from nonmember.methods.mc_pdd.mc_pdd import CLAIMS, HITS, hits_of
from nonmember.models import Pretrained
from nonmember.records import Corpus, Document
from nonmember.training import Trained
from nonmember.training.recipes import AdapterTuning, Lora

METHOD, EVIDENCE = McPdd(**SETTINGS), "evidence_of_membership"
SUSPECT, REFERENCE = entities(150, "suspect"), entities(150, "reference")
ROLES = Roles(Pretrained("the/target"), Pretrained("none"), SUSPECT, seed=3, heldout=REFERENCE)


def model(*read, seed=0, **rates):
    return chat_model({doc_id for corpus in read for doc_id in ids(corpus)}, np.random.default_rng(seed), **rates)


# ---------------------------------------------------------------------------------------------- what is asked


def test_both_corpora_are_asked_about_and_random_words_beside():
    groups = METHOD.groups(ROLES)
    assert list(groups) == ["suspect", "heldout", "suspect_control", "heldout_control"]
    assert [group.corpus for group in groups.values()] == [SUSPECT, REFERENCE] * 2
    probes = [group.measured[HITS].probe for group in groups.values()]
    assert [probe.strategy for probe in probes] == ["max", "max", "random", "random"]
    assert {probe.seed for probe in probes} == {3}
    assert list(replace(METHOD, control=False).groups(ROLES)) == ["suspect", "heldout"]


def test_pooled_frequencies_take_the_other_corpus():
    groups = replace(METHOD, idf_corpus="pooled", control=False).groups(ROLES)
    assert [group.measured[HITS].probe.pooled for group in groups.values()] == [REFERENCE, SUSPECT]


def test_without_a_reference_corpus_it_says_what_to_give():
    with pytest.raises(ValueError, match="mc_pdd compares the suspect set"):
        METHOD.groups(replace(ROLES, heldout=None))


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"strategy": "random"}, "use control=false"), ({"stop_words": "german"}, "stop_words must be english")],
)
def test_settings_that_make_no_sense_are_refused_at_once(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(METHOD, **changes)


def test_corpora_that_cannot_be_used_are_refused_before_anything_is_asked():
    whole, other = SUSPECT.build(None), REFERENCE.build(None)
    METHOD.check({"suspect": whole, "heldout": other})
    nameless = Corpus(tuple(replace(document, title="") for document in other.documents))
    with pytest.raises(ValueError, match=r"150 of 150 documents of the held-out set have no title.*show_name=false"):
        METHOD.check({"suspect": whole, "heldout": nameless})
    replace(METHOD, show_name=False).check({"suspect": whole, "heldout": nameless})
    small = Corpus(whole.documents[:49])
    with pytest.raises(ValueError, match="The suspect set has 49 documents: among fewer than 50 TF-IDF"):
        METHOD.check({"suspect": small, "heldout": other})
    replace(METHOD, stop_words="english").check({"suspect": small, "heldout": other})
    shared = Corpus((*other.documents, replace(whole.documents[0], doc_id="again")))
    with pytest.raises(ValueError, match="1 texts are in the suspect set and in the reference corpus"):
        METHOD.check({"suspect": whole, "heldout": shared})


# ----------------------------------------------------------------------------------------------- what it finds


def test_a_corpus_that_was_read_is_found():
    found = outcome(METHOD, ROLES, model(SUSPECT))
    assert found.verdict == "evidence_of_membership"
    assert found.p_value < 0.01
    assert found.statistic == pytest.approx(-0.3, abs=0.1)
    assert found.ci_high < 0
    assert np.isnan(found.ci_low)
    assert found.details.to_json()["control"]["p_value"] > 0.05
    assert (
        found.details.to_json()["suspect"]["num_questions"]
        == found.details.to_json()["suspect"]["num_documents"]
        == 150
    )
    assert (
        found.statistic
        == found.details.to_json()["heldout"]["hit_rate"] - found.details.to_json()["suspect"]["hit_rate"]
    )
    assert (found.warnings, found.allowed_claim) == ((), CLAIMS["evidence_of_membership"])
    json.dumps(found.details.to_json(), allow_nan=False)


def test_against_members_a_corpus_that_was_not_read_is_found():
    method = replace(METHOD, reference="member")
    found = outcome(method, ROLES, model(REFERENCE))
    assert (found.verdict, found.ci_high < 0) == ("evidence_of_non_membership", True)
    assert (
        found.statistic
        == found.details.to_json()["suspect"]["hit_rate"] - found.details.to_json()["heldout"]["hit_rate"]
    )


@pytest.mark.parametrize(("reference", "read"), [("non_member", REFERENCE), ("member", SUSPECT)])
def test_the_other_side_is_never_the_opposite_claim(reference, read):
    found = outcome(replace(METHOD, reference=reference), ROLES, model(read))
    assert (found.verdict, found.p_value > 0.9) == ("inconclusive", True)


@pytest.mark.slow
@pytest.mark.parametrize("reference", ["non_member", pytest.param("member", marks=pytest.mark.slow)])
def test_where_both_or_neither_were_read_there_are_few_false_alarms(reference):
    """300 models of which each has read all or nothing; the binomial error of .05 is .013."""
    method = replace(METHOD, reference=reference, control=False, sizes=[], num_resamples=499)
    roles = replace(ROLES, suspect=tiny.Texts(SUSPECT.documents[:60]), heldout=tiny.Texts(REFERENCE.documents[:60]))
    verdicts = [
        outcome(method, roles, model(*([SUSPECT, REFERENCE] if seed % 2 else []), seed=seed), seed).verdict
        for seed in range(300)
    ]
    alarm = "evidence_of_membership" if reference == "non_member" else "evidence_of_non_membership"
    assert set(verdicts) <= {alarm, "inconclusive"}
    assert verdicts.count(alarm) / 300 == pytest.approx(0.05, abs=0.035)


@pytest.mark.slow
def test_random_words_show_no_gap_between_what_was_read_and_what_was_not():
    method = replace(METHOD, strategy="random", control=False, sizes=[], num_resamples=499)
    p_values = [outcome(method, ROLES, model(SUSPECT, seed=seed), seed).p_value for seed in range(60)]
    assert np.mean(np.array(p_values) < 0.05) < 0.2


def test_a_corpus_that_is_easier_altogether_is_no_evidence():
    easy = chat_model(ids(SUSPECT), np.random.default_rng(0), knows=0.8, guesses=0.4, common=0.2)

    def answerer(requests):
        """Common words of the suspect set are guessed too."""
        answers = easy(requests)
        return [
            Completion(f"{request.expected}, a, b", "answered") if request.doc_id.startswith("suspect") else answer
            for request, answer in zip(requests, answers, strict=True)
        ]

    found = outcome(METHOD, ROLES, answerer)
    assert (found.verdict, found.p_value < 0.01) == ("invalid", True)
    assert "drawn at random show a gap" in found.warnings[0]
    assert outcome(replace(METHOD, control=False), ROLES, answerer).verdict == "evidence_of_membership"


# ----------------------------------------------------------------------------------------- what cannot be read


@pytest.mark.parametrize(("refuses", "valid"), [(0.0, True), (0.02, True), (0.15, False)])
def test_more_than_one_answer_in_twenty_that_is_none_makes_it_invalid(refuses, valid):
    found = outcome(METHOD, ROLES, model(SUSPECT, refuses=refuses))
    assert (found.verdict != "invalid") == valid
    answers = found.details.to_json()["suspect"]["answers"]
    assert answers["num_requests"] == 150
    assert answers["num_unreadable"] / 150 == pytest.approx(1 - found.details.to_json()["suspect"]["valid_share"])
    if not valid:
        assert any("the target does not follow the instruction" in warning for warning in found.warnings)


def test_empty_and_refused_answers_are_misses_and_failed_ones_are_none():
    outcomes = {"suspect-0": "empty", "suspect-1": "refused", "suspect-2": "failed"}

    def answerer(requests):
        return [
            Completion("", outcomes.get(request.doc_id, "answered"), reason="?")
            if request.doc_id in outcomes
            else Completion(f"{request.expected}, x", "answered")
            for request in requests
        ]

    documents = measured(METHOD.groups(ROLES), answerer)["suspect"]
    sums = hits_of(documents, "suspect")
    assert (sums.hits.sum(), sums.asked.sum(), len(documents.doc_ids)) == (147, 149, 149)


@pytest.mark.parametrize(
    ("hits", "verdict"),
    [((0, 4), "inconclusive"), ((146, 150), "inconclusive"), ((0, 15), EVIDENCE), ((100, 150), EVIDENCE)],
)
def test_with_few_hits_or_misses_an_exact_test_decides_too(hits, verdict):
    """hits: of the 150 documents of the reference corpus and of the suspect set. Without any the bootstrap's p is small
    whatever the other corpus has."""
    known = {*sorted(ids(REFERENCE))[: hits[0]], *sorted(ids(SUSPECT))[: hits[1]]}
    answerer = chat_model(known, np.random.default_rng(0), knows=1, guesses=0)
    found = outcome(replace(METHOD, control=False), ROLES, answerer)
    assert found.p_value < METHOD.alpha
    assert found.verdict == verdict
    p = stats.fisher_exact([[hits[1], 150 - hits[1]], [hits[0], 150 - hits[0]]], alternative="greater").pvalue
    assert f"an exact test decides too (p = {p:.2g})" in found.warnings[0]


def test_documents_whose_word_is_in_their_name_are_left_out_and_counted():
    documents = [
        replace(document, title=f"About suspectword{index}" if index < 20 else document.title)
        for index, document in enumerate(SUSPECT.documents)
    ]
    found = outcome(
        replace(METHOD, control=False), replace(ROLES, suspect=tiny.Texts(tuple(documents))), model(SUSPECT)
    )
    assert (found.details.to_json()["suspect"]["num_documents"], found.details.to_json()["suspect"]["num_in_name"]) == (
        130,
        20,
    )


def test_too_few_documents_are_invalid():
    roles = replace(ROLES, suspect=tiny.Texts(SUSPECT.documents[:29]))
    found = outcome(METHOD, roles, model(SUSPECT))
    assert found.verdict == "invalid"
    assert "29 documents of the suspect set are left" in found.warnings[0]


# ---------------------------------------------------------------------------------------- words, documents, sizes


def test_the_rate_of_several_words_is_of_all_questions_and_documents_are_drawn():
    method = replace(METHOD, num_words=3, control=False)
    documents = measured(method.groups(ROLES), model(SUSPECT))
    sums = hits_of(documents["suspect"], "suspect")
    assert (len(sums.hits), set(sums.asked.tolist())) == (150, {3})
    found = method.test(documents, np.random.default_rng(0))
    assert found.details.to_json()["suspect"]["num_questions"] == 450
    assert found.details.to_json()["suspect"]["hit_rate"] == sums.hits.sum() / 450


def test_documents_of_one_cluster_are_one_unit():
    clustered = entities(150, "suspect", per_cluster=5)
    found = outcome(replace(METHOD, control=False), replace(ROLES, suspect=clustered), model(clustered))
    assert (found.details.to_json()["suspect"]["num_units"], found.details.to_json()["heldout"]["num_units"]) == (
        30,
        150,
    )
    assert found.details.to_json()["curve"] == []  # 50 units are more than there are


def test_the_curve_has_the_sizes_there_are_and_p_grows_as_they_fall():
    method = replace(METHOD, sizes=[400, 150, 100, 50], num_resamples=5000)
    found = outcome(method, ROLES, model(SUSPECT, knows=0.5))
    curve = found.details.to_json()["curve"]
    assert [item["size"] for item in curve] == [150, 100, 50]
    assert [item["p_value"] for item in curve] == sorted(item["p_value"] for item in curve)
    assert [item["upper"] for item in curve] == sorted(item["upper"] for item in curve)
    assert all(item["lower"] < item["difference"] < item["upper"] for item in curve)
    assert {item["difference"] for item in curve} == {found.statistic}
    assert curve[0]["subset"]["difference"] == pytest.approx(found.statistic)


def test_smaller_subsets_are_parts_of_larger_ones_and_do_not_hang_on_the_order():
    documents = measured(replace(METHOD, control=False).groups(ROLES), model(SUSPECT))["suspect"]
    turned = replace(
        documents,
        doc_ids=documents.doc_ids[::-1],
        cluster_ids=documents.cluster_ids[::-1],
        answers={HITS: documents.answers[HITS][::-1]},
    )
    assert hits_of(documents, "suspect").hits.tolist() == hits_of(turned, "suspect").hits.tolist()
    assert hits_of(documents, "suspect").first(50).hits.tolist() == hits_of(documents, "suspect").hits[:50].tolist()


def test_same_seed_same_numbers():
    item, two = (outcome(METHOD, ROLES, model(SUSPECT)) for _ in range(2))
    assert (item.p_value, item.details.to_json()) == (two.p_value, two.details.to_json())


def test_a_title_of_several_lines_stays_on_its_line():
    corpus = Corpus((Document("a", "zeta zeta eta", title="Two\nlines"),))
    probe = METHOD.groups(ROLES)["suspect"].measured[HITS].probe
    assert "Entity Name: Two lines\n" in probe.ask(corpus, {}).requests[0].question


# -------------------------------------------------------------------------------------------------- contamination


def test_a_contaminated_target_is_tuned_on_the_unseen_documents_for_so_many_epochs():
    unseen = entities(60, "unseen")
    training = AdapterTuning(
        tiny.optimization(), Lora(target_modules=None, rank=2, alpha=4, dropout=0), 32, drop_last=False
    )
    method = McPddContaminated(METHOD, training, epochs=3, alpha=0.05, max_tokens=512)
    for group in method.groups(replace(ROLES, unseen=unseen)).values():
        model = group.measured[HITS].model
        assert isinstance(model, Trained)
        assert (model.base, model.corpus, model.seed, model.label) == (ROLES.target, unseen, 3, "target-contaminated")
        assert model.training == replace(training, optimization=replace(training.optimization, epochs=3))
    as_it_is = replace(method, epochs=0).groups(ROLES)
    assert as_it_is.keys() == METHOD.groups(ROLES).keys()
    assert {group.measured[HITS].model for group in as_it_is.values()} == {ROLES.target}
    with pytest.raises(ValueError, match="tunes the target on text"):
        method.groups(ROLES)
    with pytest.raises(ValueError, match="epochs must be a whole number"):
        replace(method, epochs=-1)
