"""Tokenizers and models: made from scratch, loaded from a folder or the hub, saved."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    BitsAndBytesConfig,
    PreTrainedTokenizerFast,
)
from transformers.utils import find_adapter_config_file

from nonmember.models.folders import EXPECTED, check_folder
from nonmember.models.identity import CONFIG, base_of_adapter, folder_identity, named_base
from nonmember.models.kinds.pretrained import Pretrained
from nonmember.models.kinds.scratch import Scratch
from nonmember.models.lengths import key_of
from nonmember.records import Corpus
from nonmember.runtime.files import share_mode
from nonmember.runtime.progress import Stage

END_OF_TEXT = "<|endoftext|>"


@dataclass(frozen=True)
class LoadedModel:
    """A causal language model with its tokenizer, in evaluation mode."""

    model: Any
    tokenizer: Any

    @property
    def num_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.model.parameters())


def train_tokenizer(corpus: Corpus, vocab_size: int) -> PreTrainedTokenizerFast:
    """Byte-level BPE without added beginning-of-text token, like GPT-NeoX's."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((document.text for document in corpus.documents), trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END_OF_TEXT)


def from_scratch(spec: Scratch, tokenizer: Any) -> LoadedModel:
    """Random weights drawn from the spec's seed, with as many vocabulary rows as the tokenizer has entries."""
    settings = {"vocab_size": len(tokenizer), "eos_token_id": tokenizer.eos_token_id, "bos_token_id": None}
    config = AutoConfig.for_model(spec.model_type, **settings, **spec.architecture)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(spec.seed)
        model = AutoModelForCausalLM.from_config(config)
    return LoadedModel(model.eval(), tokenizer)


def load_folder(folder: Path, *, dtype: str = "float32") -> LoadedModel:
    return load_pretrained(Pretrained(str(folder), dtype=dtype))


def load_tokenizer(spec: Pretrained) -> Any:
    """From a folder or the hub, cutting texts on the right."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(spec.path, **_location(spec))
        tokenizer.truncation_side = "right"
        if len(tokenizer) <= len(tokenizer.all_special_ids):  # transformers makes an empty one from config.json
            raise ValueError("It has no vocabulary.")
    except Exception as error:  # whatever transformers and tokenizers say of files that are not ours
        raise ValueError(
            f"No tokenizer could be loaded from {spec.path}: {_first_line(error)} Expected tokenizer.json (or another "
            "file transformers knows) beside the weights; save it there with tokenizer.save_pretrained."
        ) from error
    return tokenizer


def load_pretrained(spec: Pretrained) -> LoadedModel:
    """From a folder or the hub; says in a sentence what is missing."""
    check_folder(spec.path)
    quantized = _quantization(spec)
    where = _location(spec)
    tokenizer = load_tokenizer(spec)
    try:
        with Stage(f"loading {spec.path}"):
            answer: Any = AutoModelForCausalLM.from_pretrained(
                spec.path, dtype=spec.dtype, use_safetensors=True, output_loading_info=True,
                ignore_mismatched_sizes=True, **where, **quantized,
            )  # fmt: skip
        model, found = answer
        # Where transformers would go on with random weights.
        if wrong := sorted(map(str, [*found["missing_keys"], *found["mismatched_keys"]])):
            raise ValueError(f"{len(wrong)} weights are missing or of another shape, first {wrong[0]}.")
    except Exception as error:  # likewise
        raise ValueError(
            f"No causal language model could be loaded from {spec.path}: {_first_line(error)} {EXPECTED}"
        ) from error
    require_rows(tokenizer, model, spec.path)
    return LoadedModel(model.eval(), tokenizer)


def dequantize(file: Path, folder: Path) -> None:
    """The weights of a GGUF file as float32, and its tokenizer, as `load_folder` reads them."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
        with Stage(f"dequantising {file.name}"):
            model: Any = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    except Exception as error:  # whatever transformers and gguf say of files that are not ours
        raise ValueError(
            f"No causal language model could be loaded from {file}: {_first_line(error)} Expected a GGUF file with its "
            "tokenizer, of an architecture that transformers reads."
        ) from error
    del model.config.quantization_config  # else transformers refuses to save what is no longer quantised
    model.hf_quantizer, model.is_quantized = None, False
    save(LoadedModel(model, tokenizer), folder)


