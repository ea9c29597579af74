"""The report of the dose study: what counts as an error, intervals by clusters, audits read again, the protocol."""

from __future__ import annotations

import dataclasses
import hashlib

import made_up
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_up_dose import audit, study, traced, with_scores
from reading import block, built, cell, text

from nonmember.reports.core.documents import read_values
from nonmember.reports.core.grid import FALSE
from nonmember.reports.planted.pilot import DoseAudits
from nonmember.reports.planted.rereading import measured, measured_on, panel_between, pooled, read_again
from nonmember.results.figures import of_readings
from nonmember.results.load import Run
from nonmember.stats.dose_curve import Control, dose_curve, residual_covariance
from nonmember.stats.proportions import exact_interval
from nonmember_papers.dose import HALVES, protocol
from nonmember_papers.dose.again import left_out

REPORTED = HALVES["reported"]


def counted(found, row, column):
    """How many of how many."""
    return text(found, row, column).split(" \\[")[0].split(" [")[0]


def sections_of(paper, runs):
    return {section.key: section for section in paper.build(runs).sections}


def test_errors_are_counted_against_what_was_read(dose_paper):
    results = [
        audit(1, verdict="cleared"),
        audit(1, verdict="found"),
        audit(2, verdict="found"),
        audit(4, verdict="invalid"),
        audit(12, verdict="cleared", share=0.5),  # a part of the set: no error to clear of a whole reading
        audit(0, verdict="cleared"),
        audit(0, 3, verdict="cleared"),
        audit(0, 2, verdict="found"),
        audit(0, 4, verdict="cleared"),
        audit(0, 12, verdict="found"),
        audit(0, 4, verdict="invalid"),
    ]
    found = block(built(dose_paper, *results)["errors"], "errors")
    told = {row.name: counted(found, row.name, REPORTED) for row in found.rows}
    assert told == {
        "false clearance, read once or more": f"1{FALSE} of 4",
        "false clearance, read once": f"1{FALSE} of 2",
        "power, without related reading": "2 of 3",
        "power, with related reading": "1 of 3",
        "false membership, without related reading": f"1{FALSE} of 3",
        "false membership, with related reading": f"1{FALSE} of 3",
        "membership found, read 1x": "1 of 2",
        "membership found, read 2x": "1 of 1",
        "membership found, read 4x": "0 of 1",
        "invalid": "2 of 11",
    }


def test_targets_of_other_bases_and_of_the_other_half_are_told_apart(dose_paper):
    results = [
        audit(1, verdict="cleared"),
        audit(1, verdict="found", base="olmo"),
        audit(1, sweep="dose_aligned"),
        audit(1, sweep="dose_again"),
        audit(1, verdict="found", sweep="dose_chosen"),
        audit(1, verdict="cleared", sweep="red_team"),
    ]
    found = block(built(dose_paper, *results)["errors"], "errors")
    assert found.columns == tuple(HALVES.values())
    assert any(note.startswith(f"Panels of features: {REPORTED}: v1; ") for note in found.notes)
    row = "false clearance, read once"
    assert [counted(found, row, item) for item in found.columns] == [f"1{FALSE} of 1", "0 of 1", "0 of 1", "0 of 1"]


def test_intervals_go_by_sets_and_models(dose_paper):
    """Of three sets one is special: four models are wrong about it, and about no other."""
    results = [
        audit(1, verdict="cleared" if name == "scipy-a" else "found", name=name, model=f"m{model}")
        for name in ("scipy-a", "sympy-a", "torch-a")
        for model in range(4)
    ]
    found = block(built(dose_paper, *results)["errors"], "errors")
    num, of, low, high = cell(found, "false clearance, read once", REPORTED).ours
    assert (num.value, of.value) == (4, 12)
    assert low.value <= 4 / 12 <= high.value
    exact = exact_interval(4, 12, 0.05)
    assert (low.value, high.value) == (0.0, 1.0)
    assert f"{exact.low:.1%} to {exact.high:.1%}; 3 sets" in num.note


