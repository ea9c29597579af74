"""Tokenizers and models: what goes together, what determines them, how texts become ids."""

from __future__ import annotations

import copy
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

import tiny
from nonmember.models import Pretrained, loading, reading, tokenizing
from nonmember.models.encoding import (
    encode,
    encode_behind_end_of_text,
    encode_pieces,
    read_alike,
    shared_ids,
    token_spans,
)
from nonmember.models.hub import base_of, load_tokenizer, pretrained_identity
from nonmember.models.kinds.pretrained import load_folder
from nonmember.models.loading import LoadedModel, from_scratch, load_pretrained, save, train_tokenizer
from nonmember.models.templates import rendered
from nonmember.records import Corpus, Document

CORPUS = Corpus(tiny.GENERAL.documents)


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(CORPUS, tiny.VOCAB_SIZE)


@pytest.fixture
def folder(tokenizer, tmp_path):
    """A model with more rows than its tokenizer has entries, as Pythia's."""
    path = tmp_path / "a-model"
    save(LoadedModel(tiny.model(1, tiny.VOCAB_SIZE + 24), tokenizer), path)
    return path


def word_tokenizer(*words: str) -> PreTrainedTokenizerFast:
    """Whole words with the ids of their places."""
    tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(words)}))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer)


# The micro models' tokenizer --------------------------------------------------------------------------------


def test_training_a_tokenizer_twice_gives_the_same(tokenizer):
    assert len(tokenizer) == tiny.VOCAB_SIZE
    assert train_tokenizer(CORPUS, tiny.VOCAB_SIZE).backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()
    other = train_tokenizer(Corpus((Document("a", "other words altogether " * 9),)), tiny.VOCAB_SIZE)
    assert other.get_vocab() != tokenizer.get_vocab()


@pytest.mark.parametrize("text", ["moss fern", " a\tb\n\n", "Grüße, 世界 🙂", "\x00\x7f"])
def test_every_text_is_encoded_without_loss(tokenizer, text):
    (ids,) = encode(tokenizer, [text], None)
    assert tokenizer.decode(ids) == text
    assert tokenizer.eos_token_id not in ids


def test_texts_are_encoded_alone_without_added_tokens_and_cut_on_the_right(tokenizer):
    texts = ["moss fern reed pine", "", "moss"]
    whole = encode(tokenizer, texts, None)
    assert whole[1] == []
    assert [tokenizer.decode(ids) for ids in whole] == texts  # no beginning, no end, no padding
    assert encode(tokenizer, texts, 2) == [ids[:2] for ids in whole]
    assert encode(tokenizer, texts, 100) == whole
    assert encode(tokenizer, [], 2) == []


def test_pieces_put_together_are_the_text(tokenizer):
    """... and a token before texts stands there once; what comes behind texts does not."""
    pieces = ["moss fern.\n", "\n", "Reed (pine)\n", "lark"]
    front, ids = encode_pieces(tokenizer, pieces)
    assert front == []
    assert [token for piece in ids for token in piece] == encode(tokenizer, ["".join(pieces)], None)[0]

    marked = copy.deepcopy(tokenizer)
    marked.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<|endoftext|> $A <|endoftext|>", special_tokens=[("<|endoftext|>", 0)]
    )
    assert len(encode(marked, ["lark"], None)[0]) == len(ids[-1]) + 2
    assert encode_pieces(marked, pieces) == ([0], ids)


def test_tokenizers_that_cannot_do_what_is_needed_say_so(tokenizer):
    def other_ids_alone(text, *, add_special_tokens=True):
        return {"input_ids": [[9, 9] if add_special_tokens else [1]]}

    with pytest.raises(ValueError, match="gives other ids to a text with its special tokens"):
        encode_pieces(other_ids_alone, ["moss"])
    with pytest.raises(ValueError, match="does not say where its tokens lie"):
        token_spans(SimpleNamespace(is_fast=False))
    assert token_spans(tokenizer)("moss fern")[0][0] == 0
    endless = copy.deepcopy(tokenizer)
    endless.eos_token = None
    with pytest.raises(ValueError, match=r"no end-of-text token to put before texts\. Use prepend_eos=false"):
        encode_behind_end_of_text(LoadedModel(None, endless), CORPUS, 8)


def test_a_tokenizer_that_cuts_on_the_left_is_told_not_to(folder):
    settings = folder / "tokenizer_config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"truncation_side": "left"}))
    loaded = load_folder(folder).tokenizer
    assert encode(loaded, ["moss fern reed"], 2) == [encode(loaded, ["moss fern reed"], None)[0][:2]]


