"""The kernel divergence in blocks against the plain formula over whole n x n matrices: time and memory.

    python benchmarks/kernel.py [--json PATH] [--large N]

4,000 embeddings of width 4,096 in single precision, before and after tuning, by both sides; 20,000 by ours alone, of
which a single n x n matrix in double precision has 3.2 GB. Each run has a process of its own, whose largest resident
memory is read when it ends; the two sides alternate. Both work in double precision, on as many threads as there are
processors. Exit status 1 if the numbers differ by more than 1e-10 of themselves, or the large run needs more than
8 GiB.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SMALL, LARGE, WIDTH, NUM_REPEATS = 4000, 20_000, 4096, 3
MOST_BYTES, TOLERANCE = 8 * 2**30, 1e-10


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the measurement to this file")
    parser.add_argument("--large", type=int, default=LARGE, help="number of embeddings of the large run")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--number", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        print(json.dumps(measured(given.side, given.number)))
        return 0

    runs = [(run("blocks", SMALL), run("matrices", SMALL)) for _ in range(NUM_REPEATS)]
    large = run("blocks", given.large)
    (ours, theirs), difference = runs[0], max(abs(item["score"] / other["score"] - 1) for item, other in runs)
    seconds = [statistics.median(pair[side]["seconds"] for pair in runs) for side in (0, 1)]
    measurement = {
        "name": "kernel",
        "ratio": statistics.median(other["seconds"] / item["seconds"] for item, other in runs),
        "max_relative_difference": difference,
        "seconds_blocks": seconds[0],
        "seconds_matrices": seconds[1],
        "peak_bytes_blocks": ours["peak_bytes"],
        "peak_bytes_matrices": theirs["peak_bytes"],
        "data_bytes": ours["data_bytes"],
        "large": {"num_documents": given.large, **large},
        "num_documents": SMALL,
        "width": WIDTH,
        "num_repeats": NUM_REPEATS,
        "num_processors": os.cpu_count(),
        "load": os.getloadavg()[0],
    }
    print(
        f"kernel: {SMALL} x {WIDTH} in {seconds[0]:.1f} s and {ours['peak_bytes'] / 2**20:.0f} MiB against "
        f"{seconds[1]:.1f} s and {theirs['peak_bytes'] / 2**20:.0f} MiB for n x n matrices (of both "
        f"{ours['data_bytes'] / 2**20:.0f} MiB are the embeddings), relative difference {difference:.1e}; "
        f"{given.large} x {WIDTH} in {large['seconds']:.0f} s and {large['peak_bytes'] / 2**30:.2f} GiB (at most "
        f"{MOST_BYTES / 2**30:.0f}), of which {large['data_bytes'] / 2**30:.2f} the embeddings"
    )
    if given.json is not None:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(measurement, indent=2) + "\n", encoding="utf-8")
    return 0 if difference <= TOLERANCE and large["peak_bytes"] <= MOST_BYTES else 1


def run(side: str, number: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--side", side, "--number", str(number)]
    told: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return told


def measured(side: str, number: int) -> dict[str, float]:
    before_ND, after_ND = embeddings(number)
    start = time.perf_counter()
    score = SIDES[side](before_ND, after_ND)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {"score": score, "seconds": seconds, "peak_bytes": peak, "data_bytes": before_ND.nbytes + after_ND.nbytes}


def embeddings(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Around a common direction, as those of language models are, and moved a little. Made in place."""
    rng = np.random.default_rng(0)
    before_ND = rng.standard_normal((number, WIDTH), dtype=np.float32)
    before_ND += rng.standard_normal(WIDTH, dtype=np.float32)
    after_ND = rng.standard_normal((number, WIDTH), dtype=np.float32)
    after_ND *= 0.01
    after_ND += before_ND
    for points_ND in (before_ND, after_ND):
        points_ND /= np.sqrt(np.einsum("nd,nd->n", points_ND, points_ND))[:, None]
    return before_ND, after_ND


def blocks(before_ND: np.ndarray, after_ND: np.ndarray) -> float:
    from nonmember.stats.kernels import kernel_divergence

    return kernel_divergence(before_ND, after_ND, bandwidth="per_kernel_median").score


def matrices(before_ND: np.ndarray, after_ND: np.ndarray) -> float:
    """The formula as it is printed, over whole matrices."""
    upper = np.triu_indices(len(before_ND), k=1)
    kernels = []
    for points_ND in (before_ND.astype(np.float64), after_ND.astype(np.float64)):
        squares_N = np.square(points_ND).sum(axis=1)
        squared_NN = np.maximum(squares_N[:, None] + squares_N - 2 * points_ND @ points_ND.T, 0)
        np.fill_diagonal(squared_NN, 0)
        gamma = 1 / np.median(np.sqrt(squared_NN[upper]))
        kernels.append(np.exp(-gamma * squared_NN))
    kernel, after = kernels
    return -float(np.abs(kernel * np.log(kernel / after)).sum()) / math.sqrt(kernel.sum())


SIDES: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {"blocks": blocks, "matrices": matrices}


if __name__ == "__main__":
    sys.exit(main())