def test_without_an_error_there_are_as_many_trials_as_sets(dose_paper):
    results = [audit(1, verdict="found", name=name, model=f"m{model}") for name in ("a-a", "b-a") for model in range(9)]
    found = block(built(dose_paper, *results)["errors"], "errors")
    assert cell(found, "false clearance, read once", REPORTED).ours[3].value == exact_interval(0, 2, 0.05).high


def test_estimates_by_dose(dose_paper):
    results = [
        audit(2, estimate=3.0, low=2.5, high=4.0),
        audit(2, estimate=3.1, low=1.5),
        audit(2, estimate=1.3, high=1.9),
        audit(2, estimate=9.0, verdict="invalid"),
        audit(0, estimate=0.1, high=0.3, cleared=0.3),
        audit(0, cleared=0.5, high=0.5),
        audit(0, low=0.1, cleared=None),
    ]
    found = block(built(dose_paper, *results)["dose"], "dose-reported")
    audits, middle, near, holds, cleared = found.columns
    assert [text(found, "2x", item) for item in (audits, middle, cleared)] == ["3", "3.00", "–"]
    assert [counted(found, "2x", item) for item in (near, holds)] == ["1 of 3", "1 of 3"]
    assert [text(found, "nothing", item) for item in (audits, middle, near, cleared)] == ["3", "0.00", "–", "0.50"]
    assert counted(found, "nothing", holds) == "2 of 3"
    assert counted(found, "all", holds) == "3 of 6"
    none = block(built(dose_paper, audit(0))["dose"], "dose-reported")
    assert text(none, "nothing", cleared) == "none"


@pytest.mark.slow
def test_figures_have_a_panel_for_other_bases(dose_paper):
    results = [*study(), audit(1, verdict="found", base="olmo", sweep="dose_stand_in")]
    sections = built(dose_paper, *results)
    (power,), (readings,) = sections["power"].figures, sections["readings"].figures
    assert [row.name.partition(", ")[2] for row in power.numbers.rows] == ["own base"] * 2 + ["other bases"] * 2
    assert counted(power.numbers, "evidence of membership, other bases", "1x") == "1 of 1"
    assert counted(power.numbers, "evidence of membership, own base", "1x") == "0 of 12"
    assert text(readings.numbers, "sibling set read 4 times or more", "1x") == "1.00 (1.00 to 1.00)"


def test_attacks_and_other_bases(dose_paper):
    results = [
        audit(4, verdict="cleared", sweep="dose_attacks", attack="noise_1", estimate=0.5, high=1.0),
        audit(4, verdict="found", sweep="dose_attacks", attack="noise_1", estimate=3.5),
        audit(0, verdict="found", sweep="dose_attacks", attack="noise_1"),
        audit(4, verdict="invalid", sweep="dose_attacks", attack="unlearning"),
        audit(12, sweep="dose_attacks", attack="unlearning", share=0.25),
        audit(1, verdict="found", sweep="dose_stand_in", base="olmo"),
        audit(1, sweep="dose_stand_in", base="s2"),
    ]
    sections = built(dose_paper, *results)
    attacks, noise = block(sections["attacks"], "attacks"), "served with noise of 1 nat"
    assert [counted(attacks, f"{noise}, 4x", item) for item in attacks.columns] == [
        "2",
        f"1{FALSE} of 2",
        "1 of 2",
        "0",
        "0",
        "2.00",
        "1 of 2",
    ]
    assert counted(attacks, f"{noise}, nothing", "read") == f"1{FALSE} of 1"
    assert counted(attacks, "unlearning, 4x", "invalid") == "1"
    assert counted(attacks, "unlearning, a part or unknown", "no verdict") == "1"
    others = block(sections["stand-in"], "stand-in")
    assert [row.name for row in others.rows] == ["olmo, 1x", "s2, 1x", "all of these, 1x"]
    assert counted(others, "all of these, 1x", "read") == "1 of 2"


