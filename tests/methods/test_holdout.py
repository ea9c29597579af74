"""Sealed hold-outs: the draw, the level and power of its permutation, and a file that was changed."""

from __future__ import annotations

import json
import stat
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import binom

from nonmember.corpora import Drawn
from nonmember.evidence import holdout as planting
from nonmember.methods import Holdout, ScoredDocuments
from nonmember.records import Corpus, Document
from nonmember.scores import Loss
from nonmember_verify.holdout import drawn, read_draw

METHOD = Holdout(Loss(), "ab" * 32, num_permutations=999, alpha=0.05, max_tokens=64)
BOOKS = Corpus(tuple(Document(f"d{index}", f"text {index}", f"book {index // 3}") for index in range(30)))


def scored(values, clusters=()) -> ScoredDocuments:
    number = len(values)
    ids = tuple(f"d{index}" for index in range(number))
    return ScoredDocuments(ids, {"target": np.asarray(values, float)}, tuple(clusters) or ("",) * number)


def outcome(published, kept, method=METHOD):
    return method.test({"suspect": published, "heldout": kept}, np.random.default_rng(0))


@pytest.mark.parametrize("shift", [0.0, 1.5])
def test_level_and_power_where_the_key_draws(shift):
    """Skewed scores of five clusters a side, which no distribution of t would fit: all 252 draws are enumerated."""
    rng, found = np.random.default_rng(7), 0
    for _ in range(500):
        names = [f"c{index}" for index in range(10) for _ in range(2)]
        scores = np.repeat(rng.lognormal(sigma=1.0, size=10), 2) + 0.1 * rng.normal(size=20)
        public = np.isin(names, list(drawn(rng.bytes(32), names, 0.5)))
        clusters = np.array(names)
        test = outcome(scored(scores[public] + 2 * shift, clusters[public]), scored(scores[~public], clusters[~public]))
        assert test.p_error is None
        found += test.p_value < 0.05
    if shift:
        assert found > 250
    else:
        assert binom.ppf(0.001, 500, 12 / 252) <= found <= binom.ppf(0.999, 500, 12 / 252)


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


def test_a_share_leaves_two_on_each_side(tmp_path):
    assert planting.make(tmp_path / "a", BOOKS, 0.01).num_clusters == (2, 8)
    assert planting.make(tmp_path / "b", BOOKS, 0.7).num_clusters == (7, 3)
    with pytest.raises(ValueError, match="at least 4"):
        planting.make(tmp_path / "c", Corpus(BOOKS.documents[:9]))


@pytest.mark.parametrize(
    "lie", [{"key": "00" * 32}, {"share": 0.2}, {"key": "00"}, {"kind": "random"}], ids=lambda lie: str(lie)[:16]
)
def test_a_file_that_was_changed_is_refused(tmp_path, lie):
    made = planting.make(tmp_path, BOOKS)
    content = json.loads(made.private.read_text())
    made.private.write_text(json.dumps(content | lie))
    with pytest.raises(ValueError, match=r"not where the key draws it|nonmember plant"):
        read_draw(made.private)
