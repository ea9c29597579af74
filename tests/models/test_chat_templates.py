"""Conversations by chat templates: what the assistant says is found, and scored alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tiny
from nonmember.corpora.sources.conversations import Turn
from nonmember.models.conversations import ChatTemplate, Refusal, Rendered, plainly
from nonmember.models.encoding import encode_corpus, scored_tokens
from nonmember.models.reading import conversations_read
from nonmember.observations.base import Reading
from nonmember.observations.passes.tokens import observe
from nonmember.records import Corpus, Document, TokenTable
from nonmember.training.batches import StepLoader, packed_masks, packed_sequences

CHATML = (
    "{% for m in messages %}{% if loop.first and m['role'] != 'system' %}<|im_start|>system\nBe useful.<|im_end|>\n"
    "{% endif %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
)
GEMMA = (
    "{{ '<bos>' }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{{ '<start_of_turn>' + (m['role'] | replace('assistant', 'model')) + '\n' + m['content'] | trim + '<end>\n' }}"
    "{% endfor %}"
)
MISTRAL = (
    "<s>{% for m in messages %}{% if m['role'] == 'user' %}{{ ' [INST] ' + m['content'] + ' [/INST]' }}"
    "{% else %}{{ ' ' + m['content'] + '</s>' }}{% endif %}{% endfor %}"
)
# Of Qwen3, what it does with thoughts: none but the last turn's are written, and that turn has them, empty ones too.
QWEN3 = (
    "{% for m in messages %}{% set content = m['content'] %}{% set thoughts = '' %}"
    "{% if m['role'] == 'assistant' and '</think>' in content %}"
    "{% set thoughts = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}"
    "{% set content = content.split('</think>')[-1].lstrip('\n') %}{% endif %}"
    "{{ '<|im_start|>' + m['role'] + '\n' }}{% if m['role'] == 'assistant' and loop.last %}"
    "{{ '<think>\n' + thoughts.strip('\n') + '\n</think>\n\n' }}{% endif %}{{ content + '<|im_end|>\n' }}{% endfor %}"
)
TALK = [Turn("user", "model"), Turn("assistant", " user\n"), Turn("user", "Hi"), Turn("assistant", "Hello")]


class Templated:
    """transformers' own rendering, without a tokenizer's files."""

    name_or_path = "made up"

    def __init__(self, template: str) -> None:
        self.chat_template = template

    def apply_chat_template(self, turns: list[dict[str, str]], **options: Any) -> str:
        from transformers import PreTrainedTokenizerFast

        made = PreTrainedTokenizerFast(tokenizer_object=tiny_tokenizer(), chat_template=self.chat_template)
        return str(made.apply_chat_template(turns, **options))


def tiny_tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    made = Tokenizer(
        models.BPE({letter: index for index, letter in enumerate(pre_tokenizers.ByteLevel.alphabet())}, [])
    )
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    return made


@pytest.mark.parametrize(
    ("template", "expected"),
    [(CHATML, [" user\n", "Hello"]), (GEMMA, ["user", "Hello"]), (MISTRAL, [" user\n", "Hello"])],
)
def test_what_the_assistant_says_is_found_by_any_template(template: str, expected: list[str]) -> None:
    """Although the turns say the very words that the templates say between them."""
    whole = Templated(template)
    pieces = ChatTemplate(whole)(TALK)
    turns = [turn._asdict() for turn in TALK]
    assert "".join(pieces) == whole.apply_chat_template(turns, tokenize=False, add_generation_prompt=False)
    assert list(pieces[1::2]) == expected


def test_thoughts_that_a_template_writes_are_what_the_assistant_says() -> None:
    said = "<think>\nA greeting.\n</think>\n\nHello"
    write = ChatTemplate(Templated(QWEN3))
    first = [Turn("user", "Hi"), Turn("assistant", said)]
    before = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert write(first) == (before, said, "<|im_end|>\n")
    assert write([first[0], Turn("assistant", "Hello")]) == (
        f"{before}<think>\n\n</think>\n\n",
        "Hello",
        "<|im_end|>\n",
    )
    # Those of earlier turns are left out, and line breaks put in.
    for changed in ([*first, *TALK[2:]], [first[0], Turn("assistant", said.replace("\n", ""))]):
        with pytest.raises(Refusal, match=r"changes what is said in turn 2 \(assistant\)"):
            write(changed)


def test_a_system_turn_goes_before_the_request_where_the_template_has_none() -> None:
    pieces = ChatTemplate(Templated(GEMMA))([Turn("system", "Be brief."), *TALK[2:]])
    assert pieces[0] == "<bos><start_of_turn>user\nBe brief.\n\nHi<end>\n<start_of_turn>model\n"


@pytest.mark.parametrize(
    ("template", "turns", "why"),
    [
        (GEMMA, [Turn("assistant", "Hi")], "must alternate"),
        (GEMMA, [*TALK, Turn("assistant", "Again")], "must alternate"),
        ("{{ messages[-1]['content'] }}", TALK, "does not write each turn once"),
        (
            "{% for m in messages %}{{ m['content'] | upper }};{% endfor %}",
            TALK,
            r"changes what is said in turn 1 \(user",
        ),
        (
            "{% for m in messages %}{{ m['content'] }}{% endfor %}{{ 'x' if messages[0]['content'] == 'model' }}",
            TALK,
            "on",
        ),
        ("{{ messages.__class__.__base__.__subclasses__() }}", TALK, "unsafe"),
        ("{{ messages", TALK, "."),
    ],
)
def test_templates_that_do_otherwise_are_refused(template: str, turns: list[Turn], why: str) -> None:
    with pytest.raises(Refusal, match=why):
        ChatTemplate(Templated(template))(turns)


def test_a_model_without_a_template_is_told_what_to_do(tmp_path: Path) -> None:
    from nonmember.corpora import Dialogues

    source = Dialogues(tiny.texts("one two three", "four five six"), 1)
    builder = tiny.builder(tmp_path)
    with pytest.raises(ValueError, match=r"has no chat template.*Give data\.template=plain"):
        builder.get(Rendered(source, tiny.scratch(1)))
    with pytest.raises(ValueError, match=r"none is named\. Give data\.template=plain"):
        builder.get(Rendered(source, None))


# Scored alone ---------------------------------------------------------------------------------------------------------

PIECES = [
    plainly([Turn("user", "one two"), Turn("assistant", "three four"), Turn("user", "one"), Turn("assistant", "five")]),
    plainly([Turn("user", "six"), Turn("assistant", "seven eight nine")]),
    plainly([Turn("user", "six six"), Turn("assistant", "nine")]),
]
TALKS = Corpus(
    (
        *(Document(f"t{index}", "".join(pieces), pieces=pieces) for index, pieces in enumerate(PIECES)),
        Document("plain", "one two three"),
    )
)


@pytest.fixture(scope="module")
def loaded() -> Any:
    from transformers import PreTrainedTokenizerFast

    from nonmember.models.loading import LoadedModel

    made = PreTrainedTokenizerFast(tokenizer_object=tiny_tokenizer())
    return LoadedModel(tiny.model(3, vocab_size=256, max_position_embeddings=128).eval(), made)


def by_hand(loaded: Any) -> dict[str, list[float]]:
    """Bytes are tokens here, so that a scored token is a byte that the assistant says."""
    found = {}
    for document in TALKS.documents:
        ids = loaded.tokenizer(document.text)["input_ids"]
        with torch.no_grad():
            log_probs = loaded.model(input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
        said = [index % 2 == 1 for index, piece in enumerate(document.pieces) for _ in piece] or [True] * len(ids)
        found[document.doc_id] = [float(log_probs[at - 1, ids[at]]) for at in range(1, len(ids)) if said[at]]
    return found


def masks(loaded: Any) -> dict[str, list[bool]]:
    scored = scored_tokens(loaded, TALKS, None)
    assert scored is not None
    return dict(zip(TALKS.doc_ids, scored, strict=True))


def test_only_tokens_of_the_assistant_have_rows(loaded: Any, tmp_path: Path) -> None:
    ids = dict(zip(TALKS.doc_ids, encode_corpus(loaded, TALKS, None), strict=True))
    observe(loaded.model, ids, Reading(tmp_path, tiny.compute().trainer, 200), scored=masks(loaded))
    table = TokenTable.load(tmp_path / "part-0.parquet", TALKS.doc_ids)
    for index, expected in enumerate(by_hand(loaded).values()):
        np.testing.assert_allclose(table.log_prob[table.rows(index)], expected, atol=1e-5)


def test_a_conversation_cut_before_the_answer_has_no_row_and_no_text(loaded: Any, tmp_path: Path) -> None:
    limit = len("User: one two\n\nAssistant: thr")
    scored = scored_tokens(loaded, TALKS, limit)
    assert scored is not None
    assert sum(scored[0]) == 3
    read = conversations_read(loaded.tokenizer, TALKS.documents[:3], limit)
    assert read.parts == ("thr", "seven e", "nine"[: limit - len("User: six six\n\nAssistant: ")])
    assert read.num_scored == [3, 7, 3]
    assert conversations_read(loaded.tokenizer, TALKS.documents[:1], 10).parts == ("",)


def test_packed_masks_are_those_of_the_packed_sequences() -> None:
    documents = [[1, 2, 3], [4, 5], [6, 7, 8, 0]]
    scored = [[False, True, True], [False, False], [True, False, True, False]]
    packing = {"length": 4, "end_of_text": 0, "seed": 5}
    sequences, found = packed_sequences(documents, **packing), packed_masks(documents, scored, **packing)
    assert list(map(len, sequences)) == list(map(len, found))
    pairs = [pair for ids, mask in zip(sequences, found, strict=True) for pair in zip(ids, mask, strict=True)]
    # The end of text that a document has is not scored, as its mask says; one that is added is.
    assert all(keep is (token in (2, 3, 6, 8)) for token, keep in pairs if token)
    assert [keep for token, keep in pairs if not token].count(False) <= 1


def test_training_takes_the_mean_over_what_the_assistant_says(loaded: Any) -> None:
    from nonmember.models.forward import split_forward
    from nonmember.training.modules import CausalLMModule

    ids, scored = encode_corpus(loaded, TALKS, None), list(masks(loaded).values())
    loader = StepLoader(ids, [[0, 1], [2, 3]], micro_batch_size=2, padding_id=0, scored=scored)
    module = CausalLMModule(split_forward(loaded.model), loader, tiny.optimization(), logits_budget_bytes=2**20)
    expected = list(by_hand(loaded).values())
    for batch, pair in zip(loader, (expected[:2], expected[2:]), strict=True):
        loss, _, number = module.summed(batch)
        assert number == int(batch["step_tokens"]) == sum(map(len, pair))
        assert float(loss.detach()) == pytest.approx(-sum(map(sum, pair)), rel=1e-5)
