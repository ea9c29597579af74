"""Sampled completion: similarities by hand, what is asked, and what follows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nonmember.corpora.transforms.cleaning import near_duplicates
from nonmember.methods import SampledCompletion
from nonmember.methods.sampled_completion import SAMPLED, coverage, longest, rouge_1_recall, words_of
from nonmember.stats.proportions import fisher_greater
from scripted_models import EMPTY, REFUSED, corpus_of, played, says

METHOD = SampledCompletion(
    similarity="coverage",
    num_samples=2,
    prompt="bare",
    temperature=1.0,
    most_words=12,
    least_words=6,
    ngram=3,
    max_new_tokens=16,
    seed=7,
    num_permutations=199,
    alpha=0.05,
    max_tokens=64,
)
TRUE = "f g h i j k"


@pytest.mark.parametrize(
    ("written", "true", "expected"),
    [
        # covered of 6 words; longest run of 6; recalled of 6
        ("f g h i j k", TRUE, (1, 1, 1)),
        ("x f g h y", TRUE, (3 / 6, 3 / 6, 3 / 6)),
        ("f g x h i", TRUE, (0, 2 / 6, 4 / 6)),  # no run of three
        ("h i j k h", TRUE, (4 / 6, 4 / 6, 4 / 6)),
        ("f g h x i j k", TRUE, (1, 3 / 6, 1)),  # two runs that meet
        ("k j i h g f", TRUE, (0, 1 / 6, 1)),
        ("a a a a", "a b a c", (0, 1 / 4, 2 / 4)),  # a word counts as often as it stands there
        ("a b a b a", "a b a b", (1, 1, 1)),
        ("", TRUE, (0, 0, 0)),
        ("f g", "f g", (0, 1, 1)),  # shorter than an n-gram
        ("f", "", (0, 0, 0)),
    ],
)
def test_similarities_by_hand(written, true, expected):
    pair = written.split(), true.split()
    assert (coverage(*pair, 3), longest(*pair), rouge_1_recall(*pair)) == pytest.approx(expected)


def test_coverage_is_that_of_its_definition():
    """Words in any n-gram, n >= L, that both have; looked for among all n-grams."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        written, true = ([str(word) for word in rng.integers(0, 4, size=rng.integers(1, 15))] for _ in range(2))
        covered = set()
        for size in range(2, len(true) + 1):
            there = {tuple(written[at : at + size]) for at in range(len(written) - size + 1)}
            for at in range(len(true) - size + 1):
                if tuple(true[at : at + size]) in there:
                    covered |= set(range(at, at + size))
        assert coverage(written, true, 2) == pytest.approx(len(covered) / len(true))


def test_words_are_runs_of_letters_and_digits():
    assert words_of("It's_ the 2nd Über-word!") == ["it", "s", "the", "2nd", "über", "word"]


@pytest.mark.parametrize("text", ["我们在河边走了很久。", "สวัสดีครับผมชื่อ", "これは日本語の文です"])
def test_scripts_without_blanks_are_compared_by_characters(text):
    """Else such a text is one word: too short to be asked about, and a copy of nothing."""
    (first, _) = METHOD.probe.ask(corpus_of([text]), {}).requests
    assert first.plain + first.expected == text[: METHOD.most_words]
    assert coverage(words_of(f"x {text}"), words_of(text), 3) == 1
    assert near_duplicates([text * 20, f"{text * 20}!"], 0.8, 128).tolist() == [False, True]


def test_the_first_half_is_shown_and_each_sample_has_a_seed_of_its_own():
    text = "a  b c\nd e f g h i j k l and more that is not used"
    questions = METHOD.probe.ask(corpus_of([text, "a b c d e"]), {})
    first, second = questions.requests
    assert (first.plain, first.expected) == ("a  b c\nd e f", "g h i j k l")
    assert first.question.endswith("\n\na  b c\nd e f")
    assert [item.seed for item in (first, second)] == [7, 8]
    in_words = replace(METHOD, prompt="instruction").probe.ask(corpus_of([text]), {}).requests[0]
    assert (first.bare, in_words.bare, first) == (True, False, replace(in_words, bare=True))
    assert (first.temperature, first.max_new_tokens) == (1.0, 16)
    assert first.key() != second.key()
    assert questions.reasons == {"d1": "fewer than 6 words"}


def test_a_sample_is_cut_to_the_length_of_the_ending_and_a_refusal_left_out():
    request = METHOD.probe.ask(corpus_of(["a b c d e f"]), {}).requests[0]
    assert METHOD.probe.parse(request, says(" x d e f g")).read == "x d e"
    refusal = METHOD.probe.parse(request, says("I'm sorry, but I can't continue this passage."))
    assert not refusal.valid


def scored(name, answer):
    rows = [" ".join(f"{name}{index}x{at}" for at in range(12)) for index in range(12)]
    return played(corpus_of(rows), {SAMPLED: (METHOD.probe, answer)})


def test_group_test_and_numbers_by_hand():
    """Suspect documents of an even number are written out by the second of two samples; held-out ones never are."""

    def answer(request):
        index = int(request.doc_id[1:])
        if (index, request.name) == (11, "sample-1"):
            return REFUSED
        if (index, request.name) == (10, "sample-0"):
            return EMPTY
        read = request.plain.startswith("s") and index % 2 == 0 and request.name == "sample-1"
        return says(f" {request.expected} and on" if read else "nothing of it")

    documents = {"suspect": scored("s", answer), "heldout": scored("h", answer)}
    outcome = METHOD.test(documents, np.random.default_rng(0))
    details = outcome.details.to_json()
    assert outcome.statistic == pytest.approx(0.5)
    assert outcome.p_value == pytest.approx(fisher_greater(6, 12, 0, 12))  # similarities of 0 and 1
    assert (outcome.verdict, details["mean_heldout"]) == ("evidence_of_membership", 0)
    # One of two samples recalls all: .5; of number 10 the other one is empty and is left out: 1.
    samia = details["similarities"]["samia"]
    assert samia == {"suspect": pytest.approx((5 * 0.5 + 1) / 12), "heldout": 0, "auc": pytest.approx(0.75)}
    assert details["suspect"]["num_samples"] == 22
    by_samia = replace(METHOD, similarity="samia")
    assert by_samia.probe.value(documents["suspect"].answers[SAMPLED][0]) == 0.5
    few = METHOD.test(documents | {"heldout": scored("h", lambda request: EMPTY)}, np.random.default_rng(0))
    assert few.verdict == "invalid"


def test_settings_that_make_no_sense_are_refused():
    for changes, message in [({"most_words": 5}, "most_words must be at least least_words, 6; got 5")]:
        with pytest.raises(ValueError, match=message):
            replace(METHOD, **changes)
