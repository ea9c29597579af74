"""Probabilistic extraction: p_z by hand and by enumeration, level and power, what is left out, and lies about it."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.stats import binom

from nonmember.methods import ExtractionTest, ScoredDocuments
from nonmember.methods.extraction import _extracted
from nonmember.records import TokenTable
from nonmember.scores import Extraction, Loss, ScoreInputs

METHOD = ExtractionTest(Extraction(3), num_permutations=499, alpha=0.05, max_tokens=64)


def table(*log_probs) -> TokenTable:
    """Of documents with these log-probabilities, of the second token and those that follow."""
    sizes = [len(item) for item in log_probs]
    flat = np.array([value for item in log_probs for value in item], dtype=np.float32)
    position = np.array([index + 1 for size in sizes for index in range(size)], dtype=np.int32)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    ids = tuple(f"d{index}" for index in range(len(sizes)))
    return TokenTable(ids, offsets, position, position, flat, flat, flat)


def scored(values, clusters=()) -> ScoredDocuments:
    number = len(values)
    ids = tuple(f"d{index}" for index in range(number))
    return ScoredDocuments(ids, {"target": np.asarray(values, float)}, tuple(clusters) or ("",) * number)


def outcome(suspect, heldout=None):
    groups = {"suspect": suspect} | ({} if heldout is None else {"heldout": heldout})
    return METHOD.test(groups, np.random.default_rng(0))


def test_score_is_the_likeliest_run_by_hand():
    """k = 3: tokens 0 to 2 are shown, the runs are tokens 3 to 5 and 6 to 8; 9 is left over."""
    found = Extraction(3)(ScoreInputs(table([-9, -9, -1, -2, -3, -1, -1, -2, -0.5], [-1] * 5, [-1] * 4, [])))
    assert found.values[:2].tolist() == [-4.0, -3.0]
    assert np.isnan(found.values[2:]).all()
    assert found.reasons["d2"] == "fewer than 6 tokens"
    assert "no scored token" in found.reasons["d3"]


def test_p_of_a_run_is_the_probability_to_sample_it():
    """Of a model of two tokens whose next depends on the last: all its continuations, enumerated, share out 1."""
    after = {0: (0.9, 0.1), 1: (0.3, 0.7)}

    def p(text):
        given = [after[last][token] for last, token in pairwise(text)]
        return math.exp(Extraction(3)(ScoreInputs(table(np.log(given)))).values[0])

    prefix = (0, 1, 0)
    found = {run: p(prefix + run) for run in product((0, 1), repeat=3)}
    assert sum(found.values()) == pytest.approx(1)
    assert found[0, 0, 1] == pytest.approx(0.9 * 0.9 * 0.1)
    rng, hits = np.random.default_rng(1), 0
    for _ in range(4000):
        run, last = [], prefix[-1]
        for _ in range(3):
            last = int(rng.random() < after[last][1])
            run.append(last)
        hits += tuple(run) == (0, 0, 1)
    assert binom.ppf(0.001, 4000, found[0, 0, 1]) <= hits <= binom.ppf(0.999, 4000, found[0, 0, 1])


def test_shares_and_discoverable_passages():
    """(n, p)-discoverable: 1 - (1 - p_z)^n >= .5. For n = 100 p_z must be .00691, for 10,000 6.93e-5."""
    group = _extracted(scored(np.log([1.0, 0.6, 0.05, 0.0069, 0.00692, 0.001, 7e-5, 6.9e-5, 1e-300])))
    assert group["num_discoverable"] == {"1": 2, "100": 4, "10000": 7}
    assert group["share_at_least"] == {"0.001": 6 / 9, "0.01": 3 / 9, "0.1": 2 / 9}
    found = outcome(scored(np.linspace(-800, -1, 20)))
    assert next(iter(found.details.most_extractable)) == "d19"
    assert found.details.most_extractable["d19"]["tries"] == pytest.approx(math.e)
    assert len(found.details.most_extractable) == 10


@pytest.mark.parametrize(("shift", "worlds"), [(0.0, 200), (8.0, 40)])
def test_level_and_power(shift, worlds, monkeypatch):
    """Likeliest of four runs of 50 tokens, few of which decide: left-skewed sums, clusters that deviate together."""
    monkeypatch.setattr("nonmember.stats.monte_carlo.MOST_DRAWS", 0)  # no draws are added where p is close to alpha
    rng, found = np.random.default_rng(11), 0
    clusters = np.arange(60) // 2
    for _ in range(worlds):
        runs = -rng.gamma(2.0, 12.0, size=(60, 4)) - 4 * rng.exponential(size=30)[clusters, None]
        values = runs.max(axis=1) - 30 + shift * (np.arange(60) < 30)
        names = [f"c{number}" for number in clusters]
        found += outcome(scored(values[:30], names[:30]), scored(values[30:], names[30:])).p_value <= 0.05
    if shift:
        assert found > 0.8 * worlds
    else:
        assert binom.ppf(0.001, worlds, 0.05) <= found <= binom.ppf(0.999, worlds, 0.05)


def test_verdicts_and_what_is_refused():
    read, unread = scored(np.linspace(-20, -1, 30)), scored(np.linspace(-60, -30, 30))
    assert outcome(read, unread).verdict == "evidence_of_membership"
    assert outcome(unread, read).verdict == "inconclusive"
    assert outcome(scored(np.arange(-9.0, 0.0)), unread).verdict == "invalid"
    alone = outcome(read)
    assert alone.verdict == "score_only"
    assert alone.allowed_claim.startswith("Of 33.3% of the documents")
    assert np.isnan(alone.p_value)
    assert outcome(scored([-1.0, -2.0])).verdict == "invalid"
    with pytest.raises(ValueError, match="extraction score"):
        ExtractionTest(Loss(), 499, alpha=0.05, max_tokens=64)
