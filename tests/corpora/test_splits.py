from __future__ import annotations

import random
from hashlib import sha256

import pytest

from nonmember.corpora import Component, Dated, Mixture, Part, Select
from nonmember.records import Document


def documents(number: int, domain: str = "x", cluster_size: int = 0) -> list[Document]:
    clusters = [f"{domain}{i // cluster_size}" if cluster_size else "" for i in range(number)]
    return [Document(f"{domain}-{i}", f"text {domain} {i}", clusters[i], domain) for i in range(number)]


def part(base, take, sizes, **changes):
    settings = {"by": "document", "per": "corpus", "salt": "s", **changes}
    return Part(base, take=take, sizes=sizes, **settings)


def ids(corpus) -> set[str]:
    return set(corpus.doc_ids)


COUNTS = {"a": 10, "b": 15}
SHARES = {"a": 0.3, "b": 0.3}


# ------------------------------------------------------------------------------------------------------- Part


@pytest.mark.parametrize("sizes", [COUNTS, SHARES])
@pytest.mark.parametrize("by", ["document", "cluster"])
@pytest.mark.parametrize("per", ["corpus", "domain"])
def test_parts_are_disjoint_complete_and_in_order(given, build, sizes, by, per):
    base = given(*documents(60, "x", 3), *documents(60, "y", 7), *documents(20, "z", 3))
    domains = ("y", "x") if per == "domain" else None
    parts = [build(part(base, take, sizes, by=by, per=per, domains=domains)) for take in ("a", "b", "rest")]
    assert sum(map(len, parts)) == 140
    assert len(set.union(*map(ids, parts))) == 140
    order = {document.doc_id: i for i, document in enumerate(base.documents)}
    for corpus in parts:
        places = [order[doc_id] for doc_id in corpus.doc_ids]
        assert places == sorted(places)
    if by == "cluster":
        clusters = [{d.cluster_id for d in corpus.documents} for corpus in parts]
        assert not clusters[0] & clusters[1]
        assert not (clusters[0] | clusters[1]) & clusters[2]
    if per == "domain":
        assert {d.doc_id for d in base.documents if d.domain == "z"} <= ids(parts[2])
        assert {d.domain for d in parts[0].documents} == {"x", "y"}


def test_whole_numbers_are_exact_and_in_order_of_hash(given, build):
    base = given(*documents(40))
    first, second = (ids(build(part(base, take, COUNTS))) for take in COUNTS)
    ordered = sorted((d.doc_id for d in base.documents), key=lambda i: sha256(f"s{i}".encode()).digest())
    assert (first, second) == (set(ordered[:10]), set(ordered[10:25]))


def test_whole_numbers_per_domain(given, build):
    base = given(*documents(40, "x"), *documents(30, "y"))
    corpus = build(part(base, "a", COUNTS, per="domain"))
    assert [sum(d.domain == name for d in corpus.documents) for name in "xy"] == [10, 10]


def test_clusters_are_never_cut(given, build):
    base = given(*documents(70, cluster_size=7), Document("alone", "t"), Document("lone", "t", "", "x"))
    a, b, rest = (build(part(base, take, COUNTS, by="cluster")) for take in ("a", "b", "rest"))
    assert 10 <= len(a) < 17
    assert 15 <= len(b) < 22
    assert len(a) + len(b) + len(rest) == 72
    exact = Select(part(base, "a", COUNTS, by="cluster"), num_documents=10, salt="s")
    assert len(build(exact)) == 10


def test_documents_without_cluster_stand_for_themselves(given, build):
    """... and the nameless cluster is not one big cluster."""
    base = given(*documents(20), *documents(20, "y", 5))
    assert len(build(part(base, "a", {"a": 1}, by="cluster"))) <= 5


def test_shares_are_stable_when_documents_are_added_or_reordered(given, build):
    few, many = documents(300), documents(900)
    random.Random(0).shuffle(many)
    small, large = (ids(build(part(given(*docs), "b", SHARES))) for docs in (few, many))
    assert small == {doc_id for doc_id in large if doc_id in {d.doc_id for d in few}}
    assert 220 <= len(large) <= 320


def test_counts_do_not_depend_on_order(given, build):
    docs = documents(50, cluster_size=4)
    for by in ("document", "cluster"):
        forward, backward = (ids(build(part(given(*d), "b", COUNTS, by=by))) for d in (docs, docs[::-1]))
        assert forward == backward


def test_salt_makes_another_draw(given, build):
    base = given(*documents(100))
    draws = [ids(build(part(base, "a", {"a": 50}, salt=salt))) for salt in ("s", "t", 3)]
    assert len(set(map(frozenset, draws))) == 3
    assert part(base, "a", COUNTS, salt=3) == part(base, "a", COUNTS, salt="3")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sizes": {"a": 10, "b": 0.5}}, "whole number of documents, or each a fraction"),
        ({"sizes": {"a": 0}}, "whole number"),
        ({"sizes": {"a": True}}, "whole number"),
        ({"sizes": {"a": 1.0}}, "fraction"),
        ({"sizes": {}}, "whole number"),
        ({"sizes": {"a": 10, "rest": 5}}, "none may be called 'rest'"),
        ({"sizes": {"a": 0.6, "b": 0.5}}, "sum to at most 1"),
        ({"take": "c"}, "one of a, b, rest; got 'c'"),
        ({"by": "book"}, "one of document, cluster"),
        ({"per": "file"}, "one of corpus, domain"),
        ({"domains": ["x"]}, "only with `per: domain`"),
        ({"salt": None}, "`salt` of Part must be any text"),
        ({"base": "general"}, "`base` of Part must be a corpus recipe; got 'general'"),
    ],
)
def test_bad_parts(given, changes, message):
    settings = {"take": "a", "sizes": COUNTS, "base": given("x"), **changes}
    with pytest.raises(ValueError, match=message):
        part(**settings)


