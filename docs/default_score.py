"""The numbers of docs/results/default_score: which score the difference in differences takes by default.

python docs/default_score.py STORE PILE_FOLDER      some hours on two busy cores; trainings are kept in STORE
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from nonmember.artifacts import Builder
from nonmember.artifacts.store import Store
from nonmember.config.build import build
from nonmember.config.compose import composed
from nonmember.config.runs import builder_of
from nonmember.corpora import Cleaned, CorpusSpec, Jsonl
from nonmember.corpora.transforms.splits import Part, Select
from nonmember.models import ModelSpec
from nonmember.observations.tokens import TokenStatistics
from nonmember.records import FloatArray, TokenTable
from nonmember.records.exposure import Exposure
from nonmember.scores import Lira, Loss, MinKPlusPlus, ScoreInputs, Wbc
from nonmember.scores.base import mean_per_document
from nonmember.scores.tails import mean_of_smallest, num_smallest
from nonmember.stats.two_groups import mean_difference
from nonmember.training import Trained
from nonmember.training.planting import planted

REPORT = Path(__file__).parent / "results" / "default_score" / "report.md"
LIBRARIES, OF_PILE = ("torch", "sympy"), ("hackernews", "wikipedia", "pile_cc", "openwebtext2", "pubmed_abstracts")
KINDS = ("torch", "sympy", "hackernews", "wikipedia", "pile_cc", "openwebtext2", "pubmed_abstracts")
CHOSEN = ("torch", "hackernews", "pile_cc")
READINGS = (0, 1, 0, 1, 0, 2, 0)  # of the seven sets, rotated over the targets
NUM_TARGETS, DOCUMENTS, SIZES, MAX_TOKENS = 4, 500, (50, 100, 150, 500), 128
ALPHA = 0.05

Tables = dict[str, TokenTable]  # by role


def main(store: Path, pile: Path) -> None:
    overrides = ["world=micro", "logger=none", "model@target=micro_target_general", f"store={store}", "trainer=cpu"]
    with composed("audit", overrides) as (config, _):
        continued, builder = build(config.target), builder_of(config, Store(store))
        continuation = build(config.world.continuation)
    files = [str(pile / f"{kind}.jsonl.gz") for kind in KINDS if kind in OF_PILE]
    of_pile = Cleaned(Jsonl(files, "id", "text"), 60, 80, "cut", 0.7, 64)
    sets, heldout = (
        {kind: half(of_pile if kind in OF_PILE else continuation, kind, take) for kind in KINDS}
        for take in ("read", "heldout")
    )
    general = Select(continuation, domains=("scipy", "pandas", "sklearn", "networkx"))
    models: dict[str, ModelSpec] = {
        name: Trained(continued.base, continued.training, general, seed, label=f"out-{seed}")
        for name, seed in (("reference", 601), ("out-0", 602), ("out-1", 603))
    }
    exposures = [Exposure(1.0, number) for number in READINGS]
    found: dict[tuple[str, str, int, int], list[tuple[float, float]]] = defaultdict(list)
    for place in range(NUM_TARGETS):
        target = planted(continued.base, continued.training, general, sets, exposures, KINDS[0], place, 701)
        for index, kind in enumerate(KINDS):
            readings = READINGS[(index + place) % len(READINGS)]
            roles = {**models, "target": target}
            groups = [gains(tables(builder, roles, corpus)) for corpus in (sets[kind], heldout[kind])]
            for name, size, tested in tests(*groups):
                found["chosen" if kind in CHOSEN else "reported", name, size, readings].append(tested)
        sys.stderr.write(f"{place + 1} of {NUM_TARGETS} targets\n")
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text("\n".join(report(found)) + "\n", encoding="utf-8")


def half(corpus: CorpusSpec, kind: str, take: str) -> CorpusSpec:
    """500 texts of a kind that are read, or as many that are not."""
    sizes = dict.fromkeys(("read", "heldout"), DOCUMENTS)
    part = Part(corpus, take=take, sizes=sizes, by="document", per="domain", domains=[kind], salt="default score")
    return Select(part, domains=(kind,))


def tables(builder: Builder, roles: Mapping[str, ModelSpec], corpus: CorpusSpec) -> Tables:
    return {role: builder.get(TokenStatistics(model, corpus, "original", MAX_TOKENS)) for role, model in roles.items()}


def gains(of: Tables) -> dict[str, FloatArray]:
    """Score -> [documents] of the target less that of the reference."""
    target, reference, outs = of["target"], of["reference"], (of["out-0"], of["out-1"])

    def less(score: Callable[[TokenTable], FloatArray]) -> FloatArray:
        return score(target) - score(reference)

    gain = target.log_prob.astype(np.float64) - reference.log_prob
    return {
        "loss": less(lambda table: Loss()(ScoreInputs(table)).values),
        "Min-K%++": less(lambda table: MinKPlusPlus(0.2)(ScoreInputs(table)).values),
        "Min-K%++, z above -5": less(clipped_min_k),
        "WBC": less(lambda table: Wbc()(ScoreInputs(table, reference=reference)).values),
        "LiRA, 2 out-models": less(lambda table: Lira()(ScoreInputs(table, out_models=outs)).values),
        "LiRA, z, 2 out-models": less(lambda table: Lira(scale="z")(ScoreInputs(table, out_models=outs)).values),
        "gain of a token at most 1 nat": mean_per_document(target, np.clip(gain, -1, 1)),
        "sign of a token's gain": mean_per_document(target, np.sign(gain)),
    }


def clipped_min_k(table: TokenTable) -> FloatArray:
    z = (table.log_prob - table.mean).astype(np.float64) / np.maximum(table.std, 1e-6)
    return mean_of_smallest(table, np.maximum(z, -5), num_smallest(table.num_tokens, 0.2, "none"))


def tests(
    suspect: Mapping[str, FloatArray], heldout: Mapping[str, FloatArray]
) -> Iterator[tuple[str, int, tuple[float, float]]]:
    """Score, number of documents, (p, t): of disjoint sets of so many documents."""
    for size in SIZES:
        names = [[f"{group}{index}" for index in range(size)] for group in "sh"]
        for first in range(0, DOCUMENTS - size + 1, size):
            for name in suspect:
                pair = [group[name][first : first + size] for group in (suspect, heldout)]
                ranks = rankdata(np.concatenate(pair))
                for shown, values in ((name, pair), (f"{name}, ranks", [ranks[:size], ranks[size:]])):
                    if shown == name or name in ("loss", "Min-K%++", "WBC"):
                        test = mean_difference(*values, *names, alpha=ALPHA)
                        yield shown, size, (test.p_value, test.t)


def report(found: Mapping[tuple[str, str, int, int], list[tuple[float, float]]]) -> Iterator[str]:
    yield "# Which score for the difference in differences"
    yield ""
    yield f"Made by `docs/default_score.py`. Flagged at alpha {ALPHA:g}, by number of documents and readings."
    for part in ("chosen", "reported"):
        names = dict.fromkeys(name for of, name, *_ in found if of == part)
        readings = sorted({reading for of, _, _, reading in found if of == part})
        yield ""
        columns = [{0: "nothing"}.get(reading, f"{reading}x") for reading in readings]
        yield f"**Flagged, {part} sets** (score, documents; disjoint sets of 500 texts; mean t at one reading)"
        yield ""
        yield f"| score, documents | {' | '.join(columns)} | mean t |"
        yield f"|---|{'---|' * (len(columns) + 1)}"
        for name in names:
            for size in SIZES:
                cells = [found[part, name, size, reading] for reading in readings]
                flagged = [f"{sum(p < ALPHA for p, _ in items)} of {len(items)}" for items in cells]
                mean: Any = np.mean([t for _, t in found[part, name, size, 1]])
                yield f"| {name}, {size} | {' | '.join(flagged)} | {mean:.2f} |"


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
