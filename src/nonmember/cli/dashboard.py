"""`nonmember dashboard`: a saved view of the W&B project that compares the audits, made with W&B's own library.

`SECTIONS` says what is plotted over what; the names are those of `tracking.trackers` and `results.mirror.facts_of`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from nonmember.cli import parser_of
from nonmember.runtime.files import write_text_atomically
from nonmember.runtime.naming import outputs_folder
from nonmember.tracking.trackers import prepare_wandb

NAME = "nonmember: audits"
NOTE = "dashboard.json"  # where the view was saved, so that it is saved there again
DELTA, P_VALUE = "test/statistic", "test/p_value"
OUTCOMES = (DELTA, P_VALUE, "rho/reference_target", "rho/distilled_target")
NUMBERS, NAMES = ("lambda", "tau", "k"), ("reference", "target", "domain")  # on an axis; into bars
PARALLEL = ("domain", "half", "target", "reference", *NUMBERS)
FACTS = ("method", "target", "reference", "corpus", *NUMBERS, "truth")
COLUMNS = (
    *("run:displayName", "run:group", "run:state"),
    *(f"config:cell.value.{fact}" for fact in FACTS),
    *(f"summary:{name}" for name in (*OUTCOMES, "test/ci_low", "test/ci_high", "verdict")),
)


def main() -> None:
    """Print the address of the saved view."""
    parser = parser_of("dashboard", "A view of the audits in a W&B project.")
    entity, project = os.environ.get("WANDB_ENTITY"), os.environ.get("WANDB_PROJECT") or "nonmember"
    parser.add_argument("--entity", default=entity, help="the team or user that owns the project")
    parser.add_argument("--project", default=project, help="default: %(default)s")
    given = parser.parse_args()
    if not given.entity:
        raise ValueError(
            "A view is saved in a W&B project of a user or team; got none. Name it with --entity or WANDB_ENTITY."
        )
    sys.stdout.write(save(given.entity, given.project, outputs_folder() / "wandb" / NOTE) + "\n")


def workspace(entity: str, project: str) -> Any:
    """The view, saved nowhere yet."""
    ws, wr = _libraries()
    sections = {"All settings": _overview(wr)}
    sections |= {f"Delta, p and rho by {fact}": _over(wr, fact) for fact in (*NUMBERS, *NAMES)}
    sections["Distributions and ranks"] = [
        wr.MediaBrowser(title=name, media_keys=[name], layout=wr.Layout(x=12 * index, w=12, h=10))
        for index, name in enumerate(("figure/distribution", "figure/ranks"))
    ]
    sections["Scores of the documents"] = [wr.WeavePanelSummaryTable(table_name="scores")]
    return ws.Workspace(
        name=NAME,
        entity=entity,
        project=project,
        sections=[ws.Section(name=name, panels=panels, is_open=True) for name, panels in sections.items()],
        auto_generate_panels=False,
        runset_settings=ws.RunsetSettings(
            order=[ws.Ordering(ws.Metric("Group")), ws.Ordering(ws.Config("cell.name"))], pinned_columns=list(COLUMNS)
        ),
    )


def save(entity: str, project: str, note: Path) -> str:
    """Save the view, over that of the last time where `note` knows it; returns its address."""
    ws, _ = _libraries()
    wandb = prepare_wandb(note.parent)
    view, key = workspace(entity, project), f"{entity}/{project}"
    known = json.loads(note.read_text(encoding="utf-8")) if note.is_file() else {}
    try:
        if key in known:
            there = ws.Workspace.from_url(known[key])
            there.sections, there.runset_settings = view.sections, view.runset_settings
            view = there
        url = str(view.save().url)
    except wandb.errors.Error as error:
        raise ValueError(f"W&B did not save the view ({error}). Set WANDB_API_KEY.") from error
    write_text_atomically(note, json.dumps(known | {key: url}, indent=1) + "\n")
    return url


def _overview(wr: Any) -> list[Any]:
    columns = [wr.ParallelCoordinatesPlotColumn(wr.Config(f"cell.{fact}"), display_name=fact) for fact in PARALLEL]
    columns += [wr.ParallelCoordinatesPlotColumn(wr.SummaryMetric(name)) for name in OUTCOMES]
    both = [(DELTA, P_VALUE), OUTCOMES[2:]]
    return [
        wr.ParallelCoordinatesPlot(columns=columns, title="Settings and outcome", layout=wr.Layout(w=24, h=8)),
        *(
            wr.ScatterPlot(
                title=f"{y} against {x}", x=wr.SummaryMetric(x), y=wr.SummaryMetric(y), layout=wr.Layout(x=8 * i, y=8)
            )
            for i, (x, y) in enumerate(both)
        ),
    ]


def _over(wr: Any, fact: str) -> list[Any]:
    """Each outcome over a setting, three panels in a row."""
    panels, axis = [], wr.Config(f"cell.{fact}")
    for index, name in enumerate(OUTCOMES):
        place = {"title": f"{name} by {fact}", "layout": wr.Layout(x=8 * (index % 3), y=6 * (index // 3))}
        if fact in NUMBERS:
            panels.append(wr.ScatterPlot(x=axis, y=wr.SummaryMetric(name), **place))
        else:
            ranges = {"groupby_aggfunc": "mean", "groupby_rangefunc": "minmax"}
            panels.append(wr.BarPlot(metrics=[name], groupby=axis, **ranges, **place))
    return panels


def _libraries() -> tuple[Any, Any]:
    try:
        import wandb_workspaces.reports.v2 as reports
        import wandb_workspaces.workspaces as workspaces
    except ImportError as error:
        raise ValueError(
            f"The dashboard is made with W&B's library for it, which is missing ({error}): "
            'pip install "nonmember[dashboard]"'
        ) from error
    return workspaces, reports
