"""The order test from the command line on one's own file: the answer, and one sentence for each kind of bad file."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import tiny
from command_line import numbers, write_rows

EXAMPLES = tiny.random_texts(48, seed=2)


@pytest.fixture
def ask_order(make_model, tmp_path):
    """ask_order(examples): the arguments of an audit in 20 shards of a model that reads 128 tokens."""

    def arguments(*more: str, examples: list[str] = EXAMPLES) -> list[str]:
        path = write_rows(tmp_path / "benchmark.jsonl.gz", [{"text": text} for text in examples])
        return [
            "audit",
            "model@target=pretrained",
            f"target.path={make_model()}",
            "model@reference=pretrained",
            f"reference.path={make_model(1)}",
            "data=ordered",
            f"data.path={path}",
            "method=order",
            "logger=none",
            "method.num_shards=20",
            "method.num_orders=20",
            "method.window=128",
            "method.stride=64",
            *more,
        ]

    return arguments


def the_result(outputs: str = "outputs") -> dict:
    (path,) = Path(outputs).glob("audits/*/*/result.json")
    return json.loads(path.read_text())


@pytest.mark.slow
def test_an_audit_of_ones_own_file(nonmember, ask_order):
    said = nonmember(*ask_order(examples=[*EXAMPLES, "", " "]))
    assert said.status == 0, said.err
    result = the_result()
    assert (result["question"]["method"], result["question"]["corpus"], result["question"]["truth"]) == (
        "order",
        "benchmark",
        None,
    )
    assert (
        result["statistics"]["num_documents"],
        result["exclusions"]["dropped"],
        result["question"]["reference"],
    ) == (20, {"blank": 2}, None)
    assert result["verdict"]["decision"] in ("inconclusive", "evidence_of_membership")
    assert result["provenance"]["made"]["tokens_observed"] == result["statistics"]["details"]["num_tokens_read"] > 0
    (scores,) = Path("outputs").glob("audits/*/*/scores.parquet")
    assert pq.read_metadata(scores).num_rows == 20

    said = nonmember(*ask_order("outputs=elsewhere", examples=[*EXAMPLES, "", " "]))
    assert said.status == 0, said.err
    assert numbers(the_result("elsewhere")) == numbers(result)


@pytest.mark.slow
def test_the_reference_as_a_control(nonmember, ask_order):
    said = nonmember(*ask_order("method.control=true"))
    assert said.status == 0, said.err
    result = the_result()
    assert result["question"]["reference"] == "tiny1"
    assert 0 < result["statistics"]["details"]["control"]["p_value"] < 1
    assert result["health"]["capability"].keys() == {"target", "control"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("examples", "more", "told"),
    [
        (EXAMPLES[:39], [], "20 shards of at least 2 examples need 40 examples, and the file has 39"),
        (EXAMPLES, ["method.max_examples=30"], "`max_examples` of Sharded (two a shard) must be a whole number of at"),
    ],
)
def test_bad_files_get_one_sentence(nonmember, ask_order, examples, more, told):
    said = nonmember(*ask_order(*more, examples=examples))
    assert said.status == 1
    assert told in said.err
    assert said.err.count("\n") == 1, said.err
    assert "Traceback" not in said.err + said.out
