"""Pilot data for planning an audit by calibrated clearance: from stored audits, or given as numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow.parquet as pq
import scipy

from nonmember.artifacts.store import SIDECAR
from nonmember.records.exposure import Exposure
from nonmember.results.load import Run, load_runs
from nonmember.results.readings import planted
from nonmember.results.result import SCORES, AuditResult
from nonmember.stats.crossed import TwoWay, two_way
from nonmember.stats.margins import Extra
from nonmember.stats.planning import Costs, Pilot, PilotAudit, PilotSpread, pilot, shared_part, spread


@dataclass(frozen=True)
class Known:
    pilots: Mapping[str, Pilot]  # what might be excluded -> its pilot, lighter readings first
    excluded: str  # what is to be
    num_readings: int  # planted ones with exposures
    gaps: Mapping[str, float]  # set -> how far untouched models lie above those that read what is excluded
    spread: float | None  # standard deviation of controls of one reading, None where it was not measured
    seconds: Costs | None  # None where nothing tells
    notes: tuple[str, ...]  # where it is from, and how much it may be relied on


class Source(Protocol):
    def known(self, store: Path) -> Known: ...


@dataclass(frozen=True)
class FromNumbers:
    """What is not told here is as of `stats.planning.Pilot`."""

    delta_untouched: float
    delta_controls: float
    tau: float
    sigma: float
    standard_error: float  # of one model's Delta over `num_documents` documents
    num_documents: int
    shared: float
    interaction: float
    num_readings: int  # to be planted with exposures
    exclude: str
    # deviation, deviation_df: as of `methods.controls.PlantedControls`.
    deviation: float = 0.0
    deviation_df: float | None = None

    def known(self, store: Path) -> Known:
        pilot = Pilot(
            self.delta_untouched,
            self.delta_controls,
            self.tau,
            self.sigma,
            self.standard_error**2,
            self.num_documents,
            self.shared,
            self.interaction,
            Extra(self.deviation**2, self.deviation_df or math.inf),
        )
        notes = ("A pilot by its numbers.",)
        return Known({self.exclude: pilot}, self.exclude, self.num_readings, {}, None, None, notes)


@dataclass(frozen=True)
class FromAudits:
    # Every result of calibrated clearance below them; all of one reference, recipe and set of readings.
    folders: Sequence[str]
    exclude: str | None  # label of the lightest reading to be excluded (4x, 8x50%); None: what the audits exclude
    shared: float | None  # see `stats.planning.Pilot`; None: measured on the scores beside the results

    def known(self, store: Path) -> Known:
        runs = [
            run
            for run in load_runs([Path(folder) for folder in self.folders]).runs
            if run.question.method == "clearance" and run.statistics.value is not None
        ]
        _check_alike(runs, self.folders)
        by_controls = _by_controls(runs)
        audits = [_audit(group, self.shared) for group in by_controls]
        readings = {label: item for label, item in planted(runs[0].result).items() if item.exposures}
        excluded = self._excluded(runs, readings)
        extra = _extra(runs[0].result)
        pilots = {label: replace(pilot(audits, _dose(reading)), extra=extra) for label, reading in readings.items()}
        names = [group[0].result.question.corpus for group in by_controls]
        gaps = {  # of a set with several groups of controls the smallest
            name: min(item.gap(_dose(readings[excluded])) for item, of in zip(audits, names, strict=True) if of == name)
            for name in names
        }
        measured, seconds = spread(audits), _seconds([run.result for run in runs], store)
        notes = tuple(_notes(runs, audits, measured))
        return Known(pilots, excluded, len(readings), gaps, math.sqrt(measured.variance), seconds, notes)

    def _excluded(self, runs: Sequence[Run], readings: Mapping[str, Exposure]) -> str:
        labels = sorted({str(run.statistics.details["excluded_reading"]) for run in runs})
        if self.exclude is None and len(labels) > 1:
            raise ValueError(f"The audits exclude different readings ({', '.join(labels)}); add pilot.exclude=LABEL.")
        excluded = self.exclude or labels[0]
        if excluded not in readings:
            raise ValueError(
                f"exclude must be one of the readings that the audits planted ({', '.join(readings)}); got "
                f"{excluded!r}."
            )
        return excluded


def _check_alike(runs: Sequence[Run], folders: Sequence[str]) -> None:
    where = " or ".join(map(str, folders))
    if not runs:
        raise ValueError(
            f"There is no result of calibrated clearance below {where}. Run `nonmember audit method=clearance` on a "
            "few documents first, name its folder (pilot.folders=[FOLDER]), or plan from numbers (pilot=numbers)."
        )
    of_runs: dict[str, Callable[[Run], object]] = {
        "different references": lambda run: run.question.reference,
        "different worlds": lambda run: run.question.world,
        "different scores": lambda run: run.question.score,
        "different rank metrics": lambda run: run.question.settings.get("rank_metric"),
        "different lengths of text": lambda run: run.question.settings.get("max_tokens"),
        "different distillations": lambda run: run.question.settings.get("distillation"),
        "different planted readings": lambda run: list(planted(run.result)),
        "different deviations from the controls": lambda run: _extra(run.result),
    }
    require_alike(runs, where, of_runs)


def require_alike(runs: Sequence[Run], where: str, of_runs: Mapping[str, Callable[[Run], object]]) -> None:
    """of_runs: what would be wrong -> what must be the same of all runs."""
    for what, of in of_runs.items():
        if any(of(run) != of(runs[0]) for run in runs):
            raise ValueError(
                f"The audits below {where} have {what}, and no one pilot is made of them. Name the folder of one "
                "group: pilot.folders=[FOLDER]."
            )


def _by_controls(runs: Sequence[Run]) -> list[list[Run]]:
    """Audits that share their controls, which are then counted once."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(json.dumps(run.statistics.details["control_deltas"], sort_keys=True), []).append(run)
    return list(groups.values())


