"""`nonmember view`: all audits of a folder on one page, safe whatever somebody wrote into their folders."""

from __future__ import annotations

import json
import re

import made_up
import pytest
from markupsafe import escape

from nonmember.api.results import load_results
from nonmember.reports.audit_page.write import PAGE, write_page
from nonmember.reports.index_page.write import INDEX, write_index
from nonmember.runtime.terminal import visible

EVIL = "</script><script>alert(1)</script>\u202e\x1b[31m"


def entries(path):
    """Those of the page, each with its shared parts in their places."""
    text = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(), re.DOTALL)[1]
    data = json.loads(text)

    def restored(value):
        if isinstance(value, dict):
            return (
                data["shared"][value["$shared"]] if "$shared" in value else {k: restored(v) for k, v in value.items()}
            )
        return [restored(item) for item in value] if isinstance(value, list) else value

    for number, part in enumerate(data["shared"]):
        data["shared"][number] = restored(part)
    return [restored(entry) for entry in data["audits"]]


def test_it_has_what_an_audit_is_and_what_differs(tmp_path):
    made_up.write(
        tmp_path,
        made_up.result(warnings=("careful",), settings={"distillation": {"lambda_": 0.3, "tau": 4.0}}),
        made_up.result(target=made_up.MEMBER, truth="member", statistic=None, ci_low=None, ci_high=None, p_value=None),
    )
    write_page(tmp_path / "table2/0000")
    index = write_index(tmp_path)
    assert index.path == tmp_path / INDEX
    one, other = entries(index.path)
    assert (one["method"], one["corpus"], one["target"], one["decision"]) == (
        "prism",
        "scipy-a",
        "target",
        "evidence_of_non_membership",
    )
    assert (one["printed"], one["interval"], one["p_printed"], one["n"]) == (
        "+0.250",
        "[+0.150, +0.350]",
        "1.0e-4",
        150,
    )
    assert one["axes"] == {"k": 0.2, "lambda": 0.3, "tau": 4.0, "dose": 0.0, "documents": 150}
    assert (one["dose"], one["warnings"], one["page"]) == ("0x", ["careful"], f"./table2/0000/{PAGE}")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", one["written"])
    assert (other["dose"], other["axes"]["dose"], other["page"], other["printed"]) == ("12x", 12.0, None, "–")
    assert other["false"] == "false clearance"


def test_texts_of_others_stay_texts_and_links_lead_below_the_folder(tmp_path):
    result = made_up.result(corpus=EVIL, target=EVIL, warnings=(EVIL,), settings={EVIL: EVIL})
    folder = tmp_path / "javascript:alert(1)" / "..%2f\u202e#?"
    folder.mkdir(parents=True)
    result.save(folder / "result.json")
    write_page(folder)
    path = write_index(tmp_path).path
    html = path.read_text()
    assert html.count("<script") == 2
    assert "\x1b" not in html
    assert "\u202e" not in html
    (entry,) = entries(path)
    assert entry["corpus"] == visible(EVIL)
    assert entry["page"] == f"./javascript%3Aalert%281%29/..%252f%E2%80%AE%23%3F/{PAGE}"
    assert not re.search(r'(?:src|href)="(?!#|data:)', html)


def test_a_page_of_somebody_else_is_not_linked(tmp_path):
    made_up.write(tmp_path, made_up.result())
    (tmp_path / "table2/0000" / PAGE).write_text("<script>alert(1)</script>")
    assert entries(write_index(tmp_path).path)[0]["page"] is None


def test_what_failed_and_what_cannot_be_read_is_shown(tmp_path, nonmember):
    made_up.write(tmp_path, *(made_up.result() for _ in range(3)))
    broken, odd = (tmp_path / "table2" / name / "result.json" for name in ("0001", "0002"))
    broken.write_text("{")
    odd.write_text(odd.read_text().replace('"alpha": 0.05', '"alpha": 1e999'))
    (tmp_path / "failed").mkdir()
    (tmp_path / "failed/error.json").write_text(
        json.dumps({"cell": "failed", "error": f"No room {EVIL}", "kind": "OSError"})
    )
    said = nonmember("view", tmp_path)
    assert said.status == 1
    assert said.out.splitlines()[0] == str(tmp_path / INDEX)
    assert "2 of 4 results cannot be used. The first: " in said.err
    (found,) = entries(tmp_path / INDEX)
    assert found["decision"] == "evidence_of_non_membership"
    apart = (tmp_path / INDEX).read_text().partition('<section id="failed">')[2]
    assert "3 without a result" in apart
    assert str(escape(visible(f"No room {EVIL}"))) in apart


def test_a_file_of_somebody_else_is_not_replaced(tmp_path):
    made_up.write(tmp_path, made_up.result())
    write_index(tmp_path)
    write_index(tmp_path)
    (tmp_path / INDEX).write_text("<!doctype html>my own page")
    with pytest.raises(ValueError, match="must be free, or a page of nonmember view"):
        write_index(tmp_path)
    with pytest.raises(ValueError, match=r"There is no result\.json below"):
        write_index(tmp_path / "nowhere")


def test_an_audit_takes_some_hundred_bytes(tmp_path):
    """What is alike in their settings is there once: 5,000 are a few megabytes."""
    few = write_index(made_up.write(tmp_path / "few", made_up.result())).path
    number = 60
    many = write_index(
        made_up.write(tmp_path / "many", *(made_up.result(seed=n, statistic=n / 100) for n in range(number)))
    ).path
    assert len(entries(many)) == number
    assert (many.stat().st_size - few.stat().st_size) / (number - 1) < 900


def test_what_sweeps_vary_is_in_short_columns_too(tmp_path):
    """The same numbers under the same names as in W&B's config and as the axes of the page."""
    made_up.write(tmp_path, made_up.result(target="target+2x50%A", truth="member"), made_up.result(method="llm_di"))
    table = load_results(tmp_path)
    names = ["k", "lambda", "tau", "dose"]
    assert list(table.columns[: list(table).index("dose") + 1])[-5:] == ["reference", *names]
    assert table.loc[0, names].tolist() == [0.2, 0.7, 2.0, 1.0]
    assert table.loc[1, "dose"] == 0.0
