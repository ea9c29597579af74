"""The scores that DE-COP is compared with: means over works, both figures by name, and nothing claimed."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

import tiny
from nonmember.audits.question import Audit
from nonmember.audits.run import run_audit
from nonmember.methods import DecopBaselines, Roles, ScoredDocuments
from nonmember.records import Document
from nonmember.scores import Lowercase, MinK, Perplexity, Zlib
from nonmember.stats.multiplicity import holm

BASELINES = DecopBaselines((Perplexity(), Zlib(), Lowercase(), MinK(0.2)), 100, 10, 0.05, 60)
NAMES = [score.name for score in BASELINES.scores]


def scored(num_works: int, shift: float, *, seed: int) -> ScoredDocuments:
    """Works of one to four passages."""
    rng = np.random.default_rng(seed)
    clusters = [f"{seed}-{work}" for work in range(num_works) for _ in range(1 + work % 4)]
    values = {name: rng.normal(shift * (index + 1), 1, len(clusters)) for index, name in enumerate(NAMES)}
    ids = tuple(f"{seed}-{index}" for index in range(len(clusters)))
    return ScoredDocuments(ids, values, tuple(clusters))


def means(documents: ScoredDocuments, name: str) -> list[float]:
    found: dict[str, list[float]] = {}
    for cluster, value in zip(documents.cluster_ids, documents.values[name], strict=True):
        found.setdefault(cluster, []).append(value)
    return [float(np.mean(values)) for values in found.values()]


def test_works_are_compared_by_their_means():
    documents = {"suspect": scored(20, 0.4, seed=1), "heldout": scored(15, 0.0, seed=2)}
    outcome = BASELINES.test(documents, np.random.default_rng(0))
    assert outcome.verdict == "score_only"
    assert outcome.allowed_claim.startswith("None about membership")
    told = outcome.details.to_json()["scores"]
    assert list(told) == NAMES
    p_values = []
    for name in NAMES:
        first, second = means(documents["suspect"], name), means(documents["heldout"], name)
        p_values.append(stats.ttest_ind(first, second, equal_var=False).pvalue)
        assert told[name]["p_value"] == pytest.approx(p_values[-1])
        labels = [1] * len(first) + [0] * len(second)
        assert told[name]["roc_auc"] == pytest.approx(roc_auc_score(labels, first + second))
        assert told[name]["best_balanced_acc"] == pytest.approx(
            max((np.mean(np.array(first) >= cut) + np.mean(np.array(second) < cut)) / 2 for cut in first + second)
        )
    assert [told[name]["p_value_holm"] for name in NAMES] == pytest.approx(holm(p_values))
    assert (outcome.statistic, outcome.p_value) == pytest.approx((told[NAMES[0]]["roc_auc"], p_values[0]))
    assert outcome.ci_low <= outcome.statistic <= outcome.ci_high
    assert json.loads(json.dumps(outcome.details.to_json(), allow_nan=False)) == outcome.details.to_json()


def test_a_single_work_says_nothing():
    outcome = BASELINES.test({"suspect": scored(1, 0.4, seed=1), "heldout": scored(15, 0.0, seed=2)}, None)
    assert (outcome.verdict, outcome.warnings) == (
        "invalid",
        ("Too few works have scores; the least are 2 in each set.",),
    )


def test_scores_are_measured_on_both_groups():
    roles = Roles(tiny.scratch(1), tiny.scratch(2), tiny.SUSPECT, 0, tiny.GENERAL)
    groups = BASELINES.groups(roles)
    assert {name: group.corpus for name, group in groups.items()} == {"suspect": tiny.SUSPECT, "heldout": tiny.GENERAL}
    assert all(list(group.measured) == NAMES for group in groups.values())
    with pytest.raises(ValueError, match=r"scores must be different scores; got \['zlib', 'zlib'\]"):
        DecopBaselines((Zlib(), Zlib()), 100, 10, 0.05, 60)


def test_an_audit_on_a_tiny_model(tmp_path):
    def shelf(name: str, seed: int) -> tiny.Texts:
        texts = tiny.random_texts(12, seed=seed)
        return tiny.Texts(
            tuple(Document(f"{name}{n}", f"{text.title()} {n}", f"{name}{n // 2}") for n, text in enumerate(texts))
        )

    audit = Audit(tiny.scratch(1), tiny.scratch(2), shelf("old", 5), BASELINES, 1, "old", heldout=shelf("new", 6))
    result = run_audit(audit, tiny.builder(tmp_path / "store"), tmp_path / "run")
    num_works = result.statistics.details["scores"][NAMES[0]]["num_suspect_works"]
    assert (result.verdict.decision, result.statistics.num_documents, num_works) == ("score_only", 12, 6)
