"""Chooses the features of the dose meter on the chosen half of its study, and writes them.

    python benchmarks/dose_panel.py outputs/audits/dose_chosen conf/panel/v1.yaml

The rule (docs/methods/dose.md): features are added one by one. Each time the one is taken with which the
readings of the chosen half are estimated best, every library by a panel whose shape was measured on the others: least
root mean square of log(1 + estimate) - log(1 + truth). It ends where the best addition gains less than 3%.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from nonmember.records import FloatArray
from nonmember.results.load import load_runs
from nonmember.stats.dose_curve import Control, dose_curve, residual_covariance

GAIN = 0.03


@dataclass(frozen=True)
class Audit:
    """controls: (dose, related) [C, 2].   values: of controls [C, F] and the target [F].   truth: readings."""

    library: str
    suspect: str
    controls: FloatArray
    values: FloatArray
    target: FloatArray
    truth: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="folder of the sweep dose_chosen")
    parser.add_argument("panel", type=Path, help="file to write")
    given = parser.parse_args()
    names, audits = read(given.results)
    chosen: list[int] = []
    best = math.inf
    while len(chosen) < len(names):
        errors = {index: error(audits, [*chosen, index]) for index in range(len(names)) if index not in chosen}
        index = min(errors, key=errors.__getitem__)
        print(f"{len(chosen) + 1}. {names[index]}: {errors[index]:.4f}", flush=True)
        if errors[index] > (1 - GAIN) * best:
            break
        best = errors[index]
        chosen.append(index)
    print(f"{len(audits)} audits; chosen: {', '.join(names[index] for index in chosen)}")
    write(given.panel, [names[index] for index in chosen], shape(audits, chosen), len(audits))


def read(folder: Path) -> tuple[list[str], list[Audit]]:
    audits = []
    names: list[str] = []
    for run in load_runs([folder]).runs:
        details = run.statistics.details
        controls, read = details["controls"], run.question.target_exposure
        names = list(details["features"])
        assert read is not None
        audits.append(
            Audit(
                run.domain,
                run.question.corpus,
                np.array([[item["dose"], item["related"]] for item in controls], dtype=np.float64),
                np.array([list(item["features"].values()) for item in controls]),
                np.array(list(details["features"].values())),
                read.exposures * read.share,
            )
        )
    return names, audits


def error(audits: Sequence[Audit], chosen: Sequence[int]) -> float:
    """Root mean square of the difference in log(1 + readings)."""
    shapes = {
        library: shape([audit for audit in audits if audit.library != library], chosen)
        for library in {audit.library for audit in audits}
    }
    curves = {
        audit.suspect: dose_curve(controls_of(audit, chosen), shapes[audit.library]) for audit in one_per_set(audits)
    }
    differences = [
        math.log1p(curves[audit.suspect].read(audit.target[list(chosen)], wanted=1, alpha=0.05).estimate)
        - math.log1p(audit.truth)
        for audit in audits
    ]
    return float(np.sqrt(np.mean(np.square(differences))))


def shape(audits: Sequence[Audit], chosen: Sequence[int]) -> FloatArray:
    """Covariance of the controls' errors, pooled over sets."""
    found = [residual_covariance(controls_of(audit, chosen)) for audit in one_per_set(audits)]
    return np.asarray(sum(products for products, _ in found) / sum(df for _, df in found))


def one_per_set(audits: Sequence[Audit]) -> list[Audit]:
    """All audits of a set share its controls."""
    return list({audit.suspect: audit for audit in audits}.values())


def controls_of(audit: Audit, chosen: Sequence[int]) -> list[Control]:
    return [
        Control(dose, related, values[list(chosen)])
        for (dose, related), values in zip(audit.controls, audit.values, strict=True)
    ]


def write(path: Path, names: Sequence[str], shape: FloatArray, num_audits: int) -> None:
    candidates = yaml.safe_load(path.with_name("candidates.yaml").read_text(encoding="utf-8"))
    lines = [
        "# Features of the dose meter and the shape of their errors, chosen on half of the libraries (docs/dose.md).",
        f"_target_: {candidates['_target_']}",
        f"version: {path.stem}",
        f"origin: {num_audits} audits of dose_chosen, by benchmarks/dose_panel.py",
        "features:",
        *(f"  {name}: {_in_a_line(candidates['features'][name])}" for name in names),
        "shape:   # a row and a column for each feature, in their order",
        *(f"  - {_in_a_line([float(f'{value:.6g}') for value in row])}" for row in shape),
        "between: null   # targets of another base: not measured yet",
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _in_a_line(value: object) -> str:
    return yaml.safe_dump(value, sort_keys=False, default_flow_style=True, width=1000).strip()


if __name__ == "__main__":
    main()
