"""What DE-COP's authors recorded, from the workbooks of their repository into tables that configs name.

github.com/LeiLiLab/DE-COP at commit f9e9e54c37c5ac993281ac09c07aa721758e6500 (Apache-2.0), folder
BookTection-128_Results: a workbook a book, with 24 rows a passage, one for each order of original and paraphrases. No
text of a book is copied, but for those whose copyright has expired everywhere.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from nonmember.runtime.progress import tracked
from nonmember.stats.letter_choice import LETTERS

FOLDER = "BookTection-128_Results"
LABELS = {"Clean": 0, "Suspect": 1}
ENDING = "_Paraphrases_Oversampling"
ORDERS = 24
LARGE = "LLAMMA2-"  # as the authors spell it
# Our name of a model -> its answers' column, and the pattern of its letters' probabilities where they were kept.
ANSWERS = {
    "chatgpt": ("Max_Label_NoDebias", "{}_Probability"),
    "claude_2_1": ("Claude2.1", ""),
    "claude_1_2": ("Claude1.2", ""),
    "llama2_70b": (f"Max_Label_NoDebias_{LARGE}70B", f"{{}}_Probability_{LARGE}70B"),
    "llama2_13b": (f"Max_Label_NoDebias_{LARGE}13B", f"{{}}_Probability_{LARGE}13B"),
    "llama2_7b": (f"Max_Label_NoDebias_{LARGE}7B", f"{{}}_Probability_{LARGE}7B"),
    "mistral_7b": ("Mistral-7B", ""),
    "mixtral_8x7b": ("Mixtral-8x7B", ""),
    "gpt3": ("GPT3_Max_Label_NoDebias", "GPT3_{}_Probability"),
}
OF_SOME_BOOKS = {"gpt3"}  # the others answered about all
SCORES = [  # that were kept passage by passage
    f"{model}_{score}"
    for model in ("GPT3", "LLaMA2-13B", "LLaMA2-70B")
    for score in ("Perplexity", "Zlib", "Lowercase", "Min_k_Prob")
]
TEXTS = ("original", "paraphrase_1", "paraphrase_2", "paraphrase_3")
PUBLIC_DOMAIN = (
    "A_Tale_of_Two_Cities_-_Charles_Dickens",
    "Adventures_of_Huckleberry_Finn_-_Mark_Twain",
    "Alice's_Adventures_in_Wonderland_-_Lewis_Carroll",
    "Dracula_-_Bram_Stoker",
    "Emma_-_Jane_Austen",
    "Frankenstein_-_Mary_Shelley",
    "Great_Expectations_-_Charles_Dickens",
    "Jane_Eyre_-_Charlotte_Bronte",
    "Moby_Dick_-_Herman_Melville",
    "The_Adventures_of_Sherlock_Holmes_-_Sir_Arthur_Conan_Doyle",
    "The_Adventures_of_Tom_Sawyer_-_Mark_Twain",
    "The_House_of_the_Seven_Gables_-_Nathaniel_Hawthorne",
    "The_Mysteries_of_Udolpho_-_Ann_Radcliffe",
    "The_Picture_of_Dorian_Gray_-_Oscar_Wilde",
    "Treasure_Island_-_Robert_Louis_Stevenson",
    "Wuthering_Heights_-_Emily_Bronte",
)


def convert(checkout: Path, to: Path) -> list[Path]:
    """Read all workbooks and write the tables.

    Args:
        checkout: The authors' repository.
        to: Where the tables go; those of an earlier run are replaced.

    Returns:
        answers.parquet: of each question its book, passage, query (the order), label (1: suspect), true_option, and of
        each model its letter and, where they were kept, the probabilities of the four. passage_lengths.parquet:
        characters of each passage and its paraphrases. book_scores.csv, book_accuracies.csv: the authors' own, per
        book. public_domain_passages.jsonl.gz: the passages of old books, with paraphrases.

    Raises:
        ValueError: Where there are no workbooks, rows are not 24 a passage, or a book's score is not the mean of its
            passages' scores, which were kept of three models.
    """
    asked, scored = checkout / FOLDER / "DE-COP", checkout / FOLDER / "BASELINES"
    answers, lengths, public = [], [], []
    for path, book, label in tracked(list(_books(asked, ENDING)), "reading answers", "books"):
        table = _read(path)
        answers.append(_placed(_answers(table, path), book, label, ORDERS))
        texts = _texts(table)
        lengths.append(_placed(texts.map(len), book, label))
        if book in PUBLIC_DOMAIN:
            public.append(_placed(texts.drop_duplicates("original"), book, label))  # three passages stand there twice
    means = {
        _title_and_author(book)[0]: _read(path)[SCORES].mean()
        for path, book, _ in tracked(list(_books(scored)), "reading scores", "books")
    }
    paths = {"scores": scored / "2_results_baselines.xlsx", "accuracies": asked / "2_results_DE-COP.xlsx"}
    of_books = {name: _read(path) for name, path in paths.items()}
    _check_means(means, of_books["scores"], paths["scores"])
    to.mkdir(parents=True, exist_ok=True)
    for name, parts in {"answers": answers, "passage_lengths": lengths}.items():
        pd.concat(parts, ignore_index=True).to_parquet(to / f"{name}.parquet", index=False)
    for name, table in of_books.items():
        table.to_csv(to / f"book_{name}.csv", index=False)
    with gzip.open(to / "public_domain_passages.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(row, ensure_ascii=False)}\n" for row in _rows(public))
    return sorted(to.iterdir())


def _check_means(means: Mapping[str, pd.Series], of_books: pd.DataFrame, path: Path) -> None:
    """means: title of a book -> its passages' mean scores."""
    theirs = of_books.set_index("Example A")[SCORES]
    for title, mean in means.items():
        if title not in theirs.index or not np.allclose(theirs.loc[title], mean, rtol=1e-6):
            raise ValueError(
                f"{path}: expected the means of the scores of the passages of {title!r}, and they are not there. Clone "
                "the repository again."
            )


