"""The command and what it writes: files, manifest, escaping, sizes."""

from __future__ import annotations

import csv
import hashlib
import json
import random
import re
import shutil

import made_up
import made_up_fsd
import made_up_kds
import made_up_mc_pdd
import made_up_order
import pytest
import test_decop_report
from reading import call, check_written

from nonmember.reports.render import write
from nonmember.reports.render.write import safe
from nonmember.results.load import load_runs

HOSTILE = "<script>alert(1)</script>\"'&|=$x^\u202egnp.exe\x9b"


def report_of(results, place):
    """The folder of the report over these results, which lie beside it."""
    made_up.write(place / "audits", *results)
    call(place, "results=[audits]", "folder=out")
    return place / "out"


@pytest.fixture
def report(tmp_path):
    """report(*results): the folder of the report over them."""
    return lambda *results: report_of(results, tmp_path)


@pytest.fixture(scope="module")
def whole_report(tmp_path_factory):
    """The report over each sweep, to be read only."""
    return report_of(made_up.each_sweep(), tmp_path_factory.mktemp("whole"))


@pytest.mark.slow
def test_what_is_written(whole_report):
    folder = whole_report
    check_written(folder, "tables/table2.csv", "figures/figure3-micro.svg")
    text = (folder / "report.md").read_text()
    assert "## Table 12. Spearman and Kendall" in text
    assert "| 410m-CPT | 1.000 | 0.354 |" in text
    assert "![" in text


@pytest.mark.slow
@pytest.mark.pictures
@pytest.mark.parametrize(
    ("name", "results", "table", "pictures"),
    [
        ("fsd", made_up_fsd.everything, "table2", ["figure4-micro"]),
        ("kds", made_up_kds.everything, "control", ["levels-s-micro", "levels-scores-micro", "levels-fsd-micro"]),
        ("mc_pdd", made_up_mc_pdd.everything, "models", ["arms-micro", "resamples-p-micro", "contamination-micro"]),
        ("decop", test_decop_report.everything, "books", ["accuracies-recorded", "roc-recorded", "letters-recorded"]),
        ("order", made_up_order.everything, "shards", ["duplication-p-micro", "duplication-t-micro", "clean-micro"]),
    ],
)
def test_every_report_writes_page_text_tables_and_pictures(tmp_path, name, results, table, pictures):
    made_up.write(tmp_path / "audits", *results())
    call(tmp_path, f"report={name}", "results=[audits]", "folder=out")
    check_written(tmp_path / "out", f"tables/{table}.csv", *(f"figures/{picture}.svg" for picture in pictures))


@pytest.mark.slow
def test_only_what_is_kept_is_written(whole_report, tmp_path):
    """As docs/results keeps it; the page of an earlier report goes."""
    shutil.copytree(whole_report.parent, tmp_path, dirs_exist_ok=True)
    folder = tmp_path / "out"
    call(tmp_path, "results=[audits]", "folder=out", "formats=[md,csv,svg]")
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert found == json.loads((folder / "manifest.json").read_text())["files"]
    assert {name.rpartition(".")[2] for name in found} == {"md", "csv", "svg", "json"}
    shown = re.findall(r"\]\((figures/.+?)\)", (folder / "report.md").read_text())
    assert shown
    assert set(shown) <= set(found)
    with pytest.raises(ValueError, match="formats must be some of html, md, csv, svg, png; got pdf"):
        call(tmp_path, "results=[audits]", "folder=out", "formats=[pdf]")
    with pytest.raises(ValueError, match="formats must have svg beside md"):
        call(tmp_path, "results=[audits]", "folder=out", "formats=[md]")


def test_the_manifest_names_every_file_with_its_hash(report, tmp_path):
    of_another_paper = made_up.result(method="kds", sweep="kds_main")
    folder = report(made_up.result(), made_up.result(sweep="none of them"), of_another_paper)
    listing = json.loads((folder / "manifest.json").read_text())
    assert listing["num_results"] == 2
    assert "- Results: 2 from 2 sweeps" in (folder / "report.md").read_text()
    used = {(item["below"], row[0]): item["used_in"] for item in listing["results"] for row in item["audits"]}
    assert used == {
        ("audits/none of them", "0001"): ["table6"],  # where all results agree, the first stands for them
        ("audits/table2", "0000"): ["table2", "table8"],
    }
    for item in listing["results"]:
        for name, sha256, audit in item["audits"]:
            path = tmp_path / item["below"] / name / "result.json"
            assert hashlib.sha256(path.read_bytes()).hexdigest() == sha256
            assert audit == json.loads(path.read_text())["provenance"]["keys"]["audit"]
    assert str(tmp_path) not in (folder / "manifest.json").read_text()


def test_unreadable_files_are_counted_and_left_out(report, tmp_path, caplog):
    for name, content in (("old", "{}"), ("cut", '{"method"'), ("binary", b"\xff\xfe")):
        path = tmp_path / "audits" / name / "result.json"
        path.parent.mkdir(parents=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=r"3 results were left out of .*report.html. The first: audits/binary/result"):
        report(made_up.result())
    folder = tmp_path / "out"
    listing = json.loads((folder / "manifest.json").read_text())
    assert (listing["num_results"], listing["num_unreadable"]) == (1, 3)
    assert {item["path"] for item in listing["unreadable"]} == {
        f"audits/{name}/result.json" for name in ("old", "cut", "binary")
    }
    assert str(tmp_path) not in json.dumps(listing)
    assert "3 unreadable" in (folder / "report.html").read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["results=[audits]"], r"There is no result.json below audits. Run audits first, or name"),
        (["folder=''"], r"folder must be text; got ''. Name the folder of the report."),
        (["report.title=2026"], r"report.title must be text; got 2026. Put it in quotes."),
    ],
)
def test_what_makes_no_report_gets_one_sentence(tmp_path, words, sentence):
    with pytest.raises(ValueError, match=sentence):
        call(tmp_path, "folder=out", *words)


