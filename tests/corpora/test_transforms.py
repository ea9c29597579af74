"""Settings of transforms: each is part of the identity, and what cannot be is refused in one sentence."""

from __future__ import annotations

import functools
import json
from dataclasses import replace

import pytest

from nonmember.corpora import (
    Cleaned,
    Component,
    Dated,
    Joined,
    Mixture,
    NestedMixture,
    Neutral,
    Part,
    Prefixes,
    Select,
    Sharded,
    Shuffled,
    Titled,
    Viewed,
    Works,
    apply_view,
)
from nonmember.records import Corpus, Document
from tiny import Texts, build, texts

BOOK = Texts((Document("d", "text", cluster_id="A_Tale_of_Two_Cities_-_Charles_Dickens"),))
NINE = Texts(tuple(Document(f"x-{index}", f"text {index}", "", "x") for index in range(9)))
DATES = texts("Founded in 1950 and rebuilt in 1999.", "Opened in 2008.", "No date, 12345 of them.", "1990 to 2021.")
nested = functools.partial(NestedMixture, seen=NINE, unseen=BOOK, num_documents=3, rate=0.5, salt="a")
cleaned = functools.partial(
    Cleaned, min_words=5, max_words=50, long_documents="cut", near_duplicate_threshold=0.5, num_perm=64
)


part = functools.partial(Part, NINE, take="a", sizes={"a": 10, "b": 15}, by="document", per="corpus", salt="s")
neutral = functools.partial(Neutral, NINE, BOOK, half="third", num_documents=3, min_characters=4, max_characters=9)


@pytest.mark.parametrize(
    ("spec", "changes"),
    [
        (cleaned(NINE), {"min_words": 4, "max_words": 51, "long_documents": "drop", "num_perm": 128, "source": BOOK}),
        (nested(), {"rate": 0.6, "num_documents": 2, "salt": "b", "seen": DATES, "unseen": DATES}),
        (neutral(), {"half": "practice", "num_documents": None, "min_characters": 3, "max_characters": 8}),
        (Prefixes(NINE, [2]), {"lengths": (2, 3), "base": BOOK}),
        (Dated(NINE), {"first": 1950, "last": 2000}),
        (Titled(NINE, "(.)"), {"pattern": "(..)"}),
        (Viewed(NINE, "wrapped"), {"view": "lowercase"}),
        (Shuffled(NINE, "a"), {"salt": "b"}),
        (Joined(NINE, None), {"examples_per_document": 4}),
        (Sharded(NINE, 2, 9), {"num_shards": 3, "max_examples": 10}),
        (part(), {"take": "b", "sizes": {"b": 15, "a": 10}, "by": "cluster", "per": "domain", "salt": "t"}),
        (part(per="domain"), {"domains": ["x"], "sizes": {"a": 0.3, "b": 0.3}}),
        (Select(NINE, num_documents=3, salt="s"), {"salt": "t", "num_documents": 2, "domains": ["x"]}),
        (Mixture([Component(NINE, 1)]), {"components": [Component(NINE, 2)]}),
    ],
)
def test_each_setting_is_part_of_the_identity(spec, changes):
    specs = [spec, *(replace(spec, **{name: value}) for name, value in changes.items())]
    assert len({json.dumps(item.identity(), sort_keys=True) for item in specs}) == len(specs) == len(set(specs))
    assert replace(spec).identity() == spec.identity()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cleaned(NINE, min_words=0), "`min_words` of Cleaned must be a whole number of at least 1; got 0"),
        (lambda: cleaned(NINE, max_words=4), "`max_words` of Cleaned .* at least 5; got 4"),
        (lambda: cleaned(NINE, max_words=9.5), "whole number"),
        (lambda: cleaned(NINE, long_documents="split"), "one of cut, drop; got 'split'"),
        (lambda: cleaned(NINE, near_duplicate_threshold=80), r"in \[0.1, 1\] or null; got 80"),
        (lambda: cleaned(NINE, num_perm=8), "at least 16; got 8"),
        (lambda: cleaned({"packages": ["torch"]}), "`source` of Cleaned must be a corpus recipe; got a mapping"),
        (lambda: nested(rate=1.5), "`rate` of NestedMixture must be a number in .0, 1.; got 1.5"),
        (lambda: nested(rate="half"), "got 'half'"),
        (lambda: nested(num_documents=0), "`num_documents` of NestedMixture must be a whole number of at least 1"),
        (lambda: nested(salt=None), "`salt` of NestedMixture must be any text"),
        (lambda: nested(seen="text"), "`seen` of NestedMixture must be a corpus recipe"),
        (lambda: nested(unseen="text"), "`unseen` of NestedMixture must be a corpus recipe"),
        (lambda: Select(NINE, domains=["x"], num_documents=10, salt="s"), "needs 10 documents, but there are 9 in x"),
        (lambda: Select(NINE, domains=["q"]), "does not have: q"),
        (lambda: Select(NINE, num_documents=3), "`salt` of Select must be any text"),
        (lambda: Select(NINE, num_documents=0, salt="s"), "at least 1 or null; got 0"),
        (lambda: Dated(DATES, first=2050), "from 2050 to 2099 among 4; widen"),
        (lambda: Dated(NINE, 2005, 2000), "no earlier than `first`"),
        *((lambda lengths=lengths: Prefixes(NINE, lengths), "` of Prefixes") for lengths in ([], [0], [4, 4], [True])),
        (lambda: Prefixes(texts("a b c"), [4]), "documents of 4 words or more"),
        (lambda: Titled(NINE, "("), "`pattern` of Titled must be a regular expression"),
        (lambda: Titled(NINE, ":.*"), "`pattern` of Titled must have a group"),
        (lambda: Titled(texts("x"), ":(.+)"), "no title in the id 'd0'"),
        (lambda: Works(BOOK, r"(?P<title>"), "`pattern` of Works must be a regular expression"),
        (lambda: Works(BOOK, r"(.+)"), r"must have a group \(\?P<title>"),
        (lambda: Works(BOOK, r"(?P<title>\d+)"), "finds no title in the cluster 'A_Tale"),
        (lambda: Viewed(NINE, "reversed"), "`view` of Viewed must be one of"),
        (lambda: Viewed("base", "original"), "`base` of Viewed must be a corpus recipe"),
        (lambda: apply_view(Corpus(()), "reversed"), r"one of original, lowercase, .*; got 'reversed'"),
    ],
)
def test_what_cannot_be(make, message):
    with pytest.raises(ValueError, match=message):
        build(make())
