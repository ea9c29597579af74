"""What the notebooks need and a real audit has: texts, and models that have or have not read them. Made in seconds.

Texts are docstrings of installed packages; models are GPT-NeoX of two layers, trained here.
"""

from __future__ import annotations

import importlib
import inspect

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM, PreTrainedTokenizerFast

torch.set_num_threads(1)  # models this small gain nothing by more
WORDS = 40
GENERAL = (
    "numpy",
    "numpy.linalg",
    "numpy.fft",
    "numpy.ma",
    "scipy.special",
    "scipy.linalg",
    "scipy.signal",
    "scipy.optimize",
    "scipy.sparse",
    "scipy.ndimage",
)


def documents(*modules: str) -> list[str]:
    """The first words of the docstrings of the public functions and classes of some modules, each text once."""
    texts = {}
    for module in map(importlib.import_module, modules):
        for name in sorted(vars(module)):
            text = inspect.getdoc(getattr(module, name)) if name[0] != "_" else None
            if text is not None and len(words := text.split()) >= WORDS:
                texts[" ".join(words[:WORDS])] = name
    return list(texts)


def tokenizer_of(texts: list[str]) -> PreTrainedTokenizerFast:
    """Byte-level BPE with 1,000 entries."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        texts,
        trainers.BpeTrainer(vocab_size=1000, special_tokens=["<end>"], initial_alphabet=alphabet, show_progress=False),
    )
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<end>", pad_token="<end>")


def train(
    name: str, texts: list[str], tokenizer: PreTrainedTokenizerFast, *, seed: int, epochs: int, width: int = 48
) -> GPTNeoXForCausalLM:
    """A model that has read each of these texts so many times, and nothing else."""
    torch.manual_seed(seed)
    model = GPTNeoXForCausalLM(
        GPTNeoXConfig(
            vocab_size=len(tokenizer),
            hidden_size=width,
            intermediate_size=4 * width,
            num_hidden_layers=2,
            num_attention_heads=2,
            max_position_embeddings=256,
            eos_token_id=0,
            bos_token_id=0,
        )
    )
    batch = tokenizer(texts, padding=True, truncation=True, max_length=96, return_tensors="pt")
    labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    steps = [rows for _ in range(epochs) for rows in torch.randperm(len(texts)).split(32)]
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=len(steps))
    for rows in steps:
        optimizer.zero_grad()
        model(batch["input_ids"][rows], labels=labels[rows]).loss.backward()
        optimizer.step()
        schedule.step()
    model.name_or_path = name
    return model.eval()
