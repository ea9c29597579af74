"""Scores against the published vectors, their guards, and their sign."""

import dataclasses
import math
import zlib

import numpy as np
import pytest

from nonmember.records import Question, TokenTable
from nonmember.scores import (
    AnswerProbability,
    DcPdd,
    Loss,
    Lowercase,
    MaxK,
    MinK,
    MinKPlusPlus,
    Perplexity,
    Perturbed,
    ReferenceDifference,
    ReferenceRatio,
    ScoreInputs,
    TopLoss,
    Zlib,
    token_counts,
)
from nonmember.scores.base import NO_TOKENS, SMALL_NLL
from nonmember.scores.relative import zlib_bytes
from nonmember.scores.tails import num_smallest

NAN = pytest.approx(math.nan, nan_ok=True)

# TV1: three tokens, four positions.
TV1_P = np.array([[0.7, 0.2, 0.1], [0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [0.6, 0.3, 0.1]])
TV1_OBSERVED = [0, 1, 0, 2]


def table(documents, mean=None, std=None, token_id=None):
    """A token table of {doc_id: log-probabilities}; mean, std and token ids likewise, or plain ones."""
    log_prob = np.array([value for values in documents.values() for value in values], dtype=np.float32)

    def column(values, default, dtype):
        if values is None:
            return np.full(len(log_prob), default, dtype=dtype)
        return np.array([value for doc_id in documents for value in values[doc_id]], dtype=dtype)

    lengths = [len(values) for values in documents.values()]
    return TokenTable(
        doc_ids=tuple(documents),
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        position=np.concatenate([np.arange(1, n + 1) for n in lengths] or [[]]).astype(np.int32),
        token_id=column(token_id, 0, np.int32),
        log_prob=log_prob,
        mean=column(mean, -2.0, np.float32),
        std=column(std, 1.0, np.float32),
    )


def tv1():
    log_p = np.log(TV1_P)
    mean = (TV1_P * log_p).sum(1)
    std = np.sqrt((TV1_P * (log_p - mean[:, None]) ** 2).sum(1))
    return table({"tv1": log_p[np.arange(4), TV1_OBSERVED]}, {"tv1": mean}, {"tv1": std}, {"tv1": TV1_OBSERVED})


def value(score, inputs):
    (only,) = score(inputs).values
    return only


@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (Loss(), -1.587035),
        (TopLoss(1), -0.609029),  # one of .7; the others, below 1/2, count as log 1/2
        (MinK(k=0.25), -2.302585),
        (MinK(k=0.5), -2.302585),
        (MinK(k=1), -1.587035),
        (MinKPlusPlus(k=0.25), -2.501457),
        (MinKPlusPlus(k=0.5), -2.250729),
        (MinKPlusPlus(k=1), -1.217091),
        (MinKPlusPlus(k=0.2), -2.501457),
        (MinKPlusPlus(k=0.2, compat="official"), NAN),
        (MinK(k=0.2, compat="official"), NAN),
        (MinKPlusPlus(k=0.5, compat="official"), -2.250729),
        (MaxK(k=0.25), -0.356675),
        (MaxK(k=0.5), -0.871485),
        (Perplexity(), -4.889230),
    ],
)
def test_vector_tv1(score, expected):
    if isinstance(expected, float):
        expected = pytest.approx(expected, abs=1e-6)
    assert value(score, ScoreInputs(tv1())) == expected


def test_top_loss_needs_no_more_than_the_largest_of_each_place():
    """Of 200 places with 50 tokens each: from what is among the 5 likeliest, and from the whole distribution."""
    rng = np.random.default_rng(0)
    log_p = np.log(rng.dirichlet(np.full(50, 0.1), size=200))
    tokens = rng.integers(50, size=200)
    whole = log_p[np.arange(200), tokens]
    is_among = whole >= np.sort(log_p, axis=1)[:, -5]
    seen = np.where(is_among, whole, -np.inf)  # all that such an endpoint says of the text's tokens
    assert value(TopLoss(5), ScoreInputs(table({"a": seen}))) == value(TopLoss(5), ScoreInputs(table({"a": whole})))
    assert 0 < is_among.sum() < 200


def test_vector_tv1_zlib():
    text = "the cat sat on the mat"
    if zlib_bytes(text) != 27:
        pytest.skip(f"this zlib build makes {zlib_bytes(text)} bytes of it")
    assert value(Zlib(), ScoreInputs(tv1(), texts=[text])) == pytest.approx(-0.058779, abs=1e-6)


def test_zlib_counts_the_whole_stream_of_utf8():
    assert zlib_bytes("größe \u2014 ß") == len(zlib.compress("größe \u2014 ß".encode()))


