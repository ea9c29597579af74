"""The numbers of docs/studies/new_scores.md: WBC, LiRA, RMIA and CoDeC in the micro world, on sets of known readings.

python docs/new_scores.py STORE NUMBERS.json      some 25 minutes on two cores; trainings are kept in STORE
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nonmember.artifacts import Builder
from nonmember.artifacts.store import Store
from nonmember.config.build import build
from nonmember.config.compose import composed
from nonmember.config.runs import builder_of
from nonmember.corpora import CorpusSpec
from nonmember.corpora.transforms.splits import Part, Select
from nonmember.models import ModelSpec
from nonmember.observations import Scored
from nonmember.records.exposure import Exposure
from nonmember.scores import Codec, Lira, Loss, MinKPlusPlus, Rmia, Wbc
from nonmember.stats.classification import roc_auc
from nonmember.stats.two_groups import mean_difference
from nonmember.training import Trained
from nonmember.training.planting import planted

DOMAINS = ("scipy", "sympy", "torch")
READINGS = (0, 1, 2, 4, 8, 0)  # of the six sets, rotated over six targets: of 36 questions 12 are unread
NUMBERS = (1, 2, 4, 8)  # of out-models
DOCUMENTS, GENERAL, MAX_TOKENS = 50, 300, 128


def main(store: Path, path: Path) -> None:
    overrides = ["world=micro", "logger=none", "model@target=micro_target_general", f"store={store}"]
    with composed("audit", overrides) as (config, _):
        continued, builder = build(config.target), builder_of(config, Store(store))
        members, unread, continuation = (build(config.world[name]) for name in ("members", "heldout", "continuation"))
    base, training = continued.base, continued.training
    sets = {f"{domain}-{take}": half(members, take, domain) for domain in DOMAINS for take in ("x", "y")}
    heldout, others = ({domain: half(unread, take, domain) for domain in DOMAINS} for take in ("x", "y"))
    general = Select(continuation, num_documents=GENERAL, salt="new scores")
    more = Select(continuation, num_documents=GENERAL + sum(READINGS) * DOCUMENTS, salt="new scores")  # as many texts
    outs = [Trained(base, training, more, seed, label=f"out-{seed}") for seed in range(301, 310)]
    reference, out_models = outs[8], tuple(outs[:8])
    exposures = [Exposure(1.0, number) for number in READINGS]
    rows = []
    for place, audited in enumerate(sets):
        target = planted(base, training, general, sets, exposures, next(iter(sets)), place, 401)
        for index, (name, corpus) in enumerate(sets.items()):
            domain = name.split("-")[0]
            texts = (corpus, heldout[domain], others[domain])
            rows += measured(builder, target, reference, out_models, texts, name, READINGS[(index + place) % 6])
            path.write_text(json.dumps(rows))
        sys.stdout.write(f"{audited}: {len(rows)} rows\n")


def half(corpus: CorpusSpec, take: str, domain: str) -> CorpusSpec:
    """One of two disjoint sets of a domain."""
    sizes = dict.fromkeys(("x", "y"), DOCUMENTS)
    part = Part(corpus, take=take, sizes=sizes, by="document", per="domain", domains=DOMAINS, salt="new scores")
    return Select(part, domains=(domain,))


def measured(
    builder: Builder,
    target: ModelSpec,
    reference: ModelSpec,
    outs: tuple[ModelSpec, ...],
    texts: tuple[CorpusSpec, CorpusSpec, CorpusSpec],
    name: str,
    readings: int,
) -> Iterator[dict[str, Any]]:
    """A row per score and number of out-models."""
    asked = [(score, 0) for score in (Loss(), MinKPlusPlus(0.2), Wbc(), Codec(3))]
    asked += [(score, number) for number in NUMBERS for score in (Lira(), Lira(scale="z"), Rmia())]
    for score, number in asked:
        values = {
            (group, role): Scored(
                role, model, corpus, score, MAX_TOKENS, reference=reference, prefix=texts[2], out_models=outs[:number]
            )
            .measure(builder)
            .values.values
            for group, corpus in zip(("suspect", "heldout"), texts, strict=False)
            for role, model in (("target", target), ("reference", reference))
            if role == "target" or not isinstance(score, Codec)
        }
        suspect, heldout = values["suspect", "target"], values["heldout", "target"]
        row = {"set": name, "readings": readings, "score": score.name, "out_models": number}
        row |= {"mean": suspect.mean(), "less_heldout": suspect.mean() - heldout.mean()}
        row["auc"] = roc_auc(np.concatenate([suspect, heldout]), np.repeat([True, False], DOCUMENTS))
        if ("suspect", "reference") in values:
            gains = [values[group, "target"] - values[group, "reference"] for group in ("suspect", "heldout")]
            clusters = [[f"{group}{index}" for index in range(DOCUMENTS)] for group in "sh"]
            test = mean_difference(*gains, *clusters, alpha=0.05)
            row |= {"less_both": test.difference, "t": test.t, "p": test.p_value}
        yield {key: float(value) if isinstance(value, np.floating) else value for key, value in row.items()}


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
