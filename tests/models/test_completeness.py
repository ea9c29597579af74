"""A model is refused where its files are not its configuration's, and no code that its configuration names is run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoModelForImageTextToText,
    Gemma2Config,
    Gemma2ForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
)
from transformers.integrations import hub_kernels

import tiny
from nonmember.models import Gguf, Pretrained
from nonmember.models.forward import split_forward
from nonmember.models.hub import pretrained_identity
from nonmember.models.kinds.pretrained import ATTENTIONS, load_folder
from nonmember.models.loading import load_pretrained, own_implementation, train_tokenizer
from nonmember.models.reading import position_limit
from nonmember.records import Corpus

SIZES: dict[str, Any] = {
    "vocab_size": tiny.VOCAB_SIZE,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 64,
}
TOKENIZER = train_tokenizer(Corpus(tiny.GENERAL.documents), tiny.VOCAB_SIZE)
Q, NORM = "model.layers.0.self_attn.q_proj", "model.norm.weight"
Weights = dict[str, Tensor]


def llama(**changes: Any) -> Any:
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**SIZES | changes))


def saved(folder: Path, model: Any, **changes: Any) -> Path:
    """A model's folder, with changes of its configuration."""
    model.save_pretrained(folder)
    TOKENIZER.save_pretrained(folder)
    configure(folder, **changes)
    return folder


def configure(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / "config.json").read_text()) | changes
    (folder / "config.json").write_text(json.dumps(config))


def change(folder: Path, how: Callable[[Weights], Weights]) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file(how(weights), folder / "model.safetensors", metadata={"format": "pt"})


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    return saved(tmp_path_factory.mktemp("models") / "sound", llama())


@pytest.fixture
def folder(sound, tmp_path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "a-model"))


def more(**shapes: tuple[int, ...]) -> Callable[[Weights], Weights]:
    return lambda weights: weights | {name.replace("__", "."): torch.ones(*shape) for name, shape in shapes.items()}


def cast(name: str, dtype: torch.dtype) -> Callable[[Weights], Weights]:
    return lambda weights: {each: value.to(dtype) if name in each else value for each, value in weights.items()}


NOT_READ = "which are not read: scores would be another model's"
WRONG = [
    ({"num_hidden_layers": 1}, None, "holds 9 tensors (model.layers.1.input_layernorm.weight, "),
    ({"num_hidden_layers": 3}, None, "lacks 9 tensors (model.layers.2.input_layernorm.weight, "),
    ({"vocab_size": 270}, None, "holds 2 tensors (lm_head.weight, model.embed_tokens.weight) in another shape"),
    ({}, lambda weights: {name: each for name, each in weights.items() if name != NORM}, f"lacks 1 tensor ({NORM})"),
    ({}, more(model__norm__weight=(17,)), f"({NORM}: [17], not [16])"),
    ({}, more(model__layers__0__self_attn__q_proj__bias=(16,)), f"holds 1 tensor ({Q}.bias), {NOT_READ}"),
    ({}, more(model__layers__0__mlp__up_proj__weight_scale=(1,)), NOT_READ),
    ({"tie_word_embeddings": True}, None, "holds 1 tensor (lm_head.weight) of its own"),
    ({}, more(lm_head__bias=(280,)), f"holds 1 tensor (lm_head.bias), {NOT_READ}"),
    ({}, more(score__weight=(2, 16)), f"holds 1 tensor (score.weight), {NOT_READ}"),
    ({}, cast("mlp", torch.int8), "holds 6 tensors (model.layers.0.mlp.down_proj.weight, "),
    ({"quantization_config": {"quant_method": "unknown"}}, cast("mlp", torch.int8), "of the type I8"),
    ({}, cast(NORM, torch.bool), f"holds 1 tensor ({NORM}) of the type BOOL"),
    (
        {"quantization_config": {"quant_method": "fp8"}},
        cast("mlp", torch.float8_e4m3fn),
        "holds 6 tensors (model.layers.0.mlp.down_proj.weight, model.layers.0.mlp.gate_proj.weight, "
        "model.layers.0.mlp.up_proj.weight, ...) of the type F8_E4M3",
    ),
]


@pytest.mark.parametrize(("changes", "how", "sentence"), WRONG, ids=[sentence for _, _, sentence in WRONG])
def test_weights_that_are_not_the_configurations_are_named(folder, changes, how, sentence):
    configure(folder, **changes)
    if how:
        change(folder, how)
    with pytest.raises(ValueError, match="a-model") as caught:
        load_folder(folder)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


HARMLESS = {
    "model.layers.0.self_attn.rotary_emb.inv_freq": (4,),
    "model.layers.0.attn.masked_bias": (),
    "v_head.summary.weight": (1, 16),
    "vision_tower.patch.weight": (3, 3),
    "model.vision_tower.patch.weight": (3, 3),
    "multi_modal_projector.weight": (3, 3),
    "mtp.layers.0.weight": (3, 3),
    "model.embed_tokens.position_ids": (1, 9),
}


def test_what_is_known_to_be_harmless_changes_nothing(folder, sound):
    change(folder, lambda weights: weights | {name: torch.ones(shape) for name, shape in HARMLESS.items()})
    tiny.assert_equal_weights(tiny.weights(load_folder(folder).model), tiny.weights(load_folder(sound).model))


# Implementations --------------------------------------------------------------------------------------------

