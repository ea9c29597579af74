"""Other versions of texts: views at their rates, near duplicates with the stated share exchanged, prefixes."""

from __future__ import annotations

import pytest
from sklearn.feature_extraction.text import CountVectorizer

from nonmember.corpora import Part, Prefixes, Viewed, apply_view
from nonmember.corpora.views import NEIGHBOURS, VIEWS
from nonmember.records import Corpus, Document
from nonmember.stats.blind import _YEAR_PATTERN, _YEARS
from tiny import Texts, build, texts

TEXT = "The quick brown fox, aged 12, jumps over the lazy dog of 1987 and goes on " * 20


def seen(view: str, text: str = TEXT) -> str:
    return apply_view(Corpus((Document("A", text),)), view).documents[0].text


def test_lowercase_changes_texts_only():
    corpus = Corpus((Document("A", "Some TEXT, \u0130n", "C", "D"),), {"empty": 1})
    lower = apply_view(corpus, "lowercase")
    assert lower.documents == (Document("A", "some text, i\u0307n", "C", "D"),)
    assert lower.dropped == {"empty": 1}
    assert lower.fingerprint != corpus.fingerprint
    assert apply_view(corpus, "original") is corpus


@pytest.mark.parametrize("view", sorted(VIEWS))
def test_a_view_depends_on_the_text_alone(view):
    assert seen(view) == seen(view) != TEXT
    assert seen(view, "") == ""
    both = apply_view(Corpus((Document("B", "x y z"), Document("A", TEXT))), view)
    assert both.documents[1].text == seen(view)


def test_butter_fingers_hits_neighbouring_keys_at_its_rate():
    typed = seen("butter_fingers")
    assert len(typed) == len(TEXT)
    hits = [(item, other) for item, other in zip(TEXT, typed, strict=True) if item != other]
    assert len(hits) / sum(letter.isalpha() for letter in TEXT) == pytest.approx(0.1, abs=0.03)
    assert all(other.lower() in NEIGHBOURS[item.lower()] and item.isupper() == other.isupper() for item, other in hits)


def test_other_perturbations_at_their_rates():
    words = TEXT.split(" ")
    assert len(seen("random_deletion").split(" ")) / len(words) == pytest.approx(0.75, abs=0.06)
    assert seen("random_deletion", "alone") == "alone"
    swapped = sum(item != other for item, other in zip(TEXT, seen("change_char_case"), strict=True))
    assert swapped / sum(letter.isalpha() for letter in TEXT) == pytest.approx(0.25, abs=0.04)
    assert seen("underscore_trick").count("_") / TEXT.count(" ") == pytest.approx(0.25, abs=0.06)
    assert seen("underscore_trick").replace("_", " ") == TEXT
    assert seen("whitespace_perturbation").replace(" ", "") == TEXT.replace(" ", "")


def test_years_go_or_become_one():
    told = "In 1999 (and 2000-2001), 12000 of 1850's 2100 pages; 20150 no, 2015x yes."
    assert seen("years_deleted", told) == "In (and-), 12000 of 1850's 2100 pages; 20150 no,x yes."
    assert seen("years_replaced", told) == told.replace("1999", "2023").replace("2000-2001", "2023-2023").replace(
        "2015x", "2023x"
    )
    assert seen("years_deleted", "2001") == "2001", "nothing else in it"
    blind = CountVectorizer(token_pattern=_YEAR_PATTERN, vocabulary=_YEARS)
    assert blind.transform([seen("years_deleted", told)]).sum() == 0
    assert blind.transform([told]).sum() == 4


def test_wrapped_lines_are_short_and_indented_and_say_the_same():
    lines = seen("wrapped").split("\n")
    assert len(lines) > len(TEXT) / 60
    assert max(map(len, lines)) <= 60
    assert [line[:5].strip() != "" and line.startswith("    ") for line in lines] == [False] + [True] * (len(lines) - 1)
    assert " ".join(seen("wrapped").split()) == " ".join(TEXT.split())
    long = "x" * 80
    assert seen("wrapped", f"a {long} b").split() == ["a", long, "b"], "no word is broken"


def test_a_view_as_a_corpus_of_its_own():
    base = Texts((Document("A", "made in 2019", "C", "D"),))
    viewed = Viewed(base, "years_replaced")
    assert build(viewed).documents == (Document("A", "made in 2023", "C", "D"),)
    assert viewed.identity() == {"kind": "viewed", "base": base.identity(), "view": "years_replaced"}


# ------------------------------------------------------------------------------------------------ prefixes

WORDS = " ".join(f"w{n}" for n in range(10))


def test_each_length_once_and_the_document_as_cluster():
    corpus = build(Prefixes(texts(WORDS, "a b c"), [6, 2]))
    assert [(d.doc_id, d.text, d.cluster_id) for d in corpus.documents] == [
        ("d0/2", "w0 w1", "d0"),
        ("d0/6", "w0 w1 w2 w3 w4 w5", "d0"),
        ("d1/2", "a b", "d1"),
    ]


def test_only_a_split_by_cluster_keeps_lengths_together():
    base = Prefixes(texts(*(f"{n} {WORDS}" for n in range(40))), [2, 4, 8])

    def torn(by: str) -> int:
        parts = [
            build(Part(base, take=take, sizes={"tuning": 0.3}, by=by, per="corpus", salt="x")).documents
            for take in ("tuning", "rest")
        ]
        tuned, tested = ({d.cluster_id for d in part} for part in parts)
        assert len(parts[0]) + len(parts[1]) == 120
        return len(tuned & tested)

    assert torn("cluster") == 0
    assert torn("document") > 15
