"""`nonmember plan pilot=dose`: how many controls and documents the dose meter needs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from nonmember.runtime.progress import Stage
from nonmember.runtime.terminal import console_of, say

if TYPE_CHECKING:
    from rich.table import Table

    from nonmember.reports.planted.pilot import KnownDoses
    from nonmember.stats.dose_planning import DosePilot

SIZES = (10, 20, 30, 50, 100, 200, 500, 1000, 2000, 5000)
ROUNDS = (1, 2, 3, 5, 10)


@dataclass(frozen=True)
class DoseDesign:
    num_documents: int
    rounds: int
    num_controls: int
    # By set the least number of readings that is excluded with the wanted power, and all above; None where none is.
    least: Mapping[str, float | None]

    @property
    def hardest(self) -> float:
        """Over all sets; infinite where one excludes nothing."""
        return max(math.inf if item is None else item for item in self.least.values())

    @property
    def middle(self) -> float:
        values = sorted(math.inf if item is None else item for item in self.least.values())
        return values[len(values) // 2]


def plan_of(config: DictConfig, known: KnownDoses) -> dict[str, Any]:
    """Print, and return what plan.json holds."""
    designs = _designs(config, known)
    enough = [design for design in designs if design.hardest <= known.excluded]
    best = min(enough, key=lambda item: (item.num_controls, item.num_documents), default=None)
    _show(config, known, designs, best)
    return {
        "wanted": {"error": config.error, "power": config.power, "excluded": known.excluded},
        "seconds": _seconds(config, known),
        "notes": list(known.notes),
        "round": known.round,
        "designs": [asdict(design) for design in designs],
        "best": None if best is None else asdict(best),
    }


def _designs(config: DictConfig, known: KnownDoses) -> list[DoseDesign]:
    sizes = [size for size in SIZES if config.min_documents <= size <= config.max_documents]
    rounds = [number for number in ROUNDS if number <= config.max_seeds]
    designs = []
    with Stage("planning", len(rounds) * len(sizes), "designs") as stage:
        for number in rounds:
            for size in sizes:
                least = {name: _least(config, pilot, size, number) for name, pilot in known.pilots.items()}
                designs.append(DoseDesign(size, number, number * known.round, least))
                stage.advance()
    return designs


def _least(config: DictConfig, pilot: DosePilot, num_documents: int, rounds: int) -> float | None:
    from nonmember.stats.dose_planning import least_excluded

    try:
        least = least_excluded(pilot, num_documents, rounds, error=config.error, power=config.power)
    except ValueError:  # one round of one model a reading
        return None
    return least if math.isfinite(least) else None


def _seconds(config: DictConfig, known: KnownDoses) -> float | None:
    given = config.seconds.control
    return known.seconds if given is None else float(given)


# ---------------------------------------------------------------------------------------------- printed


def _show(config: DictConfig, known: KnownDoses, designs: Sequence[DoseDesign], best: DoseDesign | None) -> None:
    console = console_of()
    for note in known.notes:
        say(console, note)
    console.print()
    say(
        console,
        f"The smallest number of readings that can be excluded with an error of {config.error:g} and a power of "
        f"{config.power:g}, of a target that read nothing of the set"
        + (": the middle set of the pilot, and the hardest." if len(known.pilots) > 1 else ":"),
    )
    console.print(_table(designs, several=len(known.pilots) > 1))
    say(console, _advice(known, best, _seconds(config, known)))
    if max(design.num_documents for design in designs) > known.num_documents:
        say(
            console, f"More documents than the pilot's {known.num_documents} are taken to be of the same kind as these."
        )


def _table(designs: Sequence[DoseDesign], *, several: bool) -> Table:
    from rich.table import Table

    controls = sorted({design.num_controls for design in designs})
    table = Table("documents", *(f"{number} controls" for number in controls), header_style="bold")
    for column in table.columns:
        column.justify = "right"
    by_size: dict[int, list[DoseDesign]] = {}
    for design in designs:
        by_size.setdefault(design.num_documents, []).append(design)
    for size, designs_of_size in by_size.items():
        table.add_row(
            f"{size:,}", *(_cell(item, several) for item in sorted(designs_of_size, key=lambda item: item.num_controls))
        )
    return table


def _cell(design: DoseDesign, several: bool) -> str:
    ends = (design.middle, design.hardest) if several else (design.hardest,)
    return " to ".join(f"{end:.2g}" if math.isfinite(end) else "none" for end in ends)


def _advice(known: KnownDoses, best: DoseDesign | None, seconds: float | None) -> str:
    wanted = f"To exclude {known.excluded:g} reading{'s' * (known.excluded != 1)} or more"
    of_all = "on every set of the pilot" if len(known.pilots) > 1 else "on such a set"
    if best is None:
        return f"{wanted} {of_all}: more than is allowed here (min_documents, max_documents, max_seeds)."
    cost = (
        "How long that takes is not known (the pilot trained nothing); give seconds.control."
        if seconds is None
        else f"{best.num_controls * seconds / 3600:.2g} hours to train, for all sets that are planted in them."
    )
    return (
        f"{wanted} {of_all}: {best.num_documents:,} documents and {best.num_controls} controls "
        f"({best.rounds} seed{'s' * (best.rounds != 1)} of {known.round}). {cost}"
    )
