"""Faults put by hand into a copy of the program, one at a time: do the tests notice?

    python benchmarks/faults.py [--json PATH] [--only NAME ...] [--full] [--timeout SECONDS]

The faults stand in faults.toml, each with the tests most likely to notice it. A fault is caught where one of these
fails, or does not end. The tests that failed are then run without any fault: one that fails again says nothing, is
named and left out. With --full the faults that are left meet the whole fast suite, which takes minutes for each.

What the file of --json says to be caught is not run again, unless the fault was edited: a run that was stopped goes on
when started again, and what was not caught meets the tests anew. Remove the file after a change of the program. Exit
status 1 if fewer than 95% are caught.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import json
import multiprocessing
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
SHARE = 0.95  # of the faults, that are to be caught
LEFT_OUT = (".git", ".venv", "outputs", "node_modules", "__pycache__", ".*_cache")
LIBRARIES = (
    "datasets",
    "hydra",
    "lightning",
    "peft",
    "pyarrow.parquet",
    "scipy.stats",
    "sklearn.linear_model",
    "torch",
    "transformers",
)
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "WANDB_MODE": "offline",
}
PASSED, FAILED = 0, 1  # exit statuses of pytest
BROKEN = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True)
class Fault:
    """One edit of one file of the package; see faults.toml."""

    area: str
    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def digest(self) -> str:
        return hashlib.sha256("\0".join((self.file, self.old, self.new)).encode()).hexdigest()[:16]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="keep what was found in this file, and go on from it")
    parser.add_argument("--only", action="append", metavar="NAME", help="faults whose names contain this; repeatable")
    parser.add_argument("--full", action="store_true", help="the whole fast suite for what is not caught by its tests")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds after which tests count as hanging")
    parser.add_argument("--faults", type=Path, default=HERE / "faults.toml", help="another list of faults")
    parser.add_argument("--repository", type=Path, default=HERE.parent, help="another checkout of the program")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no tests and no copy are left behind
    try:
        faults = [item for item in read_faults(given.faults) if is_wanted(item, given.only)]
        for fault in faults:
            faulty_text(given.repository, fault)
        found = run_all(faults, given)
    except ValueError as error:
        parser.exit(2, f"{error}\n")
    return report(faults, found)


def read_faults(path: Path) -> list[Fault]:
    areas = tomllib.loads(path.read_text(encoding="utf-8"))
    faults = [
        Fault(area, **item | {"tests": tuple(item["tests"])}) for area, several in areas.items() for item in several
    ]
    if twice := [name for name, number in Counter(item.name for item in faults).items() if number > 1]:
        raise ValueError(f"Each fault must have a name of its own; got {twice[0]!r} twice. Rename one.")
    return faults


def is_wanted(fault: Fault, names: Sequence[str] | None) -> bool:
    return names is None or any(name in fault.name for name in names)


def faulty_text(repository: Path, fault: Fault) -> str:
    """The file with the fault in it. Raises ValueError where it cannot be put there in exactly one way."""
    path = place_of(repository, fault)
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if (number := text.count(fault.old)) != 1:
        raise ValueError(
            f"The old text of the fault {fault.name!r} must stand exactly once in {fault.file}; it is there {number} "
            "times. Correct it in the list of faults."
        )
    return text.replace(fault.old, fault.new)


def place_of(repository: Path, fault: Fault) -> Path:
    return repository / "src" / "nonmember" / fault.file


# Running -------------------------------------------------------------------------------------------------------------


def run_all(faults: Sequence[Fault], given: argparse.Namespace) -> dict[str, Any]:
    """Name of a fault -> what was found."""
    kept = json.loads(given.json.read_text()) if given.json and given.json.is_file() else {}
    found, sound, broken = kept.setdefault("faults", {}), kept.setdefault("sound", []), kept.setdefault("broken", [])
    with tempfile.TemporaryDirectory(prefix="faults-") as folder:
        copy = Path(folder) / "repository"
        shutil.copytree(given.repository, copy, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
        left = [item for item in faults if not is_settled(item, found.get(item.name), broken)]
        while True:
            for number, fault in enumerate(left, start=1):
                show(f"{number:3} of {len(left)}  {fault.area:8}  {fault.name} ...")
                found[fault.name] = examine(copy, fault, broken, given)
                show(f"           {outcome(found[fault.name])}")
                keep(given.json, kept)
            named = {found[item.name]["by"] for item in faults if found[item.name]["by"]}
            if unknown := sorted(named.difference(sound, broken)):
                show(f"without a fault: the {len(unknown)} tests that failed ...")
                failed = broken_tests(copy, unknown, 4 * given.timeout)
                for test in failed:
                    show(f"fails without a fault too, and is left out: {test}")
                broken += failed
                sound += [item for item in unknown if item not in failed]
                keep(given.json, kept)
            left = [item for item in faults if found[item.name]["by"] in broken]
            if not left:
                return found


def is_settled(fault: Fault, one: dict[str, Any] | None, broken: Sequence[str]) -> bool:
    """Whether it was caught, as it is now, by a test that passes without it."""
    return one is not None and one["digest"] == fault.digest and one["caught"] and one["by"] not in broken


def broken_tests(copy: Path, tests: Sequence[str], timeout: float) -> list[str]:
    """Those that fail without any fault."""
    status, output = run_tests(copy, ["--maxfail=1000", "--continue-on-collection-errors", *tests], timeout)
    if status not in (PASSED, FAILED):
        raise ValueError(f"The tests must run without a fault; got from pytest: {output[-2000:] or 'no end in time'}")
    failed = BROKEN.findall(output)
    return [test for test in tests if any(item.startswith(test) for item in failed)]


def examine(copy: Path, fault: Fault, broken: Sequence[str], given: argparse.Namespace) -> dict[str, Any]:
    """Run its tests with the fault, and the whole suite where they pass and that is wanted. broken: tests to leave
    out."""
    path, started = place_of(copy, fault), time.monotonic()
    text = path.read_text(encoding="utf-8")
    without = [f"{'--deselect' if '::' in test else '--ignore'}={test}" for test in broken]
    path.write_text(faulty_text(copy, fault), encoding="utf-8")
    try:
        status, output = run_tests(copy, [*without, *fault.tests], given.timeout)
        if status == PASSED and given.full:
            status, output = run_tests(copy, without, 4 * given.timeout)
    finally:
        path.write_text(text, encoding="utf-8")
    first = BROKEN.search(output)
    if status not in (PASSED, None) and not first:
        raise ValueError(f"The tests of {fault.name!r} must run; got from pytest: {output[-2000:]}")
    return {
        "area": fault.area,
        "digest": fault.digest,
        "caught": status != PASSED,
        "by": first[1] if first else "",
        "seconds": round(time.monotonic() - started, 1),
    }


def run_tests(copy: Path, arguments: Sequence[str], timeout: float) -> tuple[int | None, str]:
    """Exit status of pytest, None where it does not end in time; and what it says.

    In a fork of this process, which has imported the large libraries already: for most faults that is nearly all there
    is to do. Of the program itself nothing is imported here.
    """
    import_libraries()
    said = copy.parent / "said"
    process = multiprocessing.get_context("fork").Process(target=_pytest, args=(copy, arguments, said))
    process.start()
    try:
        process.join(timeout)
        return process.exitcode, said.read_text(errors="replace")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid or 0, signal.SIGKILL)  # the tests, and whatever they started
        process.join()


def _pytest(copy: Path, arguments: Sequence[str], said: Path) -> None:
    """In the fork."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sys.stdin.close()
    for stream, path, mode in ((0, os.devnull, os.O_RDONLY), (1, said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)):
        os.dup2(os.open(path, mode), stream)
    os.dup2(1, 2)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    os.chdir(copy)
    os.environ["PYTHONPATH"] = str(copy / "src")
    # What is compiled with a fault would be taken for the file put back within the same second, if it is as long.
    os.environ["PYTHONDONTWRITEBYTECODE"], sys.dont_write_bytecode = "1", True
    sys.path[:0] = [str(copy / "src"), str(copy)]
    options = ["-x", "-q", "-p", "no:cacheprovider", "-n", "0", "-m", "", "--tb=no", "-rfE"]
    sys.exit(pytest.main([*options, *arguments]))


