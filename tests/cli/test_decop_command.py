"""DE-COP from the command line: the replay of recorded answers, and a model behind a server that read some books."""

from __future__ import annotations

import csv
import gzip
import json
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest

import tiny
from command_line import write_rows
from nonmember.methods import Blind
from nonmember.methods.decop.questions import ORDERS
from nonmember.stats.letter_choice import LETTERS


def the_result(outputs: str = "outputs") -> dict:
    (path,) = Path(outputs).glob("audits/*/*/result.json")
    return json.loads(path.read_text())


# Replay -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def recorded(tmp_path, monkeypatch) -> Path:
    """Six old books and 14 new ones of two passages each; the models know those of the old books, but for one."""
    folder = tmp_path / "recorded"
    folder.mkdir()
    names = (
        "book",
        "passage",
        "query",
        "label",
        "true_option",
        "mistral_7b",
        "llama2_13b",
        *(f"llama2_13b_p_{letter}" for letter in "abcd"),
    )
    with gzip.open(folder / "recorded_answers.csv.gz", "wt", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(names)
        for number in range(40):
            book, passage = divmod(number, 2)
            for query, order in enumerate(ORDERS):
                right = LETTERS[order.index(0)]
                says = right if book < 6 and (book, passage) != (0, 0) else "ABCD"[(query + book) % 4]
                p = [0.7 if letter == says else 0.1 for letter in LETTERS]
                rows.writerow([f"Book_{book}_-_Ann", passage, query, int(book < 6), right, says, says, *p])
    monkeypatch.setenv("NONMEMBER_DECOP_DIR", str(folder))
    return folder


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


def test_a_replay_with_calibration(nonmember, recorded):
    said = nonmember("audit", "experiment=decop_calibrated", "logger=none")
    assert said.status == 0, said.err
    details = the_result()["statistics"]["details"]
    assert set(details["letters"]) == {"suspect", "heldout", "unseen"}
    assert details["calibration"]["num_works"] + details["num_heldout_works"] == 14
    assert details["letters"]["heldout"]["probability_calibrated"]["A"] == pytest.approx(0.25, abs=0.05)


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
    assert "recorded_answers.csv.gz" in said.err


@pytest.mark.skipif("NONMEMBER_DECOP_DIR" not in os.environ, reason="NONMEMBER_DECOP_DIR names no folder")
@pytest.mark.parametrize(
    ("model", "published", "p_published", "means"),
    [("mistral_7b", 0.901, 5.66e-24, (0.481, 0.332)), ("llama2_13b", 0.900, 1.92e-30, (0.362, 0.221))],
)
def test_the_published_figures_come_out_of_the_recorded_answers(nonmember, model, published, p_published, means):
    """Tables 2 and 11 of the paper. Theirs and ours are means of ten resamples each, over 165 and 163 books."""
    said = nonmember("audit", "experiment=decop_replay", f"model@target=decop_{model}", "logger=none")
    assert said.status == 0, said.err
    result = the_result()
    details = result["statistics"]["details"]
    assert (details["num_suspect_works"], details["num_heldout_works"]) == (105, 58)
    few = details["few_resamples"]["best_balanced_acc"]
    assert few["mean"] == pytest.approx(published, abs=3 * few["sd"] * math.sqrt(2 / 10))
    assert details["roc_auc"] > details["best_balanced_acc"] + 0.03, "not the same number"
    assert (details["mean_suspect"], details["mean_heldout"]) == pytest.approx(means, abs=5e-4)
    assert abs(math.log10(result["statistics"]["p_value"] / p_published)) < 3
    assert sum(details["answers"][group]["num_requests"] for group in ("suspect", "heldout")) == 130_248


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
            "logger=none",
            *more,
        ]

    return arguments


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


@pytest.mark.slow  # each is tested without a server
def test_letters_probabilities_and_calibration_over_a_server(nonmember, books):
    said = nonmember(
        *books(
            "method.reading=probabilities",
            "method.top_logprobs=8",
            "method.calibrate=true",
            "data.set_aside=calibration",
        )
    )
    assert said.status == 0, said.err
    result = the_result()
    assert result["verdict"]["decision"] == "evidence_of_membership", result["verdict"]["warnings"]
    assert result["statistics"]["details"]["calibration"]["offsets"]["B"] < -0.15
