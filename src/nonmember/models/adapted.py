"""Adapters from elsewhere (LoRA and its kin), put on their base."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import torch
from peft import PeftConfig, PeftModel
from peft.utils import get_peft_model_state_dict, load_peft_weights
from torch import Tensor

from nonmember.models.completeness import named
from nonmember.models.forward import full_logits, number_of_embeddings

PREFIX = "base_model.model."
SHORT, MOST_MOVED = 16, 0.25  # tokens read, and how far logits may move by rounding when an adapter is merged
COPIES = (".modules_to_save.", ".original_module.")  # which peft may write beside a module that was trained whole


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
    config: Any = PeftConfig.from_pretrained(path, revision=revision)
    if config.is_prompt_learning or config.task_type not in (None, "CAUSAL_LM"):
        raise ValueError(
            f"It is of the kind {config.peft_type}, for {config.task_type}. Only adapters that change layers of a "
            "causal language model are read: LoRA and its kin."
        )
    weights = load_peft_weights(path, device="cpu", revision=revision)
    _grow(base, weights, config)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = PeftModel.from_pretrained(base, path, revision=revision, autocast_adapter_dtype=False)
    if missing := [str(item.message) for item in caught if "missing adapter keys" in str(item.message)]:
        raise ValueError(f"Its files are not of one save_pretrained: {missing[0].splitlines()[0]}")
    read = get_peft_model_state_dict(model, save_embedding_layers=True)
    if foreign := [name for name in sorted(weights) if name not in read and not any(part in name for part in COPIES)]:
        raise ValueError(
            f"It holds {named(foreign)}, which its adapter_config.json does not name or its base does not have. Take "
            "both files from one save_pretrained, and the base that it was trained on."
        )
    if not merged:
        return model.get_base_model().eval()
    probe_BT = torch.arange(min(SHORT, number_of_embeddings(model)[0]), device=model.device)[None]
    with torch.no_grad():
        beside = full_logits(model.eval(), probe_BT).float()
        whole = model.merge_and_unload(safe_merge=True).requires_grad_(True).eval()
        moved = float((full_logits(whole, probe_BT).float() - beside).abs().max() / beside.std())
    if not moved < MOST_MOVED:  # as peft merges rows of an output matrix into the embedding that it is tied to
        raise ValueError(
            f"Merged into its base it gives other logits (by {moved:.2g} standard deviations): the base shares a "
            "matrix that the adapter changes in one place. Train it on a base with an output matrix of its own."
        )
    return whole


def _grow(base: Any, weights: Mapping[str, Tensor], config: Any) -> None:
    """As many rows of the vocabulary as the adapter was trained with: adapters of chats often add tokens."""
    parts = [base.get_input_embeddings(), base.get_output_embeddings()]
    is_tied = parts[1] is not None and parts[0].weight is parts[1].weight
    names = [name for name, module in base.named_modules() if any(module is part for part in parts)]
    of_layer = ("", "base_layer.", "token_adapter.base_layer.")
    keys = {name: [f"{PREFIX}{name}.{part}weight" for part in of_layer] for name in names}
    rows = {name: len(weights[key]) for name, forms in keys.items() for key in forms if key in weights}
    before, most = len(parts[0].weight), max(rows.values(), default=0)
    if most <= before:
        return
    is_copied = bool(getattr(config, "modules_to_save", None)) and not getattr(config, "ensure_weight_tying", False)
    if len(rows) < (1 if is_tied and not is_copied else len(names)):  # the others' rows would be random numbers
        raise ValueError(
            f"It was trained on a base with {most} rows of the vocabulary, and this one has {before}. Of the further "
            f"rows only those of {', '.join(rows)} are in its file. Merge it into its base where it was trained, and "
            "give that model."
        )
    with torch.random.fork_rng(devices=[]):
        base.resize_token_embeddings(most, mean_resizing=False)
