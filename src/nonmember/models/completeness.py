"""Whether a model's files hold its weights, all of them and no others, as numbers."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

NUM_NAMED = 3
FLOATING = {"F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2"}

# Tensors that files hold and models rightly do not read, besides those that transformers lists for a class of models.
HARMLESS = {
    "what is computed anew": re.compile(
        r"(^|\.)(rotary_emb|rotary_pos_emb)\.(inv_freq|cos_cached|sin_cached)$"
        r"|(^|\.)(attn|attention)(\.attention)?\.(bias|masked_bias|causal_mask)$"
        r"|(^|\.)(position_ids|_float_tensor)$|(^|\.)(encoder|decoder)\.version$"
    ),
    "what reads pictures or sound": re.compile(
        r"^((model|language_model)\.)?(vision_\w+|visual|multi_modal_projector|mm_projector|image_newline|audio_\w+"
        r"|speech_\w+|embed_vision|embed_audio)(\.|$)"
    ),
    "further heads": re.compile(
        r"^(v_head|value_head|medusa_heads?)\.|^(model\.)?mtp(_\w+)?\."  # of reinforcement learning, of several tokens
        r"|(^|\.)pooler\.|^cls\.seq_relationship\."  # of BERT and its kin
    ),
}
LAYER = re.compile(r"(?:^|\.)(layers\.(\d+))\.")
# What llama.cpp calls the ways in which byte-level vocabularies have texts split as GPT-2's has; and those that have
# every digit alone besides, so that there are no longer numbers among their tokens.
AS_GPT2 = {"gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "gigachat", "a.x-4.0", "mellum"}
OF_DIGITS = {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"}
KIND_AND_WAY = ("tokenizer.ggml.model", "tokenizer.ggml.pre")
OF_NEXT_TOKENS = {"enorm", "hnorm", "eh_proj"}  # what a layer has that predicts further tokens (DeepSeek and its kin)


def require_complete(path: str, loading: Mapping[str, Any], model: Any) -> None:
    """Raise ValueError where a model's weights are not those of its files, all of them and no others.

    Args:
        path: Where it was loaded from.
        loading: What transformers says of it.
        model: As loaded.
    """
    if missing := sorted(loading["missing_keys"]):
        raise ValueError(
            f"{path} lacks {named(missing)}, which would be random numbers: its configuration describes another model "
            "than its weights. Take both from one save_pretrained."
        )
    if mismatched := sorted(loading["mismatched_keys"]):
        name, in_file, in_model = mismatched[0]
        raise ValueError(
            f"{path} holds {named([each[0] for each in mismatched])} in another shape than its configuration asks for "
            f"({name}: {list(in_file)}, not {list(in_model)}). Take both from one save_pretrained."
        )
    if unread := unexpected_of(model, loading["unexpected_keys"]):
        raise ValueError(
            f"{path} holds {named(unread)}, which a {type(model).__name__} of its configuration does not read: scores "
            "would be those of another model. Take both from one save_pretrained, or take such tensors out of the "
            "file where they are surely not part of the model."
        )
    # transformers unties what a configuration ties where the file holds two different tensors; older versions did not,
    # and nothing says which of the two the model was.
    ties = getattr(model, "all_tied_weights_keys", None)
    if ties is not None and (untied := set(model.get_expanded_tied_weights_keys(all_submodels=True)) - set(ties)):
        raise ValueError(
            f"{path} holds {named(sorted(untied))} of its own, which its configuration says is the embedding "
            "(tie_word_embeddings). Set that to false in config.json if the model has one, else take the tensor out."
        )


def require_meaning(path: str, model: Any, tensors: Mapping[str, tuple[str, Any]], is_quantized: bool) -> None:
    """Raise ValueError where nothing says which numbers a file's integers, or its eight bits, stand for.

    Args:
        path: Where it was loaded from.
        model: As loaded.
        tensors: Type and shape of each tensor of its files; empty where they are not known.
        is_quantized: Whether its configuration has a quantization_config.
    """
    own = {name.rpartition(".")[2] for name, _ in model.named_parameters()}
    weights = [name for name in sorted(tensors) if name.rpartition(".")[2] in own and not is_harmless(name)]
    if integers := [name for name in weights if tensors[name][0] not in FLOATING and not is_quantized]:
        raise ValueError(
            f"{path} holds {named(integers)} of the type {tensors[integers[0]][0]}, and its config.json has no "
            "quantization_config that says what these numbers mean. Take the model without quantisation, or its whole "
            "configuration."
        )
    scaled = {name.partition("_scale")[0].removesuffix("weight").rstrip(".") for name in tensors if "_scale" in name}
    short = [name for name in weights if tensors[name][0].startswith("F8") and is_quantized]
    if bare := [name for name in short if name.removesuffix("weight").rstrip(".") not in scaled]:
        raise ValueError(f"{path} holds {named(bare)} in 8 bits without their scales. Take all tensors of its save.")


def unexpected_of(model: Any, names: Collection[str]) -> list[str]:
    """Of the tensors that a model did not read, those that are not known to be harmless."""
    config = model.config.get_text_config()
    first = getattr(config, "num_hidden_layers", None) or 0
    further = getattr(config, "num_nextn_predict_layers", None) or 0
    last_parts: dict[str, set[str]] = {}
    for name in names:
        if layer := LAYER.search(name):
            last_parts.setdefault(layer[1], set()).update(name.split("."))

    def is_of_next_tokens(name: str) -> bool:
        layer = LAYER.search(name)
        return bool(layer and first <= int(layer[2]) < first + further and last_parts[layer[1]] & OF_NEXT_TOKENS)

    return sorted(name for name in names if not is_harmless(name) and not is_of_next_tokens(name))


def is_harmless(name: str) -> bool:
    return any(pattern.search(name) for pattern in HARMLESS.values())


def named(names: Collection[str]) -> str:
    """How many, and the first of them."""
    shown = ", ".join(list(names)[:NUM_NAMED])
    return f"{len(names)} tensor{'s' * (len(names) > 1)} ({shown}{', ...' * (len(names) > NUM_NAMED)})"


def require_all_read(file: Path, model: Any) -> None:
    """Raise ValueError where a GGUF file holds more or fewer numbers than the model that transformers made of it:
    tensors for which it has no name are left out in silence."""
    from gguf import GGUFReader

    held = {str(tensor.name): math.prod(map(int, tensor.shape)) for tensor in GGUFReader(file).tensors}
    num_read = sum(parameter.numel() for parameter in model.parameters())
    if sum(held.values()) == num_read:
        return
    num_blocks = getattr(model.config.get_text_config(), "num_hidden_layers", None) or 0
    numbers = {name: int(match[1]) for name in held if (match := re.match(r"blk\.(\d+)\.", name))}
    # The frequencies of rotary embeddings that some files hold are another model's without them.
    unread = [name for name in held if numbers.get(name, -1) >= num_blocks or name.startswith("rope_")]
    raise ValueError(
        f"{file} holds {sum(held.values()):,} numbers, and transformers reads {num_read:,} of them as a "
        f"{type(model).__name__}{', not ' + named(unread) if unread else ''}: scores would be those of another model. "
        "Take the model as safetensors."
    )


def warn_if_split_otherwise(file: Path) -> None:
    """Warn where a GGUF file names a way of splitting texts that transformers does not know: it then takes GPT-2's."""
    from gguf import GGUFReader

    try:
        from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS
    except ImportError:  # of other versions, of which the checks of the tokenizer must do
        return
    fields = GGUFReader(file).fields
    kind, way = (fields[name].contents() if name in fields else None for name in KIND_AND_WAY)
    if kind == "gpt2" and way is not None and way not in AS_GPT2 | OF_DIGITS | GGUF_PRE_TOKENIZER_SPLITS.keys():
        log.warning(
            "%s has texts split in a way that it calls %s, which transformers does not know: it splits them as GPT-2's "
            "tokenizer does. Some, numbers above all, may be cut into other tokens than in its training. Take the "
            "model as safetensors with its tokenizer.json.",
            file,
            way,
        )
