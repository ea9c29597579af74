"""A model from a folder or the hub."""

from __future__ import annotations

from dataclasses import dataclass
from os.path import expanduser
from typing import TYPE_CHECKING, Any

from nonmember.artifacts import Builder
from nonmember.artifacts.settings import settings_of
from nonmember.artifacts.store import key_hash
from nonmember.checks import require_choice, require_flag, require_text
from nonmember.models.base import BOS, ModelSpec
from nonmember.models.folders import check_folder, has_config
from nonmember.models.places import require_model
from nonmember.runtime.naming import label_of_path

if TYPE_CHECKING:
    from nonmember.models.kinds.gguf import Gguf
    from nonmember.models.loading import LoadedModel

DTYPES = ("float32", "bfloat16", "float16", "auto")
QUANTIZATIONS = ("none", "8bit", "4bit")
ATTENTIONS = ("auto", "eager", "sdpa", "flash_attention_2")


@dataclass(frozen=True)
class Pretrained(ModelSpec):
    """A causal language model from a folder or, where there is no such folder, from the Hugging Face hub; or from a
    GGUF file, which is dequantised (`kinds.gguf`).

    revision: commit, tag or branch on the hub; the commit it stands for goes into the key.
    dtype: of `DTYPES`; "auto" is that of the file.   device_map: passed on to transformers (needs accelerate).
    quantization: of `QUANTIZATIONS`, by bitsandbytes on a GPU; the dtype is then that of the arithmetic.
    attention: of `ATTENTIONS`, the implementation; "auto" is sdpa where the architecture has it. What the model's own
        configuration says of it is not read.
    bos: of `base.BOS`: whether a beginning-of-text token is read before each text.
    """

    path: str
    revision: str | None = None
    dtype: str = "float32"
    device_map: str | None = None
    trust_remote_code: bool = False
    quantization: str = "none"
    attention: str = "auto"
    bos: str = "auto"

    def __post_init__(self) -> None:
        require_text(self.path, "path of a model")
        require_text(self.revision, "revision of a model", or_null=True)
        require_choice(self.dtype, DTYPES, "dtype")
        require_choice(self.quantization, QUANTIZATIONS, "quantization")
        require_choice(self.attention, ATTENTIONS, "attention")
        require_flag(self.trust_remote_code, "trust_remote_code")
        require_choice(self.bos, BOS, "tokens.bos")
        object.__setattr__(self, "path", expanduser(self.path))  # shells leave the ~ of key=~/folder

    @property
    def readable(self) -> str:
        return label_of_path(self.path)

    def recipe(self) -> dict[str, Any]:
        return settings_of(self)

    @property
    def gguf(self) -> Gguf | None:
        """The spec that reads it, where it is a GGUF file."""
        from nonmember.models.kinds.gguf import SUFFIX, Gguf

        if not self.path.endswith(SUFFIX):
            return None
        return Gguf(self.path, self.dtype, self.revision, self.attention, self.bos)

    def look(self) -> None:
        if self.gguf:
            self.gguf.look()
        else:
            require_model(self.path)

    def key(self, builder: Builder) -> dict[str, Any]:
        if self.gguf:
            return self.gguf.key(builder)
        if has_config(self.path):  # else it may be a tokenizer alone
            check_folder(self.path)
        from nonmember.models.loading import pretrained_identity

        return {"pretrained": pretrained_identity(self)}

    def source(self, builder: Builder) -> str:
        key = self.key(builder)
        commit = key.get("pretrained", {}).get("commit")
        return f"{self.path}@{commit}" if commit else f"{self.readable}@{key_hash(key)}"

    def build(self, builder: Builder) -> LoadedModel:
        """An adapter stays beside its base."""
        return self._load(builder, merged=False)

    def weights(self, builder: Builder) -> LoadedModel:
        return self._load(builder, merged=self.quantization == "none")

    def _load(self, builder: Builder, *, merged: bool) -> LoadedModel:
        if self.gguf:
            return self.gguf.weights(builder)
        from nonmember.models.loading import load_pretrained
        from nonmember.models.probing import require_probed

        return require_probed(builder, self, load_pretrained(self, merged=merged))

    def load_tokenizer(self, builder: Builder) -> Any:
        if self.gguf:
            return self.gguf.load_tokenizer(builder)
        from nonmember.models.loading import load_tokenizer

        return load_tokenizer(self)

    def require_changeable(self) -> None:
        if self.quantization != "none":
            raise ValueError(
                f"{self.readable} is loaded in {self.quantization}: an adapter can be tuned beside such weights, but "
                "they cannot be trained or merged with one. Use quantization=none."
            )
