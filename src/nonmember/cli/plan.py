"""`nonmember plan`: power analysis for calibrated clearance, the dose meter and canaries."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig

from nonmember.checks import require_count, require_number
from nonmember.cli import plan_canary, plan_dose
from nonmember.config.roots import require_complete, run_with_hydra
from nonmember.config.safety import instantiate
from nonmember.runtime.terminal import console_of, for_rich, say

if TYPE_CHECKING:
    from rich.table import Table

    from nonmember.results.pilots import Known
    from nonmember.stats.planning import Costs, Design, Plan

PLAN = "plan.json"
LISTED = 12  # alternatives that are printed; the file has all
OUTCOMES = {"impossible": "impossible at any size", "beyond_limits": "more than is allowed"}


def main() -> None:
    """Print the alternatives, and the path of the file as the last line."""

    def run(config: DictConfig, folder: Path) -> None:
        sys.stdout.write(f"{plan_audit(config, folder)}\n")

    run_with_hydra("plan", run)


def plan_audit(config: DictConfig, folder: Path) -> Path:
    """Plan, print, and write `plan.json` to the folder."""
    require_complete(config)
    from nonmember.reports.planted.pilot import KnownDoses
    from nonmember.runtime.files import write_text_atomically

    require_number(config.error, "(0, 0.5)", "error", hint="For 5% pass 0.05.")
    require_number(config.power, "(0, 1)", "power", hint="The usual is 0.8.")
    require_number(config.confidence, "[0.5, 1)", "confidence", or_null=True)
    for name in ("min_documents", "max_documents", "max_seeds", "max_controls"):
        require_count(config[name], 1, name)
    known: Known | KnownDoses | plan_canary.CanaryPilot = instantiate(config.pilot).known(Path(config.store))
    plan: dict[str, Any]
    match known:
        case KnownDoses():
            plan = plan_dose.plan_of(config, known)
        case plan_canary.CanaryPilot():
            plan = plan_canary.plan_of(config, known)
        case _:
            plan = plan_clearance(config, known)
    path = folder / PLAN
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(path, json.dumps(plan, indent=1) + "\n")
    return path


def plan_clearance(config: DictConfig, known: Known) -> dict[str, Any]:
    """For every reading that the pilot knows: print, and return what plan.json holds."""
    from nonmember.stats.planning import Rule, plan, power_ceiling

    rule = Rule(1 - config.error, config.confidence, known.num_readings, negatives=True)
    seconds = seconds_of(config, known)
    plans = {
        label: plan(
            pilot,
            rule,
            power=config.power,
            costs=seconds or trainings(known),
            min_documents=config.min_documents,
            max_documents=config.max_documents,
            max_seeds=config.max_seeds,
            max_controls=config.max_controls,
        )
        for label, pilot in known.pilots.items()
    }
    between = known.pilots[known.excluded].between_models
    underpowered = [
        name for name, gap in known.gaps.items() if power_ceiling(gap, between, rule.content) < config.power
    ]
    show(config, known, plans, underpowered, seconds)
    return as_details(config, known, plans, underpowered, seconds)


def seconds_of(config: DictConfig, known: Known) -> Costs | None:
    """As given, else as the pilot tells."""
    from nonmember.stats.planning import Costs

    given = config.seconds.control, config.seconds.distillation
    if None not in given:
        return Costs(*given)
    if given != (None, None):
        raise ValueError("Give both seconds.control and seconds.distillation, or neither.")
    return known.seconds


def trainings(known: Known) -> Costs:
    """Where nothing tells what costs what: a control, and a distillation on as many documents as the pilot's, are 1."""
    from nonmember.stats.planning import Costs

    return Costs(1.0, 1 / known.pilots[known.excluded].num_documents)


# ---------------------------------------------------------------------------------------------- printed


def show(
    config: DictConfig, known: Known, plans: dict[str, Plan], underpowered: Sequence[str], seconds: Costs | None
) -> None:
    """What the pilot is, what could be excluded, and the alternatives for what is to be."""
    console = console_of()
    chosen = plans[known.excluded]
    for line in (*known.notes, *_about(known, 1 - config.error)):
        say(console, line)
    console.print(
        f"\nWith an error of {config.error:g} and a power of {config.power:g} could be excluded:", highlight=False
    )
    console.print(_table_of_readings(known, plans, seconds))
    say(console, f"To exclude {known.excluded} and more: {chosen.explanation}")
    if chosen.designs:
        console.print(_table_of_designs(chosen, seconds))
        if len(chosen.designs) > LISTED:
            console.print(f"{len(chosen.designs) - LISTED} more in {PLAN}, with fewer documents still.")
    if underpowered:
        say(
            console,
            f"By its own gap no audit of any size would succeed on {', '.join(underpowered)} "
            f"({len(underpowered)} of the {len(known.gaps)} sets of the pilot).",
        )
    if seconds is None:
        say(
            console,
            "How long it takes is not known: the pilot trained nothing, or its models are not in the store. Give "
            "seconds.control and seconds.distillation. One training: a control, or a distillation on as many documents "
            "as the pilot had.",
        )