@pytest.mark.slow
def test_an_earlier_report_is_replaced(whole_report, tmp_path):
    folder = shutil.copytree(whole_report, tmp_path / "out")
    (folder / "figures" / "mine.txt").write_text("not the report's")
    assert (folder / "figures" / "seed-micro.svg").exists()
    made_up.write(tmp_path / "fewer", made_up.result())
    call(tmp_path, "results=[fewer]", "folder=out")
    assert not (folder / "figures" / "seed-micro.svg").exists()
    assert (folder / "figures" / "mine.txt").exists()


def test_what_is_no_report_is_not_replaced(tmp_path, monkeypatch):
    """Such as somebody's report.md; what a killed report left is."""
    made_up.write(tmp_path / "audits", made_up.result())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "report.md").write_text("what I found")
    with pytest.raises(ValueError, match=r"mine/report\.md must be free, or of an earlier report"):
        call(tmp_path, "results=[audits]", "folder=mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["report.md"]
    monkeypatch.setattr(write, "write_text_atomically", killed(write.write_text_atomically, "report.md"))
    with pytest.raises(KeyboardInterrupt):
        call(tmp_path, "results=[audits]", "folder=killed")
    monkeypatch.undo()
    assert (tmp_path / "killed" / "report.html").is_file()
    call(tmp_path, "results=[audits]", "folder=killed")


def killed(write_text, name):
    """As by a kill before that file is written."""

    def writes(path, text):
        if path.name == name:
            raise KeyboardInterrupt
        write_text(path, text)

    return writes


@pytest.mark.slow
@pytest.mark.pictures
def test_labels_are_only_text(report):
    item = made_up.result(
        target=HOSTILE,
        reference=HOSTILE,
        corpus=HOSTILE,
        cell=HOSTILE,
        warnings=(HOSTILE,),
        allowed_claim=HOSTILE,
        data={"domain": HOSTILE},
    )
    shift = made_up.shift(random.Random(0), HOSTILE, HOSTILE, -0.5)
    folder = report(item, shift)
    html = (folder / "report.html").read_text()
    assert "<script>alert" not in html
    assert "\\u202egnp.exe\\x9b" in html
    for text in (html, (folder / "report.md").read_text()):
        assert not re.search("[\u202e\x9b]", text), "a name that shows as another"
    assert html.count("<script") == html.count("</script>") == 0
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "<script>" not in (folder / "report.md").read_text()
    assert "<script>" not in (folder / "figures" / "figure4b-micro.svg").read_text()


def test_a_label_is_no_formula():
    assert safe("=HYPERLINK(1)") == "'=HYPERLINK(1)"
    assert (safe("-0.25"), safe("1.0e-4"), safe("@x"), safe("scipy")) == ("-0.25", "1.0e-4", "'@x", "scipy")


def test_csv_tells_where_a_number_is_from(report):
    folder = report(made_up.result(p_value=0.0))
    with (folder / "tables" / "table2.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    (ours,) = [row for row in rows if row["world"] == "micro" and row["value"]]
    assert (ours["row"], ours["column"], ours["printed"], ours["value"]) == ("untouched", "scipy", "0.000", "0.0")
    assert ours["results"] == "audits/table2/0000/result.json"
    missing = [row for row in rows if row["world"] == "micro" and not row["value"]]
    assert {row["printed"] for row in missing} == {"–"}
    (published,) = [row for row in rows if (row["world"], row["row"], row["column"]) == ("published", "410m-CPT", "HN")]
    assert (published["part"], published["value"]) == ("published", "0.354")


@pytest.mark.pictures
@pytest.mark.slow
def test_the_page_needs_nothing_else_and_is_small(whole_report):
    path = whole_report / "report.html"
    html = path.read_text()
    assert path.stat().st_size < 15_000 * len(made_up.each_sweep())
    assert not re.findall(r'(?:src|href)="(?!#|data:)', html)
    assert "@import" not in html
    assert "url(http" not in html
    assert "<script" not in html
    assert html.count("<svg") == len(list(whole_report.glob("figures/*.svg")))


def test_anchors_depend_on_the_path_alone(tmp_path):
    made_up.write(tmp_path / "audits", made_up.result())
    (first,) = load_runs([tmp_path / "audits"]).runs
    (second,) = load_runs([tmp_path / "audits", tmp_path / "audits"]).runs
    assert first.anchor == second.anchor
    assert first.path == "audits/table2/0000/result.json"


def test_a_method_that_is_none_is_named(tmp_path):
    made_up.write(tmp_path / "audits", made_up.result(method="confidence_gap"))
    methods = "report.methods=[confidence_gap,prisn]"
    with pytest.raises(ValueError, match=r"Each of report.methods must be .*; got 'prisn'.* Did you mean prism\?"):
        call(tmp_path, "results=[audits]", "folder=out", methods)
