"""Whether a model's files hold its weights, all of them and no others."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

log = logging.getLogger(__name__)

NUM_NAMED = 3
# What llama.cpp calls the ways in which byte-level vocabularies have texts split as GPT-2's has; and those that have
# every digit alone besides, so that there are no longer numbers among their tokens.
AS_GPT2 = {"gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "gigachat", "a.x-4.0", "mellum"}
OF_DIGITS = {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"}
KIND_AND_WAY = ("tokenizer.ggml.model", "tokenizer.ggml.pre")
LAYER = re.compile(r"^(?:.*\.)?layers\.\d+\.")
# Tensors that files hold and models rightly do not read, besides those that transformers lists for a class of models:
# what is computed anew, what reads pictures or sound, heads for other ends.
HARMLESS = re.compile(
    r"rotary_(pos_)?emb\.|(^|\.)(attn|attention)(\.attention)?\.(bias|masked_bias|causal_mask)$|(^|\.)position_ids$"
    r"|(^|\.)(vision|visual|audio|speech|embed_vision|embed_audio|multi_modal_projector|mm_projector)(_\w+)?\."
    r"|^(v_head|value_head|medusa_heads?)\.|(^|\.)mtp(_\w+)?\.|(^|\.)pooler\."
)
SCALES = ("_scale", "_scale_inv")


def require_complete(path: str, loading: Mapping[str, Any], model: Any) -> None:
    """Raise ValueError where weights are missing, of another shape, or not read.

    loading: what transformers says of it.
    """
    if missing := sorted(loading["missing_keys"]):
        raise ValueError(
            f"{path} lacks {named(missing)}, which would be random numbers: its configuration describes another model "
            "than its weights. Take both from one save_pretrained."
        )
    if mismatched := sorted(loading["mismatched_keys"]):
        name, in_file, in_model = mismatched[0]
        raise ValueError(
            f"{path} holds {named([item[0] for item in mismatched])} in another shape than its configuration asks for "
            f"({name}: {list(in_file)}, not {list(in_model)}). Take both from one save_pretrained."
        )
    unread = [name for name in sorted(loading["unexpected_keys"]) if not HARMLESS.search(name)]
    # A layer with `eh_proj` predicts further tokens (DeepSeek and its kin).
    of_further_tokens = tuple(LAYER.findall(name)[0] for name in unread if LAYER.search(name) and ".eh_proj." in name)
    if unread := [name for name in unread if not name.startswith(of_further_tokens)]:
        raise ValueError(
            f"{path} holds {named(unread)}, which are not read: scores would be another model's. Take both from one "
            "save_pretrained, or such tensors out of the file where they are surely not part of the model."
        )
    # transformers unties what a configuration ties where the file holds two different tensors; older versions did not,
    # and nothing says which of the two the model was.
    if untied := sorted(
        set(model.get_expanded_tied_weights_keys(all_submodels=True)) - set(model.all_tied_weights_keys)
    ):
        raise ValueError(
            f"{path} holds {named(untied)} of its own, which its configuration says is the embedding "
            "(tie_word_embeddings). Set that to false in config.json if the model has one, else take the tensor out."
        )


def require_meaning(path: str, folder: Path, model: Any) -> None:
    """Raise ValueError where nothing says which numbers the integers of a folder's safetensors stand for, or its eight
    bits. transformers reads them as they are, also where it does not know the quantization that a configuration names.
    """
    from safetensors import safe_open

    types: dict[str, str] = {}
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, "pt") as tensors:
            types |= {name: tensors.get_slice(name).get_dtype() for name in tensors.keys()}  # noqa: SIM118
    own = {form for name, _ in model.named_parameters() for form in (name, name.partition(".")[2])}
    is_quantized = getattr(model, "hf_quantizer", None) is not None
    if wrong := [
        name
        for name in sorted(own & types.keys())
        if (types[name].startswith("F8") and not any(f"{name}{scale}" in types for scale in SCALES))
        or not (types[name].startswith(("F", "BF")) or is_quantized)
    ]:
        raise ValueError(
            f"{path} holds {named(wrong)} of the type {types[wrong[0]]}, and nothing beside says what these numbers "
            "mean (a known quantization_config in config.json, scales in the file). Take the model without "
            "quantisation, or all files of its save."
        )


def named(names: Collection[str]) -> str:
    """How many, and the first of them."""
    shown = ", ".join(list(names)[:NUM_NAMED])
    return f"{len(names)} tensor{'s' * (len(names) > 1)} ({shown}{', ...' * (len(names) > NUM_NAMED)})"


def require_all_read(file: Path, model: Any) -> None:
    """Raise ValueError where a GGUF file holds more or fewer numbers than the model that transformers made of it:
    tensors for which it has no name are left out in silence."""
    from gguf import GGUFReader

    held = sum(math.prod(map(int, tensor.shape)) for tensor in GGUFReader(str(file)).tensors)
    if held != (num_read := sum(parameter.numel() for parameter in model.parameters())):
        raise ValueError(
            f"{file} holds {held:,} numbers, and transformers reads {num_read:,} of them as a {type(model).__name__}: "
            "scores would be those of another model. Take the model as safetensors."
        )


def warn_if_split_otherwise(file: Path) -> None:
    """Warn where a GGUF file names a way of splitting texts that transformers does not know: it then takes GPT-2's."""
    from gguf import GGUFReader

    try:
        from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS
    except ImportError:  # of other versions, of which the checks of the tokenizer must do
        return
    fields = GGUFReader(str(file)).fields
    kind, way = (fields[name].contents() if name in fields else None for name in KIND_AND_WAY)
    if kind == "gpt2" and way is not None and way not in AS_GPT2 | OF_DIGITS | GGUF_PRE_TOKENIZER_SPLITS.keys():
        log.warning(
            "%s has texts split in a way that it calls %s, which transformers does not know: it splits them as GPT-2's "
            "tokenizer does. Some, numbers above all, may be cut into other tokens than in its training. Take the "
            "model as safetensors with its tokenizer.json.",
            file,
            way,
        )
