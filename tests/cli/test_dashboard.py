"""The view compares what the audits tell under the names they tell it, and its library can read it again."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from nonmember.cli import dashboard
from nonmember.results.mirror import facts_of, summary_of
from wandb_helpers import result, wandb_without_home

pytest.importorskip("wandb_workspaces")


@pytest.fixture(scope="module")
def spec() -> dict[str, Any]:
    return specification(dashboard.workspace("an-entity", "a-project"))


def specification(view) -> dict[str, Any]:
    """What would be saved."""
    return json.loads(view._to_model().spec.model_dump_json(by_alias=True, exclude_none=True))


def sections(spec: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    return {section["name"]: section["panels"] for section in spec["section"]["panelBankConfig"]["sections"]}


def names_in(node: Any) -> set[str]:
    """Every name of a value that panels, columns and order refer to."""
    if isinstance(node, dict):
        told = {
            str(value) for key, value in node.items() if key in ("accessor", "xAxis", "yAxis") and ":" in str(value)
        }
        told |= {f"summary:{name}" for name in node.get("metrics", [])}
        if "groupBy" in node:
            told.add(f"config:{node['groupBy']}")
        told |= {name for name in node.get("columnVisible", {}) if not name.startswith("run:")}
        return told.union(*(names_in(value) for value in node.values()))
    return set().union(*(names_in(value) for value in node)) if isinstance(node, list) else set()


@pytest.mark.slow
def test_all_it_shows_is_told_by_audits(spec):
    told = {f"config:cell.value.{name}" for name in facts_of(result())} | {f"summary:{n}" for n in summary_of(result())}
    shown = names_in(spec)
    assert shown <= told
    assert {"config:cell.value.lambda", "config:cell.value.reference", "summary:verdict"} <= shown


@pytest.mark.parametrize("fact", ["lambda", "tau", "k"])
def test_outcomes_are_plotted_over_settings(spec, fact):
    (panels,) = (p for name, p in sections(spec).items() if name.lower().endswith(f"by {fact}"))
    plotted = {(panel["config"]["xAxis"], panel["config"]["yAxis"]) for panel in panels}
    outcomes = ("test/statistic", "test/p_value", "rho/reference_target", "rho/distilled_target")
    assert plotted == {(f"config:cell.value.{fact}", f"summary:{name}") for name in outcomes}
    assert {panel["viewType"] for panel in panels} == {"Scatter Plot"}


@pytest.mark.parametrize("fact", ["reference", "target", "domain"])
def test_outcomes_are_averaged_by_name(spec, fact):
    (panels,) = (p for name, p in sections(spec).items() if name.endswith(f"by {fact}"))
    assert {panel["config"]["groupBy"] for panel in panels} == {f"cell.value.{fact}"}
    assert {panel["config"]["groupAgg"] for panel in panels} == {"mean"}


def test_the_table_is_sorted_by_sweep_and_not_grouped_so_that_panels_show_every_run(spec):
    assert '"grouping": []' in json.dumps(spec)
    keys = [key["key"]["name"] for key in spec["section"]["runSets"][0]["sort"]["keys"]]
    assert keys == ["group", "cell.name"]


def test_panels_do_not_lie_upon_each_other(spec):
    for name, panels in sections(spec).items():
        cells = [
            (x, y)
            for item in (panel["layout"] for panel in panels)
            for x in range(item["x"], item["x"] + item["w"])
            for y in range(item["y"], item["y"] + item["h"])
        ]
        assert len(cells) == len(set(cells)), name
        assert max(x for x, _ in cells) < 24


def test_the_library_reads_it_again():
    view = dashboard.workspace("an-entity", "a-project")
    model = view._to_model()
    again = type(view)._from_model(type(model).model_validate(model.model_dump()))
    assert [section.name for section in again.sections] == list(sections(specification(view)))


def test_saving_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("NONMEMBER_OUTPUTS", str(tmp_path))
    with wandb_without_home(monkeypatch):
        monkeypatch.setattr(sys, "argv", ["nonmember dashboard"])
        with pytest.raises(ValueError, match="--entity"):
            dashboard.main()
        sys.argv += ["--entity", "somebody"]
        with pytest.raises(ValueError, match="Set WANDB_API_KEY"):
            dashboard.main()
    assert not (tmp_path / "wandb/dashboard.json").exists()


def test_without_its_library_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb_workspaces.workspaces", None)
    with pytest.raises(ValueError, match=r"pip install .nonmember\[dashboard\]"):
        dashboard.workspace("an-entity", "a-project")


def test_it_is_saved_where_it_was(monkeypatch, tmp_path):
    ws, _ = dashboard._libraries()
    saved, loaded = [], []

    def save(self):
        saved.append(self)
        return self

    def from_url(cls, url):
        loaded.append(url)
        return cls(entity="an-entity", project="a-project", name="as it is there")

    monkeypatch.setattr(ws.Workspace, "save", save)
    monkeypatch.setattr(ws.Workspace, "url", "https://example.org/an-entity/a-project?nw=abc")
    monkeypatch.setattr(ws.Workspace, "from_url", classmethod(from_url))
    with wandb_without_home(monkeypatch):
        for _ in range(2):
            url = dashboard.save("an-entity", "a-project", tmp_path / "wandb/dashboard.json")
    assert loaded == [url]
    first, second = saved
    assert [section.name for section in first.sections] == [section.name for section in second.sections]
    assert (first.name, second.name) == (dashboard.NAME, "as it is there")
