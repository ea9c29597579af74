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
from nonmember.reports.core.report import Report
from nonmember.reports.render import figures


@pytest.fixture
def painted():
    """Name -> what was painted last under it."""
    return {}


@pytest.fixture(autouse=True, scope="session")
def reports_print_what_they_printed():
    """Every report that a test builds is compared with tests/golden/reports.json."""
    build = Report.build

    def checked(report, runs):
        document = build(report, runs)
        golden.check(document, runs)
        return document

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Report, "build", checked)
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


@pytest.fixture(scope="session")
def paper():
    return configured("prism")


@pytest.fixture(scope="session")
def fsd_paper():
    return configured("fsd")


@pytest.fixture(scope="session")
def kds_paper():
    return configured("kds")


@pytest.fixture(scope="session")
def order_paper():
    return configured("order")


@pytest.fixture(scope="session")
def red_team_paper():
    return configured("red_team")


@pytest.fixture(scope="session")
def calibration_paper():
    return configured("calibration")


@pytest.fixture(scope="session")
def dose_paper():
    return configured("dose")


@pytest.fixture(scope="session")
def dose_beyond_paper():
    return configured("dose_beyond")


@pytest.fixture(scope="session")
def arena_paper():
    return configured("arena")


@pytest.fixture(scope="session")
def dated_paper():
    return configured("dated")


@pytest.fixture(scope="session")
def real_model_paper():
    return configured("smollm")


@pytest.fixture(scope="session")
def margins_paper():
    return configured("published_margins")


@pytest.fixture(scope="session")
def clearance_paper():
    return configured("clearance")


@pytest.fixture(scope="session")
def mc_pdd_paper():
    return configured("mc_pdd")


@pytest.fixture(scope="session")
def decop_paper():
    return configured("decop")


def configured(name):
    register()
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(config_directory()), version_base=None):
        return instantiate(compose("report", [f"report={name}"]).report)
