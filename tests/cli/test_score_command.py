"""`nonmember score` on a tiny model: a row per document, several scores at once, and what became of each document."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from command_line import rows_of, write_rows
from nonmember.scoring import table as score_table
from nonmember.stats.classification import roc_auc

SCORES = ["log_likelihood", "neg_perplexity", "zlib", "min_k", "min_k_plus_plus", "max_k"]
COUNTS = ["num_tokens", "num_tokens_uncut", "is_cut", "reason"]


@pytest.fixture
def score(nonmember, make_model):
    """score(path, ...): what the command said, and its table."""

    def run(path, *more):
        said = nonmember("score", f"target.path={make_model(0)}", "data=documents", f"data.path={path}", *more)
        assert (said.status, said.err) == (0, "")
        return said, pq.read_table(said.last_line)

    return run


@pytest.mark.slow
def test_a_row_per_document_or_a_reason(score, make_model, texts, tmp_path):
    path = write_rows(tmp_path / "documents.jsonl", [*rows_of(texts), {"id": "one", "text": "a"}])
    said, table = score(path, "model@reference=pretrained", f"reference.path={make_model(1)}", "k=1")
    assert table.column_names == ["doc_id", *SCORES, "ref_diff", "ref_ratio", *COUNTS]
    assert table["doc_id"].to_pylist() == [f"d{number}" for number in range(40)] + ["one"]
    for name in (*SCORES, "ref_diff", "ref_ratio"):
        values = table[name].to_numpy()
        assert np.isfinite(values[:40]).all(), name
        assert np.isnan(values[40]), name
    assert (table["log_likelihood"].to_numpy()[:40] < 0).all(), "higher = more likely a member"
    np.testing.assert_allclose(table["min_k"].to_numpy(), table["log_likelihood"].to_numpy(), rtol=1e-12)
    assert table["reason"].to_pylist()[:40] == [None] * 40
    assert "fewer than two tokens" in table["reason"][40].as_py()
    assert "1 document has no log_likelihood, neg_perplexity, zlib" in said.out
    assert "41 read, 41 kept, 0 dropped" in said.out


@pytest.mark.slow
def test_texts_are_raw_and_what_is_cut_is_said(score, make_model, tmp_path):
    """Against transformers itself: line breaks are the model's, zlib has the bytes that are scored."""
    raw = ["moss  fern\n\n\treed\n", "lark wren\r\n" * 12, "hare\n" * 4]
    path = write_rows(tmp_path / "raw.jsonl", [{"text": text} for text in raw])
    general = write_rows(tmp_path / "general.jsonl", [{"text": "moss fern reed pine"}])
    said, table = score(path, "k=[0.2,0.5]", "max_tokens=16", f"general.path={general}", "dc_pdd.prepend_eos=true")
    rows = table.to_pydict()
    assert rows["doc_id"] == ["raw:1", "raw:2", "raw:3"]
    assert rows["is_cut"] == [False, True, False]
    assert {"min_k_0.2", "min_k_0.5", "min_k_plus_plus_0.2", "max_k_0.5", "dc_pdd"} <= set(rows)
    assert np.isfinite(rows["dc_pdd"]).all()
    tokenizer = AutoTokenizer.from_pretrained(make_model(0))
    model = AutoModelForCausalLM.from_pretrained(make_model(0)).eval()
    for index, text in enumerate(raw):
        ids = tokenizer(text)["input_ids"]
        assert rows["num_tokens_uncut"][index] == len(ids)
        ids = ids[:16]
        with torch.no_grad():
            log_probs = torch.log_softmax(model(torch.tensor([ids])).logits[0, :-1], -1)
        loss = float(log_probs.gather(1, torch.tensor(ids[1:])[:, None]).mean())
        assert rows["log_likelihood"][index] == pytest.approx(loss, abs=1e-4)
        num_bytes = len(zlib.compress(tokenizer.decode(ids).encode()))
        assert rows["zlib"][index] == pytest.approx(loss / num_bytes, abs=1e-6)
        assert rows["num_tokens"][index] == len(ids) - 1
    assert "1 documents are longer than 16 tokens (max_tokens) and were cut there" in said.out
    about = json.loads(table.schema.metadata[b"nonmember"])
    assert (about["k"], about["max_tokens"], about["num_cut"], about["cleaning"]["name"]) == (
        [0.2, 0.5],
        16,
        1,
        "as_is",
    )
    assert about["views"]["dc_pdd"] == ["prepend_eos"]
    assert len(about["model_key"]) == 16


@pytest.mark.slow
def test_scores_that_take_further_passes_are_made_where_asked_for(score, texts, tmp_path):
    path = write_rows(tmp_path / "documents.jsonl", rows_of(texts))
    unread = write_rows(tmp_path / "unread.jsonl", [{"text": "hare vole dusk rain"}, {"text": "mist tide clay"}])
    said, table = score(path, f"prefix.path={unread}", "scores=[log_likelihood,lowercase]", "max_tokens=16")
    assert table.column_names == ["doc_id", "log_likelihood", "lowercase", "recall", *COUNTS]
    assert "lowercase takes a forward pass over the lowercased texts." in said.out
    for name in ("lowercase", "recall"):
        assert np.isfinite(table[name].to_numpy()).all(), name
    assert (table["recall"].to_numpy() > 0).all()
    assert "prefix" in json.loads(table.schema.metadata[b"nonmember"])


