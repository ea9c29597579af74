"""Tests with an exact error rate, by how often the text was read: `python benchmarks/guaranteed.py FOLDER`.

A model of world=micro that has read none of it is continued on general text with, for each of 1, 2, 4 and 8 readings,
documents that a key published (others are kept), canaries, and documents that hold a natural identifier. FOLDER keeps
what was made; FOLDER/guaranteed.json has the power at p < .05 of each test by readings, over draws of what one owner
would have, and docs/studies/guaranteed.svg draws it. `--draw` only draws. Fifteen minutes of a core.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from nonmember.config.build import build
from nonmember.config.compose import composed
from nonmember.config.runs import builder_of
from nonmember.corpora import Canaries, CorpusSpec, Identifiers, InMemory
from nonmember.corpora.sources.documents import digest_of
from nonmember.evidence import canaries as planting
from nonmember.observations import Scored
from nonmember.records import Document
from nonmember.scores import Extraction, LogProbability, Loss, Score
from nonmember.stats.canaries import rank_sum_test
from nonmember.stats.two_groups import permuted_mean_difference
from nonmember_verify.holdout import drawn

FIGURE = Path(__file__).parents[1] / "docs" / "studies" / "guaranteed.svg"
READINGS = (1, 2, 4, 8)
SEEDS = (31, 32)  # of trainings, each with draws of its own
WORLD = (
    "world=micro model@target=micro_target_general world.num_general.pretraining=3000 "
    "world.num_general.continuation=1500"
)
DRAWS, PERMUTATIONS, ALPHA = 400, 999, 0.05
NUM_CANARIES, NUM_VARIANTS, NUM_WORDS = 20, 50, 12
NUM_STRINGS = 20  # documents with an identifier, for each number of readings
OF_AN_OWNER = {"documents": 20, "canaries": 10, "identifiers": 10}  # published documents, and as many kept


def canary_of(name: str) -> str:
    """Or the identifier, of a variant's id."""
    return name.rpartition("#" if "#" in name else "/")[0]


def key_of(*names: object) -> bytes:
    return hashlib.sha256(json.dumps(["study of guarantees", *names]).encode()).digest()


class Study:
    def __init__(self, folder: Path, config: Any, seed: int) -> None:
        self.folder, self.seed, self.builder = folder / str(seed), seed, builder_of(config)
        target = build(config.target)
        self.base, general = target.base, self.builder.get(target.corpus)
        sets = [self.builder.get(build(item)).documents for item in config.world.half_sets.values()]
        pool = [item for documents in sets for item in documents]
        public = drawn(key_of("draw", seed), {item.doc_id: item.domain for item in pool}, 0.5)
        published = [item for item in pool if item.doc_id in public]
        self.read = {readings: published[index :: len(READINGS)] for index, readings in enumerate(READINGS)}
        self.kept = [item for item in pool if item.doc_id not in public]
        self.named = self._with_identifiers(general.documents)
        text = list(general.documents)
        for readings in READINGS:
            text = self._with_canaries(text, general, readings)
            again = [*self.read[readings], *self.named[readings]]
            text += [replace(item, doc_id=f"{item.doc_id}#{copy}") for copy in range(readings) for item in again]
        self.model = replace(target, corpus=self.corpus(text), seed=seed, label=f"read-{seed}")

    def corpus(self, documents: Sequence[Document]) -> CorpusSpec:
        rows: list[dict[str, Any]] = [{"id": item.doc_id, "text": item.text} for item in documents]
        corpus = InMemory(digest_of(rows), "text", "id")
        corpus.provide(self.builder, rows)
        return corpus

    def _with_identifiers(self, documents: Sequence[Document]) -> Mapping[int, list[Document]]:
        """General documents with a random UUID or hash at the end, another set for each number of readings."""
        found: dict[int, list[Document]] = {}
        for place, readings in enumerate(READINGS):
            found[readings] = []
            for index in range(NUM_STRINGS):
                digest = hashlib.sha256(key_of("string", self.seed, readings, index)).digest()
                string = str(uuid.UUID(bytes=digest[:16], version=4)) if index % 2 else digest[:20].hex()
                words = documents[place * NUM_STRINGS + index].text.split()[:40]
                name = f"named-{readings}-{index}"
                found[readings].append(Document(name, f"{' '.join(words)} The revision is {string} of the project."))
        return found

    def _with_canaries(self, text: list[Document], general: Any, readings: int) -> list[Document]:
        key = key_of("canaries", self.seed, readings)
        size = {"canaries": NUM_CANARIES, "variants": NUM_VARIANTS, "length": NUM_WORDS}
        variants = planting.random_variants(general, key, **size)
        corpus = replace(general, documents=tuple(text))
        planted, private = planting.plant(corpus, variants, key, kind="random", copies=readings)
        if not (self.folder / str(readings)).exists():
            planting.write(self.folder / str(readings), planted, private)
        return planted

    def scores(self, model: Any, corpus: CorpusSpec, score: Score) -> dict[str, float]:
        values = Scored("target", model, corpus, score, 512).measure(self.builder).values
        return dict(zip(values.doc_ids, values.values.tolist(), strict=True))