def test_attacks_stand_in_the_order_of_the_report_and_are_summed_up(dose_paper):
    """Those that it does not know come last."""
    named = (("worn", 1), ("none", 1), ("zeal", 1), ("worn", 4), ("worn", 0))
    results = [audit(dose, verdict="cleared", sweep="dose_attacks", attack=item) for item, dose in named]
    found = block(built(dose_paper, *results)["attacks"], "attacks")
    worn = "noise in the weights"
    assert [row.name for row in found.rows] == [
        "no attack, 1x",
        f"{worn}, nothing",
        f"{worn}, 1x",
        f"{worn}, 4x",
        f"{worn}, once or more",
        "zeal, 1x",
    ]
    assert counted(found, f"{worn}, once or more", "not read") == f"2{FALSE} of 2"
    assert counted(found, f"{worn}, nothing", "not read") == "1 of 1"


def test_absent_sweeps_leave_their_parts_empty(dose_paper):
    sections = built(dose_paper, audit(1, verdict="found", sweep="dose_chosen"))
    empty = {key for key, section in sections.items() if section.is_empty}
    assert empty == {"power", "readings", "size", "ablation", "attacks", "rivals", "stand-in", "protocol"}
    assert all("yet" in note for key in empty for note in sections[key].notes)


# ------------------------------------------------------------------------------------------- read again


TRUTHS = [(*item, name) for name in range(6) for item in ((0, 0), (0, 4), (1, 0), (1, 4), (4, 0), (8, 1))]  # of study()


def by_hand(one, results, panel):
    """p of no reading, p of one or more, the estimate: with the errors of the sets of the two other libraries."""

    def controls(of):
        return [
            Control(c["dose"], c["related"], np.array([c["features"][name] for name in panel]))
            for c in of.statistics.details["controls"]
        ]

    library = one.question.corpus.partition("-")[0]
    others = {of.question.corpus: of for of in results if not of.question.corpus.startswith(library)}
    sums = [residual_covariance(controls(of)) for of in others.values()]
    shape = sum(products for products, _ in sums) / sum(df for _, df in sums)
    target = np.array([one.statistics.details["features"][name] for name in panel])
    found = dose_curve(controls(one), shape).read(target, wanted=1, alpha=0.05)
    return found.p_none, found.p_at_least, found.estimate


@pytest.mark.slow
def test_features_alone_and_left_out(dose_paper):
    results = list(study())
    found = block(built(dose_paper, *results)["ablation"], "ablation-reported")
    assert [row.name for row in found.rows] == ["all 2", "first alone", "second alone"]
    for panel, row in ((("first", "second"), "all 2"), (("second",), "second alone")):
        told = [by_hand(item, results, panel) for item in results]
        nothing = [item for item, (dose, _, _) in zip(told, TRUTHS, strict=True) if dose == 0]
        assert counted(found, row, "power") == f"{sum(p >= 0.05 > less for p, less, _ in nothing)} of 12"
        siblings = [item for item, (dose, related, _) in zip(told, TRUTHS, strict=True) if (dose, related) == (0, 4)]
        false = sum(p < 0.05 for p, *_ in siblings)
        assert counted(found, row, found.columns[2]) == f"{false}{FALSE * (false > 0)} of 6"
        near = sum(
            dose / 1.5 <= estimate <= dose * 1.5
            for (*_, estimate), (dose, _, _) in zip(told, TRUTHS, strict=True)
            if dose
        )
        assert counted(found, row, found.columns[3]) == f"{near} of 24"
    assert cell(found, "second alone", "power").ours[0].value < 12  # related text moves it as reading does


def test_the_features_of_the_reported_half_on_the_other(dose_paper):
    """Where that has more of them."""
    more = [traced(0, 0, name, sweep="dose_chosen") for name in ("scipy-a", "sympy-a")]
    item = traced(0, 0, "torch-a")
    details = item.statistics.details
    controls = [c | {"features": {"first": c["features"]["first"]}} for c in details["controls"]]
    fewer = {"features": {"first": details["features"]["first"]}, "controls": controls}
    less = dataclasses.replace(item, statistics=dataclasses.replace(item.statistics, details={**details, **fewer}))
    found = block(built(dose_paper, *more, less)["ablation"], "ablation-chosen")
    assert [row.name for row in found.rows] == ["all 2", "first alone", "second alone", "the 1 of the reported half"]
    assert found.rows[1].cells[0].ours[0].value == found.rows[3].cells[0].ours[0].value