NAMED = [
    {name: value}
    for name in ("_attn_implementation", "attn_implementation", "_attn_implementation_internal")
    for value in ("owner/kernel", {"": "owner/kernel"}, "flash_attention_2", "eager")
] + [
    {"_experts_implementation": "owner/kernel"},
    {"experts_implementation": "owner/kernel"},
    {"use_kernels": True, "kernel_config": {"RMSNorm": "owner/kernel"}},
    {"fusion_config": {"layer": True}},
]


@pytest.mark.parametrize("changes", NAMED, ids=str)
def test_no_implementation_of_a_configuration_is_followed(folder, monkeypatch, changes):
    configure(folder, **changes)
    monkeypatch.setattr(hub_kernels, "is_kernels_available", lambda: True)
    assert load_folder(folder).model.config._attn_implementation == "sdpa"


def test_code_of_the_hub_is_not_fetched(monkeypatch):
    monkeypatch.setattr(hub_kernels, "is_kernels_available", lambda: True)
    with pytest.raises(ValueError, match="owner/kernel is code on the hub, which is never run here"):
        hub_kernels.load_and_register_attn_kernel("owner/kernel", allow_all_kernels=True)
    assert hub_kernels.lazy_load_kernel("causal-conv1d", {}) is None


def test_a_nested_configuration_is_cleaned_too():
    config = Gemma2Config(**SIZES)
    config.inner = LlamaConfig(**SIZES, attn_implementation="owner/kernel", experts_implementation="owner/kernel")
    cleaned = own_implementation(config).inner
    assert (cleaned._attn_implementation, cleaned._experts_implementation) == (None, None)


def test_the_implementation_is_a_setting_and_part_of_the_key(sound):
    ids = torch.arange(24).reshape(2, 12)
    logits = {}
    for attention in ("auto", "eager", "sdpa"):
        model = load_pretrained(Pretrained(str(sound), attention=attention)).model
        assert model.config._attn_implementation == ("sdpa" if attention == "auto" else attention)
        logits[attention] = model(input_ids=ids).logits
    assert torch.equal(logits["auto"], logits["sdpa"])
    assert torch.allclose(logits["auto"], logits["eager"], atol=1e-5)
    plain = pretrained_identity(Pretrained(str(sound)))
    assert pretrained_identity(Pretrained(str(sound), attention="eager")) == plain | {"attention": "eager"}
    assert Pretrained("a.gguf", attention="eager").gguf == Gguf("a.gguf", attention="eager")
    with pytest.raises(
        ValueError, match=f"attention of a model must be one of {', '.join(ATTENTIONS)}; got 'owner/kernel'"
    ):
        Pretrained("a", attention="owner/kernel")


def test_an_implementation_that_is_not_there_says_so(sound, tmp_path):
    with pytest.raises(ValueError, match=r"has no attention=flash_attention_2: .* Use attention=auto"):
        load_pretrained(Pretrained(str(sound), attention="flash_attention_2"))
    gemma = saved(tmp_path / "gemma", Gemma2ForCausalLM(Gemma2Config(**SIZES, head_dim=8)))
    assert load_folder(gemma).model.config._attn_implementation == "eager"
    with pytest.raises(ValueError, match=r"has no attention=sdpa: .* Use attention=auto, which takes what is there"):
        load_pretrained(Pretrained(str(gemma), attention="sdpa"))


VISION = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
WITH_PICTURES = {
    "mistral3": {"model_type": "pixtral", "head_dim": 8, "image_size": 28, "patch_size": 14},
    "llava": {"model_type": "clip_vision_model", "image_size": 28, "patch_size": 14, "projection_dim": 16},
}


@pytest.mark.parametrize("kind", WITH_PICTURES)
def test_models_of_text_and_pictures_are_read_as_text(tmp_path, kind):
    """transformers knows these as no AutoModelForCausalLM."""
    text = {"model_type": "llama", **SIZES, "vocab_size": len(TOKENIZER)}
    config = AutoConfig.for_model(kind, text_config=text, vision_config=VISION | WITH_PICTURES[kind])
    model = AutoModelForImageTextToText.from_config(config).eval()
    loaded = load_folder(saved(tmp_path / kind, model)).model
    ids = torch.arange(12)[None]
    assert torch.equal(loaded(input_ids=ids).logits, model(input_ids=ids).logits)
    assert split_forward(loaded).streaming
    assert position_limit(loaded.config) == config.text_config.max_position_embeddings


# Positions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "limit"),
    [
        ({"max_position_embeddings": 64}, 64),
        ({"max_position_embeddings": 64.0}, 64),
        ({"max_position_embeddings": None, "n_positions": 7}, 7),
        ({"max_position_embeddings": "64"}, None),
        ({"max_position_embeddings": -1}, None),
        ({"max_position_embeddings": 0}, None),
        ({"max_position_embeddings": 1e30}, None),
        ({"max_position_embeddings": float("nan")}, None),
        ({"max_position_embeddings": True}, None),
        ({"max_seq_len": 9}, 9),
        ({"seq_length": 9}, 9),
        ({}, None),
        ({"model_type": "bloom", "seq_length": 9}, None),
        ({"model_type": "mamba", "n_ctx": 9}, None),
    ],
)
def test_the_limit_of_positions_is_what_a_configuration_means(settings, limit):
    class Config:
        model_type, pad_token_id = "other", 1

        def get_text_config(self) -> Config:
            return self

    config = Config()
    vars(config).update(settings)
    assert position_limit(config) == limit
