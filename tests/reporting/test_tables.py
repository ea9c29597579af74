"""The right number in the right cell, a dash where there is none, controls and counts under the table."""

from __future__ import annotations

import made_up
import pytest
from reading import built

from nonmember.reports.core import formats
from nonmember.reports.core.grid import FALSE, MISSED
from nonmember.reports.render.markdown import cell_text


def block(section, world="micro"):
    (found,) = [item for item in section.blocks if item.world == world and "controls" not in item.key]
    return found


def text(section, row, column, world="micro"):
    found = block(section, world)
    (cells,) = [item.cells for item in found.rows if item.name == row]
    return cell_text(cells[found.columns.index(column)])


def figure(section):
    (found,) = section.figures
    return found


READ, UNTOUCHED = "read half A 12 times (CPT)", "untouched"


def test_table_1(paper):
    def agreement(target, rho):
        return made_up.result(
            method="rank_agreement", sweep="table1", target=target, reference="micro_l", statistic=rho, p_value=None
        )

    table = built(paper, agreement("target", 0.85), agreement(made_up.MEMBER, 0.41))["table1"]
    assert text(table, "scipy", "l") == "0.850 / 0.410"
    assert text(table, "sympy", "l") == formats.DASH
    assert text(table, "scipy", "m") == formats.DASH


def test_table_2_with_holm_and_truth(paper):
    results = (
        made_up.result(p_value=1e-4, data={"domain": "scipy"}),
        made_up.result(p_value=0.0, data={"domain": "sympy"}),
        made_up.result(target=made_up.MEMBER, truth="member", p_value=0.02, data={"domain": "scipy"}),
        made_up.result(target="target+general", p_value=0.3, data={"domain": "torch"}),
        made_up.result(target=made_up.MEMBER, truth="non_member", p_value=0.9, data={"half": "b"}, sweep="table2"),
    )
    table = built(paper, *results)["table2"]
    assert text(table, UNTOUCHED, "scipy") == "1.0e-4 \\[Holm 3.0e-4\\]"
    assert text(table, UNTOUCHED, "sympy").startswith("0.000 "), "zero is a number"
    assert text(table, UNTOUCHED, "torch") == formats.DASH
    assert text(table, READ, "scipy") == f"0.020{FALSE} \\[Holm 0.040\\]", "half b belongs to table 3"
    assert text(table, "read general text only", "torch") == f"0.300{MISSED} \\[Holm 0.300\\]"
    notes = " ".join(block(table).notes)
    assert "4 p-values, Holm-adjusted as one family. Against the known truth 1 false † and 1 missed ‡." in notes
    assert "Missing: 14 of 18 cells" in notes
    assert "Controls (blind AUC, A/A halves): not run in this world; `make sweep SWEEP=controls` runs them." in notes
    assert table.commands == ("make sweep SWEEP=table2",)


def test_table_4_with_the_median_of_the_splits(paper):
    result = made_up.result(
        method="llm_di", sweep="table4", p_value=0.6, verdict="inconclusive", details={"median_p_value": 0.2}
    )
    table = built(paper, result)["table4"]
    assert text(table, "LLM-DI", "scipy") == f"0.600 \\[Holm 0.600\\] / {formats.DASH}"
    assert text(table, "LLM-DI, median of its splits", "scipy") == f"0.200 / {formats.DASH}"
    assert text(table, "PaCoST", "scipy") == formats.DASH


def test_llm_di_as_the_paper_ran_it_is_a_table_of_its_own(paper):
    told = {"method": "llm_di", "sweep": "table4_program", "verdict": "inconclusive"}
    given = {**told, "world": "pythia", "target": "pythia-410m", "details": {"median_p_value": 0.2}}
    table = built(paper, made_up.result(**given, p_value=0.6, data={"domain": "hackernews"}))["table4"]
    assert [row.name for row in block(table, "pythia").rows] == ["LLM-DI", "LLM-DI, median of its splits"]
    assert text(table, "LLM-DI", "HN", "pythia").endswith("(0.395 / 0.022)")
    assert text(table, "LLM-DI, median of its splits", "HN", "pythia") == f"0.200 / {formats.DASH}"


def test_table_5(paper):
    results = [
        made_up.result(sweep="table5", reference="micro_xs", target=target, truth=truth, p_value=p)
        for target, truth, p in (("target", "non_member", 0.08), (made_up.MEMBER, "member", 0.002))
    ]
    assert text(built(paper, *results)["table5"], "xs", "scipy") == (
        f"0.080{MISSED} \\[Holm 0.080\\] / 0.002{FALSE} \\[Holm 0.004\\]"
    )


