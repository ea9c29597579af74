"""Fully sharded training (FSDP2, `trainer=fsdp`): weights, gradients and optimizer states.

Body and head are called one by one, so each is sharded as a unit of its own, and each layer of the body within it.
"""

from __future__ import annotations

from typing import Any

import lightning
from lightning.pytorch.strategies import ModelParallelStrategy
from torch import nn
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

from nonmember.models.forward import GATHERED, LinearHead, SplitForward


class ShardableModule(lightning.LightningModule):
    """A LightningModule over `_split` that shards its model where the strategy asks for it."""

    _split: SplitForward

    def configure_model(self) -> None:
        """Called by Lightning before each fit, validation or prediction; does nothing without sharding."""
        if isinstance(self.trainer.strategy, ModelParallelStrategy):
            assert self.device_mesh is not None
            shard(self._split, self.device_mesh["data_parallel"])


def shard(split: SplitForward, mesh: Any) -> None:
    """Shard a split model in place, once. Raises ValueError for a model that cannot be split or shares its matrices."""
    head = split.head
    if split.body_name is None or not isinstance(head, LinearHead):
        raise ValueError(f"trainer=fsdp needs a model in body and head. {split.note} Use trainer=ddp or gpu.")
    body, output = head.model.get_submodule(split.body_name), head.model.get_submodule(head.name)
    if isinstance(body, FSDPModule):
        return
    if {id(parameter) for parameter in body.parameters()} & {id(parameter) for parameter in output.parameters()}:
        raise ValueError("trainer=fsdp cannot shard a model whose input and output matrices are one. Use trainer=ddp.")
    for layer in (layer for module in body.children() if isinstance(module, nn.ModuleList) for layer in module):
        fully_shard(layer, mesh=mesh)
    fully_shard(body, mesh=mesh)
    fully_shard(output, mesh=mesh)
    setattr(output, GATHERED, lambda call, *rows: call(*rows))
    register_fsdp_forward_method(output, GATHERED)
