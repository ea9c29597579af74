"""Tokenizers and models: made from scratch, loaded from a folder or the hub, saved."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoTokenizer,
    BitsAndBytesConfig,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
    modeling_gguf_pytorch_utils,
)
from transformers.integrations import hub_kernels
from transformers.utils import logging as transformers_logging

from nonmember.models.completeness import require_all_read, require_complete, require_meaning, warn_if_split_otherwise
from nonmember.models.folders import CONFIG, EXPECTED, check_folder
from nonmember.models.hub import base_of, file_of, first_line, load_tokenizer, location
from nonmember.models.tokenizing import is_failure
from nonmember.records import Corpus
from nonmember.runtime.files import share_mode
from nonmember.runtime.progress import Stage
from nonmember.runtime.quiet import imported

if TYPE_CHECKING:
    from nonmember.models.kinds.pretrained import Pretrained
    from nonmember.models.kinds.scratch import Scratch

# The implementation of attention is ours to choose: a model's configuration is a stranger's, and can name code on the
# hub. Of a configuration, what chooses code: implementations go back to the default, the rest is taken out.
IMPLEMENTATIONS = ("_attn_implementation", "_experts_implementation")
FURTHER = ("use_kernels", "kernel_config", "fusion_config")


def _no_kernel(repo_id: str, *_: Any, **__: Any) -> Any:
    raise ImportError(f"{repo_id} is code on the hub, which is never run here.")


# Where the package `kernels` is installed, transformers fetches code for many models unasked.
hub_kernels._kernels_enabled = False
hub_kernels.get_kernel = _no_kernel


def own_implementation(config: Any) -> Any:
    """The configuration, and those within it, without what they say of implementations."""
    for name in IMPLEMENTATIONS:
        setattr(config, name, None)
    for name in FURTHER:
        config.__dict__.pop(name, None)
    for part in vars(config).values():
        if isinstance(part, PreTrainedConfig):
            own_implementation(part)
    return config


log = logging.getLogger(__name__)

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
    config = own_implementation(AutoConfig.for_model(spec.model_type, **settings, **spec.architecture))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(spec.seed)
        model = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    return LoadedModel(model.eval(), tokenizer)


def load_pretrained(spec: Pretrained, *, merged: bool = False) -> LoadedModel:
    """From a folder or the hub; says in a sentence what is missing.

    Args:
        spec: The model.
        merged: Whether an adapter's weights are added to those of its base.
    """
    imported()
    check_folder(spec.path)
    options = {"dtype": spec.dtype, **_quantization(spec)}
    base = base_of(spec)
    if base is not None:
        check_folder(base.path)
    whole = base or spec
    _config_of(whole)  # of which loading a tokenizer fails too
    tokenizer = load_tokenizer(spec)
    with Stage(f"loading {spec.path}"):
        model = _whole(whole, **options)
        if base is not None:
            from nonmember.models.adapted import put_on  # imports peft

            try:
                model = put_on(model, spec.path, spec.revision, merged=merged)
            except Exception as error:  # whatever peft says of files that are not ours
                raise ValueError(
                    f"The adapter {spec.path} could not be put on {whole.path}: {first_line(error)}"
                ) from error
    require_rows(tokenizer, model, spec.path)
    return LoadedModel(model.eval(), tokenizer)


def _whole(spec: Pretrained, **options: Any) -> Any:
    """A model of transformers with all its weights and no others, by our own implementation of attention. Raises
    ValueError where it cannot be loaded, or its files are not those of its configuration."""
    where = {"trust_remote_code": False, **location(spec)}  # without, transformers asks on a terminal
    config = _config_of(spec)
    try:
        # Some models of text and pictures (Mistral 3) are known by that alone; of text they are read as all others.
        with_pictures = type(config) in AutoModelForImageTextToText._model_mapping
        known = AutoModelForCausalLM._model_mapping
        kind = AutoModelForImageTextToText if with_pictures and type(config) not in known else AutoModelForCausalLM
        loaded: Any = kind.from_pretrained(
            spec.path,
            config=config,
            attn_implementation=None if spec.attention == "auto" else spec.attention,
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **where,
            **options,
        )
    except Exception as error:  # likewise
        if spec.attention != "auto" and "attention" in str(error).lower():
            raise ValueError(
                f"{spec.path} has no attention={spec.attention}: {first_line(error)} Use attention=auto, which takes "
                "what is there."
            ) from error
        raise _unloadable(spec, error) from error
    model, report = loaded
    require_complete(spec.path, report, model)
    if (config_file := file_of(spec.path, CONFIG, spec.revision)) is not None:
        require_meaning(spec.path, config_file.parent, model)
    return model


def _config_of(spec: Pretrained) -> Any:
    try:
        return own_implementation(AutoConfig.from_pretrained(spec.path, **location(spec)))
    except Exception as error:  # whatever transformers says of files that are not ours
        raise _unloadable(spec, error) from error


def _unloadable(spec: Pretrained, error: Exception) -> ValueError:
    what = f"No causal language model could be loaded from {spec.path}"
    return ValueError(f"{what}: {first_line(error)} {EXPECTED}")


@contextlib.contextmanager
def _gguf_parsed_once() -> Iterator[None]:
    """The gguf package slices the mapped file for each entry of the vocabulary, and transformers has it do so for
    tokenizer, configuration and weights: with a vocabulary of 262,144, minutes."""
    import gguf

    class Reader(gguf.GGUFReader):
        @property
        def data(self) -> Any:
            return self._data

        @data.setter
        def data(self, mapped: Any) -> None:
            self._data = np.asarray(mapped)  # slices of a memmap take longer than those of an array

    # The names of the tensors are made anew for every part of the model: seven seconds of fourteen for SmolLM2.
    kept = gguf.GGUFReader, gguf.get_tensor_name_map
    cached: Any = functools.cache(Reader), functools.cache(gguf.get_tensor_name_map)
    gguf.GGUFReader, gguf.get_tensor_name_map = cached  # type: ignore[misc]
    try:
        yield
    finally:
        gguf.GGUFReader, gguf.get_tensor_name_map = kept  # type: ignore[misc]


@_gguf_parsed_once()
def dequantize(file: Path, folder: Path) -> None:
    """The weights of a GGUF file as float32, and its tokenizer, as `load_folder` reads them."""
    imported()
    modeling_gguf_pytorch_utils.tqdm = transformers_logging.tqdm  # else its bar is shown where bars are disabled
    try:
        tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name, trust_remote_code=False)
        with Stage(f"unpacking {file.name} to full precision"):
            answer: Any = AutoModelForCausalLM.from_pretrained(
                file.parent, gguf_file=file.name, dtype=torch.float32, output_loading_info=True, trust_remote_code=False
            )
    except BaseException as error:  # whatever transformers and gguf say of files that are not ours
        if not is_failure(error):
            raise
        raise ValueError(
            f"No causal language model could be loaded from {file}: {first_line(error)} Expected a GGUF file with its "
            "tokenizer, of an architecture that transformers reads."
        ) from error
    model, report = answer
    require_complete(str(file), report, model)
    require_all_read(file, model)
    warn_if_split_otherwise(file)
    del model.config.quantization_config  # else transformers refuses to save what is no longer quantised
    model.hf_quantizer, model.is_quantized = None, False
    save(LoadedModel(model, tokenizer), folder)


def require_rows(tokenizer: Any, model: Any, name: str) -> None:
    """Raise ValueError where the tokenizer has more entries than the model has embeddings."""
    num_rows = num_embeddings(model)
    further = {token: index for token, index in tokenizer.get_vocab().items() if num_rows and index >= num_rows}
    if first := sorted(further, key=further.__getitem__):
        raise ValueError(
            f"The tokenizer of {name} has {len(tokenizer)} entries, but the model only {num_rows} embedding rows. "
            f"{', '.join(map(repr, first[:3]))}{', ...' * (len(first) > 3)} would have none. If these were added to "
            "the tokenizer, save it without them, or the model with its rows resized to it; else the two do not belong "
            "together."
        )


def num_embeddings(model: Any) -> int | None:
    """Rows of the input embeddings, also below an adapter; None where a model has none that are known."""
    try:
        module = model.get_input_embeddings()
    except (AttributeError, NotImplementedError):
        return None
    while (inner := getattr(module, "original_module", None) or getattr(module, "base_layer", None)) is not None:
        module = inner
    weight = getattr(module, "weight", None)
    return len(weight) if isinstance(weight, torch.Tensor) and weight.ndim == 2 else None


def save(loaded: LoadedModel, folder: Path) -> None:
    """Weights and tokenizer, as `load_folder` reads them."""
    try:
        loaded.model.to("cpu").save_pretrained(folder)
    except SafetensorError as error:  # a full disk, with the system's number in the text
        number = re.search(r"os error (\d+)", str(error))
        raise OSError(int(number[1]), str(error), str(folder)) if number else error from error
    if loaded.tokenizer.is_fast:  # else where texts were last cut is saved with it
        loaded.tokenizer.backend_tokenizer.no_truncation()
        loaded.tokenizer.backend_tokenizer.no_padding()
    loaded.tokenizer.save_pretrained(folder)
    share_mode(folder / "config.json", folder)


def _quantization(spec: Pretrained) -> dict[str, Any]:
    """What transformers is told about where the weights go and how many bits they have."""
    if spec.quantization == "none":
        return {"device_map": spec.device_map}
    if not torch.cuda.is_available() or importlib.util.find_spec("bitsandbytes") is None:
        raise ValueError(
            f"{spec.path} was to be loaded in {spec.quantization}, which needs a CUDA GPU and the package "
            "bitsandbytes, and they are not both available here. Use quantization=none."
        )
    bits: dict[str, Any] = {"load_in_8bit": True}
    if spec.quantization == "4bit":
        arithmetic = getattr(torch, spec.dtype)
        bits = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_compute_dtype": arithmetic}
    return {"device_map": spec.device_map or {"": 0}, "quantization_config": BitsAndBytesConfig(**bits)}
