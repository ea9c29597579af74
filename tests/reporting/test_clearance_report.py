"""The report of calibrated clearance: verdicts against what was read, detection in words and pictures, gates, sets."""

from __future__ import annotations

import made_up
import pytest
from made_up_clearance import EXCLUDED, READINGS, clearance, controls, everything
from reading import check_written, runs_of, text

from nonmember.records.exposure import Exposure
from nonmember.reports.core import formats
from nonmember.reports.core.explorer import false_claim
from nonmember.reports.core.grid import FALSE
from nonmember.reports.render.markdown import cell_text
from nonmember.results.readings import excluded, planted, read_by_target, read_so_much
from nonmember.results.result import exposure_of

NOTHING, ONCE, FOUR, OFTEN, HALF = READINGS


def built(paper, *results):
    return paper.build(runs_of(*results))


def sections(paper, *results):
    return {section.key: section for section in built(paper, *results).sections}


def block(section, key):
    (found,) = [item for item in [*section.blocks, *(figure.numbers for figure in section.figures)] if item.key == key]
    return found


# ------------------------------------------------------------------------------------------------ readings


@pytest.mark.parametrize(
    ("label", "reading"),
    [
        ("4x", Exposure(1.0, 4)),
        ("8x50%", Exposure(0.5, 8)),
        ("micro_s+12x25%", Exposure(0.25, 12)),
        ("target+12xA", Exposure(1.0, 12)),
        ("micro_s+0x", Exposure(1.0, 0)),
        ("micro_s", None),
        ("a4x", None),
        ("target+general", None),
        ("x+5x0%", None),
        ("3x3xl", None),
    ],
)
def test_what_a_label_tells(label, reading):
    assert exposure_of(label) == reading


def test_labels_of_readings_are_read_back():
    for reading in (*READINGS, Exposure(0.05, 3)):
        assert exposure_of(reading.label) == reading


def test_who_read_less_than_is_excluded_is_not_falsely_cleared():
    light, heavy = clearance(0.24, ONCE, "member"), clearance(0.24, FOUR, "member")
    assert light.verdict.decision == heavy.verdict.decision == "evidence_of_non_membership"
    assert [false_claim(item) for item in (light, heavy)] == ["", "false clearance"]
    assert not read_so_much(clearance(0.24, HALF, "member")), "half of it is not all of it"
    assert read_so_much(clearance(0.24, None, "member", target="someone")), "nothing tells that it read less"
    assert false_claim(made_up.result(truth="member")) == "false clearance", "PRISM knows no dose"
    assert excluded(light) == EXCLUDED
    assert list(planted(light)) == ["0x", "1x", "4x", "8x50%", "12x"]
    assert read_by_target(heavy) == FOUR
    assert read_by_target(clearance(0.2)) is None


# ---------------------------------------------------------------------------------------------- the report


def test_the_glance_tells_power_errors_and_claims_that_were_true(clearance_paper):
    results = [
        clearance(0.25),
        clearance(0.25, gates={"layout": 0.9}),
        clearance(0.24, FOUR, "member"),
        clearance(0.1, OFTEN, "member"),
        clearance(0.24, ONCE, "member"),
        clearance(0.25, truth=None),
        clearance(0.0, OFTEN, "member", prism_p=0.6),
    ]
    glance = built(clearance_paper, *results).glance
    told = {column: cell_text(cell) for column, cell in zip(glance.columns, glance.rows[0].cells, strict=True)}
    assert told == {
        "results": "7",
        "read nothing: cleared": "1 of 2",
        "read so much: cleared": "1 of 3",
        "read less: cleared": "1 of 1",
        "not known: cleared": "1 of 1",
        "PRISM, read nothing": "2 of 2",
        "PRISM, read so much": "2 of 3",
        "invalid": "1 of 7",
    }


def test_verdicts_by_target_and_what_it_read(clearance_paper):
    results = [clearance(0.25 + shift, corpus=name) for shift, name in ((0, "a"), (0.02, "b"), (0.01, "c"))]
    results += [clearance(0.24, FOUR, "member", corpus="a"), clearance(0.24, ONCE, "member", corpus="a")]
    found = block(sections(clearance_paper, *results)["verdicts"], "verdicts-study")
    assert text(found, "micro_s+0x (read nothing)", "Delta") == "+0.260 (+0.250 to +0.270)"
    assert text(found, "micro_s+0x (read nothing)", "cleared") == "3 of 3"
    assert text(found, "micro_s+4x (read 4x)", "cleared") == f"1{FALSE} of 1"
    assert text(found, "micro_s+1x (read 1x)", "cleared") == "1 of 1"
    assert text(found, "micro_s+1x (read 1x)", "cleared by PRISM") == f"1{FALSE} of 1"
    assert [row.name for row in found.rows] == [
        "micro_s+0x (read nothing)",
        "micro_s+1x (read 1x)",
        "micro_s+4x (read 4x)",
    ]
    assert found.notes == ("Excluded, with all that is heavier: 4x.",)


def test_margins_and_controls_by_reading(clearance_paper):
    result = clearance(0.25)
    section = sections(clearance_paper, result)["margins"]
    means = {label: sum(deltas) / 2 for label, deltas in result.statistics.details["control_deltas"].items()}
    numbers = section.figures[0].numbers
    assert numbers.columns == ("0x", "1x", "4x", "12x", "8x50%"), "whole sets first, then by dose"
    assert text(numbers, "numpy-small", "8x50%") == formats.signed(means["8x50%"])
    bounds = block(section, "margins-study")
    assert bounds.columns == ("4x", "12x"), "those that are excluded"
    assert text(bounds, "numpy-small", "4x") == formats.signed(result.statistics.details["margins"]["4x"]["bound"])


