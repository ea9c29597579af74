"""Audits by the dose meter as a pilot: what planting more controls, or more documents, would exclude."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nonmember.checks import require_number
from nonmember.records import FloatArray
from nonmember.reports.core.documents import read_values
from nonmember.reports.planted.rereading import MeasuredFeatures, measured, measured_on, panel_between, panel_shape
from nonmember.results.load import Run, load_runs
from nonmember.results.pilots import require_alike
from nonmember.stats.dose_curve import dose_curve
from nonmember.stats.dose_planning import DosePilot, scale_by_documents

PARTS = (1, 2, 4)  # the set whole, in halves and in quarters


@dataclass(frozen=True)
class KnownDoses:
    pilots: Mapping[str, DosePilot]  # by set
    excluded: float  # readings that are to be
    num_documents: int  # of the pilot's smallest set
    round: int  # how many models one round of controls trains
    seconds: float | None  # to train one of them, None where nothing tells
    notes: tuple[str, ...]  # where it is from


@dataclass(frozen=True)
class DoseAudits:
    folders: Sequence[str]  # every result by the dose meter below them, all with controls of the same readings
    exclude: float | None  # so many readings or more; None: what the audits exclude

    def __post_init__(self) -> None:
        require_number(self.exclude, "(0, inf)", "pilot.exclude", or_null=True, hint="It is a number of readings.")

    def known(self, store: Path) -> KnownDoses:
        """store: not used; how long a control took stands in the results. Raises ValueError where no audit tells."""
        runs = [
            run
            for run in load_runs([Path(folder) for folder in self.folders]).runs
            if run.question.method == "dose" and measured(run) is not None
        ]
        where = " or ".join(map(str, self.folders))
        if not runs:
            raise ValueError(
                f"There is no result of the dose meter below {where}. Run `nonmember audit method=dose` on a few "
                "documents first, and name its folder: pilot.folders=[FOLDER]."
            )
        of_runs: dict[str, Callable[[Run], object]] = {
            "controls of different readings": lambda run: [dose for dose, _ in _round(run)],
            "different worlds": lambda run: run.question.world,
            "different panels": lambda run: run.question.settings.get("panel"),
            "different lengths of text": lambda run: run.question.settings.get("max_tokens"),
        }
        require_alike(runs, where, of_runs)
        one_per_set = {run.question.corpus: run for run in runs}
        pilots = {name: _pilot(run) for name, run in one_per_set.items()}
        excluded = self.exclude or _excluded(runs)
        sizes = [run.statistics.num_documents for run in one_per_set.values()]
        return KnownDoses(
            pilots, excluded, min(sizes), len(_round(runs[0])), _seconds(runs), tuple(_notes(runs, pilots, sizes))
        )


def _round(run: Run) -> tuple[tuple[float, float], ...]:
    """Readings (of the set, of related text) that one seed of the controls plants."""
    controls: Any = run.statistics.details["controls"]
    read = sorted((float(item["dose"]), float(item["related"])) for item in controls)
    return tuple(read[:: _num_seeds(run)])


def _num_seeds(run: Run) -> int:
    controls: Any = run.question.settings.get("controls", {})
    return len(controls.get("seeds") or [0])


def _excluded(runs: Sequence[Run]) -> float:
    found = sorted({float(run.statistics.details["excluded_dose"]) for run in runs})
    if len(found) > 1:
        raise ValueError(
            f"The audits exclude different readings ({', '.join(f'{item:g}' for item in found)}); add "
            "pilot.exclude=NUMBER."
        )
    return found[0]


def _pilot(run: Run) -> DosePilot:
    """Of one set."""
    whole = measured(run)
    assert whole is not None
    curve = dose_curve(whole.of(list(whole.target)), panel_shape(run))
    sizes, scales = zip(*_scales(run, curve.covariance), strict=True)
    models, documents = scale_by_documents(sizes, scales) if len(sizes) > 1 else (1.0, 0.0)
    return DosePilot(curve, _round(run), models, documents, panel_between(run))


def _scales(run: Run, covariance: FloatArray) -> Iterator[tuple[int, float]]:
    """(documents, size of the errors as a multiple of those on the whole set); of halves and quarters, where the scores
    are kept, the mean."""
    yield run.statistics.num_documents, 1.0
    try:
        values = read_values(run)
    except ValueError:
        return
    for parts in PARTS[1:]:
        number = run.statistics.num_documents // parts
        pieces = [measured_on(run, values, number, skip=index * number) for index in range(parts)]
        if all(piece is not None for piece in pieces):
            yield number, float(np.mean([_scale(item, covariance) for item in pieces if item is not None]))


def _scale(of: MeasuredFeatures, covariance: FloatArray) -> float:
    return float(dose_curve(of.of(list(of.target)), covariance).covariance[0, 0] / covariance[0, 0])


def _seconds(runs: Sequence[Run]) -> float | None:
    """Wall time a trained model of the audits that trained some, the rest of their work with it."""
    making = [run.result.provenance for run in runs if run.result.provenance.made.get("models_trained", 0) > 0]
    trained = sum(item.made["models_trained"] for item in making)
    return sum(item.seconds for item in making) / trained if trained else None


def _notes(runs: Sequence[Run], pilots: Mapping[str, DosePilot], sizes: Sequence[int]) -> Iterator[str]:
    documents = f"{sizes[0]}" if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"
    yield f"{len(runs)} audits of {len(pilots)} sets of {documents} documents."
    if any(not pilot.documents for pilot in pilots.values()):
        yield (
            "What fewer documents would cost could not be determined for every set (no scores beside the result, or "
            "too few documents): there it is assumed that their number does not matter."
        )
