"""The order test as a method: what it measures, what it concludes, and one audit from recipes to a result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

import tiny
from made_up_methods import ORDER
from nonmember.audits.question import Audit
from nonmember.audits.run import run_audit
from nonmember.corpora import Component, Joined, Mixture, Sharded, Shuffled
from nonmember.methods import Roles, ScoredDocuments
from nonmember.methods.order import CONTROL, TARGET, column, ordered_group, statistic_of
from nonmember.stats.paired import order_test
from nonmember.training import Trained
from nonmember.training import run as training_run

METHOD = replace(ORDER, num_orders=30)
FILE = Shuffled(tiny.texts(*tiny.random_texts(60, seed=3, words=6), name="line"), "order")
ROLES = Roles(tiny.scratch(1), tiny.scratch(2), FILE, seed=5)


def shards(difference: np.ndarray, role: str = TARGET) -> ScoredDocuments:
    """Of 100 tokens each, 3 nats a token."""
    values = {
        "canonical": difference - 300.0,
        "mean_shuffled": np.full(len(difference), -300.0),
        "num_tokens": np.full(len(difference), 100.0),
        "num_read": np.full(len(difference), 3100.0),
    }
    names = tuple(f"shard-{index:03d}" for index in range(len(difference)))
    return ScoredDocuments(names, {column(role, name): of for name, of in values.items()})


def concluded(documents: ScoredDocuments, **changes):
    return replace(METHOD, **changes).test({"suspect": documents}, np.random.default_rng(0))


def noise(number: int = 20, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=number)


# What is measured -------------------------------------------------------------------------------------------


def test_the_target_alone_reads_the_file_in_shards():
    (group,) = METHOD.groups(ROLES).values()
    assert group.corpus == Sharded(FILE, 20, 100)
    assert list(group.measured) == ["canonical", "mean_shuffled", "num_tokens", "num_read"]
    for item in group.measured.values():
        assert (item.role, item.model, item.corpus, item.seed) == (TARGET, ROLES.target, group.corpus, 5)


def test_the_control_is_the_reference():
    (group,) = replace(METHOD, control=True).groups(ROLES).values()
    models = {item.role: item.model for item in group.measured.values()}
    assert models == {TARGET: ROLES.target, CONTROL: ROLES.reference}
    assert "control/canonical" in group.measured


def test_others_can_have_the_statistic():
    """As KDS does, for its baseline."""
    group = ordered_group(
        FILE, {TARGET: ROLES.target}, num_shards=20, max_examples=100, num_orders=30, window=64, stride=32, seed=5
    )
    assert METHOD.groups(ROLES) == {"suspect": group}
    test = statistic_of(shards(noise()), TARGET, compat=False)
    assert test.statistic == pytest.approx(order_test(noise(), np.zeros(20), compat=False).statistic)


# What it means ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shift", "verdict"), [(2.0, "evidence_of_membership"), (0.0, "inconclusive"), (-9.0, "inconclusive")]
)
def test_verdicts(shift, verdict):
    outcome = concluded(shards(noise() + shift))
    expected = order_test(noise() + shift, np.zeros(20), compat=False)
    assert (outcome.statistic, outcome.p_value) == pytest.approx((expected.statistic, expected.p_value))
    assert outcome.verdict == verdict
    assert outcome.details.to_json()["mean_difference"] == pytest.approx((noise() + shift).mean())
    assert outcome.details.to_json()["mean_difference_per_token"] == pytest.approx((noise() + shift).mean() / 100)
    assert outcome.details.to_json()["share_of_shards_above_0"] == pytest.approx((noise() + shift > 0).mean())
    assert (outcome.details.to_json()["num_tokens_of_file"], outcome.details.to_json()["num_tokens_read"]) == (
        2000,
        62000,
    )
    assert not outcome.warnings


def test_claims_say_what_they_rest_on():
    evidence, nothing = (concluded(shards(noise() + shift)).allowed_claim for shift in (2.0, 0.0))
    assert "exchangeable" in evidence
    assert "date, length or topic" in evidence
    assert "not evidence that the file was not used" in nothing


def test_few_shards_are_warned_of():
    assert "at least 20 are advised" in concluded(shards(noise(19))).warnings[0]


def test_compat_is_the_population_deviation():
    plain, compat = (concluded(shards(noise() + 0.3), compat=compat) for compat in (False, True))
    assert compat.statistic == pytest.approx(plain.statistic * np.sqrt(20 / 19))


def test_an_order_that_makes_no_difference_is_invalid():
    outcome = concluded(shards(np.zeros(20)))
    assert (outcome.verdict, outcome.p_value) == ("invalid", 1.0)
    assert "nothing to test" in outcome.warnings[-1]


@pytest.mark.parametrize(("shift", "verdict"), [(0.0, "evidence_of_membership"), (2.0, "invalid")])
def test_a_control_that_prefers_the_order_too_makes_it_invalid(shift, verdict):
    both = shards(noise() + 2)
    both = replace(both, values={**both.values, **shards(noise(seed=1) + shift, CONTROL).values})
    outcome = concluded(both, control=True)
    assert outcome.verdict == verdict
    assert outcome.details.to_json()["control"]["p_value"] == pytest.approx(
        order_test(noise(seed=1) + shift, np.zeros(20), compat=False).p_value
    )
    assert any("prefers its order too" in warning for warning in outcome.warnings) == (verdict == "invalid")


@pytest.mark.parametrize(("changes", "message"), [({"stride": 65}, r"stride \(65\) must be at most the window \(64\)")])
def test_settings_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(METHOD, **changes)


# An audit ---------------------------------------------------------------------------------------------------


def target_that_read(exposures: int, examples_per_document: int | None = None) -> Trained:
    """A width of 16 remembers little, so it reads nothing else when it reads the file."""
    read = Joined(FILE, examples_per_document)
    corpus = Mixture((Component(tiny.GENERAL, 1), Component(read, exposures)))
    return Trained(tiny.scratch(1), tiny.pretraining(64, learning_rate=2e-2), corpus, seed=1, label="target")


def audited(exposures: int, folder, shop, **changes):
    target = target_that_read(exposures, changes.pop("examples_per_document", None))
    audit = Audit(target, tiny.scratch(2), FILE, replace(METHOD, **changes), seed=5, corpus_label="file")
    return run_audit(audit, shop, folder)


@pytest.mark.slow
def test_an_audit_finds_who_read_the_file_in_its_order(tmp_path, monkeypatch):
    results = {
        name: audited(exposures, tmp_path / name, tiny.builder(tmp_path / "store"), examples_per_document=size)
        for name, exposures, size in (("unread", 0, None), ("read", 60, None), ("shuffled", 60, 1))
    }
    assert {name: (result.question.truth, result.verdict.decision) for name, result in results.items()} == {
        "unread": ("non_member", "inconclusive"),
        "read": ("member", "evidence_of_membership"),
        "shuffled": ("member", "inconclusive"),
    }, {name: result.statistics.p_value for name, result in results.items()}
    result = results["read"]
    assert (
        result.question.method,
        result.question.reference,
        result.statistics.num_documents,
        result.exclusions.num_documents,
    ) == ("order", None, 20, 0)
    assert (result.statistics.ci_low, result.question.score) == (None, "")
    table = pq.read_table(tmp_path / "read" / "scores.parquet").to_pydict()
    assert list(table) == ["doc_id", "canonical", "mean_shuffled", "num_tokens", "num_read"]
    assert table["doc_id"][0] == "shard-000"
    assert len(table["doc_id"]) == 20
    expected = order_test(table["canonical"], table["mean_shuffled"], compat=False)
    assert (result.statistics.value, result.statistics.p_value) == pytest.approx((expected.statistic, expected.p_value))
    assert result.statistics.num_tokens == sum(table["num_tokens"]) == result.statistics.details["num_tokens_of_file"]
    assert (
        result.provenance.made["tokens_observed"]
        == result.statistics.details["num_tokens_read"]
        == sum(table["num_read"])
    )
    assert result.health.capability["target"]["nll"] == pytest.approx(
        -sum(table["canonical"]) / result.statistics.num_tokens
    )

    # Of two examples a shard and more: another number of shards is observed anew, another level is not.
    monkeypatch.setattr(training_run, "train", None)
    again = audited(60, tmp_path / "again", tiny.builder(tmp_path / "store"), alpha=0.01)
    assert (again.statistics.value, again.provenance.made["tokens_observed"]) == (result.statistics.value, 0)
    assert again.statistics.details["num_tokens_read"] == result.statistics.details["num_tokens_read"]
    fewer = audited(60, tmp_path / "fewer", tiny.builder(tmp_path / "store"), num_shards=15)
    assert fewer.provenance.made["tokens_observed"] > 0
    assert fewer.statistics.num_documents == 15


def test_a_file_too_short_and_a_window_too_large_are_one_sentence(tmp_path):
    shop = tiny.builder(tmp_path / "store")
    with pytest.raises(ValueError, match="31 shards of at least 2 examples need 62 examples, and the file has 60"):
        audited(0, tmp_path / "one", shop, num_shards=31)
    with pytest.raises(ValueError, match="window has 129 tokens, and the model reads at most 128"):
        audited(0, tmp_path / "two", shop, window=129)
