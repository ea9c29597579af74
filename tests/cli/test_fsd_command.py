"""FSD from the command line on one's own files: the answer, and one sentence for each kind of bad documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tiny
from command_line import rows_of, write_rows


@pytest.fixture
def ask_fsd(ask, tmp_path):
    """ask_fsd(unseen=[...]): the arguments of an audit of 40 documents against 40 others, tuned on 16 further ones."""

    def arguments(*more: str, unseen: list[str] | None, heldout_seed: int = 3) -> list[str]:
        sets = {"heldout": tiny.random_texts(40, seed=heldout_seed), "unseen": unseen}
        given = []
        for role, texts in sets.items():
            if texts is not None:
                rows = [{**row, "id": f"{role}-{row['id']}"} for row in rows_of(texts)]
                path = write_rows(tmp_path / f"{role}.jsonl", rows)
                given += [f"+data@data.{role}=jsonl", f"data.{role}.path={path}"]
        return ask("method=fsd", "method.training.max_tokens=64", *given, *more)

    return arguments


UNSEEN = tiny.random_texts(16, seed=4)


@pytest.mark.slow
def test_an_audit_of_ones_own_files(nonmember, ask_fsd):
    said = nonmember(*ask_fsd(unseen=UNSEEN))
    assert said.status == 0, said.err
    (path,) = Path("outputs").glob("audits/*/*/result.json")
    result = json.loads(path.read_text())
    assert (result["question"]["method"], result["verdict"]["decision"], result["question"]["heldout"]) == (
        "fsd",
        "score_only",
        "heldout",
    )
    assert list(result["statistics"]["details"]["scores"]) == ["perplexity", "lowercase", "zlib", "mink(0.2)"]
    assert result["question"]["settings"]["training"]["kind"] == "AdapterTuning"
    assert "none about a single document" in said.out, said.out
