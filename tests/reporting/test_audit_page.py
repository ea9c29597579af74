"""The page of one audit: every kind of picture, nothing fetched, labels stay text, no documents unless asked for."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import made_up
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nonmember.methods import gates as gates_of_methods
from nonmember.reports.audit_page.content import MAX_DOCUMENTS, readable
from nonmember.reports.audit_page.gates import gates_of
from nonmember.reports.audit_page.write import FIRST_ROWS, PAGE, is_page, try_to_write_page, write_page
from nonmember.reports.core import formats
from nonmember.reports.index_page.write import write_index
from nonmember.results.pictures import KINDS_OF_PICTURES, Evidence, most_of
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
EXTRACTED = {"share_at_least": {"0.1": 0.25}, "num_discoverable": {"100": 3}}
PASSAGES = {"suspect": EXTRACTED, "heldout": EXTRACTED, "most_extractable": {"a": {"probability": 0.5, "tries": 2.0}}}
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
    "fsd": (columns("target/loss", "tuned/loss", groups=TWO), {}, "log-likelihood: before tuning less after"),
    "blind": (columns(groups=TWO), AUCS, "How well text alone tells the sets apart"),
    "difference_in_differences": (columns("target", "reference", groups=TWO), {}, "minkpp(0.2): target less reference"),
    "extraction": (columns("target", groups=TWO), PASSAGES, "target: minkpp(0.2)"),
    "a method of elsewhere": (columns("zlib", groups=TWO), {}, "zlib"),
}


@pytest.fixture
def folder(tmp_path):
    """folder(method, ...): as an audit leaves it."""

    def make(method, scores, details, **more):
        result = made_up.result(method=method, details=details, **more)
        result.save(tmp_path / "result.json")
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
    assert "not used" in html
    assert "nan" not in " ".join(re.findall(r'd="([^"]*)"', html)).lower()


def test_it_lists_the_most_extractable_documents(folder):
    text = " ".join(" ".join(read(write_page(folder("extraction", *KINDS["extraction"][:2])).read_text()).text).split())
    assert "Most extractable documents document probability expected tries a 0.5 2" in text
    assert "tries suspect held-out 100 3 3" in text


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
    data, script = re.findall(r"<script[^>]*>(.*?)</script>", html, re.DOTALL)
    assert found.tags.count("script") == 2
    assert json.loads(data)[0][0] == visible(EVIL), "the rows of the documents, which nothing runs"
    hashed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert any(
        item.startswith("default-src 'none'; ") and f"script-src 'sha256-{hashed}'" in item for item in found.contents
    )
    assert found.addresses == ["data:,", "#warnings"]
    assert not re.search(r"https?://(?!www.w3.org)|url\((?!#)|@import", html)
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


@pytest.mark.slow
def test_thousands_of_documents_are_small(folder):
    rng = np.random.default_rng(0)
    number = MAX_DOCUMENTS + 2
    scores = {"doc_id": [f"function.number_{n}" for n in range(number)]}
    scores |= {name: rng.normal(size=number) for name in ("target", "reference", "distilled")}
    html = write_page(folder("prism", scores, {})).read_text()
    assert len(html) < 1_500_000
    assert "scores.parquet has 2 further documents." in html
    assert html.count('<th scope="row">function.number_') == FIRST_ROWS, "a page of them, without the script"


GATE = {"value": -0.5, "bound": 0.02, "upper": False, "passed": False}


def test_a_gate_says_what_it_measures_and_guards_against(folder):
    html = write_page(folder("prism", columns("target"), {"gates": {"ce": GATE, "of elsewhere": GATE}})).read_text()
    first, other = re.findall(r"<tr><th scope=\"row\">(.*?)</tr>", html.partition("<h2>Gates</h2>")[2], re.DOTALL)[:2]
    cells = re.findall(r">([^<>]+)</t[hd]>", f">{first}")
    assert cells[1:4] == ["FAILED", "−0.5", "above 0.02"]
    assert cells[0].startswith("fall of the distilled reference's cross-entropy".replace("'", "&#39;"))
    assert cells[4] == "A distillation that taught the model nothing, or ruined it."
    assert other.startswith("of elsewhere<"), "a gate that this version does not know stands there all the same"


def test_every_gate_is_explained():
    """Names of findings as the methods' source has them."""
    source = Path(gates_of_methods.__file__).parent
    for method in ("prism", "dose"):
        code = (source / method / "gates.py").read_text() + (source / "gates.py").read_text() * (method != "dose")
        names = re.findall(r'\b(?:above|below|Finding)\(\s*"(\w+)"', code)
        details = {"gates": dict.fromkeys(names, GATE)}
        explained = {item.name: item.guards for item in gates_of(made_up.result(method=method, details=details))}
        assert len(explained) >= 4
        assert all(explained.values()), method


