"""Models without weights: the modules of an architecture on torch's meta device, and adapters on them."""

from __future__ import annotations

import functools
import json
import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from nonmember.artifacts.store import canonical_json
from nonmember.feasibility.descriptions import HubModel
from nonmember.models.kinds.scratch import Scratch
from nonmember.runtime.files import json_object
from nonmember.runtime.naming import path_of
from nonmember.training.recipes import AdaLora, Ia3, Lora

LAYER_NAMES = ("num_hidden_layers", "n_layer")  # of configurations
NUM_STEPS = 1000  # of a training that AdaLoRA plans its ranks for; nothing that is counted hangs on it


@dataclass(frozen=True)
class Shape:
    """What memory and time hang on."""

    num_parameters: int
    num_layers: int
    hidden: int
    intermediate: int  # of the inner layer
    width_of_keys: int  # of all keys of a token
    vocabulary: int  # rows of the output matrix
    context: int | None  # most tokens that it reads; None: no limit
    tied: bool  # whether input and output matrix are one


def meta_model(described: HubModel, num_layers: int | None = None) -> Any:
    """A model of the description, without weights; with fewer layers if so many are given."""
    settings = dict(described.architecture)
    if num_layers is not None:
        settings |= {name: num_layers for name in LAYER_NAMES if name in settings}
    if described.modules:
        return _Described(described, int(settings["num_hidden_layers"]))
    return from_settings(described.model_type, settings)


def from_settings(model_type: str, settings: dict[str, Any]) -> Any:
    from transformers import AutoConfig, AutoModelForCausalLM

    from nonmember.models.loading import own_implementation

    with torch.device("meta"):
        config = own_implementation(AutoConfig.for_model(model_type, **settings))
        return AutoModelForCausalLM.from_config(config, trust_remote_code=False)


class _Described(nn.Module):
    """The linear layers of a model whose own code is elsewhere, under their names: enough to count and to adapt."""

    def __init__(self, described: HubModel, num_layers: int) -> None:
        super().__init__()
        from transformers import PreTrainedConfig

        config: Any = PreTrainedConfig(**dict(described.architecture))
        config.model_type = described.model_type
        self.config = config
        hidden, rows = described.architecture["hidden_size"], described.architecture["vocab_size"]
        with torch.device("meta"):
            self.embed_tokens = nn.Embedding(rows, hidden)
            self.layers = nn.ModuleList(_layer(described, hidden) for _ in range(num_layers))
            self.norm = nn.LayerNorm(hidden)

    def get_output_embeddings(self) -> nn.Module:
        return self.embed_tokens

    def prepare_inputs_for_generation(self) -> None:
        """Which adapters want to find."""


def _layer(described: HubModel, hidden: int) -> nn.Module:
    layer = nn.ModuleDict({"norm_before": nn.LayerNorm(hidden), "norm_after": nn.LayerNorm(hidden)})
    for name, inputs, outputs in described.modules:
        part, _, last = name.rpartition(".")
        if part not in layer:
            layer[part] = nn.ModuleDict()
        inner: Any = layer[part]
        inner[last] = nn.Linear(inputs, outputs)
    return layer


@functools.cache
def shape_of(path: str) -> Shape | None:
    """Of a model of the hub, or of a folder by its config.json; None where it is not described."""
    from nonmember.feasibility.descriptions import hub_models

    if (path_of(path) / "config.json").is_file():
        try:
            return shape_of_model(_whole(path))
        except (ValueError, TypeError, KeyError, AttributeError, ImportError):  # only its own code knows its layers
            return None
    return shape_of_model(_whole(path)) if path in hub_models() else None


def shape_of_scratch(spec: Scratch) -> Shape:
    settings = {"vocab_size": spec.tokenizer.vocab_size, **spec.architecture}
    return _shape_of_settings(spec.model_type, canonical_json(settings))


@functools.cache  # the models of a sweep are few, and asked about several times a cell
def _shape_of_settings(model_type: str, settings: str) -> Shape:
    return shape_of_model(from_settings(model_type, json.loads(settings)))


def shape_of_model(model: Any) -> Shape:
    config = model.config.to_dict()

    def first(*names: str) -> Any:
        return next((config[name] for name in names if config.get(name) is not None), None)

    hidden, heads = first("hidden_size", "n_embd"), first("num_attention_heads", "n_head")
    return Shape(
        num_parameters=sum(parameter.numel() for parameter in model.parameters()),
        num_layers=first(*LAYER_NAMES),
        hidden=hidden,
        intermediate=first("intermediate_size", "ff_intermediate_size", "ffn_dim", "n_inner") or 4 * hidden,
        width_of_keys=(first("head_dim") or hidden // heads) * (first("num_key_value_heads") or heads),
        vocabulary=first("vocab_size"),
        context=first("max_position_embeddings", "n_positions"),
        tied=bool(config.get("tie_word_embeddings")),
    )


@functools.cache
def _whole(path: str) -> Any:
    """Without weights: by the config.json of a folder, of which nothing else is read, or as it is described."""
    from nonmember.feasibility.descriptions import hub_models

    if (file := path_of(path) / "config.json").is_file():
        settings = json_object(file)
        return from_settings(str(settings.pop("model_type", "")), settings)
    return meta_model(hub_models()[path])


@functools.cache
def num_tuned_of_hub(path: str, adapter: Lora | AdaLora | Ia3) -> int:
    """Parameters of an adapter on a described model of the hub; see `num_tuned`."""
    return num_tuned(_whole(path), adapter)


def num_tuned(model: Any, adapter: Lora | AdaLora | Ia3) -> int:
    """Parameters of an adapter on a model without weights. Raises ValueError where it finds no module to adapt."""
    from nonmember.training.adapters import add_adapter

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        adapted = add_adapter(model, adapter, seed=0, num_steps=NUM_STEPS)
    return sum(parameter.numel() for parameter in adapted.parameters() if parameter.requires_grad)
