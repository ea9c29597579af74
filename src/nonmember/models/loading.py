"""Tokenizers and models: made from scratch, loaded from a folder or the hub, encoded with, compared."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from nonmember.models.specs import Pretrained, Scratch
from nonmember.progress import shows_progress
from nonmember.records import Corpus
from nonmember.store import file_hash

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
        show_progress=shows_progress(),
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


def load_pretrained(spec: Pretrained) -> LoadedModel:
    """From a folder or the hub; says in a sentence what is missing."""
    where = _location(spec)
    try:
        tokenizer = AutoTokenizer.from_pretrained(spec.path, **where)
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(
            f"No tokenizer could be loaded from {spec.path}: {_first_line(error)} Expected tokenizer.json (or another "
            "file transformers knows) beside the weights; save it there with tokenizer.save_pretrained."
        ) from error
    try:
        model = AutoModelForCausalLM.from_pretrained(
            spec.path, dtype=spec.dtype, device_map=spec.device_map, use_safetensors=True, **where
        )
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(
            f"No causal language model could be loaded from {spec.path}: {_first_line(error)} "
            "Expected a folder or hub name with config.json and safetensors weights."
        ) from error
    if len(tokenizer) > model.get_input_embeddings().num_embeddings:
        raise ValueError(
            f"The tokenizer of {spec.path} has {len(tokenizer)} entries, but the model only "
            f"{model.get_input_embeddings().num_embeddings} embedding rows. They do not belong together."
        )
    return LoadedModel(model.eval(), tokenizer)


def pretrained_identity(spec: Pretrained) -> dict[str, Any]:
    """What determines the weights: the hash of a folder's files, or the commit the hub's revision stands for."""
    folder = Path(spec.path)
    if folder.is_dir():
        files = [path for path in sorted(folder.iterdir()) if path.suffix in {".json", ".safetensors", ".txt", ".model"}]
        digest = hashlib.sha256("".join(f"{path.name} {file_hash(path)}\n" for path in files).encode())
        return {"files": digest.hexdigest(), "dtype": spec.dtype}
    try:
        config = AutoConfig.from_pretrained(spec.path, **_location(spec))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{spec.path!r} is no folder here, and the Hugging Face hub gave nothing: {_first_line(error)} "
            "Name a folder that exists, or allow the network (unset HF_HUB_OFFLINE)."
        ) from error
    return {"path": spec.path, "commit": getattr(config, "_commit_hash", None) or spec.revision, "dtype": spec.dtype}


def encode(tokenizer: Any, texts: Sequence[str], max_tokens: int | None) -> list[list[int]]:
    """Ids of each text alone, with the tokenizer's own special tokens, cut on the right (methods: text to tokens)."""
    if not texts:
        return []
    encoded: list[list[int]] = tokenizer(list(texts), truncation=max_tokens is not None, max_length=max_tokens)["input_ids"]
    return encoded


def shared_ids(student: Any, teacher: Any) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Ids (student's, teacher's) of the strings both tokenizers have; None where the vocabularies are equal."""
    ours, theirs = student.get_vocab(), teacher.get_vocab()
    if ours == theirs:
        return None
    pairs = sorted((ours[string], theirs[string]) for string in ours.keys() & theirs.keys())
    if not pairs:
        raise ValueError("The reference's and the target's tokenizers have no token in common; PRISM needs related ones.")
    student_ids, teacher_ids = zip(*pairs, strict=True)
    return torch.tensor(student_ids), torch.tensor(teacher_ids)


def share_of_shared_tokens(documents: Sequence[Sequence[int]], shared: torch.Tensor) -> float:
    known = set(shared.tolist())
    total = sum(len(ids) for ids in documents)
    return sum(token in known for ids in documents for token in ids) / max(1, total)


def _location(spec: Pretrained) -> Mapping[str, Any]:
    where: dict[str, Any] = {"trust_remote_code": spec.trust_remote_code}
    return where | {"revision": spec.revision} if spec.revision else where


def _first_line(error: BaseException) -> str:
    line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return line if line.endswith((".", "!", "?")) else line + "."
