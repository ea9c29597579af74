"""What outsiders can add, each one file and its YAML, run from the command line by `_target_` alone.

docs/extending.md shows these files, or links to them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from command_line import only
from tiny import random_texts

HERE = Path(__file__).parent
EXTENSIONS = [path.stem for path in HERE.glob("*.py") if not path.stem.startswith("test_")]


@pytest.fixture
def allowed(monkeypatch):
    """The extensions are at hand."""
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setenv("NONMEMBER_ALLOW_TARGETS", ",".join(EXTENSIONS))


@pytest.fixture
def audit(nonmember, ask, allowed, tmp_path):
    """audit("score@method.score=median_log_prob"): the result of an audit with the extensions at hand."""

    def run(*overrides: str, drop: tuple[str, ...] = ("nothing",)) -> dict:
        command, *usual = [item for item in ask() if not item.startswith(drop)]
        said = nonmember(command, "--config-dir", HERE / "conf", *usual, *overrides)
        assert said.status == 0, said.err
        return json.loads(only(tmp_path, "outputs/audits/*/*/result.json").read_text())

    return run


@pytest.fixture
def text_file(tmp_path: Path) -> Path:
    path = tmp_path / "book.txt"
    path.write_text("\n\n".join(random_texts(40, seed=5)))
    return path


@pytest.mark.slow
def test_a_score(audit, tmp_path):
    result = audit("score@method.score=median_log_prob", "method=rank_agreement")
    assert result["question"]["score"] == "median_log_prob"
    assert -1 <= result["statistics"]["value"] <= 1


@pytest.mark.slow
def test_a_score_as_a_column(allowed, nonmember, make_model, text_file, tmp_path):
    given = ("score", "--config-dir", HERE / "conf", f"target.path={make_model(0)}", f"data.path={text_file}")
    said = nonmember(*given, "scores=[zlib]", "+score@own_scores.median=median_log_prob", "export=scores.csv")
    assert said.status == 0, said.err
    header, *rows = (tmp_path / "scores.csv").read_text().splitlines()
    assert {"zlib", "median"} <= set(header.split(","))
    assert all(float(row.split(",")[header.split(",").index("median")]) < 0 for row in rows)
    said = nonmember(*given, "scores=[zlib]", "+score@own_scores.zlib=median_log_prob")
    assert "A column of own_scores must have a name of its own; got 'zlib'" in said.err


@pytest.mark.slow
def test_a_corpus_source(audit, text_file):
    result = audit("method=rank_agreement", "data=paragraphs", f"data.path={text_file}", drop=("data",))
    assert (result["question"]["corpus"], result["statistics"]["num_documents"]) == ("book", 40)


@pytest.mark.slow
def test_a_corpus_that_a_model_writes(audit, text_file, tmp_path):
    result = audit("method=rank_agreement", "data=continuations", f"data.path={text_file}", drop=("data",))
    assert result["statistics"]["num_documents"] + result["exclusions"]["dropped"]["not continued"] == 40
    assert (
        len(pq.read_table(only(tmp_path, "outputs/audits/*/*/scores.parquet")))
        == result["statistics"]["num_documents"]
        > 30
    )


@pytest.mark.slow
def test_a_kind_of_model_with_weights(audit, make_model):
    models = [f"target.{name}.path={make_model(seed)}" for seed, name in enumerate(("first", "second"))]
    targets = ("model@target", "target.path")
    half = audit("method=rank_agreement", "model@target=averaged", *models, "target.share=0.5", drop=targets)
    assert "+" in half["question"]["target"]
    assert (
        half["health"]["capability"]["target"]["num_parameters"]
        == half["health"]["capability"]["reference"]["num_parameters"]
    )


def test_a_kind_of_model_that_can_only_be_asked(audit):
    result = audit(
        "method=prefix_completion",
        "method.k=4",
        "model@target=parrot",
        "method.num_permutations=99",
        drop=("model@target", "target.path", "method"),
    )
    assert (result["question"]["target"], result["question"]["method"]) == ("parrot", "prefix_completion")
    assert result["statistics"]["details"]["suspect"]["num_matched"] == 0


@pytest.mark.slow
def test_a_kind_of_observation_and_a_method_and_a_report(audit, nonmember, tmp_path):
    result = audit("method=confidence_gap", drop=("method",))
    entropies = pq.read_table(only(tmp_path, "outputs/audits/*/*/scores.parquet")).to_pydict()
    gaps = [item - other for item, other in zip(entropies["reference"], entropies["target"], strict=True)]
    assert result["statistics"]["value"] == pytest.approx(sum(gaps) / len(gaps))
    assert len([*tmp_path.glob("outputs/store/observations/*entropies*")]) == 2
    said = nonmember("report", "--config-dir", HERE / "conf", "report=gap", f"report.folder={HERE / 'gap'}")
    assert said.status == 0, said.err
    report = (tmp_path / "outputs/reports/gap/report.md").read_text()
    assert "gaps-own.svg" in report, "the figure"
    (row,) = [line for line in report.partition("## Gap by target")[2].splitlines() if line.startswith("| tiny")]
    assert row.split("|")[2].strip().replace("\u2212", "-") == f"{result['statistics']['value']:+.3f}"


def test_the_documentation_shows_or_links_these_files():
    text = (HERE.parents[1] / "docs" / "extending.md").read_text()
    missing = [
        path.name
        for path in sorted(HERE.rglob("*"))
        if path.suffix in (".py", ".yaml", ".md")
        and not path.stem.startswith("test_")
        and path.read_text().strip() not in text
        and f"(../{path.relative_to(HERE.parents[1])})" not in text
    ]
    assert not missing
