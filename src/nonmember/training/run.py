"""Trains a model by a recipe: sequences, plan, module, trainer. Returns facts for the store."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Checkpoint
from peft import PeftModel

from nonmember.models.forward import Ids, is_spread, split_forward
from nonmember.models.lengths import grouping
from nonmember.models.reading import position_limit
from nonmember.runtime.callbacks import StageProgress, after_each, silent
from nonmember.runtime.compute import MIB, Compute
from nonmember.runtime.interruption import postponed
from nonmember.training.adapters import RankSchedule, adapter_weights, add_adapter
from nonmember.training.batches import Masks, StepLoader, TrainingData, packed_masks, packed_sequences, plan_steps
from nonmember.training.modules import AdapterTuningModule, CausalLMModule, DistilledReferenceModule
from nonmember.training.recipes import AdaLora, AdapterTuning, Distillation, Optimization, Pretraining, RuinedWeights
from nonmember.training.resume import RandomState, ResumePoint
from nonmember.training.tokens import Documents, Packed

log = logging.getLogger(__name__)

NUM_READ = 64  # sequences of which the loss is read before and after a training
LARGEST_RISE = 0.1  # nats per token, of a training that has learned nothing


@dataclass(frozen=True)
class Teacher:
    """The model to distil from, and the ids (student's, teacher's) of the strings both vocabularies have."""

    model: Any
    shared_ids: tuple[Ids, Ids]


@dataclass(frozen=True)
class TrainingRun:
    """What is particular to one run of a recipe."""

    seed: int  # of all draws
    # Where a resume point is kept; one that lies there is gone on from, with the very numbers of a run that was never
    # interrupted.
    folder: Path
    compute: Compute  # on what, and how
    loggers: Sequence[Any] = ()  # of Lightning
    description: str = "training"  # what the progress bar says


def train(
    model: Any,
    documents: Sequence[Sequence[int]],
    recipe: Pretraining | Distillation,
    run: TrainingRun,
    *,
    end_of_text: int,
    teacher: Teacher | None = None,
    scored: Masks | None = None,
) -> dict[str, Any]:
    """Train `model` in place on token ids per document and return what is worth keeping about the run.

    scored: which ids of the documents the loss is taken of; None: all. A distilled reference's health is measured
    before and after (nats per token, temperature 1), if compute.measure_health.
    """
    _require_on_one_device(model)
    optimization, compute, description = recipe.optimization, run.compute, run.description
    readers = [model] if teacher is None else [model, teacher.model]
    group = grouping(*(item.config for item in readers))
    sequences, masks = _sequences(documents, recipe, run.seed, end_of_text, scored)
    setting = "sequence_length" if isinstance(recipe, Pretraining) else "max_tokens"
    size = compute.micro_batch_size
    load = partial(StepLoader, sequences, micro_batch_size=size, padding_id=end_of_text, group=group, scored=masks)
    loader = load(_steps(len(sequences), recipe, run.seed))
    _require_positions(int(max(loader.lengths)), setting, readers)
    budget = compute.logits_budget_mib * MIB
    taught_by = split_forward(teacher.model) if teacher is not None else None

    def module_to_work_on() -> CausalLMModule:
        split = split_forward(copy.deepcopy(model) if compute.alters_models else model)
        if isinstance(recipe, Pretraining):
            return CausalLMModule(split, loader, optimization, logits_budget_bytes=budget)
        if teacher is None or taught_by is None:
            raise ValueError("Distillation needs a teacher, and none was given.")
        return DistilledReferenceModule(
            split, taught_by, loader, recipe, shared_ids=teacher.shared_ids, logits_budget_bytes=budget
        )

    facts: dict[str, Any] = loader.facts()
    # Of a distilled reference all is read, since audits judge by it; of others enough to see that training diverged.
    num_read = len(sequences) if isinstance(recipe, Distillation) else min(NUM_READ, len(sequences))
    some = [[*range(num_read)]]
    facts |= _health(module_to_work_on, load, some, run, "before")
    module = module_to_work_on()
    trainer = _fit(module, optimization, run)
    if trainer.world_size > 1 or module.model is not model:
        _gather_weights(trainer, model, run.folder)
    _check_finite(model.parameters(), optimization, description)
    facts |= _health(module_to_work_on, load, some, run, "after")
    if isinstance(recipe, Pretraining):
        _check_loss(facts, optimization, description)
    model.eval()
    return facts


def tune(
    model: Any,
    documents: Sequence[Sequence[int]],
    recipe: AdapterTuning,
    run: TrainingRun,
    *,
    scored: Masks | None = None,
) -> tuple[PeftModel, dict[str, Any]]:
    """`model` with an adapter trained on token ids per document, in evaluation mode; and facts about the run.

    The model itself is not changed, and its weights are not copied. scored: as for `train`.
    """
    compute = run.compute
    if compute.alters_models:
        raise ValueError(
            "An adapter shares its base model with other runs, and this trainer would modify that model in place. "
            "Choose precision 32-true or bf16-mixed, and trainer=cpu, gpu or ddp."
        )
    _require_on_one_device(model)
    optimization, adapter = recipe.optimization, recipe.adapter
    sequences, masks = _one_each(documents, recipe.max_tokens, scored)
    number, size, epochs = len(sequences), optimization.batch_size, optimization.epochs
    if not sequences:
        raise ValueError("There is nothing to tune on: no document has two tokens or more.")
    if recipe.drop_last and number < size:
        raise ValueError(
            f"Tuning takes whole batches of {size} documents; got {number} of two tokens or more. Give more documents, "
            "or lower optimization.batch_size."
        )
    _require_positions(max(map(len, sequences)), "max_tokens", [model])
    steps = plan_steps(number, batch_size=size, epochs=epochs, seed=run.seed, drop_last=recipe.drop_last)
    group, size = grouping(model.config), compute.micro_batch_size
    load = partial(StepLoader, sequences, micro_batch_size=size, padding_id=0, group=group, scored=masks)
    loader = load(steps)
    if isinstance(adapter, AdaLora):
        RankSchedule.check(adapter, len(steps))
    tuned = add_adapter(model, adapter, seed=run.seed, num_steps=len(steps))
    schedule = RankSchedule(tuned, adapter) if isinstance(adapter, AdaLora) else None

    def module_to_work_on() -> AdapterTuningModule:
        budget = compute.logits_budget_mib * MIB
        split = split_forward(tuned)
        return AdapterTuningModule(split, loader, optimization, logits_budget_bytes=budget, rank_schedule=schedule)

    trained = [parameter for parameter in tuned.parameters() if parameter.requires_grad]
    some = [[*range(min(NUM_READ, len(sequences)))]]
    facts: dict[str, Any] = loader.facts() | _health(module_to_work_on, load, some, run, "before")
    _fit(module_to_work_on(), optimization, run)
    _check_finite(trained, optimization, run.description)
    facts |= _health(module_to_work_on, load, some, run, "after")
    _check_loss(facts, optimization, run.description)
    config: Any = tuned.active_peft_config
    return tuned.eval(), facts | {
        "num_tuned_parameters": sum(weights.numel() for weights in adapter_weights(tuned).values()),
        "target_modules": sorted(config.target_modules),
    }


def _require_on_one_device(model: Any) -> None:
    if is_spread(model):
        raise ValueError(
            "A model over several devices (device_map) can be read and can write, and is not trained. Leave device_map "
            "out and use trainer=fsdp, or quantization=4bit for an adapter."
        )


def _require_positions(longest: int, setting: str, readers: Sequence[Any]) -> None:
    limits = [most for most in (position_limit(model.config) for model in readers) if most is not None]
    if limits and longest > min(limits):
        raise ValueError(
            f"A sequence to train on has {longest} tokens, and the model reads at most {min(limits)}. Lower {setting} "
            "to that."
        )


def _sequences(
    documents: Sequence[Sequence[int]],
    recipe: Pretraining | Distillation,
    seed: int,
    end_of_text: int,
    scored: Masks | None,
) -> tuple[Sequence[Sequence[int]], list[list[bool]] | None]:
    """The sequences, and which of their ids the loss is taken of; None where it is of all."""
    if isinstance(documents, Documents):
        assert isinstance(recipe, Pretraining)
        return Packed(documents, length=recipe.sequence_length, seed=seed), None
    if isinstance(recipe, Pretraining):
        packing: dict[str, int] = {"length": recipe.sequence_length, "end_of_text": end_of_text, "seed": seed}
        sequences = packed_sequences(documents, **packing)
        masks = None if scored is None else packed_masks(documents, scored, **packing)
    else:
        sequences, masks = _one_each(documents, recipe.max_tokens, scored)
    if all(len(item) < 2 for item in sequences):
        raise ValueError("There is nothing to train on: no document has two tokens or more.")
    return sequences, masks


def _one_each(
    documents: Sequence[Sequence[int]], max_tokens: int, scored: Masks | None
) -> tuple[list[list[int]], list[list[bool]] | None]:
    """Documents of two ids and more, of which one is scored."""
    long = (index for index, ids in enumerate(documents) if len(ids) >= 2)
    kept = [index for index in long if scored is None or any(scored[index][1:max_tokens])]
    sequences = [list(documents[index][:max_tokens]) for index in kept]
    return sequences, None if scored is None else [list(scored[index][:max_tokens]) for index in kept]


def _steps(num_sequences: int, recipe: Pretraining | Distillation, seed: int) -> list[list[int]]:
    epochs, num_steps = recipe.optimization.epochs, None
    if isinstance(recipe, Distillation):
        epochs, num_steps = recipe.num_epochs(num_sequences), recipe.num_steps
    return plan_steps(num_sequences, batch_size=recipe.optimization.batch_size, epochs=epochs, seed=seed)[:num_steps]


def _fit(module: CausalLMModule, optimization: Optimization, run: TrainingRun) -> lightning.Trainer:
    """Make all the steps, from a resume point in its folder where there is one."""
    compute, description = run.compute, run.description
    torch.manual_seed(run.seed)
    module.model.train()
    if compute.gradient_checkpointing:
        module.model.gradient_checkpointing_enable()
    loader = module.loader
    accumulate, num_steps = loader.accumulate, loader.num_steps
    random_state = RandomState()
    resume_point = ResumePoint(
        run.folder,
        compute.checkpoint_seconds,
        accumulate,
        random_state=random_state,
        num_steps=num_steps,
        description=description,
    )
    shown = StageProgress(description, "tokens", after_each(loader.sizes()))
    further = compute.callbacks_of(description)
    trainer = compute.trainer(
        max_epochs=1,
        accumulate_grad_batches=accumulate,
        gradient_clip_val=optimization.gradient_clip,
        callbacks=[resume_point, random_state, shown, *further],
        logger=list(run.loggers) or False,
        enable_progress_bar=False,
        log_every_n_steps=max(1, num_steps // 200),
        num_sanity_val_steps=0,
        limit_val_batches=0,
        enable_checkpointing=any(isinstance(item, Checkpoint) for item in further),
        enable_model_summary=False,
    )
    point = resume_point.points.newest(description, first_process=trainer.is_global_zero)
    if point is not None:
        log.info("%s: continuing from the point that an earlier run reached.", description)
    with postponed():
        trainer.fit(module, datamodule=TrainingData(loader), ckpt_path=point, weights_only=True)
    if trainer.interrupted:
        raise KeyboardInterrupt  # some versions of Lightning swallow it; a half-trained model must never be stored
    if trainer.global_step != num_steps:
        raise ValueError(
            f"The trainer made {trainer.global_step} of {num_steps} steps. Take limit_train_batches, max_steps, "
            "max_time and fast_dev_run out of the trainer."
        )
    # Three times the weights, which would live as long as a trainer and its module that know each other.
    module.zero_grad()
    for optimizer in trainer.optimizers:
        optimizer.state.clear()
    return trainer


def _check_finite(parameters: Iterable[torch.Tensor], optimization: Optimization, description: str) -> None:
    if not all(bool(parameter.isfinite().all()) for parameter in parameters):
        raise RuinedWeights(
            f"{description}: the weights are no longer finite numbers. Lower the learning rate "
            f"({optimization.learning_rate}) or the bound on the gradient ({optimization.gradient_clip})."
        )


def _check_loss(health: Mapping[str, float], optimization: Optimization, description: str) -> None:
    """Raises RuinedWeights where the loss on what was trained on has risen: what is then scored is the damage."""
    before, after = health.get("ce_before"), health.get("ce_after")
    if before is not None and after is not None and not after < before + LARGEST_RISE:
        raise RuinedWeights(
            f"{description}: it diverged. The loss on its own texts rose from {before:.3f} to {after:.3f} nats per "
            f"token. Lower the learning rate ({optimization.learning_rate})."
        )


def _gather_weights(trainer: lightning.Trainer, model: Any, folder: Path) -> None:
    """Put the whole weights, which the strategy may have sharded or wrapped, back into `model`."""
    path = folder / ".final.ckpt"
    trainer.save_checkpoint(path, weights_only=True)
    trainer.strategy.barrier("weights saved")
    state = torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
    model.load_state_dict({name.removeprefix("model."): value for name, value in state.items()})
    trainer.strategy.barrier("weights read")  # the first process removes the file soon


def _health(
    make_module: Callable[[], CausalLMModule],
    load: Callable[[list[list[int]]], StepLoader],
    steps: list[list[int]],
    run: TrainingRun,
    when: str,
) -> dict[str, float]:
    """Means over the tokens of some steps, as ce_before; none where health is not measured."""
    if not run.compute.measure_health:
        return {}
    module, loader = make_module(), load(steps)
    progress = StageProgress(f"health {when} {run.description}", "tokens", after_each(loader.sizes()))
    trainer = silent(run.compute.trainer, progress)
    (values,) = trainer.validate(module, loader, verbose=False)
    found = {name.removeprefix("health/"): float(value) for name, value in values.items()}
    return {f"{name}_{when}": value for name, value in found.items() if name != "orthogonality"}
