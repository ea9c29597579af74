"""What models make of documents that are read more than once: scored, then compared with another model, then scored
with a third. Features are most of a forward pass and small beside its logits.

Shapes: B documents, T tokens, D hidden.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from nonmember.models.forward import SplitForward, is_spread

MOST_BYTES = 256 * 2**20
LARGEST_SHARE = 1 / 16  # of that for one batch: of larger ones too few would stay for a second pass

_Key = tuple[Any, ...]


class Features:
    """Features of the batches read last, in main memory, until their model goes or its weights change.

    They are those of the very same batch, so numbers are the same to the last bit. Not for models that lie over several
    devices or processes, which have to make their passes together.
    """

    def __init__(self) -> None:
        self._of: WeakKeyDictionary[torch.nn.Module, OrderedDict[_Key, Tensor]] = WeakKeyDictionary()

    def of(self, split: SplitForward, input_ids_BT: Tensor) -> Tensor:
        """[B, T, D], as `split.body` gives them."""
        if not split.streaming or split.model.training or is_spread(split.model):
            return split.body(input_ids_BT)
        kept, key = self._of.setdefault(split.model, OrderedDict()), _key(split, input_ids_BT)
        if key in kept:
            kept.move_to_end(key)
            return kept[key].to(input_ids_BT.device)
        features_BTD = split.body(input_ids_BT)
        if features_BTD.nbytes <= LARGEST_SHARE * MOST_BYTES:
            kept[key] = features_BTD.detach().cpu()
            self._make_room(split.model)
        return features_BTD

    def _make_room(self, model: torch.nn.Module) -> None:
        """What was read first goes first, of other models before this one."""
        others = [self._of[item] for item in self._of if item is not model]
        while sum(item.nbytes for kept in self._of.values() for item in kept.values()) > MOST_BYTES:
            next(kept for kept in [*others, self._of[model]] if kept).popitem(last=False)


def _key(split: SplitForward, input_ids_BT: Tensor) -> _Key:
    """Of a batch, and of all that decides what its features are. `_version` counts what was written into a tensor."""
    device = input_ids_BT.device
    weights = tuple(
        (item.data_ptr(), item.dtype, 0 if item.is_inference() else item._version) for item in split.model.parameters()
    )
    autocast = torch.get_autocast_dtype(device.type) if torch.is_autocast_enabled(device.type) else None
    ids = hashlib.sha256(input_ids_BT.cpu().numpy().tobytes()).digest()
    return ids, tuple(input_ids_BT.shape), split.body_name, str(device), autocast, weights
