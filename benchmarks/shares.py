"""Coverage of `partial_use` and DUCI on simulated gains, for docs/methods/dose.md (a minute)."""

from __future__ import annotations

import sys
from collections import defaultdict

import numpy as np

from nonmember.records import FloatArray
from nonmember.stats.dose_curve import duci, partial_use

DOCUMENTS, DRAWS, SHARES = 100, 200, (0.0, 0.25, 0.5, 0.75, 1.0)
GAINS = {1.0: 0.5, 2.0: 0.9, 4.0: 1.5, 8.0: 2.3}  # of a document, in standard deviations of one model
UNREAD, READ = 3, 2  # controls


def intervals(
    gain_D: FloatArray, read_CD: FloatArray, unread_CD: FloatArray, dose: float, rng: np.random.Generator
) -> dict[str, tuple[float, float, float]]:
    """Method -> share and ends of its interval, as `methods.dose` makes them."""
    number, mean_D = len(unread_CD), unread_CD.mean(axis=0)
    squares = ((unread_CD - mean_D) ** 2).sum() + ((read_CD - read_CD.mean(axis=0)) ** 2).sum()
    scatter = np.sqrt(squares / ((number + len(read_CD) - 2) * len(gain_D)) * (1 + 1 / number))
    alone_CD = (unread_CD - mean_D) * number / (number - 1) * np.sqrt((number + 1) * (number - 1)) / number
    clusters = [str(index) for index in range(len(gain_D))]
    gained_D, settings = gain_D - mean_D, {"num_resamples": 200, "alpha": 0.05, "rng": rng}
    expected = {dose: read_CD.mean(axis=0) - mean_D}
    mixed = partial_use(gained_D, expected, np.full(len(gain_D), scatter), clusters, **settings)
    debiased = duci(gained_D, alone_CD, {dose: read_CD - mean_D}, clusters, **settings)
    found = {"mixture": mixed, "DUCI": debiased}
    return {name: (items[0].share, items[0].low, items[0].high) for name, items in found.items() if items}


def main() -> None:
    rng = np.random.default_rng(5)
    found: dict[tuple[float, str, float], list[tuple[float, float, float]]] = defaultdict(list)
    for _ in range(DRAWS):
        own_D = np.clip(rng.normal(1, 0.5, DOCUMENTS), 0, None)
        unread_CD = rng.standard_normal((UNREAD, DOCUMENTS))
        controls = {dose: own_D * gain + rng.standard_normal((READ, DOCUMENTS)) for dose, gain in GAINS.items()}
        for share in SHARES:
            for dose, gain in GAINS.items():
                read_D = rng.permutation(DOCUMENTS) < share * DOCUMENTS
                gain_D = np.where(read_D, own_D * gain, 0) + rng.standard_normal(DOCUMENTS)
                for name, item in intervals(gain_D, controls[dose], unread_CD, dose, rng).items():
                    found[dose, name, share].append(item)
    for (dose, name, share), items in sorted(found.items()):
        estimates, low, high = np.array(items).T
        covered = np.mean((low <= share) & (share <= high))
        sys.stdout.write(
            f"{dose:g} readings, share {share:.2f}, {name:8} covers {covered:.2f}, mean {estimates.mean():.2f}, "
            f"width {(high - low).mean():.2f}, {len(items)} draws\n"
        )


if __name__ == "__main__":
    main()
