"""The report of the calibration study: who counts as falsely cleared, intervals, gates, shams."""

from __future__ import annotations

import numpy as np
import pytest
from made_up_calibration import PLANTED, clearance, everything, rival
from reading import built
from scipy import stats

from nonmember.reports.core.grid import FALSE
from nonmember.reports.render.markdown import cell_text
from nonmember.stats.margins import prediction_p_value
from nonmember_papers.calibration import HALVES


def text(section, key, row, column):
    (block,) = [item for item in section.blocks if item.key == key]
    (cells,) = [item.cells for item in block.rows if item.name == row]
    return cell_text(cells[block.columns.index(column)]).replace("\\[", "[").replace("\\]", "]")


def test_a_clearance_is_false_only_for_what_it_excludes(calibration_paper):
    results = [
        clearance("s5", 0.01),
        clearance("s4", 0.2),
        clearance("s4", 0.01, verdict="invalid"),
        clearance("s3", 0.01),
        clearance("s7", 0.01),
        clearance("s0", 0.01),
        clearance("u1", 0.3),
        clearance("s5", 0.001, domain="pandas"),
    ]
    section = built(calibration_paper, *results)["errors"]
    rule = "clearance of 8x"
    low, high = stats.binomtest(1, 3).proportion_ci(method="exact")
    assert text(section, "errors-reported", rule, "false clearances") == f"1{FALSE} of 3 [{low:.0%}, {high:.0%}]"
    assert text(section, "errors-reported", "clearance of 4x", "false clearances").startswith(f"2{FALSE} of 4 ")
    assert text(section, "errors-reported", "clearance of 12x", "false clearances").startswith(f"1{FALSE} of 1 ")
    assert text(section, "errors-reported", rule, "power, n = 100").startswith("1 of 2 ")
    assert text(section, "errors-chosen", rule, "false clearances").startswith(f"1{FALSE} of 1 ")


def test_p_is_that_of_the_excluded_reading_and_heavier_ones(calibration_paper):
    by_reading = dict(zip(PLANTED, (0.2, 0.04, 0.01, 0.9), strict=True))
    section = built(calibration_paper, clearance("s0", by_reading))["errors"]
    told = [text(section, "errors-reported", f"clearance of {item}", "power, n = 100") for item in ("4x", "8x", "12x")]
    assert [item.split(" [")[0] for item in told] == ["0 of 1", "1 of 1", "1 of 1"]


def test_prism_is_wrong_about_any_reader(calibration_paper):
    results = [
        clearance("s1", prism_p=0.01),
        clearance("s5", prism_p=0.3),
        rival("paired_t", "s0", 0.01),
        rival("llm_di", "s0", 0.01),
    ]
    sections = built(calibration_paper, *results)
    errors = sections["errors"]
    assert text(errors, "errors-reported", "PRISM", "false clearances").startswith(f"1{FALSE} of 2 ")
    assert text(errors, "errors-reported", "paired t", "power, n = 100").startswith("1 of 1 ")
    table = sections["by-reading"]
    assert text(table, "by-reading-reported", "nothing", "LLM-DI finds membership").startswith(f"1{FALSE} of 1 ")
    assert text(table, "by-reading-reported", "1x", "PRISM").startswith(f"1{FALSE} of 1 ")


def test_gates_and_shams_are_counted(calibration_paper):
    results = [clearance("s0"), clearance("s0", verdict="invalid"), clearance("s5")]
    section = built(calibration_paper, *results)["gates"]
    assert text(section, "gates", "not farther from the target", "target read nothing").startswith("1 of 2 ")
    assert text(section, "gates", "any of them", "target read the set").startswith("0 of 1 ")
    assert text(section, "gates", "any of them", "sham: weights with noise").startswith("3 of 3 ")
    assert text(section, "gates", "not farther from the target", "sham: weights with noise").startswith("0 of 3 ")