def test_three_features_are_left_out_one_by_one():
    assert list(left_out("abc")) == ["all but a", "all but b", "all but c"]


def test_the_shape_is_that_of_other_libraries():
    runs = [Run(item, f"{index}/result.json", "") for index, item in enumerate(study())]
    shapes = pooled(runs, ("first", "second"))
    sets = {run.question.corpus: run for run in runs if run.domain != "scipy"}
    sums = [residual_covariance(measured(run).of(("first", "second"))) for run in sets.values()]
    assert len(sums) == 4
    expected = sum(products for products, _ in sums) / sum(df for _, df in sums)
    assert np.allclose(shapes.shape(("first", "second"), "scipy"), expected)
    assert np.allclose(shapes.shape(("second",), "scipy"), expected[1:, 1:])
    assert pooled([run for run in runs if run.domain == "scipy"], ("first",)).shape(("first",), "scipy") is None


def test_fewer_documents(dose_paper, tmp_path):
    """What every document says alike is read off any of them."""
    run = with_scores(tmp_path / "0", traced(4, 0))
    values = read_values(run)
    whole, fewer = measured(run), measured_on(run, values, 50)
    assert fewer.target == pytest.approx(whole.target)
    assert measured_on(run, values, 100) is None
    expected = dose_curve(whole.of(("first", "second"))).read(np.array([*whole.target.values()]), wanted=1, alpha=0.05)
    assert read_again(run, fewer, ("first", "second"), None).reading.estimate == pytest.approx(expected.estimate)
    runs = [run, with_scores(tmp_path / "1", traced(0, 0))]
    (figure,) = sections_of(dose_paper, runs)["size"].figures
    (row,) = figure.numbers.rows
    assert counted(figure.numbers, row.name, "power") == "1 of 1"
    assert counted(figure.numbers, row.name, "false clearance") == "0 of 1"
    assert set(figure.read) == {"audits/0/scores.parquet", "audits/1/scores.parquet"}


def test_the_picture_of_a_run_has_each_control_where_it_was_read():
    made = traced(4, 0, low=1.5, high=None)
    controls = [
        {**item, "reading": item["reading"] + 0.5 * bool(item["related"])}
        for item in made.statistics.details["controls"]
    ]
    controls[0]["reading"] = None  # its meter could not be made without it
    details = {**made.statistics.details, "controls": controls, "heaviest_dose": 12, "readings": "about 4 readings"}
    (axes,) = of_readings(
        dataclasses.replace(made, statistics=dataclasses.replace(made.statistics, details=details))
    ).axes
    dots = {item.get_label(): item.get_offsets().tolist() for item in axes.collections}
    assert dots == {
        "controls": [[0, 0], [1, 1], [4, 4], [12, 12]],
        "controls that read related text too": [[0, 0.5], [1, 1.5], [2, 2.5], [4, 4.5], [8, 8.5]],
    }
    target, (band,) = next(item for item in axes.get_lines() if item.get_label() == "the target"), axes.patches
    assert set(target.get_ydata()) == {4.0}
    assert (band.get_y(), band.get_y() + band.get_height()) == (1.5, 12), "up to the heaviest dose: it has no upper end"
    assert axes.get_title().endswith("about 4 readings: inconclusive")


