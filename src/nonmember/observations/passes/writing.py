"""Generation: one text per prompt, each with its own random seed.

Shapes: B prompts, T tokens, V vocabulary.

It is Lightning's predict loop, as observing is. Each process keeps what it wrote in a file of its own, line by line, so
that a run that was killed goes on after its last batch. A line holds name, text, finished, num_tokens and top_logprobs.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import lightning
import numpy as np
import torch
from lightning.pytorch.strategies import ModelParallelStrategy
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList

from nonmember.models.forward import Held, evaluation_mode, number_of_embeddings
from nonmember.models.lengths import lengths_of
from nonmember.models.probing import SHORT, TOLERANCE, TOLERANCE_OF_HALF
from nonmember.models.reading import position_limit
from nonmember.models.tokenizing import ids_of
from nonmember.observations.passes.tokens import PaddedBatches, length_buckets, predict, share_of_rank
from nonmember.runtime.callbacks import StageProgress, after_each, silent
from nonmember.runtime.files import write_text_atomically

log = logging.getLogger(__name__)

# What is kept on the way ----------------------------------------------------------------------------------------------

_PART = ".written-{}.jsonl"


class WrittenText(NamedTuple):
    """What was written after one prompt.

    text: without special tokens.   finished: the model itself ended it.   num_tokens: its end included.
    top_logprobs: per token, pairs of a token's text and its log-probability, the likeliest first.
    """

    text: str
    finished: bool
    num_tokens: int
    top_logprobs: tuple[tuple[tuple[str, float], ...], ...]


def read_all(folder: Path) -> dict[str, WrittenText]:
    written: dict[str, WrittenText] = {}
    for part in sorted(folder.glob(_PART.format("*"))):
        written |= read_part(part)
    return written


def read_part(part: Path) -> dict[str, WrittenText]:
    """What was written. The last line of a killed process may be cut; it is written anew."""
    if not part.is_file():
        return {}
    whole, end, cut = part.read_bytes().rpartition(b"\n")
    if cut:  # else the next line would be written behind it
        write_text_atomically(part, (whole + end).decode())
    lines = map(json.loads, whole.split(b"\n") if whole else ())
    return {
        name: WrittenText(text, finished, num_tokens, tuple(tuple(map(tuple, step)) for step in top))
        for name, text, finished, num_tokens, top in lines
    }


# Writing --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Writing:
    """How texts are written."""

    temperature: float  # 0 takes the likeliest token
    max_new_tokens: int  # of each text
    # of keys and values of a batch, padding and tokens to come included; by it, prompts are written side by side
    cache_bytes: int
    top_logprobs: int = 0  # so many of the likeliest tokens are kept at each step, with their log-probabilities


def write(
    model: Any,
    tokenizer: Any,
    prompts: Mapping[str, Sequence[int]],
    seeds: Mapping[str, str],
    folder: Path,
    make_trainer: Callable[..., lightning.Trainer],
    writing: Writing,
    *,
    description: str,
) -> dict[str, WrittenText]:
    """What `model` writes after each prompt, up to its end of text or `max_new_tokens`.

    prompts: name -> ids.   seeds: name -> seed of its draws, so that neither order nor batches matter (up to the
    rounding of padded batches).   folder: what an earlier call wrote there is kept.

    Raises ValueError for prompts that leave the model no room to write, and for trainer=fsdp.
    """
    most = position_limit(model.config)
    longest = max((len(ids) for ids in prompts.values()), default=0)
    if most is not None and longest + writing.max_new_tokens > most:
        raise ValueError(
            f"The longest prompt has {longest} tokens and {writing.max_new_tokens} are to come, but the model reads at "
            f"most {most}. Lower max_new_tokens or max_tokens, or choose a model with a longer context."
        )
    writer = Writer(model, tokenizer, prompts, seeds, folder, writing)
    trainer = silent(make_trainer, StageProgress(description, "texts", after_each(writer.sizes()), shared=True))
    if isinstance(trainer.strategy, ModelParallelStrategy):
        raise ValueError(
            "Models in shards cannot write texts. Use trainer=gpu or trainer=ddp, and device_map=auto for a model that "
            "needs several GPUs."
        )
    predict(trainer, writer)
    trainer.strategy.barrier("written")  # the parts of all processes are complete
    written = read_all(folder)
    trainer.strategy.barrier("read")  # the first process may move the folder as soon as it returns
    if missing := prompts.keys() - written.keys():
        raise ValueError(
            f"{len(missing)} of {len(prompts)} texts were not written. Take limit_predict_batches and fast_dev_run out "
            "of the trainer."
        )
    return {name: written[name] for name in prompts}


def cache_bytes_of_token(model: Any) -> int:
    """Keys and values of all layers; of a kind of model without attention heads, as if it had as many as its width."""
    config = model.config.get_text_config()
    stored = 0
    for layer in getattr(config, "per_layer_config", None) or [config] * config.num_hidden_layers:  # alike or not
        heads = getattr(layer, "num_attention_heads", None) or 1
        width = getattr(layer, "head_dim", None) or layer.hidden_size // heads
        stored += (getattr(layer, "num_key_value_heads", None) or heads) * width
    return int(2 * stored * model.dtype.itemsize)


class Writer(Held, lightning.LightningModule):
    """The predict side of a model that writes: batches of prompts in, lines of a file out."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        prompts: Mapping[str, Sequence[int]],
        seeds: Mapping[str, str],
        folder: Path,
        writing: Writing,
    ) -> None:
        super().__init__()
        self.hold(model)
        self._lengths = lengths_of(model.config)
        self._tokenizer = tokenizer
        self._names, self._prompts = list(prompts), [list(ids) for ids in prompts.values()]
        self._seeds = [seeds[name] for name in prompts]
        self._folder = folder
        self._writing = writing

    def batches(self) -> list[list[int]]:
        """Indices of the prompts."""
        sizes = [len(ids) + self._writing.max_new_tokens for ids in self._prompts]
        most = max(1, self._writing.cache_bytes // cache_bytes_of_token(self.model))
        return length_buckets(sizes, most, self._group)

    def _group(self, size: int) -> Hashable:
        """Of a prompt with what is to come: a longer one beside it is written to otherwise by some models."""
        if self._reads_padding:
            return size
        return self._lengths.group_of_prompt(size - self._writing.max_new_tokens, self._writing.max_new_tokens)

    @cached_property
    def _reads_padding(self) -> bool:
        return len({*map(len, self._prompts)}) > 1 and reads_padding(self.model, self._tokenizer)

    def sizes(self) -> list[int]:
        """Texts of each batch that no earlier run has written."""
        there = read_all(self._folder)
        return [sum(self._names[index] not in there for index in batch) for batch in self.batches()]

    def predict_dataloader(self) -> PromptBatches:
        # Batches and shares are those of a run from the start, so no process depends on how far others had come.
        share = share_of_rank(self.batches(), self.trainer.global_rank, self.trainer.world_size)
        there = read_part(self._part)
        waiting = [[index for index in batch if self._names[index] not in there] for batch in share]
        return PromptBatches(self._prompts, waiting)

    @property
    def _part(self) -> Path:
        return self._folder / _PART.format(self.trainer.global_rank)

    def on_predict_start(self) -> None:
        self.model.eval()

    def predict_step(self, batch: dict[str, Tensor], batch_idx: int) -> int:
        """batch: input_ids and attention_mask [B, T] padded on the left, doc_index [B]; B may be 0. Returns B."""
        if not len(batch["doc_index"]):
            return 0
        rows: list[int] = batch["doc_index"].tolist()
        prompts_BT, mask_BT = batch["input_ids"], batch["attention_mask"]
        generation = _generation(self.model, self._tokenizer, self._writing.max_new_tokens)
        likeliest = Likeliest(self._writing.top_logprobs)
        draws = LogitsProcessorList([likeliest] if self._writing.top_logprobs else [])
        if self._writing.temperature > 0:
            draws.append(SeededDraws(self._writing.temperature, [self._seeds[row] for row in rows]))
        self._lengths.forget(self.model)
        with _without_settings(self.model):
            whole_BT = self.model.generate(
                input_ids=prompts_BT, attention_mask=mask_BT, logits_processor=draws, generation_config=generation
            )
        written_BT = whole_BT[:, prompts_BT.shape[1] :].cpu()
        texts = self._tokenizer.batch_decode(written_BT, skip_special_tokens=True)
        with self._part.open("a", encoding="utf-8") as file:
            for index, (row, text) in enumerate(zip(rows, texts, strict=True)):
                finished, num_tokens = _end(written_BT[index].tolist(), generation.eos_token_id or [])
                top = likeliest.of(index, num_tokens, self._tokenizer)
                file.write(json.dumps([self._names[row], text, finished, num_tokens, top]) + "\n")
        return len(rows)


def _end(ids: Sequence[int], ends: Sequence[int]) -> tuple[bool, int]:
    """Whether an end of text is among the ids, and how many there are up to it; the rest is padding."""
    index = next((index for index, item in enumerate(ids) if item in ends), None)
    return (False, len(ids)) if index is None else (True, index + 1)


def reads_padding(model: Any, tokenizer: Any) -> bool:
    """Whether padding before a prompt changes what comes next, although it is masked: some models know no mask (RWKV),
    others count positions from the padding on (BART's decoder)."""
    number, device = number_of_embeddings(model)
    ids_T = torch.randint(number, (SHORT[1],), generator=torch.Generator().manual_seed(0))
    generation = _generation(model, tokenizer, 1)
    generation.update(return_dict_in_generate=True, output_logits=True)
    log_probs = []
    for batch in PromptBatches([ids_T[-SHORT[0] :].tolist(), ids_T.tolist()], [[0], [0, 1]]):
        with evaluation_mode(model), _without_settings(model):
            ids_BT, mask_BT = (batch[name].to(device) for name in ("input_ids", "attention_mask"))
            made = model.generate(input_ids=ids_BT, attention_mask=mask_BT, generation_config=generation)
        log_probs.append(made.logits[0][0].float().log_softmax(-1))
    moved = (log_probs[1] - log_probs[0]).nan_to_num(0.0)  # tokens that are ruled out are so in both
    share = TOLERANCE if model.dtype in (torch.float32, torch.float64) else TOLERANCE_OF_HALF
    return bool(moved.abs().max() > share * log_probs[0][log_probs[0].isfinite()].std(correction=0))


class SeededDraws(LogitsProcessor):
    """Makes the largest score of each row a draw at a temperature: Gumbel noise on scores / temperature.

    seeds: one per row of the batch; a row's draws depend on its own seed and on nothing else.
    """

    def __init__(self, temperature: float, seeds: Sequence[str]) -> None:
        self._temperature = temperature
        digests = (hashlib.sha256(seed.encode("utf-8", "surrogatepass")).digest() for seed in seeds)
        self._generators = [np.random.default_rng(int.from_bytes(digest[:8], "big")) for digest in digests]

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """scores: [B, V] float32."""
        exponential = np.stack([g.standard_exponential(scores.shape[1], dtype=np.float32) for g in self._generators])
        exponential_BV = torch.from_numpy(exponential).to(scores.device)
        return scores / self._temperature - exponential_BV.clamp_min(torch.finfo(torch.float32).tiny).log()


class Likeliest(LogitsProcessor):
    """Leaves the scores as they are, and keeps the log-probabilities of the likeliest tokens of each row at each step.

    It must come first: the scores are then the model's own.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._steps: list[tuple[list[list[int]], list[list[float]]]] = []  # per step: [B, number] each

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """scores: [B, V] float32."""
        top = scores.float().log_softmax(-1).topk(min(self._number, scores.shape[1]), dim=-1)
        self._steps.append((top.indices.tolist(), top.values.tolist()))
        return scores

    def of(self, row: int, num_tokens: int, tokenizer: Any) -> list[list[tuple[str, float]]]:
        """Of the first steps of a row; those behind the end of its text say nothing."""
        return [
            [(token_text(tokenizer, item), value) for item, value in zip(ids[row], values[row], strict=True)]
            for ids, values in self._steps[:num_tokens]
        ]


def token_text(tokenizer: Any, token_id: int) -> str:
    """What a token adds to a text, a leading blank included: decoded alone, some tokenizers leave it out."""
    (before,) = ids_of(tokenizer, ["a"], add_special_tokens=False)[0][-1:]
    ids = ([before], [before, token_id])
    alone, both = (str(tokenizer.decode(item, clean_up_tokenization_spaces=False)) for item in ids)
    return both.removeprefix(alone)


class PromptBatches(PaddedBatches):
    """Iterable over left-padded batches."""

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        for batch in self.batches:
            rows = [torch.as_tensor(self.sequences[index], dtype=torch.long) for index in batch] or [torch.tensor([0])]
            padded = {"input_ids": rows, "attention_mask": list(map(torch.ones_like, rows))}
            made = {name: pad_sequence(item, True, padding_side="left") for name, item in padded.items()}
            yield {**made, "doc_index": torch.tensor(batch, dtype=torch.long)}


@contextmanager
def _without_settings(model: Any) -> Iterator[None]:
    """Without the generation settings of the model's file, which transformers falls back on for every setting that is
    not given: suppress_tokens, no_repeat_ngram_size."""
    owner = model.get_base_model() if hasattr(model, "get_base_model") else model
    kept, owner.generation_config = owner.generation_config, GenerationConfig()
    try:
        yield
    finally:
        owner.generation_config = kept


def _generation(model: Any, tokenizer: Any, max_new_tokens: int) -> GenerationConfig:
    """The likeliest next token of the processed scores, until an end of text: no setting of the file's beside."""
    named = model.generation_config.eos_token_id
    ends = {*(named if isinstance(named, list) else [named]), tokenizer.eos_token_id} - {None}
    padding = next((item for item in (tokenizer.pad_token_id, tokenizer.eos_token_id) if item is not None), 0)
    return GenerationConfig(
        max_new_tokens=max_new_tokens,
        do_sample=False,
        num_beams=1,
        use_cache=True,
        repetition_penalty=1.0,
        eos_token_id=sorted(ends) or None,
        pad_token_id=padding,
    )
