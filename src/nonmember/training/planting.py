"""Planted models: continued pretraining on general text with sets mixed in at known doses.

One run can carry many sets at once, each at a reading of its own, so that the audits of all of them share its cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nonmember.checks import wrong
from nonmember.corpora import Component, CorpusSpec, Mixture
from nonmember.corpora.transforms.mixtures import planted_part
from nonmember.models.base import ModelSpec, label_of
from nonmember.records.exposure import Exposure
from nonmember.training import Trained
from nonmember.training.recipes import AdapterTuning, Pretraining


def planted(
    base: ModelSpec,
    training: Pretraining | AdapterTuning,
    general: CorpusSpec,
    sets: Mapping[str, CorpusSpec | None],
    readings: Sequence[Exposure],
    audited: str,
    reading: int,
    seed: int,
    order: int | None = None,
) -> Trained:
    """`base` continued on `general`, into which all sets are mixed, each by another reading.

    sets: by name; those that are None are left out.

    audited: the set that is read by `readings[reading]`; the set after it is read by the reading after that, and so on,
    counted round. So as many runs as there are readings give every set every reading once, and to ask for another set
    at the reading it has in a run that was made finds that run.

    order: the sets are gone round in an order drawn by this number; None: in their own.
    """
    planted_sets = {name: item for name, item in sets.items() if item is not None}
    if order is not None:
        drawn = np.random.default_rng(order).permutation(len(planted_sets))
        planted_sets = {name: planted_sets[name] for name in np.array(list(planted_sets))[drawn].tolist()}
    if audited not in planted_sets:
        raise ValueError(wrong("audited", f"one of the planted sets {', '.join(planted_sets)}", audited))
    if not 0 <= reading < len(readings):
        raise ValueError(wrong("reading", f"the place of one of {len(readings)} readings, from 0", reading))
    rotation = reading - list(planted_sets).index(audited)
    components = [
        planted_part(item, readings[(index + rotation) % len(readings)])
        for index, item in enumerate(planted_sets.values())
    ]
    corpus = Mixture((Component(general, 1), *components))
    return Trained(base, training, corpus, seed, label=f"{label_of(base)}+{readings[reading].label}")
