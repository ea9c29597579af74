"""Adapters: a few trained weights beside a frozen base model that is in memory once.

A model with an adapter is a second tree of modules over the tensors of the first. So the model itself and any number of
adapters on it can be used side by side, and none has to be switched off for another.
"""

from __future__ import annotations

import copy
import logging
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from peft import AdaLoraConfig, IA3Config, LoraConfig, PeftModel, TaskType, get_peft_model
from peft.tuners.tuners_utils import BaseTunerLayer
from peft.utils import (
    TRANSFORMERS_MODELS_TO_ADALORA_TARGET_MODULES_MAPPING,
    TRANSFORMERS_MODELS_TO_IA3_TARGET_MODULES_MAPPING,
    TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING,
    get_peft_model_state_dict,
)
from torch import Tensor, nn

from nonmember.training.recipes import AdaLora, Ia3, Lora

_log = logging.getLogger(__name__)

# What peft says of AdaLoRA's own ranks as if they were LoRA's, and of a name that transformers has changed.
_NOISE = ("Note that `r` is not used in AdaLora", "The following rank_pattern keys", "`is_gradient_checkpointing`")

# What is adapted in model types that peft's tables lack, by the first form whose modules a model has: query and value,
# or what holds both in one; for IA3 key and value, and what ends the inner layer.
_QUERY_AND_VALUE = (("q_proj", "v_proj"), ("query_key_value",), ("qkv_proj",), ("query", "value"), ("q_lin", "v_lin"))
_KEY_AND_VALUE = (("k_proj", "v_proj"), ("query_key_value",), ("qkv_proj",), ("key", "value"), ("k_lin", "v_lin"))
_INNER = ("down_proj", "fc2", "dense_4h_to_h", "lin2")
_KNOWN: Any = {
    "lora": TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING,
    "adalora": TRANSFORMERS_MODELS_TO_ADALORA_TARGET_MODULES_MAPPING,
    "ia3": TRANSFORMERS_MODELS_TO_IA3_TARGET_MODULES_MAPPING,
}
_OF_TEXT = re.compile(r"^(?!.*(vision|visual|image|audio|speech))")  # by the whole name of a module

_DROPOUT = "lora_dropout"  # part of the name of these modules in peft, LoRA's and AdaLoRA's


def share_weights(model: Any) -> Any:
    """A second tree of modules over the very tensors of `model`."""
    tensors = [*model.parameters(), *model.buffers()]
    for module in model.modules():  # quantised layers keep some of theirs in plain attributes
        holders = [module, getattr(module, "state", None), *module._parameters.values()]
        tensors += [
            value for item in holders for value in getattr(item, "__dict__", {}).values() if isinstance(value, Tensor)
        ]
    return copy.deepcopy(model, {id(tensor): tensor for tensor in tensors})


def add_adapter(model: Any, adapter: Lora | AdaLora | Ia3, *, seed: int, num_steps: int) -> PeftModel:
    """The model with a fresh adapter, which changes nothing yet; random weights are drawn from `seed`.

    num_steps: of the training to come, over which AdaLoRA cuts its ranks.
    """
    if any(isinstance(module, BaseTunerLayer) for module in model.modules()):
        raise ValueError(
            "It has an adapter beside its weights already, which a second one would replace. Merge it into them "
            "(quantization=none does), or tune its base."
        )
    usual = _usual(model, adapter)
    if usual and not _known(model, adapter):
        _log.info(
            "peft has no usual modules of a %s model for %s: %s are adapted (adapter.target_modules names others).",
            model.config.model_type,
            adapter.kind,
            ", ".join(usual),
        )
    try:
        return _wrapped(lambda base: get_peft_model(base, _config(adapter, num_steps, usual)), model, seed)
    except ValueError as error:  # peft's own sentences speak of its classes
        named = adapter.target_modules
        if named is None:
            what = f"peft knows no usual modules of a {model.config.model_type} model for {adapter.kind}"
        else:
            names = named if isinstance(named, str) else ", ".join(named)
            what = f"The model has no modules called {names} that {adapter.kind} can adapt"
        known = ", ".join(names_of_linear_modules(model))
        advice = f"name some of {known} in adapter.target_modules" if known else "it has no linear layers to name"
        raise ValueError(f"{what}; {advice}.") from error


def load_adapter(model: Any, folder: Path) -> PeftModel:
    """The model with the adapter that `save_adapter` wrote, in evaluation mode."""
    return _wrapped(lambda base: PeftModel.from_pretrained(base, str(folder)), model, seed=0).eval()


def save_adapter(model: PeftModel, folder: Path) -> None:
    """The adapter alone, as peft reads it."""
    for config in model.peft_config.values():
        config.base_model_name_or_path = None  # a folder of the store, which is no name
    base: Any = model.get_base_model()
    name, base.__dict__["name_or_path"] = base.__dict__.get("name_or_path"), ""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*invalid shape")  # a layer that AdaLoRA left without any rank
            model.save_pretrained(str(folder), save_embedding_layers=False)
    finally:
        base.__dict__["name_or_path"] = name
    (folder / "README.md").unlink(missing_ok=True)  # an empty model card


def merge_adapter(model: PeftModel) -> Any:
    """The adapter added to the weights of its base, which is changed by it: give a model that nobody else reads."""
    return model.merge_and_unload(safe_merge=True).requires_grad_(True).eval()


def adapter_weights(model: PeftModel) -> dict[str, Tensor]:
    return get_peft_model_state_dict(model, save_embedding_layers=False)


