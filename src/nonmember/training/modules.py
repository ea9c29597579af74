"""The Lightning modules that train: pretraining (from scratch or continued), PRISM's distilled reference, adapters.

Shapes: B sequences, T tokens, N scored tokens, D hidden.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torchmetrics import SumMetric

from nonmember.models.forward import Ids, SplitForward
from nonmember.training.adapters import RankSchedule
from nonmember.training.batches import StepLoader
from nonmember.training.losses import Terms, cross_entropy_terms, distillation_terms, weighted_sum
from nonmember.training.recipes import Chosen, Distillation, Optimization
from nonmember.training.sharding import ShardableModule

# A loss and its terms, each summed over the scored tokens of a batch (nats), and the number of these tokens.
Summed = tuple[Tensor, dict[str, Tensor], int]


def learning_rate_factor(step: int, num_steps: int, recipe: Optimization) -> float:
    """Share of the peak learning rate at a step counted from 0: linear warm-up, then the schedule down to its end."""
    num_warmup = recipe.warmup
    if isinstance(num_warmup, float):
        num_warmup = max(1, round(num_warmup * num_steps)) if num_warmup else 0
    if step < num_warmup:
        return (step + 1) / num_warmup
    progress = (step - num_warmup) / max(1, num_steps - num_warmup)
    match recipe.schedule:
        case "constant":
            return 1.0
        case "linear":
            remaining = 1 - progress
        case "cosine":
            remaining = 0.5 * (1 + math.cos(math.pi * progress))
    return recipe.final_fraction + (1 - recipe.final_fraction) * remaining


class TokenMeans:
    """Means over tokens of what a step or a pass loses, over its micro-batches and all processes."""

    def __init__(self) -> None:
        self._sums: dict[str, SumMetric] = {}

    def update(self, terms: Mapping[str, Tensor], num_tokens: int) -> None:
        """terms: summed over a micro-batch's scored tokens."""
        for name, value in terms.items():
            self._add(name, value.detach() / max(1, num_tokens) * num_tokens)  # to the digits of Lightning's own mean
            self._add(f"{name}, tokens", torch.tensor(float(num_tokens), device=value.device))

    def take(self, prefix: str) -> dict[str, Tensor]:
        """The means so far, by prefixed name; counting begins anew. Every process must call it."""
        sums = {name: metric.compute() for name, metric in self._sums.items()}
        for metric in self._sums.values():
            metric.reset()  # to make a new one takes ten times as long
        return {f"{prefix}{name}": value / sums[f"{name}, tokens"] for name, value in sums.items() if ", " not in name}

    def _add(self, name: str, value: Tensor) -> None:
        # Not MeanMetric, which has to be told to let NaN through, and then forgets its weights.
        if name not in self._sums:  # to make one takes longer than anything else here
            self._sums[name] = SumMetric(nan_strategy="disable").to(value.device)
        self._sums[name].update(value)