@pytest.mark.parametrize(("a", "expected", "saturated"), [(0.01, 0.008434, 2 / 3), (0.1, 0.039485, 0.0)])
def test_vector_tv7_dc_pdd(a, expected, saturated):
    p = np.array([0.9, 0.02, 0.5, 0.001])
    counts = np.array([0, 50, 4, 945, 0])
    tokens = table({"tv7": np.log(p)}, token_id={"tv7": [3, 1, 3, 2]})
    scores = DcPdd(a=a)(ScoreInputs(tokens, counts=counts))
    assert scores.values == pytest.approx([expected], abs=1e-6)
    assert scores.counters["saturated_share"] == pytest.approx(saturated)


def test_dc_pdd_first_occurrences_are_per_document():
    documents = {"a": [-1.0, -2.0], "b": [-3.0]}
    tokens = table(documents, token_id={"a": [1, 1], "b": [1]})
    scores = DcPdd(a=10.0)(ScoreInputs(tokens, counts=np.array([7, 1])))
    q = 2 / 10
    assert scores.values == pytest.approx([math.exp(-1) * -math.log(q), math.exp(-3) * -math.log(q)])


def test_dc_pdd_asks_for_the_view_it_scores():
    assert DcPdd(a=0.01).views == ("original",)
    assert DcPdd(a=0.01, prepend_eos=True).views == ("prepend_eos",)


def test_dc_pdd_refuses_counts_of_a_smaller_vocabulary():
    tokens = table({"a": [-1.0]}, token_id={"a": [5]})
    with pytest.raises(ValueError, match="Token id 5"):
        DcPdd(a=0.01)(ScoreInputs(tokens, counts=np.ones(5, dtype=np.int64)))


def test_token_counts_are_occurrences_not_documents():
    assert token_counts([[1, 1, 2], [2], []], vocab_size=4).tolist() == [0, 2, 2, 0]
    with pytest.raises(ValueError, match="outside the vocabulary"):
        token_counts([[4]], vocab_size=4)


@pytest.mark.parametrize("k", [0.05, 0.2, 0.33, 0.7, 1.0])
def test_min_k_is_the_mean_of_the_sorted_head(k):
    rng = np.random.default_rng(0)
    documents = {str(n): -rng.exponential(size=n) for n in range(1, 60)}
    expected = [
        np.sort(values.astype(np.float32).astype(float))[: max(1, math.floor(len(values) * k + 1e-9))].mean()
        for values in documents.values()
    ]
    assert MinK(k=k)(ScoreInputs(table(documents))).values == pytest.approx(expected, abs=1e-12)


def test_the_rounding_trap_of_a_fraction():
    assert int(90 * 0.7) == 62
    num_tokens = np.array([0, 1, 4, 90])
    assert num_smallest(num_tokens, 0.7, "none").tolist() == [0, 1, 2, 63]
    assert num_smallest(num_tokens, 0.7, "official").tolist() == [0, 0, 2, 62]


def test_no_spread_is_guarded_and_counted():
    tokens = table(
        {"a": [-1.0, -1.0, -3.0]}, mean={"a": [-1.0, -1.5, -2.0]}, std={"a": [0.0, 0.0, 0.5]}
    )  # z = 0, 0.5 / 1e-6, -2
    scores = MinKPlusPlus(k=1.0)(ScoreInputs(tokens))
    assert scores.values == pytest.approx([(0 + 5e5 - 2) / 3])
    assert scores.counters == {"sigma_below_eps": 2}
    official = MinKPlusPlus(k=1.0, compat="official")(ScoreInputs(tokens))
    assert np.isnan(official.values).all()
    assert "0 / 0" in official.reasons["a"]
    rounded = table({"a": [-1.0]}, mean={"a": [-1.0000005]}, std={"a": [0.0]})  # a sure token, up to rounding
    assert MinKPlusPlus(k=1.0)(ScoreInputs(rounded)).values.tolist() == [0.0]


def test_official_says_why_nothing_is_left():
    scores = MinK(k=0.2, compat="official")(ScoreInputs(table({"short": [-1.0] * 4, "long": [-1.0] * 5})))
    assert np.isnan(scores.values).tolist() == [True, False]
    assert list(scores.reasons) == ["short"]
    assert "k = int(T K) = 0" in scores.reasons["short"]


QUANTITIES = ("ppl_ratio", "ppl_difference", "loss_ratio", "loss_difference")


def all_scores():
    return [
        Loss(),
        Perplexity(),
        TopLoss(5),
        Zlib(),
        Lowercase(),
        MinK(k=0.2),
        MinKPlusPlus(k=0.2),
        MaxK(k=0.2),
        *(Perturbed("random_deletion", quantity) for quantity in QUANTITIES),
        ReferenceDifference(),
        ReferenceRatio(),
        DcPdd(a=0.5),
    ]


def inputs_of(documents, other=None):
    """Everything a score can ask for; the other model and view find every text equally likely."""
    other = {doc_id: np.full(len(values), -2.0) for doc_id, values in documents.items()} if other is None else other
    return ScoreInputs(
        tokens=table(documents, token_id={doc_id: range(len(values)) for doc_id, values in documents.items()}),
        other_view=table(other),
        reference=table(other),
        texts=["abcdefgh"] * len(documents),
        counts=np.ones(100, dtype=np.int64),
    )


