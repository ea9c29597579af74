"""Simulated worlds without a difference, behind what the documents say of tests in such worlds.

    python benchmarks/simulations.py [--full] [--json PATH] [--markdown PATH]

A twentieth of the worlds without --full, which takes a quarter of an hour of a core. The seed of a world is its number.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import nonmember
from nonmember.runtime.progress import tracked
from nonmember.stats.blind import INTERPRETABLE_UP_TO, blind_baseline
from nonmember.stats.contamination import consistency, level_correlation
from nonmember.stats.inference import dataset_inference
from nonmember.stats.proportions import Hits, difference_of_rates, fisher_greater, shares_greater
from nonmember.stats.two_groups import compare_groups

LEVEL = 0.05
PART = 20  # one of so many worlds, without --full
MEDIAN = " (median)"
Generator = np.random.Generator
World = dict[str, bool | float]  # what came out, by name


@dataclass(frozen=True)
class Found:
    """value: share of the worlds, or median over them."""

    study: str
    name: str
    value: float
    num_worlds: int


@dataclass(frozen=True)
class Study:
    title: str
    num_worlds: int
    world: Callable[[Generator], World]

    def run(self, number: int) -> Iterator[Found]:
        worlds = [self.world(np.random.default_rng(seed)) for seed in tracked(range(number), self.title, "worlds")]
        for name in worlds[0]:
            values = np.array([item[name] for item in worlds], dtype=np.float64)
            value = np.median(values) if name.endswith(MEDIAN) else values.mean()
            yield Found(self.title, name, float(value), number)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="all worlds")
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    parser.add_argument("--markdown", type=Path, help="also write the table to this file")
    given = parser.parse_args()
    found = [
        item for study in STUDIES for item in study.run(study.num_worlds if given.full else study.num_worlds // PART)
    ]
    table = as_table(found)
    print(table)
    if given.json is not None:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        values = {"name": "simulations", "nonmember": nonmember.__version__, "found": [asdict(item) for item in found]}
        given.json.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    if given.markdown is not None:
        given.markdown.parent.mkdir(parents=True, exist_ok=True)
        full = " --full" if given.full else ""
        given.markdown.write_text(
            f"# Simulated worlds without a difference\n\nMade by `python benchmarks/simulations.py{full}` "
            f"(nonmember {nonmember.__version__}), where each world is described. Shares of the worlds, with a "
            f"standard error, or the median over them.\n\n{table}\n",
            encoding="utf-8",
        )


def as_table(found: list[Found]) -> str:
    lines = ["| worlds | what | value | number of worlds |", "| --- | --- | ---: | ---: |"]
    for item in found:
        error = math.sqrt(item.value * (1 - item.value) / item.num_worlds)
        value = f"{item.value:.2f}" if item.name.endswith(MEDIAN) else f"{100 * item.value:.1f} ± {100 * error:.1f}%"
        lines.append(f"| {item.study} | {item.name.removesuffix(MEDIAN)} | {value} | {item.num_worlds:,} |")
    return "\n".join(lines)


# ---------------------------------------------------------------------------------------------- the worlds


def nested_mixtures(rng: Generator) -> World:
    """KDS: two pools of 150 documents of one distribution; 100 a set, 5 draws of 21 nested shares."""
    levels = np.arange(21) / 20
    shares = np.round(100 * levels).astype(int)
    seen, unseen = rng.normal(size=(2, 150))

    def sums(pool: Any) -> Any:
        return np.concatenate([[0.0], np.cumsum(rng.permutation(pool)[:100])])

    scores = np.array([sums(seen)[shares] + sums(unseen)[100 - shares] for _ in range(5)]) / 100
    correlation = abs(level_correlation(levels, scores).spearman)
    return {
        "correlation of the means beyond .9": correlation > 0.9,
        f"median size of that correlation{MEDIAN}": correlation,
        "some gap in c tells draws apart": math.isfinite(consistency(levels, scores, alpha=LEVEL).smallest_gap),
    }


VOCABULARY = [a + b + c for a in "bdfgklmnprst" for b in "aeiou" for c in "blmnrst"]
FREQUENCIES = 1 / np.arange(1, len(VOCABULARY) + 1)


def blind(rng: Generator) -> World:
    """Two groups of 100 documents of 40 words, of Zipf's frequencies."""
    texts = [" ".join(rng.choice(VOCABULARY, size=40, p=FREQUENCIES / FREQUENCIES.sum())) for _ in range(200)]
    found = blind_baseline(
        texts[:100], texts[100:], num_folds=5, inverse_penalty=0.1, num_resamples=1000, alpha=LEVEL, rng=rng
    )
    return {
        "interval of words holds .5": found.words.ci_low <= 0.5 <= found.words.ci_high,
        "interval of characters holds .5": found.characters.ci_low <= 0.5 <= found.characters.ci_high,
        "AUC of words above .6": found.words.auc > INTERPRETABLE_UP_TO,
        "AUC of characters above .6": found.characters.auc > INTERPRETABLE_UP_TO,
    }