def import_libraries() -> None:
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    for name in LIBRARIES:
        importlib.import_module(name)


# Telling -------------------------------------------------------------------------------------------------------------


def keep(path: Path | None, kept: dict[str, Any]) -> None:
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(kept, indent=1) + "\n")


def show(line: str) -> None:
    print(line, flush=True)


def outcome(one: dict[str, Any]) -> str:
    said = f"caught by {one['by'] or 'its tests, which did not end'}" if one["caught"] else "NOT CAUGHT"
    return f"{said} ({one['seconds']:.0f} s)"


def report(faults: Sequence[Fault], found: dict[str, Any]) -> int:
    """Print the table. The exit status."""
    caught = [item for item in faults if found[item.name]["caught"]]
    missed = [item for item in faults if item not in caught]
    for area in dict.fromkeys(item.area for item in faults):
        numbers = [sum(item.area == area for item in several) for several in (caught, faults)]
        show(f"{area:10} {numbers[0]:3} of {numbers[1]:3} caught")
    share = len(caught) / len(faults) if faults else 1.0
    show(f"{'all':10} {len(caught):3} of {len(faults):3} caught, {share:.1%}")
    for fault in missed:
        show(f"not caught: {fault.name} ({fault.file})")
    return 0 if share >= SHARE else 1


if __name__ == "__main__":
    sys.exit(main())
