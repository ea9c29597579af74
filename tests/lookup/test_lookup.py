"""Exact look-up: hashes by their definition, overlaps made by hand, indexes that are stopped and damaged, a played
service, and what stands beside a verdict."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xxhash

import nonmember as nm
import tiny
from nonmember.artifacts import Builder
from nonmember.audits.keys import audit_keys
from nonmember.audits.question import Audit
from nonmember.audits.run import run_audit
from nonmember.corpora import CorpusSpec, Jsonl
from nonmember.corpora.sources.canaries import Canaries
from nonmember.endpoints import Limits
from nonmember.lookup import InfiniGram, LocalIndex, Overlaps
from nonmember.lookup.index import FILE, add, ngram_hashes
from nonmember.methods import Blind
from nonmember.records import Corpus, Document
from nonmember.results.result import RESULT, AuditResult
from nonmember.runtime.interruption import Interrupted

WORDS = [f"word{number}" for number in range(60)]
LIMITS = Limits(2, None, None, 10, 2, None, None, None, None, None)


def text(first: int, end: int) -> str:
    return " ".join(WORDS[first:end])


def corpus_of(*texts: str) -> Corpus:
    return Corpus(tuple(Document(f"d{index}", item) for index, item in enumerate(texts)))


def file_of(folder: Path, *texts: str, name: str = "read.jsonl") -> Jsonl:
    path = folder / name
    path.write_text("".join(json.dumps({"id": f"{index}", "text": item}) + "\n" for index, item in enumerate(texts)))
    return Jsonl(str(path), "id", "text")


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    return replace(tiny.builder(tmp_path / "store"), asking=LIMITS)


def looked_up(builder: Builder, folder: Path, read: CorpusSpec, *texts: str) -> Overlaps:
    add(folder / "index", read, "read", builder, 1)
    return LocalIndex(str(folder / "index")).overlaps(builder, corpus_of(*texts))


# Hashes --------------------------------------------------------------------------------------------------------------


def test_a_hash_is_xxh3_of_thirteen_words_joined_by_blanks():
    words = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"]
    expected = [xxhash.xxh3_64_intdigest(" ".join(words[first : first + 13]).encode()) for first in (0, 1)]
    assert ngram_hashes(" ".join(words)).tolist() == expected
    assert ngram_hashes("a b c d e f g h i j k l m").tolist() == [0x9A11E18F1EBD25CB]  # of every version
    assert [len(ngram_hashes(text(0, number))) for number in (0, 12, 13, 14)] == [0, 0, 1, 2]


@pytest.mark.parametrize(
    "other",
    [
        "The ﬁrst of 13 WORDS, spoken\n\nor written; é here -- and \t there: ends.",  # a ligature
        "the first of 13 words spoken or written é here and there ends",
        "“The first of １３ words” (spoken, or written): É, here and there... ends!",
    ],
)
def test_case_punctuation_white_space_and_forms_of_letters_do_not_count(other):
    assert len(ngram_hashes(other)) == 1
    assert (
        ngram_hashes(other).tolist()
        == ngram_hashes("the first of 13 words spoken or written é here and there ends").tolist()
    )


def test_one_word_changed_changes_the_thirteen_sequences_that_hold_it():
    changed = " ".join([*WORDS[:30], "other", *WORDS[31:]])
    differ = ngram_hashes(changed) != ngram_hashes(text(0, 60))
    assert np.flatnonzero(differ).tolist() == list(range(18, 31))


# A local index -------------------------------------------------------------------------------------------------------


def test_thirteen_words_in_a_row_are_found_and_twelve_are_not(tmp_path, builder):
    read = file_of(tmp_path, text(0, 40))
    new = "some text of which nobody has read a word before it was written here today"
    found = looked_up(
        builder, tmp_path, read, f"{new} {text(5, 18)} {new}", f"{new} {text(5, 17)} {new}", text(3, 33), "short"
    )
    assert found.num_found.tolist() == [1, 0, 18, 0]
    assert found.num_ngrams.tolist() == [15 + 13 + 15 - 12, 15 + 12 + 15 - 12, 18, 0]
    assert found.reasons == {"d3": "fewer than 13 words"}
    assert found.summary() == {
        "num_documents": 4,
        "num_whole": 1,
        "num_partly": 1,
        "num_absent": 1,
        "mean_share": pytest.approx((1 / 31 + 0 + 1) / 3),
    }


def test_what_stands_in_the_corpus_twice_is_kept_once_and_in_a_document_twice_counted_twice(tmp_path, builder):
    read = file_of(tmp_path, text(0, 13), text(0, 13), "short")
    found = looked_up(builder, tmp_path, read, f"{text(0, 13)} {text(0, 13)}")
    assert (found.num_ngrams.tolist(), found.num_found.tolist()) == ([14], [2])
    assert len(np.load(tmp_path / "index" / "hashes-00000.npy")) == 1


@pytest.mark.slow
def test_a_corpus_larger_than_memory_gives_the_same_as_one_in_memory(tmp_path, builder):
    numbers = np.random.default_rng(3).integers(0, 5000, (60, 2000))
    texts = [" ".join(map(str, row)) for row in numbers]
    read = file_of(tmp_path, *texts)
    asked = corpus_of(*(item[:2000] for item in texts[::7]), text(0, 40))
    for name, memory in (("small", 1), ("large", 64)):
        item = add(tmp_path / name, read, "read", builder, memory)
        assert (item["num_documents"], item["num_ngrams"], item["complete"]) == (60, 60 * 1988, True)
    assert len(list((tmp_path / "small").glob("*.npy"))) == 3  # of 43,690 hashes each
    small, large = (LocalIndex(str(tmp_path / name)).overlaps(builder, asked) for name in ("small", "large"))
    assert small.num_found.tolist() == large.num_found.tolist()
    assert large.shares[-1] == 0
    assert (large.shares[:-1] > 0.99).all()


def test_several_corpora_in_one_index_and_none_of_them_twice(tmp_path, builder):
    first, second = file_of(tmp_path, text(0, 20)), file_of(tmp_path, text(30, 50), name="more.jsonl")
    found = looked_up(builder, tmp_path, first, text(0, 20), text(30, 50))
    assert found.shares.tolist() == [1, 0]
    key = LocalIndex(str(tmp_path / "index")).key()
    assert looked_up(builder, tmp_path, first, text(30, 50)).shares.tolist() == [0]
    assert LocalIndex(str(tmp_path / "index")).key() == key
    assert looked_up(builder, tmp_path, second, text(0, 20), text(30, 50)).shares.tolist() == [1, 1]
    assert LocalIndex(str(tmp_path / "index")).key() != key


def test_reading_that_was_stopped_goes_on_and_is_no_index_before(tmp_path, builder, monkeypatch):
    texts = [text(first, first + 15) for first in range(0, 40, 8)]
    read = file_of(tmp_path, *texts)
    signals = iter([None, None, Interrupted(2, "")])

    def check() -> None:
        if (error := next(signals, None)) is not None:
            raise error

    with monkeypatch.context() as patch:
        patch.setattr("nonmember.lookup.index.check", check)
        with pytest.raises(Interrupted):
            add(tmp_path / "index", read, "read", builder, 1)
    assert json.loads((tmp_path / "index" / FILE).read_text())["lengths"] == [9]  # of three documents
    index = LocalIndex(str(tmp_path / "index"))
    with pytest.raises(ValueError, match="not complete: read was read in part"):
        index.overlaps(builder, corpus_of(*texts))
    item = add(tmp_path / "index", read, "read", builder, 1)
    assert (item["num_documents"], item["num_ngrams"]) == (5, 15)
    assert json.loads((tmp_path / "index" / FILE).read_text())["lengths"] == [9, 6]
    assert index.overlaps(builder, corpus_of(*texts)).shares.tolist() == [1] * 5


def test_an_index_that_is_damaged_or_of_other_rules_is_refused(tmp_path, builder):
    looked_up(builder, tmp_path, file_of(tmp_path, text(0, 20)), text(0, 20))
    index, asked = LocalIndex(str(tmp_path / "index")), corpus_of(text(0, 20))
    hashes = tmp_path / "index" / "hashes-00000.npy"
    whole = hashes.read_bytes()
    np.save(hashes, np.load(hashes)[:-1])
    with pytest.raises(ValueError, match=r"must hold 8 hashes; got \(7,\)"):
        index.overlaps(builder, asked)
    hashes.write_bytes(whole[:20])
    with pytest.raises(ValueError, match="cannot be read"):
        index.overlaps(builder, asked)
    state = json.loads((tmp_path / "index" / FILE).read_text())
    for other in (json.dumps(state | {"rules": 2}), json.dumps(state | {"sources": {"a": {}}}), "{", "{}"):
        (tmp_path / "index" / FILE).write_text(other)
        with pytest.raises(ValueError, match="no index that this version can read"):
            index.overlaps(builder, asked)
    with pytest.raises(ValueError, match="nonmember lookup index CORPUS"):
        LocalIndex(str(tmp_path / "nowhere")).overlaps(builder, asked)


# A service -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def served(
    answer: Callable[[dict[str, Any]], tuple[int, dict[str, Any]]],
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """(address, questions that came)"""
    asked: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/"
            assert "Authorization" not in self.headers
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            status, body = answer(asked[-1])
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", asked
        finally:
            server.shutdown()
            thread.join()


def counting(read: str) -> Callable[[dict[str, Any]], tuple[int, dict[str, Any]]]:
    """A service that has indexed one text."""
    return lambda asked: (200, {"count": read.count(asked["query"]), "approx": False, "token_ids": [], "tokens": []})


def test_the_service_is_asked_in_its_protocol_once_and_says_where_text_is_sent(tmp_path, builder, caplog):
    asked_for = corpus_of(text(0, 26), f"{text(0, 13)} {text(47, 60)[::-1]}", text(30, 56), "short")
    with served(counting(text(0, 30))) as (url, asked):
        found = InfiniGram("v4_test", url=url).overlaps(builder, asked_for)
        assert asked[0].keys() == {"index", "query_type", "query"}
        assert {(item["index"], item["query_type"]) for item in asked} == {("v4_test", "count")}
        assert {item["query"] for item in asked} == {
            text(0, 13),
            text(13, 26),
            text(47, 60)[::-1],
            text(30, 43),
            text(43, 56),
        }
        assert f"are sent to {url}" in caplog.text
        num_asked = len(asked)
        again = InfiniGram("v4_test", url=url).overlaps(
            replace(tiny.builder(tmp_path / "store"), asking=LIMITS), asked_for
        )
        assert len(asked) == num_asked == 5  # equal questions once, and what was answered not again
    for item in (found, again):
        assert (item.num_ngrams.tolist(), item.num_found.tolist()) == ([2, 2, 2, 0], [2, 1, 0, 0])
        assert item.reasons == {"d3": "no line with 13 words in a row"}


def test_sequences_are_of_one_line_do_not_overlap_and_are_spread_over_the_text():
    lookup = InfiniGram("v4_test", per_document=3)
    assert lookup.sequences(text(0, 27)) == [text(0, 13), text(13, 26)]
    assert lookup.sequences(f"{text(0, 12)}\n{text(12, 26)}") == [
        text(13, 26)
    ]  # the word that begins a later line is left out
    assert lookup.sequences(f"{text(0, 12)}\n{text(12, 25)}") == []
    odd = text(0, 13).replace(" ", "   ", 1)
    assert lookup.sequences(f"  {odd} ") == [odd]  # as it stands
    assert lookup.sequences(" ".join(WORDS * 3)) == [
        " ".join((WORDS * 3)[first : first + 13]) for first in (0, 78, 156)
    ]


def test_a_service_that_fails_is_asked_again_and_what_it_refuses_is_told(builder):
    failing = iter([(503, {"error": "busy"})])
    with served(lambda asked: next(failing, None) or counting(text(0, 30))(asked)) as (url, asked):
        assert InfiniGram("v4_test", url=url).overlaps(builder, corpus_of(text(0, 13))).num_found.tolist() == [1]
        assert len(asked) == 2
    with (
        served(lambda _: (400, {"error": "Invalid index"})) as (url, asked),
        pytest.raises(ValueError, match=r"answered none of 2 questions, the first because: 400.*infinigram\.index"),
    ):
        InfiniGram("v4_test", url=url).overlaps(builder, corpus_of(text(0, 26)))


@pytest.mark.parametrize("count", [-1, 1.5, True, None, "7"])
def test_what_is_no_count_counts_as_no_answer(builder, count):
    with served(lambda asked: (200, {"count": count if asked["query"] == text(0, 13) else 2})) as (url, _):
        found = InfiniGram("v4_test", url=url).overlaps(builder, corpus_of(text(0, 26), text(0, 13)))
    assert (found.num_ngrams.tolist(), found.num_found.tolist()) == ([1, 0], [1, 0])
    assert found.reasons == {"d1": "no question about it was answered"}


def test_the_budget_of_requests_holds_and_the_next_run_goes_on(builder, tmp_path):
    little = replace(builder, asking=replace(LIMITS, max_requests=2))
    with served(counting(text(0, 60))) as (url, asked):
        with pytest.raises(ValueError, match=r"budget of 2 requests.*2 answers are kept"):
            InfiniGram("v4_test", url=url).overlaps(little, corpus_of(text(0, 52)))
        more = replace(tiny.builder(tmp_path / "store"), asking=LIMITS)
        assert InfiniGram("v4_test", url=url).overlaps(more, corpus_of(text(0, 52))).shares.tolist() == [1]
        assert len(asked) == 4


# Beside a verdict ----------------------------------------------------------------------------------------------------


def question(folder: Path, **changes: Any) -> Audit:
    suspect, heldout = (
        file_of(folder, *(f"{name} {number} {text(number, number + 20)}" for number in range(32)), name=f"{name}.jsonl")
        for name in ("suspect", "heldout")
    )
    blind = Blind(num_folds=2, inverse_penalty=1.0, num_resamples=20, alpha=0.05, max_tokens=64)
    return Audit(None, None, suspect, blind, 1, "suspect", heldout=heldout, heldout_label="heldout", **changes)  # type: ignore[arg-type]


def test_a_look_up_stands_beside_the_verdict_and_changes_nothing_else(tmp_path, builder):
    asked = question(tmp_path)
    add(tmp_path / "index", asked.suspect, "books", builder, 1)
    lookup = LocalIndex(str(tmp_path / "index"))
    without = run_audit(asked, builder, tmp_path / "without")
    beside = run_audit(replace(asked, lookup=lookup), builder, tmp_path / "beside")
    assert "looked_up" not in json.loads((tmp_path / "without" / RESULT).read_text())
    assert "Looked up" not in (tmp_path / "without" / "audit.html").read_text()
    found = json.loads((tmp_path / "beside" / RESULT).read_text())["looked_up"]
    assert (found["source"], found["ngram"]) == ("index of books", 13)
    assert found["groups"]["suspect"]["num_whole"] == 32
    assert found["groups"]["heldout"]["num_whole"] == 0
    assert found["groups"]["heldout"]["num_partly"] == 32  # 20 of their 22 words are the same
    assert AuditResult.load(tmp_path / "beside" / RESULT).looked_up == beside.looked_up
    page = (tmp_path / "beside" / "audit.html").read_text()
    assert "Looked up" in page
    assert "suspect, in index of books" in page
    assert "the verdict does not rest on this" in page
    assert (beside.question, beside.statistics, beside.verdict) == (
        replace(without.question, cell="beside"),
        without.statistics,
        without.verdict,
    )
    assert audit_keys(asked, builder)["audit"] != audit_keys(replace(asked, lookup=lookup), builder)["audit"]


def test_canaries_are_never_looked_up(tmp_path):
    with pytest.raises(ValueError, match="Canaries are secret"):
        replace(question(tmp_path), suspect=Canaries("private.json", "published"), lookup=LocalIndex("index"))


def test_from_python_as_by_command(tmp_path):
    read, index = file_of(tmp_path, text(0, 30)), tmp_path / "index"
    asked = [text(0, 25), text(10, 30)[::-1], "short"]
    found = nm.look_up(asked, corpus=read.path[0], index=index, outputs=str(tmp_path))
    assert found["share"].tolist() == pytest.approx([1, 0, np.nan], nan_ok=True)
    assert found["reason"].tolist() == ["", "", "fewer than 13 words"]
    pd.testing.assert_frame_equal(nm.look_up(asked, index=index, outputs=str(tmp_path)), found)
    with pytest.raises(ValueError, match="infinigram is in place of index"):
        nm.look_up(asked, index=index, infinigram="v4_piletrain_llama")
    with pytest.raises(ValueError, match="There is no index"):
        nm.look_up(asked, index=tmp_path / "none", outputs=str(tmp_path))


@pytest.mark.slow
def test_the_command_finds_what_was_read_and_writes_a_row_per_document(tmp_path, nonmember):
    file_of(tmp_path, text(0, 30), text(30, 60))
    file_of(tmp_path, text(0, 25), text(30, 45)[::-1], "short", name="documents.jsonl")
    read, documents, found = (tmp_path / name for name in ("read.jsonl", "documents.jsonl", "found.csv"))
    assert "2 documents with 36 sequences of 13 words are in the index" in nonmember("lookup", "index", read).out
    in_memory = nonmember("lookup", "index", read, "data=jsonl", "data.text_field=text", f"index={tmp_path / 'other'}")
    assert "2 documents with 36 sequences of 13 words" in in_memory.out
    said = nonmember("lookup", documents, f"export={found}")
    assert "index of read holds 1 of 3 documents whole, 0 in part, 1 not at all; 1 could not" in said.out
    rows = [line.split(",") for line in found.read_text().splitlines()]
    assert rows[0] == ["doc_id", "share", "found", "sequences", "reason"]
    assert rows[1] == ["0", "1.0", "13", "13", ""]
    assert rows[3] == ["2", "", "0", "0", "fewer than 13 words"]
    again = nonmember("lookup", documents, f"export={found}")
    assert again.status == 1
    assert "already exists" in again.err
    assert "Expected one path" in nonmember("lookup", "index").err
    both = nonmember("lookup", "texts.jsonl", "index=here", "infinigram=v4_piletrain_llama")
    assert "infinigram is in place of index, and both were given" in both.err


@pytest.mark.slow
def test_the_corpus_of_an_unknown_target_must_be_named(tmp_path, nonmember):
    read = file_of(tmp_path, *(text(first, first + 20) for first in range(32))).path[0]
    given = ["method=blind", f"data.path={read}", "+data@data.heldout=documents", f"data.heldout.path={read}"]
    said = nonmember("audit", *given, "logger=none", "truth=infinigram")
    assert said.status == 1
    assert "lookup.infinigram.index=" in said.err
