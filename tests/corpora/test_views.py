import pytest

from nonmember.corpora import apply_view, lowercase
from nonmember.records import Corpus, Document


def test_lowercase_changes_texts_only():
    corpus = Corpus((Document("A", "Some TEXT, \u0130n", "C", "D"),), {"empty": 1})
    lower = apply_view(corpus, "lowercase")
    assert lower == lowercase(corpus)
    assert lower.documents == (Document("A", "some text, i\u0307n", "C", "D"),)
    assert lower.dropped == {"empty": 1}
    assert lower.fingerprint != corpus.fingerprint
    assert apply_view(corpus, "original") is corpus


def test_unknown_view():
    with pytest.raises(ValueError, match="one of 'original', 'lowercase', but 'reversed'"):
        apply_view(Corpus(()), "reversed")