def test_controls_that_audits_share_are_counted_once(clearance_paper):
    shared, own = controls(0), controls(1)
    results = [clearance(0.25, control_deltas=shared), clearance(0.2, ONCE, "member", shared), clearance(0.25)]
    results.append(clearance(0.25, control_deltas=own, target="micro_m"))
    numbers = sections(clearance_paper, *results)["margins"].figures[0].numbers
    low, high = sorted(sum(deltas["4x"]) / 2 for deltas in (shared, own))
    assert text(numbers, "numpy-small", "4x") == (
        f"{formats.signed((low + high) / 2)} ({formats.signed(low)} to {formats.signed(high)})"
    )


def test_detection_in_tables_and_in_words(clearance_paper):
    result = clearance(0.22, truth=None)
    points = {(item["share"], item["exposures"]): item for item in result.statistics.details["detection"]["points"]}
    section = sections(clearance_paper, result)["detection"]
    power, noticed = (figure.numbers for figure in section.figures)
    assert power.columns == noticed.columns == ("1x", "4x", "12x", "8x50%")
    assert text(power, "numpy-small", "1x") == f"{points[1.0, 1]['power_at_least']:.2f}"
    largest = block(section, "largest-p-study")
    assert text(largest, "target (not known)", "4x") == formats.p_value(
        max(points[item]["p_value"] for item in ((1.0, 4), (1.0, 12)))
    )
    assert text(noticed, "target (not known)", "4x") == "1 of 1"
    assert text(noticed, "target (not known)", "1x") == "0 of 1"
    smallest = block(section, "smallest-study")
    assert text(smallest, "numpy-small", "100% of the documents") == "4 times"
    (words,) = section.notes
    assert words == (
        "numpy-small under target: that the target read at least 50% of it at least 8 times, or at least 100% of it at "
        "least 4 times, is excluded with 95% confidence each."
    )


def test_an_invalid_audit_notices_nothing(clearance_paper):
    section = sections(clearance_paper, clearance(0.25, refused=False))["detection"]
    assert text(section.figures[1].numbers, "micro_s+0x (read nothing)", "12x") == "0 of 1"
    assert section.notes == ("numpy-small under micro_s+0x: nothing, because the audit is invalid.",)


def test_noticing_what_was_there_is_marked(clearance_paper):
    section = sections(clearance_paper, clearance(0.24, FOUR, "member"))["detection"]
    noticed = section.figures[1].numbers
    assert text(noticed, "micro_s+4x (read 4x)", "4x") == f"1{FALSE} of 1"
    assert text(noticed, "micro_s+4x (read 4x)", "12x") == "1 of 1"


def test_no_dose_is_detectable_where_controls_are_too_far_apart(clearance_paper):
    section = sections(clearance_paper, clearance(0.25, control_deltas=controls(3, spread=0.3)))["detection"]
    assert text(block(section, "smallest-study"), "numpy-small", "100% of the documents") == "none"
    assert "no planted reading is excluded" in section.notes[0]


def test_gates_and_shams(clearance_paper):
    results = [clearance(0.25), clearance(0.25, gates={"kl_third": 0.3}), clearance(0.25, refused=False)]
    section = sections(clearance_paper, *results)["gates"]
    found = block(section, "gates-study")
    row = "rise of divergence on a third text"
    assert text(found, row, "must be") == "\\< 0.10"
    assert text(found, row, "distilled references") == "0.020 (0.020 to 0.300)"
    assert text(found, row, "failed") == "1 of 3"
    assert text(found, "gain in cross-entropy on the suspect set", "sham: noise, failed") == "2 of 3"
    assert text(found, "AUC by layout, suspect against third text", "sham: noise, failed") == formats.DASH
    assert text(block(section, "shams-study"), "refused", "sham: noise") == "2 of 3"


def test_several_sets_together(clearance_paper):
    deltas = {"a": 0.25, "b": 0.25, "c": 0.1}
    section = sections(clearance_paper, *(clearance(item, corpus=name) for name, item in deltas.items()))["together"]
    found = block(section, "together-study")
    assert text(found, "micro_s+0x", "each (Holm)") == "2 of 3"
    assert text(found, "micro_s+0x", "all of them: largest p (allowed)").endswith("(no)")
    p, adjusted, screened = text(block(section, "together-p-study"), "micro_s+0x", "a").split(" / ")
    assert float(p) < float(screened) < float(adjusted)
    assert any("no claim about any one set" in note for note in found.notes)
    (note,) = sections(clearance_paper, clearance(0.25))["together"].notes
    assert "no target with several sets" in note


def test_without_results_it_says_so(clearance_paper):
    for section in sections(clearance_paper, made_up.result()).values():
        assert not section.blocks
        assert not section.figures
        assert len(section.notes) == 1


@pytest.mark.slow
@pytest.mark.pictures
def test_the_command_writes_page_text_tables_and_pictures(written):
    folder = written("clearance", *everything(), clearance(0.2, truth=None, world="own", corpus="<b>mine"))
    pictures = (f"figures/{name}-{world}.svg" for name in ("deltas", "power", "noticed") for world in ("study", "own"))
    check_written(folder, "tables/gates.csv", *pictures)
    assert not [path for path in folder.glob("figures/*.svg") if "<b>" in path.read_text()]
