"""How long a report over 500 results takes, and how large its page is: `python benchmarks/report.py [--json PATH]`.

The results are made up (tests/reporting/made_up.py) and lie on disk as audits leave them. Timed in a fresh process:
imports, reading and hashing, all tables and figures (SVG and PNG), page, Markdown and CSV. Exit status 1 if the median
is longer, or the page larger, than allowed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, f"{sys.path[0]}/reporting")

import made_up

NUM_RESULTS, NUM_REPEATS = 500, 7
REQUIRED_SECONDS, REQUIRED_BYTES = 4.0, 8_000_000
COMMAND = "import sys; from nonmember.cli import report; sys.argv = ['nonmember', *sys.argv[1:]]; report.main()"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the measurement to this file")
    path: Path | None = parser.parse_args().json

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results = itertools.chain.from_iterable(made_up.everything(seed) for seed in itertools.count())
        made_up.write(folder / "audits", *itertools.islice(results, NUM_RESULTS))
        seconds = [build(folder) for _ in range(NUM_REPEATS)]
        size = (folder / "report" / "report.html").stat().st_size

    measurement = {
        "name": "report",
        "seconds": statistics.median(seconds),
        "best_seconds": min(seconds),
        "required_seconds": REQUIRED_SECONDS,
        "page_bytes": size,
        "required_bytes": REQUIRED_BYTES,
        "num_results": NUM_RESULTS,
        "num_repeats": NUM_REPEATS,
    }
    print(
        f"{NUM_RESULTS} results: median {measurement['seconds']:.1f} s, best {min(seconds):.1f} s (required "
        f"{REQUIRED_SECONDS:.0f} s), page {size / 1e6:.2f} MB (required {REQUIRED_BYTES / 1e6:.0f} MB)"
    )
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(measurement, indent=2) + "\n", encoding="utf-8")
    return 0 if measurement["seconds"] <= REQUIRED_SECONDS and size <= REQUIRED_BYTES else 1


def build(folder: Path) -> float:
    """Seconds of a fresh process that builds the report."""
    started = time.perf_counter()
    arguments = [f"results=[{folder}/audits]", f"folder={folder}/report"]
    subprocess.run([sys.executable, "-c", COMMAND, *arguments], check=True, cwd=folder, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
