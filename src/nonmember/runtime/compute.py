"""Where and how work is done, as far as results do not depend on it: devices, micro-batches, budgets."""

from __future__ import annotations

import copy
import ctypes
import functools
import gc
import hashlib
import logging
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

from nonmember.checks import Checked, Count, Number, require_text
from nonmember.runtime.naming import folder_name
from nonmember.runtime.processes import minutes_to_wait
from nonmember.runtime.quiet import imported

if TYPE_CHECKING:
    import lightning
    import torch

log = logging.getLogger(__name__)

MIB = 2**20
MOST_WORKERS = 1024
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
# Callbacks of Lightning that end a training early or change its weights.
CHANGING = (
    *("EarlyStopping", "Timer", "WeightAveraging", "StochasticWeightAveraging", "GradientAccumulationScheduler"),
    *("BaseFinetuning", "ModelPruning", "BatchSizeFinder", "LearningRateFinder", "LambdaCallback"),
)
LARGEST_KEPT, MOST_OF_SOME, MOST_KEPT, MUCH_KIB = 2**26, 2**25, 2**30, 2 * 2**20  # the last in KiB, others in bytes


@functools.cache
def keep_freed_memory() -> None:
    """Have glibc keep memory that tensors leave for the next ones, where it would return pieces of 128 KiB and more to
    the system and be given them again, zeroed page by page. A training step makes the same tensors each time: measured,
    8% less time for models of a million parameters, and some 8% more memory. No number depends on it.

    Not of larger tensors than LARGEST_KEPT: what an embedding of 671 MB leaves is soon cut up by small ones, and a
    sweep that loads model after model grew by 300 MB with each."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if platform.libc_ver()[0] == "glibc" else None
    # Some versions take no larger threshold for mmap; to set the other alone would fix it at 128 KiB.
    if mallopt is not None and (mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT) or mallopt(M_MMAP_THRESHOLD, MOST_OF_SOME)):
        mallopt(M_TRIM_THRESHOLD, MOST_KEPT)


def give_freed_memory_back() -> None:
    """To the system, before what needs much; where there was much, models too that only trainers hold (.3 s)."""
    if platform.libc_ver()[0] == "glibc":
        import resource

        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > MUCH_KIB:
            gc.collect()
        ctypes.CDLL(None).malloc_trim(0)


def lightning_trainer(**settings: Any) -> lightning.Trainer:
    """`lightning.Trainer`, imported when the first is made: planning a sweep needs none, and waits for none."""
    import lightning

    imported()
    keep_freed_memory()
    return lightning.Trainer(**settings)


@functools.cache
def computes_bfloat16(accelerator: str) -> bool:
    """accelerator: Lightning's name: cpu, or another, which is a GPU where there is one."""
    import torch

    if accelerator != "cpu" and torch.cuda.is_available():
        found = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        instructions: Mapping[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # not in the oldest torch
        found = bool(instructions.get("avx512_bf16") or instructions.get("amx_bf16"))
    if not found:
        log.info("dtype=auto is float32 here: the processor has no instructions for bfloat16.")
    return found


@functools.cache
def _say_who_is_awaited(number: int) -> None:
    """Once, as they find one another when the first trainer begins."""
    log.info("Working as one of %d processes, which wait up to %g minutes for each other.", number, minutes_to_wait())


@dataclass(frozen=True)
class Compute(Checked):
    """The `trainer=` group."""

    fields_called = "trainer.{field}"
    # `lightning_trainer` with the devices and strategy of the config; the rest is added here.
    make_trainer: Callable[..., Any]  # lightning.Trainer
    precision: str
    micro_batch_size: Annotated[int, Count(1)]  # sequences per forward pass in training, over all devices
    # Most tokens of a batch in observing, padding included; on a CPU no more than fit its cache.
    max_batch_tokens: Annotated[int, Count(1)]
    logits_budget_mib: Annotated[int, Count(1)]  # bound on the largest [tokens, vocabulary] table in training
    block_mib: Annotated[int, Count(1)]  # the same in observing; best when it fits the processor's cache
    # Training saves a point to resume from this often, or less often where that takes long.
    checkpoint_seconds: Annotated[float, Number("[0, inf)")]
    gradient_checkpointing: bool
    # Whether cross-entropy and divergence of a distilled reference are measured before and after its training. Two
    # passes over the documents by the student and, where its features of them fit 256 MiB, one by the teacher;
    # clearance measures both anyway.
    measure_health: bool = True
    # Processes that read and encode streamed text while the model trains; 0: it is done in between.
    num_workers: Annotated[int, Count(0, MOST_WORKERS)] = 0
    cache_mib: Annotated[int, Count(1)] = 256  # bound on the keys and values of texts that a model writes side by side
    # Of Lightning, by name, for every training. They watch: what they would change in a model its key does not say.
    callbacks: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        require_text(self.precision, "trainer.precision", hint="Lightning's names, such as 32-true or bf16-mixed.")
        super().__post_init__()

    @property
    def alters_models(self) -> bool:
        """Whether a trainer changes the model it works on for good, by sharding or by converting it: give it a copy."""
        from lightning.pytorch.strategies import ModelParallelStrategy

        return isinstance(self._strategy, ModelParallelStrategy) or self.precision in ("bf16-true", "16-true")

    @property
    def in_one_process(self) -> bool:
        """Whether the trainer works on one device, in the process that makes it."""
        devices = self._settings.get("devices", 1)
        return self._strategy == "auto" and (devices == 1 or (isinstance(devices, list | tuple) and len(devices) == 1))

    @property
    def _strategy(self) -> object:
        return self._settings.get("strategy", "auto")

    @property
    def _settings(self) -> Mapping[str, Any]:
        settings: Mapping[str, Any] = getattr(self.make_trainer, "keywords", {})
        return settings

    @property
    def has_bfloat16(self) -> bool:
        """Whether the device in use computes with bfloat16 itself, and does not emulate it more slowly than float32."""
        return computes_bfloat16(str(self._settings.get("accelerator", "auto")))

    @property
    def machine(self) -> str:
        """A mark of this machine and of the devices in use, by which times that were taken here are known."""
        devices = [str(self._settings.get(name)) for name in ("accelerator", "devices", "num_nodes")]
        name = "|".join([platform.node(), platform.machine(), str(os.cpu_count()), self.precision, *devices])
        return hashlib.sha256(name.encode()).hexdigest()[:12]

    @property
    def device(self) -> torch.device:
        """Of this process, for the little that needs no trainer."""
        return self.trainer(logger=False, enable_checkpointing=False).strategy.root_device

    def callbacks_of(self, description: str) -> list[Any]:
        """Those of one training, each anew; checkpoints in a folder of its own.

        Raises:
            ValueError: For what is no callback, and for one that ends a training early or changes its weights.
        """
        from lightning.pytorch.callbacks import ModelCheckpoint

        found = {name: copy.deepcopy(item) for name, item in (self.callbacks or {}).items()}
        for name, callback in found.items():
            if any(kind.__name__ in CHANGING for kind in type(callback).__mro__):
                raise ValueError(
                    f"callbacks.{name} must watch a training; got {type(callback).__name__}, which ends it early or "
                    "changes its weights, so that the recipe would no longer say what the model is. Set epochs and "
                    "learning rate of the recipe, or search for them (hparams_search=optuna)."
                )
            if isinstance(callback, ModelCheckpoint) and callback.dirpath is not None:
                callback.dirpath = os.path.join(callback.dirpath, folder_name(description))
        return list(found.values())

    def trainer(self, **arguments: object) -> lightning.Trainer:
        """A trainer of its own strategy. Raises ValueError where this machine or its Slurm job lacks the devices."""
        from lightning.fabric.utilities.exceptions import MisconfigurationException

        from nonmember.runtime.callbacks import InterruptionGuard

        arguments["callbacks"] = [*arguments.get("callbacks", ()), InterruptionGuard()]  # type: ignore[misc]
        if not isinstance(self._strategy, str):
            arguments["strategy"] = copy.deepcopy(self._strategy)
            arguments["inference_mode"] = False  # FSDP2 gathers its shards into tensors whose versions are counted
        try:
            trainer = self.make_trainer(precision=self.precision, **arguments)
            if trainer.world_size > 1:
                trainer.strategy._timeout = timedelta(minutes=minutes_to_wait())
                _say_who_is_awaited(trainer.world_size)
            return trainer
        except (MisconfigurationException, RuntimeError) as error:  # the latter of a job of several tasks
            raise ValueError(
                f"This trainer is not available here: {error} Choose another one, such as trainer=cpu; unset "
                "SLURM_NTASKS where it is left over from another job."
            ) from error
