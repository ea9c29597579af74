"""`nonmember plan pilot=canary`: how many canaries, copies and variants are enough."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from omegaconf import DictConfig

from nonmember.checks import require_count, require_distinct, require_number
from nonmember.runtime.progress import Stage

NUMBERS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200)  # of canaries
MOST_VARIANTS = 10_000  # memory grows with them


@dataclass(frozen=True)
class CanaryPilot:
    copies: Sequence[int]  # numbers of them
    # By how much reading a canary so often moves its score, in standard deviations between variants, in the same order.
    shifts: Sequence[float]
    variants: Sequence[int]  # numbers of them, of each canary

    def __post_init__(self) -> None:
        require_distinct(self.copies, "pilot.copies", "a list of whole numbers, each once")
        require_distinct(self.variants, "pilot.variants", "a list of whole numbers, each once")
        if len(self.copies) != len(self.shifts):
            raise ValueError(
                f"pilot.copies and pilot.shifts must belong together, as in pilot.copies=[1,4] pilot.shifts=[0.3,1.1]; "
                f"got {len(self.copies)} and {len(self.shifts)} of them."
            )
        for number in self.copies:
            require_count(number, 1, "pilot.copies")
        for shift in self.shifts:
            require_number(shift, "(-inf, inf)", "pilot.shifts")
        for number in self.variants:
            require_count(number, 2, "pilot.variants", at_most=MOST_VARIANTS)

    def known(self, store: Path) -> Self:
        """Itself: it needs no results."""
        return self


def plan_of(config: DictConfig, pilot: CanaryPilot) -> dict[str, Any]:
    """Print the least numbers of canaries, and return what plan.json holds."""
    from nonmember.stats.canaries import canary_power

    designs: list[dict[str, Any]] = []
    least: dict[tuple[int, int], int | None] = {}
    with Stage("planning", len(pilot.copies) * len(pilot.variants), "designs") as stage:
        for copies, shift in zip(pilot.copies, pilot.shifts, strict=True):
            for variants in pilot.variants:
                least[copies, variants] = None
                for number in NUMBERS:
                    power = canary_power(shift, number, variants, alpha=config.error)
                    designs.append({"copies": copies, "variants": variants, "canaries": number, "power": power})
                    if power >= config.power:
                        least[copies, variants] = number
                        break
                stage.advance()
    _show(config, pilot, least)
    return {"wanted": {"error": config.error, "power": config.power}, "pilot": asdict(pilot), "designs": designs}


def _show(config: DictConfig, pilot: CanaryPilot, least: Mapping[tuple[int, int], int | None]) -> None:
    from rich.console import Console
    from rich.table import Table

    sys.stdout.write(
        f"The smallest number of canaries that is found with an error of {config.error:g} and a power of "
        f"{config.power:g}, each published in so many copies:\n"
    )
    table = Table("copies", "shift", *(f"{number:,} variants" for number in pilot.variants), header_style="bold")
    for column in table.columns:
        column.justify = "right"
    for copies, shift in zip(pilot.copies, pilot.shifts, strict=True):
        cells = (least[copies, number] for number in pilot.variants)
        table.add_row(
            str(copies), f"{shift:.2f}", *(f"more than {NUMBERS[-1]}" if item is None else str(item) for item in cells)
        )
    Console().print(table)
