"""A causal language model split into body and head, so that logits are computed a few rows at a time.

Shapes: B documents, T tokens, D hidden, V vocabulary (rows of the output matrix, padding rows included).

The logits of one batch are the largest thing a language model makes: 8 x 512 tokens of a 256,000-row vocabulary are
4.2 GB. Features are small, and `head(features)` gives the logits of just the rows that are asked for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn

from nonmember.models.lengths import Lengths, lengths_of

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

Ids = Tensor | slice  # rows of the vocabulary

# What the configs of the families call the number that multiplies, or divides, the logits, and their soft cap.
_SCALE_NAMES = ("logit_scale", "logits_scaling", "lm_head_multiplier", "output_multiplier")
_SOFT_CAP_NAMES = ("final_logit_softcapping", "logits_soft_cap", "softcap")
# Largest difference from the model's own logits, as a share of the largest logit: a few roundings of the type.
_TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}

# Stands for a logit of minus infinity: its probability is 0, and 0 times its square is still a number.
LOWEST_LOGIT = -1e15
ALL = slice(None)

PLACED = "_hf_hook"  # what accelerate leaves on a module that it has put on a device
GATHERED = "_gathered"  # the method of a sharded output matrix that calls a function while the matrix is whole


def is_spread(model: Any) -> bool:
    """Whether a model lies over several devices (device_map), where it must stay."""
    return len(set((getattr(model, "hf_device_map", None) or {}).values())) > 1


class Held(nn.Module):
    """For modules of Lightning: `self.model` outside the tree of modules where a model lies over several devices, as
    Lightning would move all of it to one."""

    def hold(self, model: Any) -> None:
        if is_spread(model):
            self.__dict__["model"] = model
        else:
            self.model: Any = model

    def train(self, mode: bool = True) -> Self:
        if is_spread(self.model):
            self.model.train(mode)
        return super().train(mode)


class Head(Protocol):
    """Features [..., D] -> logits [..., V], or [..., C] of some columns.

    `out` [..., C], in the dtype of the features, may be filled and returned instead of new memory. A head may decline
    it, so use what is returned. Of one that is not divisible, take all columns.
    """

    @property
    def vocab_size(self) -> int: ...

    def __call__(self, features: Tensor, out: Tensor | None = None, columns: slice = ALL) -> Tensor: ...

    def is_divisible(self, features: Tensor) -> bool: ...

    def parameters(self) -> Iterable[Tensor]: ...

    def gathered(self, call: Callable[..., _T], *rows: Tensor) -> _T:
        """`call(head, *rows)`, where the head's parameters are whole tensors also if they are sharded: gathered once
        for all that is done with them."""
        ...


@dataclass(frozen=True)
class LinearHead:
    """The output matrix of a model, with its bias, logit scale and soft cap.

    is_gathered: whether a sharded matrix is whole for now, and is used without what gathers it.
    """

    model: nn.Module
    name: str
    multiplier: float
    soft_cap: float | None
    is_gathered: bool = False

    @property
    def _linear(self) -> Any:
        # Looked up at each use: a sharding strategy may have put a wrapper in its place.
        return self.model.get_submodule(self.name)

    @property
    def vocab_size(self) -> int:
        linear = self._linear
        return int(getattr(linear, "out_features", None) or linear.weight.shape[0])

    def is_divisible(self, features: Tensor) -> bool:
        return _is_plain(self._linear, features)

    def __call__(self, features: Tensor, out: Tensor | None = None, columns: slice = ALL) -> Tensor:
        linear = self._linear
        if out is not None and _is_plain(linear, features):
            return self._write(linear, features, out, columns)
        forward = linear.forward if self.is_gathered else linear
        logits: Tensor = forward(features).to(features.device)  # where the matrix lies on another one
        if self.multiplier != 1.0:
            logits = logits * self.multiplier
        if self.soft_cap is not None:
            logits = torch.tanh(logits / self.soft_cap) * self.soft_cap
        return logits

    def parameters(self) -> Iterable[Tensor]:
        return self._linear.parameters()

    def gathered(self, call: Callable[..., _T], *rows: Tensor) -> _T:
        linear = self._linear
        if not hasattr(linear, GATHERED):
            return call(self, *rows)
        return getattr(linear, GATHERED)(partial(call, replace(self, is_gathered=True)), *rows)

    def _write(self, linear: nn.Linear, features: Tensor, out: Tensor, columns: slice) -> Tensor:
        weight = linear.weight[columns].t()
        if linear.bias is None:
            torch.mm(features, weight, out=out)
        else:
            torch.addmm(linear.bias[columns], features, weight, out=out)
        if self.multiplier != 1.0:
            out.mul_(self.multiplier)
        if self.soft_cap is not None:
            out.div_(self.soft_cap).tanh_().mul_(self.soft_cap)
        return out


def _is_plain(linear: Any, features: Tensor) -> bool:
    """Whether the matrix product may be done directly: no adapter, hook, shard or autocast to go round."""
    return (
        type(linear) is nn.Linear
        and not hasattr(linear, PLACED)
        and not linear._forward_hooks
        and not linear._forward_pre_hooks
        and features.ndim == 2
        and features.dtype == linear.weight.dtype
        and not torch.is_grad_enabled()
        and not torch.is_autocast_enabled(features.device.type)
    )


@dataclass(frozen=True)
class PlainLogits:
    """The head of a model that could not be split: the features are the logits already."""

    vocab_size: int

    def is_divisible(self, features: Tensor) -> bool:
        return True

    def __call__(self, features: Tensor, out: Tensor | None = None, columns: slice = ALL) -> Tensor:
        return features[..., columns]

    def parameters(self) -> Iterable[Tensor]:
        return ()

    def gathered(self, call: Callable[..., _T], *rows: Tensor) -> _T:
        return call(self, *rows)


@dataclass(frozen=True)
class SplitForward:
    """`head(body(input_ids))` equals `model(input_ids).logits`.

    No attention mask is passed. Documents are padded on the right and attention is causal, so padding reaches no real
    token; the features of padding mean nothing and must be left out. Gradients flow through both halves.

    streaming: whether the halves are real. If not, `body` returns the whole logits, and `note` says why.
    lengths: which texts may be read side by side.
    """

    model: nn.Module
    head: Head
    body_name: str | None
    note: str = ""
    lengths: Lengths = field(default_factory=Lengths)

    @property
    def streaming(self) -> bool:
        return self.body_name is not None

    def body(self, input_ids_BT: Tensor) -> Tensor:
        """Features [B, T, D]; logits [B, T, V] where the model could not be split."""
        self.lengths.forget(self.model)
        if self.body_name is None:
            return full_logits(self.model, input_ids_BT)
        # An adapter library's wrapper has the same modules under a longer name.
        module = _causal_lm(self.model).get_submodule(self.body_name)
        features: Tensor = module(input_ids=input_ids_BT, use_cache=False).last_hidden_state
        return features.to(input_ids_BT.device)  # of a model over several devices they end on the last

    def hidden(self, input_ids_BT: Tensor, layer: int) -> Tensor:
        """[B, T, D] entry `layer` of the tuple of hidden states: 0 the embedded tokens, -1 what the head reads.

        No logits are made, unless the model could not be split.
        """
        if self.body_name is not None and layer == -1:
            return self.body(input_ids_BT)
        self.lengths.forget(self.model)
        module = self.model if self.body_name is None else _causal_lm(self.model).get_submodule(self.body_name)
        hidden: Tensor = module(input_ids=input_ids_BT, use_cache=False, output_hidden_states=True).hidden_states[layer]
        return hidden.to(input_ids_BT.device)


def split_forward(model: Any) -> SplitForward:
    """Split a Hugging Face causal language model (adapters included) and check the halves against the whole.

    The check compares both on random token ids, in evaluation mode, which is then put back. A model whose
    parts are not found, or do not reproduce its logits, is used whole: slower and larger, never wrong.
    """
    with evaluation_mode(model), torch.no_grad():
        return _split_and_check(model)


def _split_and_check(model: Any) -> SplitForward:
    lengths = lengths_of(model.config)
    number, device = number_of_embeddings(model)
    probe_BT = torch.randint(number, (2, 4), generator=torch.Generator().manual_seed(0)).to(device)
    whole_BTV = full_logits(model, probe_BT)
    try:
        inner = _causal_lm(model)
        body_name = _name_of(inner, inner.base_model if inner.base_model is not inner else inner.get_decoder())
        head_name = _name_of(inner, inner.get_output_embeddings())
        for multiplier in _multipliers(inner.config):
            head = LinearHead(inner, head_name, multiplier, _config_number(inner.config, _SOFT_CAP_NAMES))
            split = SplitForward(model, head, body_name, lengths=lengths)
            if _agree(head(split.body(probe_BT)), whole_BTV):
                return split
        note = "body and head together do not give the model's own logits"
    except (AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        note = f"body and head could not be told apart ({type(error).__name__}: {error})"
    note = f"{type(model).__name__} is used whole, with all logits of a batch in memory: {note}."
    _log.warning(note)
    return SplitForward(model, PlainLogits(whole_BTV.shape[-1]), None, note, lengths)


def _causal_lm(model: Any) -> Any:
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def full_logits(model: Any, input_ids_BT: Tensor) -> Tensor:
    """[B, T, V]"""
    logits: Tensor = model(input_ids=input_ids_BT, use_cache=False).logits
    return logits


def number_of_embeddings(model: Any) -> tuple[int, torch.device]:
    """Rows of the embedding matrix, and where ids are to lie."""
    embeddings = _causal_lm(model).get_input_embeddings().weight
    return embeddings.shape[0], torch.device("cpu") if embeddings.is_meta else embeddings.device


def _name_of(model: nn.Module, part: nn.Module | None) -> str:
    if found := next((name for name, module in model.named_modules() if module is part and name), ""):
        return found
    raise AttributeError("it has no separate decoder and output matrix")


def _multipliers(config: Any) -> Iterator[float]:
    # Granite divides by its number, Cohere and HyperCLOVA multiply by theirs: the comparison decides.
    yield 1.0
    if scale := _config_number(config, _SCALE_NAMES):
        yield from (scale, 1.0 / scale)


def _config_number(config: Any, names: tuple[str, ...]) -> float | None:
    values = (getattr(config.get_text_config(), name, None) for name in names)
    return next((float(value) for value in values if isinstance(value, int | float)), None)


def _agree(logits: Tensor, expected: Tensor) -> bool:
    if logits.shape != expected.shape:
        return False
    finite = expected[expected.isfinite()]  # none, where the weights are damaged: observing refuses those
    largest = float(finite.abs().max()) if len(finite) else 0.0
    tolerance = _TOLERANCE.get(expected.dtype, 1e-5) * max(1.0, largest)
    return torch.allclose(logits.float(), expected.float(), rtol=0.0, atol=tolerance, equal_nan=True)


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Evaluation mode for a while, then each module's own flag again: some may be frozen on purpose."""
    flags = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in flags:
            module.training = training