def test_parts_a_corpus_cannot_give(given, build):
    base = given(*documents(24), *documents(50, "y"))
    with pytest.raises(ValueError, match=r"15 \(b\) documents are needed of domain 'x' of .*, which has 24; give more"):
        build(part(base, "a", COUNTS, per="domain"))
    with pytest.raises(ValueError, match=r"documents are needed of .*, which has 74"):
        build(part(base, "rest", {"a": 75}))
    with pytest.raises(ValueError, match=r"does not have: q\. It has: 'x', 'y'"):
        build(part(base, "a", COUNTS, per="domain", domains=["y", "q"]))
    with pytest.raises(ValueError, match="no document has a cluster"):
        build(part(base, "a", COUNTS, by="cluster"))
    with pytest.raises(ValueError, match=r"'rest' of sizes .* has no documents, out of 74"):
        build(part(base, "rest", {"a": 74}))
    shared = given(Document("1", "t", "c", "x"), Document("2", "t", "c", "y"))
    with pytest.raises(ValueError, match=r"1 clusters \(first 'c'\) lie in several"):
        build(part(shared, "a", {"a": 1}, by="cluster", per="domain"))


# ----------------------------------------------------------------------------------------------------- Select


def test_samples_are_nested_and_do_not_depend_on_order(given, build):
    docs = documents(50) + documents(50, "y")
    base, reverse = given(*docs), given(*docs[::-1])
    samples = [ids(build(Select(base, num_documents=n, salt="s"))) for n in (5, 20, 100)]
    assert [len(sample) for sample in samples] == [5, 20, 100]
    assert samples[0] < samples[1] < samples[2]
    assert ids(build(Select(reverse, num_documents=20, salt="s"))) == samples[1]
    corpus = build(Select(base, domains="y", num_documents=20, salt="s"))
    assert {d.domain for d in corpus.documents} == {"y"}
    places = [docs.index(document) for document in corpus.documents]
    assert places == sorted(places)
    assert len(build(Select(base, domains=["y", "x"]))) == 100


# ------------------------------------------------------------------------------------------------------ Dated

TEXTS = ("Founded in 1950 and rebuilt in 1999.", "Opened in 2008.", "No date, 12345 of them.", "From 1990 to 2021.")


def test_by_the_latest_year(given, build):
    old = build(Dated(given(*TEXTS), last=2000))
    assert [d.doc_id for d in old.documents] == ["d0"], "1990 to 2021 is of 2021"
    assert old.dropped == {"other_years": 2, "no_year": 1}
    assert [d.doc_id for d in build(Dated(given(*TEXTS), first=2005)).documents] == ["d1", "d3"]
    assert [d.doc_id for d in build(Dated(given(*TEXTS), 2008, 2008)).documents] == ["d1"]


# ---------------------------------------------------------------------------------------------------- Mixture


def test_mixture_repeats_documents_under_names_of_their_own(given, build):
    general, suspect = given(*documents(2, "g")), given(*documents(2, "s"))
    mixture = Mixture([{"corpus": general, "exposures": 1}, Component(suspect, 3)])
    corpus = build(mixture)
    assert corpus.doc_ids == ("g-0", "g-1", "s-0", "s-1", "s-0#2", "s-1#2", "s-0#3", "s-1#3")
    assert [d.text for d in corpus.documents[2::2]] == ["text s 0"] * 3
    assert {d.domain for d in corpus.documents} == {"g", "s"}
    twice = Mixture([Component(suspect, 1), Component(Select(suspect, num_documents=1, salt="s"), 1)])
    assert build(twice).doc_ids[2].endswith("#2")
    assert hash(mixture) == hash(Mixture((Component(general, 1), Component(suspect, 3))))


def test_no_exposure_is_the_control_of_a_dose(given, build):
    general, suspect = given(*documents(2, "g")), given(*documents(2, "s"))
    control, without = (Mixture([Component(general, 1), Component(suspect, 0)]), Mixture([Component(general, 1)]))
    assert control.identity() == without.identity()
    assert build(control).fingerprint == build(without).fingerprint
    assert Mixture([Component(general, 2)]).identity() != without.identity()


def test_bad_mixtures(given, build):
    base = given("a", "b")
    for components, message in (
        ([], "at least one component"),
        ([Component(base, 0)], "at least one component"),
        ([base], "must each have a `corpus` and its `exposures`"),
        ([{"corpus": base}], "must each have a `corpus` and its `exposures`"),
        ({"corpus": base, "exposures": 1}, "must be a list; got a mapping"),
        ([{"corpus": "general", "exposures": 1}], "must be a corpus recipe; got 'general'"),
        ([{"corpus": base, "exposures": 1.5}], "whole number of at least 0; got 1.5"),
    ):
        with pytest.raises(ValueError, match=message):
            Mixture(components)
    with pytest.raises(ValueError, match="'d0' names two different texts"):
        build(Mixture([Component(base, 1), Component(given("other"), 1)]))


# ---------------------------------------------------------------------------------------------------- recipes


def test_domains_have_no_order(given):
    base, two = given(*documents(5)), ("x", "y")
    assert Select(base, domains=two).identity() == Select(base, domains=two[::-1]).identity()
