"""Conversations in the formats people have, and what is said of rubbish."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from nonmember.corpora import Conversations, Dialogues, Prefixes
from nonmember.corpora.sources.conversations import (
    UNREAD,
    UNREAD_OF_A_TURN,
    WEIGHTS,
    holds_conversations,
    turns_as_json,
    turns_from_json,
)
from nonmember.corpora.views import apply_view
from nonmember.models import Rendered
from nonmember.records import Corpus, Document
from tiny import build, texts

MESSAGES = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
TURNS = [("user", "Hi"), ("assistant", "Hello.")]


def written(folder: Path, *rows: Any) -> Conversations:
    path = folder / "chat.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return Conversations(str(path))


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"messages": MESSAGES}, TURNS),
        ({"messages": [{"role": "developer", "content": "Be kind."}, *MESSAGES]}, [("system", "Be kind."), *TURNS]),
        ({"messages": json.dumps(MESSAGES)}, TURNS),  # as CSV has it
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}, MESSAGES[1]]}, TURNS),
        ({"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello."}]}, TURNS),
        ({"instruction": "Hi", "input": "", "output": "Hello."}, TURNS),
        ({"instruction": "Add.", "input": "1, 2", "output": "3"}, [("user", "Add.\n\n1, 2"), ("assistant", "3")]),
        ({"instruction": "Hi", "context": None, "response": "Hello.", "category": "x"}, TURNS),
        ({"prompt": "Hi", "completion": "Hello."}, TURNS),
        ({"system": "Be kind.", "prompt": "Hi", "response": "Hello."}, [("system", "Be kind."), *TURNS]),
        ({"prompt": MESSAGES[:1], "completion": MESSAGES[1:]}, TURNS),
        ({"system": "Be kind.", "conversations": MESSAGES}, [("system", "Be kind."), *TURNS]),
        (
            {"system": "Be kind.", "messages": [{"role": "system", "content": "Be brief."}, *MESSAGES]},
            [("system", "Be brief."), *TURNS],
        ),
        ({"instruction": "Hi", "output": "Hello.", "history": []}, TURNS),
        ({"messages": [MESSAGES[0], MESSAGES[1] | {"tool_calls": np.array([]), "reasoning_content": None}]}, TURNS),
    ],
)
def test_formats_people_have_are_read(row: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert [turn[:2] for turn in turns_from_json(turns_as_json(row, None, "row 1"))] == expected


@pytest.mark.parametrize(("name", "no", "yes"), [("weight", 0, 1), ("train", False, True), ("loss", False, None)])
@pytest.mark.parametrize("column", ["messages", "conversations"])
def test_turns_that_were_not_trained_on_are_read_and_not_scored(column: str, name: str, no: Any, yes: Any) -> None:
    talk = [MESSAGES[0], MESSAGES[1] | {name: no}, MESSAGES[0] | {name: no}, MESSAGES[1] | {name: yes}]
    spec = Rendered(texts(turns_as_json({column: talk}, None, "row 1")), None, "plain")
    assert build(spec).documents[0].pieces == (
        "User: Hi\n\nAssistant: Hello.\n\nUser: Hi\n\nAssistant: ",
        "Hello.",
        "\n",
    )
    with pytest.raises(ValueError, match="no turn of the assistant that was trained on"):
        turns_as_json({column: talk[:3]}, None, "row 1")


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"text": "Hi"}, "must be a conversation.*its columns are 'text'"),
        ({"messages": "Hi"}, "must hold a list of messages, but it holds str"),
        ({"messages": ["Hi"]}, "message 1 must be an object with role and content"),
        ({"messages": [{"speaker": "A", "text": "Hi"}]}, "got the keys 'speaker', 'text'"),
        ({"messages": [{"role": "narrator", "content": "Hi"}]}, "message 1 is of 'narrator'; expected one of system"),
        ({"messages": [{"role": ["user"], "content": "Hi"}]}, r"message 1 is of \['user'\]"),
        ({"messages": MESSAGES[:1]}, "no turn of the assistant"),
        ({"messages": []}, "no turn of the assistant"),
        ({"messages": [MESSAGES[0], {"role": "assistant", "content": " "}]}, "message 2.*must hold text.*nothing"),
        ({"messages": [{"role": "assistant", "content": None, "tool_calls": [{}]}]}, "message 1 is a call of a tool"),
        ({"messages": [*MESSAGES, {"role": "tool", "content": "3"}]}, "message 3 is a call of a tool"),
        ({"messages": [MESSAGES[1] | {"tool_calls": np.array([{}, {}])}]}, "message 1 is a call of a tool"),
        ({"messages": [MESSAGES[0], MESSAGES[1] | {"reasoning_content": "A greeting."}]}, "message 2 has thoughts"),
        ({"instruction": "Hi", "output": "Bye.", "history": [["a", "b"]]}, "'history' holds earlier turns"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "a part of the type 'image_url'"),
        ({"messages": [{"role": "user", "content": 3}]}, "must hold text, but it holds a number"),
        *(({"messages": MESSAGES, name: [{"name": "f"}]}, f"has '{name}'") for name in UNREAD),
        *(
            ({"messages": [MESSAGES[0], MESSAGES[1] | {name: [1]}]}, f"message 2 has '{name}'")
            for name in UNREAD_OF_A_TURN
        ),
        *(({"messages": [MESSAGES[1] | {name: 0.5}]}, f"message 1 has {name}: 0.5; expected 1 or") for name in WEIGHTS),
        ({"instruction": "Hi", "output": 3}, "'instruction' and 'output' must both hold text"),
    ],
)
def test_rubbish_is_refused_with_its_place(row: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=f"row 7.*{sentence}"):
        turns_as_json(row, None, "row 7")


def test_ids_clusters_and_places_are_those_of_documents(tmp_path: Path) -> None:
    spec = written(tmp_path, {"id": "c1", "messages": MESSAGES}, {"id": "c2", "messages": MESSAGES})
    assert build(spec).doc_ids == ("c1", "c2")
    with pytest.raises(ValueError, match=r"chat\.jsonl, line 2 must be a conversation"):
        build(written(tmp_path, {"messages": MESSAGES}, {"question": "Hi"}))
    assert build(written(tmp_path, {"messages": MESSAGES})).doc_ids == ("chat:1",)


def test_arrays_of_pandas_are_lists() -> None:
    frame = pd.DataFrame({"messages": [MESSAGES]})
    frame["messages"] = [pd.array(MESSAGES, dtype=object).to_numpy()]
    row = frame.to_dict("records")[0]
    assert holds_conversations(row)
    assert turns_from_json(turns_as_json(row, None, "row 1")) == [(*turn, True) for turn in TURNS]
    assert not holds_conversations({"text": "Hi", "messages": "none"})


def talk(*pieces: str) -> Document:
    return Document("d0", "".join(pieces), pieces=pieces)


def test_pieces_are_content_and_are_kept(tmp_path: Path) -> None:
    plain, one, other = (
        Corpus((item,)) for item in (Document("d0", "U: a A: b"), talk("U: a A: ", "b"), talk("U: ", "a", " A: b"))
    )
    assert len({plain.fingerprint, one.fingerprint, other.fingerprint}) == 3
    one.save(tmp_path / "corpus.parquet")
    assert Corpus.load(tmp_path / "corpus.parquet") == one
    assert one.documents[0].scored_text == "b"


def test_views_change_what_the_assistant_says_and_nothing_else() -> None:
    document = talk("<USER>Hi<ASSISTANT>", "Hello THERE", "<END>")
    (lower,) = apply_view(Corpus((document,)), "lowercase").documents
    assert lower.pieces == ("<USER>Hi<ASSISTANT>", "hello there", "<END>")


def test_what_would_lose_the_turns_is_refused() -> None:
    spec = Rendered(Dialogues(texts("one two three four", "five six seven eight"), 2), None, "plain")
    assert [item.pieces for item in build(spec).documents] == [
        ("User: one two\n\nAssistant: ", "three four", "\n"),
        ("User: five six\n\nAssistant: ", "seven eight", "\n"),
    ]
    with pytest.raises(ValueError, match="'d0/2' is a conversation, and what is asked for puts another text"):
        build(Prefixes(spec, [2]))
