"""FSD: the sign of the deviation, what is told about it, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn import metrics

import tiny
from made_up_methods import FSD
from nonmember.audits.keys import audit_keys
from nonmember.audits.question import Audit
from nonmember.audits.run import run_audit
from nonmember.corpora import Viewed
from nonmember.methods import Roles, ScoredDocuments
from nonmember.methods.fsd import column, deviation, overlap
from nonmember.models import Pretrained
from nonmember.records import Corpus, Document, TokenTable
from nonmember.scores import Lowercase, MinK, Perplexity, ReferenceDifference, ScoreInputs
from nonmember.training import Trained

TUNING = tiny.pretraining()
UNREAD = tiny.texts(*tiny.random_texts(34, seed=3), name="unread")
UNSEEN = tiny.texts(*tiny.random_texts(16, seed=4), name="unseen")
ROLES = Roles(Pretrained("the/target"), Pretrained("the/reference"), tiny.SUSPECT, 9, UNREAD, UNSEEN)


def table_of(*perplexities: float) -> TokenTable:
    """One scored token per document, so probable that this is the perplexity."""
    n = len(perplexities)
    nothing = np.zeros(n, dtype=np.float32)
    log_prob = -np.log(np.array(perplexities, dtype=np.float64)).astype(np.float32)
    ids = np.ones(n, dtype=np.int32)
    return TokenTable(tuple(f"d{i}" for i in range(n)), np.arange(n + 1), ids, ids, log_prob, nothing, nothing)


def test_the_sign_is_the_papers_turned_member_high():
    """Methods, test vector 7: the paper's deviation is .5 and 11, and the second is the non-member."""
    base, tuned = (Perplexity()(ScoreInputs(table_of(*given))).values for given in ((12, 20), (11.5, 9)))
    np.testing.assert_allclose(deviation(base, tuned), [-0.5, -11], rtol=1e-6)


def test_the_models_and_what_is_measured_under_each():
    groups = FSD.groups(ROLES)
    assert list(groups) == ["suspect", "heldout", "unseen"]
    assert groups["unseen"].corpus == UNSEEN
    assert list(groups["unseen"].measured) == ["target/loss", "tuned/loss"]
    tuned = Trained(ROLES.target, TUNING, UNSEEN, seed=9)
    for name, corpus in (("suspect", tiny.SUSPECT), ("heldout", UNREAD)):
        measured = groups[name].measured
        assert list(measured) == ["target/perplexity", "target/mink(0.2)", "tuned/perplexity", "tuned/mink(0.2)"]
        assert [(item.role, item.model) for item in measured.values()] == [
            ("target", ROLES.target),
            ("target", ROLES.target),
            ("tuned", tuned),
            ("tuned", tuned),
        ]
        assert all(item.corpus == groups[name].corpus == corpus for item in measured.values())
    assert FSD.score_name == "perplexity"


def test_a_view_is_of_all_documents_also_of_those_tuned_on():
    groups = replace(FSD, view="years_deleted").groups(ROLES)
    corpora = (tiny.SUSPECT, UNREAD, UNSEEN)
    assert [group.corpus for group in groups.values()] == [Viewed(corpus, "years_deleted") for corpus in corpora]
    assert groups["suspect"].measured["tuned/perplexity"].model.corpus == Viewed(UNSEEN, "years_deleted")


def scored(group: str, perplexities, tuned, *, texts=None, clusters=None) -> ScoredDocuments:
    """Perplexities under the two models; Min-K% says the same."""
    n = len(perplexities)
    values = {
        column(role, score): -np.asarray(given, dtype=float)
        for role, given in (("target", perplexities), ("tuned", tuned))
        for score in FSD.scores
    }
    ids = tuple(f"{group}{i}" for i in range(n))
    texts = texts or tiny.random_texts(n, seed=len(group))
    return ScoredDocuments(ids, values, tuple(clusters or [""] * n), tuple(texts))


