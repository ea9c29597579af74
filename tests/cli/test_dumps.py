"""`nonmember data steam` and `arxiv`: sets of MC-PDD from dumps that the test writes."""

from __future__ import annotations

import csv
import json

import pytest

from nonmember_papers.mc_pdd.dumps import _period, arxiv, steam

GAMES = [
    ("10", "Old", "Nov 7, 2014", "A game of swords."),
    ("11", "Between", "2019-05-01", "Of ships."),
    ("12", "New", "21 Feb, 2024", "Of moons."),
    ("12", "New again", "21 Feb, 2024", "Of moons, again."),
    ("13", "Mute", "Feb 2024", " "),
]


def texts(path):
    return [(item["id"], item["name"], item["description"]) for item in map(json.loads, path.open(encoding="utf-8"))]


@pytest.mark.parametrize("form", ["csv", "jsonl", "json"])
def test_games_by_their_year_in_each_form_of_a_dump(tmp_path, form):
    dump = tmp_path / f"games.{form}"
    names = ("AppID", "Name", "Release date", "About the game")
    if form == "csv":
        with dump.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([names, *GAMES])
    elif form == "jsonl":
        dump.write_text("".join(json.dumps(dict(zip(names, game, strict=True))) + "\n" for game in GAMES))
    else:
        by_id = {game[0]: dict(zip(names[1:], game[1:], strict=True)) for game in reversed(GAMES)}
        dump.write_text(json.dumps(by_id, indent=1))
    old, new = steam(dump, tmp_path / "to")
    assert texts(old) == [("10", "Old", "A game of swords.")]
    assert [item[0] for item in texts(new)] == ["12"], "once, and none without a text"


def test_papers_by_the_month_of_their_first_version(tmp_path):
    dump = tmp_path / "arxiv.json"
    rows = [
        {"id": f"{year}", "title": "T", "abstract": "A", "versions": [{"created": f"Mon, 6 Feb {year} 08:00:00 GMT"}]}
        for year in (2017, 2018, 2025)
    ]
    rows.append({**rows[0], "id": "x", "versions": [{"created": "Wed, 1 Mar 2017 08:00:00 GMT"}]})
    dump.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [[item[0] for item in texts(path)] for path in arxiv(dump, tmp_path)] == [["2017"], ["2018"], ["2025"]]


def test_what_a_dump_lacks_is_said(tmp_path, nonmember):
    dump = tmp_path / "games.csv"
    dump.write_text("AppID,Name\n1,x\n")
    done = nonmember("data", "steam", "--from", dump, "--to", tmp_path)
    assert done.status == 1
    assert "must have one of the columns About the game" in done.err
    with pytest.raises(ValueError, match="nothing is there; correct the path"):
        steam(tmp_path / "none.csv", tmp_path)
    dump.write_text("AppID,Name,Release date,About the game\n1,x,Nov 7 2014,y\n")
    with pytest.raises(ValueError, match=r"nothing of 2024 .* Give a dump that reaches so far"):
        steam(dump, tmp_path)


def test_dates_as_shops_write_them():
    dates = {
        "2014-11-07": "2014-11",
        "Nov 7, 2014": "2014-11",
        "7 November, 2014": "2014-11",
        "2014": "2014",
        "soon": "",
    }
    assert {date: _period(date) for date in dates} == dates
