"""`nonmember dashboard`: a saved view of the W&B project that compares the audits, made with W&B's own library.

`SECTIONS` says what is plotted over what; the names are those of `tracking.trackers` and `tracking.mirror.facts_of`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from nonmember.runtime.files import write_text_atomically
from nonmember.runtime.naming import outputs_folder
from nonmember.tracking.online import require_online

NAME = "nonmember: audits"
NOTE = "dashboard.json"  # where the view was saved, so that it is saved there again
DELTA, P_VALUE = "test/statistic", "test/p_value"
RHOS = ("rho/reference_target", "rho/distilled_target")

# Section -> the facts of an audit to compare by; numbers are put on an axis, names into bars.
SECTIONS = {
    "Delta, p and rho by lambda": "lambda",
    "Delta, p and rho by tau": "tau",
    "Delta, p and rho by K": "k",
    "Delta, p and rho by reference": "reference",
    "Delta, p and rho by target": "target",
    "Delta, p and rho by domain": "domain",
}
NUMBERS = ("lambda", "tau", "k")
PARALLEL = ("domain", "half", "target", "reference", "lambda", "tau", "k")
FACTS = ("method", "target", "reference", "corpus", "lambda", "tau", "k", "truth")
COLUMNS = (
    *("run:displayName", "run:group", "run:state"),
    *(f"config:cell.value.{fact}" for fact in FACTS),
    *(f"summary:{name}" for name in (*RHOS, DELTA, "test/ci_low", "test/ci_high", P_VALUE, "verdict")),
)


def main() -> None:
    """Entry of `nonmember dashboard`."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False, prog="nonmember dashboard", description="A view of the audits in a W&B project."
    )
    parser.add_argument(
        "--entity", default=os.environ.get("WANDB_ENTITY"), help="the team or user that owns the project"
    )
    parser.add_argument(
        "--project", default=os.environ.get("WANDB_PROJECT") or "nonmember", help="default: %(default)s"
    )
    parser.add_argument("--print", action="store_true", help="print the view as JSON, and save nothing")
    given = parser.parse_args()
    if given.print:
        sys.stdout.write(json.dumps(specification(workspace(given.entity or "", given.project)), indent=1) + "\n")
        return
    if not given.entity:
        raise ValueError(
            "A view is saved in a W&B project of a user or team; got none. Name it with --entity or WANDB_ENTITY."
        )
    note = outputs_folder() / "wandb" / NOTE
    sys.stdout.write(save(given.entity, given.project, note) + "\n")


def workspace(entity: str, project: str) -> Any:
    """The view, saved nowhere yet. Raises ValueError where W&B's library for it is not installed."""
    ws, wr = _libraries()
    sections = [ws.Section(name="All settings", panels=_overview(wr), is_open=True)]
    for title, fact in SECTIONS.items():
        panels = _scatters(wr, fact) if fact in NUMBERS else _bars(wr, fact)
        sections.append(ws.Section(name=title, panels=panels, is_open=True))
    pictures = [
        wr.MediaBrowser(title=name, media_keys=[name], layout=wr.Layout(x=12 * index, w=12, h=10))
        for index, name in enumerate(("figure/distribution", "figure/ranks"))
    ]
    sections.append(ws.Section(name="Distributions and ranks", panels=pictures))
    sections.append(ws.Section(name="Scores of the documents", panels=[wr.WeavePanelSummaryTable(table_name="scores")]))
    return _grouped_in_the_table_alone(ws)(
        name=NAME,
        entity=entity,
        project=project,
        sections=sections,
        auto_generate_panels=False,
        runset_settings=ws.RunsetSettings(
            groupby=[ws.Metric("Group")],
            order=[ws.Ordering(ws.Config("cell.name"), ascending=True)],
            pinned_columns=list(COLUMNS),
        ),
    )


def specification(view: Any) -> dict[str, Any]:
    """What would be saved."""
    spec: dict[str, Any] = json.loads(view._to_model().spec.model_dump_json(by_alias=True, exclude_none=True))
    return spec


def save(entity: str, project: str, note: Path) -> str:
    """Save the view, over that of the last time where `note` knows it; returns its address."""
    ws, _ = _libraries()
    from nonmember.tracking.trackers import base_url_of, prepare_wandb

    require_online(base_url_of(prepare_wandb(note.parent)))
    view, key = workspace(entity, project), f"{entity}/{project}"
    known = json.loads(note.read_text(encoding="utf-8")) if note.is_file() else {}
    if key in known:
        there = _grouped_in_the_table_alone(ws).from_url(known[key])
        there.sections, there.runset_settings = view.sections, view.runset_settings
        view = there
    url = str(view.save().url)
    note.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(note, json.dumps(known | {key: url}, indent=1) + "\n")
    return url


def _overview(wr: Any) -> list[Any]:
    columns = [wr.ParallelCoordinatesPlotColumn(wr.Config(f"cell.{fact}"), display_name=fact) for fact in PARALLEL]
    columns += [wr.ParallelCoordinatesPlotColumn(wr.SummaryMetric(name)) for name in (*RHOS, DELTA, P_VALUE)]
    delta_by_p = wr.ScatterPlot(
        title="p against Delta", x=wr.SummaryMetric(DELTA), y=wr.SummaryMetric(P_VALUE), layout=wr.Layout(y=8)
    )
    rhos = wr.ScatterPlot(
        title="rho of the distilled against rho of the reference",
        x=wr.SummaryMetric(RHOS[0]),
        y=wr.SummaryMetric(RHOS[1]),
        layout=wr.Layout(x=8, y=8),
    )
    parallel = wr.ParallelCoordinatesPlot(columns=columns, title="Settings and outcome", layout=wr.Layout(w=24, h=8))
    return [parallel, delta_by_p, rhos]


def _scatters(wr: Any, fact: str) -> list[Any]:
    return [
        wr.ScatterPlot(
            title=f"{name} by {fact}", x=wr.Config(f"cell.{fact}"), y=wr.SummaryMetric(name), layout=_layout(wr, index)
        )
        for index, name in enumerate((DELTA, P_VALUE, *RHOS))
    ]


def _bars(wr: Any, fact: str) -> list[Any]:
    return [
        wr.BarPlot(
            title=f"mean {name} by {fact}",
            metrics=[name],
            groupby=wr.Config(f"cell.{fact}"),
            groupby_aggfunc="mean",
            groupby_rangefunc="minmax",
            layout=_layout(wr, index),
        )
        for index, name in enumerate((DELTA, P_VALUE, *RHOS))
    ]


def _layout(wr: Any, index: int) -> Any:
    """The place-th panel of a section, three in a row."""
    return wr.Layout(x=8 * (index % 3), y=6 * (index // 3))


def _grouped_in_the_table_alone(ws: Any) -> Any:
    """A workspace whose panels show every run while its table is grouped by sweep, for which there is no setting."""

    class View(ws.Workspace):
        def _to_model(self) -> Any:
            model = super()._to_model()
            for section in model.spec.section.panel_bank_config.sections:
                section.local_panel_settings.use_runs_table_grouping_in_panels = False
            return model

    return View


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
