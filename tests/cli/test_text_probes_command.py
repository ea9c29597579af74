"""Prefix completion, name cloze and PaCoST for questions from the command line, over a server whose model has read some
of the books."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tiny
from command_line import only, write_rows
from lab_server.running import RunningLab

NAMES = ("Harriet", "Edwin", "Marchmont", "Penhallow", "Trevanion", "Hartwell")
NUM_BOOKS, PER_BOOK = 8, 4


def passages(seed: int) -> list[dict[str, str]]:
    """Of books of their own titles; each has a name once, after its first dozen words."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(NUM_BOOKS * PER_BOOK):
        before, after = (" ".join(rng.choice(tiny.WORDS, size=size)) for size in (14, 10))
        text = f'It was the {before} and "no," said {rng.choice(NAMES)}. Then the {after} was there again.'
        book = f"{seed}-{number // PER_BOOK}"
        rows.append(
            {"id": f"{seed}-{number}", "text": text, "book": book, "title": f"Volume {book}", "author": "A. Ash"}
        )
    return rows


@pytest.fixture
def asked(lab: RunningLab, tmp_path: Path) -> list[str]:
    suspect, clean = passages(1), passages(2)
    sets = ((suspect, True), (clean, False))
    lab.setup(
        documents=[{"text": row["text"], "read": read} for rows, read in sets for row in rows],
        hit={"mask": [0.1, 0.6], "continuation": [0.0, 0.5], "judgement": [0.4, 0.6]},
        seed=3,
    )
    paths = [write_rows(tmp_path / f"{name}.jsonl", rows) for name, (rows, _) in zip(("old", "new"), sets, strict=True)]
    columns = ("cluster_field=book", "title_field=title", "author_field=author")
    return [
        *("audit", "logger=none", "data=jsonl", f"data.path={paths[0]}", *(f"data.{item}" for item in columns)),
        *("+data@data.heldout=jsonl", f"data.heldout.path={paths[1]}", *(f"data.heldout.{item}" for item in columns)),
        *("model@target=endpoint", f"target.url={lab.url}", "target.model=lab"),
    ]


def the_result(tmp_path: Path) -> dict:
    return json.loads(only(tmp_path, "outputs/audits/mine/*/result.json").read_text())


@pytest.mark.slow
def test_prefix_completion(nonmember, asked, lab, tmp_path):
    said = nonmember(*asked, "method=prefix_completion", "method.k=12", "method.num_permutations=199")
    assert said.status == 0, said.err
    result = the_result(tmp_path)
    told = result["statistics"]["details"]
    assert result["verdict"]["decision"] == "evidence_of_membership"
    assert 0.3 < result["statistics"]["value"] < 0.7
    assert told["heldout"]["num_matched"] == 0
    assert told["suspect"]["num_units"] == NUM_BOOKS
    assert lab.ledger()["paid"] == 2 * NUM_BOOKS * PER_BOOK + 1  # and one to see what is offered


@pytest.mark.slow
def test_sampled_completion(nonmember, asked, lab, tmp_path):
    """Half of the suspect passages are known; the others are continued by other words, as all clean ones are."""
    said = nonmember(*asked, "method=sampled_completion", "method.num_samples=2", "method.num_permutations=199")
    assert said.status == 0, said.err
    result = the_result(tmp_path)
    told = result["statistics"]["details"]
    assert result["verdict"]["decision"] == "evidence_of_membership"
    assert result["statistics"]["value"] > told["mean_heldout"] + 0.2
    assert {name: found["auc"] > 0.6 for name, found in told["similarities"].items()} == dict.fromkeys(
        ("coverage", "longest", "samia"), True
    )
    assert lab.ledger()["paid"] == 2 * 2 * NUM_BOOKS * PER_BOOK + 1
    assert any("was asked by its chat route" in warning for warning in result["verdict"]["warnings"])


@pytest.mark.slow
def test_name_cloze(nonmember, asked, tmp_path):
    said = nonmember(*asked, "method=name_cloze")
    assert said.status == 0, said.err
    result = the_result(tmp_path)
    told = result["statistics"]["details"]
    assert result["verdict"]["decision"] == "evidence_of_membership"
    assert told["mean_suspect"] == pytest.approx(0.6, abs=0.2)
    assert told["mean_heldout"] == pytest.approx(0.1, abs=0.1)
    assert told["suspect"]["of_kind"].keys() == {"person"}
    assert "most_frequent_name" in told["controls"]


@pytest.mark.slow
def test_refusals_are_counted_and_too_many_are_invalid(nonmember, asked, lab, tmp_path):
    documents = [{"text": row["text"], "read": True} for seed in (1, 2) for row in passages(seed)]
    lab.setup(documents=documents, hit={"mask": [0.0, 1.0]}, refused=0.3)
    assert nonmember(*asked, "method=name_cloze").status == 0
    result = the_result(tmp_path)
    refused = [result["statistics"]["details"][name]["num_refused"] for name in ("suspect", "heldout")]
    assert sum(refused) == sum(map(len, result["exclusions"]["documents"].values())) > 0.2 * 2 * NUM_BOOKS * PER_BOOK
    assert [result["statistics"]["details"][name]["num_right"] for name in ("suspect", "heldout")] == [
        NUM_BOOKS * PER_BOOK - number for number in refused
    ]
    assert result["verdict"]["decision"] == "invalid"