def two_sets(rng: Generator) -> World:
    """LLM-DI: 200 documents a set, 20 features (Student's t, 5 degrees of freedom), otherwise by its usual settings."""
    features, seed = rng.standard_t(5, size=(400, 20)), int(rng.integers(2**32))
    ways: dict[str, dict[str, Any]] = {
        "ours": {"outliers": "mean", "compat": False},
        "as the program does, outliers set to the mean": {"outliers": "mean", "compat": True},
        "as the program does, outliers clipped": {"outliers": "clip", "compat": True},
    }

    def p_value(way: dict[str, Any]) -> float:
        found = dataset_inference(
            features[:200],
            features[200:],
            tail_fraction=0.05,
            fit_size=1000,
            num_splits=1,
            learning_rate=0.01,
            num_steps=1000,
            rng=np.random.default_rng(seed),
            **way,
        )
        return float(found.p_values[0])

    return {name: p_value(way) <= LEVEL for name, way in ways.items()}


def one_rate(rate: float, number: int) -> Callable[[Generator], World]:
    def world(rng: Generator) -> World:
        less, more = (Hits(rng.binomial(1, rate, number), np.ones(number, np.int64)) for _ in range(2))
        found = difference_of_rates(less, more, num_resamples=50_000, alpha=LEVEL, rng=rng)
        return {"bootstrap": found.p_value < LEVEL, "z": found.z_p_value < LEVEL}

    return world


def books(rng: Generator) -> World:
    """Prefix completion: 12 and 12 books of 8 passages, which differ in how often they are reproduced."""
    first, second = rng.binomial(8, rng.beta(0.5, 2, (2, 12)))
    p_value = shares_greater(first / 8, second / 8, num_permutations=10_000, alpha=LEVEL, rng=rng).p_value
    return {"books": p_value < LEVEL, "single passages": fisher_greater(first.sum(), 96, second.sum(), 96) < LEVEL}


def works(rng: Generator) -> World:
    """Name cloze: 15 and 15 works of 8 passages, rates from beta(2, 4)."""
    first, second = rng.binomial(8, rng.beta(2, 4, (2, 15))) / 8
    found = compare_groups(first, second, num_resamples=200, num_few=10, alpha=LEVEL, rng=rng)
    return {"either direction": found.p_value < LEVEL, "the one that counts": found.p_value < LEVEL and found.t > 0}


PAIRS = [(rate, number) for rate in (0.01, 0.05, 0.2, 0.5) for number in (50, 150, 400)]
STUDIES = [
    Study("KDS: mixtures of two pools of one distribution", 8000, nested_mixtures),
    Study("Blind baseline: two groups of one distribution", 500, blind),
    Study("LLM-DI: two sets of one distribution, p at most .05", 1000, two_sets),
    *(
        Study(f"MC-PDD: rate {rate:g}, {size} and {size} documents, p below .05", 2000, one_rate(rate, size))
        for rate, size in PAIRS
    ),
    Study("Prefix completion: books that differ, p below .05", 2000, books),
    Study("Name cloze: works that differ, p below .05", 2000, works),
]

if __name__ == "__main__":
    main()