def _books(folder: Path, ending: str = "") -> Iterator[tuple[Path, str, int]]:
    """(path, book, label) of each workbook, clean books first."""
    for name, label in LABELS.items():
        paths = sorted((folder / name).glob(f"*{ending}.xlsx"))
        if not paths:
            raise ValueError(
                f"Expected workbooks *{ending}.xlsx in {folder / name}, and there are none. Give the folder of a clone "
                "of https://github.com/LeiLiLab/DE-COP: --from CHECKOUT."
            )
        yield from ((path, path.stem.removesuffix(ending), label) for path in paths)


def _read(path: Path) -> pd.DataFrame:
    return pd.read_excel(path, engine="openpyxl")  # of nonmember[workbooks]


def _answers(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    right = table["True Answer"]
    if len(table) % ORDERS or not right.isin(list(LETTERS)).all():
        raise ValueError(
            f"{path}: expected {ORDERS} rows a passage, each with a True Answer from A to D; got {len(table)} rows "
            f"with {', '.join(map(str, right.unique()))}."
        )
    answers: dict[str, pd.Series] = {"true_option": right}
    probabilities: dict[str, pd.Series | float] = {}
    for model, (column, pattern) in ANSWERS.items():
        if column not in table and model in OF_SOME_BOOKS:
            answers[model] = pd.Series(None, index=table.index, dtype="str")
            probabilities |= {f"{model}_p_{letter}": float("nan") for letter in LETTERS.lower()}
            continue
        columns = table[[column, *(pattern.format(letter) for letter in LETTERS if pattern)]]
        answers[model] = columns[column].astype("str")
        for letter, name in zip(LETTERS.lower(), columns.columns[1:], strict=False):
            probabilities[f"{model}_p_{letter}"] = columns[name]
    return pd.DataFrame(answers).join(pd.DataFrame(probabilities, index=table.index).astype("float32"))


def _texts(table: pd.DataFrame) -> pd.DataFrame:
    """[passages] of `TEXTS`, as the first question about each shows them."""
    first = table.iloc[::ORDERS]
    rows = [
        [row[f"Example {right}"], *(row[f"Example {letter}"] for letter in LETTERS if letter != right)]
        for right, (_, row) in zip(first["True Answer"], first.iterrows(), strict=True)
    ]
    return pd.DataFrame(rows, columns=list(TEXTS)).astype(str)


def _placed(table: pd.DataFrame, book: str, label: int, rows_a_passage: int = 1) -> pd.DataFrame:
    """With book, number of the passage, of the question where there are several, and label in front."""
    numbers = pd.RangeIndex(len(table)).to_numpy()
    table = table.reset_index(drop=True)
    table.insert(0, "book", book)
    table.insert(1, "passage", numbers // rows_a_passage)
    if rows_a_passage > 1:
        table.insert(2, "query", numbers % rows_a_passage)
    table.insert(table.columns.get_loc("passage") + (1 + (rows_a_passage > 1)), "label", label)
    return table


def _title_and_author(book: str) -> tuple[str, str]:
    title, _, author = (part.replace("_", " ") for part in book.partition("_-_"))
    return title, author


def _rows(public: Iterable[pd.DataFrame]) -> Iterator[dict[str, object]]:
    for table in public:
        for row in table.to_dict("records"):
            title, author = _title_and_author(str(row["book"]))
            yield {
                "book": row["book"],
                "title": title,
                "author": author,
                "passage": row["passage"],
                "text": row["original"],
                "paraphrases": [row[name] for name in TEXTS[1:]],
            }
