"""How soon the command line answers (`nonmember --help`, a misspelt override), and what `import nonmember` takes.

    python benchmarks/startup.py [--json PATH] [--repeats N]

Prints the median wall time of fresh processes and writes a list of {name, seconds, required}; exits 1 where
one is late.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NUM_REPEATS = 7
COMMAND = ["-m", "nonmember.cli"]
NOTHING = ["-c", ""]
# Name -> arguments of Python, exit status, seconds required; of the import the time of an empty process is taken off.
CASES = {
    "nonmember --help": ([*COMMAND, "--help"], 0, 1.5),
    "a misspelt override": ([*COMMAND, "audit", "nme=x"], 1, 1.5),
    "import nonmember": (["-c", "import nonmember"], 0, 0.2),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the results here")
    parser.add_argument("--repeats", type=int, default=NUM_REPEATS)
    arguments = parser.parse_args()
    results = []
    for name, (words, status, required) in CASES.items():
        seconds = median_seconds(words, status, arguments.repeats)
        if words[0] == "-c":
            seconds -= median_seconds(NOTHING, 0, arguments.repeats)
        results.append({"name": name, "seconds": seconds, "required": required})
    for result in results:
        print(f"{result['seconds']:6.2f} s  (required {result['required']} s)  {result['name']}")
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return int(any(result["seconds"] > result["required"] for result in results))


def median_seconds(arguments: list[str], status: int, repeats: int) -> float:
    """Of processes started one after the other; the first, which fills the disk cache, is not counted."""
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(1 + repeats):
            started = time.perf_counter()
            command = [sys.executable, *arguments]
            done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
            seconds.append(time.perf_counter() - started)
            if done.returncode != status:
                sys.exit(f"{arguments} ended with status {done.returncode}, not {status}: {done.stderr.decode()}")
    return statistics.median(seconds[1:])


if __name__ == "__main__":
    sys.exit(main())