# Loading ----------------------------------------------------------------------------------------------------


def test_a_saved_model_comes_back_to_the_bit(folder, tokenizer):
    loaded = load_folder(folder)
    tiny.assert_equal_weights(tiny.weights(loaded.model), tiny.weights(tiny.model(1, tiny.VOCAB_SIZE + 24)))
    assert loaded.model.get_input_embeddings().num_embeddings == len(loaded.tokenizer) + 24
    assert encode(loaded.tokenizer, ["moss fern"], None) == encode(tokenizer, ["moss fern"], None)
    assert not loaded.model.training
    assert loaded.num_parameters == sum(p.numel() for p in tiny.model(1, tiny.VOCAB_SIZE + 24).parameters())


def test_where_texts_were_last_cut_is_not_saved(folder, tokenizer, tmp_path):
    tokenizer("a few words", truncation=True, max_length=2)
    save(LoadedModel(tiny.model(1), tokenizer), tmp_path / "after")
    assert Tokenizer.from_file(str(tmp_path / "after/tokenizer.json")).truncation is None
    assert (tmp_path / "after/tokenizer.json").read_bytes() == (folder / "tokenizer.json").read_bytes()


def test_a_model_and_its_continuations_share_a_tokenizer_and_others_have_their_own(folder, tokenizer, tmp_path):
    for name, seed, other in (
        ("continued", 2, tokenizer),
        ("changed", 1, train_tokenizer(CORPUS, tiny.VOCAB_SIZE - 9)),
    ):
        save(LoadedModel(tiny.model(seed, tiny.VOCAB_SIZE + 24), other), tmp_path / name)
    (tmp_path / "continued/sidecar.json").write_text("{}")
    first, again, changed = (
        load_tokenizer(Pretrained(str(tmp_path / name))) for name in (folder, "continued", "changed")
    )
    assert again is first
    assert changed is not first
    assert load_tokenizer(Pretrained(str(folder), bos="never")) is not first
    assert shared_ids(first, again) == (slice(len(tokenizer)), slice(len(tokenizer)))
    settings = json.loads((folder / "tokenizer_config.json").read_text()) | {"model_max_length": 7}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    assert load_tokenizer(Pretrained(str(folder))) is not first


def test_the_dtype_is_the_one_asked_for(folder):
    assert load_pretrained(Pretrained(str(folder), dtype="bfloat16")).model.dtype == torch.bfloat16
    assert load_folder(folder).model.dtype == torch.float32


def test_a_tokenizer_larger_than_the_model_is_refused(folder):
    save(LoadedModel(tiny.model(1, tiny.VOCAB_SIZE - 1), load_folder(folder).tokenizer), folder)
    with pytest.raises(ValueError, match="has 280 entries, but the model only 279 embedding rows"):
        load_folder(folder)


@pytest.mark.parametrize(("quantization", "dtype"), [("8bit", "float32"), ("4bit", "bfloat16")])
def test_fewer_bits_are_asked_of_transformers(folder, monkeypatch, quantization, dtype):
    find_spec, told = importlib.util.find_spec, {}

    def from_pretrained(_, **settings):
        told.update(settings)
        raise ValueError("Seen.")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *of: name == "bitsandbytes" or find_spec(name, *of))
    monkeypatch.setattr(loading.AutoModelForCausalLM, "from_pretrained", from_pretrained)
    with pytest.raises(ValueError, match=r"Seen\."):
        load_pretrained(Pretrained(str(folder), dtype=dtype, quantization=quantization))
    bits = told["quantization_config"]
    assert (told["device_map"], bits.load_in_8bit, bits.load_in_4bit) == (
        {"": 0},
        quantization == "8bit",
        quantization == "4bit",
    )
    if quantization == "4bit":
        arithmetic = torch.bfloat16 if dtype == "bfloat16" else torch.float32
        assert (bits.bnb_4bit_quant_type, bits.bnb_4bit_compute_dtype) == ("nf4", arithmetic)


def test_what_a_chat_template_is_given_is_a_setting_of_the_model(folder):
    template = (
        "{{ '' if enable_thinking is defined and not enable_thinking else 'Think. ' }}{{ messages[0]['content'] }}"
    )
    (folder / "chat_template.jinja").write_text(template)
    plain, quiet = Pretrained(str(folder)), Pretrained(str(folder), chat_template_kwargs={"enable_thinking": False})
    turns = [{"role": "user", "content": "Hi"}]
    for spec, expected in ((plain, "Think. Hi"), (quiet, "Hi")):
        assert rendered(load_tokenizer(spec), turns, add_generation_prompt=True) == expected
    assert plain.recipe() == replace(quiet, chat_template_kwargs=None).recipe() != quiet.recipe()
    assert pretrained_identity(quiet) == pretrained_identity(plain) | {
        "chat_template_kwargs": {"enable_thinking": False}
    }
    with pytest.raises(ValueError, match=r"has no thinking \(chat_template_kwargs"):
        load_tokenizer(Pretrained(str(folder), chat_template_kwargs={"thinking": False}))