def test_weak_references_with_delta_and_p_by_target(paper):
    results = [
        made_up.result(sweep="weak_references", reference=reference, target=target, truth=truth, p_value=p)
        for reference in ("micro_xxs", "reference")
        for target, truth, p in (("target", "non_member", 0.08), (made_up.MEMBER, "member", 0.002))
    ]
    section = built(paper, *results)["weak"]
    delta, rho = section.blocks
    assert [row.name for row in delta.rows] == ["scipy, xxs, width 16", "scipy, m"]
    assert delta.columns == (READ, UNTOUCHED)
    weak = delta.rows[0].cells
    assert cell_text(weak[0]) == f"+0.250 \\[+0.150, +0.350\\], p 0.002{FALSE}"
    assert cell_text(weak[1]) == f"+0.250 \\[+0.150, +0.350\\], p 0.080{MISSED}"
    assert cell_text(rho.rows[0].cells[0]) == "0.850 / 0.600"


def test_table_2_over_seeds_says_how_many_clear(paper):
    results = [
        made_up.result(sweep="table2_seeds", seed=seed, p_value=p, statistic=delta, verdict=verdict)
        for seed, p, delta, verdict in (
            (1234, 0.001, 0.2, "evidence_of_non_membership"),
            (1, 0.3, 0.05, "inconclusive"),
            (2, 0.004, 0.1, "evidence_of_non_membership"),
        )
    ]
    p_values, deltas = built(paper, *results)["spread"].blocks
    assert [row.name for row in p_values.rows] == [UNTOUCHED]
    assert cell_text(p_values.rows[0].cells[0]) == f"0.004 (0.001 to 0.300{MISSED}), 2 of 3"
    assert cell_text(deltas.rows[0].cells[0]) == "+0.100 (+0.050 to +0.200)"


def test_llm_di_by_what_members_are_told_apart_from(paper):
    def audited(target, against, p, truth):
        return made_up.result(
            method="llm_di",
            sweep="releases_rivals",
            world="releases",
            target=target,
            reference=None,
            p_value=p,
            truth=truth,
            data={"domain": "sklearn", "against": against},
            details={"median_p_value": p / 10},
        )

    given = [
        audited("target", "newer", 0.03, "non_member"),
        audited("target", "older", 0.9, "non_member"),
        audited("target+4xA", "newer", 0.004, "member"),
    ]
    section = built(paper, *given)["releases"]
    newer = "scikit-learn against the newer release"
    assert text(section, newer, "read neither class", "releases") == f"0.030{FALSE} / 0.003"
    assert text(section, newer, "read members 4 times", "releases") == "0.004 / 4.0e-4"
    older = "scikit-learn against others of that release"
    assert text(section, older, "read neither class", "releases") == "0.900 / 0.090"
    assert text(section, older, "read members 4 times", "releases") == formats.DASH


def test_delta_over_lambda_and_tau(paper):
    results = [
        made_up.result(
            sweep="lambda_tau",
            statistic=delta,
            ci_low=delta - 0.1,
            ci_high=delta + 0.1,
            settings={"distillation": {"lambda_": weight, "tau": tau}},
        )
        for weight, tau, delta in ((0.5, 1.0, 0.3), (0.5, 2.0, 0.2), (0.9, 1.0, -0.1))
    ]
    found = figure(built(paper, *results)["lambda_tau"])
    assert found.numbers.columns == ("tau = 1", "tau = 2")
    cells = {row.name: [cell_text(item) for item in row.cells] for row in found.numbers.rows}
    assert cells == {
        "scipy, untouched, lambda = 0.5": ["+0.300 \\[+0.200, +0.400\\]", "+0.200 \\[+0.100, +0.300\\]"],
        "scipy, untouched, lambda = 0.9": ["−0.100 \\[−0.200, 0.000\\]", formats.DASH],
    }


def test_table_6_counts_and_says_where_results_disagree(paper):
    table = built(
        paper,
        made_up.result(),
        made_up.result(seed=2),
        made_up.result(
            num_documents=140,
            num_excluded=11,
            num_tokens=15_001,
            excluded={f"d{n}": "why" for n in range(10)} | {"heldout/d1": "why"},
        ),
        made_up.result(sweep="size", num_documents=30, num_tokens=3),
    )["table6"]
    assert text(table, "scipy", "documents, half a") == "150"
    assert text(table, "scipy", "tokens, half a") == "15,000 to 15,001"


def test_table_7_and_its_difference(paper):
    results = [
        made_up.result(
            method="rank_agreement", sweep="table7", target=target, statistic=rho, settings={"score": {"kind": "DcPdd"}}
        )
        for target, rho in (("target", 0.9), (made_up.MEMBER, 0.5))
    ]
    table = built(paper, *results)["table7"]
    assert text(table, "DC-PDD", "scipy") == "0.900 / 0.500 / +0.400"
    assert text(table, "Loss", "scipy") == formats.DASH


def test_tables_8_and_9(paper):
    table = built(paper, made_up.result(rho_reference_target=0.85, rho_distilled_target=0.6, ci_low=-0.02, ci_high=0.5))
    assert text(table["table8"], UNTOUCHED, "scipy") == "0.850 / 0.600 \\[−0.020, +0.500\\]"


