"""Folders of models: whether a path can be one, checks of small files and of weights' headers, hashes of what is in it;
before anything heavy is imported or weights are read."""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from nonmember.artifacts.store import SIDECAR
from nonmember.checks import require_count
from nonmember.corpora.specs import digest_file, digest_files
from nonmember.runtime.files import content_of
from nonmember.runtime.naming import path_of

CONFIG = "config.json"
ADAPTER = "adapter_config.json"
INDEX = "model.safetensors.index.json"
SAFE, PICKLES = ".safetensors", (".bin", ".pt", ".pth", ".ckpt", ".pkl")
NO_PICKLES = "Pickles can run code when they are read: save the model again with save_pretrained, as safetensors."
EXPECTED = "Expected a folder or hub name with config.json and safetensors weights, of a kind that transformers loads."
LARGEST_HEADER = 100_000_000  # bytes, as the format has it

# Sizes by the names that most architectures give them, and the largest that is still a size.
WIDTH, DEPTH, VOCABULARY = ("hidden_size", "n_embd", "d_model"), ("num_hidden_layers", "n_layer"), ("vocab_size",)
SIZES = {
    WIDTH: 10**6,
    DEPTH: 10**4,
    VOCABULARY: 10**8,
    ("num_attention_heads", "n_head", "num_key_value_heads"): 10**5,
    ("intermediate_size", "ffn_dim"): 10**7,
    ("max_position_embeddings", "n_positions", "n_ctx"): 10**9,
}
MOST_OF_OTHERS = 10**6  # things that transformers makes one by one, such as labels
LARGEST_TEXT = 2**28

# Methods of quantisation that transformers implements, and the package that each needs besides torch; without those
# whose code would come from the hub (eetq, metal, nvfp4).
QUANTIZERS: dict[str, str | None] = {
    "aqlm": "aqlm",
    "auto-round": "auto_round",
    "awq": "gptqmodel",
    "bitnet": None,
    "bitsandbytes": "bitsandbytes",
    "compressed-tensors": "compressed_tensors",
    "fbgemm_fp8": "fbgemm_gpu",
    "fouroversix": "fouroversix",
    "fp8": None,
    "fp_quant": "fp_quant",
    "gemma": None,
    "gptq": "gptqmodel",
    "higgs": "flute",
    "hqq": "hqq",
    "mxfp4": None,
    "mxfp8": None,
    "quanto": "optimum",
    "quark": "quark",
    "sinq": "sinq",
    "spqr": "spqr_quant",
    "torchao": "torchao",
    "vptq": "vptq",
}


def has_config(path: str) -> bool:
    """Whether a local folder holds more than a tokenizer."""
    return any(os.path.lexists(Path(path) / name) for name in (CONFIG, ADAPTER))


def check_folder(path: str) -> None:
    """`ValueError` for a local folder that cannot be a model's: a damaged configuration, sizes that its weights cannot
    have, a quantisation that nothing reads, weights that are pickles, damaged or not those of their index. A name of
    the hub passes."""
    folder = Path(path)
    if not folder.is_dir():
        return
    try:
        check_entries(folder)
        if (folder / ADAPTER).is_file():  # the adapter's base has a folder of its own
            _read(folder / ADAPTER)
            if (folder / f"model{SAFE}").is_file() or (folder / INDEX).is_file():
                raise ValueError(
                    f"It holds whole weights and an adapter ({ADAPTER}), and nothing says whether the adapter has been "
                    "merged into them. Move one of the two to a folder of its own."
                )
            _check_tensors(_check_files(folder, "adapter_model"))
            return
        config = _read(folder / CONFIG)
        weights = _check_files(folder, "model", config.get("transformers_weights"))
        _check_tensors(weights)
        _check_sizes(config, sum(file.stat().st_size for file in weights))
        _check_quantization(config)
    except (ValueError, OSError) as error:
        raise ValueError(f"No model could be loaded from {path}: {error} {EXPECTED}") from error


def check_entries(folder: Path) -> None:
    """Raise ValueError where reading a folder's files could fail or never end: pipes, devices, links to nothing."""
    for path in sorted(folder.iterdir()):
        if not path.exists():
            raise ValueError(f"{path.name} is a broken link. Put the file there, or remove the link.")
        if not path.is_file() and (not path.is_dir() or path.suffix in (".json", ".txt", SAFE)):
            raise ValueError(f"{path.name} must be a file; it is a folder, a pipe or a device. Remove it.")
        if path.suffix in (".json", ".txt") and path.is_file() and path.stat().st_size > LARGEST_TEXT:
            raise ValueError(f"{path.name} must have at most {LARGEST_TEXT:,} bytes. Copy it again.")


