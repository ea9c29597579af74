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
    assert "None about a single document" in said.out + said.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unseen", "more", "told"),
    [
        (None, [], "fsd needs further unread text to tune the target on; add"),
        (UNSEEN[:7], [], "The unseen set unseen has 7 documents and fsd needs at least 8"),
        (
            tiny.random_texts(40, seed=3)[:16],
            [],
            "documents of the heldout set overlap with the documents to be tuned on",
        ),
        (UNSEEN, ["method.view=reversed"], "view must be one of original"),
    ],
)
def test_bad_documents_get_one_sentence(nonmember, ask_fsd, unseen, more, told):
    said = nonmember(*ask_fsd(*more, unseen=unseen))
    assert said.status == 1
    assert told in said.err
    assert said.err.count("\n") == 1, said.err
    assert "Traceback" not in said.err + said.out
    assert not list(Path("outputs").glob("store/models/*"))


@pytest.mark.slow
def test_the_leak_is_counted_and_printed(nonmember, ask_fsd):
    said = nonmember(*ask_fsd("method.compat=true", unseen=tiny.random_texts(40, seed=3)[:16]))
    assert said.status == 0, said.err
    assert "compat: 16 of 40 nonmembers under test (40%) are tuned on" in said.out + said.err