@pytest.mark.parametrize("score", all_scores(), ids=lambda score: score.name)
def test_a_text_the_model_likes_better_scores_higher(score):
    unlikely = np.linspace(-6, -1, 20)
    values = score(inputs_of({"non-member": unlikely, "member": unlikely * 0.8})).values
    assert values[1] > values[0]


@pytest.mark.parametrize("score", all_scores(), ids=lambda score: score.name)
def test_empty_documents_have_no_score_and_a_reason(score):
    scores = score(inputs_of({"a": [-1.0, -2.0], "empty": [], "b": [-3.0, -1.0]}))
    assert np.isnan(scores.values).tolist() == [False, True, False]
    assert scores.reasons == {"empty": NO_TOKENS}
    assert scores.values.dtype == np.float64


@pytest.mark.parametrize("score", all_scores(), ids=lambda score: score.name)
def test_a_corpus_of_nothing(score):
    assert np.isnan(score(inputs_of({"empty": []})).values).all()
    assert score(inputs_of({})).values.shape == (0,)


@pytest.mark.parametrize("score", all_scores(), ids=lambda score: score.name)
def test_order_of_the_tables_does_not_matter(score):
    rng = np.random.default_rng(0)
    documents = {f"doc {n}": -rng.exponential(2, size=n) for n in (7, 30, 12, 1, 18)}
    other = {doc_id: -rng.exponential(2, size=len(values) + 1) for doc_id, values in documents.items()}
    inputs = inputs_of(documents, other)
    shuffled = {doc_id: other[doc_id] for doc_id in sorted(other, reverse=True)}
    expected = dict(zip(inputs.tokens.doc_ids, score(inputs).values, strict=True))
    again = score(dataclasses.replace(inputs, other_view=table(shuffled), reference=table(shuffled)))
    assert dict(zip(again.doc_ids, again.values, strict=True)) == expected
    moved = {doc_id: documents[doc_id] for doc_id in sorted(documents)}
    after_move = score(inputs_of(moved, shuffled))
    assert dict(zip(after_move.doc_ids, after_move.values, strict=True)) == expected


@pytest.mark.parametrize("score", [Lowercase(), ReferenceRatio()], ids=lambda score: score.name)
def test_a_text_that_costs_nothing_has_no_ratio(score):
    scores = score(inputs_of({"known by heart": [-1e-9, 0.0], "other": [-1.0, -2.0]}))
    assert np.isnan(scores.values).tolist() == [True, False]
    assert scores.reasons == {"known by heart": SMALL_NLL}


@pytest.mark.parametrize(
    ("score", "side"),
    [(Lowercase(), "lowercased"), (ReferenceDifference(), "reference"), (ReferenceRatio(), "reference")],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_text_that_is_empty_on_the_other_side_only(score, side):
    scores = score(inputs_of({"a": [-1.0], "b": [-1.0]}, other={"a": [], "b": [-1.0]}))
    assert np.isnan(scores.values).tolist() == [True, False]
    assert scores.reasons == {"a": f"{side}: {NO_TOKENS}"}


def test_ratios_of_log_perplexities():
    inputs = inputs_of({"a": [-1.0, -3.0]}, other={"a": [-4.0, -5.0, -6.0]})
    assert value(Lowercase(), inputs) == pytest.approx(2.5)
    assert value(ReferenceRatio(), inputs) == pytest.approx(2.5)
    assert value(ReferenceDifference(), inputs) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("quantity", "expected"), zip(QUANTITIES, [-math.exp(2 - 5), math.exp(5) - math.exp(2), 2.5, 3.0], strict=True)
)
def test_a_text_against_its_perturbed_version(quantity, expected):
    inputs = inputs_of({"a": [-1.0, -3.0]}, other={"a": [-4.0, -5.0, -6.0]})
    assert value(Perturbed("random_deletion", quantity), inputs) == pytest.approx(expected)


def test_probability_of_an_answer():
    question = Question("Is it so?", ("Yes", "No"))
    tokens = table({"a": np.log([0.7, 0.2]), "silent": [], "b": np.log([0.1, 0.6])})
    yes, no = (AnswerProbability(question, answer)(ScoreInputs(tokens)) for answer in question.answers)
    assert yes.values == pytest.approx([0.7, math.nan, 0.1], nan_ok=True)
    assert no.values == pytest.approx([0.2, math.nan, 0.6], nan_ok=True)
    assert list(yes.reasons) == ["silent"]


def test_texts_must_belong_to_the_documents():
    with pytest.raises(ValueError, match="one text per document, and got 2 for 1"):
        Zlib()(ScoreInputs(table({"a": [-1.0]}), texts=["a", "b"]))


def test_tables_of_other_corpora_are_refused():
    inputs = inputs_of({"a": [-1.0], "b": [-1.0]}, other={"a": [-1.0]})
    with pytest.raises(ValueError, match="first 'b'"):
        ReferenceDifference()(inputs)
