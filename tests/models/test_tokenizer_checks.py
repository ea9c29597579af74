"""Tokenizers of strangers: the same ids each time, first ids of a cut text, bounds, and refusals in a sentence."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import pytest
import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors, trainers
from transformers import GPTNeoXTokenizerFast, PreTrainedTokenizerFast

import tiny
from nonmember.models.encoding import encode, encode_corpus
from nonmember.models.hub import load_tokenizer, pretrained_identity
from nonmember.models.kinds.in_memory import InMemory, content_of
from nonmember.models.kinds.pretrained import Pretrained
from nonmember.models.loading import LoadedModel, train_tokenizer
from nonmember.models.prompting import prompt_ids
from nonmember.models.reading import texts_read
from nonmember.models.tokenizing import ids_of, prepared, read_around
from nonmember.records import Corpus, Document, Prompt
from nonmember.training import Trained
from nonmember.training.batches import packed_sequences

TEXT = "moss fern reed pine lark wren"
END = "<|endoftext|>"


@pytest.fixture(scope="module")
def plain():
    return train_tokenizer(Corpus(tiny.GENERAL.documents), tiny.VOCAB_SIZE)


@pytest.fixture
def tokenizer(plain):
    return copy.deepcopy(plain)


def around(tokenizer, template: str):
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=template, special_tokens=[(END, tokenizer.eos_token_id)]
    )
    return tokenizer


# A cut text is the first ids of its text -----------------------------------------------------------------------------


@pytest.mark.parametrize("template", ["$A", f"{END} $A", f"$A {END}", f"{END} $A {END} {END}"])
def test_a_cut_text_is_the_first_ids_of_its_text(tokenizer, template):
    whole = around(tokenizer, template)(TEXT)["input_ids"]
    prepared(tokenizer)
    for most in (2, len(whole) - 1, len(whole), len(whole) + 1, None):
        assert encode(tokenizer, [TEXT], most) == [whole[:most]]


def test_what_files_say_of_truncation_and_padding_changes_nothing(tokenizer, tmp_path):
    whole = tokenizer(TEXT)["input_ids"]
    tokenizer.backend_tokenizer.enable_truncation(4)
    tokenizer.backend_tokenizer.enable_padding(direction="left", length=64)
    tokenizer.save_pretrained(tmp_path)
    assert encode(load_tokenizer(Pretrained(str(tmp_path))), [TEXT, "moss"], None)[0] == whole


def test_a_prompt_ends_where_the_model_goes_on_and_training_puts_one_end_behind_a_text(tokenizer):
    around(tokenizer, f"{END} $A {END}")
    (ids,) = prompt_ids(tokenizer, Prompt("Say it."), ["moss"])
    assert ids[0] == tokenizer.eos_token_id != ids[-1]
    assert packed_sequences([[5, 0], [7]], length=9, end_of_text=0, seed=1) in ([[5, 0, 7, 0]], [[7, 0, 5, 0]])


# The same text, the same ids -----------------------------------------------------------------------------------------


def test_dropout_is_switched_off_and_said(tokenizer, caplog):
    whole = tokenizer(TEXT)["input_ids"]
    tokenizer.backend_tokenizer.model.dropout = 0.5
    prepared(tokenizer)
    assert all(ids == whole for ids in ids_of(tokenizer, [TEXT] * 20))
    assert "draws its tokens at random (dropout = 0.5)" in caplog.text


# tokens.bos ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "bos", "front", "back"),
    [
        ("$A", "auto", None, None),
        ("$A", "never", None, None),
        ("$A", "always", END, None),
        (f"{END} $A", "auto", END, None),
        (f"{END} $A", "always", END, None),
        (f"{END} $A {END}", "never", None, END),
    ],
)
def test_a_beginning_of_text_token_is_chosen(tokenizer, tmp_path, template, bos, front, back):
    own = tokenizer(TEXT, return_offsets_mapping=True)
    tokenizer.bos_token = END
    prepared(around(tokenizer, template), bos)
    assert read_around(tokenizer) == {"bos": front, "eos": back}
    expected = [0] * bool(front) + own["input_ids"] + [0] * bool(back)
    assert ids_of(tokenizer, [TEXT]) == [expected]
    tokenizer.save_pretrained(tmp_path)  # as a model that is trained with it is kept
    assert ids_of(load_tokenizer(Pretrained(str(tmp_path))), [TEXT]) == [expected]


def test_a_model_that_was_trained_reads_as_its_base(plain, tmp_path):
    words = {f"{name}_token": END for name in ("bos", "eos", "unk", "pad")}
    # Saved and loaded, it puts before a text what its class says.
    tokenizer = GPTNeoXTokenizerFast(tokenizer_object=plain.backend_tokenizer, **words)
    model = tiny.model(1, len(tokenizer)).requires_grad_(False)  # which does not stay so where it is trained
    shop, base = tiny.builder(tmp_path), InMemory(content_of(model, tokenizer), "mine", "always")
    base.provide(shop, model, tokenizer)
    trained = Trained(base, tiny.pretraining(batch_size=1), tiny.texts(TEXT), seed=1)
    assert read_around(shop.get(trained).tokenizer) == {"bos": END, "eos": None}
    moved = zip(shop.get(trained).model.parameters(), model.parameters(), strict=True)
    assert all(not torch.equal(*pair) for pair in moved)
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_only_texts_that_are_joined_need_an_end_of_text(tokenizer, tmp_path):
    tokenizer.eos_token = None  # as of GPT-2 with a tokenizer of BERT
    model, shop = tiny.model(1, len(tokenizer)), tiny.builder(tmp_path)
    base = InMemory(content_of(model, tokenizer), "mine")
    base.provide(shop, model, tokenizer)
    distilled = Trained(base, tiny.distillation(), tiny.texts(TEXT, "moss fern"), seed=1, teacher=base)
    assert shop.entry(distilled).facts["num_sequences"] == 2
    with pytest.raises(ValueError, match="no end-of-text token, which training puts between documents"):
        shop.entry(replace(distilled, training=tiny.pretraining(), teacher=None))


def test_a_token_that_there_is_not_is_refused(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"has no beginning-of-text token \(bos_token\)\. Use tokens.bos=auto"):
        load_tokenizer(Pretrained(str(tmp_path), bos="always"))
    with pytest.raises(ValueError, match=r"tokens\.bos must be one of auto, always, never; got 'maybe'"):
        Pretrained("owner/name", bos="maybe")
    with pytest.raises(ValueError, match="must be one of auto, never; got 'always'"):
        tiny.Scratch("gpt_neox", {}, tiny.TrainedTokenizer(tiny.GENERAL, 300), 1, bos="always")


def test_how_texts_are_read_is_part_of_a_key(tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    spec = Pretrained(str(tmp_path))
    assert pretrained_identity(Pretrained(str(tmp_path), bos="never")) == pretrained_identity(spec) | {"bos": "never"}
    assert InMemory("1", "a", "never").key(None) == InMemory("1", "a").key(None) | {"bos": "never"}


# Bounds --------------------------------------------------------------------------------------------------------------


def test_a_regular_expression_without_end_names_the_document(tokenizer):
    split = pre_tokenizers.Split(Regex("(a+)+b"), "isolated")
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel()])
    prepared(tokenizer)
    corpus = Corpus((Document("fine", TEXT), Document("catastrophe", "a" * 60 + " c")))
    with pytest.raises(
        ValueError, match=r"cannot read document 'catastrophe': .*retry-limit.*\. Leave the document out"
    ):
        encode_corpus(LoadedModel(None, tokenizer), corpus, None)


def test_an_interruption_is_no_failure_of_a_text():
    def interrupted(texts, **options):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ids_of(interrupted, ["moss"])


# What is told --------------------------------------------------------------------------------------------------------


def test_special_tokens_and_unknown_ones_in_texts_are_told(tokenizer):
    assert texts_read(around(tokenizer, f"{END} $A {END}"), [TEXT, "moss"], 4).warnings == []
    (told,) = texts_read(tokenizer, [TEXT, f"moss{END}fern"], 64).warnings
    assert told.startswith("1 of 2 documents hold text that is read as special tokens")
    (told,) = texts_read(tokenizer, ["moss\nfern", "moss\r\nfern"], 64).warnings
    assert told.startswith(r"1 of 2 documents have Windows line ends (\r\n)")
    blind = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({"?": 0, "moss": 1}, unk_token="?")), unk_token="?"
    )
    warnings = texts_read(blind, ["moss", "fern", "reed"], 64).warnings
    assert warnings[0].startswith("67% of the tokens read are unknown ones")
    assert warnings[1].startswith("The tokenizer reads capitals as small letters")


def test_a_file_that_transformers_reads_otherwise_is_told(tokenizer, tmp_path, caplog):
    tokenizer.save_pretrained(tmp_path)
    for model_type, told in (("gpt_neox", False), ("qwen2", True)):  # whose class is taken whatever the file names
        (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
        load_tokenizer(Pretrained(str(tmp_path)))
        assert ("as a Qwen2Tokenizer, otherwise than tokenizer.json says" in caplog.text) is told


# Its own vocabulary -------------------------------------------------------------------------------------------------

SYLLABLES = ["mo", "ssi", "fer", "na", "ree", "dul", "pin", "ela", "lar", "ko"]
WORDS = [first + second + third for first in SYLLABLES for second in SYLLABLES for third in ("ra", "tu")]


def lose_merges(tokenizer) -> None:
    """All but the first quarter, the vocabulary being kept, as in a conversion."""
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    del state["model"]["merges"][len(state["model"]["merges"]) // 4 :]
    tokenizer._tokenizer = Tokenizer.from_str(json.dumps(state))


def test_a_vocabulary_whose_merges_are_lost_is_refused():
    tokenizer = train_tokenizer(Corpus((Document("words", " ".join(WORDS * 4)),)), 1000)
    prepared(tokenizer)
    assert len(tokenizer(" ".join(WORDS[:20]))["input_ids"]) == 20
    lose_merges(tokenizer)
    with pytest.raises(ValueError, match=r"reads \d+ of \d{2,} words of its own vocabulary as one token each"):
        prepared(tokenizer)


@pytest.mark.parametrize(
    ("model", "trainer"),
    [
        (
            models.Unigram(),
            trainers.UnigramTrainer(vocab_size=400, special_tokens=[END], unk_token=END, show_progress=False),
        ),
        (models.WordPiece(unk_token=END), trainers.WordPieceTrainer(vocab_size=400, special_tokens=[END])),
        (models.WordLevel(unk_token=END), trainers.WordLevelTrainer(special_tokens=[END], show_progress=False)),
    ],
)
def test_vocabularies_of_other_kinds_read_their_words_as_themselves(model, trainer):
    backend = Tokenizer(model)
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.train_from_iterator([" ".join(WORDS * 4)], trainer)
    prepared(PreTrainedTokenizerFast(tokenizer_object=backend, unk_token=END))