class CausalLMModule(ShardableModule):
    """Next-token training of the student's `split.model`; subclasses say what a batch loses.

    The number of steps comes from the loader, not from the trainer: asking Lightning for its estimate builds the
    loaders before a checkpoint is restored, and the place to resume from is then lost.
    """

    weights: Mapping[str, float] = {"ce": 1.0}  # of the terms of the loss, by name

    def __init__(
        self, split: SplitForward, loader: StepLoader, optimization: Optimization, *, logits_budget_bytes: int
    ):
        super().__init__()
        self.model: Any = split.model
        self._split, self.loader, self._optimization = split, loader, optimization
        self.budget = logits_budget_bytes
        self._means = TokenMeans()

    def scored(self, batch: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Mask [B,T-1] of positions whose next token is real and scored, and those next tokens [N]."""
        ids_BT, lengths_B = batch["input_ids"], batch["lengths"]
        mask = torch.arange(1, ids_BT.shape[1], device=ids_BT.device) < lengths_B[:, None]
        if "scored" in batch:
            mask = mask & batch["scored"][:, 1:]
        return mask, ids_BT[:, 1:][mask]

    def summed(self, batch: Mapping[str, Tensor], upstream: Tensor | None = None) -> Summed:
        """upstream: the gradient that the loss will be given."""
        mask, targets_N = self.scored(batch)
        features_ND = self._split.body(batch["input_ids"])[:, :-1][mask]
        return self._weighted_sum(cross_entropy_terms, (features_ND, targets_N), upstream)

    def training_step(self, batch: dict[str, Tensor], batch_idx: int) -> Tensor:
        # Lightning divides by the number of accumulated batches and averages over processes; both are undone here,
        # so that the step's gradient is that of the mean over its tokens.
        accumulate, step_tokens = self.loader.accumulate, batch["step_tokens"]
        undone = accumulate * self.loader.world_size
        upstream = torch.ones((), dtype=torch.float32, device=step_tokens.device) / accumulate / step_tokens * undone
        loss, terms, num_tokens = self.summed(batch, upstream)
        # Of a small model, logging is a tenth of a step: only of those steps that Lightning hands on.
        if (self.trainer.global_step + 1) % self.trainer.log_every_n_steps == 0:  # type: ignore[attr-defined]
            self._means.update(terms | {"loss": loss}, num_tokens)
            if (batch_idx + 1) % self.loader.accumulate == 0 or self.trainer.is_last_batch:
                self.log_dict(self._means.take("train/"), prog_bar=True)
                self.log("train/learning_rate", self.optimizers().param_groups[0]["lr"])  # type: ignore[union-attr]
        return loss * undone / step_tokens

    def validation_step(self, batch: dict[str, Tensor], batch_idx: int) -> None:
        _, terms, num_tokens = self.summed(batch)
        self._means.update(terms, num_tokens)

    def on_validation_epoch_end(self) -> None:
        self.log_dict(self._means.take("health/"), sync_dist=True)  # they are alike, and Lightning warns without

    def configure_optimizers(self) -> Any:
        recipe = self._optimization
        parameters = [parameter for parameter in self.parameters() if parameter.requires_grad]
        optimizer: torch.optim.Optimizer
        usual: dict[str, Any] = {"lr": recipe.learning_rate, "weight_decay": recipe.weight_decay}
        if isinstance(recipe.optimizer, Chosen):
            optimizer = recipe.optimizer.make(parameters, num_steps=self.loader.num_steps, lr=recipe.learning_rate)
        elif recipe.optimizer == "sgd":
            optimizer = torch.optim.SGD(parameters, **usual)
        else:
            optimizer = torch.optim.AdamW(parameters, betas=recipe.betas, eps=recipe.epsilon, **usual)
        if isinstance(recipe.schedule, Chosen):
            schedule = recipe.schedule.make(optimizer, num_steps=self.loader.num_steps)
        else:
            schedule = torch.optim.lr_scheduler.LambdaLR(
                optimizer, lambda step: learning_rate_factor(step, self.loader.num_steps, recipe)
            )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def _weighted_sum(self, terms: Terms, rows: tuple[Tensor, ...], upstream: Tensor | None) -> Summed:
        weights = list(self.weights.values())
        loss, sums_K = weighted_sum(terms, self._split.head, rows, weights, budget_bytes=self.budget, upstream=upstream)
        return loss, dict(zip(self.weights, sums_K, strict=True)), len(rows[0])


class DistilledReferenceModule(CausalLMModule):
    """PRISM's distilled reference: L = (1 - lambda) CE + lambda tau^2 KL(teacher || student) (PRISM, section 3).

    The teacher is held outside the module tree: it is not optimised and never in a checkpoint.
    """

    def __init__(
        self,
        split: SplitForward,
        teacher: SplitForward,
        loader: StepLoader,
        recipe: Distillation,
        *,
        logits_budget_bytes: int,
        shared_ids: tuple[Ids, Ids],
    ):
        super().__init__(split, loader, recipe.optimization, logits_budget_bytes=logits_budget_bytes)
        self._outside = (teacher, shared_ids)
        self._recipe = recipe
        self.weights = {"ce": 1 - recipe.lambda_, "kl": recipe.lambda_ * recipe.tau**2}

    def setup(self, stage: str) -> None:
        teacher, shared_ids = self._outside
        model = teacher.model.eval().requires_grad_(False)
        if not getattr(model, "hf_device_map", None):
            model.to(self.device)
        ours, theirs = (ids.to(self.device) if isinstance(ids, Tensor) else ids for ids in shared_ids)
        self._outside = (teacher, (ours, theirs))

    def summed(self, batch: Mapping[str, Tensor], upstream: Tensor | None = None) -> Summed:
        teacher, shared_ids = self._outside
        mask, targets_N = self.scored(batch)
        student_ND = self._split.body(batch["input_ids"])[:, :-1][mask]
        with torch.no_grad():
            teacher_ND = teacher.body(batch["input_ids"])[:, :-1][mask]
        # Health is read at temperature 1, in plain nats; training uses the recipe's.
        tau = self._recipe.tau if self.training else 1.0
        terms = partial(distillation_terms, teacher_head=teacher.head, tau=tau, shared_ids=shared_ids)
        return self._weighted_sum(terms, (student_ND, teacher_ND, targets_N), upstream)


class AdapterTuningModule(CausalLMModule):
    """Only the adapter is optimised, and only the adapter is in the checkpoint.

    rank_schedule: for AdaLoRA, whose ranks are cut after each step.
    """

    def __init__(self, *of_module: Any, rank_schedule: RankSchedule | None, **named: Any):
        super().__init__(*of_module, **named)
        self.strict_loading = False  # the checkpoint lacks the weights of the base
        self._tuned = {name for name, parameter in self.named_parameters() if parameter.requires_grad}
        self._rank_schedule = rank_schedule

    def state_dict(self, *arguments: Any, **named: Any) -> Any:
        whole = super().state_dict(*arguments, **named)
        return {name: value for name, value in whole.items() if name in self._tuned}

    def summed(self, batch: Mapping[str, Tensor], upstream: Tensor | None = None) -> Summed:
        loss, terms, num_tokens = super().summed(batch, upstream)
        if self._rank_schedule is not None:
            # By token, as every term is: the micro-batches of a step then add it up to once.
            terms["orthogonality"] = num_tokens * self._rank_schedule.deviation_from_orthogonality()
            loss = loss + self._rank_schedule.orthogonality * terms["orthogonality"]
        return loss, terms, num_tokens

    def optimizer_step(self, *arguments: Any, **named: Any) -> None:
        super().optimizer_step(*arguments, **named)
        if self._rank_schedule is not None:
            # Before any callback saves a resume point; the trainer counts this step only later.
            self._rank_schedule.after_step(self.trainer.global_step + 1)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        if self._rank_schedule is not None:
            checkpoint["rank_schedule"] = self._rank_schedule.state_dict()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        if self._rank_schedule is not None:
            self._rank_schedule.load_state_dict(checkpoint["rank_schedule"])
