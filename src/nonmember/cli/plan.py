"""`nonmember plan`: how many canaries, copies and variants are enough."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from nonmember.checks import require_count, require_distinct, require_number
from nonmember.config.roots import require_complete, run_with_hydra
from nonmember.runtime.files import write_text_atomically
from nonmember.runtime.progress import Stage

PLAN = "plan.json"
NUMBERS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200)  # of canaries
MOST_VARIANTS = 10_000  # memory grows with them


def main() -> None:
    """Print the least numbers, and the path of the file as the last line."""

    def run(config: DictConfig, folder: Path) -> None:
        require_complete(config)
        folder.mkdir(parents=True, exist_ok=True)
        write_text_atomically(folder / PLAN, json.dumps(plan_of(config), indent=1) + "\n")
        sys.stdout.write(f"{folder / PLAN}\n")

    run_with_hydra("plan", run)


def check(config: DictConfig) -> None:
    require_number(config.error, "(0, 0.5)", "error", hint="For 5% pass 0.05.")
    require_number(config.power, "(0, 1)", "power", hint="The usual is 0.8.")
    for name in ("copies", "variants"):
        require_distinct(list(config[name]), name, "a list of whole numbers, each once")
    if len(config.copies) != len(config.shifts):
        raise ValueError(
            "copies and shifts must belong together, as in copies=[1,4] shifts=[0.3,1.1]; got "
            f"{len(config.copies)} and {len(config.shifts)} of them."
        )
    for number in config.copies:
        require_count(number, 1, "copies")
    for shift in config.shifts:
        require_number(shift, "(-inf, inf)", "shifts")
    for number in config.variants:
        require_count(number, 2, "variants", at_most=MOST_VARIANTS)


def plan_of(config: DictConfig) -> dict[str, Any]:
    """Print the least numbers of canaries, and return what plan.json holds."""
    from rich.console import Console
    from rich.table import Table

    from nonmember.stats.canaries import canary_power

    check(config)
    designs: list[dict[str, Any]] = []
    table = Table("copies", "shift", *(f"{number:,} variants" for number in config.variants), header_style="bold")
    with Stage("planning", len(config.copies) * len(config.variants), "designs") as stage:
        for copies, shift in zip(config.copies, config.shifts, strict=True):
            cells = []
            for variants in config.variants:
                for number in NUMBERS:
                    power = canary_power(shift, number, variants, alpha=config.error)
                    designs.append({"copies": copies, "variants": variants, "canaries": number, "power": power})
                    if power >= config.power:
                        break
                cells.append(str(number) if power >= config.power else f"more than {NUMBERS[-1]}")
                stage.advance()
            table.add_row(str(copies), f"{shift:.2f}", *cells)
    sys.stdout.write(
        f"The smallest number of canaries that is found with an error of {config.error:g} and a power of "
        f"{config.power:g}, each published in so many copies:\n"
    )
    Console().print(table)
    pilot = {name: list(config[name]) for name in ("copies", "shifts", "variants")}
    return {"wanted": {"error": config.error, "power": config.power}, "pilot": pilot, "designs": designs}