def test_tables_10_11_and_12(paper):
    sections = built(
        paper,
        made_up.result(method="paired_t", sweep="table10", p_value=2.6e-5, verdict="score_only"),
        made_up.result(sweep="table11", target="micro_olmo", reference="micro_xs", p_value=0.004),
        made_up.result(sweep="table12", settings={"rank_metric": "kendall"}, p_value=0.011),
    )
    assert text(sections["table10"], UNTOUCHED, "scipy") == "2.6e-5 \\[Holm 2.6e-5\\]"
    assert text(sections["table11"], "scipy", "xs") == "0.004 \\[Holm 0.004\\]"
    assert block(sections["table11"]).notes[0] == "Target: untouched, OLMo architecture."
    assert text(sections["table12"], "Kendall", "scipy") == "0.011 \\[Holm 0.011\\]"
    assert text(sections["table12"], "Spearman", "scipy") == formats.DASH


def test_the_papers_models_stand_beside_the_published_numbers(paper):
    given = {"world": "pythia", "target": "pythia-410m-cpt", "reference": "pythia-1b-deduped", "truth": "member"}
    sections = built(paper, made_up.result(p_value=0.4, data={"domain": "hackernews"}, **given))
    assert text(sections["table2"], "410m-CPT", "HN", "pythia") == "0.400 \\[Holm 0.400\\] (0.354)"
    assert text(sections["table2"], "1b", "HN", "pythia") == f"{formats.DASH} (1.0e-4)"
    assert text(sections["table8"], "410m-CPT", "PubMed", "pythia") == (
        f"{formats.DASH} (0.328 / 0.590 \\[−0.371, −0.151\\])"
    )


def test_labels_the_yaml_does_not_know_get_rows_of_their_own(paper):
    table = built(paper, made_up.result(target="mine", data={"domain": "novels"}, p_value=0.2))["table2"]
    assert text(table, "mine", "novels").startswith("0.200")


def test_a_world_the_yaml_does_not_know(paper):
    given = {"world": "own", "data": {"domain": "novels"}}
    table = built(
        paper,
        made_up.result(target="plain", p_value=0.001, **given),
        made_up.result(target="read", truth="member", p_value=0.3, **given),
    )["table2"]
    assert text(table, "plain", "novels", "own").startswith("0.001")
    assert block(table, "own").title == "own"


def test_controls_stand_under_the_columns_they_qualify(paper):
    results = [
        made_up.result(),
        made_up.result(
            method="blind", sweep="controls", target=None, statistic=0.52, ci_low=0.4, ci_high=0.6, p_value=None
        ),
        made_up.result(method="llm_di", sweep="controls", data={"half": "b1"}, p_value=0.44),
        made_up.result(sweep="controls", data={"half": "b2"}, p_value=0.001),
    ]
    sections = built(paper, *results)
    footer = {row.name: cell_text(row.cells[0]) for row in block(sections["table2"]).footer}
    assert footer == {
        "Blind AUC, a against b": "0.52 \\[0.40, 0.60\\]",
        "Blind AUC, b1 against b2": "not run",
        "A/A, LLM-DI b1 against b2: p": "0.440",
        "A/A, PRISM on b1, untouched: p": "not run",
        "A/A, PRISM on b2, untouched: p": "0.001",
    }
    assert any("controls" in item.key for item in sections["controls"].blocks)


@pytest.mark.slow
@pytest.mark.pictures
def test_figures_from_a_whole_world(paper):
    sections = built(paper, *made_up.everything())
    sizes = figure(sections["figure3"]).numbers
    assert sizes.columns == ("30", "50", "75", "100", "150", "200", "300")
    assert [row.name for row in sizes.rows] == list(made_up.DOMAINS)
    assert figure(sections["figure4"]).numbers.columns[0] == "K = 0.1"
    shifts = figure(sections["figure4b"]).numbers
    assert shifts.rows[0].name == f"untouched → {READ}"
    assert shifts.rows[1].name.endswith("(control: neither read)")
    assert figure(sections["figure5b"]).numbers.columns[-1] == "lambda = 1"
    for key in ("figure3", "figure4", "figure4b", "figure5a", "figure5b", "reference", "seed"):
        picture = figure(sections[key])
        assert picture.svg.startswith("<svg")
        assert "currentColor" in picture.svg
        assert "<text" in picture.svg
        assert picture.png.startswith(b"\x89PNG")


def test_a_figure_is_the_difference_it_says(paper):
    results = [
        made_up.result(sweep="k", target=target, rho_reference_target=rho, settings={"score": {"k": 0.3}})
        for target, rho in (("target", 0.85), (made_up.MEMBER, 0.4))
    ]
    numbers = figure(built(paper, *results)["figure4"]).numbers
    assert cell_text(numbers.rows[0].cells[0]) == "+0.450"
