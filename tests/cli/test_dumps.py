"""`python -m nonmember_papers.data steam` and `arxiv`: sets of MC-PDD from dumps that the test writes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from nonmember_papers.data import main
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


@pytest.mark.slow
def test_each_month_of_papers_is_audited_by_the_command_that_is_printed(tmp_path, monkeypatch, capsys):
    from nonmember.config.build import build_audit
    from nonmember.config.compose import cells_of
    from nonmember.config.roots import register

    monkeypatch.chdir(tmp_path)
    dump = tmp_path / "arxiv.json"
    rows = [{"id": year, "title": "T", "abstract": "A", "created": f"{year}-02-01"} for year in (2017, 2018, 2025)]
    dump.write_text("".join(json.dumps(row) + "\n" for row in rows))
    main(["arxiv", "--from", str(dump), "--to", "arxiv"])
    printed = capsys.readouterr().out.splitlines()
    added = [line.partition(": ")[2] for line in printed if line.startswith("Add to a sweep of MC-PDD")]
    assert [line.partition(" ")[0][-13:] for line in added] == ["2017_02.jsonl", "2018_02.jsonl"]
    page = (Path(__file__).parents[2] / "docs" / "papers" / "mc_pdd.md").read_text(encoding="utf-8")
    register()
    for line in added:
        assert line in page
        given = ["world=pythia", "model@target=olmo_7b_instruct", *line.split()]
        cells = [(build_audit(config), config) for config, _ in cells_of("mc_pdd_words", given)]
        assert len(cells) == 6
        for audit, config in cells:
            assert (audit.target.path, config.method.letters_only) == ("allenai/OLMo-7B-Instruct-hf", True)
            assert config.data.label == f"{config.data.domain}-read"


def test_what_a_dump_lacks_is_said(tmp_path):
    dump = tmp_path / "games.csv"
    dump.write_text("AppID,Name\n1,x\n")
    with pytest.raises(ValueError, match="must have one of the columns About the game"):
        main(["steam", "--from", str(dump), "--to", str(tmp_path)])
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