def _audit(runs: Sequence[Run], shared: float | None) -> PilotAudit:
    """Of audits that differ in their targets alone."""
    result, readings = runs[0].result, planted(runs[0].result)
    measured = _controls(runs[0]) if shared is None else []
    by_seed = [item.deltas for item in measured] or [np.array(_details(run.result)["deltas_by_seed"]) for run in runs]
    num_seeds = by_seed[0].size
    of_means = float(np.mean([item.jackknife.interaction() for item in measured])) if measured else 0.0
    return PilotAudit(
        controls={_dose(readings[label]): deltas for label, deltas in _details(result)["control_deltas"].items()},
        num_documents=result.statistics.num_documents,
        num_seeds=num_seeds,
        seed_variance=float(np.mean([deltas.var(ddof=1) for deltas in by_seed])) if num_seeds > 1 else 0.0,
        seed_df=len(by_seed) * (num_seeds - 1),
        interaction=of_means * num_seeds,
        document_variance=float(np.mean([_document_variance(run.result) for run in runs])),
        shared=shared_part(np.array([_without(item) for item in measured]), of_means) if shared is None else shared,
    )


def _extra(result: AuditResult) -> Extra:
    """As the audit's controls were declared."""
    controls: Any = result.question.settings.get("controls", {})
    return Extra(float(controls.get("deviation") or 0.0) ** 2, float(controls.get("deviation_df") or math.inf))


def _details(result: AuditResult) -> dict[str, Any]:
    return dict(result.statistics.details)


def _dose(reading: Exposure) -> tuple[float, float]:
    return reading.share, float(reading.exposures)


def _document_variance(result: AuditResult) -> float:
    """Of the target's Delta, clusters of documents accounted for."""
    details = _details(result)
    return float(details["standard_error"]) ** 2 * (1 - (details["share_of_seeds"] or 0.0))


