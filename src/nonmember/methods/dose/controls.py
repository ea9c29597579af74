"""The dose meter's controls: models that read the suspect set so often, and related text so often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np

from nonmember.checks import (
    Checked,
    Count,
    Distinct,
    require_choice,
    require_count,
    require_distinct,
    require_seed,
    wrong,
)
from nonmember.corpora import Component, CorpusSpec, Mixture
from nonmember.models import ModelSpec
from nonmember.records.exposure import NOT_READ, Exposure
from nonmember.records.groups import SUSPECT
from nonmember.stats.dose_curve import require_told_apart
from nonmember.training import Trained
from nonmember.training.planting import planted
from nonmember.training.recipes import AdapterTuning, Pretraining

RELATED = "related"


@dataclass(frozen=True)
class ControlModel:
    exposure: Exposure  # to the suspect set
    related: Exposure  # to related text
    role: str  # in the audit
    model: Trained


@dataclass(frozen=True)
class Afterwards(Checked):
    """What models were trained on after they had read the set, such as questions with their answers."""

    training: Pretraining | AdapterTuning
    corpus: CorpusSpec
    seed: Annotated[int, require_seed]

    def of(self, model: Trained) -> Trained:
        return Trained(model, self.training, self.corpus, self.seed, label=f"{model.label}+after")


@dataclass(frozen=True)
class DoseControls(Checked):
    base: ModelSpec  # model that has read nothing of the set; of it all controls are made
    own_base: bool  # whether the target was continued from it as well
    # How it is continued, on `general` and what is planted in it: as the target was, in full or by an adapter, in one
    # epoch.
    training: Pretraining | AdapterTuning
    general: CorpusSpec
    # Of the training; one control per dose and seed.
    seeds: Annotated[Sequence[int], Distinct("different whole numbers", require_seed)]
    # What they are trained on then, as the target was; null: nothing.
    afterwards: Afterwards | None = field(default=None, kw_only=True)

    fields_called = "{field} of the controls"

    def __post_init__(self) -> None:
        super().__post_init__()
        if (epochs := self.training.optimization.epochs) != 1:
            raise ValueError(
                f"The controls' training must have one epoch, or they would read the set {epochs} times as often as "
                "their doses say. Set method.controls.training.optimization.epochs=1."
            )

    @property
    def doses(self) -> list[int]:
        """Planted, each once."""
        raise NotImplementedError

    @property
    def related_text(self) -> CorpusSpec | None:
        """What controls read beside the set or in its place."""
        raise NotImplementedError

    def models(self, suspect: CorpusSpec) -> list[ControlModel]:
        raise NotImplementedError

    def trained(
        self, sets: Mapping[str, CorpusSpec], readings: Sequence[Exposure], audited: str, index: int, seed: int
    ) -> Trained:
        """One of them (see `training.planting.planted`)."""
        model = planted(self.base, self.training, self.general, sets, readings, audited, index, seed)
        return model if self.afterwards is None else self.afterwards.of(model)


@dataclass(frozen=True)
class PlantedDoses(DoseControls):
    """Controls for one suspect set, which each run carries alone."""

    exposures: Sequence[int]  # how often it is read, 0 among them
    # Text of the same kind that is not the set, planted in runs that do not read the set, as often as
    # `related_exposures` says; without it nothing is known of what related text does, and membership is not claimed.
    related: CorpusSpec | None = None
    related_exposures: Annotated[Sequence[int], Distinct("different whole numbers", Count(1), may_be_empty=True)] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        _require_doses(self.exposures, "exposures of the controls")
        require_distinct(self.exposures, "exposures of the controls", "different whole numbers")
        if len(self.seeds) < 2:
            raise ValueError(
                f"seeds of the controls must be two or more, since one does not tell how much controls differ; got "
                f"{list(self.seeds)}."
            )

    @property
    def doses(self) -> list[int]:
        return sorted(self.exposures)

    @property
    def related_text(self) -> CorpusSpec | None:
        return self.related

    def models(self, suspect: CorpusSpec) -> list[ControlModel]:
        pairs = [(Exposure(1.0, exposure), NOT_READ) for exposure in self.exposures]
        if self.related is not None:
            pairs += [(NOT_READ, Exposure(1.0, exposure)) for exposure in self.related_exposures]
        return [
            ControlModel(own, related, _role(own, related, seed), self._model(suspect, own, related, seed))
            for own, related in pairs
            for seed in self.seeds
        ]

    def _model(self, suspect: CorpusSpec, own: Exposure, related: Exposure, seed: int) -> Trained:
        if self.related is None or not related.exposures:
            return self.trained({SUSPECT: suspect}, [own], SUSPECT, 0, seed)
        return self.trained({RELATED: self.related}, [related], RELATED, 0, seed)


@dataclass(frozen=True)
class RotatedDoses(DoseControls):
    """Controls that are shared by many sets: every run carries all of them, each at another of `readings` (as in
    `training.planting.planted`). What a run reads of related text is the most that it reads of another set of the
    family."""

    sets: Mapping[str, CorpusSpec]  # by name, related ones beside one another in groups of `family`
    audited: str  # names the planted set that the suspect set is, or is a part of
    readings: Sequence[Exposure]
    family: Annotated[int, Count(1)] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice(self.audited, self.sets, "audited", hint="It names the planted set that is audited.")
        if not all(reading.share == 1 for reading in self.readings):
            raise ValueError("readings of the controls must be of whole sets; leave out those with a share.")
        _require_doses(self.doses, "readings of the controls")
        if len(self.readings) * len(self.seeds) <= len(self.doses):
            raise ValueError(
                f"Some controls must have read the set equally often, since one of each does not tell how much they "
                f"differ; got {len(self.seeds)} seed for {len(self.readings)} different readings. Add a seed."
            )
        indices = range(len(self.readings))
        read = [(self.readings[index].exposures, self._related(index).exposures) for index in indices]
        require_told_apart(*np.array(read * len(self.seeds), dtype=np.float64).T)

    @property
    def doses(self) -> list[int]:
        return sorted({reading.exposures for reading in self.readings})

    @property
    def related_text(self) -> CorpusSpec | None:
        names = list(self.sets)
        others = [self.sets[names[item]] for item in self._others()]
        return Mixture(tuple(Component(other, 1) for other in others)) if others else None

    def models(self, suspect: CorpusSpec) -> list[ControlModel]:
        return [
            ControlModel(
                reading,
                related := self._related(index),
                f"{_role(reading, related, seed)}-{index}",
                self.trained(self.sets, self.readings, self.audited, index, seed),
            )
            for index, reading in enumerate(self.readings)
            for seed in self.seeds
        ]

    def _related(self, index: int) -> Exposure:
        own = self._own
        read = [self.readings[(index + other - own) % len(self.readings)] for other in self._others()]
        return max(read, key=lambda item: item.exposures, default=NOT_READ)

    @property
    def _own(self) -> int:
        """Place of the audited set."""
        return list(self.sets).index(self.audited)

    def _others(self) -> list[int]:
        """Places of the other sets of its family."""
        first = self._own - self._own % self.family
        return [item for item in range(first, min(first + self.family, len(self.sets))) if item != self._own]


def unread_controls(controls: DoseControls, suspect: CorpusSpec, number: int | None = None) -> tuple[Trained, ...]:
    """Controls that have read nothing of the set, for scores that compare with such models; first those that have read
    least of related text.

    Raises:
        ValueError: For more than there are.
    """
    unread = [item for item in controls.models(suspect) if item.exposure.exposures == 0]
    if number is not None:
        hint = "So many controls have read nothing of the set."
        require_count(number, 1, "number of out-models", at_most=len(unread), hint=hint)
    return tuple(item.model for item in sorted(unread, key=lambda item: item.related.exposures)[:number])


def _require_doses(doses: Sequence[int], name: str) -> None:
    for dose in doses:
        require_count(dose, 0, f"each of the {name}")
    if 0 not in doses or len(set(doses)) < 2:
        raise ValueError(wrong(name, "0 and one or more heavier doses, as in [0, 1, 2, 4, 8]", list(doses)))


def _role(own: Exposure, related: Exposure, seed: int) -> str:
    beside = f"-related-{related.label}" if related.exposures else ""
    return f"control-{own.label}{beside}-{seed}"
