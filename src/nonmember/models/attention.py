"""The implementation of attention is ours to choose: a model's configuration is a stranger's, and can name code on the
hub."""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedConfig
from transformers.integrations import hub_kernels
from transformers.utils import is_flash_attn_2_available

# Of a configuration, what chooses code: implementations go back to the default, the rest is taken out.
IMPLEMENTATIONS = ("_attn_implementation", "_experts_implementation")
FURTHER = ("use_kernels", "kernel_config", "fusion_config")


def _no_kernel(repo_id: str, *_: Any, **__: Any) -> Any:
    raise ImportError(f"{repo_id} is code on the hub, which is never run here.")


# Where the package `kernels` is installed, transformers fetches code for many models unasked.
hub_kernels._kernels_enabled = False
hub_kernels.get_kernel = _no_kernel  # type: ignore[assignment]


def own_implementation(config: Any) -> Any:
    """The configuration, and those within it, without what they say of implementations."""
    for name in IMPLEMENTATIONS:
        setattr(config, name, None)
    for name in FURTHER:
        config.__dict__.pop(name, None)
    for part in vars(config).values():
        if isinstance(part, PreTrainedConfig):
            own_implementation(part)
    return config


def require_flash_attention(config: Any, auto: Any) -> None:
    """Raise ValueError where flash attention 2 is not here, or where transformers would take other code for it."""
    if not is_flash_attn_2_available():
        raise ValueError(
            "attention=flash_attention_2 needs a GPU and the package flash-attn, which are not both here. Use "
            "attention=auto, which needs neither and computes the same up to rounding."
        )
    model_class = auto._model_mapping.get(type(config), None)
    compatible = getattr(model_class, "_compatible_flash_implementations", None)
    if compatible and "flash_attention_2" not in compatible:
        raise ValueError(f"attention=flash_attention_2 does not fit a {model_class.__name__}. Use attention=auto.")