def test_how_much_fewer_documents_cost_is_read_off_their_parts(tmp_path):
    """Of controls that say the same on the set whole, and not on its halves."""
    run = with_scores(tmp_path / "0", traced(4, 0, num_documents=100), num_documents=100)
    path = tmp_path / "0" / "scores.parquet"
    (tmp_path / "0" / "result.json").write_text(run.result.to_json())
    alike = DoseAudits([str(tmp_path)], None).known(tmp_path)
    assert [(pilot.models, pilot.documents) for pilot in alike.pilots.values()] == [(pytest.approx(1), 0)]
    table, rng = pq.read_table(path).to_pydict(), np.random.default_rng(3)
    for name in [item for item in table if item.startswith("control") and item.endswith("/first")]:
        noise = rng.normal(scale=0.1, size=100)
        table[name][:100] = (np.array(table[name][:100]) + noise - noise.mean()).tolist()
    pq.write_table(pa.table(table), path)
    (pilot,) = DoseAudits([str(tmp_path)], None).known(tmp_path).pilots.values()
    assert pilot.documents > 20, "errors of half as many documents are larger"
    path.unlink()
    known = DoseAudits([str(tmp_path)], None).known(tmp_path)
    assert [(pilot.models, pilot.documents) for pilot in known.pilots.values()] == [(1, 0)]
    assert any("could not be determined for every set" in note for note in known.notes)


def test_audits_of_other_controls_or_doses_make_no_pilot(tmp_path):
    others = traced(name="sympy-a")
    controls = [{**item, "dose": item["dose"] + 1} for item in others.statistics.details["controls"]]
    details = {**others.statistics.details, "controls": controls}
    changed = dataclasses.replace(others, statistics=dataclasses.replace(others.statistics, details=details))
    elsewhere = dataclasses.replace(others, question=dataclasses.replace(others.question, world="pile"))
    for name, two, told in (
        ("controls", (traced(), changed), "controls of different readings"),
        ("worlds", (traced(), elsewhere), "different worlds"),
        ("doses", (traced(), traced(name="sympy-a", exclude=2)), r"exclude different readings \(1, 2\)"),
    ):
        made_up.write(tmp_path / name, *two)
        with pytest.raises(ValueError, match=told):
            DoseAudits([str(tmp_path / name)], None).known(tmp_path)


def test_what_allows_no_curve_is_left_out_of_what_is_read_again():
    whole = traced(4, 0)
    details = whole.statistics.details
    short = {**details, "controls": details["controls"][:3]}
    lame = {**details, "controls": [{**item, "features": {"first": 1.0}} for item in details["controls"]]}
    few, without = (
        Run(dataclasses.replace(whole, statistics=dataclasses.replace(whole.statistics, details=item)), "a", "0")
        for item in (short, lame)
    )
    assert measured(without) is None
    assert read_again(few, measured(few), ("first", "second"), None) is None
    assert not pooled([few, without], ("first", "second")).sums


def test_another_base_is_read_with_what_bases_differ_by():
    made = traced(4, 0)
    between = {"covariance": [[0.1, 0.0], [0.0, 0.2]], "relative": 0.3, "df": 5}
    panel = {**made.question.settings["panel"], "between": between}
    question = dataclasses.replace(made.question, settings={**made.question.settings, "panel": panel})
    assert panel_between(Run(dataclasses.replace(made, question=question), "a", "0")) is None, "its own base"
    details = {**made.statistics.details, "own_base": False}
    other = dataclasses.replace(
        made, question=question, statistics=dataclasses.replace(made.statistics, details=details)
    )
    found = panel_between(Run(other, "a", "0"))
    assert (found.covariance.tolist(), found.relative, found.df) == (between["covariance"], 0.3, 5.0)


def test_the_first_documents_are_those_of_the_lowest_hashes(tmp_path):
    run = with_scores(tmp_path / "0", traced(4, 0))
    path = tmp_path / "0" / "scores.parquet"
    table = pq.read_table(path).to_pydict()
    order = sorted(range(60), key=lambda place: hashlib.sha256(f"document {place}".encode()).digest())
    for place in order[50:]:  # the last ten are changed, and the first so that the mean stays
        table["target/first"][place] += 0.5
    for place in order[:50]:
        table["target/first"][place] -= 0.1
    pq.write_table(pa.table(table), path)
    fewer = measured_on(run, read_values(run), 50)
    assert fewer.target["first"] == pytest.approx(measured(run).target["first"] - 0.1)