def tensors_of(file: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Type and shape of each tensor of a safetensors file, by name, from its header alone.

    Raises ValueError where it is no such file, or only a part of one.
    """
    size = file.stat().st_size
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        header = stream.read(length) if length <= min(size - 8, LARGEST_HEADER) else b""
    try:
        entries = {name: entry for name, entry in json.loads(header).items() if name != "__metadata__"}
        tensors = {name: (str(entry["dtype"]), tuple(map(int, entry["shape"]))) for name, entry in entries.items()}
        end = max((int(entry["data_offsets"][1]) for entry in entries.values()), default=0)
    except (ValueError, RecursionError, AttributeError, LookupError, TypeError) as error:
        raise ValueError(
            f"{file.name} ({size:,} bytes) is not a safetensors file: its header cannot be read. Copy or save it again."
        ) from error
    if 8 + length + end != size:
        raise ValueError(
            f"{file.name} must have {8 + length + end:,} bytes by its header; it has {size:,}. Copy it again."
        )
    return tensors


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files that transformers reads of a folder; none where they are not there."""
    try:
        config = _read(folder / CONFIG) if (folder / CONFIG).is_file() else {}
        return _check_files(folder, "model", config.get("transformers_weights"))
    except ValueError:
        return []


def _read(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        raise ValueError(f"There is no {path.name}.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path.name} must be one JSON object; it cannot be read ({_short(error)}).") from error
    if not isinstance(content, Mapping):
        kind = "null" if content is None else "a list" if isinstance(content, list) else "text or a number"
        raise ValueError(f"{path.name} must be one JSON object; got {kind}.")
    return content


def _check_files(folder: Path, stem: str, named: object = None) -> list[Path]:
    """The files with the weights, every one of them safetensors. named: the file that the configuration names."""
    first = str(named) if named is not None else f"{stem}{SAFE}"
    index = first if named is not None and first.endswith(".json") else INDEX
    if first != index and (folder / first).is_file():
        names, source = [first], CONFIG
        if first == f"model{SAFE}" and (folder / INDEX).is_file() and {*_indexed(folder).values()} != {first}:
            raise ValueError(
                f"There are both {first} and {INDEX} with other files, which may be two models. Remove one of them."
            )
    elif (folder / index).is_file():
        names, source = sorted(set(_indexed(folder, index).values())), index
    else:
        held = sorted(file.name for file in folder.iterdir())
        if pickles := [name for name in held if name.removesuffix(".index.json").endswith(PICKLES)]:
            raise ValueError(f"Its weights are pickles ({pickles[0]}). {NO_PICKLES}")
        raise ValueError(f"There is no {first}.")
    for name in names:
        if not name.endswith(SAFE):
            raise ValueError(f"{source} names {name}, which is not a safetensors file. {NO_PICKLES}")
        if not (folder / name).is_file():
            raise ValueError(f"{source} names {name}, which is not there.")
    return [folder / name for name in names]


def _indexed(folder: Path, index: str = INDEX) -> Mapping[str, str]:
    """The file of each tensor, as an index has it."""
    files = _read(folder / index).get("weight_map")
    if not isinstance(files, Mapping) or not files or not all(isinstance(name, str) for name in files.values()):
        raise ValueError(f"{index} must have a weight_map from names of weights to names of files.")
    return files


def _check_tensors(files: Sequence[Path]) -> None:
    """Every tensor lies in one file, and where the index says."""
    holder: dict[str, str] = {}
    for file in files:
        for name in tensors_of(file):
            if name in holder:
                raise ValueError(
                    f"{name} is in {holder[name]} and in {file.name}, which may be of two models. Save the model again."
                )
            holder[name] = file.name
    if len(files) == 1 or not (files[0].parent / INDEX).is_file():
        return
    for name, file_name in _indexed(files[0].parent).items():
        if Path(file_name).name != holder.get(name):
            raise ValueError(f"{INDEX} says that {name} lies in {file_name}, and it does not. Save the model again.")


def _check_sizes(config: Mapping[str, Any], num_bytes: int) -> None:
    for part in (config, config.get("text_config")):
        if not isinstance(part, Mapping):
            continue
        for names, most in SIZES.items():
            for name in names:
                if not isinstance(part.get(name), list | None):  # by layer in some architectures
                    require_count(part[name], 1, f"{name} in {CONFIG}", at_most=most)
        for name, value in part.items():
            if type(value) is int and name.startswith(("num_", "n_")) and not any(name in known for known in SIZES):
                require_count(value, -1, f"{name} in {CONFIG}", at_most=MOST_OF_OTHERS)
        width, depth, vocabulary = (
            next((part[name] for name in names if isinstance(part.get(name), int)), 0)
            for names in (WIDTH, DEPTH, VOCABULARY)
        )
        # Fewer than any architecture has: the embeddings narrowed by half, and one square matrix for four layers.
        num_weights = vocabulary * width // 2 + depth * width * width // 4
        if num_weights > num_bytes * 8:  # not one bit each, in whatever way they are quantised
            raise ValueError(
                f"{CONFIG} states a width of {width}, {depth} layers and {vocabulary} tokens, for which the weights "
                f"({num_bytes:,} bytes) are too small a file."
            )


def _check_quantization(config: Mapping[str, Any]) -> None:
    for part in (config, config.get("text_config")):
        for key in ("quantization_config", "compression_config"):
            quantization = part.get(key) if isinstance(part, Mapping) else None
            if quantization is None:
                continue
            if not isinstance(quantization, Mapping):
                raise ValueError(f"{key} in {CONFIG} must be one JSON object.")
            by_flag = quantization.get("load_in_8bit") or quantization.get("load_in_4bit")  # before methods had names
            method = quantization.get("quant_method") or ("bitsandbytes" if by_flag else None)
            if not isinstance(method, str) or method not in QUANTIZERS:
                raise ValueError(
                    f"quant_method of {key} in {CONFIG} must be one of {', '.join(QUANTIZERS)}; got "
                    f"{json.dumps(method)}. Nothing here reads weights quantised otherwise; take the model without "
                    "quantisation."
                )
            package = QUANTIZERS[method]
            if package is not None and importlib.util.find_spec(package) is None:
                raise ValueError(
                    f"Its weights are quantised by {method}, which needs the package {package.replace('_', '-')}, "
                    "which is not installed. Install it, or take the model without quantisation."
                )


def _short(error: BaseException) -> str:
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__


# What a folder is known by --------------------------------------------------------------------------------------------

SUFFIXES = {".json", ".safetensors", ".txt", ".model", ".py"}
OF_MODELS_ALONE = {SIDECAR, INDEX, "generation_config.json"}
FURTHER = ("*.jinja", "*.tiktoken", "additional_chat_templates/*.jinja")  # not in all keys from the start


def folder_identity(folder: Path) -> dict[str, Any]:
    """Hashes of the files, as parts of a key. Chat templates, and weights that an index names in folders below, are a
    part of their own, which is there where there are such files.

    Raises ValueError where an index names weights that do not lie in the folder, or where a file cannot be read.
    """
    check_entries(folder)
    files = [path for path in sorted(folder.iterdir()) if path.suffix in SUFFIXES]
    digest = hashlib.sha256("".join(f"{path.name} {digest_file(path)}\n" for path in files).encode())
    further = {path for pattern in FURTHER for path in folder.glob(pattern)}
    further |= {path for path in (folder / name for name in _named_weights(folder)) if path.parent != folder}
    named = [(path.relative_to(folder).as_posix(), path) for path in further if path.is_file()]
    return {"files": digest.hexdigest()} | ({"further_files": digest_files(named)} if named else {})


def tokenizer_identity(folder: Path) -> str:
    """One hash of what a tokenizer may be read from: of all files but the weights and what is
    said of these alone."""
    read = [path for path in folder.iterdir() if path.suffix in SUFFIXES - {SAFE} and path.name not in OF_MODELS_ALONE]
    read += [path for pattern in FURTHER for path in folder.glob(pattern)]
    return digest_files((path.relative_to(folder).as_posix(), path) for path in read if path.is_file())


def holds_adapter(folder: Path) -> bool:
    """Whether a folder holds an adapter and no whole weights. Some programs write the base's config.json beside it."""
    whole = any(any(folder.glob(pattern)) for pattern in (f"model*{SAFE}*", "pytorch_model*"))
    return (folder / ADAPTER).is_file() and not (whole and (folder / CONFIG).is_file())


def named_base(adapter: Path) -> tuple[str, str | None]:
    """The base that a file adapter_config.json names, and its revision on the hub where one is named.

    Raises ValueError where it names no model, or another adapter.
    """
    described = json_of(adapter)
    base, revision = described.get("base_model_name_or_path"), described.get("revision")
    expected = f"{adapter} must name a whole model in base_model_name_or_path, by its folder or its name on the hub"
    if not isinstance(base, str) or not base:
        raise ValueError(f"{expected}; got {json.dumps(base)}. Write it there, or merge the adapter into its base.")
    if holds_adapter(Path(base)):
        raise ValueError(f"{expected}; got {base!r}, which is an adapter too. Merge that one into its base first.")
    if revision is not None and not isinstance(revision, str):
        raise ValueError(f"revision in {adapter} must be a commit, tag or branch of the base; got {revision!r}.")
    return base, revision or None


def _named_weights(folder: Path) -> Iterable[str]:
    """Files of weights that an index or the configuration names; the others have names that are known."""
    named = json_of(folder / CONFIG).get("transformers_weights")
    if isinstance(named, str) and not named.endswith(".index.json"):
        return [_within(named, folder / CONFIG)]
    if named is None and (folder / f"model{SAFE}").is_file():  # an index beside it is not read
        return []
    index = folder / (_within(named, folder / CONFIG) if isinstance(named, str) else INDEX)
    file_of = json_of(index).get("weight_map")
    names = set(file_of.values()) if isinstance(file_of, dict) else set()
    return sorted(_within(name, index) for name in names)


def _within(name: object, source: Path) -> str:
    """The name of a file in the folder of `source`, which names it."""
    path = PurePosixPath(str(name))
    if path.is_absolute() or ".." in path.parts or "\\" in str(name):
        raise ValueError(
            f"{source} must name weights in its own folder; got {str(name)!r}. What lies elsewhere may change without "
            "the model's folder. Copy the file into the folder and name it there."
        )
    if not path.name.endswith((".safetensors", ".safetensors.index.json")):
        raise ValueError(f"{source} must name safetensors files; got {str(name)!r}. Save the model as safetensors.")
    return str(name)


def json_of(file: Path | None) -> Mapping[str, Any]:
    """Empty where there is no such file or it is no JSON object, of which loading the model will tell."""
    try:
        read = json.loads(content_of(file, LARGEST_TEXT)) if file else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


# Whether a path can be a model's --------------------------------------------------------------------------------------

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
MODEL_FILES = (CONFIG, ADAPTER, "tokenizer.json")  # the last for tokens to count in


def require_model(path: str) -> None:
    """A folder with a model in it, or what may be a name on the Hugging Face hub; one of its cache, when offline."""
    folder = path_of(path)
    if folder.is_dir():
        if not any((folder / name).is_file() for name in MODEL_FILES):
            raise ValueError(f"The folder {path} holds no model: there is no config.json in it. {_nearby(folder)}")
        return
    if folder.is_file():
        raise ValueError(f"{path} is a file; name the folder that it is in, with config.json and the tokenizer.")
    if HUB_NAME.fullmatch(path) and not (_is_offline() and not _is_cached(path)):
        return
    offline = ", and is not in the cache of the Hugging Face hub (HF_HUB_OFFLINE allows no download)"
    raise ValueError(
        f"{path!r} is not a folder on this machine{offline if HUB_NAME.fullmatch(path) else ''}. {_advice(path)}"
    )


def _nearby(folder: Path) -> str:
    """Folders below that do hold a model."""
    below = sorted(path.parent.relative_to(folder).as_posix() for path in folder.glob("*/config.json"))
    if below:
        return f"Folders below it: {', '.join(below[:5])}; name one of them."
    return "Name a folder that save_pretrained wrote, or a name on the Hugging Face hub."


def _advice(path: str) -> str:
    """What lies beside it under a like name."""
    wanted = path_of(path)
    beside = [item.name for item in wanted.parent.iterdir()] if wanted.parent.is_dir() else []
    likely = difflib.get_close_matches(wanted.name, beside, n=3, cutoff=0.6)
    meant = f"Did you mean {' or '.join(str(Path(path).parent / name) for name in likely)}? " if likely else ""
    return f"{meant}Name a folder that exists (relative paths start at {Path.cwd()})."


def _is_offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "YES", "ON")


def _is_cached(name: str) -> bool:
    home = os.environ.get("HF_HOME") or str(Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub").expanduser()
    return (cache / f"models--{name.replace('/', '--')}").is_dir()