def unseen_documents(cluster: str = "", nll: float = 2.0) -> ScoredDocuments:
    """One, which tuning brought from 3 nats per token to `nll`."""
    values = {"target/loss": np.array([-3.0]), "tuned/loss": np.array([-nll])}
    return ScoredDocuments(("u0",), values, (cluster,), ("tuned on",))


def documents(n: int = 60, gain: float = 2.0, **more) -> dict[str, ScoredDocuments]:
    """Perplexities alike in both sets; tuning lowers that of the non-members by `gain` and noise."""
    rng = np.random.default_rng(0)
    member, other = rng.normal(20, 2, size=(2, n))
    return {
        "suspect": scored("suspect", member, member - rng.normal(0, 1, n), **more),
        "heldout": scored("heldout", other, other - rng.normal(gain, 1, n)),
        "unseen": unseen_documents(),
    }


def test(given: dict[str, ScoredDocuments], **changes):
    return replace(FSD, **changes).test(given, np.random.default_rng(1))


test.__test__ = False  # type: ignore[attr-defined]


def test_what_it_says():
    given = documents()
    outcome = test(given)
    truth = [1] * 60 + [0] * 60
    base, tuned = (
        np.concatenate([given[name].values[f"{role}/perplexity"] for name in ("suspect", "heldout")])
        for role in ("target", "tuned")
    )
    assert outcome.statistic == pytest.approx(metrics.roc_auc_score(truth, base - tuned), abs=1e-12)
    assert 0.85 < outcome.statistic < 1
    assert outcome.ci_low < outcome.statistic < outcome.ci_high
    assert (outcome.verdict, outcome.warnings) == ("score_only", ())
    assert np.isnan(outcome.p_value)
    assert "None about a single document" in outcome.allowed_claim
    assert len(outcome.distribution) == 200

    told = outcome.details.to_json()
    json.dumps(told, allow_nan=False)
    assert list(told["scores"]) == ["perplexity", "mink(0.2)"]
    of_ppl = told["scores"]["perplexity"]
    assert of_ppl["base"]["auc"] == pytest.approx(metrics.roc_auc_score(truth, base), abs=1e-12) == told["auroc_base"]
    assert of_ppl["fsd"]["auc"] == told["auroc"] == outcome.statistic
    assert (of_ppl["fsd"]["auc_low"], of_ppl["fsd"]["auc_high"]) == (outcome.ci_low, outcome.ci_high)
    assert of_ppl["gain"]["auc"] == pytest.approx(of_ppl["fsd"]["auc"] - of_ppl["base"]["auc"])
    assert 0 < of_ppl["gain"]["auc_low"] < of_ppl["gain"]["auc_high"]
    for kind in ("base", "fsd"):
        assert of_ppl[kind].keys() >= {"tpr_at_5pct_fpr", "tpr_below_5pct_fpr", "balanced_accuracy", "threshold"}
        assert of_ppl[kind]["best_balanced_accuracy"] >= 0.5
    assert of_ppl["fsd"]["balanced_accuracy"] == pytest.approx(0.85, abs=0.12)
    assert 15 < told["num_validation"] < 60
    assert told["blind"].keys() == {"words", "characters", "years"}
    assert told["auroc_blind"] == max(kind["auc"] for kind in told["blind"].values())
    assert (told["num_members"], told["num_nonmembers"], told["num_unseen"], told["num_clusters"]) == (60, 60, 1, 120)
    assert told["num_leaked"] == {"members": 0, "nonmembers": 0}
    assert told["texts"]["members"]["mean_year"] is None


@pytest.mark.slow
def test_the_split_for_the_threshold_is_by_cluster_and_the_same_every_time():
    """Documents of one cluster are on one side; a further document moves no other."""
    clusters = [f"c{i // 4}" for i in range(60)]
    item = test(documents(clusters=clusters))
    assert item.details.to_json()["num_clusters"] == 15 + 60
    assert test(documents(clusters=clusters)).details.to_json() == item.details.to_json()
    assert (
        test(documents(clusters=clusters), num_resamples=201).details.to_json()["num_validation"]
        == item.details.to_json()["num_validation"]
    )