def test_what_cleaning_drops_is_counted(score, texts, tmp_path):
    path = write_rows(tmp_path / "twice.jsonl", rows_of([*texts[:4], texts[0], "moss"]))
    said, table = score(path, "cleaning=deduplicated", "cleaning.min_words=2")
    assert len(table) == 4
    assert "6 read, 4 kept, 2 dropped (exact_duplicate 1, too_short 1)" in said.out


def test_memory_that_will_not_do_is_said_before(score, texts, tmp_path, monkeypatch):
    monkeypatch.setattr(score_table, "memory_of_machine", lambda: 10_000)
    said, _ = score(write_rows(tmp_path / "documents.jsonl", rows_of(texts)))
    assert "will take about" in said.out
    assert "Stream the documents (data=streamed)" in said.out


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("k=[0.2,0.2]", "k must be a share of the tokens or a list of different ones"),
        ("max_tokens=1", "max_tokens must be a whole number of at least 2 or null; got 1"),
        ("perturbations=[typos]", "perturbations must be of butter_fingers"),
        ("scores=[typos]", "scores must be one of one_pass, log_likelihood, neg_perplexity, zlib"),
        ("scores=[typos]", "got 'typos'. One of your own: +score@own_scores.NAME=PRESET"),
        ("scores=[lowercase,lowercase]", "scores must be a list of some of one_pass"),
        ("scores=[]", "scores must be a list of some of one_pass"),
    ],
)
def test_settings_are_refused_before_anything_is_loaded(nonmember, tmp_path, setting, sentence):
    said = nonmember("score", "target.path=gone", "data=documents", "data.path=gone.csv", setting)
    assert said.status == 1
    assert sentence in said.err
    assert not Path("outputs/store").exists()


@pytest.mark.slow
def test_the_first_rows_are_shown_and_the_table_is_exported(score, texts, tmp_path):
    rows = [*rows_of(texts[:6]), {"id": "one", "text": "a"}]
    path = write_rows(tmp_path / "documents.jsonl", rows)
    said, table = score(path, f"export={tmp_path / 'scores.csv'}")
    expected = table.to_pandas()
    assert "5 highest by log_likelihood of 7 documents; higher = more likely a member" in said.out
    highest = expected.nlargest(5, "log_likelihood")["doc_id"].tolist()
    assert [item for item in expected["doc_id"] if f" {item} " in said.out] == sorted(highest)
    summary = next(line for line in said.out.splitlines() if "log_likelihood" in line and " 6 " in line)
    assert f"{expected['log_likelihood'].median():.4g}" in summary
    assert said.last_line.endswith(".parquet")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "scores.csv"), expected)
    score(path, f"export={tmp_path / 'scores.jsonl'}")
    of_lines = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert [row["doc_id"] for row in of_lines] == expected["doc_id"].tolist()
    assert of_lines[6]["zlib"] is None
    assert [row["zlib"] for row in of_lines[:6]] == pytest.approx(expected["zlib"].tolist()[:6], rel=1e-14)


def test_a_file_that_is_there_is_not_overwritten(nonmember, make_model, texts, tmp_path):
    path = write_rows(tmp_path / "documents.jsonl", rows_of(texts))
    before = path.read_bytes()
    words = ("score", f"target.path={make_model(0)}", f"data.path={path}")
    assert "already exists; name a new file" in nonmember(*words, f"export={path}").err
    assert path.read_bytes() == before
    assert "export must be a file that ends in .csv" in nonmember(*words, "export=scores.xlsx").err


def test_beside_unread_documents_each_score_has_an_auc_and_a_picture(nonmember, make_model, texts, tmp_path):
    paths = [write_rows(tmp_path / f"{name}.jsonl", rows_of(some)) for name, some in (("a", texts[:20]), ("b", texts))]
    words = (f"target.path={make_model(0)}", f"data.path={paths[0]}", f"data.heldout.path={paths[1]}")
    said = nonmember("score", *words, "scores=[log_likelihood]")
    assert said.status == 0, said.err
    tables = [pq.read_table(Path(said.last_line).parent / name / "scores.parquet") for name in (".", "heldout")]
    expected = roc_auc(np.concatenate([item["log_likelihood"] for item in tables]), [1] * 20 + [0] * len(texts))
    assert f"{expected:.3f} [" in said.out
    assert Path(said.last_line).with_name("scores.html").read_text().count("<svg") == 1
    assert "No score says" not in said.out


def test_a_table_of_the_same_question_is_left_as_it_is(score, texts, tmp_path, monkeypatch):
    """Nothing is loaded for it; what was said of it is said again."""
    monkeypatch.setattr(score_table, "commit", lambda: "a" * 40)
    path = write_rows(tmp_path / "documents.jsonl", [*rows_of(texts[:3]), {"id": "one", "text": "a"}])
    first, _ = score(path)
    content = Path(first.last_line).read_bytes()
    with monkeypatch.context() as nothing_is_made:
        nothing_is_made.setattr(score_table.ScoreTable, "of", None)
        again, _ = score(path)
        assert Path(again.last_line).read_bytes() == content
        assert [line for line in again.out.splitlines() if "document" in line] == [
            line for line in first.out.splitlines() if "document" in line
        ]
        with pytest.raises(TypeError):  # other texts under the same name
            score(write_rows(path, rows_of(texts[1:4])))
        monkeypatch.setattr(score_table, "commit", lambda: "a" * 40 + "-changed")
        with pytest.raises(TypeError):
            score(path)