@pytest.mark.slow
def test_figures_rest_on_all_results(calibration_paper):
    sections = built(calibration_paper, *everything())
    for key in ("rates", "quantiles", "deltas"):
        (figure,) = sections[key].figures
        assert figure.svg.startswith("<svg")
        assert figure.numbers is not None
    (deltas,) = built(calibration_paper, clearance("s5", delta=-0.2))["deltas"].figures
    assert deltas.numbers.rows[0].cells[0].ours[0].value == pytest.approx(-0.2 - 0.03)


def test_an_audit_is_invalid_for_a_reading_that_leaves_delta_where_it_was(calibration_paper):
    """Untouched controls at .03: four readings leave .05, eight .02, twelve -.1."""
    curve = {
        "points": [
            {"share": s, "exposures": float(e), "p_at_least": 0.01, "mean": mean}
            for (s, e), mean in zip(PLANTED, (0.05, 0.02, -0.1, -0.1), strict=True)
        ]
    }
    gate = {"separation": {"value": -0.02, "bound": 0.0, "upper": False, "passed": False}}
    details = {"detection": curve, "gates": gate}
    section = built(calibration_paper, clearance("s0", verdict="invalid", details=details))["errors"]
    told = [text(section, "errors-reported", f"clearance of {item}", "power, n = 100") for item in ("4x", "8x", "12x")]
    assert [item.split(" [")[0] for item in told] == ["0 of 1", "1 of 1", "1 of 1"]
    told = [text(section, "errors-reported", f"clearance of {item}", "invalid") for item in ("4x", "8x", "12x")]
    assert [item.split(" [")[0] for item in told] == ["1 of 1", "0 of 1", "0 of 1"]


def test_deviations_of_targets_from_their_controls(calibration_paper):
    """.13 - .03 and -.06 + .11 about controls of spread .01: sqrt((.1^2 + .05^2) / 2 - .00015) = .078."""
    results = [clearance("s0", delta=0.13), clearance("s4", delta=-0.06)]
    section = built(calibration_paper, *results)["deviations"]
    row = f"all, {HALVES['reported']}"
    told = [text(section, "deviations", row, item) for item in ("mean", "beyond that", "targets", "sets")]
    assert told == ["+0.075", "0.078", "2", "1"]


def test_controls_are_judged_by_one_another(calibration_paper):
    """Of two readings with two controls each: 4 p-values, each from the other control and the other pair's spread."""
    controls = {"0x": [0.0, 0.0], "4x": [-0.02, -0.04], "8x": [-0.1, -0.16]}
    made = clearance("s5", details={"control_deltas": controls})
    (figure,) = built(calibration_paper, made, made)["quantiles"].figures
    (row,) = [row for row in figure.numbers.rows if row.name == "controls, by one another"]
    assert row.cells[0].ours[1].value == 4
    p = stats.t(1).sf((-0.02 + 0.04) / (0.06 / np.sqrt(2) * np.sqrt(2)))
    assert prediction_p_value(-0.02, {"4x": [-0.04], "8x": [-0.1, -0.16]}, "4x") == pytest.approx(p)


@pytest.mark.slow
def test_targets_of_the_controls_own_base_are_counted_by_themselves(calibration_paper):
    own = {"settings": {"controls": {"stand_in": {"label": "micro_s2"}}}, "keys": {"control-8x-31": "0" * 16}}
    results = [clearance("s5", 0.01, target="micro_s2+12x", **own), clearance("s5", 0.01, target="micro_s+12x", **own)]
    section = built(calibration_paper, *results)["errors"]
    for rule in ("clearance of 8x", "clearance of 8x, own base"):
        assert text(section, "errors-reported", rule, "false clearances").startswith(f"1{FALSE} of 1 ")


def test_audits_under_attack_are_no_part_of_the_study(calibration_paper):
    results = [clearance("s5", 0.2), clearance("s5", 0.01, sweep="red_team")]
    section = built(calibration_paper, *results)["errors"]
    assert text(section, "errors-reported", "clearance of 8x", "false clearances").startswith("0 of 1 ")
