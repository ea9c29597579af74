"""A model from a folder or the hub."""

from __future__ import annotations

from dataclasses import dataclass
from os.path import expanduser
from typing import TYPE_CHECKING, Any

from nonmember.artifacts import Builder
from nonmember.artifacts.settings import settings_of
from nonmember.models.base import ModelSpec
from nonmember.naming import label_of_path

if TYPE_CHECKING:
    from nonmember.models.loading import LoadedModel

DTYPES = ("float32", "bfloat16", "float16", "auto")
QUANTIZATIONS = ("none", "8bit", "4bit")


@dataclass(frozen=True)
class Pretrained(ModelSpec):
    """A causal language model from a folder or, where there is no such folder, from the Hugging Face hub.

    revision: commit, tag or branch on the hub; the commit it stands for goes into the key.
    dtype: of `DTYPES`; "auto" is that of the file.   device_map: passed on to transformers (needs accelerate).
    quantization: of `QUANTIZATIONS`, by bitsandbytes on a GPU; the dtype is then that of the arithmetic.
    """

    path: str
    revision: str | None = None
    dtype: str = "float32"
    device_map: str | None = None
    trust_remote_code: bool = False
    quantization: str = "none"

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", expanduser(self.path))  # shells leave the ~ of key=~/folder
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype must be one of {', '.join(DTYPES)}; got {self.dtype!r}.")
        if self.quantization not in QUANTIZATIONS:
            raise ValueError(f"quantization must be one of {', '.join(QUANTIZATIONS)}; got {self.quantization!r}.")

    @property
    def readable(self) -> str:
        return label_of_path(self.path)

    def recipe(self) -> dict[str, Any]:
        return settings_of(self)

    def key(self, builder: Builder) -> dict[str, Any]:
        from nonmember.models.loading import pretrained_identity

        return {"pretrained": pretrained_identity(self)}

    def weights(self, builder: Builder) -> LoadedModel:
        from nonmember.models.loading import load_pretrained

        return load_pretrained(self)

    def load_tokenizer(self, builder: Builder) -> Any:
        from nonmember.models.loading import load_tokenizer

        return load_tokenizer(self)

    def require_changeable(self) -> None:
        if self.quantization != "none":
            raise ValueError(
                f"{self.readable} is loaded in {self.quantization}: an adapter can be tuned beside such weights, but "
                "they cannot be trained or merged with one. Use quantization=none."
            )
