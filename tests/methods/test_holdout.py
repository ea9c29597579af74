"""Sealed hold-outs: the draw, the level and power of its permutation, and a file that was changed."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binom

from marks import slow
from nonmember.corpora import Drawn
from nonmember.evidence import holdout as planting
from nonmember.methods import Holdout, ScoredDocuments
from nonmember.records import Corpus, Document
from nonmember.scores import Loss
from nonmember_verify.holdout import drawn, read_draw

METHOD = Holdout(Loss(), "ab" * 32, num_permutations=999, alpha=0.05, max_tokens=64)
BOOKS = Corpus(
    tuple(
        Document(f"d{index}", f"text {index}", f"book {index // 3}", author=f"author {index // 12}")
        for index in range(30)
    )
)


def scored(values, clusters=(), strata=()) -> ScoredDocuments:
    number = len(values)
    ids = tuple(f"d{index}" for index in range(number))
    values = {"target": np.asarray(values, float)}
    return ScoredDocuments(ids, values, tuple(clusters) or ("",) * number, domains=tuple(strata))


def outcome(published, kept, method=METHOD):
    return method.test({"suspect": published, "heldout": kept}, np.random.default_rng(0))


@pytest.mark.parametrize("shift", [0.0, 1.5])
def test_level_and_power_where_the_key_draws(shift):
    """Skewed scores of five clusters a side, which no distribution of t would fit: all 252 draws are enumerated."""
    rng, found = np.random.default_rng(7), 0
    for _ in range(500):
        names = [f"c{index}" for index in range(10) for _ in range(2)]
        scores = np.repeat(rng.lognormal(sigma=1.0, size=10), 2) + 0.1 * rng.normal(size=20)
        public = np.isin(names, list(drawn(rng.bytes(32), dict.fromkeys(names, ""), 0.5)))
        clusters = np.array(names)
        test = outcome(scored(scores[public] + 2 * shift, clusters[public]), scored(scores[~public], clusters[~public]))
        assert test.p_error is None
        found += test.p_value < 0.05
    if shift:
        assert found > 250
    else:
        assert binom.ppf(0.001, 500, 12 / 252) <= found <= binom.ppf(0.999, 500, 12 / 252)


@pytest.mark.parametrize(("num", "exact"), [slow(12, True), (24, False)])
def test_within_strata_the_level_holds_and_what_tells_strata_apart_costs_no_power(num, exact, monkeypatch):
    """Three strata whose scores lie far apart, one half of each drawn: 8,000 draws are enumerated, more are not."""
    rng, method = np.random.default_rng(8), replace(METHOD, num_permutations=8_000 if exact else 199)
    monkeypatch.setattr("nonmember.stats.monte_carlo.MOST_DRAWS", 0)  # no draws are added where p is close to alpha
    names = [f"c{index}" for index in range(num)]
    strata = np.array([f"s{index % 3}" for index in range(num)])
    found = {0.0: 0, 3.0: 0}
    pooled = 0
    for shift in found:
        for _ in range(200):
            scores = 10.0 * (strata == "s1") + 20.0 * (strata == "s2") + rng.exponential(size=num)
            public = np.isin(names, list(drawn(rng.bytes(32), dict(zip(names, strata.tolist(), strict=True)), 0.5)))
            sets = (
                scored(scores[public] + shift, strata=strata[public]),
                scored(scores[~public], strata=strata[~public]),
            )
            test = outcome(*sets, method)
            assert (test.p_error is None) == exact
            found[shift] += test.p_value <= 0.05
            pooled += shift > 0 and outcome(*(replace(item, domains=()) for item in sets), method).p_value < 0.05
    assert binom.ppf(0.001, 200, 0.04) <= found[0.0] <= binom.ppf(0.999, 200, 0.05)
    assert found[3.0] > 150 > 20 > pooled


def test_p_within_strata_is_that_of_scipys_without_any():
    """Of one stratum that two names split without effect: draws that SciPy would make, counted by hand."""
    found = outcome(scored([9.0, 8.0, 7.0], strata="aab"), scored([1.0, 2.0, 3.0], strata="aab"))
    assert found.p_value == 1 / (6 * 2), "one of C(4, 2) ways of a times C(2, 1) of b is as high"


def test_p_of_few_is_the_share_of_all_draws():
    """Equally many on each side: t orders draws as their difference does where the highest stand apart."""
    found = outcome(scored([9.0, 8.0, 7.0]), scored([1.0, 2.0, 3.0]))
    assert found.p_value == 1 / len(list(combinations(range(6), 3)))
    assert found.statistic == pytest.approx(6.0)
    assert found.verdict == "inconclusive"
    assert "allow no p below 0.05" in found.warnings[0]
    assert outcome(scored([1.0, 1.0]), scored([1.0, 1.0])).verdict == "invalid"
    assert outcome(scored([1.0, 2.0], "aa"), scored([1.0, 1.0])).verdict == "invalid"


def test_the_draw_takes_whole_clusters_and_is_sealed(tmp_path):
    made = planting.make(tmp_path, BOOKS)
    assert made.num_clusters == (5, 5)
    assert stat.S_IMODE(made.private.stat().st_mode) == 0o600
    parts = {
        name: Drawn(str(made.private), name, made.commitment).build(None).documents for name in ("published", "kept")
    }
    books = {name: {item.cluster_id for item in part} for name, part in parts.items()}
    assert not books["published"] & books["kept"]
    assert sorted(item.doc_id for part in parts.values() for item in part) == sorted(BOOKS.doc_ids)
    for name, part in parts.items():
        rows = [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()]
        assert [(row["id"], row["text"]) for row in rows] == [(item.doc_id, item.text) for item in part]
    with pytest.raises(ValueError, match="not overwritten"):
        planting.make(tmp_path, BOOKS)
    with pytest.raises(ValueError, match="not the file that was committed to"):
        Drawn(str(made.private), "kept", "ab" * 32).build(None)


@pytest.mark.parametrize("strata", planting.STRATA)
def test_of_each_stratum_the_share_is_drawn(strata, tmp_path):
    made = planting.make(tmp_path, BOOKS, strata=strata)
    rows = read_draw(made.private).documents
    clusters = {(item.stratum, item.cluster): item.published for item in rows}
    of = {name: [public for (own, _), public in clusters.items() if own == name] for name, _ in clusters}
    num = {"author": [4, 4, 2], "length": [3, 2, 3, 2]}.get(strata, [10])
    assert [len(found) for found in of.values()] == num
    assert [sum(found) for found in of.values()] == [round(0.5 * number) for number in num]
    assert [item.domain for item in Drawn(str(made.private), "kept").build(None).documents] == [
        item.stratum for item in rows if not item.published
    ]
    if strata == "length":
        sizes = {cluster: sum(len(i.text) for i in rows if i.cluster == cluster) for _, cluster in clusters}
        assert max(sizes[name] for stratum, name in clusters if stratum == "length 1") <= min(
            sizes[name] for stratum, name in clusters if stratum == "length 4"
        )


def test_a_share_leaves_two_on_each_side(tmp_path):
    assert planting.make(tmp_path / "a", BOOKS, 0.01).num_clusters == (2, 8)
    assert planting.make(tmp_path / "b", BOOKS, 0.7).num_clusters == (7, 3)
    with pytest.raises(ValueError, match="at least 4"):
        planting.make(tmp_path / "c", Corpus(BOOKS.documents[:9]))


@pytest.mark.parametrize(
    "lie", [{"key": "00" * 32}, {"share": 0.2}, {"key": "00"}, {"kind": "random"}], ids=lambda lie: str(lie)[:16]
)
def test_a_file_that_was_changed_is_refused(tmp_path, lie):
    made = planting.make(tmp_path, Corpus(tuple(Document(str(index), f"text {index}") for index in range(60))))
    content = json.loads(made.private.read_text())
    made.private.write_text(json.dumps(content | lie))
    with pytest.raises(ValueError, match=r"not where the key draws it|nonmember plant"):
        read_draw(made.private)
