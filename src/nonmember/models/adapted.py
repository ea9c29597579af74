"""Adapters from elsewhere (LoRA and its kin), put on their base."""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from peft import PeftModel
from peft.mapping import PEFT_TYPE_TO_CONFIG_MAPPING
from peft.utils import get_peft_model_state_dict, set_peft_model_state_dict
from safetensors.torch import load_file
from torch import Tensor
from transformers.utils import cached_file

from nonmember.models.completeness import named
from nonmember.models.folders import ADAPTER

NAME = "default"  # of the adapter within peft
PREFIX = "base_model.model."
WEIGHTS = "adapter_model.safetensors"
COMPUTED = {"ranknum", "vera_A", "vera_B"}  # parts of adapters that peft works out anew and need not save
# Options under which the layers of the base alone do not compute what the adapter does, or other code is imported.
NOT_READ = ("alora_invocation_tokens", "megatron_config")


def put_on(base: Any, path: str, revision: str | None, *, merged: bool) -> Any:
    """The base with the adapter of a folder or hub name, in evaluation mode.

    Args:
        base: A model of transformers, which is changed.
        path: Where the adapter is.
        revision: Of the adapter on the hub.
        merged: Whether its weights are added to those of the base.

    Raises:
        ValueError: The adapter does more than change layers of the base, or it is not this base's.
    """
    config = _config(path, revision)
    weights = _once(load_file(_file(path, WEIGHTS, revision)))
    own, embeddings = set(base.state_dict()), _embeddings(base)
    _grow(base, embeddings, weights, config)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peft's advice to those who train
        model = PeftModel(base, config, adapter_name=NAME, autocast_adapter_dtype=False)
        kept = get_peft_model_state_dict(model, save_embedding_layers=False)
        _require_shapes(weights, {} if config.peft_type == "ADALORA" else kept)  # which has ranks of its own
        result: Any = set_peft_model_state_dict(model, weights, adapter_name=NAME)
    foreign = [
        name
        for name in weights
        if name not in kept and name.removeprefix(PREFIX) in own - {f"{each}.weight" for each in embeddings}
    ]
    if foreign := sorted({*foreign, *result.unexpected_keys}):
        raise ValueError(
            f"It holds {named(foreign)}, which its adapter_config.json does not name or its base "
            "does not have. Take both files from one save_pretrained, and the base that it was trained on."
        )
    parts = ((name, set(name.split("."))) for name in result.missing_keys)
    if missing := sorted(name for name, part in parts if NAME in part and not part & COMPUTED):
        raise ValueError(
            f"It lacks {named(missing)}, which its adapter_config.json names. Take both files from "
            "one save_pretrained, and the base that it was trained on."
        )
    if merged:
        return model.merge_and_unload(safe_merge=True).requires_grad_(True).eval()
    return model.get_base_model().eval()


def _once(weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """Embeddings that were trained whole and got rows, which peft writes three times, as it reads them alone: without
    the same under their place in its wrapper, and without those that they stand for."""
    copies = {name: name.replace(".modules_to_save.", ".") for name in weights if ".modules_to_save." in name}
    needless = set()
    for name, read in copies.items():
        if read in weights and torch.equal(weights[name], weights[read]):
            needless |= {name, name.replace(".modules_to_save.", ".original_module.")}
    return {name: tensor for name, tensor in weights.items() if name not in needless}


def _file(path: str, name: str, revision: str | None) -> Path:
    file = cached_file(path, name, revision=revision)
    if file is None:
        raise ValueError(f"It has no {name}. Save it again, as safetensors.")
    return Path(file)


def _config(path: str, revision: str | None) -> Any:
    read = json.loads(_file(path, ADAPTER, revision).read_text(encoding="utf-8"))
    kinds = {kind.value: cls for kind, cls in PEFT_TYPE_TO_CONFIG_MAPPING.items()}
    kind, task = read.get("peft_type"), read.get("task_type")
    if kind not in kinds:
        raise ValueError(
            f"peft_type in {path}/{ADAPTER} must be one that peft knows ({', '.join(sorted(kinds))}); got "
            f"{json.dumps(kind)}."
        )
    if task not in (None, "CAUSAL_LM"):
        raise ValueError(f"It must be one of a causal language model; its task_type is {task}.")
    known = {field.name for field in dataclasses.fields(kinds[kind])}
    odd = [name for name, value in read.items() if value and (name not in known or name in NOT_READ)]
    if odd:
        raise ValueError(
            f"{path}/{ADAPTER} sets {', '.join(odd)}, which is not read here, so that scores would be those of another "
            "model. Merge the adapter into its base where it was trained, and give that model."
        )
    config = kinds[kind](**{name: value for name, value in read.items() if name in known})
    if config.is_prompt_learning or config.is_adaption_prompt or kind == "XLORA":
        raise ValueError(
            f"It is of the kind {kind}, which puts learned vectors before a text or mixes adapters. "
            "Only adapters that change layers of their base are read: LoRA and its kin."
        )
    config.inference_mode = True
    return config


def _embeddings(base: Any) -> list[str]:
    """Names of the modules of input and output, one where they are tied."""
    parts = [base.get_input_embeddings(), base.get_output_embeddings()]
    if parts[1] is not None and parts[0].weight is parts[1].weight:
        del parts[1]
    return [name for name, module in base.named_modules() if any(module is part for part in parts)]


def _grow(base: Any, embeddings: list[str], weights: Mapping[str, Tensor], config: Any) -> None:
    """As many rows as the adapter was trained with, where tokens were added and their rows are in its file."""
    rows = {}
    for name in (*embeddings, *(["lm_head"] if len(embeddings) == 1 else [])):
        for form in ("weight", "base_layer.weight"):
            if (tensor := weights.get(f"{PREFIX}{name}.{form}")) is not None:
                rows[name] = len(tensor)
    before = len(base.get_input_embeddings().weight)
    if not set(rows.values()) - {before}:
        return
    # A trained copy of a tied embedding is that of the input alone: the output keeps rows that are in no file.
    is_copy = any(embeddings[0].endswith(name) for name in getattr(config, "modules_to_save", None) or ())
    enough = 2 if is_copy and not getattr(config, "ensure_weight_tying", False) else len(embeddings)
    if len(rows) < enough or len(set(rows.values())) > 1 or max(rows.values()) < before:
        raise ValueError(
            f"It was trained on a base with {max(rows.values())} rows of the vocabulary, and this one has {before}. Of "
            f"the further rows only those of {', '.join(rows)} are in its file. Merge it into its base where it was "
            "trained, and give that model."
        )
    with torch.random.fork_rng(devices=[]):
        base.resize_token_embeddings(max(rows.values()), mean_resizing=False)


def _require_shapes(weights: Mapping[str, Tensor], kept: Mapping[str, Tensor]) -> None:
    wrong = [name for name in sorted(weights) if name in kept and weights[name].shape != kept[name].shape]
    if wrong:
        given, wanted = list(weights[wrong[0]].shape), list(kept[wrong[0]].shape)
        raise ValueError(
            f"It holds {named(wrong)} in another shape than its adapter_config.json and its base ask "
            f"for ({wrong[0]}: {given}, not {wanted}). Name the base that it was trained on, and its own configuration."
        )
