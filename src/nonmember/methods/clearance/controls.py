"""Planted controls: models known to have read the suspect set at a known dose.

The target's weights being at hand or not, a stand-in is continued on general text with the set planted in it, once for
every reading and seed. A reading of no exposures is the negative control: the same training without the set.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from nonmember.checks import Checked, Distinct, Number, require_choice, require_seed
from nonmember.corpora import CorpusSpec
from nonmember.models import ModelSpec
from nonmember.records.exposure import Exposure
from nonmember.records.groups import SUSPECT
from nonmember.stats.margins import Extra
from nonmember.training import Trained
from nonmember.training.planting import planted
from nonmember.training.recipes import Pretraining


@dataclass(frozen=True)
class PlantedControl:
    """A model that read the suspect set so and no more."""

    reading: Exposure
    seed: int
    model: Trained


@dataclass(frozen=True)
class PlantedControls(Checked):
    stand_in: ModelSpec  # the target, or a model declared to be like it, that has not read the set
    training: Pretraining  # how it is continued, on `general` and what is planted in it
    general: CorpusSpec
    readings: Sequence[Exposure]  # those to plant; one of them with no exposures is the negative control
    # Of the training, one model each per reading.
    seeds: Annotated[Sequence[int], Distinct("one or several different whole numbers", require_seed)]
    # Name -> set, where one run is to carry several; `audited` names the one that the suspect set is, or is a part of.
    # Without sets each run carries the suspect set alone.
    sets: Mapping[str, CorpusSpec | None] | None = None
    audited: str | None = None
    # Standard deviation of a target's Delta about that of controls with its reading, beyond what these differ among
    # themselves, for being another model than the stand-in; 0 only where the stand-in is the target itself.
    deviation: Annotated[float, Number("[0, inf)")] = 0.0
    # Degrees of freedom on which it was measured; None where it is known.
    deviation_df: Annotated[float | None, Number("(0, inf)")] = None

    fields_called = "{field} of the controls"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(set(self.readings)) < len(self.readings) or not any(item.exposures for item in self.readings):
            raise ValueError("readings of the controls must differ, and one of them must have exposures.")
        if self.sets:
            require_choice(self.audited, self.sets, "audited", hint="It names the planted set that is audited.")

    @property
    def extra(self) -> Extra:
        return Extra(self.deviation**2, self.deviation_df or math.inf)

    def models(self, suspect: CorpusSpec) -> list[PlantedControl]:
        """A model per reading and seed."""
        sets: Mapping[str, CorpusSpec | None] = {SUSPECT: suspect}
        audited = SUSPECT
        if self.sets and self.audited:
            sets, audited = self.sets, self.audited
        return [
            PlantedControl(
                reading,
                seed,
                planted(self.stand_in, self.training, self.general, sets, self.readings, audited, index, seed),
            )
            for index, reading in enumerate(self.readings)
            for seed in self.seeds
        ]


@dataclass(frozen=True)
class SharedControls(PlantedControls):
    """Some controls in runs that were planted for more: those of `readings` among the readings of `rotation`, which the
    runs give to their sets in turn."""

    rotation: Sequence[Exposure] = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if others := [reading.label for reading in self.readings if reading not in self.rotation]:
            raise ValueError(f"readings must be among those of the rotation; got {', '.join(others)} beside them.")

    def models(self, suspect: CorpusSpec) -> list[PlantedControl]:
        whole = PlantedControls(
            self.stand_in, self.training, self.general, self.rotation, self.seeds, self.sets, self.audited
        )
        return [control for control in whole.models(suspect) if control.reading in self.readings]