def test_what_cannot_be_made_again_is_said(dose_paper, tmp_path):
    without = Run(traced(0), "audits/without/result.json", "0" * 64)
    other = with_scores(tmp_path / "0", traced(4, 0))
    table = pq.read_table(tmp_path / "0" / "scores.parquet")
    place = table.column_names.index("target/first")
    changed = table.set_column(place, "target/first", [[value.as_py() + 1 for value in table["reference/second"]]])
    pq.write_table(changed, tmp_path / "0" / "scores.parquet")
    section = sections_of(dose_paper, [without, other])["size"]
    assert not section.figures
    assert any("1 results left out: there is no scores.parquet" in note for note in section.notes)
    assert any("1 results left out: their features cannot be made again" in note for note in section.notes)


# --------------------------------------------------------------------------------------------- protocol


@pytest.fixture
def fixed(tmp_path, monkeypatch):
    """Its hash."""
    path = tmp_path / "dose_protocol.yaml"
    path.write_text("panel: v1\nalpha: 0.05\nexclude: 1\n", encoding="utf-8")
    monkeypatch.setattr(protocol, "PROTOCOLS", tmp_path)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_protocol_of_results_is_checked(dose_paper, fixed):
    results = [
        audit(protocol=fixed),
        audit(protocol=fixed, sweep="dose_aligned", panel="v2"),
        audit(protocol="0" * 64),
        audit(),
        audit(sweep="dose_chosen", panel="candidates"),
        audit(protocol=fixed, exclude=2, alpha=0.1),
    ]
    section = built(dose_paper, *results)["protocol"]
    found = block(section, "protocol")
    assert [row.name for row in found.rows] == ["dose_reported", "dose_aligned", "all"]
    assert [text(found, "dose_reported", item) for item in found.columns] == ["4", "2", "1", "1", "1"]
    assert [text(found, "all", item) for item in found.columns] == ["5", "3", "1", "1", "2"]
    assert f"{fixed}; 3 of 5 results carry it" in found.notes[0]
    others = block(section, "protocol-others")
    assert {tuple(number.text for item in row.cells for number in item.ours) for row in others.rows} == {
        ("v2 (protocol: v1)", "0.05", "1"),
        ("v1", "0.1 (protocol: 0.05)", "2 (protocol: 1)"),
    }


def test_each_result_is_compared_with_its_own_protocol(dose_paper, fixed, tmp_path):
    second = tmp_path / "dose_protocol_2.yaml"
    second.write_text("panel: v2\n", encoding="utf-8")
    of_second = hashlib.sha256(second.read_bytes()).hexdigest()
    results = [audit(protocol=fixed), audit(protocol=of_second, panel="v2"), audit(protocol=of_second, panel="v1")]
    section = built(dose_paper, *results)["protocol"]
    assert [text(block(section, "protocol"), "all", item) for item in block(section, "protocol").columns] == [
        "3",
        "3",
        "0",
        "0",
        "1",
    ]
    (row,) = block(section, "protocol-others").rows
    assert row.cells[0].ours[0].text == "v1 (protocol: v2)"


def test_results_of_the_protocol_are_not_listed(dose_paper, fixed):
    section = built(dose_paper, audit(protocol=fixed))["protocol"]
    assert [item.key for item in section.blocks] == ["protocol"]


@pytest.mark.parametrize("content", [None, "- no mapping", "{"])
def test_without_a_protocol_nothing_is_compared(dose_paper, tmp_path, monkeypatch, content):
    monkeypatch.setattr(protocol, "PROTOCOLS", tmp_path)
    if content is not None:
        (tmp_path / "dose_protocol.yaml").write_text(content, encoding="utf-8")
    section = built(dose_paper, audit(protocol="0" * 64))["protocol"]
    assert not section.blocks
    assert "no result is compared with it" in section.notes[0]


def test_at_a_glance(dose_paper):
    results = [audit(1, verdict="found"), audit(0, verdict="cleared"), audit(0, 4, verdict="found")]
    glance = dose_paper.build([Run(item, f"{index}/result.json", "") for index, item in enumerate(results)]).glance
    (row,) = glance.rows
    told = [[number.text for number in item.ours[:2]] for item in row.cells]
    assert told == [["3"], ["0", "1"], ["1", "1"], ["0", "1"], ["1", "1"], ["1", "1"]]
