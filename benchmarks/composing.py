"""What composing one cell of a sweep of 600 takes: `python benchmarks/composing.py [--json PATH]`.

Processor seconds of a cell, the median of some, in the world with most files; beside it without the files that cells
share (`config.hydra_compat.shared_files`), which is why that stands there. Exit status 1 above .3 s.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import statistics
import sys
import time
from pathlib import Path
from unittest import mock

from nonmember.config.compose import cells_of

REQUIRED = 0.3
NUM_CELLS = 20
SEEDS = ",".join(map(str, range(100)))
WORDS = ["world=dose_study", f"seed={SEEDS}", "method.alpha=0.01,0.05", "max_layout_auc=0.6,0.7,0.8"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the results here")
    given = parser.parse_args()
    shared = seconds_a_cell()
    with mock.patch("nonmember.config.compose.shared_files", return_value=contextlib.nullcontext()):
        each = seconds_a_cell()
    result = {"name": "composing one cell of 600", "seconds": shared, "required": REQUIRED, "files not shared": each}
    sys.stdout.write(f"{json.dumps(result, indent=1)}\n")
    if given.json:
        given.json.write_text(json.dumps(result) + "\n")
    return int(shared > REQUIRED)


def seconds_a_cell() -> float:
    times = [time.process_time() for _ in itertools.islice(cells_of("audit", WORDS), NUM_CELLS + 1)]
    return statistics.median(after - before for before, after in itertools.pairwise(times))


if __name__ == "__main__":
    raise SystemExit(main())
