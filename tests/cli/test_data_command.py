"""`python -m nonmember_papers.data decop`: the authors' workbooks into tables, on workbooks that the test writes."""

from __future__ import annotations

import gzip
import json
from itertools import permutations
from pathlib import Path

import pandas as pd
import pytest

from nonmember_papers.data import main
from nonmember_papers.decop.workbooks import ANSWERS, ENDING, FOLDER, SCORES

pytest.importorskip("openpyxl", reason="openpyxl is not installed")

BOOKS = {"Emma_-_Jane_Austen": "Suspect", "Old_-_Ann": "Suspect", "New_-_Bob": "Clean"}
ORDERS = list(permutations(range(4)))


def asked(book: str, passages: list[int]) -> pd.DataFrame:
    """All models answer B; GPT-3 was asked about Emma alone, and one answer of Claude is missing."""
    rows = []
    for passage in passages:
        options = [f"{book} {passage}", *(f"{'longer ' * number}{passage}" for number in (1, 2, 3))]
        for order in ORDERS:
            row = {f"Example {letter}": options[index] for letter, index in zip("ABCD", order, strict=True)}
            row["True Answer"] = "ABCD"[order.index(0)]
            for model, (column, pattern) in ANSWERS.items():
                if model != "gpt3" or book.startswith("Emma"):
                    row[column] = "B"
                    shares = {"A": 0.125, "B": 0.5, "C": 0.25, "D": 0.125} if pattern else {}
                    row |= {pattern.format(letter): share for letter, share in shares.items()}
            rows.append(row)
    rows[0]["Claude2.1"] = None
    return pd.DataFrame(rows)


def write(checkout: Path, tables: dict[str, pd.DataFrame], mean: float = 2.0) -> None:
    root = checkout / FOLDER
    for book, group in BOOKS.items():
        asking, scoring = (root / kind / group for kind in ("DE-COP", "BASELINES"))
        for folder in (asking, scoring):
            folder.mkdir(parents=True, exist_ok=True)
        tables[book].to_excel(asking / f"{book}{ENDING}.xlsx", index=False)
        scores = {name: [1.5, 2.5] for name in SCORES}
        pd.DataFrame({"Example A": ["x", "y"]} | scores).to_excel(scoring / f"{book}.xlsx", index=False)
    pd.DataFrame({"Book Name": list(BOOKS)}).to_excel(root / "DE-COP" / "2_results_DE-COP.xlsx", index=False)
    titles = {"Example A": ["Emma", "Old", "New"]}
    of_books = pd.DataFrame(titles | dict.fromkeys(SCORES, mean))
    of_books.to_excel(root / "BASELINES" / "2_results_baselines.xlsx", index=False)


@pytest.fixture
def tables():
    return {book: asked(book, [0, 1, 0] if book.startswith("Emma") else [0, 1]) for book in BOOKS}


def test_workbooks_become_the_tables_that_configs_name(capsys, tmp_path, tables):
    write(tmp_path / "clone", tables)
    main(["decop", "--from", str(tmp_path / "clone"), "--to", str(tmp_path / "to")])
    assert "NONMEMBER_DECOP_DIR=" in capsys.readouterr().out
    answers = pd.read_parquet(tmp_path / "to" / "answers.parquet")
    assert len(answers) == 24 * (3 + 2 + 2)
    assert list(answers.columns[:7]) == ["book", "passage", "query", "label", "true_option", "chatgpt", "claude_2_1"]
    assert answers.groupby("book").label.first().to_dict() == {book: int(BOOKS[book] == "Suspect") for book in BOOKS}
    here = answers[answers.book == "Old_-_Ann"]
    assert here.passage.tolist() == [0] * 24 + [1] * 24
    assert here["query"].tolist() == list(range(24)) * 2
    assert here.true_option.tolist() == ["ABCD"[order.index(0)] for order in ORDERS] * 2
    assert here.claude_2_1.isna().tolist() == [True] + [False] * 47
    assert here.gpt3.isna().all()
    assert here.gpt3_p_a.isna().all()
    assert (answers[answers.book.str.startswith("Emma")].gpt3 == "B").all()
    assert (answers[[f"llama2_70b_p_{letter}" for letter in "abcd"]] == [0.125, 0.5, 0.25, 0.125]).all(axis=None)

    lengths = pd.read_parquet(tmp_path / "to" / "passage_lengths.parquet")
    assert lengths[lengths.book == "New_-_Bob"].iloc[1, 2:].tolist() == [0, len("New_-_Bob 1"), 8, 15, 22]
    assert pd.read_csv(tmp_path / "to" / "book_scores.csv").GPT3_Zlib.tolist() == [2.0] * 3
    with gzip.open(tmp_path / "to" / "public_domain_passages.jsonl.gz", "rt") as file:
        passages = [json.loads(line) for line in file]
    assert [row["passage"] for row in passages] == [0, 1], "one stands there twice"
    assert {row["title"] + row["author"] for row in passages} == {"EmmaJane Austen"}
    assert passages[0]["paraphrases"] == ["longer 0", "longer longer 0", "longer longer longer 0"]
    assert pd.read_csv(tmp_path / "to" / "book_accuracies.csv")["Book Name"].tolist() == list(BOOKS)


def test_what_is_wrong_with_workbooks_is_told(tmp_path, tables):
    def error(clone: str) -> str:
        with pytest.raises(ValueError) as refused:
            main(["decop", "--from", str(tmp_path / clone), "--to", str(tmp_path / "to")])
        assert not (tmp_path / "to").exists()
        return str(refused.value)

    assert "Give the folder of a clone of https://github.com/LeiLiLab/DE-COP" in error("none")
    write(tmp_path / "other", tables, mean=2.001)
    assert "expected the means of the scores of the passages of 'New'" in error("other")
    write(tmp_path / "short", tables | {"New_-_Bob": tables["New_-_Bob"][:30]})
    assert "expected 24 rows a passage" in error("short")
    write(tmp_path / "less", tables | {"New_-_Bob": tables["New_-_Bob"].drop(columns="Mixtral-8x7B")})
    with pytest.raises(KeyError, match="Mixtral-8x7B"):
        error("less")
