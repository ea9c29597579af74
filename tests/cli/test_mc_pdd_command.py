"""MC-PDD from the command line: games whose names and introductions a model behind a server has read, or has not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from test_cli import in_one_sentence

import tiny
from command_line import only, write_rows
from lab_server.running import RunningLab

NUM_GAMES = 60


def games(year: int) -> list[dict[str, str]]:
    """Introductions of common words, with a word of the game's own twice."""
    rng = np.random.default_rng(year)
    rows = []
    for number in range(NUM_GAMES):
        words = [*rng.choice(tiny.WORDS, size=22), f"hero{year}n{number}", f"Hero{year}n{number}"]
        rng.shuffle(words)
        rows.append({"id": f"{year}-{number}", "name": f"Game {number}", "description": " ".join(words)})
    return rows


@pytest.fixture
def steam(lab: RunningLab, tmp_path: Path) -> list[str]:
    years = {"read": games(2014), "unread": games(2024)}
    lab.setup(
        documents=[
            {"text": row["description"], "read": name == "read"} for name, rows in years.items() for row in rows
        ],
        hit={"blank": [0.3, 0.7]},
        seed=5,
    )
    paths = {name: write_rows(tmp_path / f"{name}.jsonl", rows) for name, rows in years.items()}
    return [
        *(
            "audit",
            "experiment=mc_pdd_steam",
            "logger=none",
            "max_layout_auc=null",
            "method.control=false",
            "method.num_resamples=2000",
        ),
        *(f"data.{name}_path={path}" for name, path in paths.items()),
        *("data.num_unread_1=30", "model@target=endpoint", f"target.url={lab.url}", "target.model=lab"),
    ]


def result(tmp_path: Path) -> dict:
    return json.loads(only(tmp_path, "outputs/audits/mine/*/result.json").read_text())


@pytest.mark.slow
def test_games_that_were_read_are_found(nonmember, steam, lab, tmp_path):
    said = nonmember(*steam)
    assert said.status == 0, said.err
    found = result(tmp_path)
    assert (found["verdict"]["decision"], found["question"]["corpus"], found["question"]["heldout"]) == (
        "evidence_of_membership",
        "steam-read",
        "steam-unread",
    )
    assert found["statistics"]["details"]["suspect"]["hit_rate"] == pytest.approx(0.7, abs=0.17)
    assert found["statistics"]["details"]["heldout"]["hit_rate"] == pytest.approx(0.3, abs=0.17)
    assert found["statistics"]["ci_high"] < 0
    assert found["statistics"]["ci_low"] is None
    assert [item["size"] for item in found["statistics"]["details"]["curve"]] == [50]
    paid = lab.ledger()["paid"]
    assert paid >= 2 * NUM_GAMES
    # Another reading of the same answers costs nothing.
    assert nonmember(*steam, "method.match=substring", "method.alpha=0.01", "method.num_resamples=100").status == 0
    assert lab.ledger()["paid"] == paid


@pytest.mark.slow
def test_a_model_that_knows_every_word_fails_the_control(nonmember, steam, tmp_path):
    """The server's model knows common words of what it has read as well."""
    assert nonmember(*steam, "method.control=true").status == 0
    found = result(tmp_path)
    assert found["verdict"]["decision"] == "invalid"
    assert "drawn at random show a gap" in found["verdict"]["warnings"][0]


@pytest.mark.slow
def test_answers_that_are_no_lists_make_it_invalid(nonmember, steam, lab, tmp_path):
    lab.setup(
        documents=[{"text": row["description"], "read": year == 2014} for year in (2014, 2024) for row in games(year)],
        hit={"blank": [0.3, 0.7]},
        unreadable=0.2,
    )
    assert nonmember(*steam).status == 0
    found = result(tmp_path)
    assert found["verdict"]["decision"] == "invalid"
    assert found["statistics"]["details"]["suspect"]["answers"]["num_unreadable"] / NUM_GAMES == pytest.approx(
        0.2, abs=0.15
    )


@pytest.mark.slow
def test_what_is_missing_is_said(nonmember, steam, tmp_path):
    error = in_one_sentence(nonmember(*steam, "data.candidate=unread_1"))
    assert "TF-IDF takes common words for specific ones" in error
