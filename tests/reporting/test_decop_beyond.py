"""DE-COP beyond the paper: on made-up answers of which the truth is plain."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from nonmember.stats.letter_choice import Choices
from nonmember_papers.decop.beyond import (
    NAMES,
    ORDERS,
    DecopBeyond,
    answered_by,
    by_length,
    left_out,
    single_books,
    units,
    with_added,
    with_fewer,
)

NUM_BOOKS = 12


@pytest.fixture
def answers():
    """Six suspect books with 12 of 24 answers right, the first 13, and six clean ones with 6, the last 7; two an
    author."""
    rows = []
    for book in range(NUM_BOOKS):
        suspect = book < NUM_BOOKS // 2
        right = (12 if suspect else 6) + (book in (0, NUM_BOOKS - 1))
        for passage in range(2):
            for query in range(ORDERS):
                row = {"book": f"B{book}_-_A{book // 2}", "passage": passage, "query": query, "label": int(suspect)}
                rows.append(row | {"true_option": "A", "model": "A" if query < right else "B"})
    return pd.DataFrame(rows)


def test_a_passage_without_answers_was_not_asked_about(answers):
    first = (answers.book == "B0_-_A0") & (answers.passage == 0)
    answers.loc[first, "model"] = None
    answers.loc[answers.index[-1], "model"] = None
    found = answered_by("model", answers, None)
    assert found.asked_UPQ.sum() == len(answers) - ORDERS
    assert found.accuracy_U[[0, 1, -1]] == pytest.approx([13 / 24, 0.5, 7 / 24]), "a missing answer is wrong"


def test_units_rules_and_single_books(answers):
    found = answered_by("model", answers, None)
    by_unit = units(found)
    assert by_unit["number of authors"] == 6
    books = [[13, *[12] * 5], [*[6] * 5, 7]]
    authors = [[12.5, 12, 12], [6, 6, 6.5]]
    for unit, groups in (("books", books), ("authors", authors)):
        assert by_unit[f"p, {unit}"] == pytest.approx(stats.ttest_ind(*groups, equal_var=False).pvalue)
    assert by_unit["ROC area, books"] == 1
    rules = left_out(found)
    assert rules["balanced accuracy, same books"] == rules["balanced accuracy, book left out"] == 1
    assert (rules["suspect above, 5%"], rules["clean above, 5%"]) == (1, pytest.approx(1 / 6)), "the best clean book"
    flagged = single_books(found)
    assert (flagged["by questions, suspect"], flagged["by questions, clean"]) == (1, 0)
    assert flagged["by rank, suspect"] == 0, "seven ranks allow no p below one seventh"
    assert flagged["p, the smallest of a rank"] == pytest.approx(1 / 7)


def test_all_of_it_is_all_of_it_and_less_is_no_better(answers):
    answers.loc[answers.query("query % 2 == 0").index, "model"] = "C"  # of half of the orders nothing is known
    found, rng = answered_by("model", answers, None), np.random.default_rng(0)
    assert with_fewer(found, 99, ORDERS, 1, rng) == found.auc(found.accuracy_U) > with_fewer(found, 1, 1, 20, rng)


def test_what_length_alone_tells(answers):
    lengths = answers[["book", "passage", "label"]].drop_duplicates()
    books = lengths.book.str.extract(r"B(\d+)", expand=False).astype(int)
    longest = (lengths.passage == 0) & ((lengths.label == 1) | (books >= 9))
    lengths = lengths.assign(original=np.where(longest, 9, 5), paraphrase_1=7, paraphrase_2=6, paraphrase_3=8)
    found = by_length(answered_by("model", answers, lengths))
    assert (found["original the longest, suspect"], found["original the longest, clean"]) == (0.5, 0.25)
    assert found["ROC area of that share alone"] == 0.75, "of six by six pairs half are ties"
    assert (found["where it is the longest"], found["where it is not"]) == (1, 1)


def test_what_was_added_is_judged_by_the_recorded_accuracies():
    """A suspect and a clean book of two questions each, answered by B until C gets more."""
    probability_QL = np.array([[0.2, 0.4, 0.3, 0.1]] * 4)
    choices = Choices(np.array([0, 0, 1, 1]), np.array([2, 1, 2, 2]), np.ones(4, dtype=int), probability_QL)
    found = with_added(choices, np.array([1.0, 0.0]), np.array([0.5, 0.5]), np.array([0.05, -0.1, 0.0, 0.05]))
    assert (found["added to B"], found["number of books with the recorded accuracy"]) == (-0.1, 1), "earlier of equals"
    assert (found["right, suspect"], found["right, clean"], found["well calibrated"]) == (0.5, 0, 1)
    more = with_added(choices, np.array([1.0, 0.0]), np.array([0.5, 1.0]), np.array([0.0, -0.1, 0.1, 0.0]))
    assert (more["number of books with the recorded accuracy"], more["right, clean"], more["well calibrated"]) == (
        2,
        1,
        0,
    )


def test_without_the_answers_it_says_how_to_make_them(tmp_path):
    report = DecopBeyond("name", "title", "subtitle", str(tmp_path), 1, 1, 1)
    with pytest.raises(ValueError, match="nonmember data decop --from CHECKOUT"):
        report.build(())
    assert len(NAMES) == 9