def _controls(run: Run) -> list[TwoWay]:
    """Delta of every control by the scores beside the result."""
    path = run.folder / SCORES if run.folder is not None else None
    if path is None or not path.is_file():
        raise ValueError(
            f"There is no {SCORES} beside {run.path}, so how much of the documents' variance target and controls share "
            "cannot be measured. Copy it there, or add pilot.shared=0, which is conservative."
        )
    table = pq.read_table(path, filters=[("group", "=", "suspect")])
    values = {name: table[name].to_numpy() for name in table.column_names if name not in ("doc_id", "group")}
    metric: Any = run.question.settings["rank_metric"]
    audits = []
    for role, control in run.question.controls.items():
        distilled = [values[name] for name in control.distilled]
        audits.append(
            two_way(
                values["reference"],
                values[role],
                distilled,
                range(len(table)),
                metric=metric,
                num_resamples=1,
                alpha=run.question.alpha,
                rng=np.random.default_rng(0),
            )
        )
    return audits


def _without(outcome: TwoWay) -> Any:
    """[documents] Delta without each of them."""
    return outcome.jackknife.without_reference_G - outcome.jackknife.without_distilled_SG.mean(axis=0)


def _notes(runs: Sequence[Run], audits: Sequence[PilotAudit], measured: PilotSpread) -> Iterable[str]:
    invalid = sum(run.verdict.decision == "invalid" for run in runs)
    sizes = sorted({audit.num_documents for audit in audits})
    seeds = sorted({audit.num_seeds for audit in audits})
    yield (
        f"{len(runs)} audits with {len(audits)} sets of controls, {_span(sizes)} documents and {_span(seeds)} "
        f"distillation seeds, of which {invalid} are invalid."
    )
    low, high = (
        math.sqrt(measured.variance * measured.df / scipy.stats.chi2.ppf(tail, measured.df)) for tail in (0.95, 0.05)
    )
    yield (
        f"Controls of one reading differ by {math.sqrt(measured.variance):.3f} (standard deviation, on {measured.df} "
        f"degrees of freedom; 90% interval {low:.3f} to {high:.3f}). The plan takes it as known."
    )
    if not measured.sigma_df:
        yield "One distillation seed: what another seed would change is counted as a difference between models."


def _span(values: Sequence[int]) -> str:
    return str(values[0]) if len(values) == 1 else f"{values[0]} to {values[-1]}"


# ------------------------------------------------------------------------------------------------- costs


def _seconds(results: Sequence[AuditResult], store: Path) -> Costs | None:
    """Wall time of the audits that trained something, divided over the tokens that their models were trained on.

    None where nothing was trained, or the store does not have those models.
    """
    making = [result for result in results if result.provenance.made.get("models_trained", 0) > 0]
    entries = _entries(store)
    tokens: dict[bool, dict[str, float]] = {True: {}, False: {}}  # of controls; of distilled references, per document
    total: dict[str, float] = {}
    for result in making:
        distilled = {name for model in result.question.models.values() for name in model.distilled}
        for role, key in result.provenance.keys.items():
            is_control = role in result.question.controls
            if (is_control or role in distilled) and key in entries:
                total[key] = total.get(key) or _tokens(entries[key])
                tokens[is_control][key] = total[key] / (1 if is_control else result.statistics.num_documents)
    if not (tokens[True] and tokens[False]):
        return None
    trained = sum(result.provenance.made["models_trained"] for result in making)
    rate = sum(result.provenance.seconds for result in making) / (trained * float(np.mean(list(total.values()))))
    control, distillation = (rate * float(np.mean(list(tokens[kind].values()))) for kind in (True, False))
    return Costs(control, distillation)


def _entries(store: Path) -> dict[str, Path]:
    """Key -> sidecar of the store's models."""
    folder = store / "models"
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    return {path.name.rpartition("-")[2]: path / SIDECAR for path in paths if (path / SIDECAR).is_file()}


def _tokens(sidecar: Path) -> float:
    return float(json.loads(sidecar.read_text(encoding="utf-8"))["facts"]["num_tokens"])