def test_too_few_that_could_be_scored_is_invalid():
    outcome = test(documents(29))
    assert outcome.verdict == "invalid"
    assert "29 documents of one set are left; the comparison needs at least 30." in outcome.warnings
    assert outcome.allowed_claim == "A precondition failed; nothing may be concluded."


@pytest.mark.slow
@pytest.mark.parametrize(("nll", "warns"), [(2.99, False), (3.0, True), (3.1, True)])
def test_tuning_that_learns_nothing_is_told(nll, warns):
    outcome = test(documents() | {"unseen": unseen_documents(nll=nll)})
    assert outcome.details.to_json()["nll_of_unseen"] == {"base": 3.0, "tuned": nll}
    assert (
        any("did not lower the loss on the documents tuned on (3.000 to" in item for item in outcome.warnings) == warns
    )


@pytest.mark.slow
def test_sets_that_differ_in_words_dates_or_length_are_told_apart_without_a_model():
    texts = [f"{text} in 2024" for text in tiny.random_texts(60, seed=7, words=40)]
    outcome = test(documents(texts=texts))
    told = outcome.details.to_json()
    assert told["auroc_blind"] > 0.9
    assert told["length_auc"] > 0.9
    assert told["texts"]["members"]["mean_year"] == 2024
    assert (told["texts"]["members"]["share_with_a_year"], told["texts"]["nonmembers"]["share_with_a_year"]) == (1, 0)
    apart, years, length = outcome.warnings
    assert "no AUC here can be read as membership" in apart
    assert years.startswith("The two sets differ in the years they name: AUC")
    assert length.startswith("The two sets differ in length (")


# Documents tuned on and tested ------------------------------------------------------------------------------


def corpora(**changed) -> dict[str, Corpus]:
    usual = {"suspect": tiny.SUSPECT, "heldout": UNREAD, "unseen": UNSEEN}
    return {name: Corpus(spec.documents) for name, spec in usual.items()} | changed


def test_overlap_counts_texts_and_further_parts_of_clusters():
    unseen = [("a text", "c1"), ("another", "")]
    tested = [("a text", "c9"), ("third", "c1"), ("fourth", ""), ("another", "c1"), ("fifth", "c2")]
    assert overlap(tested, unseen) == (2, 1)


@pytest.mark.parametrize("group", ["suspect", "heldout"])
@pytest.mark.parametrize(
    ("document", "told"),
    [
        (Document("x", UNSEEN.documents[0].text), r"1 of 1 .* \(1 with the same text, 0 more"),
        (Document("x", "another part", "c"), r"1 of 1 .* \(0 with the same text, 1 more from the same article"),
    ],
)
def test_documents_tuned_on_are_not_tested_unless_asked_and_then_counted(group, document, told):
    unseen = Corpus((*UNSEEN.documents, Document("u", "a part", "c")))
    given = corpora(unseen=unseen, **{group: Corpus((document,))})
    FSD.check(corpora())
    with pytest.raises(ValueError, match=f"{told}.*set method.compat=true"):
        FSD.check(given)
    replace(FSD, compat=True).check(given)


def test_leaks_are_counted_and_printed():
    given = documents(clusters=["c"] * 6 + [f"c{i}" for i in range(54)])
    given["unseen"] = unseen_documents("c")
    outcome = test(given, compat=True)
    assert outcome.details.to_json()["num_leaked"] == {"members": 6, "nonmembers": 0}
    assert outcome.warnings[0].startswith(
        "compat: 6 of 60 members under test (10%) are tuned on, or come from an article"
    )


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"scores": []}, "scores must be different scores; got"),
        ({"scores": [MinK(0.2), MinK(0.2)]}, "scores must be different scores; got .'mink"),
    ],
)
def test_settings_are_refused_in_a_sentence(changes, told):
    with pytest.raises(ValueError, match=told):
        replace(FSD, **changes)


# The whole way ----------------------------------------------------------------------------------------------


