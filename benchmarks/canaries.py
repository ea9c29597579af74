"""Canaries in the micro world: `python benchmarks/canaries.py FOLDER`, for docs/studies/canaries.md.

An unread model is trained on general text of world=micro, and continued on other such text with canaries in it, planted
as `nonmember plant` plants them: by kind, length and copies, all in one training. FOLDER keeps what was made;
FOLDER/canaries.json has the numbers:

null: p of sets of canaries that a model did not read, 200 under each of the two models.
found: ranks and shift of the published variants by kind, length and copies.
removed: what exact deduplication of lines, near-duplicate removal of documents and a perplexity filter take away.

Then draws docs/studies/canaries.svg. With `--draw` only that. With `--world smollm` a smaller design on SmolLM2, whose
figure is docs/studies/canaries_smollm.svg.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from nonmember.config.build import build
from nonmember.config.compose import composed
from nonmember.config.runs import builder_of
from nonmember.corpora import Canaries, Cleaned, Documents, InMemory
from nonmember.corpora.sources.documents import digest_of
from nonmember.evidence import canaries as planting
from nonmember.observations import Scored
from nonmember.records import Corpus
from nonmember.scores import Loss
from nonmember.stats import exact_interval
from nonmember.stats.canaries import rank_sum_cdf, rank_sum_test
from nonmember.training import Trained

FIGURES = Path(__file__).parents[1] / "docs" / "studies"
DRAWS = 2000  # of 10 canaries with replacement, to see how often they are found


@dataclass(frozen=True)
class Design:
    """Of the study. Those of another world, and of tests, are smaller."""

    world: str = "world=micro model@target=micro_target_general world.num_general.pretraining=3000"
    documents: int = 1500  # of the continuation
    kinds: Sequence[tuple[str, int]] = (
        ("random", 6),
        ("random", 12),
        ("random", 24),
        ("sampled", 12),
    )  # words or tokens
    copies: Sequence[int] = (1, 2, 4, 8, 16)
    canaries: int = 16  # of each condition and training
    variants: int = 50
    seeds: Sequence[int] = (21, 22)  # of trainings, each with canaries of its own
    null: tuple[int, int, int, int] = (200, 3, 20, 8)  # sets that no model reads, their canaries, variants and words
    figure: str = "canaries.svg"

    def conditions(self) -> Iterator[tuple[str, int, int, str]]:
        for kind, length in self.kinds:
            for copies in self.copies:
                yield kind, length, copies, f"{kind}-{length}-{copies}"


SMOLLM = Design(
    "world=smollm model@target=smollm_general target.training.optimization.batch_size=4",
    200,
    Design.kinds[:3],
    canaries=8,
    variants=15,
    null=(800, 2, 8, 6),
    figure="canaries_smollm.svg",
)
DESIGNS = {"micro": Design(), "smollm": SMOLLM}


def key_of(*names: object) -> bytes:
    """Of a study, whose answers are known anyway: the same each time."""
    return hashlib.sha256(json.dumps(["study of canaries", *names]).encode()).digest()


class Study:
    """Models, documents and where things are kept."""

    def __init__(self, folder: Path, config: Any, design: Design):
        self.folder, self.design = folder, design
        self.target: Trained = build(config.target)
        self.base = self.target.base
        self.builder = builder_of(config)
        self.documents: Corpus = self.builder.get(self.target.corpus)

    def scores(self, model: Any, folder: Path, part: Any) -> dict[str, list[float]]:
        """Canary -> mean log-probabilities of its variants."""
        corpus = Canaries(str(folder / planting.PRIVATE), part)
        values = Scored("target", model, corpus, Loss(), 256).measure(self.builder).values
        found: dict[str, list[float]] = {}
        for doc_id, value in zip(values.doc_ids, values.values.tolist(), strict=True):
            found.setdefault(doc_id.partition("/")[0], []).append(value)
        return found

    def texts(self, texts: list[str]) -> np.ndarray:
        """Mean log-probability of each under the unread model."""
        rows = [{"id": str(index), "text": text} for index, text in enumerate(texts)]
        corpus = InMemory(digest_of(rows), "text", "id")
        corpus.provide(self.builder, rows)
        return Scored("target", self.base, corpus, Loss(), 256).measure(self.builder).values.values


def plant(study: Study, seed: int) -> Corpus:
    """The documents with the canaries of all conditions in them, for one training."""
    documents, design = study.documents, study.design
    for kind, length, copies, name in design.conditions():
        key, size = key_of(name, seed), {"canaries": design.canaries, "variants": design.variants, "length": length}
        if kind == "random":
            variants = planting.random_variants(study.documents, key, **size)
        else:
            variants = planting.sampled_variants(
                study.documents, key, study.builder, study.base, **size, temperature=1.5
            )
        planted, private = planting.plant(documents, variants, key, kind=kind, copies=copies)
        documents = replace(documents, documents=tuple(planted))
        if not (study.folder / str(seed) / name).exists():
            planting.write(study.folder / str(seed) / name, planted, private)
    return documents


def null(study: Study, models: dict[str, Any]) -> dict[str, Any]:
    """p of sets of canaries that no model read."""
    folder, key = study.folder / "null", key_of("null")
    num_sets, number, num_variants, length = study.design.null
    if not folder.exists():
        size = {"canaries": num_sets * number, "variants": num_variants, "length": length}
        variants = planting.random_variants(study.documents, key, **size)
        planting.write(folder, *planting.plant(study.documents, variants, key, kind="random", copies=1))
    found: dict[str, Any] = {}
    rng = np.random.default_rng(1)
    for name, model in models.items():
        published, private = (study.scores(model, folder, part) for part in ("published", "private"))
        names = list(published)
        tests = [
            rank_sum_test([published[item][0] for item in chosen], [private[item] for item in chosen])
            for chosen in (names[start : start + number] for start in range(0, len(names), number))
        ]
        # A sum of ranks takes few values; between two of them p is drawn.
        drawn = [rng.uniform(rank_sum_cdf(sum(item.ranks) - 1, item.num_variants), item.p_value) for item in tests]
        single = [rank_sum_test(published[item], [private[item]]).p_value for item in names]
        found[name] = {
            "p_values": [item.p_value for item in tests],
            "ks_p": float(stats.kstest(drawn, "uniform").pvalue),
            "below_alpha": {
                str(alpha): float(np.mean([item.p_value <= alpha for item in tests])) for alpha in (0.01, 0.05, 0.1)
            },
            "single_ks_p": float(
                stats.chisquare(
                    np.bincount((np.array(single) * num_variants).round().astype(int) - 1, minlength=num_variants)
                ).pvalue
            ),
        }
    return found


def found(study: Study, models: dict[int, Any]) -> list[dict[str, Any]]:
    """By condition, what the test finds."""
    rows = []
    rng, num_variants = np.random.default_rng(2), study.design.variants
    limit = max(
        (total for total in range(10, 10 * num_variants + 1) if rank_sum_cdf(total, [num_variants] * 10) < 0.05),
        default=0,
    )
    for kind, length, copies, name in study.design.conditions():
        own: list[float] = []
        others: list[list[float]] = []
        for seed, model in models.items():
            folder = study.folder / str(seed) / name
            published, private = (study.scores(model, folder, part) for part in ("published", "private"))
            own += [item[0] for item in published.values()]
            others += [private[item] for item in published]
        test = rank_sum_test(own, others)
        ranks = np.array(test.ranks)
        sums = np.array([ranks[rng.integers(len(ranks), size=10)].sum() for _ in range(DRAWS)])
        hits = int((ranks <= max(1, 0.05 * num_variants)).sum())  # of few variants: those that rank first
        low, high = (getattr(exact_interval(hits, len(ranks), 0.05), end) for end in ("low", "high"))
        rows.append(
            {
                "kind": kind,
                "length": length,
                "copies": copies,
                "shift": test.shift,
                "share_below": test.share_below,
                "p_of_all": test.p_value,
                "single": hits / len(ranks),
                "single_interval": [low, high],
                "ten": float((sums <= limit).mean()),
                "ranks": list(test.ranks),
            }
        )
    return rows


def removed(study: Study, planted: Corpus) -> dict[str, Any]:
    """By exact deduplication of lines, near-duplicate removal and a filter of perplexity."""
    lines = Counter(line for item in planted.documents for line in item.text.splitlines())
    rows: list[dict[str, Any]] = [{"id": item.doc_id, "text": item.text} for item in planted.documents]
    source = InMemory(digest_of(rows), "text", "id")
    source.provide(study.builder, rows)
    kept = study.builder.get(
        Cleaned(source, min_words=1, max_words=100000, long_documents="drop", near_duplicate_threshold=0.7, num_perm=64)
    )
    natural = study.texts([item.text for item in study.documents.documents])
    whole = study.texts([item.text for item in planted.documents])
    bounds = {share: float(np.quantile(natural, share)) for share in (0.01, 0.05, 0.1)}
    by_kind: dict[str, Any] = {}
    folder = study.folder / str(study.design.seeds[0])
    for kind, length, copies, name in study.design.conditions():
        rows_of = json.loads((folder / name / planting.PRIVATE).read_text())["canaries"]
        texts = [item["variants"][item["published"]] for item in rows_of]
        of = by_kind.setdefault(f"{kind}-{length}", {"copies": 0, "distinct_lines": 0, "texts": []})
        of["copies"] += sum(lines[text] for text in texts)
        of["distinct_lines"] += sum(lines[text] > 0 for text in texts)
        of["texts"] += texts
        assert copies * len(texts) == sum(lines[text] for text in texts), name
    for of in by_kind.values():
        values = study.texts(of.pop("texts"))
        of["lines_filtered"] = {str(share): float((values < bound).mean()) for share, bound in bounds.items()}
    return {
        "near_duplicates_dropped": len(planted) - len(kept),
        "documents": len(planted),
        "by_kind": by_kind,
        "documents_filtered": {str(share): float((whole < bound).mean()) for share, bound in bounds.items()},
    }


def measure(folder: Path, design: Design) -> dict[str, Any]:
    size = f"world.num_general.continuation={design.documents}"
    with composed("audit", [*design.world.split(), size, "trainer=cpu", f"outputs='{folder}'"]) as (config, _):
        study, first = Study(folder, config, design), design.seeds[0]
        study.builder.get(study.base)
        models, texts = {}, {}
        for seed in design.seeds:
            texts[seed] = plant(study, seed)
            last = study.folder / str(seed) / list(design.conditions())[-1][-1] / planting.DOCUMENTS
            corpus = Documents(str(last), "text", "id", domain="planted")
            models[seed] = replace(study.target, corpus=corpus, seed=seed, label=f"planted-{seed}")
            study.builder.get(models[seed])
        result: dict[str, Any] = {"found": found(study, models)}
        result["removed"] = removed(study, texts[first])
        result["null"] = null(study, {"unread": study.base, "read other canaries": models[first]})
    (folder / "canaries.json").write_text(json.dumps(result, indent=1) + "\n")
    return result


def draw(result: dict[str, Any], design: Design, file: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "canaries", "font.size": 9, "font.family": "sans-serif"}
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 2.9), layout="constrained")
    for name, item in result["null"].items():
        left.ecdf(item["p_values"], label=f"model: {name}")
    left.plot([0, 1], [0, 1], color="#999999", lw=0.8)
    left.set(xlabel="p of canaries that were not read", ylabel="share of sets", xlim=(0, 1), ylim=(0, 1))
    for (kind, length), colour in zip(design.kinds, ("#56b4e9", "#0072b2", "#000000", "#d55e00"), strict=False):
        rows = [row for row in result["found"] if (row["kind"], row["length"]) == (kind, length)]
        unit = "words" if kind == "random" else "tokens"
        right.plot(design.copies, [row["ten"] for row in rows], "o-", color=colour, label=f"{kind}, {length} {unit}")
    right.axhline(0.05, color="#999999", lw=0.8)
    right.set_xscale("log", base=2)
    right.set_xticks(design.copies, [str(item) for item in design.copies])
    right.set(xlabel="copies of each canary", ylabel="power of 10 canaries, p < .05", ylim=(0, 1.04))
    for axes in (left, right):
        axes.legend(frameon=False, fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, metadata={"Date": None})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draw", action="store_true", help="only draw what was measured")
    parser.add_argument("--world", choices=DESIGNS, default="micro")
    options = parser.parse_args()
    folder, design = options.folder.absolute(), DESIGNS[options.world]
    folder.mkdir(parents=True, exist_ok=True)
    result = json.loads((folder / "canaries.json").read_text()) if options.draw else measure(folder, design)
    draw(result, design, FIGURES / design.figure)
