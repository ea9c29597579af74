"""Several lengths of a document: what a split by document tears apart, and a split by cluster does not."""

from __future__ import annotations

import pytest

from nonmember.corpora import Part, Prefixes

WORDS = " ".join(f"w{n}" for n in range(10))


def test_each_length_once_and_the_document_as_cluster(given, build):
    corpus = build(Prefixes(given(WORDS, "a b c"), [6, 2]))
    assert [(d.doc_id, d.text, d.cluster_id) for d in corpus.documents] == [
        ("d0/2", "w0 w1", "d0"),
        ("d0/6", "w0 w1 w2 w3 w4 w5", "d0"),
        ("d1/2", "a b", "d1"),
    ]
    with pytest.raises(ValueError, match="documents of 4 words or more"):
        build(Prefixes(given("a b c"), [4]))


@pytest.mark.parametrize("lengths", [[], [0], [4, 4], [True]])
def test_lengths_are_different_numbers_of_words(given, lengths):
    with pytest.raises(ValueError, match="` of Prefixes"):
        Prefixes(given("a"), lengths)


def test_only_a_split_by_cluster_keeps_lengths_together(given, build):
    base = Prefixes(given(*(f"{n} {WORDS}" for n in range(40))), [2, 4, 8])

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
