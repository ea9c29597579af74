"""Levels and power of the verdict rules in simulated worlds: the table of docs/methods/conventions.md.

    python benchmarks/levels.py [--worlds 1000] [--markdown PATH]

Some five minutes of a core. A world is drawn twice, without a difference (the level: how often the rule rejects at 5%)
and with one (the power). The seed of a world is its number.
"""

from __future__ import annotations

import argparse
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import nonmember
from nonmember.records import FloatArray
from nonmember.runtime.progress import tracked
from nonmember.stats import monte_carlo
from nonmember.stats.bootstrap import difference_of_dependent_correlations
from nonmember.stats.canaries import rank_sum_test
from nonmember.stats.dose_curve import Control, dose_curve
from nonmember.stats.inference import dataset_inference
from nonmember.stats.paired import order_test, paired_t_greater
from nonmember.stats.proportions import Hits, difference_of_rates, exact_interval, shares_greater
from nonmember.stats.two_groups import compare_groups, mean_difference, permuted_mean_difference
from nonmember_verify.identifiers import alternatives, find

LEVEL = 0.05
RESAMPLES = 999
monte_carlo.MOST_DRAWS = RESAMPLES  # no further draws near the level, which a fixed number keeps too and in seconds
Generator = np.random.Generator
GAIN = 0.4  # what reading adds, in standard deviations of a document


@dataclass(frozen=True)
class Rule:
    """rejects: whether it does, in a world with or without a difference.   share: of the worlds that are drawn."""

    method: str
    world: str
    guarantee: str
    rejects: Callable[[Generator, bool], bool]
    share: float = 1.0


def prism(clusters: int | None) -> Callable[[Generator, bool], bool]:
    """150 documents: reference and distilled reference agree alike with the target (the boundary of the null
    hypothesis), or the reference better; of so many clusters, whose documents deviate together."""

    def rejects(rng: Generator, differs: bool) -> bool:
        cluster_of = np.arange(150) if clusters is None else np.sort(rng.integers(clusters, size=150))
        target, *noise = rng.normal(size=(3, 150)) + (
            0 if clusters is None else rng.normal(size=(3, 150))[:, cluster_of]
        )
        shares = (0.8, 0.55) if differs else (0.7, 0.7)
        reference, distilled = (
            share * target + np.sqrt(1 - share**2) * item for share, item in zip(shares, noise, strict=True)
        )
        found = difference_of_dependent_correlations(
            reference,
            target,
            distilled,
            metric="spearman",
            num_resamples=RESAMPLES,
            alpha=LEVEL,
            margin=0.0,
            rng=rng,
            clusters=None if clusters is None else cluster_of.tolist(),
        )
        return found.p_value < LEVEL

    return rejects


def skewed(rng: Generator, sizes: tuple[int, int], differs: bool) -> tuple[FloatArray, FloatArray]:
    """Left-skewed gains: single tokens that fail."""
    first, second = (-rng.exponential(size=size) for size in sizes)
    return first + GAIN * differs, second


def permuted(first: int, second: int) -> Callable[[Generator, bool], bool]:
    def rejects(rng: Generator, differs: bool) -> bool:
        groups = skewed(rng, (first, second), differs)
        names = range(first), range(second)
        found = permuted_mean_difference(*groups, *names, num_permutations=RESAMPLES, alpha=LEVEL, rng=rng)
        return found.p_value < LEVEL

    return rejects


def welch(rng: Generator, differs: bool) -> bool:
    """What the difference in differences decided by until version 0.2."""
    groups = skewed(rng, (30, 300), differs)
    return mean_difference(*groups, range(30), range(300), alpha=LEVEL).p_value < LEVEL


def permuted_clusters(rng: Generator, differs: bool) -> bool:
    """40 and 30 works of one to some ten documents, which deviate together."""
    groups, names = [], []
    for number in (40, 30):
        of = np.repeat(np.arange(number), rng.geometric(0.3, number))
        groups.append(-rng.exponential(size=number)[of] + rng.normal(size=of.size))
        names.append(of.tolist())
    groups[0] += 2 * GAIN * differs
    found = permuted_mean_difference(
        groups[0], groups[1], names[0], names[1], num_permutations=RESAMPLES, alpha=LEVEL, rng=rng
    )
    return found.p_value < LEVEL