def test_scratch_models_are_drawn_from_their_seed_alone(tokenizer):
    spec = tiny.scratch(3)
    torch.manual_seed(0)
    item = from_scratch(spec, tokenizer).model
    state = torch.get_rng_state()
    torch.manual_seed(1)
    other = from_scratch(spec, tokenizer).model
    tiny.assert_equal_weights(tiny.weights(item), tiny.weights(other))
    torch.manual_seed(0)
    assert torch.equal(torch.get_rng_state(), state)  # and leave the generators alone
    assert not torch.equal(
        from_scratch(replace(spec, seed=4), tokenizer).model.get_input_embeddings().weight,
        item.get_input_embeddings().weight,
    )
    assert item.config.vocab_size == len(tokenizer)


# What determines a model ------------------------------------------------------------------------------------


def test_identity_is_the_content_of_the_folder(folder, tmp_path):
    identity = pretrained_identity(Pretrained(str(folder)))
    other_name = Path(shutil.copytree(folder, tmp_path / "elsewhere" / "another-name"))
    assert pretrained_identity(Pretrained(str(other_name))) == identity
    (other_name / "README.md").write_text("about it")
    assert pretrained_identity(Pretrained(str(other_name))) == identity
    assert pretrained_identity(Pretrained(str(other_name), dtype="bfloat16")) != identity
    json.dumps(identity)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json", "modeling_own.py"])
def test_identity_moves_with_what_is_read(folder, name):
    (folder / "modeling_own.py").write_text("# 1\n")
    identity = pretrained_identity(Pretrained(str(folder)))
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1  # of the same length
    (folder / name).write_bytes(bytes(content))
    os.utime(folder / name, (1, 1))
    assert pretrained_identity(Pretrained(str(folder))) != identity


def test_a_hub_model_is_the_commit_that_its_revision_stands_for(monkeypatch):
    def config(path, revision="main", **_):
        return SimpleNamespace(_commit_hash={"main": "a" * 40, "v1": "a" * 40, "v2": "b" * 40}[revision])

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", config)
    monkeypatch.setattr(transformers.utils, "find_adapter_config_file", lambda *_, **__: None)
    main, v1, v2 = (pretrained_identity(Pretrained("owner/model", revision)) for revision in (None, "v1", "v2"))
    assert main == v1
    assert (main["path"], main["commit"], main["dtype"]) == ("owner/model", "a" * 40, "float32")
    assert v2 == main | {"commit": "b" * 40}


def test_a_hub_without_a_network_is_refused_at_once(monkeypatch):
    """Its client would try again for half a minute."""

    def no_address(*_):
        raise OSError(-2, "Name or service not known")

    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setattr("socket.getaddrinfo", no_address)
    monkeypatch.setattr("nonmember.runtime.hub.getproxies", dict)
    for spec in (Pretrained("owner/not-cached"), Pretrained("owner/not-cached/model.gguf")):
        with pytest.raises(ValueError, match="no way to huggingface"):
            spec.validate()


def test_what_determines_a_folder_is_seen_without_torch(made_up):
    """An audit that has its result is recognized by it."""
    code = (
        "import sys; from nonmember.models import Pretrained; from nonmember.models.hub import pretrained_identity; "
        f"pretrained_identity(Pretrained({str(made_up)!r})); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "transformers"} & set(loaded)


def identity_of(folder: Path) -> dict:
    return pretrained_identity(Pretrained(str(folder)))


@pytest.fixture
def made_up(tmp_path) -> Path:
    """A folder with the files of a model, of made-up content."""
    folder = tmp_path / "made-up"
    folder.mkdir()
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (folder / name).write_text("{}")
    return folder


@pytest.mark.parametrize("name", ["chat_template.jinja", "additional_chat_templates/tools.jinja", "qwen.tiktoken"])
def test_identity_moves_with_chat_templates(made_up, name):
    before = identity_of(made_up)
    (made_up / name).parent.mkdir(exist_ok=True)
    (made_up / name).write_text("one")
    item = identity_of(made_up)
    (made_up / name).write_text("another")
    assert before["files"] == item["files"]
    assert len({json.dumps(each) for each in (before, item, identity_of(made_up))}) == 3


def test_identity_moves_with_the_base_of_an_adapter(made_up, tmp_path):
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_model.safetensors").write_text("x")
    (adapter / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(made_up)}))
    item = identity_of(adapter)
    assert item["adapter_on"] == identity_of(made_up)
    (made_up / "model.safetensors").write_text("{ }")
    assert identity_of(adapter) != item
    named = {"base_model_name_or_path": "owner/base", "revision": "step1000"}
    (adapter / "adapter_config.json").write_text(json.dumps(named))
    assert base_of(Pretrained(str(adapter), "main")) == Pretrained("owner/base", "step1000")
    for base, got in ((None, "got null"), (str(adapter), "which is an adapter too")):
        (adapter / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": base}))
        with pytest.raises(ValueError, match=f"must name a whole model in base_model_name_or_path.*{got}"):
            identity_of(adapter)
    (adapter / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(made_up)}))
    (adapter / "config.json").write_text("{}")  # of its base, as some programs write it
    assert "adapter_on" in identity_of(adapter)
    (adapter / "model.safetensors").write_text("x")
    assert "adapter_on" not in identity_of(adapter)


