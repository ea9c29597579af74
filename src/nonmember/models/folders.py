"""Checks of a model folder's small files, before anything heavy is imported or weights are read."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nonmember.checks import require_count

CONFIG = "config.json"
ADAPTER = "adapter_config.json"
INDEX = "model.safetensors.index.json"
SAFE, PICKLES = ".safetensors", (".bin", ".pt", ".pth", ".ckpt", ".pkl")
NO_PICKLES = "Pickles can run code when they are read: save the model again with save_pretrained, as safetensors."
EXPECTED = "Expected a folder or hub name with config.json and safetensors weights that belong to it."

# Sizes by the names that most architectures give them, and the largest that is still a size.
WIDTH, DEPTH, VOCABULARY = ("hidden_size", "n_embd", "d_model"), ("num_hidden_layers", "n_layer"), ("vocab_size",)
SIZES = {
    WIDTH: 10**6,
    DEPTH: 10**4,
    VOCABULARY: 10**8,
    ("num_attention_heads", "n_head", "num_key_value_heads"): 10**5,
    ("intermediate_size", "ffn_dim"): 10**7,
    ("max_position_embeddings", "n_positions"): 10**9,
}

# The packages that read what was quantised by a method, as transformers names it.
QUANTIZERS = {
    "aqlm": "aqlm",
    "auto-round": "auto_round",
    "awq": "gptqmodel",
    "bitsandbytes": "bitsandbytes",
    "compressed-tensors": "compressed_tensors",
    "fbgemm_fp8": "fbgemm_gpu",
    "gptq": "gptqmodel",
    "hqq": "hqq",
    "quanto": "optimum",
    "spqr": "spqr_quant",
    "torchao": "torchao",
    "vptq": "vptq",
}


def has_config(path: str) -> bool:
    """Whether a local folder holds more than a tokenizer."""
    return any((Path(path) / name).is_file() for name in (CONFIG, ADAPTER))


def check_folder(path: str) -> None:
    """`ValueError` for a local folder that cannot be a model's: a damaged configuration, sizes that its weights cannot
    have, a quantisation whose package is missing, or weights that are pickles. A name of the hub passes."""
    folder = Path(path)
    if not folder.is_dir():
        return
    try:
        if (folder / ADAPTER).is_file():  # the adapter's base has a folder of its own
            _read(folder / ADAPTER)
            _check_files(folder, "adapter_model")
            return
        config = _read(folder / CONFIG)
        weights = _check_files(folder, "model", config.get("transformers_weights"))
        _check_sizes(config, sum(file.stat().st_size for file in weights))
        _check_quantization(config)
    except (ValueError, OSError) as error:
        raise ValueError(f"No model could be loaded from {path}: {error} {EXPECTED}") from error


def _read(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        raise ValueError(f"There is no {path.name}.")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path.name} must be one JSON object; it cannot be read ({_short(error)}).") from error
    if not isinstance(found, Mapping):
        kind = "null" if found is None else "a list" if isinstance(found, list) else "text or a number"
        raise ValueError(f"{path.name} must be one JSON object; got {kind}.")
    return found


def _check_files(folder: Path, stem: str, named: object = None) -> list[Path]:
    """The files with the weights, every one of them safetensors. named: the file that the configuration names."""
    first = str(named) if named is not None else f"{stem}{SAFE}"
    index = first if named is not None and first.endswith(".json") else INDEX
    if first != index and (folder / first).is_file():
        names, source = [first], CONFIG
    elif (folder / index).is_file():
        places = _read(folder / index).get("weight_map")
        if not isinstance(places, Mapping) or not places or not all(isinstance(name, str) for name in places.values()):
            raise ValueError(f"{index} must have a weight_map from names of weights to names of files.")
        names, source = sorted(set(places.values())), index
    else:
        held = sorted(file.name for file in folder.iterdir())
        if pickles := [name for name in held if name.removesuffix(".index.json").endswith(PICKLES)]:
            raise ValueError(f"Its weights are pickles ({pickles[0]}). {NO_PICKLES}")
        raise ValueError(f"There is no {first}.")
    for name in names:
        if not name.endswith(SAFE):
            raise ValueError(f"{source} names {name}, which is no safetensors file. {NO_PICKLES}")
        if not (folder / name).is_file():
            raise ValueError(f"{source} names {name}, which is not there.")
    return [folder / name for name in names]


def _check_sizes(config: Mapping[str, Any], num_bytes: int) -> None:
    for part in (config, config.get("text_config")):
        if not isinstance(part, Mapping):
            continue
        for names, most in SIZES.items():
            for name in names:
                if not isinstance(part.get(name), list | None):  # by layer in some architectures
                    require_count(part[name], 1, f"{name} in {CONFIG}", at_most=most)
        width, depth, vocabulary = (
            next((part[name] for name in names if isinstance(part.get(name), int)), 0)
            for names in (WIDTH, DEPTH, VOCABULARY)
        )
        # Fewer than any architecture has: the embeddings narrowed by half, and one square matrix for four layers.
        num_weights = vocabulary * width // 2 + depth * width * width // 4
        if num_weights > num_bytes * 8:  # not one bit each, in whatever way they are quantised
            raise ValueError(
                f"{CONFIG} speaks of a width of {width}, {depth} layers and {vocabulary} tokens, for which the weights "
                f"({num_bytes:,} bytes) are too small a file."
            )


def _check_quantization(config: Mapping[str, Any]) -> None:
    quantization = config.get("quantization_config")
    if quantization is None:
        return
    if not isinstance(quantization, Mapping):
        raise ValueError(f"quantization_config in {CONFIG} must be one JSON object.")
    method = quantization.get("quant_method")
    package = QUANTIZERS.get(str(method))
    if package is not None and importlib.util.find_spec(package) is None:
        raise ValueError(
            f"Its weights are quantised by {method}, which needs the package {package.replace('_', '-')}, which is "
            "not installed. Install it, or take the model without quantisation."
        )


def _short(error: BaseException) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__
