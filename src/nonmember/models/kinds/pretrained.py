"""A model from a folder or the hub."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from os.path import expanduser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from nonmember.artifacts import Builder, Spec
from nonmember.artifacts.store import Entry, key_hash
from nonmember.checks import OneOf, require_distinct, require_text
from nonmember.corpora.specs import digest_file
from nonmember.models.base import ModelSpec, require_bos
from nonmember.models.folders import check_folder, has_config, require_model
from nonmember.models.hub import base_of, load_tokenizer, pretrained_identity
from nonmember.runtime.hub import why_out_of_reach
from nonmember.runtime.naming import label_of_path, path_of

if TYPE_CHECKING:
    from nonmember.models.loading import LoadedModel

DTYPES = ("float32", "bfloat16", "float16", "auto")
QUANTIZATIONS = ("none", "8bit", "4bit")
ATTENTIONS = ("auto", "eager", "sdpa", "flash_attention_2")
SUFFIX = ".gguf"
ON_THE_HUB = re.compile(r"[\w][\w.-]*/[\w][\w.-]*/[^/].*\.gguf")
FORMAT = 1  # raise it when a change of code moves the weights that a file is read as


def resolved_dtype(dtype: str, builder: Builder) -> str:
    """What "auto" stands for: bfloat16 where the processor at work computes with it, else float32."""
    if dtype != "auto":
        return dtype
    return "bfloat16" if builder.compute.has_bfloat16 else "float32"


def _pairs(value: Any, name: str, *, or_null: bool = True) -> tuple[tuple[str, Any], ...] | None:
    return tuple(sorted(dict(value).items())) or None


@dataclass(frozen=True)
class Pretrained(ModelSpec):
    """A causal language model from a folder or, where there is no such folder, from the Hugging Face hub; or from a
    GGUF file, which is dequantised (`Gguf`).

    revision: commit, tag or branch on the hub; the commit it stands for goes into the key.
    dtype: of `DTYPES`; "auto": see `resolved_dtype`.   device_map: passed on to transformers (needs accelerate).
    quantization: of `QUANTIZATIONS`, by bitsandbytes on a GPU; the dtype is then that of the arithmetic.
    attention: of `ATTENTIONS`, the implementation; "auto" is sdpa where the architecture has it. What the model's own
        configuration says of it is not read.
    bos: of `base.BOS`: whether a beginning-of-text token is read before each text.
    base: what an adapter is put on, in place of what its file names; null: that.
    chat_template_kwargs: what its chat template is given beside the turns, as {enable_thinking: false}.
    """

    path: Annotated[str, require_text]
    revision: Annotated[str | None, require_text] = None
    dtype: Annotated[str, OneOf(DTYPES)] = "float32"
    device_map: str | None = None
    trust_remote_code: bool = False
    quantization: Annotated[str, OneOf(QUANTIZATIONS)] = "none"
    attention: Annotated[str, OneOf(ATTENTIONS)] = "auto"
    bos: Annotated[str, require_bos] = "auto"
    base: Annotated[str | None, require_text] = None
    chat_template_kwargs: Annotated[Mapping[str, Any] | tuple[tuple[str, Any], ...] | None, _pairs] = None

    fields_called = "{field} of a model"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "path", expanduser(self.path))  # shells leave the ~ of key=~/folder

    @property
    def readable(self) -> str:
        return label_of_path(self.path)

    def recipe(self) -> dict[str, Any]:
        optional = ("base", "chat_template_kwargs")
        return {name: value for name, value in asdict(self).items() if name not in optional or value is not None}

    @property
    def adapts(self) -> bool:
        return not self.gguf and base_of(self) is not None

    @property
    def gguf(self) -> Gguf | None:
        """The spec that reads it, where it is a GGUF file."""
        if not self.path.endswith(SUFFIX):
            return None
        return Gguf(self.path, self.dtype, self.revision, self.attention, self.bos)

    def validate(self) -> None:
        if self.gguf:
            self.gguf.validate()
        else:
            require_model(self.path)

    def key(self, builder: Builder) -> dict[str, Any]:
        if self.gguf:
            return self.gguf.key(builder)
        if has_config(self.path):  # else it may be a tokenizer alone
            check_folder(self.path)
        return {"pretrained": pretrained_identity(self.resolved(builder))}

    def resolved(self, builder: Builder) -> Pretrained:
        """With the dtype that it is read in."""
        return replace(self, dtype=resolved_dtype(self.dtype, builder))

    def source(self, builder: Builder) -> str:
        key = self.key(builder)
        commit = key.get("pretrained", {}).get("commit")
        return f"{self.path}@{commit}" if commit else f"{self.readable}@{key_hash(key)}"

    def build(self, builder: Builder) -> LoadedModel:
        """An adapter stays beside its base."""
        return self._load(builder, merged=False)

    def weights(self, builder: Builder) -> LoadedModel:
        return self._load(builder, merged=self.quantization == "none")

    def num_parameters(self, builder: Builder) -> int:
        if self.gguf:
            return self.gguf.num_parameters(builder)
        from nonmember.models.probing import recorded

        # An adapter is loaded beside its base or merged with it, of which not both have been counted.
        number: int | None = None if self.adapts else recorded(builder, self).get("num_parameters")
        return builder.get(self).num_parameters if number is None else number

    def _load(self, builder: Builder, *, merged: bool) -> LoadedModel:
        if self.gguf:
            return self.gguf.weights(builder)
        from nonmember.models.loading import load_pretrained
        from nonmember.models.probing import require_probed

        return require_probed(builder, self, load_pretrained(self.resolved(builder), merged=merged))

    def load_tokenizer(self, builder: Builder) -> Any:
        if self.gguf:
            return self.gguf.load_tokenizer(builder)
        return load_tokenizer(self)

    def require_changeable(self) -> None:
        if self.quantization != "none":
            raise ValueError(
                f"{self.readable} is loaded in {self.quantization}: an adapter can be tuned beside such weights, but "
                "they cannot be trained or merged with one. Use quantization=none."
            )


@dataclass(frozen=True)
class Dequantized(Spec[Path]):
    """A folder with the weights (float32, safetensors) and the tokenizer of a GGUF file. Known by the file's hash.

    pieces: the file, or what it was cut into, in their order.
    """

    pieces: tuple[Path, ...]
    name: str

    kind = "dequantized"

    @property
    def readable(self) -> str:
        return self.name

    def key(self, builder: Builder) -> dict[str, Any]:
        return {"format": FORMAT, "gguf": digest_file(*self.pieces)}

    def make(self, builder: Builder, folder: Path) -> None:
        from nonmember.models.loading import dequantize

        dequantize(self._joined(folder), folder)

    def _joined(self, folder: Path) -> Path:
        """The whole file: of several pieces a hidden one in `folder`, which the store removes in the end."""
        if len(self.pieces) == 1:
            return self.pieces[0]
        whole = folder / ".joined" / f"{self.name}{SUFFIX}"
        whole.parent.mkdir()
        with whole.open("wb") as file:
            for piece in self.pieces:
                with piece.open("rb") as part:
                    shutil.copyfileobj(part, file)
        return whole

    def load(self, builder: Builder, entry: Entry) -> Path:
        return entry.path


def named(paths: str | Sequence[str], **settings: Any) -> tuple[Pretrained, ...]:
    """Several of them, which are alike but for their paths."""
    paths = [paths] if isinstance(paths, str) else list(paths)
    require_distinct(paths, "paths of models", "different folders or names on the hub")
    return tuple(Pretrained(path, **settings) for path in paths)


@dataclass(frozen=True)
class Gguf(ModelSpec):
    """A causal language model from a GGUF file.

    path: the file, or OWNER/NAME/FILE.gguf of the Hugging Face hub.   revision: commit, tag or branch there.
    dtype, attention, bos: with which the dequantised weights are loaded and read, as for `kinds.pretrained.Pretrained`.
    Its scores are those of the quantised weights, which results name as the file does (`Q4_1`, say).
    """

    path: Annotated[str, require_text]
    dtype: Annotated[str, OneOf(DTYPES)] = "float32"
    revision: str | None = None
    attention: Annotated[str, OneOf(ATTENTIONS)] = "auto"
    bos: Annotated[str, require_bos] = "auto"

    fields_called = "{field} of a GGUF file"

    @property
    def files(self) -> tuple[Path, ...]:
        """The file on this machine, fetched from the hub where it is not; or the pieces of it, in their order.

        Raises:
            ValueError: there is no such file.
        """
        file = path_of(self.path)
        if file.is_file():
            return (file,)
        if ON_THE_HUB.fullmatch(self.path):
            from huggingface_hub import hf_hub_download

            owner, name, inside = self.path.split("/", 2)
            try:
                if reason := why_out_of_reach("models", f"{owner}/{name}"):
                    raise OSError(reason)
                return (Path(hf_hub_download(f"{owner}/{name}", inside, revision=self.revision)),)
            except (OSError, ValueError) as error:
                raise ValueError(
                    f"{self.path!r} is not a file on this machine, and the Hugging Face hub gave nothing: {error}. "
                    "Name a file that exists, or one of the hub where there is a network."
                ) from error
        raise ValueError(
            f"{self.path!r} is not a file on this machine; expected a model in the GGUF format. Name one that exists."
        )

    @property
    def readable(self) -> str:
        return Path(self.path).stem

    def source(self, builder: Builder) -> str:
        return f"{self.readable}@{key_hash(self.key(builder))}"

    def validate(self) -> None:
        if importlib.util.find_spec("gguf") is None:
            raise ValueError(
                f"{self.readable} is a GGUF file, which needs the package gguf. Install it, as with "
                "pip install 'nonmember[real]' or make setup EXTRAS=real."
            )
        _ = self.files

    def recipe(self) -> dict[str, Any]:
        return {"gguf": self.readable, **self._read_as(self.dtype)}  # what the file holds is known by its key

    def key(self, builder: Builder) -> dict[str, Any]:
        return {**self._dequantized.key(builder), **self._read_as(resolved_dtype(self.dtype, builder))}

    def _read_as(self, dtype: str) -> dict[str, str]:
        return {"dtype": dtype, "attention": self.attention, "bos": self.bos}

    @property
    def _dequantized(self) -> Dequantized:
        return Dequantized(self.files, self.readable)

    def _as_folder(self, builder: Builder) -> Pretrained:
        self.validate()
        folder = str(builder.get(self._dequantized))
        return Pretrained(folder, dtype=self.dtype, attention=self.attention, bos=self.bos)

    def weights(self, builder: Builder) -> LoadedModel:
        return self._as_folder(builder).weights(builder)

    def num_parameters(self, builder: Builder) -> int:
        return self._as_folder(builder).num_parameters(builder)

    def load_tokenizer(self, builder: Builder) -> Any:
        return self._as_folder(builder).load_tokenizer(builder)


@dataclass(frozen=True)
class PackagedGguf(Gguf):
    """A GGUF file inside installed Python packages, which are not imported.

    path: what the file is called.   pieces: package -> path of its piece of the file within it, in their order; of a
    file in one piece, one.   sha256: of the whole file; another is refused.
    install: what to do where a package is missing, for the message.
    """

    pieces: Mapping[str, str] = field(default_factory=dict)
    sha256: str = ""
    install: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.pieces:
            raise ValueError("pieces of a packaged model must name a package and the file in it; got none.")
        if not all(Path(piece).name.startswith(self.path) for piece in self.pieces.values()):
            raise ValueError(
                f"{self.path} is not the file in the installed {self._packages}, which alone would be read. For a "
                "model by its path take model@target=pretrained."
            )

    @property
    def files(self) -> tuple[Path, ...]:
        files = tuple(self._piece(package, path) for package, path in self.pieces.items())
        if self.sha256 and digest_file(*files) != self.sha256:
            raise ValueError(
                f"{self.path}, from the installed {self._packages}, is not the file that was published (sha256 "
                f"{self.sha256[:12]}...). {self.install}"
            )
        return files

    def _piece(self, package: str, path: str) -> Path:
        try:
            installed = importlib.metadata.distribution(package)
        except importlib.metadata.PackageNotFoundError as error:
            raise ValueError(
                f"{self.readable} is in the Python {self._packages}, of which {package} is not installed here. "
                f"{self.install}"
            ) from error
        file = Path(str(installed.locate_file(path)))
        if not file.is_file():
            raise ValueError(
                f"The installed package {package} {installed.version} must hold {path}, and does not. {self.install}"
            )
        return file

    @property
    def _packages(self) -> str:
        return f"package{'s' if len(self.pieces) > 1 else ''} {', '.join(self.pieces)}"


def load_folder(folder: Path, *, dtype: str = "float32") -> LoadedModel:
    """The model and tokenizer in a folder of the store."""
    from nonmember.models.loading import load_pretrained

    return load_pretrained(Pretrained(str(folder), dtype=dtype))
