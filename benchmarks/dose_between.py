"""Measures how targets of other bases differ from controls of their dose, on the chosen half of the dose study, and
writes it into a panel.

    python benchmarks/dose_between.py outputs/audits/dose_chosen_stand_in conf/panel/v1.yaml conf/panel/v2.yaml

Of each base b the errors about the controls' curves, all sets and readings together, are fitted as

    z - f(x) - g h(x, r) = u_b + rho_b (f(x) - f(0)) + rest

by least squares in units of the errors' covariance. The panel gets the mean of u_b u_b' and what the rest varies by
more than one more model of the controls' base would, and the root mean square of rho_b, on as many degrees of freedom
as there are bases. Each base is then read with what the others say; those rates are printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from nonmember.records import FloatArray
from nonmember.reports.planted.audits import FACTOR, dose_of, related_of
from nonmember.results.load import Run, load_runs
from nonmember.stats.dose_curve import Between, Control, DoseCurve, dose_curve

ALPHA = 0.05


@dataclass(frozen=True)
class Target:
    """curve: of the controls of its set.   values: [F] its features.   dose, related: what it read."""

    base: str
    curve: DoseCurve
    values: FloatArray
    dose: float
    related: float

    @property
    def rise(self) -> FloatArray:
        return np.asarray(self.curve.at(np.array(self.dose)) - self.curve.at(np.array(0.0)))

    @property
    def error(self) -> FloatArray:
        return self.values - self.curve.at(np.array(self.dose), self.related)


@dataclass(frozen=True)
class OfBase:
    """offset: [F] u_b.   relative: rho_b.   excess: [F, F] of the rest, less that of the controls' own base."""

    offset: FloatArray
    relative: float
    excess: FloatArray


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="folder of the sweep dose_chosen_stand_in")
    parser.add_argument("panel", type=Path, help="the panel whose features these are")
    parser.add_argument("written", type=Path, help="file to write")
    given = parser.parse_args()
    by_base: dict[str, list[Target]] = {}
    for run in load_runs([given.results]).runs:
        target = target_of(run)
        by_base.setdefault(target.base, []).append(target)
    found = {base: of_base(targets) for base, targets in by_base.items()}
    for base, item in found.items():
        print(f"{base}: rises by {1 + item.relative:.2f} of the controls', offset {np.round(item.offset, 3)}")
        others = between([of for name, of in found.items() if name != base])
        print("  read with the other bases:", rates(by_base[base], others))
    every = between(list(found.values()))
    print(f"all: relative {every.relative:.3f}, deviations {np.round(np.sqrt(np.diag(every.covariance)), 3)}")
    write(given.panel, given.written, every, sum(map(len, by_base.values())), list(by_base))


def target_of(run: Run) -> Target:
    dose, details = dose_of(run), run.statistics.details
    assert dose is not None
    names = list(details["features"])
    controls = [
        Control(item["dose"], item["related"], np.array([item["features"][name] for name in names]))
        for item in details["controls"]
    ]
    curve = dose_curve(controls, np.asarray(run.question.settings["panel"]["shape"], dtype=np.float64))
    values = np.array([details["features"][name] for name in names])
    return Target(str(run.get("base")), curve, values, float(dose), float(related_of(run)))


def of_base(targets: Sequence[Target]) -> OfBase:
    covariance = np.mean([item.curve.covariance for item in targets], axis=0)
    whiten = np.linalg.inv(np.linalg.cholesky(covariance))
    number = len(covariance)
    design = np.concatenate([np.column_stack([whiten, whiten @ item.rise]) for item in targets])
    errors = np.concatenate([whiten @ item.error for item in targets])
    fitted, *_ = np.linalg.lstsq(design, errors, rcond=None)
    offset, relative = fitted[:number], float(fitted[number])
    rest = np.array([item.error - offset - relative * item.rise for item in targets])
    spread = rest.T @ rest / (len(targets) - 1)
    return OfBase(offset, relative, spread - covariance)


def between(bases: Sequence[OfBase]) -> Between:
    offsets = np.mean([np.outer(item.offset, item.offset) for item in bases], axis=0)
    covariance = offsets + np.mean([item.excess for item in bases], axis=0)
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    covariance = (vectors * np.maximum(values, 0)) @ vectors.T
    relative = float(np.sqrt(np.mean([item.relative**2 for item in bases])))
    return Between((covariance + covariance.T) / 2, relative, float(len(bases)))


def rates(targets: Sequence[Target], of_bases: Between) -> str:
    readings = [(item, item.curve.read(item.values, wanted=1, alpha=ALPHA, between=of_bases)) for item in targets]
    none = [found for item, found in readings if not item.dose]
    once = [found for item, found in readings if item.dose >= 1]
    kept = sum(found.low <= item.dose <= (np.inf if found.high is None else found.high) for item, found in readings)
    counted = sum(
        item.dose / FACTOR <= found.estimate <= item.dose * FACTOR for item, found in readings if item.dose >= 1
    )
    return (
        f"cleared {sum(item.p_none >= ALPHA > item.p_at_least for item in none)} of {len(none)} unread and "
        f"{sum(item.p_none >= ALPHA > item.p_at_least for item in once)} of {len(once)} read; taken for read "
        f"{sum(item.p_none < ALPHA for item in none)} and {sum(item.p_none < ALPHA for item in once)}; "
        f"within 1.5 {counted}; interval holds {kept} of {len(readings)}"
    )


def write(panel: Path, written: Path, found: Between, num_audits: int, bases: Sequence[str]) -> None:
    """The panel with what was found in it, under the name of the file."""
    lines = panel.read_text(encoding="utf-8").splitlines()
    settings = yaml.safe_load(panel.read_text(encoding="utf-8"))
    first = next(index for index, line in enumerate(lines) if line.startswith("between:"))
    lines = [line for line in lines[:first] if not line.startswith(("version:", "origin:"))]
    at = next(index for index, line in enumerate(lines) if line.startswith("features:"))
    origin = f"{settings['origin']}; between bases: {num_audits} audits of dose_chosen_stand_in ({', '.join(bases)})"
    lines[at:at] = [f"version: {written.stem}", "origin: >-", f"  {origin}"]
    lines += [
        "between:   # targets of another base than the controls' (benchmarks/dose_between.py)",
        "  _target_: nonmember.methods.dose.panel.BetweenBases",
        "  covariance:",
        *(f"    - [{', '.join(f'{value:.6g}' for value in row)}]" for row in found.covariance),
        f"  relative: {found.relative:.6g}",
        f"  df: {found.df:g}",
    ]
    written.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
