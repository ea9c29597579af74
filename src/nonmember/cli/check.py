"""`nonmember check SWEEP ...`: what the cells of sweeps need, looked at without weights or a network."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from nonmember.checks import require_number
from nonmember.config.choices import published_sweeps
from nonmember.config.roots import register
from nonmember.runtime.progress import Stage

if TYPE_CHECKING:
    from nonmember.feasibility.memory import Machine
    from nonmember.feasibility.table import CheckedCell

ALL = "all"
WORLD_OF_ALL = "pythia"  # whose models are on the hub
DESCRIBED = ("gib", "tflops", "utilisation", "seconds_per_request")  # of a machine
EPILOG = """Without --gib and --tflops the answer is for this machine, with one of them for another GPU.
key=value as for `nonmember audit`: world=pythia, trainer=fsdp, world.labelled.arxivtection.revision=COMMIT.
Memory, tokens and hours are bounds derived from the recipes and from
descriptions of models and data sets that come with the package; nothing is downloaded.
Documents in files on this machine are counted, beyond 8 MiB of text estimated from the first of them."""


def main() -> None:
    """Entry of `nonmember check`."""
    given, rest = _parser().parse_known_args()
    if bad := [word for word in rest if word.startswith("-")]:
        raise ValueError(f"There is no option {bad[0]}; see nonmember check --help.")
    try:
        today = date.fromisoformat(given.on) if given.on else date.today()
    except ValueError:
        raise ValueError(f"--on must be a day, as in 2026-01-31; got {given.on}.") from None
    overrides = [word for word in (*given.arguments, *rest) if "=" in word]
    world = next((word.partition("=")[2] for word in overrides if word.startswith("world=")), None)
    names = [word for word in (*given.arguments, *rest) if "=" not in word]
    from nonmember.feasibility.memory import Machine
    from nonmember.feasibility.table import markdown, show, to_csv

    described = {name: value for name in DESCRIBED if (value := getattr(given, name)) is not None}
    for name, value in described.items():
        require_number(value, "(0, 1]" if name == "utilisation" else "(0, inf)", f"--{name.replace('_', '-')}")
    for path in (Path(name) for name in (given.csv, given.markdown) if name):  # before the work
        if path.is_dir() or not path.absolute().parent.is_dir():
            raise ValueError(f"There is no place for a file {path}. Name another, in a folder that is there.")
    machine = Machine(**described) if {"gib", "tflops"} & described.keys() else replace(Machine.here(), **described)
    if unknown := set(names) - published_sweeps() - {ALL}:
        raise ValueError(f"There is no sweep {min(unknown)}; see nonmember list sweeps.")
    register()
    left_out: list[str] | None = None
    if ALL in names:
        from nonmember.config.grid import sweeps_for

        left_out = []

        world = world or WORLD_OF_ALL
        names = sweeps_for(world)
        overrides = [f"world={world}", *(word for word in overrides if not word.startswith("world="))]
    cells = list(checked(names, overrides, machine, today, left_out))
    if given.hub:
        cells = [cell for cell in cells if cell.checked.hub]
    if given.csv:
        Path(given.csv).write_text(to_csv(cells, machine), encoding="utf-8")
    if given.markdown:
        command = shlex.join(["nonmember", "check", *sys.argv[1:]])
        Path(given.markdown).write_text(markdown(cells, machine, today, command), encoding="utf-8")
    show(cells, machine)
    if left_out:
        sys.stdout.write(f"Left out, as world={world} lacks axes or options of theirs: {', '.join(left_out)}.\n")


def checked(
    names: Sequence[str], overrides: Sequence[str], machine: Machine, today: date, left_out: list[str] | None = None
) -> Iterator[CheckedCell]:
    """Every cell of the sweeps, in their order.

    Args:
        today: services that were retired before it are.
        left_out: gets the sweeps that go over axes or options that the chosen world lacks; without it they raise.
    """
    from hydra.errors import MissingConfigException
    from omegaconf.errors import InterpolationKeyError

    with Stage("checking", len(names), "sweeps") as stage:
        for name in names:
            try:
                yield from cells_checked(name, overrides, machine, today)
            except (MissingConfigException, InterpolationKeyError):
                if left_out is None:
                    raise
                left_out.append(name)
            stage.advance()


def cells_checked(
    name: str, overrides: Sequence[str], machine: Machine, today: date, *, few: bool = False
) -> list[CheckedCell]:
    """The cells of a sweep, in their order. few: see `cells_of`."""
    from nonmember.config.feasible import check_cell
    from nonmember.config.grid import cells_of
    from nonmember.feasibility.table import CheckedCell

    is_given = any(word.startswith("trainer=") for word in overrides)
    trainer = [] if is_given else [f"trainer={machine.device.lower()}"]
    cells = {
        item.number: CheckedCell(
            name, " ".join(item.overrides), check_cell(item.config, machine, today, is_open=item.is_open)
        )
        for item in cells_of(name, [*overrides, *trainer], few=few)
    }
    return [cells[number] for number in sorted(cells)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        allow_abbrev=False,
        prog="nonmember check",
        description="What the cells of sweeps need before they can run.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "arguments", nargs="+", metavar="SWEEP|key=value", help=f"names of sweeps; {ALL}: all of the world"
    )
    parser.add_argument("--gib", type=float, help="memory of a GPU; default: this machine's, or 80")
    parser.add_argument("--tflops", type=float, help="its arithmetic at 16 bits; default: measured here, or 989")
    parser.add_argument(
        "--utilisation", type=float, help="share of it reached; default: 0.5 of what is measured, or 0.3"
    )
    parser.add_argument(
        "--seconds-per-request", type=float, help="of a service, which nothing tells; default: 2, an assumption"
    )
    parser.add_argument("--hub", action="store_true", help="only cells that need something from the hub or a service")
    parser.add_argument("--csv", metavar="FILE", help="a row per cell")
    parser.add_argument("--markdown", metavar="FILE", help="the printed table")
    parser.add_argument("--on", metavar="YYYY-MM-DD", help="the day on which services must be there, default: today")
    return parser
