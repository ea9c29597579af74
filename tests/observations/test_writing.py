"""Writing: draws of a document's own, at the model's own probabilities, gone on with after a stop."""

from __future__ import annotations

import copy
import functools
import json

import lightning
import numpy as np
import pytest
import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
)

import tiny
from nonmember.models.loading import train_tokenizer
from nonmember.observations.passes import writing
from nonmember.observations.passes.writing import SeededDraws, Writing

one_process = functools.partial(lightning.Trainer, accelerator="cpu", devices=1)


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(tiny.GENERAL.build(lambda spec: spec), tiny.VOCAB_SIZE)


@pytest.fixture(scope="module")
def model(tokenizer):
    return tiny.model(3, len(tokenizer))


@pytest.fixture
def prompts(tokenizer):
    return {f"d{index}": tokenizer(text)["input_ids"] for index, text in enumerate(tiny.random_texts(9, seed=4))}


def write(model, tokenizer, prompts, folder, make_trainer=one_process, **changes):
    folder.mkdir(exist_ok=True)
    settings = {"temperature": 1.0, "max_new_tokens": 12, "cache_bytes": 2**20} | changes
    seed = settings.pop("seed", 1)
    seeds = {doc_id: f"{seed} {doc_id}" for doc_id in prompts}
    written = writing.write(
        model, tokenizer, prompts, seeds, folder, make_trainer, Writing(**settings), description="writing"
    )
    return {doc_id: item.text for doc_id, item in written.items()}


@pytest.mark.slow
def test_neither_order_nor_batches_nor_processes_matter(model, tokenizer, prompts, tmp_path):
    written = write(model, tokenizer, prompts, tmp_path / "a")
    assert list(written) == list(prompts)
    assert len(set(written.values())) > 5
    backwards = dict(reversed(prompts.items()))
    assert write(model, tokenizer, backwards, tmp_path / "b", cache_bytes=1) == written
    two = functools.partial(lightning.Trainer, accelerator="cpu", devices=2, strategy="ddp_fork")
    assert write(model, tokenizer, prompts, tmp_path / "c", two) == written
    assert write(model, tokenizer, {"d3": prompts["d3"]}, tmp_path / "d") == {"d3": written["d3"]}
    assert write(model, tokenizer, prompts, tmp_path / "e", seed=2) != written


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("rwkv", {"hidden_size": 16, "num_hidden_layers": 2, "context_length": 64}),  # knows no mask
        ("trocr", {"d_model": 16, "decoder_layers": 1, "decoder_attention_heads": 2, "max_position_embeddings": 64}),
    ],
)
def test_padding_that_a_model_reads_is_put_before_no_prompt(kind, sizes, tokenizer, tmp_path):
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, vocab_size=len(tokenizer), **sizes)).eval()
    for parameter in model.parameters():
        parameter.data.mul_(8)  # far from its rounding
    prompts = {f"d{length}": [*range(5, 5 + length)] for length in (3, 11, 7)}
    together = write(model, tokenizer, prompts, tmp_path / "together", temperature=0.0)
    alone = write(model, tokenizer, prompts, tmp_path / "alone", temperature=0.0, cache_bytes=1)
    assert together == alone


NO_FURTHER = {"hidden_size_per_layer_input": 0, "layer_types": ["sliding_attention"] * 2 + ["full_attention"]}


@pytest.mark.parametrize("heads", [None, 2, 1])
def test_keys_and_values_take_what_they_are_said_to(heads):
    given = {"vocab_size": 60, "hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 4}
    given["num_hidden_layers"] = 3
    grouped = LlamaForCausalLM(LlamaConfig(**given, num_key_value_heads=heads))
    widths = {"head_dim": 4, "per_layer_config": {"2": {"head_dim": 8}}}
    of_two_widths = given | {"num_key_value_heads": heads or 4, **widths}
    gemma = AutoModelForCausalLM.from_config(AutoConfig.for_model("gemma4_text", **of_two_widths, **NO_FURTHER))
    for model in (grouped, grouped.to(torch.bfloat16), GPTNeoXForCausalLM(GPTNeoXConfig(**given)), gemma):
        cache = model(torch.zeros(2, 5, dtype=torch.long), use_cache=True).past_key_values
        stored = [table for layer in cache.layers for table in (layer.keys, layer.values)]
        assert sum(item.numel() * item.itemsize for item in stored) == 10 * writing.cache_bytes_of_token(model)


@pytest.mark.slow
def test_at_temperature_0_it_is_the_likeliest_continuation(model, tokenizer, prompts, tmp_path):
    other = copy.deepcopy(model)
    other.generation_config.update(no_repeat_ngram_size=1, suppress_tokens=[*range(100)])  # as files may say
    written = write(other, tokenizer, prompts, tmp_path / "a", temperature=0.0)
    assert other.generation_config.no_repeat_ngram_size == 1
    for doc_id, prompt in prompts.items():
        ids = list(prompt)
        for _ in range(12):
            with torch.no_grad():
                ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
            if ids[-1] in (tokenizer.eos_token_id, model.config.eos_token_id):
                break
        assert written[doc_id] == tokenizer.decode(ids[len(prompt) :], skip_special_tokens=True)


def test_draws_have_the_models_probabilities():
    scores = torch.log(torch.tensor([0.5, 0.3, 0.2])).repeat(4000, 1)
    for temperature, expected in ((1.0, [0.5, 0.3, 0.2]), (0.5, [0.25 / 0.38, 0.09 / 0.38, 0.04 / 0.38])):
        drawn = SeededDraws(temperature, [str(n) for n in range(4000)])(None, scores).argmax(-1)
        np.testing.assert_allclose(np.bincount(drawn, minlength=3) / 4000, expected, atol=0.03)


def test_a_line_that_was_cut_is_written_anew(tmp_path):
    part = tmp_path / "part"
    values = [["a", "one", True, 3, []], ["b", "two\r\u2028", False, 4, [[["x", -0.5]]]], ["c", "three", True, 5, []]]
    whole = "".join(json.dumps(item) + "\n" for item in values).encode()
    part.write_bytes(whole)
    assert list(writing.read_part(part)) == ["a", "b", "c"]
    assert writing.read_part(part)["b"] == writing.WrittenText("two\r\u2028", False, 4, ((("x", -0.5),),))
    for kept, names in ((whole[:-4], ["a", "b"]), (whole[:5], []), (b"", [])):
        part.write_bytes(kept)
        assert list(writing.read_part(part)) == names
        assert part.read_bytes() == kept[: kept.rfind(b"\n") + 1]


def test_a_prompt_that_leaves_no_room_is_refused(model, tokenizer, prompts, tmp_path):
    with pytest.raises(ValueError, match=r"120 are to come, but the model reads at most 128"):
        write(model, tokenizer, prompts, tmp_path / "a", max_new_tokens=120)


def test_a_model_over_several_devices_writes_the_same(model, tokenizer, prompts, tmp_path):
    from accelerate import dispatch_model

    names = [name for name, _ in model.gpt_neox.named_children() if name != "layers"]
    places = {f"gpt_neox.{name}": "cpu" for name in names} | {"lm_head": "cpu"}
    places |= {f"gpt_neox.layers.{index}": "cpu" if index else "disk" for index in range(len(model.gpt_neox.layers))}
    spread = dispatch_model(copy.deepcopy(model), places, main_device="cpu", offload_dir=str(tmp_path / "disk"))
    written = write(model, tokenizer, prompts, tmp_path / "whole")
    assert write(spread, tokenizer, prompts, tmp_path / "spread") == written
