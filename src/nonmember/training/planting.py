"""Planted models: continued pretraining on general text with sets mixed in at known doses.

One run can carry many sets at once, each at a reading of its own, so that the audits of all of them share its cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nonmember.checks import require_count, require_number, wrong
from nonmember.corpora import Component, CorpusSpec, Mixture, Part
from nonmember.models.base import ModelSpec, label_of
from nonmember.training import Trained
from nonmember.training.recipes import Pretraining


@dataclass(frozen=True, order=True)
class Exposure:
    """How much of a set a model reads. share: of its documents, by hash, so that a smaller share is part of a larger
    one.   exposures: how often each of these; 0: the set is not read."""

    share: float
    exposures: int

    def __post_init__(self) -> None:
        require_number(self.share, "(0, 1]", "share of a reading")
        require_count(self.exposures, 0, "exposures of a reading")

    @property
    def label(self) -> str:
        return f"{self.exposures}x" if self.share == 1 else f"{self.exposures}x{self.share:.0%}"

    def at_least(self, other: Exposure) -> bool:
        """As many documents as in the other, each as often."""
        return self.share >= other.share and self.exposures >= other.exposures

    def of(self, corpus: CorpusSpec) -> Component:
        """What is read of a set, as a component of a mixture."""
        if self.share < 1:
            corpus = Part(corpus, take="read", sizes={"read": self.share}, by="document", per="corpus", salt="reading")
        return Component(corpus, self.exposures)


def planted(
    base: ModelSpec,
    training: Pretraining,
    general: CorpusSpec,
    sets: Mapping[str, CorpusSpec | None],
    readings: Sequence[Exposure],
    audited: str,
    reading: int,
    seed: int,
) -> Trained:
    """`base` continued on `general`, into which all sets are mixed, each by another reading.

    sets: by name; those that are None are left out.

    audited: the set that is read by `readings[reading]`; the set after it is read by the reading after that, and so on,
    counted round. So as many runs as there are readings give every set every reading once, and to ask for another set
    at the reading it has in a run that was made finds that run.
    """
    planted_sets = {name: one for name, one in sets.items() if one is not None}
    if audited not in planted_sets:
        raise ValueError(wrong("audited", f"one of the planted sets {', '.join(planted_sets)}", audited))
    if not 0 <= reading < len(readings):
        raise ValueError(wrong("reading", f"the place of one of {len(readings)} readings, from 0", reading))
    rotation = reading - list(planted_sets).index(audited)
    components = [
        readings[(place + rotation) % len(readings)].of(one) for place, one in enumerate(planted_sets.values())
    ]
    corpus = Mixture((Component(general, 1), *components))
    return Trained(base, training, corpus, seed, label=f"{label_of(base)}+{readings[reading].label}")