@pytest.fixture
def audit() -> Audit:
    """A target that read the suspect texts eight times."""
    target = Trained(tiny.scratch(1), tiny.pretraining(epochs=8), tiny.SUSPECT, seed=1, label="target")
    method = replace(FSD, scores=[Perplexity(), Lowercase(), ReferenceDifference()])
    return Audit(
        target,
        tiny.scratch(2),
        tiny.SUSPECT,
        method,
        seed=5,
        corpus_label="texts",
        heldout=UNREAD,
        heldout_label="other texts",
        unseen=UNSEEN,
        unseen_label="further texts",
    )


def run(audit: Audit, folder, name="one"):
    return run_audit(audit, tiny.builder(folder / "store"), folder / name)


def test_from_documents_to_a_result(audit, tmp_path):
    result = run(audit, tmp_path)
    told = json.loads((tmp_path / "one" / "result.json").read_text())
    assert (result.verdict.decision, result.question.truth, result.question.score) == (
        "score_only",
        "member",
        "perplexity",
    )
    assert (result.question.corpus, result.question.heldout, result.statistics.num_documents) == (
        "texts",
        "other texts",
        34,
    )
    assert result.question.reference == "gpt_neox-scratch"
    assert told["statistics"]["p_value"] is None
    assert result.statistics.value == told["statistics"]["details"]["scores"]["perplexity"]["fsd"]["auc"]
    assert result.health.capability.keys() == {"target", "tuned"}
    assert result.provenance.keys.keys() == {"target", "tuned", "reference", "corpus", "heldout", "unseen", "audit"}
    assert told["question"]["settings"]["scores"] == [
        {"kind": "Perplexity"},
        {"kind": "Lowercase"},
        {"kind": "ReferenceDifference"},
    ]
    assert result.provenance.made["models_trained"] == 2

    table = pq.read_table(tmp_path / "one" / "scores.parquet").to_pydict()
    assert set(table["group"]) == {"suspect", "heldout", "unseen"}
    tested = [group != "unseen" for group in table["group"]]
    labels = np.array([group == "suspect" for group in table["group"]])[tested]
    stored = np.array(table["target/perplexity"]) - np.array(table["tuned/perplexity"])
    assert metrics.roc_auc_score(labels, stored[tested]) == pytest.approx(result.statistics.value, abs=1e-12)
    assert np.isfinite(table["tuned/loss"]).tolist() == [not item for item in tested]
    assert len(pq.read_table(tmp_path / "one" / "distribution.parquet")) == 200

    again = run(audit, tmp_path, "again")
    assert (
        again.statistics.details,
        again.provenance.made["models_trained"],
        again.provenance.made["tokens_observed"],
    ) == (result.statistics.details, 0, 0)


def test_what_is_tuned_on_is_part_of_the_question(audit, tmp_path):
    shop = tiny.builder(tmp_path / "store")
    key = audit_keys(audit, shop)["audit"]
    others = [
        replace(audit, unseen=tiny.texts(*tiny.random_texts(16, seed=8), name="unseen")),
        replace(audit, reference=tiny.scratch(3)),
        replace(audit, method=replace(audit.method, view="years_replaced")),
    ]
    assert len({key, *(audit_keys(item, shop)["audit"] for item in others)}) == 4


@pytest.mark.slow
def test_text_that_was_read_is_not_unseen(audit, tmp_path):
    warnings = run(replace(audit, target=replace(audit.target, corpus=UNSEEN)), tmp_path).verdict.warnings
    assert "The target has read the documents that it is tuned on." in warnings


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"unseen": None}, "none was given. Name it"),
        ({"heldout": None}, "fsd compares the suspect set with text of the same kind"),
        (
            {"unseen": tiny.texts(*tiny.random_texts(7, seed=4))},
            "The unseen set further texts has 7 documents and fsd needs at least 8",
        ),
        ({"unseen": UNREAD}, "34 of 34 documents of the held-out set overlap with the documents to be tuned on"),
    ],
)
def test_bad_documents_are_refused_before_anything_is_made(audit, tmp_path, changes, told):
    with pytest.raises(ValueError, match=told):
        run(replace(audit, **changes), tmp_path)
    assert not (tmp_path / "store" / "models").exists()