def require_rows(tokenizer: Any, model: Any, name: str) -> None:
    """Raise ValueError where the tokenizer has more entries than the model has embeddings."""
    num_rows = model.get_input_embeddings().num_embeddings
    if len(tokenizer) > num_rows:
        raise ValueError(
            f"The tokenizer of {name} has {len(tokenizer)} entries, but the model only {num_rows} embedding rows. They "
            "do not belong together."
        )


def save(loaded: LoadedModel, folder: Path) -> None:
    """Weights and tokenizer, as `load_folder` reads them. A full disk is an OSError, whoever writes."""
    try:
        loaded.model.to("cpu").save_pretrained(folder)
        loaded.tokenizer.save_pretrained(folder)
        share_mode(folder / "config.json", folder)
    except Exception as error:  # safetensors and tokenizers have their own, which name the system's error by its number
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(folder)) from error


def pretrained_identity(spec: Pretrained) -> dict[str, Any]:
    """What determines the weights: the hash of a folder's files, or the commit the hub's revision stands for."""
    # Part of the key only where there is any, so that keys of what was stored before it came are the same.
    quantized = {} if spec.quantization == "none" else {"quantization": spec.quantization}
    folder = Path(spec.path)
    if folder.is_dir():
        base = base_of_adapter(folder)
        apart = _lengths_apart(folder) if base is None else {}
        return {**folder_identity(folder), "dtype": spec.dtype, **quantized, **apart, **_adapted(base, spec)}
    try:
        config = AutoConfig.from_pretrained(spec.path, **_location(spec))
        adapter = find_adapter_config_file(spec.path, revision=spec.revision)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{spec.path!r} is no folder here, and the Hugging Face hub gave nothing: {_first_line(error)} "
            "Name a folder that exists, or allow the network (unset HF_HUB_OFFLINE)."
        ) from error
    commit = getattr(config, "_commit_hash", None) or spec.revision
    base = None if adapter is None else named_base(Path(adapter))
    known = {"path": spec.path, "commit": commit, "dtype": spec.dtype}
    return {**known, **quantized, **key_of(config), **_adapted(base, spec)}


def _adapted(base: str | None, spec: Pretrained) -> dict[str, Any]:
    """The part of a key that says what an adapter is put on; transformers looks for it at the same revision."""
    return {} if base is None else {"adapter_on": pretrained_identity(replace(spec, path=base))}


def _lengths_apart(folder: Path) -> dict[str, int]:
    """See `lengths.key_of`; nothing for a folder without a configuration that can be read, of which loading tells."""
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        return key_of(config) if isinstance(config, dict) else {}
    except (OSError, ValueError, RecursionError):
        return {}


def _location(spec: Pretrained) -> Mapping[str, Any]:
    where: dict[str, Any] = {"trust_remote_code": spec.trust_remote_code}
    return where | {"revision": spec.revision} if spec.revision else where


def _quantization(spec: Pretrained) -> dict[str, Any]:
    """What transformers is told about where the weights go and how many bits they have."""
    if spec.quantization == "none":
        return {"device_map": spec.device_map}
    if not torch.cuda.is_available() or importlib.util.find_spec("bitsandbytes") is None:
        raise ValueError(
            f"{spec.path} was to be loaded in {spec.quantization}, which needs a CUDA GPU and the package "
            "bitsandbytes, and they are not both here. Use quantization=none."
        )
    bits: dict[str, Any] = {"load_in_8bit": True}
    if spec.quantization == "4bit":
        arithmetic = torch.float32 if spec.dtype == "auto" else getattr(torch, spec.dtype)
        bits = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_compute_dtype": arithmetic}
    return {"device_map": spec.device_map or {"": 0}, "quantization_config": BitsAndBytesConfig(**bits)}


def _first_line(error: BaseException) -> str:
    line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return line if line.endswith((".", "!", "?")) else line + "."
