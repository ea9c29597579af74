"""Prompts as ids: plainly or by the model's own template, the text cut and never the cue."""

from __future__ import annotations

import copy

import pytest

import tiny
from nonmember.models import templates
from nonmember.models.loading import train_tokenizer
from nonmember.models.prompting import answer_ids, prompt_ids, room_for_text, shortened
from nonmember.records import Prompt, Question

SAY = Question("Yes or No?", answers=("Yes", "No"))
WITHOUT_SYSTEM = (
    "{% for turn in messages %}{% if turn.role == 'system' %}{{ raise_exception('no system turn') }}{% endif %}"
    "[{{ turn.role }}]{{ turn.content }}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
)
WITH_SYSTEM = (
    "{% for turn in messages %}[{{ turn.role }}]{{ turn.content }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


@pytest.fixture(scope="module")
def tokenizer():
    learnt = tiny.texts("Yes Yes Yes Yes No No No No", *(f"{word} Yes No" for word in tiny.WORDS))
    return train_tokenizer(learnt.build(lambda spec: spec), 300)


def with_template(tokenizer, template: str):
    other = copy.deepcopy(tokenizer)
    other.chat_template = template
    return other


def test_a_plain_prompt_ends_with_the_cue(tokenizer):
    (ids,) = prompt_ids(tokenizer, SAY, ["moss fern"])
    assert tokenizer.decode(ids) == "Yes or No?\n\nText: moss fern\nResponse:"
    assert [tokenizer.decode(item) for item in answer_ids(tokenizer, SAY)] == [" Yes", " No"]


def test_a_chat_template_has_the_instruction_as_its_system_turn(tokenizer):
    chat = with_template(tokenizer, WITH_SYSTEM)
    (ids,) = prompt_ids(chat, SAY, ["moss"])
    assert tokenizer.decode(ids) == "[system]Yes or No?[user]Text: moss\nResponse:[assistant]"
    assert [tokenizer.decode(item) for item in answer_ids(chat, SAY)] == ["Yes", "No"]


def test_without_a_system_turn_the_user_gives_the_instruction(tokenizer):
    chat = with_template(tokenizer, WITHOUT_SYSTEM)
    (ids,) = prompt_ids(chat, SAY, ["moss"])
    assert tokenizer.decode(ids) == "[user]Yes or No?\n\nText: moss\nResponse:[assistant]"


def test_what_a_template_puts_before_an_answer_is_no_part_of_it(tokenizer):
    spaced = WITH_SYSTEM.replace("[assistant]", "[assistant] ").replace("{{ turn.content }}", " {{ turn.content }}")
    assert [tokenizer.decode(item).strip() for item in answer_ids(with_template(tokenizer, spaced), SAY)] == [
        "Yes",
        "No",
    ]


def test_an_answer_in_pieces_begins_with_its_first(tokenizer):
    (first,) = answer_ids(tokenizer, Question("?", answers=("Zebra",)))
    assert first == tokenizer(" Zebra")["input_ids"][0]


def test_texts_are_cut_on_the_right(tokenizer):
    short, long = "moss", "moss fern reed pine lark wren"
    cut = shortened(tokenizer, [short, long], 3)
    assert cut[0] == short
    assert long.startswith(cut[1])
    assert len(tokenizer(cut[1])["input_ids"]) == 3
    assert shortened(tokenizer, ["é" * 4], 7) == ["é" * 3]  # two bytes each, the fourth cut in the middle
    assert shortened(tokenizer, [], 3) == []


def test_the_room_for_a_text_is_what_prompt_and_answer_leave(tokenizer):
    prompt = Prompt("Say it.")
    taken = len(prompt_ids(tokenizer, prompt, [""])[0])
    model = tiny.model(0)
    assert room_for_text(tokenizer, model, prompt, num_new_tokens=10) == 128 - taken - 10 - 2
    with pytest.raises(ValueError, match="reads at most 128 tokens, and the prompt with 120 new ones"):
        room_for_text(tokenizer, model, prompt, num_new_tokens=120)


PARTS = (
    "{% for turn in messages %}[{{ turn.role }}]{% for part in turn.content %}{{ part.text }}{% endfor %}{% endfor %}"
    "[assistant]"
)
SILENT = (
    "{% for turn in messages %}{% if turn.role != 'system' %}[{{ turn.role }}]{{ turn.content }}{% endif %}{% endfor %}"
)
DATED = "{{ strftime_now('%d %b %Y') }}" + WITH_SYSTEM


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (PARTS, "[system]Yes or No?[user]Text: moss\nResponse:[assistant]"),
        (
            "{{ messages[0].content[0]['text'] + '|' + messages[-1].content[0]['text'] }}",
            "Yes or No?|Text: moss\nResponse:",
        ),
        (SILENT, "[user]Yes or No?\n\nText: moss\nResponse:"),
        ("{{ messages[-1].content | trim }}", "Yes or No?\n\nText: moss\nResponse:"),
        (
            "{{ messages | tojson }}",
            '[{"role": "system", "content": "Yes or No?"}, {"role": "user", "content": "Text: moss\\nResponse:"}]',
        ),
    ],
)
def test_a_prompt_holds_all_that_is_asked(tokenizer, template, expected):
    """In the first form of the dialogue of which the template leaves nothing out."""
    (ids,) = prompt_ids(with_template(tokenizer, template), SAY, ["moss"])
    assert tokenizer.decode(ids) == expected


def test_a_prompt_is_the_same_each_day(tokenizer):
    prompts = {tuple(prompt_ids(with_template(tokenizer, DATED), SAY, ["moss"])[0]) for _ in range(9)}
    assert len(prompts) == 1
    assert tokenizer.decode(prompts.pop()).startswith("26 Jul 2024")


def test_an_ordinary_template_is_rendered_as_transformers_does(tokenizer):
    turns = [{"role": "system", "content": "Yes or No?"}, {"role": "user", "content": "Text: moss\nResponse:"}]
    chat = with_template(tokenizer, "{%- set ns = namespace(n=0) -%}" + WITH_SYSTEM + "{{ '-' * 3 + '%02d' % 7 }}")
    expected = chat.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    assert templates.rendered(chat, turns, add_generation_prompt=True) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        ("{% for turn in messages %}", "Unexpected end of template"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("Hello.", "leaves out a part of what is asked"),
    ],
)
def test_a_template_that_fails_ends_in_one_sentence(tokenizer, template, sentence):
    with pytest.raises(ValueError, match=r"^The chat template of .* cannot be used: .*remove it to ask") as caught:
        prompt_ids(with_template(tokenizer, template), SAY, ["moss"])
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