def llm_di(rng: Generator, differs: bool) -> bool:
    """200 documents a set, 20 features. It decides at 10%, as its paper does."""
    features = rng.standard_t(5, size=(400, 20))
    features[:200, :5] += GAIN * differs
    found = dataset_inference(
        features[:200],
        features[200:],
        outliers="mean",
        tail_fraction=0.05,
        fit_size=100,
        num_splits=1,
        learning_rate=0.01,
        num_steps=1000,
        compat=False,
        rng=rng,
    )
    return found.combined_p_value < 2 * LEVEL


def paired(rng: Generator, differs: bool) -> bool:
    """PaCoST: 100 texts and rephrasings."""
    x, y = rng.normal(size=(2, 100))
    return paired_t_greater(x + GAIN * differs, y).p_value < LEVEL


def order(rng: Generator, differs: bool) -> bool:
    """50 shards, the canonical order and the mean of 25 others."""
    shards = rng.normal(size=(26, 50))
    return order_test(shards[0] + GAIN * differs, shards[1:].mean(axis=0), compat=False).p_value < LEVEL


def canaries(rng: Generator, differs: bool) -> bool:
    """10 canaries of 100 variants each."""
    scores = rng.normal(size=(10, 100))
    return rank_sum_test(scores[:, 0] + GAIN * differs, list(scores[:, 1:])).p_value < LEVEL


def identifiers(rng: Generator, differs: bool) -> bool:
    """10 identifiers of three forms, 19 alternatives each, found in a text and drawn as an audit does; the model is a
    table of pairs of characters, drawn anew for each world."""
    table, strings = rng.normal(size=(128, 128)), [rng.bytes(size).hex() for size in (4, 16, 20, 32)]
    strings += [str(uuid.UUID(bytes=rng.bytes(16), version=4)) for _ in range(6)]
    found, _ = find([("d", " or commit ".join(["", *strings]))])

    def scores(texts: list[str]) -> FloatArray:
        codes = np.array([list(text.encode()) for text in texts])
        return np.asarray(table[codes[:, :-1], codes[:, 1:]].sum(axis=1))

    others = [scores(alternatives(item, 19, int(rng.integers(2**31)))) for item in found]
    published = [
        scores([item.text])[0] + GAIN * differs * float(other.std()) for item, other in zip(found, others, strict=True)
    ]
    return rank_sum_test(published, others).p_value < LEVEL


def coverage(rng: Generator, differs: bool) -> bool:
    """Sampled completion, prefix completion: 50 and 50 works, whose shares differ from work to work."""
    first, second = rng.beta(0.5, 2, (2, 50))
    first = np.minimum(1, first + 0.2 * differs)
    return shares_greater(first, second, num_permutations=RESAMPLES, alpha=LEVEL, rng=rng).p_value < LEVEL


def rates(rng: Generator, differs: bool) -> bool:
    """MC-PDD: 150 and 150 documents, one word each, rates .2 or .1 and .2."""
    less, more = (Hits(rng.binomial(1, rate, 150), np.ones(150, np.int64)) for rate in (0.1 if differs else 0.2, 0.2))
    return difference_of_rates(less, more, num_resamples=RESAMPLES, alpha=LEVEL, rng=rng).p_value < LEVEL


def works(rng: Generator, differs: bool) -> bool:
    """DE-COP, name cloze: 15 and 15 works of 8 passages."""
    first, second = rng.binomial(8, np.clip(rng.beta(2, 4, (2, 15)) + np.array([[0.25 * differs], [0.0]]), 0, 1)) / 8
    found = compare_groups(first, second, num_resamples=10, num_few=10, alpha=LEVEL, rng=rng)
    return found.p_value < LEVEL and found.t > 0


SHAPE = np.diag([0.0029, 0.0014, 0.00023, 0.00078])
OTHER = np.diag([9, 1, 0.1, 1]) @ SHAPE  # the errors of a world that the panel does not know
RISE = np.sqrt(np.diag(SHAPE)) * [1.0, 0.7, 1.0, 0.5]


def dose(planted: float, claim: str, errors: FloatArray) -> Callable[[Generator, bool], bool]:
    """Two controls at each of 0, 1, 2, 4 and 8 readings; the target read the set as often as the null hypothesis has
    it, or as seldom (as often) as it does not."""

    def rejects(rng: Generator, differs: bool) -> bool:
        def values(readings: float) -> FloatArray:
            return 8 * RISE * np.log1p(readings) / np.log1p(8) + rng.multivariate_normal(np.zeros(4), errors)

        controls = [Control(readings, 0.0, values(readings)) for readings in (0, 1, 2, 4, 8) for _ in range(2)]
        other = 0.0 if claim == "not used" else 2.0
        reading = dose_curve(controls, SHAPE).read(
            values(other if differs else planted), wanted=1.0, exceeded=0.1, alpha=LEVEL
        )
        return (reading.p_at_least if claim == "not used" else reading.p_at_most) < LEVEL

    return rejects