def _about(known: Known, content: float) -> Iterator[str]:
    from nonmember.stats.planning import power_ceiling

    pilot = known.pilots[known.excluded]
    own = f" and {pilot.interaction**0.5:.3f} between seeds on these very documents" if pilot.interaction else ""
    yield (
        f"Delta is {pilot.delta_untouched:+.3f} of untouched models and {pilot.delta_controls:+.3f} of those that read "
        f"{known.excluded} (or more, where that is higher). Standard deviations: {pilot.tau:.3f} between models, "
        f"{pilot.sigma:.3f} between distillation seeds{own}, {pilot.document_variance**0.5:.3f} over "
        f"{pilot.num_documents} documents, of whose variance {pilot.shared:.0%} is common to target and controls."
    )
    if pilot.extra.variance:
        yield f"A target differs from controls of a stand-in by another {pilot.extra.variance**0.5:.3f}."
    if known.spread is not None:
        ceiling = power_ceiling(pilot.gap, math.hypot(known.spread, pilot.extra.variance**0.5), content)
        yield (
            f"Were all of the {known.spread:.3f} between models, no audit of any size would have more power to exclude "
            f"{known.excluded} than {ceiling:.2f}."
        )
    if len(known.gaps) > 1:
        least, most = (pick(known.gaps, key=known.gaps.__getitem__) for pick in (min, max))
        yield f"By set the gap is from {known.gaps[least]:+.3f} ({least}) to {known.gaps[most]:+.3f} ({most})."


def _table_of_readings(known: Known, plans: dict[str, Plan], seconds: Costs | None) -> Table:
    from rich.table import Table

    table = Table("reading, or more", "gap in Delta", "power at most", "the cheapest audit", header_style="bold")
    for label, plan in plans.items():
        outcome = _in_short(plan.designs[0], seconds) if plan.designs else OUTCOMES[plan.outcome]
        table.add_row(for_rich(label), f"{known.pilots[label].gap:+.3f}", f"{plan.ceiling:.2f}", outcome)
    return table


def _in_short(design: Design, seconds: Costs | None) -> str:
    return (
        f"{design.num_documents:,} documents, {_times(design.num_seeds, 'seed')}, "
        f"{_times(design.num_controls, 'control')} a reading: {_cost(design, seconds)} {_unit(seconds)}"
    )


def _times(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _table_of_designs(chosen: Plan, seconds: Costs | None) -> Table:
    """The cheapest first; every further one needs fewer documents."""
    from rich.table import Table

    table = Table(
        "documents",
        "distillation seeds",
        "controls a reading",
        "controls",
        "distillations",
        "error",
        "power",
        _unit(seconds),
        header_style="bold",
    )
    for column in table.columns:
        column.justify = "right"
    for design in chosen.designs[:LISTED]:
        numbers = (
            design.num_documents,
            design.num_seeds,
            design.num_controls,
            design.num_trained,
            design.num_distillations,
        )
        table.add_row(
            *(f"{number:,}" for number in numbers), f"{design.error:.3f}", f"{design.power:.2f}", _cost(design, seconds)
        )
    return table


def _unit(seconds: Costs | None) -> str:
    return "hours" if seconds else "trainings"


def _cost(design: Design, seconds: Costs | None) -> str:
    cost = design.cost / 3600 if seconds else design.cost
    return f"{cost:,.0f}" if cost >= 10 else f"{cost:.2g}"


# ---------------------------------------------------------------------------------------------- on disk


def as_details(
    config: DictConfig, known: Known, plans: dict[str, Plan], underpowered: Sequence[str], seconds: Costs | None
) -> dict[str, Any]:
    """Everything that was printed, and all alternatives; their cost in seconds, or in trainings where that is null."""
    return {
        "wanted": {
            "error": config.error,
            "confidence": config.confidence,
            "power": config.power,
            "excluded": known.excluded,
        },
        "seconds": asdict(seconds) if seconds else None,
        "num_readings": known.num_readings,
        "notes": list(known.notes),
        "gaps": dict(known.gaps),
        "sets_that_cannot_succeed": list(underpowered),
        "readings": {
            label: {
                "pilot": asdict(known.pilots[label]) | {"gap": known.pilots[label].gap},
                "outcome": plan.outcome,
                "highest_power": plan.ceiling,
                "explanation": plan.explanation,
                "designs": [asdict(design) for design in plan.designs],
            }
            for label, plan in plans.items()
        },
    }
