from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from nonmember.corpora import Cleaned, normalise
from nonmember.corpora.transforms.cleaning import _jaccard, _shingles, near_duplicates
from nonmember.records import Corpus, Document


def words(number: int, seed: int = 0) -> str:
    source = random.Random(seed)
    return " ".join(f"w{source.randrange(5000)}" for _ in range(number))


def cleaned(source, **changes):
    settings = {
        "min_words": 5,
        "max_words": 50,
        "long_documents": "cut",
        "near_duplicate_threshold": 0.5,
        "num_perm": 64,
    }
    return Cleaned(source, **{**settings, **changes})


def test_one_layout_for_every_text(given, build):
    """The format of a text must not tell where it came from."""
    indented = "\n    Return the sum.\n\n\tParameters\r\n    ----------\u00a0\n    x : int\u2003\n"
    flowing = "Return the sum. Parameters ---------- x : int"
    assert normalise(indented) == normalise(flowing) == flowing
    first, second = (build(cleaned(given(text))) for text in (indented, flowing))
    assert first.documents == second.documents
    assert build(cleaned(given(indented, flowing))).dropped == {"exact_duplicate": 1}


def test_word_limits(given, build):
    source = given(words(4, 1), words(5, 2), words(50, 3), words(51, 4), " \n ", "")
    cut = build(cleaned(source))
    assert cut.doc_ids == ("d1", "d2", "d3")
    assert cut.documents[2].text == " ".join(words(51, 4).split()[:50])
    assert cut.dropped == {"empty": 2, "too_short": 1}
    dropped = build(cleaned(source, long_documents="drop"))
    assert dropped.doc_ids == ("d1", "d2")
    assert dropped.dropped == {"empty": 2, "too_long": 1, "too_short": 1}


def test_exact_duplicates_after_cutting_the_first_stays(given, build):
    text = words(50)
    corpus = build(cleaned(given(text + " one end", words(20, 1), text + " another end", text)))
    assert corpus.doc_ids == ("d0", "d1")
    assert corpus.dropped == {"exact_duplicate": 2}


def test_near_duplicates_go_and_relatives_stay(given, build):
    text = words(50).split()
    almost = " ".join([*text[:20], "changed", *text[21:]])  # 41 of 46 5-grams shared: J = 41 / 51
    relative = " ".join(text[:20] + words(30, seed=1).split())  # 16 shared: J = 16 / 76
    source = given(" ".join(text), almost, relative, words(50, seed=2))
    corpus = build(cleaned(source))
    assert corpus.doc_ids == ("d0", "d2", "d3")
    assert corpus.dropped == {"near_duplicate": 1}
    assert build(cleaned(source, near_duplicate_threshold=0.9)).doc_ids == ("d0", "d1", "d2", "d3")
    assert build(cleaned(source, near_duplicate_threshold=None)).dropped == {}
    assert build(cleaned(source, near_duplicate_threshold=0.2)).doc_ids == ("d0", "d3")


def test_threshold_is_the_exact_jaccard_similarity():
    first, second = "a b c d e f g h i j", "a b c d e f g h i k"
    item, other = _shingles([first, second])
    assert _jaccard(item, other) == 5 / 7
    assert near_duplicates([first, second], 5 / 7, 128).tolist() == [False, True]
    assert near_duplicates([first, second], 5 / 7 + 1e-9, 128).tolist() == [False, False]
    short, same, reverse = _shingles(["b a", "b a", "a b"])
    assert (_jaccard(short, same), _jaccard(short, reverse)) == (1, 0)


def test_nearly_nothing_is_missed_against_a_search_of_all_pairs():
    source = random.Random(0)
    texts = []
    for seed in range(60):
        base = words(40, seed).split()
        for _ in range(4):
            texts.append(" ".join("new" if source.random() < 0.06 else word for word in base))
    shingles = list(_shingles(texts))
    kept: list[int] = []
    for i in range(len(texts)):
        if all(_jaccard(shingles[i], shingles[j]) < 0.5 for j in kept):
            kept.append(i)
    found = ~near_duplicates(texts, 0.5, 128)
    assert set(kept) <= set(np.flatnonzero(found).tolist())
    assert found.sum() <= len(kept) * 1.02
    assert 60 <= len(kept) < 200


def test_counts_of_the_source_are_kept(given):
    source = given("too short", words(9))
    corpus = Corpus(source.documents, {"unparsable_module": 2, "too_short": 1})
    assert cleaned(source).build(SimpleNamespace(get=lambda spec: corpus)).dropped == {
        "too_short": 2,
        "unparsable_module": 2,
    }


def test_same_again_and_fingerprints_move_with_content_only(given, build):
    documents = [Document(f"d{i}", words(30, i), "cluster", "domain") for i in range(30)]
    before = build(cleaned(given(*documents)))
    assert build(cleaned(given(*documents))).fingerprint == before.fingerprint
    spread = [replace(d, text=d.text.replace(" ", "\n\n")) for d in documents]
    assert build(cleaned(given(*spread))).fingerprint == before.fingerprint
    changed = [*documents[:-1], replace(documents[-1], text=documents[-1].text + "!")]
    assert build(cleaned(given(*changed))).fingerprint != before.fingerprint
    assert {(d.cluster_id, d.domain) for d in before.documents} == {("cluster", "domain")}


def test_identity_holds_what_matters_and_nothing_else(given):
    base = cleaned(given("a b c d e"))
    assert base == cleaned(given("a b c d e"))
    assert hash(base) == hash(cleaned(given("a b c d e")))
    off = {"near_duplicate_threshold": None}
    assert cleaned(base, **off, num_perm=16).identity() == cleaned(base, **off).identity()