@contextmanager
def dropout_of_adapter(model: Any) -> Iterator[None]:
    """The adapter's dropout as in training, for a while; nothing for a model without one."""
    modules = [module for name, module in model.named_modules() if isinstance(module, nn.Dropout) and _DROPOUT in name]
    flags = [module.training for module in modules]
    try:
        for module in modules:
            module.train()
        yield
    finally:
        for module, training in zip(modules, flags, strict=True):
            module.training = training


def names_of_linear_modules(model: Any) -> list[str]:
    """Last parts of the names, without the output matrix."""
    output = model.get_output_embeddings()
    found = (name for name, module in model.named_modules() if isinstance(module, nn.Linear) and module is not output)
    return list(dict.fromkeys(name.rpartition(".")[2] for name in found))


def _wrapped(wrap: Any, model: Any, seed: int) -> Any:
    shared = share_weights(model)
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        for noise in _NOISE:
            warnings.filterwarnings("ignore", message=noise)
        torch.manual_seed(seed)
        return wrap(shared)


def _known(model: Any, adapter: Lora | AdaLora | Ia3) -> list[str] | str | None:
    """What peft's table says of the model type."""
    tables: dict[str, dict[str, list[str] | str]] = _KNOWN
    return tables[adapter.kind].get(model.config.model_type)


def _usual(model: Any, adapter: Lora | AdaLora | Ia3) -> list[str] | None:
    """What is adapted where the recipe names nothing: what peft's table says, else the first of the usual forms that is
    there. None where peft chooses or nothing is known."""
    if adapter.target_modules is not None:
        return None
    if known := _known(model, adapter):  # peft drops its own choice for LoRA where experts are in one tensor (Mixtral)
        return known if isinstance(known, list) and not isinstance(adapter, Ia3) else None
    linear = {
        name.rpartition(".")[2]
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and _OF_TEXT.match(name)
    }
    forms = _KEY_AND_VALUE if isinstance(adapter, Ia3) else _QUERY_AND_VALUE
    found = next((list(form) for form in forms if linear.issuperset(form)), None)
    if found and isinstance(adapter, Ia3):
        found += [name for name in _INNER if name in linear][:1]
    return found


def _config(adapter: Lora | AdaLora | Ia3, num_steps: int, usual: list[str] | None) -> Any:
    named = adapter.target_modules
    targets = named if isinstance(named, str) else usual if named is None else list(named)
    common: dict[str, Any] = {"task_type": TaskType.CAUSAL_LM, "target_modules": targets}
    match adapter:
        case Lora():
            common |= {"lora_alpha": adapter.alpha, "lora_dropout": adapter.dropout}
            return LoraConfig(r=adapter.rank, **common)
        case AdaLora():
            before, after = round(adapter.before * num_steps), round(adapter.after * num_steps)
            common |= {"lora_alpha": adapter.alpha, "lora_dropout": adapter.dropout}
            return AdaLoraConfig(
                init_r=adapter.initial_rank,
                target_r=adapter.rank,
                tinit=before,
                tfinal=after,
                deltaT=adapter.interval,
                beta1=adapter.beta,
                beta2=adapter.beta,
                orth_reg_weight=adapter.orthogonality,
                total_step=num_steps,
                **common,
            )
        case Ia3():
            inner = adapter.feedforward_modules
            feedforward = (usual and [name for name in usual if name in _INNER]) if inner is None else list(inner)
            return IA3Config(feedforward_modules=feedforward, **common)


class RankSchedule:
    """What AdaLoRA does between the steps: measure importance, cut ranks. peft would do it in its own training loop."""

    _MOVING = ("ipt", "exp_avg_ipt", "exp_avg_unc")

    def __init__(self, model: PeftModel, adapter: AdaLora):
        self._tuner: Any = model.base_model
        self.orthogonality = adapter.orthogonality
        self._name = self._tuner.trainable_adapter_name
        self._restored: Mapping[str, Any] | None = None

    @staticmethod
    def check(adapter: AdaLora, num_steps: int) -> None:
        """Raises ValueError where there are too few steps to cut anything in."""
        left = num_steps - round(adapter.before * num_steps) - round(adapter.after * num_steps)
        if left < 2:
            raise ValueError(
                f"AdaLoRA cuts its ranks between the first and the last of its steps, and {num_steps} steps leave too "
                "few for that. Give more documents or epochs, smaller batches, or use LoRA."
            )

    def deviation_from_orthogonality(self) -> Tensor:
        """Mean over the factors of the Frobenius norm of their Gram matrix minus 1, as in peft's forward pass."""
        norms = []
        for name, factor in self._tuner.model.named_parameters():
            if f"lora_A.{self._name}" in name or f"lora_B.{self._name}" in name:
                gram = factor @ factor.T if "lora_A" in name else factor.T @ factor
                norms.append(torch.linalg.matrix_norm(gram - torch.eye(len(gram), device=gram.device)))
        return torch.stack(norms).mean()

    def after_step(self, step: int) -> None:
        """step: counted from 1; the gradients of this step are still there."""
        if self._restored is not None:
            allocator, self._restored = self._restored, None
            devices = {name: parameter.device for name, parameter in self._tuner.model.named_parameters()}
            for moving in self._MOVING:
                values = {name: value.to(devices[name]) for name, value in allocator[moving].items()}
                setattr(self._tuner.rankallocator, moving, values)
        self._tuner.update_and_allocate(step)

    def state_dict(self) -> dict[str, Any]:
        if self._restored is not None:
            return dict(self._restored)
        state = {moving: dict(getattr(self._tuner.rankallocator, moving)) for moving in self._MOVING}
        return state | {"rank_pattern": self._tuner.peft_config[self._name].rank_pattern}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._tuner.peft_config[self._name].rank_pattern = state["rank_pattern"]
        self._restored = state  # tensors are put in place when it is known on which device
