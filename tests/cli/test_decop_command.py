"""DE-COP from the command line: the replay of recorded answers, and a model behind a server that read some books."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import tiny
from command_line import write_rows
from nonmember.methods import Blind
from nonmember.methods.decop.questions import ORDERS
from nonmember.stats.letter_choice import LETTERS


def the_result(outputs: str = "outputs") -> dict:
    (path,) = Path(outputs).glob("audits/*/*/result.json")
    return json.loads(path.read_text())


SIGNS = {"Perplexity": -1, "Zlib": -1, "Lowercase": 1, "Min_k_Prob": -1}  # of what is recorded of the old books

# Replay -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def recorded(tmp_path, monkeypatch) -> Path:
    """Six old books and 14 new ones of two passages each; the models know those of the old books, but for one."""
    folder = tmp_path / "recorded"
    folder.mkdir()
    rows = []
    for number in range(40):
        book, passage = divmod(number, 2)
        for query, order in enumerate(ORDERS):
            right = LETTERS[order.index(0)]
            says = right if book < 6 and (book, passage) != (0, 0) else "ABCD"[(query + book) % 4]
            row = {"book": f"Book_{book}_-_Ann", "passage": passage, "query": query, "label": int(book < 6)}
            row |= {"true_option": right, "mistral_7b": says, "llama2_13b": says, "gpt3": says if book % 2 else None}
            for name in ("llama2_13b", "gpt3"):
                row |= {f"{name}_p_{letter.lower()}": 0.7 if letter == says else 0.1 for letter in LETTERS}
            rows.append(row)
    pd.DataFrame(rows).to_parquet(folder / "answers.parquet", index=False)
    scores = [
        {"Example A": f"Book {book}", "Label": int(book < 6)}
        | {f"GPT3_{score}": 3.0 + sign * (book < 6) + book / 100 for score, sign in SIGNS.items()}
        for book in range(20)
    ]
    pd.DataFrame(scores).to_csv(folder / "book_scores.csv", index=False)
    monkeypatch.setenv("NONMEMBER_DECOP_DIR", str(folder))
    return folder


@pytest.mark.slow
def test_a_replay_needs_no_model(nonmember, recorded):
    said = nonmember("audit", "experiment=decop_replay", "logger=none")
    assert said.status == 0, said.err
    result = the_result()
    assert (result["question"]["target"], result["verdict"]["decision"], result["statistics"]["num_documents"]) == (
        "mistral-7b",
        "evidence_of_membership",
        12,
    )
    known, unknown = 24, sum("ABCD"[query % 4] == LETTERS[order.index(0)] for query, order in enumerate(ORDERS))
    assert result["statistics"]["details"]["mean_suspect"] == pytest.approx((5 + (known + unknown) / 48) / 6)
    assert result["statistics"]["details"]["best_balanced_acc"] == result["statistics"]["details"]["roc_auc"] == 1.0
    for words in ("best balanced accuracy 1.000", "area under the ROC curve 1.000", "Welch t ="):
        assert words in said.out
    assert "The texts are not at hand" in said.out
    assert "word for word" not in said.out, "texts that are not at hand are not alike"


@pytest.mark.slow
def test_a_replay_with_calibration(nonmember, recorded):
    said = nonmember("audit", "experiment=decop_calibrated", "logger=none")
    assert said.status == 0, said.err
    details = the_result()["statistics"]["details"]
    assert set(details["letters"]) == {"suspect", "heldout", "unseen"}
    assert details["calibration"]["num_works"] + details["num_heldout_works"] == 14
    assert details["letters"]["heldout"]["probability_calibrated"]["A"] == pytest.approx(0.25, abs=0.05)


def test_a_model_is_compared_on_the_books_that_it_was_asked_about(nonmember, recorded):
    said = nonmember("audit", "experiment=decop_replay", "model@target=decop_gpt3", "logger=none")
    assert said.status == 0, said.err
    statistics = the_result()["statistics"]
    assert (statistics["details"]["num_suspect_works"], statistics["details"]["num_heldout_works"]) == (3, 7)


def test_recorded_scores_speak_for_reading_where_they_are_low(nonmember, recorded):
    replayed = ("method=decop_recorded_scores", "data=decop_recorded_scores", "model@target=decop_scores_gpt3")
    said = nonmember("audit", *replayed, "logger=none")
    assert said.status == 0, said.err
    result = the_result()
    assert (result["question"]["method"], result["verdict"]["decision"]) == ("decop_baselines", "score_only")
    areas = {name: found["roc_auc"] for name, found in result["statistics"]["details"]["scores"].items()}
    assert areas == {"perplexity": 1.0, "zlib": 1.0, "lowercase": 0.0, "mink(0.2)": 1.0}
    assert result["statistics"]["details"]["scores"]["zlib"]["mean_suspect"] == pytest.approx(-2.025)


@pytest.mark.slow
def test_texts_that_are_not_at_hand_are_never_used_as_if_they_were(nonmember, recorded, monkeypatch):
    monkeypatch.setattr(Blind, "requirements", replace(Blind.requirements, documents=10))
    said = nonmember("audit", "data=decop_recorded", "method=blind", "logger=none")
    assert said.status == 1
    assert "Expected text in every document" in said.err


def test_a_folder_that_is_not_there_is_told(nonmember, monkeypatch, tmp_path):
    monkeypatch.setenv("NONMEMBER_DECOP_DIR", str(tmp_path / "none"))
    said = nonmember("audit", "experiment=decop_replay", "logger=none")
    assert said.status == 1
    assert "Expected a file" in said.err
    assert "answers.parquet" in said.err


given = pytest.mark.skipif("NONMEMBER_DECOP_DIR" not in os.environ, reason="NONMEMBER_DECOP_DIR names no folder")


@given
@pytest.mark.slow
def test_the_audit_of_recorded_answers_finds_the_same(nonmember):
    said = nonmember("audit", "experiment=decop_replay", "logger=none")
    assert said.status == 0, said.err
    details = the_result()["statistics"]["details"]
    assert (details["mean_suspect"], details["mean_heldout"]) == pytest.approx((0.4812, 0.3328), abs=5e-4)
    assert sum(details["answers"][group]["num_requests"] for group in ("suspect", "heldout")) == 131_880


# A model behind a server --------------------------------------------------------------------------------------------

BIAS = [0.1, 0.5, 0.3, 0.1]


@pytest.fixture
def books(tmp_path, lab):
    """Files of 8 old and 14 new books of two passages, of which the model has read the old ones."""
    texts = iter(tiny.random_texts(22 * 2, seed=6, words=40))
    paths, documents = {}, []
    for age, num_books in (("old", 8), ("new", 14)):
        rows = [
            {
                "book": f"{age} {number}",
                "title": f"The {age} {number}",
                "author": "Ann",
                "passage": passage,
                "text": f"{next(texts)} {age} {number} {passage}",
            }
            for number in range(num_books)
            for passage in range(2)
        ]
        documents += [{"text": row["text"], "read": age == "old"} for row in rows]
        paths[age] = write_rows(tmp_path / f"{age}.jsonl.gz", rows)
    lab.setup(documents=documents, hit={"options": [0.0, 0.6]}, position_bias=BIAS, refused=0.02)

    def arguments(*more: str) -> list[str]:
        server = [
            f"{place}.{key}"
            for place in ("target", "method.paraphraser")
            for key in (f"url={lab.url}", "model=lab", "key_variable=LAB_KEY")
        ]
        return [
            "audit",
            "method=decop",
            "model@target=endpoint",
            "model@method.paraphraser=endpoint",
            *server,
            "data=decop_books",
            f"data.path={paths['old']}",
            f"data.clean_path={paths['new']}",
            "data.paraphrases=null",
            "method.num_orders=4",
            "method.num_resamples=100",
            "max_layout_auc=null",  # each text says whether it is old: the server finds it by that
            "logger=none",
            *more,
        ]

    return arguments


@pytest.mark.slow
def test_a_model_behind_a_server_is_asked_and_found_to_have_read(nonmember, books, lab):
    said = nonmember(*books())
    assert said.status == 0, said.err
    result = the_result()
    assert result["verdict"]["decision"] == "evidence_of_membership", result["verdict"]["warnings"]
    assert result["statistics"]["details"]["mean_suspect"] > 0.5 > 0.4 > result["statistics"]["details"]["mean_heldout"]
    answers = result["statistics"]["details"]["answers"]["suspect"]
    assert answers["num_requests"] == 4 * result["statistics"]["num_documents"]
    assert result["statistics"]["details"]["letters"]["heldout"]["chosen"]["B"] == pytest.approx(0.5, abs=0.12)
    before = lab.ledger()
    again = nonmember(*books("outputs=elsewhere", "store=outputs/store"))
    assert again.status == 0, again.err
    assert lab.ledger() == before, "nothing is asked twice"
