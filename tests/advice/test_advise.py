"""Advice: what is said can be said, what is missing is named, and every command is one that exists."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import shutil
from dataclasses import fields, replace
from inspect import signature
from pathlib import Path

import pytest

import nonmember as nm
from nonmember.advice import Situation, advise
from nonmember.advice.advise import WORTH, as_text
from nonmember.advice.contestants import CONTESTANTS
from nonmember.advice.measured import FILE, VERSION, all_measured, measured
from nonmember.advice.situation import about_texts, offered, past_audits
from nonmember.api.advising import advise as looked_up
from nonmember.cli.advise import arguments
from nonmember.config.build import build
from nonmember.config.compose import composed
from nonmember.config.given import given
from nonmember.methods import McPdd
from nonmember.records import Corpus, Document
from nonmember.records.requirements import Access
from wandb_helpers import lay_down, result

ROOT = Path(__file__).parents[2]
EVERYTHING = Situation(
    access="weights",
    documents=500,
    heldout="same_draw",
    **{f.name: True for f in fields(Situation) if f.type == "bool"},
)


def names(options):
    return [option.name for option in options]


def test_the_measured_numbers_are_those_of_the_reports():
    """The file that ships is what its script makes of docs/results."""
    made = runpy.run_path(str(ROOT / "docs" / "measured_powers.py"))["made"]()
    assert FILE.read_text(encoding="utf-8") == made, "run: python docs/measured_powers.py"
    assert {item.method for item in all_measured()} >= {"dose", "prism", "llm_di", "order", "fsd", "kds"}


def test_numbers_that_were_read_by_eye():
    """Cells of docs/results, typed from the tables."""
    dose = measured("dose", "own base", "non_membership")
    assert (dose[0].count, dose[0].of, dose[1].count, dose[1].of) == (35, 35, 0, 55)
    prism = measured("prism", "", "non_membership")
    assert (prism[0].count, prism[0].of, prism[1].count, prism[1].of, prism[0].low) == (75, 94, 3, 6, 0.7)
    small = measured("prism", "", "non_membership", 60)  # 50 is nearer than 100
    assert (small[0].count, small[0].of, small[1].count, small[1].of) == (8, 12, 6, 8)
    losses = measured("prism", "loss", "non_membership", 150)
    assert [(item.count, item.of) for item in losses.values()] == [(11, 12), (0, 12)]
    assert [(item.count, item.of) for item in measured("llm_di", "", "membership").values()] == [
        (0, 24),
        (0, 24),
        (0, 12),
        (5, 12),
        (12, 12),
    ]
    planted = measured("canary", "", "membership", 500)
    assert [(item.count, item.of) for item in planted.values()] == [(21, 400), (1, 4), (2, 4), (4, 4), (4, 4), (4, 4)]
    assert measured("mc_pdd", "", "membership") == {}, "nothing was measured, and nothing is said"


@pytest.mark.parametrize("contestant", CONTESTANTS, ids=lambda item: item.title)
def test_claims_are_data_of_the_method(contestant):
    if contestant.method is None or not contestant.says:
        assert contestant.method is None or contestant.method.claim is None
    elif contestant.method is McPdd:
        side = "member" if "method.reference=member" in contestant.given else "non_member"
        assert (McPdd.hypothesis({"reference": side})[0],) == contestant.says
    else:
        assert contestant.method.claim in contestant.says


@pytest.mark.slow
def test_every_command_composes(tmp_path):
    """With files and models in the places of the words in capitals, the question is complete."""
    (tmp_path / "text.jsonl").write_text('{"text": "moss fern", "TITLE": "a", "WORK": "b"}\n')
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    words = {"FILE": tmp_path / "text.jsonl", "URL": "http://localhost/v1", "NAME": "m", "HASH": "0" * 64}
    words |= dict.fromkeys(("MODEL", "REFERENCE", "BASE", "STAND_IN", "OUT_MODEL"), tmp_path / "model")
    words["OTHER_OUT_MODEL"] = shutil.copytree(tmp_path / "model", tmp_path / "other")
    advised = [advise(replace(EVERYTHING, access=access)) for access in ("weights", "logprobs", "text")]
    options = {item.command: item for found in advised for item in (*found.concluding, *found.beside)}
    assert len(options) > 20
    for option in options.values():
        command = re.sub(rf"(?<=[=\[,])({'|'.join(words)})\b", lambda m: str(words[m[1]]), option.command)
        _, name, *overrides = shlex.split(command)
        with composed(name, overrides) as (config, _):
            if name == "audit":
                _, audit = given(config)
                assert audit.method.name == option.name
                if "related" in option.command:
                    assert audit.method.controls.related is not None


def test_with_everything_every_method_is_possible():
    found = advise(EVERYTHING)
    assert not found.impossible
    assert set(names(found.concluding)) == {item.name for item in CONTESTANTS if item.says}
    values = [option.value for option in found.concluding]
    good = [value for value in values if value is not None and value > WORTH]
    assert values[: len(good)] == sorted(good, reverse=True)
    assert {*values[len(good) : values.index(None) + values.count(None)]} == {None}, "what was not measured comes after"
    without = {item.name for item in found.concluding if not item.measured}
    assert {item.name for item in found.concluding if item.value is None} == without, "what was measured has a value"


@pytest.mark.parametrize("documents", [50, 100, 150, 500])
def test_the_default_of_a_method_comes_before_its_other_scores(documents):
    found = advise(replace(EVERYTHING, documents=documents)).concluding
    scores = [item.contestant.setting for item in found if item.name == "difference_in_differences"]
    assert (scores[0], {*scores}) == ("wbc(2-40)", {"wbc(2-40)", "loss"})
    with composed("audit", ["method=difference_in_differences"]) as (config, _):
        assert build(config.method.score).name == scores[0]
    assert names(found).index("difference_in_differences") < names(found).index("llm_di")


def test_the_power_of_canaries_is_by_copies_and_of_no_number_of_texts():
    found = as_text(advise(Situation("logprobs", 5000, canaries=True)), all=True)
    assert "21 of 400 unread (false), 1 of 4 with one copy, 2 of 4 with 2 copies" in found
    assert "no size closer" not in found


def test_with_nothing_nothing_is_concluded():
    found = advise(Situation())
    assert (found.concluding, found.beside) == ((), ())
    assert "No method can reach a verdict with this access and data." in as_text(found, all=True)


@pytest.mark.parametrize("situation", [Situation(), Situation("text"), Situation("weights"), EVERYTHING])
def test_one_more_thing_makes_possible_what_it_says(situation):
    possible = {(item.contestant.title, item.says) for item in advise(situation).concluding}
    for what, option in advise(situation).next_things:
        assert (option.contestant.title, option.says) not in possible, what
        assert not option.missing
    if situation is EVERYTHING:
        assert advise(situation).next_things == ()


def test_text_of_another_date_supports_no_comparison_of_texts():
    found = advise(Situation("weights", heldout="other_date", titles=True, follows=True))
    assert not {"llm_di", "mc_pdd"} & {*names(found.concluding)}
    assert "blind" in names(found.beside)
    assert "Text of another date differs because of its date" in as_text(found, all=True)


def test_without_related_text_the_meter_speaks_of_non_membership_alone():
    alone, related = (advise(Situation("weights", base=True, related=item)).concluding[0] for item in (False, True))
    assert (alone.says, related.says) == (("non_membership",), ("non_membership", "membership"))


def test_costs_and_money():
    (option,) = (
        item
        for item in advise(
            Situation("text", 100, 50, "same_draw", titles=True, follows=True, input_price=2.0, output_price=4.0)
        ).concluding
        if item.name == "mc_pdd"
    )
    assert (option.cost.requests, option.cost.asked, option.cost.answered) == (400, 400 * 150, 400 * 60)
    assert "0.22 in the currency" in as_text(
        all=True,
        advice=advise(replace(EVERYTHING, access="text", documents=100, tokens=50, input_price=2.0, output_price=4.0)),
    )


def test_texts_are_counted_and_past_audits_timed(tmp_path):
    texts = Corpus((Document("a", "one two three four", "book", "", "title"), Document("b", "five six")))
    assert about_texts(texts) == {"documents": 2, "tokens": 4, "works": True, "titles": True}
    assert past_audits(tmp_path / "none") == {}
    for index, seconds in enumerate((10.0, 30.0, 20.0)):
        lay_down(tmp_path / str(index), result(method="llm_di", seconds=seconds))
    (tmp_path / "empty").mkdir()
    assert past_audits(tmp_path / "empty") == {}
    (tmp_path / "failed").mkdir()
    (tmp_path / "failed" / "error.json").write_text('{"cell": "a", "error": "no luck", "kind": "ValueError"}')
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "result.json").write_text("{}")
    assert {name: (past.seconds, past.number) for name, past in past_audits(tmp_path).items()} == {"llm_di": (20.0, 3)}
    said = as_text(advise(Situation("logprobs", heldout="same_draw"), past_audits(tmp_path)), all=True)
    assert "20 seconds, median of 3 audits" in said


def test_what_can_be_looked_up_is(make_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = nm.advise(target=make_model(0), documents=["moss fern reed pine"] * 40, reference=True)
    assert (found.situation.access, found.situation.documents, found.situation.tokens) == ("weights", 40, 5)
    assert f"target.path={make_model(0)}" in found.concluding[0].command
    assert "data.path=FILE" in found.concluding[0].command, "texts in memory have no place"
    assert set(names(found.concluding)) == {"prism"}
    assert not list(tmp_path.glob("outputs/audits"))


class Offers:
    """A model that can only be queried. most: access that it gives."""

    has_weights = False

    def __init__(self, most: Access | None) -> None:
        self.most = most
        self.asked: list[Access] = []

    def require(self, builder, access: Access, what: str) -> None:
        self.asked.append(access)
        if self.most is None or access > self.most:
            raise ValueError(f"{what} needs {access.name}")


@pytest.mark.parametrize(
    ("most", "name"),
    [(Access.PROMPT_LOGPROBS, "logprobs"), (Access.TOP_LOGPROBS, "top_logprobs"), (Access.TEXT, "text")],
)
def test_an_endpoint_is_asked_for_the_most_first_and_for_no_less_than_it_gives(most, name):
    model = Offers(most)
    assert offered(None, model) == name
    assert model.asked == sorted(model.asked, reverse=True)
    assert model.asked[-1] == most


def test_an_endpoint_that_answers_nothing_says_why():
    with pytest.raises(ValueError, match="advice needs TEXT"):
        offered(None, Offers(None))


def test_words_for_the_target_and_the_texts_are_those_of_an_audit(nonmember):
    words = ["target.url=http://h/v1", "target.model=no", "data.path=a.jsonl", "documents=150", "base=true"]
    assert arguments(words[:3]) == {"target": {"url": "http://h/v1", "model": "no"}, "documents": "a.jsonl"}
    assert arguments(words[3:]) == {"documents": 150, "base": True}
    said = nonmember("advise")
    assert (said.status, said.err) == (0, "")
    examples = re.findall(r"^  nonmember advise (.*?)(?:      .*)?$", said.out, re.MULTILINE)
    assert len(examples) == 4
    known = {*signature(looked_up).parameters, *(item.name for item in fields(Situation))}
    assert {key for example in examples for key in arguments(example.split())} <= known


@pytest.mark.parametrize(
    ("given_words", "sentence"),
    [
        (["acess=text"], "acess is not a key of advise; the keys are access, documents"),
        (["access=api"], "access must be one of none, text"),
        (["documents=0"], "documents must be a whole number of at least 1"),
        (["base=perhaps"], "base must be true or false"),
        (["weights"], "Expected key=value"),
    ],
)
def test_what_cannot_be_is_said(nonmember, given_words, sentence):
    said = nonmember("advise", *given_words)
    assert said.status == 1
    assert sentence in said.err


def test_the_pasted_answers_are_up_to_date():
    """docs/which-method.md: the command gives the text beneath it."""
    page = (ROOT / "docs" / "which-method.md").read_text(encoding="utf-8")
    pasted = re.findall(r"```bash\nnonmember advise (access=[^\n]*)\n```\n\n```text\n(.*?)```", page, flags=re.S)
    assert len(pasted) == 1
    for words, answer in pasted:
        assert str(looked_up(outputs="no such folder", **arguments(words.split()))) == answer, words


def test_the_file_says_what_it_was_made_from():
    held = json.loads(FILE.read_text(encoding="utf-8"))
    assert held["version"] == VERSION
    assert all((ROOT / path).is_file() for path in held["made_from"])


def test_two_further_things_are_named_where_neither_alone_allows_as_much():
    """Without unread text and without a reference: together they allow the difference in differences."""
    found = {option.name: what for what, option in advise(Situation(access="weights")).next_things}
    assert "reference model" in found["difference_in_differences"]
    assert "unread text" in found["difference_in_differences"]


def test_what_was_measured_on_real_models_comes_before_what_was_not():
    with_answers = Situation(access="text", heldout="same_draw", follows=True, titles=True)
    first, *others = names(advise(with_answers).concluding)
    assert first == "sampled_completion"
    assert "mc_pdd" in others