def drawn_within_strata(rng: Generator, differs: bool) -> bool:
    """A hold-out of 40 skewed documents in four strata that lie far apart; half of each stratum is published."""
    strata = np.repeat(np.arange(4), 10)
    values = 3.0 * strata + rng.exponential(size=40)
    public = np.concatenate([10 * stratum + rng.permutation(10)[:5] for stratum in range(4)])
    is_public = np.isin(np.arange(40), public)
    sets = values[is_public] + 2 * GAIN * differs, values[~is_public]
    found = permuted_mean_difference(
        *sets,
        *np.arange(40).reshape(2, 20),
        num_permutations=RESAMPLES,
        alpha=LEVEL,
        rng=rng,
        strata=[*strata[is_public], *strata[~is_public]],
    )
    return found.p_value < LEVEL


RULES = [
    Rule("prism", "150 documents", "asymptotic", prism(None)),
    Rule("prism", "150 documents of 15 clusters", "asymptotic", prism(15), 0.2),
    Rule("dose, *not used*", "the panel's shape of errors", "model-based", dose(1.0, "not used", SHAPE)),
    Rule("dose, *not used*", "another shape", "model-based", dose(1.0, "not used", OTHER)),
    Rule("dose, *used*", "the panel's shape of errors", "model-based", dose(0.0, "used", SHAPE)),
    Rule("dose, *used*", "another shape", "model-based", dose(0.0, "used", OTHER)),
    Rule("difference_in_differences", "150 and 150, skewed", "exact", permuted(150, 150)),
    Rule("difference_in_differences", "30 and 300, skewed", "exact", permuted(30, 300)),
    Rule("difference_in_differences", "40 and 30 clusters", "exact", permuted_clusters),
    Rule("(Welch in its place)", "30 and 300, skewed", "asymptotic", welch),
    Rule("llm_di, at 10%", "200 and 200", "asymptotic", llm_di, 0.3),
    Rule("pacost, paired_t", "100 pairs", "asymptotic", paired),
    Rule("order", "50 shards", "asymptotic", order),
    Rule("holdout", "20 and 20 in four strata", "exact", drawn_within_strata, 2.0),
    Rule("canary", "10 canaries of 100 variants", "exact", canaries),
    Rule("identifiers", "10 identifiers of 20 variants", "exact", identifiers, 2.0),
    Rule("sampled_completion, prefix_completion", "50 and 50 works", "exact", coverage),
    Rule("mc_pdd", "150 and 150 documents", "asymptotic", rates),
    Rule("decop, name_cloze", "15 and 15 works", "asymptotic", works),
]


def measured(rule: Rule, differs: bool, worlds: int) -> str:
    """Share of the worlds in which it rejects, with its exact 95% interval."""
    number = max(20, round(worlds * rule.share))
    seeds = tracked(range(number), f"{rule.method}, {rule.world}", "worlds")
    hits = sum(rule.rejects(np.random.default_rng([seed, differs]), differs) for seed in seeds)
    low, high = exact_interval(hits, number, 0.05)
    return f"{hits / number:.1%} ({low:.1%} to {high:.1%})" if not differs else f"{hits / number:.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--markdown", type=Path, help="also write the table to this file")
    given = parser.parse_args()
    rows = ["| rule | world | guarantee | level at 5% (95% interval) | power |", "| --- | --- | --- | ---: | ---: |"]
    for rule in RULES:
        level, power = (measured(rule, differs, given.worlds) for differs in (False, True))
        rows.append(f"| {rule.method} | {rule.world} | {rule.guarantee} | {level} | {power} |")
    table = "\n".join(rows)
    print(table)
    if given.markdown is not None:
        given.markdown.write_text(
            "# Levels of the verdict rules\n\nMade by `python benchmarks/levels.py` (nonmember "
            f"{nonmember.__version__}), where each world is described; {given.worlds:,} worlds, of LLM-DI and of PRISM "
            f"by clusters a part of them, of hold-outs and identifiers twice as many.\n\n{table}\n",
            encoding="utf-8",
        )


if __name__ == "__main__":
    main()
