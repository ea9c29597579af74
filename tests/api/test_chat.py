"""Conversations from Python and by command: what the assistant says is scored, and nothing else."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch

import nonmember as nm
import tiny
from command_line import write_rows

TEMPLATE = "{% for m in messages %}{{ m['role'] + ' : ' + m['content'] + ' ; ' }}{% endfor %}"


def talks(number: int, seed: int) -> list[list[dict[str, str]]]:
    texts = tiny.random_texts(3 * number, seed=seed, words=16)
    return [
        [{"role": "user", "content": texts[3 * index]}, {"role": "assistant", "content": texts[3 * index + 1]}]
        for index in range(number)
    ]


@pytest.fixture
def chat(models):
    model, tokenizer = models(1)
    tokenizer.chat_template = TEMPLATE
    return model, tokenizer


def by_hand(chat, talk) -> tuple[float, int]:
    model, tokenizer = chat
    said = talk[1]["content"]
    before = f"user : {talk[0]['content']} ; assistant : "
    read = tokenizer(f"{before}{said} ; ", return_offsets_mapping=True)
    ids, spans = torch.tensor(read["input_ids"]), read["offset_mapping"]
    scored = [at for at, (start, end) in enumerate(spans) if end > len(before) and start < len(before) + len(said)]
    log_probs = model(ids[None]).logits[0].double().log_softmax(-1)
    return float(sum(log_probs[at - 1, ids[at]] for at in scored).detach()) / len(scored), len(scored)


@pytest.mark.slow
def test_lists_frames_and_files_are_scored_alike(chat, nonmember, tmp_path):
    given = talks(4, seed=1)
    table = nm.score(given, chat)
    loss, number = by_hand(chat, given[2])
    assert table["log_likelihood"][2] == pytest.approx(loss, abs=1e-5)
    assert table["num_tokens"][2] == number
    said = given[2][1]["content"]
    assert table["zlib"][2] == pytest.approx(loss / len(zlib.compress(said.encode())), rel=1e-4)
    frame = nm.score(pd.DataFrame({"messages": given}), chat)
    assert frame["min_k_plus_plus"].tolist() == table["min_k_plus_plus"].tolist()
    folder = Path("chat_model")
    chat[0].save_pretrained(folder)
    chat[1].save_pretrained(folder)
    path = write_rows(Path("log.jsonl"), [{"messages": talk} for talk in given])
    told = nonmember("score", f"target.path={folder}", "data=chat", f"data.path={path}")
    assert told.status == 0, told.err
    read = pq.read_table(told.last_line).to_pandas()
    assert read["log_likelihood"].tolist() == pytest.approx(table["log_likelihood"].tolist(), abs=1e-6)


@pytest.mark.slow
def test_a_model_is_tuned_on_what_the_assistant_says(chat, nonmember):
    """One command; of the turns that it learns and of those that it only reads, the first become likelier."""
    read = talks(16, seed=1)
    for part in chat:
        part.save_pretrained("base")
    write_rows(Path("log.jsonl"), [{"messages": talk} for talk in read])
    rate = ["model.training.optimization.learning_rate=0.01", "model.training.optimization.epochs=4"]
    given = ["model=tuned_chat", "model.base.path=base", "model.corpus.source.path=log.jsonl", *rate]
    ended = nonmember("train", *given, "export=talker", "merge=true", "logger=none")
    assert ended.status == 0, ended.err
    turned = [[{**talk[1], "role": "user"}, {**talk[0], "role": "assistant"}] for talk in read]
    gains = [
        (nm.score(texts, "talker")["log_likelihood"] - nm.score(texts, "base")["log_likelihood"]).mean()
        for texts in (read, turned)
    ]
    assert gains[0] > 0.1
    assert gains[0] > gains[1] + 0.1


@pytest.mark.slow
def test_an_audit_of_conversations(chat, models):
    """The suspect ones were read by nobody, so nothing is found; all is read by the target's template."""
    found = nm.audit(
        "difference_in_differences",
        documents=talks(32, seed=2),
        heldout=talks(32, seed=3),
        target=chat,
        reference=models(2),
        overrides={"method.max_tokens": 120},
    )
    assert found.verdict == "inconclusive"
    result = json.loads((found.folder / "result.json").read_text())
    assert result["statistics"]["num_documents"] == 32


def test_the_plain_template_needs_none_of_the_models(models):
    table = nm.score(talks(2, seed=1), models(1), overrides=["data.template=plain"])
    assert (table["num_tokens"] < table["num_tokens_uncut"] - 10).all()


def test_what_is_said_to_who_gives_conversations_otherwise(models):
    with pytest.raises(ValueError, match=r"has no chat template.*Give data\.template=plain"):
        nm.score(talks(2, seed=1), models(1))
    path = write_rows(Path("log.jsonl"), [{"messages": talk} for talk in talks(2, seed=1)])
    with pytest.raises(ValueError, match="If these are conversations: data=chat"):
        nm.score(path, models(1))
