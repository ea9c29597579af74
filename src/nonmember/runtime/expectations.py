"""Expected time and memory of a stage, estimated from parameters and tokens before it starts."""

from __future__ import annotations

import functools
import os
import time
from pathlib import Path
from typing import Any

import torch

from nonmember.runtime.progress import duration

FORWARD, TRAINING = 2, 6  # floating-point operations per parameter and token
EFFICIENCY = 0.5  # of what a large product of matrices reaches
LONG_SECONDS = 600.0
LARGE_SHARE = 0.5
BYTES_PER_TOKEN_ROW = 50  # of a table of observations in memory
SMALL = 1e12  # operations: seconds on any machine


def num_parameters(*models: Any) -> int:
    return sum(parameter.numel() for model in models for parameter in model.parameters())


def num_bytes(*models: Any) -> int:
    return sum(parameter.numel() * parameter.element_size() for model in models for parameter in model.parameters())


def training_bytes(model: Any, *, moments: int) -> int:
    """Gradients and the optimizer's moments of what is trained, in float32."""
    return 4 * (1 + moments) * sum(item.numel() for item in model.parameters() if item.requires_grad)


def expectation(operations: float, memory: float, device: torch.device, world_size: int = 1) -> str:
    """Time above ten minutes and memory above half of what there is, in words; empty where neither is.

    operations: floating-point, of all processes.   memory: bytes, of one.
    """
    parts = []
    if operations > SMALL:
        seconds = operations / (EFFICIENCY * speed(device.type, device.index) * world_size)
        if seconds > LONG_SECONDS:
            parts.append(f"about {duration(seconds)}")
    there = memory_of(device)
    if memory > LARGE_SHARE * there:
        parts.append(f"about {memory / 2**30:.1f} of {there / 2**30:.1f} GiB of memory")
    return f"expected: {' and '.join(parts)}" if parts else ""


@functools.cache
def speed(kind: str, index: int | None, dtype: torch.dtype = torch.float32) -> float:
    """Floating-point operations a second of a product of matrices on this device."""
    device = torch.device(kind) if index is None else torch.device(kind, index)
    size, times = (512, 20) if kind == "cpu" else (8192, 3)  # so short that one of them meets no other process
    matrix = torch.ones(size, size, device=device, dtype=dtype)
    taken = []
    for _ in range(times):
        start = time.monotonic()
        float((matrix @ matrix)[0, 0])  # waits for the device
        taken.append(time.monotonic() - start)
    return 2 * size**3 / min(taken)


def memory_of(device: torch.device) -> float:
    """Bytes of the device; of the machine, what this process may use."""
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[1])
    there = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for path in (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")):
        if path.is_file() and (limit := path.read_text().strip()).isdigit():
            there = min(there, float(limit))
    return there
