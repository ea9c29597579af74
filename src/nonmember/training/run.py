"""Train a model by a recipe: sequences, plan, module, trainer. What the store needs to know comes back as facts."""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning
import torch

from nonmember.compute import MIB, Compute
from nonmember.models.forward import split_forward
from nonmember.progress import progress_callbacks, shows_progress
from nonmember.training.batches import StepLoader, packed_sequences, plan_steps
from nonmember.training.losses import Ids
from nonmember.training.modules import CausalLMModule, DistilledReferenceModule
from nonmember.training.recipes import Distillation, Pretraining
from nonmember.training.resume import RandomState, ResumePoint

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Teacher:
    """The model to distil from, and the ids (student's, teacher's) of the strings both vocabularies have."""

    model: Any
    shared_ids: tuple[Ids, Ids]


def train(
    model: Any,
    documents: Sequence[Sequence[int]],
    recipe: Pretraining | Distillation,
    *,
    seed: int,
    end_of_text: int,
    teacher: Teacher | None,
    folder: Path,
    compute: Compute,
    loggers: Sequence[Any],
    description: str,
) -> dict[str, Any]:
    """Train `model` in place on token ids per document and return what is worth keeping about the run.

    folder: where a resume point is kept; one that lies there is gone on from, with the very numbers of a run that was
    never interrupted. The distilled reference's health is measured before and after (nats per token, temperature 1).
    """
    optimization = recipe.optimization
    if isinstance(recipe, Pretraining):
        sequences = packed_sequences(documents, length=recipe.sequence_length, end_of_text=end_of_text, seed=seed)
    else:
        sequences = [list(ids[: recipe.max_tokens]) for ids in documents if len(ids) >= 2]
    if not sequences:
        raise ValueError("There is nothing to train on: no document has two tokens or more.")
    steps = plan_steps(len(sequences), batch_size=optimization.batch_size, epochs=optimization.epochs, seed=seed)
    loader = StepLoader(sequences, steps, micro_batch_size=compute.micro_batch_size, padding_id=end_of_text)
    settings: dict[str, Any] = {
        "num_steps": len(steps),
        "logits_budget_bytes": compute.logits_budget_mib * MIB,
    }

    def module_to_work_on() -> CausalLMModule:
        split = split_forward(copy.deepcopy(model) if compute.alters_models else model)
        if isinstance(recipe, Pretraining):
            return CausalLMModule(split, loader, optimization, **settings)
        if teacher is None:
            raise ValueError("Distillation needs a teacher, and none was given.")
        return DistilledReferenceModule(
            split, split_forward(teacher.model), loader, recipe, shared_ids=teacher.shared_ids, **settings
        )

    facts: dict[str, Any] = {
        "num_sequences": len(sequences),
        "num_steps": len(steps),
        "num_tokens": sum(tokens for _, tokens in loader.micro_batches[:: loader.accumulate]),
    }
    distilled = isinstance(recipe, Distillation)
    if distilled:
        health = _health(module_to_work_on(), sequences, end_of_text, compute)
        facts |= {f"{name}_before": value for name, value in health.items()}

    torch.manual_seed(seed)
    module = module_to_work_on()
    module.model.train()
    if compute.gradient_checkpointing:
        module.model.gradient_checkpointing_enable()
    resume_point = ResumePoint(folder, compute.checkpoint_seconds, loader.accumulate)
    trainer = compute.trainer(
        max_epochs=1,
        accumulate_grad_batches=loader.accumulate,
        gradient_clip_val=optimization.gradient_clip,
        callbacks=[resume_point, RandomState(), *progress_callbacks(description)],
        logger=list(loggers) or False,
        enable_progress_bar=shows_progress(),
        log_every_n_steps=max(1, len(steps) // 200),
        num_sanity_val_steps=0,
        limit_val_batches=0,
        enable_checkpointing=False,
        enable_model_summary=False,
    )
    if resume_point.path.exists():
        log.info("%s: going on from the point an earlier run had reached.", description)
    trainer.fit(module, ckpt_path=resume_point.path if resume_point.path.exists() else None)
    if trainer.interrupted:
        raise KeyboardInterrupt  # some versions of Lightning swallow it; a half-trained model must never be stored
    if trainer.global_step != len(steps):
        raise ValueError(
            f"The trainer made {trainer.global_step} of {len(steps)} steps. Take limit_train_batches, max_steps, "
            "max_time and fast_dev_run out of the trainer."
        )
    if trainer.world_size > 1 or module.model is not model:
        _gather_weights(trainer, model, folder)
    if not all(bool(parameter.isfinite().all()) for parameter in model.parameters()):
        raise ValueError(
            f"{description}: the weights are no longer finite numbers. Lower the learning rate "
            f"({optimization.learning_rate}) or the bound on the gradient ({optimization.gradient_clip})."
        )
    if distilled:
        health = _health(module_to_work_on(), sequences, end_of_text, compute)
        facts |= {f"{name}_after": value for name, value in health.items()}
    model.eval()
    return facts


def _gather_weights(trainer: lightning.Trainer, model: Any, folder: Path) -> None:
    """Put the whole weights, which the strategy may have sharded or wrapped, back into `model`."""
    path = folder / ".final.ckpt"
    trainer.save_checkpoint(path, weights_only=True)
    trainer.strategy.barrier("weights saved")
    state = torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
    model.load_state_dict({name.removeprefix("model."): value for name, value in state.items()})
    trainer.strategy.barrier("weights read")  # the first process removes the file soon


def _health(
    module: CausalLMModule, sequences: Sequence[Sequence[int]], padding_id: int, compute: Compute
) -> dict[str, float]:
    once = [list(range(len(sequences)))]
    loader = StepLoader(sequences, once, micro_batch_size=compute.micro_batch_size, padding_id=padding_id)
    trainer = compute.trainer(
        logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False
    )
    (values,) = trainer.validate(module, loader, verbose=False)
    return {name.removeprefix("health/"): float(value) for name, value in values.items()}
