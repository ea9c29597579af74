"""How much faster the count-based bootstrap is than a loop over `scipy.stats.spearmanr`, at equal numbers.

    python benchmarks/bootstrap.py [--json PATH]

500 documents, 10,000 resamples, Spearman, both correlations of PRISM's test. The two sides alternate in one
process. Each repeat times our whole test (drawing included) and SciPy on the next 1,000 of the same draws
(drawing excluded), scaled by ten; after ten repeats every draw has been computed by both and compared. The
ratio is the median over the repeats. Exit status 1 if it is below what is required, or if the numbers differ
by more than 1e-12.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from scipy import stats

from nonmember.stats.bootstrap import CorrelationDifference, difference_of_dependent_correlations

NUM_DOCUMENTS, NUM_RESAMPLES, NUM_REPEATS = 500, 10_000, 10
REQUIRED_RATIO, TOLERANCE = 30.0, 1e-12
SEED = 1234

Scores = tuple[np.ndarray, np.ndarray, np.ndarray]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the measurement to this file")
    path: Path | None = parser.parse_args().json

    rng = np.random.default_rng(0)
    target = rng.normal(size=NUM_DOCUMENTS)
    scores = (target + 0.5 * rng.normal(size=target.size), target, target + rng.normal(size=target.size))
    draws_BN = np.random.default_rng(SEED).integers(NUM_DOCUMENTS, size=(NUM_RESAMPLES, NUM_DOCUMENTS))

    ours(scores), scipy_loop(scores, draws_BN[:10])  # warm up
    our_seconds, scipy_seconds, differences = [], [], []
    for part_BN in np.split(draws_BN, NUM_REPEATS):
        start = time.perf_counter()
        result = ours(scores)
        middle = time.perf_counter()
        expected = scipy_loop(scores, part_BN)
        end = time.perf_counter()
        our_seconds.append(middle - start)
        scipy_seconds.append((end - middle) * NUM_REPEATS)
        done = len(differences) * len(part_BN)
        differences.append(np.abs(result.distribution[done : done + len(part_BN)] - expected).max())

    ratio = statistics.median(scipy / our for scipy, our in zip(scipy_seconds, our_seconds, strict=True))
    measurement = {
        "name": "bootstrap",
        "ratio": ratio,
        "required": REQUIRED_RATIO,
        "max_abs_difference": float(max(differences)),
        "seconds_ours": statistics.median(our_seconds),
        "seconds_scipy_loop": statistics.median(scipy_seconds),
        "scipy_loop_scaled_from_draws": NUM_RESAMPLES // NUM_REPEATS,
        "num_documents": NUM_DOCUMENTS,
        "num_resamples": NUM_RESAMPLES,
        "num_repeats": NUM_REPEATS,
        "cpu": cpu_name(),
    }
    print(
        f"bootstrap: {ratio:.0f}x a SciPy loop (required {REQUIRED_RATIO:.0f}x; "
        f"{measurement['seconds_ours']:.3f} s against {measurement['seconds_scipy_loop']:.2f} s, the loop "
        f"scaled from {NUM_RESAMPLES // NUM_REPEATS} draws a repeat), max difference {max(differences):.1e}"
    )
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(measurement, indent=2) + "\n", encoding="utf-8")
    return 0 if ratio >= REQUIRED_RATIO and max(differences) <= TOLERANCE else 1


def ours(scores: Scores) -> CorrelationDifference:
    return difference_of_dependent_correlations(
        *scores, metric="spearman", num_resamples=NUM_RESAMPLES, alpha=0.05, margin=0.0, rng=np.random.default_rng(SEED)
    )


def scipy_loop(scores: Scores, draws_BN: np.ndarray) -> np.ndarray:
    """Delta of each draw, the plain way."""
    reference, target, distilled = scores
    differences = np.empty(len(draws_BN))
    for index, drawn in enumerate(draws_BN):
        drawn_target = target[drawn]
        rho_reference = stats.spearmanr(reference[drawn], drawn_target).statistic
        rho_distilled = stats.spearmanr(distilled[drawn], drawn_target).statistic
        differences[index] = rho_reference - rho_distilled
    return differences


def cpu_name() -> str:
    listing = Path("/proc/cpuinfo")
    lines = listing.read_text(encoding="utf-8").splitlines() if listing.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


if __name__ == "__main__":
    sys.exit(main())
