"""DE-COP: what it asks, how it reads the answers, what it concludes; simulated models with known membership."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

import tiny
from made_up_methods import DECOP
from nonmember.audits.keys import audit_keys
from nonmember.audits.measuring import join
from nonmember.audits.question import Audit
from nonmember.audits.run import run_audit
from nonmember.corpora.sources.paraphrases import Paraphrases
from nonmember.endpoints import Answer, Completion, ParsedAnswer, Request
from nonmember.endpoints.asked import parsed_answers
from nonmember.endpoints.models import Endpoint, Recorded
from nonmember.endpoints.rephrased import Written
from nonmember.methods import Roles, ScoredDocuments
from nonmember.methods.decop.questions import (
    INSTRUCTION,
    ORDERS,
    PARAPHRASE,
    MultipleChoice,
    RecordedChoice,
    balanced,
    letter_in,
    letter_probabilities,
    question,
)
from nonmember.models import Pretrained
from nonmember.records import Corpus, Document
from nonmember.results.result import AuditResult
from nonmember.stats.letter_choice import LETTERS

# Questions ----------------------------------------------------------------------------------------------------------


def test_all_orders_are_the_lexicographic_permutations():
    assert balanced(24) == list(range(24))
    assert list(permutations(range(4))) == list(ORDERS)
    letters = "".join(LETTERS[order.index(0)] for order in ORDERS)
    # As in the recorded answers: the right option of the queries 0 to 23.
    assert letters == "AAAAAABBCDCDBBCDCDBBCDCD"


@pytest.mark.parametrize("number", [4, 8, 12, 16, 20, 24])
def test_a_subset_is_balanced_over_the_letters(number):
    chosen = balanced(number)
    assert len(chosen) == number == len(set(chosen))
    places = Counter(ORDERS[item].index(0) for item in chosen)
    assert set(places.values()) == {number // 4}
    for letter in range(4):  # and the paraphrases stand in the same orders beside each
        beside = {tuple(part for part in ORDERS[item] if part) for item in chosen if ORDERS[item].index(0) == letter}
        assert len(beside) == number // 4
        assert beside == {tuple(part for part in ORDERS[item] if part) for item in chosen if ORDERS[item].index(0) == 0}


@pytest.mark.parametrize("number", [0, 3, 6, 25, 28, 4.0, True])
def test_other_numbers_of_orders_are_refused(number):
    with pytest.raises(ValueError, match="num_orders must be one of 4, 8, 12, 16, 20 and 24"):
        balanced(number)


def book(name: str, passage: int = 0, text: str = "the  original\ntext", **more) -> Document:
    return Document(f"{name}, {passage}", text, cluster_id=name, **{"title": f"The {name}", "author": "Ann"} | more)


def paraphrases_of(*documents: Document) -> tiny.Texts:
    return tiny.Texts(
        tuple(
            replace(item, doc_id=f"{item.doc_id}#{number}", text=f"text {number} of {item.doc_id}")
            for item in documents
            for number in (1, 2, 3)
        )
    )


def probe(*documents: Document, **changes) -> MultipleChoice:
    plain = {
        "reading": "text",
        "max_new_tokens": 2,
        "top_logprobs": 20,
        "seed": 5,
        "num_orders": 24,
        "work": "book",
        "exam": "exam",
        "paraphrases": paraphrases_of(*documents),
    }
    return MultipleChoice(**plain | changes)


def questions_of(asked: MultipleChoice, *documents: Document):
    return asked.ask(Corpus(documents), {"paraphrases": asked.paraphrases.build(lambda spec: spec)})


def test_the_question_is_the_papers():
    (first, *_), seventh = (requests := questions_of(probe(book("Moss")), book("Moss")).requests), requests[6]
    assert len(requests) == 24
    assert first.instruction == INSTRUCTION["exam"]
    assert first.instruction.startswith("You are entering a multiple choice questions exam.")
    assert first.question == (
        'Question: Which of the following passages is verbatim from the "The Moss" book by Ann?\nOptions:\n'
        "A. the original text\nB. text 1 of Moss, 0\nC. text 2 of Moss, 0\nD. text 3 of Moss, 0\nAnswer:"
    )
    assert (first.name, first.expected, seventh.name, seventh.expected) == ("0", "A", "6", "B")
    assert seventh.options == ("text 1 of Moss, 0", "the original text", "text 2 of Moss, 0", "text 3 of Moss, 0")
    assert (first.temperature, first.max_new_tokens, first.top_logprobs, first.seed) == (0.0, 2, 0, 5)
    assert first.as_text == f"{first.instruction}\n\n{first.question}"
    for request in requests:
        place = LETTERS.index(request.expected)
        assert request.question.splitlines()[2 + place] == f"{request.expected}. the original text"
    assert len({request.name for request in requests}) == len({request.options for request in requests}) == 24


def test_papers_and_open_models_are_asked_in_their_words():
    assert question("paper", "On Moss", "Ann", "wxyz").startswith(
        'Question: Which of the following passages is verbatim from the arXiv paper "On Moss"?\nOptions:\nA. w\n'
    )
    assert 'from the "On Moss" book?' in question("book", "On Moss", "", "wxyz")
    assert INSTRUCTION["quoted"].endswith("\nFormat your answer as '<put correct answer here>'")
    (first, *_) = questions_of(probe(book("Moss"), exam="bare"), book("Moss")).requests
    assert first.instruction == ""


def test_probabilities_are_asked_for_where_they_are_read():
    (first, *_) = questions_of(probe(book("Moss"), reading="probabilities"), book("Moss")).requests
    assert first.top_logprobs == 20


def test_documents_that_cannot_be_asked_about_say_why():
    good, untitled, textless, lone, alike = (
        book("Moss"),
        book("Fern", title=""),
        book("Reed", text=" "),
        book("Pine"),
        book("Lark", text="text 2 of Lark, 0"),
    )
    found = questions_of(probe(good, untitled, textless, alike), good, untitled, textless, lone, alike)
    assert {request.doc_id for request in found.requests} == {"Moss, 0"}
    assert found.reasons == {
        "Fern, 0": "no title to ask by",
        "Reed, 0": "its text is not at hand",
        "Pine, 0": "no three different paraphrases of it are at hand",
        "Lark, 0": "no three different paraphrases of it are at hand",
    }


def test_recorded_questions_are_known_by_name():
    recorded = tiny.Texts(
        (Document("Moss, 0, 7", "B", cluster_id="Moss, 0"), Document("Else, 0, 0", "A", cluster_id="Else, 0"))
    )
    asked = RecordedChoice("text", 4, 20, 0, recorded)
    found = asked.ask(Corpus((book("Moss", text=""), book("Fern", text=""))), {"questions": Corpus(recorded.documents)})
    assert [(item.doc_id, item.name, item.expected) for item in found.requests] == [("Moss, 0", "Moss, 0, 7", "B")]
    assert found.reasons == {"Fern, 0": "no question about it was recorded"}
    wrong = Corpus((Document("Moss, 0, 7", "E", cluster_id="Moss, 0"),))
    with pytest.raises(ValueError, match="must be one of A, B, C and D; got 'E'"):
        asked.ask(Corpus((book("Moss"),)), {"questions": wrong})


# Answers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("A", "A"),
        (" B.", "B"),
        ("'C'", "C"),
        ("\n(D)", "D"),
        ("**A**", "A"),
        ("B) the moss", "B"),
        ("C: it", "C"),
        ("D\nbecause", "D"),
        ("“A”", "A"),
        ("b", "B"),
        ("(B)", "B"),
        ("Answer: B", "B"),
        ("answer: b", "B"),
        ("\\boxed{B}", "B"),
        ("The answer is \\boxed{\\text{B}}.", "B"),
        ("Option C", "C"),
        ("The answer is A", "A"),
        ("The correct answer is **D**.", "D"),
        ("A safe choice is option C.", "C"),
        ("B is verbatim", "B"),
        ("C. I read it. A good book", "C"),
        ("B or D", ""),
        ("A and C", ""),
        ("A, C", ""),
        ("A/C", ""),
        ("Option A or option C", ""),
        ("The answer is B or D", ""),
        ("The answer is a passage", ""),
        ("The answer is A passage", ""),
        ("A passage", ""),
        ("A-level", ""),
        ("", ""),
        ("As an AI", ""),
        ("Based on", ""),
        ("E", ""),
        ("A's", ""),
        ("*", ""),
        ("D1", ""),
    ],
)
def test_a_letter_is_read_by_the_form_of_the_answer(text, letter):
    assert letter_in(text) == letter


def alternatives(**of) -> list[tuple[str, float]]:
    pairs = [(token.replace("_", " "), math.log(p)) for token, p in of.items()]
    return sorted(pairs, key=lambda pair: -pair[1])


def test_probabilities_are_the_softmax_over_the_letters():
    found = letter_probabilities([alternatives(A=0.4, B=0.2, C=0.1, D=0.1, The=0.2)])
    np.testing.assert_allclose(found, [0.5, 0.25, 0.125, 0.125])


def test_the_variant_with_more_mass_is_read():
    found = letter_probabilities([alternatives(A=0.1, C=0.15, _A=0.2, _B=0.35, _D=0.2)])
    np.testing.assert_allclose(found, [0.2 / 0.75, 0.35 / 0.75, 0, 0.2 / 0.75])


def test_quotation_marks_before_the_letter_are_passed_over():
    quote = alternatives(**{"'": 0.9, "A": 0.1})
    np.testing.assert_allclose(letter_probabilities([quote, alternatives(B=0.75, D=0.25)]), [0, 0.75, 0, 0.25])
    assert letter_probabilities([quote]) is None


def test_where_another_word_is_likelier_there_is_no_answer():
    assert letter_probabilities([alternatives(The=0.5, A=0.4, B=0.1)]) is None
    assert letter_probabilities([]) is None
    assert letter_probabilities([()]) is None


def test_both_readings_judge_alike():
    request = Request("d", "0", "?", 1, 0.0, 0, expected="B")
    by_text, by_probability = probe(book("Moss")), probe(book("Moss"), reading="probabilities")
    for completion, judged in [
        (Completion("B", "answered", top_logprobs=(tuple(alternatives(B=0.6, A=0.4)),)), ParsedAnswer(True, True, "B")),
        (
            Completion("A", "answered", top_logprobs=(tuple(alternatives(B=0.4, A=0.6)),)),
            ParsedAnswer(True, False, "A"),
        ),
        (Completion("As", "answered", top_logprobs=(tuple(alternatives(As=0.9, A=0.1)),)), ParsedAnswer(False, False)),
    ]:
        assert by_text.parse(request, completion) == by_probability.parse(request, completion) == judged
    even = Completion("D", "answered", top_logprobs=(tuple(alternatives(D=0.25, C=0.25, B=0.25, A=0.25)),))
    assert by_probability.parse(request, even).read == "A", "ties go to the earlier letter"


# Roles and settings -------------------------------------------------------------------------------------------------

ROLES = Roles(Pretrained("the/target"), Pretrained("the/reference"), tiny.SUSPECT, 9, tiny.GENERAL, tiny.texts("new"))


def test_the_paraphraser_writes_about_each_group():
    groups = DECOP.groups(ROLES)
    assert list(groups) == ["suspect", "heldout"]
    for group, corpus in zip(groups.values(), (ROLES.suspect, ROLES.heldout), strict=True):
        (asked,) = group.measured.values()
        written = Written(
            corpus,
            DECOP.paraphraser,
            PARAPHRASE["short"],
            temperature=0.1,
            max_new_tokens=100,
            max_tokens=60,
            seed=9,
            whole=True,
        )
        assert (asked.role, asked.model, asked.probe.corpora) == (
            "target",
            ROLES.target,
            {"paraphrases": Paraphrases(corpus, written)},
        )
    assert PARAPHRASE["short"].request("moss").endswith("Example D: <paraphrase 3> -Example A: moss")
    assert PARAPHRASE["long"].request("moss").startswith("Rewrite this entire text (all sentences with no exception)")
    given = replace(DECOP, paraphrases=tiny.GENERAL).groups(ROLES)["suspect"].measured["decop"]
    assert given.probe.corpora == {"paraphrases": tiny.GENERAL}


def test_calibration_asks_about_further_documents():
    calibrated = replace(DECOP, reading="probabilities", calibrate=True)
    assert list(calibrated.groups(ROLES)) == ["suspect", "heldout", "unseen"]
    with pytest.raises(ValueError, match=r"calibrates the letters on further works .*method\.calibrate=false"):
        calibrated.groups(replace(ROLES, unseen=None))
    with pytest.raises(ValueError, match="compares the suspect set with text of the same kind"):
        DECOP.groups(replace(ROLES, heldout=None))


def test_recorded_questions_need_a_recorded_model():
    recorded = replace(DECOP, questions=tiny.GENERAL)
    with pytest.raises(ValueError, match="only a recorded model has answers to them"):
        recorded.groups(ROLES)
    (asked,) = recorded.groups(replace(ROLES, target=Recorded("a.csv", "m")))["suspect"].measured.values()
    assert asked.probe.corpora == {"questions": tiny.GENERAL}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"paraphraser": None}, "needs a paraphraser, paraphrases in a file or recorded questions"),
        ({"calibrate": True}, "Calibration needs the letters' probabilities"),
        ({"num_few": 51}, "num_few must be a whole number from 2 to 50; got 51"),
        ({"passage_length": "huge"}, "passage_length must be one of"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(DECOP, **changes)


def test_groups_that_share_a_book_are_refused():
    first, second = Corpus((book("Moss", 0),)), Corpus((book("Moss", 1),))
    with pytest.raises(ValueError, match=r"share 1 clusters, first 'Moss'.*data\.unseen"):
        DECOP.check({"suspect": Corpus((book("Fern"),)), "heldout": first, "unseen": second})
    with pytest.raises(ValueError, match="share 1 documents, first 'Moss, 0'"):
        DECOP.check({"suspect": first, "heldout": first})
    DECOP.check({"suspect": first, "heldout": Corpus((book("Fern", 1), book("Fern", 2)))})


# What it concludes --------------------------------------------------------------------------------------------------

WEIGHTS = np.array([0.15, 0.5, 0.3, 0.05])  # how much the simulated models like each letter


def played(
    rng,
    num_works: int,
    knows: float,
    *,
    passages: int = 3,
    probabilities: bool = False,
    valid: float = 1.0,
    group: str = "s",
    weights=WEIGHTS,
) -> ScoredDocuments:
    """A group as a model answers that recognises each passage with a chance that spreads over works around `knows`, and
    else follows its liking for letters."""
    ids, clusters, found = [], [], []
    likes = np.cumsum(weights)[:-1]
    for work in range(num_works):
        chance = float(np.clip(rng.normal(knows, 0.08), 0, 1)) if knows else 0.0
        for passage in range(passages):
            remembered = rng.random() < chance
            ids.append(f"{group}{work}, {passage}")
            clusters.append(f"{group}{work}")
            answers = []
            for number in balanced(4):
                right = ORDERS[number].index(0)
                p = rng.dirichlet(weights * 20)
                if remembered:
                    p = 0.3 * p + 0.7 * np.eye(4)[right]
                letter = int(np.argmax(p)) if probabilities or remembered else int(np.searchsorted(likes, rng.random()))
                is_valid = rng.random() < valid
                top = tuple(sorted(zip(LETTERS, np.log(p + 1e-300).tolist(), strict=True), key=lambda item: -item[1]))
                request = Request(ids[-1], str(number), "?", 1, 0.0, 0, expected=LETTERS[right])
                completion = Completion("x", "answered", top_logprobs=(top,) if probabilities and is_valid else ())
                judged = ParsedAnswer(is_valid, is_valid and letter == right, LETTERS[letter] if is_valid else "")
                answers.append(Answer(request, completion, judged))
            found.append(tuple(answers))
    values = np.array([np.mean([item.parsed.correct for item in answers]) for answers in found])
    return ScoredDocuments(tuple(ids), {"decop": values}, tuple(clusters), answers={"decop": tuple(found)})


def concluded(suspect: float, clean: float, *, seed: int = 0, num_works: int = 25, **more):
    rng = np.random.default_rng(seed)
    changes = {"reading": "probabilities", "calibrate": True} if more.get("probabilities") else {}
    groups = {
        "suspect": played(rng, num_works, suspect, group="s", **more),
        "heldout": played(rng, num_works, clean, group="c", **more),
    }
    if changes:
        groups["unseen"] = played(rng, num_works, 0.0, group="u", **more)
    return replace(DECOP, **changes).test(groups, rng), groups


def accuracies(documents: ScoredDocuments) -> list[float]:
    books: dict[str, list[bool]] = {}
    for cluster, answers in zip(documents.cluster_ids, documents.answers["decop"], strict=True):
        books.setdefault(cluster, []).extend(item.parsed.correct for item in answers)
    return [float(np.mean(right)) for right in books.values()]


def test_books_are_what_is_compared():
    """Of 25 books with 12 questions each the test has 25 values, and not 300."""
    outcome, groups = concluded(0.5, 0.0)
    first, second = accuracies(groups["suspect"]), accuracies(groups["heldout"])
    welch = stats.ttest_ind(first, second, equal_var=False)
    assert outcome.p_value == pytest.approx(welch.pvalue)
    assert outcome.statistic == pytest.approx(np.mean(first) - np.mean(second))
    assert outcome.ci_low < outcome.statistic < outcome.ci_high
    assert outcome.verdict == "evidence_of_membership"
    assert "no legal conclusion" in outcome.allowed_claim
    details = outcome.details.to_json()
    assert (details["num_suspect_works"], details["num_heldout_works"]) == (25, 25)
    assert details["works"]["suspect"]["accuracy"] == pytest.approx(first)
    assert details["works"]["suspect"]["name"][:2] == ["s0", "s1"]
    assert set(details["few_resamples"]) == {"best_balanced_acc", "roc_auc", "mean_suspect"}
    assert details["best_balanced_acc"] > 0.8
    assert details["questions_per_work"] == {"suspect": 12, "heldout": 12}
    assert "best balanced accuracy" in details["in_words"]
    assert "area under the ROC curve" in details["in_words"]
    assert json.loads(json.dumps(details, allow_nan=False)) == details


def test_position_bias_shows_in_the_details():
    outcome, _ = concluded(0.3, 0.3, num_works=60)
    letters = outcome.details.to_json()["letters"]["heldout"]
    assert letters["chosen"]["B"] > 0.35
    assert letters["chosen"]["D"] < 0.2
    assert letters["accuracy"]["B"] > letters["accuracy"]["D"] + 0.2


def test_calibration_raises_what_bias_hid():
    outcome, _ = concluded(0.6, 0.0, probabilities=True)
    details = outcome.details.to_json()
    assert details["calibration"]["num_works"] == 25
    assert details["calibration"]["offsets"]["B"] == pytest.approx(-0.25, abs=0.05)
    assert details["calibration"]["well_calibrated"]["heldout"] == {"before": 0.0, "after": 1.0}
    assert details["letters"]["unseen"]["probability_calibrated"] == pytest.approx(dict.fromkeys(LETTERS, 0.25))
    assert details["letters"]["heldout"]["chosen_calibrated"]["B"] < details["letters"]["heldout"]["chosen"]["B"] - 0.3
    assert len(details["works"]["suspect"]["probability"]) == 25
    assert outcome.verdict == "evidence_of_membership"
    assert outcome.statistic == pytest.approx(details["mean_suspect"] - details["mean_heldout"])
    assert details["uncalibrated"]["mean_suspect"] != details["mean_suspect"]


@pytest.mark.parametrize(("probabilities", "num_draws"), [(False, 300), (True, 150)])
@pytest.mark.slow  # the same is asked of Welch's test
def test_where_nothing_was_read_it_rejects_as_often_as_it_says(probabilities, num_draws):
    """Two groups that the model has not read, with position bias, drawn anew each time; a claim only in one direction.
    The bounds hold with a probability above .999."""
    outcomes = [
        concluded(0.0, 0.0, seed=seed, num_works=10, passages=2, probabilities=probabilities)[0]
        for seed in range(num_draws)
    ]
    p_values = np.array([item.p_value for item in outcomes])
    low, high = stats.binom.ppf([0.0005, 0.9995], num_draws, 0.05) / num_draws
    assert low <= np.mean(p_values < 0.05) <= high
    assert stats.kstest(p_values, "uniform").pvalue > 0.001
    low, high = stats.binom.ppf([0.0005, 0.9995], num_draws, 0.025) / num_draws
    assert low <= np.mean([item.verdict == "evidence_of_membership" for item in outcomes]) <= high


@pytest.mark.slow
def test_what_was_read_is_found():
    found = [concluded(0.5, 0.05, seed=seed, num_works=18)[0].verdict for seed in range(20)]
    assert found.count("evidence_of_membership") >= 19


def test_better_on_the_clean_books_is_inconclusive():
    outcome, _ = concluded(0.0, 0.6)
    assert outcome.p_value < 0.001
    assert outcome.verdict == "inconclusive"
    assert "not evidence that the works were not used" in outcome.allowed_claim
    assert any("does better on the clean works" in warning for warning in outcome.warnings)


@pytest.mark.parametrize("probabilities", [False, True])
def test_a_model_that_does_not_answer_is_invalid(probabilities):
    outcome, _ = concluded(0.6, 0.0, valid=0.8, probabilities=probabilities)
    assert outcome.verdict == "invalid"
    assert any("does not follow the instruction" in warning for warning in outcome.warnings)
    silent, _ = concluded(0.6, 0.0, valid=0.0, probabilities=probabilities)
    assert silent.verdict == "invalid"
    json.dumps(silent.details.to_json(), allow_nan=False)


def test_too_few_books_are_invalid():
    for num_works, reason in ((4, "4 works left; the test needs 5"), (1, "1 works left")):
        outcome, _ = concluded(0.9, 0.0, num_works=num_works)
        assert outcome.verdict == "invalid"
        assert any(reason in warning for warning in outcome.warnings)


def test_a_model_that_always_says_b_is_invalid():
    """Every book then has the same share of right answers, and no test is defined."""
    outcome, _ = concluded(0.0, 0.0, weights=np.array([0.0, 1.0, 0.0, 0.0]) + 1e-12)
    assert outcome.verdict == "invalid"
    assert any("have the same share of right answers, 0.250" in warning for warning in outcome.warnings)


# From documents to a result -----------------------------------------------------------------------------------------


class Player:
    """A chat model that has read some books: it recognises each of their passages with a chance, likes the letter B,
    and does not always answer."""

    def __init__(self, read: set[str], chance: float) -> None:
        self.read, self.chance, self.asked = read, chance, 0

    def completions(self, model, requests):
        found = []
        for request in requests:
            self.asked += 1
            passage = np.random.default_rng([*request.doc_id.encode()])
            knows = request.doc_id.partition(",")[0] in self.read and passage.random() < self.chance
            here = np.random.default_rng([*f"{request.doc_id} {request.name}".encode()])
            letter = request.expected if knows else LETTERS[here.choice(4, p=WEIGHTS)]
            if here.random() < 0.02:
                found.append(Completion("I cannot tell.", "answered"))
            elif here.random() < 0.01:
                found.append(Completion("", "failed", reason="too long"))
            else:
                found.append(Completion(f" {letter}.", "answered", prompt_tokens=9))
        return found


def shelf(name: str, number: int, *, longer: bool = False) -> tiny.Texts:
    """Books of three passages."""
    texts = iter(tiny.random_texts(3 * number, seed=len(name) + number, words=10))
    return tiny.Texts(
        tuple(
            book(f"{name}{work}", passage, f"{next(texts)} {work} {passage}{' moss' * 20 * longer}")
            for work in range(number)
            for passage in range(3)
        )
    )


def audited(tmp_path, player: Player, suspect: tiny.Texts, clean: tiny.Texts, monkeypatch) -> AuditResult:
    originals = (*suspect.documents, *clean.documents)
    words = tiny.random_texts(3 * len(originals), seed=3, words=10)
    paraphrases = tiny.Texts(
        tuple(
            replace(item, doc_id=f"{item.doc_id}#{number}", text=f"{words[3 * index + number - 1]} {index} {number}")
            for index, item in enumerate(originals)
            for number in (1, 2, 3)
        )
    )
    method = replace(DECOP, paraphraser=None, paraphrases=paraphrases)
    model = Endpoint("http://localhost:1/v1", "player", "chat", "NO_KEY")
    audit = Audit(model, model, suspect, method, 1, "old books", heldout=clean, heldout_label="new books")
    builder = tiny.builder(tmp_path / "store")
    monkeypatch.setattr(Endpoint, "complete", lambda self, builder, requests: player.completions(self, requests))
    monkeypatch.setattr(Endpoint, "require", lambda *_: None)
    assert audit_keys(audit, builder)["suspect/decop/paraphrases"]
    return run_audit(audit, builder, tmp_path / "run")


@pytest.mark.slow
def test_a_model_with_known_reading_is_told_from_one_without(tmp_path, monkeypatch):
    suspect, clean = shelf("old", 20), shelf("new", 20)
    names = {item.cluster_id for item in suspect.documents}
    read = audited(tmp_path / "a", Player(names, 0.6), suspect, clean, monkeypatch)
    assert (read.verdict.decision, read.question.target, read.question.heldout, read.question.truth) == (
        "evidence_of_membership",
        "player",
        "new books",
        None,
    )
    assert read.statistics.num_documents == 60
    assert read.health.capability == {"target": {}}
    answers = read.statistics.details["answers"]["suspect"]
    assert answers["num_unreadable"] > 0
    assert answers["num_answered"] + answers["num_unreadable"] == answers["num_requests"] < 240
    assert any(
        "questions of decop about the suspect set have no answer (too long" in item for item in read.verdict.warnings
    )
    unread = audited(tmp_path / "b", Player(set(), 0.6), suspect, clean, monkeypatch)
    assert unread.verdict.decision == "inconclusive"


def test_texts_that_give_themselves_away_are_warned_of(tmp_path, monkeypatch):
    result = audited(tmp_path, Player(set(), 0.0), shelf("old", 12, longer=True), shelf("new", 12), monkeypatch)
    blind = result.statistics.details["blind"]["longest"]
    assert blind["first"] == 1.0
    assert blind["second"] < 0.5
    (warning,) = [item for item in result.verdict.warnings if "`longest`" in item]
    assert "it is easier in one group" in warning


def test_documents_without_texts_say_that_the_control_was_not_run():
    outcome, _ = concluded(0.5, 0.0)
    assert outcome.details.to_json()["blind"] is None
    assert any("The texts are not at hand" in warning for warning in outcome.warnings)


def test_parsed_answers_count_a_documents_failed_questions():
    questions = questions_of(probe(book("Moss"), num_orders=4), book("Moss"))
    completions = [Completion("A", "answered")] * 2 + [Completion("", "failed", reason="too long")] * 2
    found = parsed_answers(probe(book("Moss")), ["Moss, 0"], questions, completions)
    assert found.failed == {"too long": 2}
    documents = join(Corpus((book("Moss"),)), {"decop": found})
    assert (len(documents.answers["decop"][0]), documents.excluded) == (2, {})


@pytest.mark.slow
def test_a_model_on_this_machine_that_knows_no_letters_is_invalid(tmp_path):
    """The whole way through a model with weights: questions, answers with probabilities, the verdict."""
    suspect, clean = shelf("old", 5), shelf("new", 5)
    given = paraphrases_of(*suspect.documents, *clean.documents)
    method = replace(DECOP, paraphraser=None, paraphrases=given, reading="probabilities", answer_tokens=1)
    target = tiny.scratch(1, max_position_embeddings=2048)
    audit = Audit(target, target, suspect, method, 1, "old books", heldout=clean)
    builder = tiny.builder(tmp_path / "store", max_batch_tokens=8192)
    result = run_audit(audit, builder, tmp_path / "run")
    assert result.verdict.decision == "invalid"
    assert result.statistics.details["answers"]["suspect"]["num_requests"] == 5 * 3 * 4
    assert any("does not follow the instruction" in warning for warning in result.verdict.warnings)
    assert result.statistics.details["blind"] is not None
    again = run_audit(audit, tiny.builder(tmp_path / "store"), tmp_path / "again")
    assert again.provenance.made["tokens_observed"] == 0