def measure(folder: Path) -> dict[str, Any]:
    found: dict[str, dict[int, list[float]]] = {}
    for seed in SEEDS:
        with composed("audit", [*WORLD.split(), "trainer=cpu", f"outputs='{folder}'"]) as (config, _):
            study = Study(folder, config, seed)
            study.builder.get(study.model)
            for name, of in tests(study).items():
                for readings in (0, *READINGS):
                    rng = np.random.default_rng([seed, readings])
                    p_values = [of(readings, rng) for _ in range(DRAWS)]
                    found.setdefault(name, {}).setdefault(readings, []).append(float(np.mean(np.less(p_values, ALPHA))))
                    print(seed, name, readings, found[name][readings][-1], flush=True)
    result = {"of_an_owner": OF_AN_OWNER, "seeds": SEEDS, "power": found}
    (folder / "guaranteed.json").write_text(json.dumps(result, indent=1) + "\n")
    return result


def tests(study: Study) -> dict[str, Callable[[int, np.random.Generator], float]]:
    """Name -> p of a draw of what an owner has, by readings; 0: text that was not read, in the place of the read."""
    kept = study.corpus(study.kept)
    read = {readings: study.corpus(documents) for readings, documents in study.read.items()}

    def of_sets(score: Score, *, less_the_base: bool) -> Callable[[int, np.random.Generator], float]:
        def values(corpus: CorpusSpec) -> np.ndarray:
            own = study.scores(study.model, corpus, score)
            before = study.scores(study.base, corpus, score) if less_the_base else dict.fromkeys(own, 0.0)
            gains = np.array([own[name] - before[name] for name in own])
            return gains[np.isfinite(gains)]

        unread, by_readings = values(kept), {name: values(corpus) for name, corpus in read.items()}

        def p(readings: int, rng: np.random.Generator) -> float:
            number = OF_AN_OWNER["documents"]
            others = rng.permutation(unread)
            first = rng.permutation(by_readings[readings])[:number] if readings else others[number : 2 * number]
            names = [str(index) for index in range(number)]
            sets = (first, others[:number], names[: len(first)], names)
            return permuted_mean_difference(*sets, num_permutations=PERMUTATIONS, alpha=ALPHA, rng=rng).p_value

        return p

    def of_ranks(
        by_readings: Mapping[int, tuple[dict, dict]], number: int
    ) -> Callable[[int, np.random.Generator], float]:
        """(name -> score of the published variant, name -> scores of the others)."""

        def p(readings: int, rng: np.random.Generator) -> float:
            published, private = by_readings[readings or READINGS[0]]
            chosen = rng.choice(sorted(published), number, replace=False)
            own = [published[name] for name in chosen]
            others = [np.array(private[name]) for name in chosen]
            if not readings:  # one of the others in the place of the published one
                own = [float(item[0]) for item in others]
                others = [item[1:] for item in others]
            return rank_sum_test(own, others).p_value

        return p

    def variants(corpora: Callable[[int], Sequence[CorpusSpec]], score: Score) -> dict[int, tuple[dict, dict]]:
        found = {}
        for readings in READINGS:
            parts = [study.scores(study.model, corpus, score) for corpus in corpora(readings)]
            others: dict[str, list[float]] = {}
            for name, value in parts[1].items():
                others.setdefault(canary_of(name), []).append(value)
            found[readings] = ({canary_of(name): value for name, value in parts[0].items()}, others)
        return found

    def canaries(readings: int) -> Sequence[CorpusSpec]:
        private = str(study.folder / str(readings) / planting.PRIVATE)
        return Canaries(private, "published"), Canaries(private, "private")

    def identifiers(readings: int) -> Sequence[CorpusSpec]:
        named, more = study.corpus(study.named[readings]), {"num_alternatives": 99, "seed": study.seed}
        return Identifiers(named, "published", **more), Identifiers(named, "alternatives", **more)

    return {
        "hold-out": of_sets(Loss(), less_the_base=False),
        "the same less a reference": of_sets(Loss(), less_the_base=True),
        "extraction": of_sets(Extraction(50), less_the_base=False),
        "canaries": of_ranks(variants(canaries, Loss()), OF_AN_OWNER["canaries"]),
        "natural identifiers": of_ranks(variants(identifiers, LogProbability()), OF_AN_OWNER["identifiers"]),
    }


def draw(result: Mapping[str, Any]) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "guaranteed", "font.size": 9, "font.family": "sans-serif"}
    figure, axes = plt.subplots(figsize=(5.2, 3.0), layout="constrained")
    for (name, by_readings), colour in zip(
        result["power"].items(), ("#0072b2", "#56b4e9", "#000000", "#d55e00", "#009e73"), strict=True
    ):
        powers = [np.mean(by_readings[key]) for key in by_readings]
        axes.plot(range(len(powers)), powers, "o-", color=colour, label=name)
    axes.axhline(ALPHA, color="#999999", lw=0.8)
    axes.set_xticks(range(len(READINGS) + 1), ["0", *map(str, READINGS)])
    axes.set(xlabel="readings", ylabel="share of draws with p < .05", ylim=(0, 1.04))
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(FIGURE, metadata={"Date": None})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draw", action="store_true", help="only draw what was measured")
    options = parser.parse_args()
    folder = options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    draw(json.loads((folder / "guaranteed.json").read_text()) if options.draw else measure(folder))
