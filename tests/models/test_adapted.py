"""Adapters from elsewhere compute what peft computes with them, or what is wrong with them is named."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from safetensors.torch import load_file, save_file
from test_completeness import TOKENIZER, llama, saved
from torch import Tensor
from transformers import AutoModelForCausalLM

import tiny
from nonmember.models import Pretrained
from nonmember.models.base import Whole
from nonmember.models.forward import split_forward
from nonmember.models.hub import pretrained_identity
from nonmember.models.kinds.pretrained import load_folder
from nonmember.models.loading import load_pretrained, num_embeddings
from nonmember.training.adapters import add_adapter
from nonmember.training.recipes import Lora

TASK: Any = "CAUSAL_LM"
Q = "base_model.model.model.layers.0.self_attn.q_proj"
IDS = torch.arange(24).reshape(2, 12)


def lora(*targets: str, **settings: Any) -> Any:
    return peft.LoraConfig(task_type=TASK, target_modules=list(targets or ["q_proj"]), **settings)


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    return saved(tmp_path_factory.mktemp("models") / "a-base", llama())


def adapter(folder: Path, base: Path | str | None, config: Any, model: Any = None, **changes: Any) -> Tensor:
    """Save an adapter with random weights; the logits of its own model."""
    model = model or llama()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adapted = peft.get_peft_model(model, config)
        torch.manual_seed(1)
        for parameter in adapted.parameters():
            if parameter.requires_grad:
                torch.nn.init.normal_(parameter, std=0.1)
        adapted.save_pretrained(folder)
    TOKENIZER.save_pretrained(folder)
    described = json.loads((folder / "adapter_config.json").read_text())
    described |= {"base_model_name_or_path": None if base is None else str(base)} | changes
    (folder / "adapter_config.json").write_text(json.dumps(described))
    with torch.no_grad():
        return adapted.eval()(input_ids=IDS).logits


KINDS = {
    "lora": lora(),
    "dora": lora(use_dora=True),
    "embeddings": lora("embed_tokens"),
    "output": lora("q_proj", "lm_head"),
    "tokens": lora(trainable_token_indices=[1, 2]),
    "whole modules": lora(modules_to_save=["embed_tokens", "norm"]),
    "ia3": peft.IA3Config(task_type=TASK, target_modules=["k_proj", "down_proj"], feedforward_modules=["down_proj"]),
    "adalora": peft.AdaLoraConfig(task_type=TASK, target_modules=["q_proj"], total_step=9, init_r=4, target_r=2),
    "vera": peft.VeraConfig(task_type=TASK, target_modules=["q_proj"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_it_computes_what_peft_does_beside_its_base_and_merged(base, tmp_path, kind):
    expected = adapter(tmp_path, base, KINDS[kind])
    loaded = load_folder(tmp_path)
    with torch.no_grad():
        assert torch.equal(loaded.model(input_ids=IDS).logits, expected)
        split = split_forward(loaded.model)
        assert torch.allclose(split.head(split.body(IDS)), expected, atol=1e-5)
        merged = load_pretrained(Pretrained(str(tmp_path)), merged=True).model
        assert torch.allclose(merged(input_ids=IDS).logits, expected, atol=1e-5)
    assert num_embeddings(loaded.model) == 280
    assert not [name for name, _ in merged.named_parameters() if "lora" in name or "default" in name]


def test_merged_it_is_another_model_in_memory_and_no_second_one_is_put_beside_it(base, tmp_path):
    adapter(tmp_path / "adapter", base, lora())
    shop, spec = tiny.builder(tmp_path / "store"), Pretrained(str(tmp_path / "adapter"))
    beside, merged = shop.get(spec).model, shop.get(Whole(spec)).model
    assert "lora" in str(beside)
    assert "lora" not in str(merged)
    with pytest.raises(ValueError, match="It has an adapter beside its weights already"):
        add_adapter(beside, Lora(None, 4, 8.0, 0.0), seed=1, num_steps=1)
    whole = Pretrained(str(base))
    assert Whole(whole).key(shop) == whole.key(shop)


def grown(**changes: Any) -> Any:
    model = llama(**changes)
    model.resize_token_embeddings(281)
    return model


def test_rows_for_added_tokens_are_read_with_the_adapter(base, tmp_path):
    expected = adapter(tmp_path, base, lora(modules_to_save=["embed_tokens", "lm_head"]), grown())
    assert torch.equal(load_folder(tmp_path).model(input_ids=IDS).logits, expected)


@pytest.mark.parametrize(
    ("settings", "more", "merges"),
    [
        ({"trainable_token_indices": [1, 2]}, 0, True),
        ({"trainable_token_indices": {"embed_tokens": [1, 2]}, "ensure_weight_tying": True}, 0, True),
        ({"trainable_token_indices": [1, len(TOKENIZER) + 1]}, 2, True),  # rows of its own
        ({"trainable_token_indices": {"lm_head": [1, 2]}}, 0, False),  # peft adds them to the embedding too
        ({"modules_to_save": ["embed_tokens"]}, 0, True),
    ],
)
def test_single_rows_of_a_tied_matrix(tmp_path, settings, more, merges):
    base = saved(tmp_path / "tied", llama(tie_word_embeddings=True))
    model = AutoModelForCausalLM.from_pretrained(base)  # from which peft sees that there are more rows
    if more:
        model.resize_token_embeddings(num_embeddings(model) + more, mean_resizing=False)
    expected = adapter(tmp_path / "adapter", base, lora(**settings), model)
    spec = Pretrained(str(tmp_path / "adapter"))
    torch.testing.assert_close(load_pretrained(spec).model(input_ids=IDS).logits, expected, atol=1e-5, rtol=0)
    if merges:
        merged = load_pretrained(spec, merged=True).model(input_ids=IDS).logits
        torch.testing.assert_close(merged, expected, atol=1e-5, rtol=0)
    else:
        with pytest.raises(ValueError, match="Merged into its base it gives other logits"):
            load_pretrained(spec, merged=True)


@pytest.mark.parametrize("tied", [False, True])
def test_rows_of_which_not_all_are_there_are_refused(tmp_path, tied):
    base = saved(tmp_path / "a-base", llama(tie_word_embeddings=tied))
    adapter(tmp_path / "one", base, lora(modules_to_save=["embed_tokens"]), grown(tie_word_embeddings=tied))
    with pytest.raises(
        ValueError, match=r"with 281 rows of the vocabulary, and this one has 280\. Of the further rows"
    ):
        load_folder(tmp_path / "one")


def put(**tensors: tuple[int, ...]) -> Callable[[dict[str, Tensor]], Any]:
    return lambda weights: weights.update(
        {f"base_model.model.{name.replace('__', '.')}": torch.ones(shape) for name, shape in tensors.items()}
    )


WRONG = [
    ({}, lora(), put(model__layers__7__self_attn__q_proj__lora_A__weight=(8, 16)), "It holds 1 tensor ("),
    ({}, lora(), put(model__norm__weight=(16,)), "It holds 1 tensor (base_model.model.model.norm.weight), which its"),
    ({}, lora(), put(score__weight=(2, 16)), "It holds 1 tensor (base_model.model.score.weight)"),
    ({}, lora(), lambda weights: weights.pop(f"{Q}.lora_A.weight"), "missing adapter keys"),
    ({"target_modules": ["q_proj", "v_proj"]}, lora(), None, "missing adapter keys while"),
    ({"target_modules": ["q_proj"]}, lora("q_proj", "v_proj"), None, "It holds 4 tensors ("),
    ({"task_type": "SEQ_CLS"}, lora(), None, "for SEQ_CLS. Only adapters that change layers"),
    (
        {},
        peft.PromptTuningConfig(task_type=TASK, num_virtual_tokens=4),
        None,
        "PROMPT_TUNING, for CAUSAL_LM. Only adapters",
    ),
]


@pytest.mark.parametrize(("changes", "config", "how", "sentence"), WRONG, ids=[each[-1] for each in WRONG])
def test_what_is_wrong_is_named(base, tmp_path, changes, config, how, sentence):
    adapter(tmp_path, base, config, **changes)
    if how:
        weights = load_file(tmp_path / "adapter_model.safetensors")
        how(weights)
        save_file(weights, tmp_path / "adapter_model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"The adapter .* could not be put on .*a-base: ") as caught:
        load_folder(tmp_path)
    assert sentence in str(caught.value)
    assert "weights that belong to it" not in str(caught.value)


@pytest.mark.parametrize(
    ("named", "sentence"), [(None, "got null"), ("owner/name", "owner/name"), ("/no/where", "/no/where")]
)
def test_a_base_that_is_not_here_is_named_and_can_be_given(base, tmp_path, named, sentence):
    expected = adapter(tmp_path, named, lora())
    with pytest.raises(ValueError, match=sentence) as caught:
        load_folder(tmp_path)
    assert "\n" not in str(caught.value)
    given = Pretrained(str(tmp_path), base=str(base))
    assert torch.equal(load_pretrained(given).model(input_ids=IDS).logits, expected)
    assert pretrained_identity(given)["adapter_on"] == pretrained_identity(Pretrained(str(base)))
    with pytest.raises(ValueError, match=r"is what an adapter is put on, and .*a-base is no adapter"):
        load_pretrained(Pretrained(str(base), base=str(base)))
