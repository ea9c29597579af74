"""Models that read a text otherwise beside a longer one: rotary embeddings whose frequencies follow the longest text.

LongRoPE (Phi-3, MiniCPM) has two sets of frequencies and takes the long one for a whole batch as soon as one of its
texts is long. Dynamic NTK computes them anew for every length beyond its limit, and remembers them. Such texts are not
read side by side, and nothing is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

LONGROPE = ("longrope", "su")  # the second is what the first Phi-3 called it


@dataclass(frozen=True)
class Lengths:
    """switches: texts of at most so many tokens are read in one way, longer ones in another.   limit: beyond it each
    length is read in a way of its own; None: there is no such limit.   most: tokens that can be read, where the limit
    is not the end."""

    switches: tuple[int, ...] = ()
    limit: int | None = None
    most: int | None = None

    def __bool__(self) -> bool:
        return bool(self.switches) or self.limit is not None

    def group(self, length: int) -> tuple[int, int]:
        """Texts of one group may be read side by side."""
        own = length if self.limit is not None and length > self.limit else 0
        return sum(length > switch for switch in self.switches), own

    def group_of_prompt(self, length: int, num_new_tokens: int) -> tuple[int, int]:
        """The same for prompts that so many tokens are written to: where these may pass a switch, each length is a
        group of its own."""
        first, last = self.group(length), self.group(length + num_new_tokens)
        return first if first == last else (-1, length)

    def forget(self, model: Any) -> None:
        """Frequencies as before any text was read: beyond their limit, transformers keeps those of the longest."""
        if self.limit is None:
            return
        for module in model.modules():
            for name in [name for name in vars(module) if name.endswith("max_seq_len_cached")]:
                prefix = name.removesuffix("max_seq_len_cached")
                used, first = (getattr(module, f"{prefix}{item}", None) for item in ("inv_freq", "original_inv_freq"))
                if used is not None and first is not None:
                    module.register_buffer(f"{prefix}inv_freq", first.to(used.device), persistent=False)
                    setattr(module, name, module.original_max_seq_len)


def lengths_of(config: Any) -> Lengths:
    """Of a transformers configuration; also of one as a mapping, as config.json has it."""
    whole: Any = config if isinstance(config, Mapping) else getattr(config, "to_dict", lambda: vars(config))()
    switches: set[int] = set()
    limits: list[tuple[int, float]] = []
    for owner, rope in _ropes(whole):
        kind = str(rope.get("rope_type") or rope.get("type") or "")
        most = _number(owner, "max_position_embeddings")
        if kind in LONGROPE:
            original = (_number(item, "original_max_position_embeddings") for item in (owner, rope))
            switches.add(int(next(filter(None, original), most)))
        elif "dynamic" in kind:
            limits.append((int(most), _number(rope, "factor") or 1.0))
    if not limits:
        return Lengths(tuple(sorted(switches)))
    limit, factor = min(limits)
    return Lengths(tuple(sorted(switches)), limit, int(limit * factor))


def grouping(*configs: Any) -> Callable[[int], Hashable]:
    """The group of a text's length where it is read by models of all these configurations."""
    all_lengths = [lengths_of(config) for config in configs]
    return lambda length: tuple(lengths.group(length) for lengths in all_lengths)


def _number(settings: Mapping[str, Any], name: str) -> float:
    """0 where it is no number, of which loading the model tells."""
    value = settings.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _ropes(owner: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """All settings of rotary embeddings, at any depth, each with the configuration that it belongs to: one for all
    layers or one for each kind of layer."""
    for name, value in owner.items():
        if not isinstance(value, Mapping):
            continue
        if name in ("rope_parameters", "rope_scaling"):
            yield from ((owner, item) for item in (value, *value.values()) if isinstance(item, Mapping))
        else:
            yield from _ropes(value)
