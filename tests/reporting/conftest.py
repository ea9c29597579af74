"""The reports of conf/report, as `nonmember report` builds them."""

from __future__ import annotations

import matplotlib
import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra

import golden
from nonmember.config.choices import config_directory
from nonmember.config.roots import register
from nonmember.config.safety import instantiate
from nonmember.reports.declared.report import DeclaredReport
from nonmember.reports.render import figures


@pytest.fixture
def painted():
    """Name -> what was painted last under it."""
    return {}


@pytest.fixture(autouse=True, scope="session")
def reports_print_what_they_printed():
    """Every report that a test builds is compared with tests/golden/reports.json."""
    build = DeclaredReport.build

    def checked(report, runs):
        document = build(report, runs)
        golden.check(document, runs)
        return document

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeclaredReport, "build", checked)
        yield


@pytest.fixture(autouse=True)
def pictures_are_not_rendered(request, monkeypatch, painted):
    """Nine tenths of a report's time; without the mark `pictures` they are painted, and left at that."""

    def draw(name, width, height, paint):
        painted[name] = figures.Canvas(figsize=(width, height), layout="constrained")
        with matplotlib.rc_context(figures.STYLE):
            paint(painted[name])
        return f'<svg viewBox="0 0 {72 * width:g} {72 * height:g}"></svg>\n', b""

    if not request.node.get_closest_marker("pictures"):
        monkeypatch.setattr(figures, "draw", draw)


@pytest.fixture(autouse=True, scope="session")
def pictures_of_few_points():
    """Of the pixels no test looks at more than the first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "PNG_DPI", 20)
        yield


def configured(name):
    register()
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(config_directory()), version_base=None):
        return instantiate(compose("report", [f"report={name}"]).report)


def of_report(name):
    """A fixture: that report."""

    @pytest.fixture(scope="session")
    def report():
        return configured(name)

    return report


paper, fsd_paper, kds_paper, order_paper = map(of_report, ("prism", "fsd", "kds", "order"))
dose_paper, arena_paper, mc_pdd_paper, decop_paper = map(of_report, ("dose", "arena", "mc_pdd", "decop"))
real_model_paper = of_report("smollm")
