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


def require_complete(path: str, loading: Mapping[str, Any], model: Any) -> None:
    """Raise ValueError where weights are missing or of another shape; warn of tensors that are not read.

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
    if unread := sorted(loading["unexpected_keys"]):
        known = re.compile(r"vision|rotary|(^|\.)(attn|attention)\.(masked_)?bias$|mtp")
        in_layers = [item for item in unread if LAYER.search(item) and not known.search(item)]
        # A layer with `eh_proj` predicts further tokens (DeepSeek and its kin).
        of_further_tokens = tuple(LAYER.findall(item)[0] for item in in_layers if ".eh_proj." in item)
        if layers := [item for item in in_layers if not item.startswith(of_further_tokens)]:
            raise ValueError(f"{path} holds {named(layers)}, which are not read: scores would be another model's.")
        log.warning(
            "%s holds %s, which a %s does not read. If they are layers of the model, scores are another model's.",
            path,
            named(unread),
            type(model).__name__,
        )


def named(names: Collection[str]) -> str:
    """How many, and the first of them."""
    shown = ", ".join(list(names)[:NUM_NAMED])
    return f"{len(names)} tensor{'s' * (len(names) > 1)} ({shown}{', ...' * (len(names) > NUM_NAMED)})"


def require_all_read(file: Path, model: Any) -> None:
    """Raise ValueError where a GGUF file holds more or fewer numbers than the model that transformers made of it:
    tensors for which it has no name are left out in silence."""
    from gguf import GGUFReader

    held = sum(math.prod(map(int, tensor.shape)) for tensor in GGUFReader(file).tensors)
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