def test_identity_moves_with_weights_that_an_index_names(made_up):
    (made_up / "model.safetensors").unlink()
    index = made_up / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "below/one.safetensors", "b": "two.safetensors"}}))
    (made_up / "below").mkdir()
    (made_up / "below" / "one.safetensors").write_text("x")
    before = identity_of(made_up)
    (made_up / "below" / "one.safetensors").write_text("y")
    assert identity_of(made_up) != before
    for name in ("../elsewhere/one.safetensors", "/elsewhere/one.safetensors"):
        index.write_text(json.dumps({"weight_map": {"a": name}}))
        with pytest.raises(ValueError, match=f"index.json must name weights in its own folder; got '{name}'"):
            identity_of(made_up)
    index.write_text(json.dumps({"weight_map": {"a": "one.bin"}}))
    with pytest.raises(ValueError, match="must name safetensors files; got 'one"):
        identity_of(made_up)


# Two vocabularies -------------------------------------------------------------------------------------------


def test_a_longer_vocabulary_shares_its_beginning():
    assert shared_ids(word_tokenizer("a", "b", "c"), word_tokenizer("a", "b")) == (slice(2), slice(2))


def test_permuted_vocabularies_are_paired_by_string():
    ours, theirs = shared_ids(word_tokenizer("a", "b", "c", "d"), word_tokenizer("d", "x", "a", "b"))
    assert list(zip(ours.tolist(), theirs.tolist(), strict=True)) == [(0, 2), (1, 3), (3, 0)]


def test_disjoint_vocabularies_are_refused():
    with pytest.raises(ValueError, match="no token in common"):
        shared_ids(word_tokenizer("a", "b"), word_tokenizer("x"))


def test_what_two_tokenizers_read_alike():
    ours = [[0, 1, 2], [3, 3], [5]]
    assert read_alike(ours, ours, slice(6)) == (ours, 1.0)
    assert read_alike(ours, [[0, 1, 2], [3, 4], [5]], slice(6)) == ([[0, 1, 2], [5]], 4 / 6)
    assert read_alike(ours, ours, torch.tensor([0, 1, 3])) == (ours, 4 / 6)
    assert read_alike([[], []], [[], []], slice(6)) == ([[], []], 1.0)


def test_a_word_without_end_is_read_only_as_far_as_it_is_needed(monkeypatch, make_model):
    """Tokenizers take minutes for a word of millions of letters; of what is kept nothing may change."""
    tokenizer = load_folder(make_model(0)).tokenizer
    endless, spaced = "mossfern" * 5000, "moss fern " * 5000
    whole = [tokenizer(text)["input_ids"] for text in (endless, spaced)]
    lengths = []
    monkeypatch.setattr(tokenizing, "SURELY_WHOLE", 1000)
    monkeypatch.setattr(reading, "LONGEST_COUNTED", 20_000)

    class Watched:
        is_fast = True

        def __call__(self, text, **settings):
            lengths.extend(map(len, [text] if isinstance(text, str) else text))
            return tokenizer(text, **settings)

    read = reading.texts_read(Watched(), [endless, spaced, "moss"], 8)
    assert tokenizing.encode_beginnings(Watched(), [endless, spaced], 8) == [ids[:8] for ids in whole]
    assert max(lengths) <= 4000
    assert read.num_all[:2] == (None, None)
    assert read.is_cut == (True, True, False)
    assert read.parts[1] == tokenizer.decode(whole[1][:8])
    assert read.parts[2] == "moss"
