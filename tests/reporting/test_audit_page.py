"""The page of one audit: every kind of picture, nothing fetched, labels stay text, no documents unless asked for."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import made_up
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nonmember.reports.audit_page.pictures import KINDS_OF_PICTURES, Evidence
from nonmember.reports.audit_page.svg import average_ranks, ticks_of
from nonmember.reports.audit_page.write import PAGE, try_to_write_page, write_page
from nonmember.runtime.terminal import visible

EVIL = "</title><script>alert(1)</script>[/x]\x1b[31m`"
N = 40


def columns(*names, groups=()):
    """Scores of N documents, half of them in each group."""
    rng = np.random.default_rng(0)
    values = {"doc_id": [f"d{number}" for number in range(N)]}
    if groups:
        values["group"] = [group for group in groups for _ in range(N // len(groups))]
    return values | {name: rng.normal(size=N) for name in names}


AUCS = {"auc": {"words": 0.7, "years": 0.5}, "intervals": {"words": [0.6, 0.8], "years": [0.5, 0.5]}}
TWO = ("suspect", "heldout")
# Method -> its scores, details, and a heading of its picture.
KINDS = {
    "prism": (columns("target", "reference", "distilled"), {}, "Target and distilled reference, rho 0.600"),
    "pacost": (columns("original", "rephrased", "original_no"), {}, "Differences, original less rephrased"),
    "llm_di": (columns("a", "b", groups=TWO), {"weights": {"a": 0.1, "b": None}}, "a"),
    "order": (
        columns("canonical", "mean_shuffled", "control/canonical", "control/mean_shuffled"),
        {},
        "Shards under the reference, which has not read it",
    ),
    "decop": (columns("decop", groups=TWO), {}, "Answers"),
    "fsd": (columns("target/loss", "tuned/loss", groups=TWO), {}, "loss: before tuning less after"),
    "blind": (columns(groups=TWO), AUCS, "How well text alone tells the sets apart"),
    "difference_in_differences": (columns("target", "reference", groups=TWO), {}, "Target less reference"),
    "a method of elsewhere": (columns("zlib", groups=TWO), {}, "zlib"),
}


@pytest.fixture
def folder(tmp_path):
    """folder(method, ...): as an audit leaves it."""

    def make(method, scores, details, **more):
        result = made_up.result(method=method, details=details, **more)
        (tmp_path / "result.json").write_text(result.to_json(), encoding="utf-8")
        pq.write_table(pa.table(scores), tmp_path / "scores.parquet")
        pq.write_table(
            pa.table({"statistic": np.random.default_rng(0).normal(size=500)}), tmp_path / "distribution.parquet"
        )
        kinds = ("right", "wrong", "refused")
        rows = [{"group": TWO[index % 2], "kind": kinds[index % 3]} for index in range(12)]
        (tmp_path / "answers.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
        return tmp_path

    return make


class Reader(HTMLParser):
    """Tags and attributes that could lead anywhere; the visible text."""

    def __init__(self):
        super().__init__()
        self.tags, self.addresses, self.contents, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in ("href", "src", "srcset", "action", "data")]

        self.contents += [value for name, value in attrs if name == "content"]

    def handle_data(self, data):
        self.text.append(data)


def read(html):
    reader = Reader()
    reader.feed(html)
    return reader


@pytest.mark.parametrize("method", KINDS)
def test_it_shows_what_the_method_looks_at(folder, method):
    scores, details, heading = KINDS[method]
    html = write_page(folder(method, scores, details)).read_text()
    assert f'<figcaption class="title">{heading}</figcaption>' in html
    assert "500 resamples of" in html
    assert "evidence of non-membership" in html
    assert "nan" not in " ".join(re.findall(r'd="([^"]*)"', html)).lower()


def test_it_fetches_nothing_and_labels_stay_text(folder):
    scores = columns("target", "reference", "distilled", EVIL)
    scores["doc_id"][0] = EVIL
    page = write_page(
        folder(
            "prism",
            scores,
            {EVIL: EVIL},
            corpus=EVIL,
            target=EVIL,
            warnings=(EVIL,),
            excluded={EVIL: EVIL},
            settings={EVIL: EVIL},
        )
    )
    html = page.read_text()
    found = read(html)
    assert "script" not in found.tags
    assert found.addresses == ["data:,"]
    assert any(content.startswith("default-src 'none'; ") for content in found.contents)
    assert not re.search(r"https?://|url\(|@import", html)
    assert "\x1b" not in html, "a terminal that prints the page is not driven by it"
    assert sum(visible(EVIL) in text for text in found.text) >= 6


def test_documents_are_shown_only_where_that_was_asked_for(folder):
    path = folder("prism", columns("target", "reference"), {})
    assert "the first words" not in write_page(path).read_text()
    texts = {"suspect": {"d0": "the first words of a text " * 9}}
    assert "the first words of a text the first" in write_page(path, texts).read_text()


def test_the_command_without_credentials(folder):
    path = folder("prism", columns("target"), {})
    (path / ".hydra").mkdir()
    (path / ".hydra/overrides.yaml").write_text("- target.url=http://me:secret@host/v1\n- data.path=a b.csv\n")
    source = {
        "job": {"config_name": "demo"},
        "runtime": {"config_sources": [{"path": "/somewhere/sweeps", "provider": "command-line"}]},
    }
    (path / ".hydra/hydra.yaml").write_text(json.dumps({"hydra": source}))
    html = "".join(read(write_page(path).read_text()).text)
    assert (
        "nonmember audit --config-dir=sweeps --config-name=demo target.url=http://host/v1 'data.path=a b.csv'" in html
    )


def test_a_page_never_fails_an_audit(folder, caplog):
    path = folder("prism", columns("target"), {})
    (path / "scores.parquet").write_text("no table")
    try_to_write_page(path)
    assert not (path / PAGE).exists()
    assert "could not be written" in caplog.text


def test_a_thousand_documents_are_small(folder):
    rng = np.random.default_rng(0)
    scores = {"doc_id": [f"module.function.number_{n}" for n in range(3000)]}
    scores |= {name: rng.normal(size=3000) for name in ("target", "reference", "distilled")}
    html = write_page(folder("prism", scores, {})).read_text()
    assert len(html) < 1_000_000
    assert "2,000 further documents stand in scores.parquet." in html


def drawn(kind, columns=None, **more):
    """Of two suspect documents."""
    result = made_up.result(**{"method": "dose", "details": {}, **more})
    columns = {name: np.array(values, dtype=float) for name, values in (columns or {}).items()}
    return KINDS_OF_PICTURES[kind](Evidence(result, columns, groups=["suspect"] * 2))


def test_without_anything_to_show_there_is_no_picture():
    """An empty one would look as if nothing had been found."""
    assert drawn("pairs", {"original": [1, 2]}) == []
    assert drawn("changes", {"target/loss": [1, 2]}) == []
    assert drawn("aucs", details={"auc": {}}) == drawn("scores") == []
    assert drawn("scores", {"zlib": [np.nan, np.nan]}) == []
    assert drawn("dose", details={"controls": [{"reading": None}]}) == []
    assert drawn("dose", statistic=None, details={"controls": [{"reading": 1.0}]}) == []
    (alone,) = drawn("answers", {"decop": [0.5, 1.0]})
    assert alone.title == "right answers of a document"
    assert alone.caption == "Mean 0.750 in suspect."


def test_the_meters_picture_has_a_dot_for_each_control():
    controls = [{"dose": dose, "related": related, "reading": dose} for dose, related in ((0, 0), (0, 4), (8, 0))]
    details = {
        "controls": [*controls, {"dose": 2, "related": 0, "reading": None}],
        "heaviest_dose": 8,
        "readings": "about 3 readings",
    }
    (found,) = drawn("dose", statistic=3.0, ci_low=2.0, ci_high=None, details=details)
    assert found.title == "The target: about 3 readings"
    dots = dict(re.findall(r'class="dots (s\d)" d="(.*?)"', found.svg))
    assert {name: len(re.findall(r"M\S+ \S+h0", path)) for name, path in dots.items()} == {"s0": 2, "s1": 1}
    assert dots["s1"] == dots["s0"][: len(dots["s1"])], "neither read any of the set, and the meter says so of both"
    assert ("band", "95% interval") in found.legend


def test_ticks_and_ranks():
    assert ticks_of(-0.21, 0.11) == [-0.2, -0.1, 0.0, 0.1]
    assert average_ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1.0, 3.5, 2.0]


def test_the_command_writes_the_pages_below_a_folder(folder, nonmember, tmp_path):
    scores, details, _ = KINDS["prism"]
    path = folder("prism", scores, details)
    page = (path / PAGE).resolve()
    page.unlink(missing_ok=True)
    said = nonmember("page", path)
    assert (said.status, said.out) == (0, f"{path / PAGE}\n")
    assert page.is_file()
    assert "There is no result.json below nowhere." in nonmember("page", "nowhere").err
