"""Prefix completion: how passages are cut and compared, and what follows from matches."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

import tiny
from made_up_methods import PREFIX
from nonmember.audits.keys import audit_keys
from nonmember.audits.question import Audit
from nonmember.audits.run import run_audit
from nonmember.endpoints import Request
from nonmember.endpoints.asked import Asked
from nonmember.endpoints.models import Endpoint
from nonmember.methods import Roles
from nonmember.methods.prefix_completion import COMPLETION, CompletionProbe, token_sort_ratio
from nonmember.models import Pretrained
from nonmember.records import Corpus
from nonmember.stats.proportions import exact_upper_bound, fisher_greater
from scripted_models import EMPTY, FAILED, REFUSED, corpus_of, played, says

ENDPOINT = Endpoint("http://localhost:1/v1", "a-model", "chat", "KEY")
METHOD = replace(PREFIX, thresholds=[70, 80, 90])
PROBE = CompletionProbe(k=4, threshold=80, max_new_tokens=8, tokens_of=None, prompt="instruction")


# Similarity ----------------------------------------------------------------------------------------------------------


def lcs(one: str, other: str) -> int:
    lengths = [0] * (len(other) + 1)
    for a in one:
        before = lengths[:]
        for index, b in enumerate(other):
            lengths[index + 1] = before[index] + 1 if a == b else max(before[index + 1], lengths[index])
    return lengths[-1]


def by_definition(one: str, other: str) -> int:
    """docs/methods/prefix_completion.md, step by step."""
    one, other = (
        " ".join(sorted("".join(c if c.isalnum() else " " for c in text).lower().strip().split()))
        for text in (one, other)
    )
    return round(100 * 2 * lcs(one, other) / (len(one) + len(other))) if one or other else 0


def test_the_ratio_of_the_specification():
    """docs/methods/checks.md, TV7: LCS 19 of 22 and 22, 86.36."""
    assert lcs("cat mat on sat the the", "dog mat on sat the the") == 19
    assert token_sort_ratio("The cat sat, on the mat.", "on the mat the dog sat") == 86


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("the same words", "words, THE same!", 100),
        ("a_b", "b a", 100),  # an underscore is no letter
        ("", "", 0),
        ("...", "!?", 0),
        ("", "words", 0),
        ("ab", "cd", 0),
        ("a" * 199 + "b" * 41, "a" * 161, 80),  # 100 * 322 / 401 = 80.299: not above 80
        ("a" * 161 + "b" * 39, "a" * 161 + "c" * 39, 80),  # 80.5: halves to even
    ],
)
def test_ratios_by_hand(one, other, expected):
    assert token_sort_ratio(one, other) == expected


def test_the_ratio_is_that_of_its_definition():
    rng = np.random.default_rng(0)
    letters = list("abc  ,.'_ÄÉß1")
    for _ in range(300):
        item, other = ("".join(rng.choice(letters, size=rng.integers(0, 25))) for _ in range(2))
        assert token_sort_ratio(item, other) == by_definition(item, other), (item, other)


# Cutting -------------------------------------------------------------------------------------------------------------


def asked(text: str, probe: CompletionProbe = PROBE, **work: str) -> Request:
    (request,) = probe.ask(corpus_of([text], **work), {}).requests
    return request


def test_prefix_and_suffix_are_of_as_many_words():
    request = asked("one  two three\nfour five six seven eight nine")
    assert (request.plain, request.expected) == ("one  two three\nfour", "five six seven eight")
    assert (request.temperature, request.max_new_tokens, request.top_logprobs) == (0.0, 8, 0)


def test_a_shorter_passage_is_left_out_with_the_reason():
    questions = PROBE.ask(corpus_of(["1 2 3 4 5 6 7", "1 2 3 4 5 6 7 8"]), {})
    assert [request.doc_id for request in questions.requests] == ["d1"]
    assert questions.reasons == {"d0": "shorter than twice the number of tokens to complete"}


def test_a_chat_model_is_told_which_work_to_go_on_with():
    question = asked("a b c d moss fern g h", title="The Ferry", author="A. Ash").question
    assert '"The Ferry" by A. Ash' in question
    assert question.endswith("\n\na b c d")
    assert "moss" not in question
    assert '"' not in asked("a b c d e f g h").question


def test_a_completion_is_cut_to_as_many_tokens():
    request = asked("a b c d moss fern reed pine")
    longer = PROBE.parse(request, says(" moss fern reed pine and much more that nobody wrote"))
    assert (longer.read, longer.correct) == ("moss fern reed pine", True)
    shorter = PROBE.parse(request, says("moss"))
    assert (shorter.read, shorter.correct, shorter.valid) == ("moss", False, True)


def test_a_text_that_declines_is_no_answer_but_a_matching_one_is():
    request = asked("a b c d moss fern reed pine")
    assert not PROBE.parse(request, says("I'm sorry, but I can't provide verbatim text of this book.")).valid
    assert PROBE.parse(request, says("I cannot go there, said the ferryman.")).valid
    declining = asked("a b c d I'm sorry the passage")
    assert PROBE.parse(declining, says("I'm sorry, the passage")).correct


def test_whose_tokens_are_counted():
    def probe(target, **changes):
        (group,) = replace(METHOD, **changes).groups(Roles(target, target, tiny.SUSPECT, seed=1)).values()
        return group.measured[COMPLETION].probe

    own, tokenizer = tiny.scratch(1), Pretrained("a/tokenizer")
    assert (probe(own).tokenizer, probe(own).max_new_tokens) == (own, 4)
    assert (probe(ENDPOINT).tokenizer, probe(ENDPOINT).max_new_tokens) == (None, 8)
    assert (probe(ENDPOINT, tokenizer=tokenizer).tokenizer, probe(own, tokenizer=tokenizer).max_new_tokens) == (
        tokenizer,
        8,
    )


def test_settings_that_make_no_sense_are_refused():
    for changes, message in [
        ({"threshold": 100}, "threshold must be a whole number from 0 to 99"),
        ({"thresholds": [0.8]}, "each of thresholds must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            replace(METHOD, **changes)


# What follows --------------------------------------------------------------------------------------------------------


@functools.cache
def passages(number: int, per_book: int) -> Corpus:
    """Of four words and four, drawn from so many that no two are alike; of books, or for themselves."""
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{n}" for n in rng.integers(10**9, size=8)) for _ in range(number)]
    return corpus_of(texts, [f"book{n // per_book}" for n in range(number)] if per_book > 1 else ())


def group_of(rates, per_book: int = 1, seed: int = 0, answer=None):
    """Books whose passages are reproduced at these rates; documents for themselves where a book has one."""
    rng = np.random.default_rng(seed)
    number = len(rates) * per_book
    known = {f"d{n}": draw < rates[n // per_book] for n, draw in enumerate(rng.random(number))}

    def player(request: Request):
        return says(request.expected if known[request.doc_id] else "zzz qqq")

    return played(passages(number, per_book), {COMPLETION: (PROBE, answer or player)})


def outcome_of(suspect, heldout=None, **changes):
    documents = {"suspect": suspect} | ({"heldout": heldout} if heldout is not None else {})
    return replace(METHOD, **changes).test(documents, np.random.default_rng(0))


def test_reproduced_passages_are_evidence():
    outcome = outcome_of(group_of([0.4] * 60, seed=1), group_of([0.02] * 60, seed=2))
    told = outcome.details.to_json()
    hits = [told[name]["num_matched"] for name in ("suspect", "heldout")]
    assert hits[0] > 15 > hits[1]
    assert outcome.p_value == pytest.approx(fisher_greater(hits[0], 60, hits[1], 60))
    assert outcome.p_value == pytest.approx(told["fisher_p_value_of_passages"])
    assert outcome.statistic == hits[0] / 60
    assert (told["mean_suspect"], told["mean_heldout"]) == (hits[0] / 60, hits[1] / 60)
    assert outcome.verdict == "evidence_of_membership"
    assert outcome.allowed_claim.startswith(f"{hits[0]} of 60 passages were reproduced.")
    assert told["suspect"]["upper_bound"] == pytest.approx(exact_upper_bound(hits[0], 60, 0.05))
    assert told["suspect"]["matched_above"] == {"70": hits[0], "80": hits[0], "90": hits[0]}
    json.dumps(told, allow_nan=False)


def test_nothing_reproduced_shows_nothing():
    outcome = outcome_of(group_of([0.0] * 40, seed=1), group_of([0.0] * 40, seed=2))
    assert (outcome.statistic, outcome.p_value, outcome.verdict) == (0, 1, "inconclusive")
    assert "not that the documents were not read" in outcome.allowed_claim
    assert not re.search("not memori|clean of", outcome.allowed_claim)
    assert outcome.details.to_json()["suspect"]["upper_bound"] == pytest.approx(1 - 0.05 ** (1 / 40))


def test_the_other_direction_is_no_evidence_of_anything():
    outcome = outcome_of(group_of([0.0] * 40, seed=1), group_of([0.6] * 40, seed=2))
    assert outcome.verdict == "inconclusive"


def test_without_a_clean_set_there_is_no_decision():
    outcome = outcome_of(group_of([0.5] * 30))
    assert np.isnan(outcome.p_value)
    assert outcome.verdict == "score_only"
    assert 0 < outcome.ci_low < outcome.statistic < outcome.ci_high < 1


def test_answers_that_are_none_are_counted_and_not_scored():
    answers = {"d0": REFUSED, "d1": EMPTY, "d2": FAILED, "d3": says("I'm sorry, I can't continue this passage.")}
    group = group_of([1.0] * 10, answer=lambda request: answers.get(request.doc_id, says(request.expected)))
    told = outcome_of(group).details.to_json()["suspect"]
    assert (told["num_documents"], told["num_matched"]) == (6, 6)
    counted = ("num_refused", "num_empty", "num_failed", "num_unreadable", "num_too_short")
    assert [told[name] for name in counted] == [1, 1, 1, 1, 0]
    assert str(group.excluded["d0"]) == "completion: an answer about it was refused"


def test_a_set_of_which_nothing_is_answered_is_invalid():
    refused = group_of([0.0] * 10, answer=lambda _: REFUSED)
    outcome = outcome_of(refused, group_of([0.0] * 10))
    assert outcome.verdict == "invalid"
    assert np.isnan(outcome.statistic)
    json.dumps(outcome.details.to_json(), allow_nan=False)


def test_a_threshold_is_a_bound_that_must_be_passed():
    words = "moss fern reed pine"
    similarity = token_sort_ratio("moss fern reed lark", words)
    assert 50 < similarity < 90
    group = played(corpus_of([f"a b c d {words}"] * 3), {COMPLETION: (PROBE, lambda _: says("moss fern reed lark"))})
    told = outcome_of(group, thresholds=[similarity - 1, similarity]).details.to_json()["suspect"]
    assert told["matched_above"] == {str(similarity - 1): 3, str(similarity): 0} | (
        {"80": 3 if similarity > 80 else 0} if similarity != 80 else {}
    )


@pytest.mark.slow  # worlds by the hundred
def test_books_are_compared_and_not_their_passages():
    """Where books differ in how often they are quoted and the two sets do not differ, single passages deceive."""
    rejected, deceived, number = 0, 0, 200
    rng = np.random.default_rng(5)
    for world in range(number):
        rates = rng.beta(0.3, 0.9, size=(2, 12))
        groups = [group_of(rates[side], per_book=8, seed=2 * world + side) for side in (0, 1)]
        outcome = outcome_of(*groups)
        rejected += outcome.verdict == "evidence_of_membership"
        deceived += outcome.details.to_json()["fisher_p_value_of_passages"] < 0.05
    assert 0.02 <= rejected / number <= 0.08, rejected
    assert deceived / number > 0.1, deceived


@pytest.mark.slow
def test_known_books_are_found():
    rng = np.random.default_rng(6)
    found = [
        outcome_of(
            group_of(rng.beta(2, 4, 12), per_book=6, seed=2 * world),
            group_of(rng.beta(0.3, 6, 12), per_book=6, seed=2 * world + 1),
        ).verdict
        for world in range(30)
    ]
    assert found.count("evidence_of_membership") >= 28


# The whole way -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_on_a_tiny_model(tmp_path):
    """By its own tokens and its own greedy continuation."""
    audit = Audit(
        tiny.scratch(1),
        tiny.scratch(2),
        tiny.SUSPECT,
        METHOD,
        seed=5,
        corpus_label="suspect",
        heldout=tiny.GENERAL,
        heldout_label="general",
    )
    result = run_audit(audit, shop := tiny.builder(tmp_path / "store"), tmp_path / "one")
    assert (result.verdict.decision, result.statistics.value, result.provenance.keys.keys()) == (
        "inconclusive",
        0,
        {"target", "corpus", "heldout", "audit"},
    )
    loaded = shop.get(audit.target)
    (probe,) = [item.probe for item in METHOD.groups(audit.roles)["suspect"].measured.values()]
    found = Asked("target", audit.target, tiny.SUSPECT, probe).measure(shop).values
    assert result.statistics.num_documents == sum(map(bool, found.answers))
    for answers in filter(None, found.answers):
        request, text = answers[0].request, answers[0].completion.text
        document = next(item.text for item in tiny.SUSPECT.documents if item.doc_id == request.doc_id)
        ids = loaded.tokenizer(document)["input_ids"]
        assert loaded.tokenizer(request.plain)["input_ids"] == ids[:4]
        assert request.expected == loaded.tokenizer.decode(ids[4:8]).strip()
        written = loaded.model.generate(torch.tensor([ids[:4]]), max_new_tokens=4, do_sample=False, pad_token_id=0)
        assert text == loaded.tokenizer.decode(written[0, 4:], skip_special_tokens=True)


def test_another_tokenizer_is_part_of_the_question(tmp_path):
    shop = tiny.builder(tmp_path / "store")
    keys = []
    for number, corpus in enumerate((tiny.GENERAL, tiny.SUSPECT)):
        folder = tmp_path / f"tokenizer{number}"
        tiny.scratch(1, corpus).load_tokenizer(shop).save_pretrained(folder)
        method = replace(METHOD, tokenizer=Pretrained(str(folder)))
        keys.append(audit_keys(Audit(tiny.scratch(1), tiny.scratch(2), tiny.SUSPECT, method, 5, "suspect"), shop))
    assert keys[0]["tokenizer"] != keys[1]["tokenizer"]
    assert keys[0]["audit"] != keys[1]["audit"]