@pytest.mark.parametrize(
    ("method", "printed"),
    [
        ("dose", ("0.044", "0 to 0.47")),
        ("prism", ("+0.044", "[0.000, +0.470]")),
        ("blind", ("0.044", "[0.000, 0.470]")),
    ],
)
def test_what_cannot_be_negative_has_no_sign(method, printed):
    result = made_up.result(method=method, details={}, statistic=0.044, ci_low=0.0, ci_high=0.47)
    assert formats.statistic(result.statistics) == printed


def test_readings_may_have_no_upper_end():
    result = made_up.result(method="dose", details={}, statistic=12.4, ci_low=1.9, ci_high=None)
    assert formats.statistic(result.statistics) == ("12", "1.9 or more")


def test_a_verdict_is_marked_where_warnings_qualify_it(folder):
    html = write_page(folder("prism", columns("target"), {}, warnings=("one", "two"))).read_text()
    assert '<a class="qualified" href="#warnings">! 2 warnings</a></p>' in html
    assert 'class="qualified"' not in write_page(folder("prism", columns("target"), {})).read_text()


def test_models_are_named_for_people():
    assert readable("control-0x-1/minkpp(0.2)") == "control that did not read it, seed 1: minkpp(0.2)"
    assert (
        readable("control-8x50%-2/distilled/2") == "control that read 50% of it 8 times, seed 2: distilled reference: 2"
    )
    assert readable("control-0x-related-8x-1-3") == "control that did not read it, related text 8 times, seed 1-3"
    assert readable("target/loss") == "target: log-likelihood"


def test_axes_fit_what_is_drawn():
    """One value far away leaves no room for the others; it is counted instead. Values spread evenly are all shown."""
    values = np.r_[np.linspace(0, 1, 200), 1000.0]
    assert most_of(values)[1] < 2
    assert most_of(values[:-1]) == (0.0, 1.0)
    (found,) = drawn("scores", {"zlib": [0.0, 1.0]})
    assert "outside" not in found.caption
    result = made_up.result(details={})
    (found,) = KINDS_OF_PICTURES["scores"](Evidence(result, {"zlib": values}, groups=["suspect"] * 201))
    assert "1 lie far outside the axis." in found.caption


def test_a_page_of_somebody_else_is_told_from_ours(folder):
    path = write_page(folder("prism", columns("target"), {}))
    assert is_page(path)
    ours = path.read_text()
    for other in (
        f"<script>1</script>{ours}",
        ours.replace("script-src", "script-src 'unsafe-inline'"),
        "",
        ours.replace("<html", "<HTML"),
        re.sub("script-src .*?; img-src", "img-src", ours),
    ):
        path.write_text(other)
        assert not is_page(path)
    path.unlink()
    assert not is_page(path)


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


def test_ranks_are_those_of_the_suspect_documents():
    """Of which the correlation beside them is; third text has scores too."""
    result = made_up.result(method="prism", details={"rho_reference_target": 1.0})
    columns = {"target": np.array([1.0, 2.0, 9.0]), "reference": np.array([3.0, 4.0, 0.0])}
    (found,) = KINDS_OF_PICTURES["ranks"](Evidence(result, columns, groups=["suspect", "suspect", "third"]))
    assert len(found.figure.axes[0].lines[-1].get_xdata()) == 2


def test_the_meters_picture_has_a_dot_for_each_control():
    controls = [{"dose": dose, "related": related, "reading": dose} for dose, related in ((0, 0), (0, 4), (8, 0))]
    details = {
        "controls": [*controls, {"dose": 2, "related": 0, "reading": None}],
        "heaviest_dose": 8,
        "readings": "about 3 readings",
    }
    (found,) = drawn("dose", statistic=3.0, ci_low=2.0, ci_high=None, details=details)
    assert found.title == "The target: about 3 readings"
    dots = {line.get_label(): len(line.get_xdata()) for line in found.figure.axes[0].lines}
    assert (dots["controls"], dots["controls that read related text too"]) == (2, 1)
    assert "95% interval" in [text.get_text() for text in found.figure.legends[0].get_texts()]


def test_the_command_writes_the_pages_below_a_folder(folder, nonmember, tmp_path):
    scores, details, _ = KINDS["prism"]
    path = folder("prism", scores, details)
    page = (path / PAGE).resolve()
    page.unlink(missing_ok=True)
    said = nonmember("view", path, "--pages")
    assert (said.status, said.out.splitlines()[0]) == (0, f"{path / PAGE}")
    assert page.is_file()


def test_no_page_quotes_what_a_model_answered(folder):
    """An answer may be a document's text, of which pages have none unless that was asked for."""
    quoted = '3 of 40 answers about the suspect set cannot be read, such as "a secret" (d1) (all: answers.jsonl).'
    path = folder("decop", columns("target"), {}, warnings=(quoted,))
    write_page(path)
    write_index(path)
    pages = [(path / name).read_text() for name in ("audit.html", "index.html")]
    for text in pages:
        assert "3 of 40 answers about the suspect set cannot be read." in text
        assert "a secret" not in text
    write_page(path, {})
    assert "a secret" in (path / "audit.html").read_text(), "where the first words may be shown, so may this"
