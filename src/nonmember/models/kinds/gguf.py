"""A quantised model in a GGUF file, as llama.cpp uses: dequantised once, then a model like any other."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nonmember.artifacts import Builder, Spec
from nonmember.artifacts.store import Entry
from nonmember.checks import require_choice, require_text
from nonmember.corpora.specs import digest_file
from nonmember.models.base import BOS, ModelSpec
from nonmember.models.kinds.pretrained import ATTENTIONS, DTYPES, Pretrained

if TYPE_CHECKING:
    from nonmember.models.loading import LoadedModel

SUFFIX = ".gguf"
ON_THE_HUB = re.compile(r"[\w][\w.-]*/[\w][\w.-]*/[^/].*\.gguf")
FORMAT = 1  # raise it when a change of code moves the weights that a file is read as


@dataclass(frozen=True)
class Dequantized(Spec[Path]):
    """A folder with the weights (float32, safetensors) and the tokenizer of a GGUF file. Known by the file's hash."""

    file: Path

    kind = "dequantized"

    @property
    def readable(self) -> str:
        return self.file.stem

    def key(self, builder: Builder) -> dict[str, Any]:
        return {"format": FORMAT, "gguf": digest_file(self.file)}

    def make(self, builder: Builder, folder: Path) -> None:
        from nonmember.models.loading import dequantize

        dequantize(self.file, folder)

    def load(self, builder: Builder, entry: Entry) -> Path:
        return entry.path


@dataclass(frozen=True)
class Gguf(ModelSpec):
    """A causal language model from a GGUF file.

    path: the file, or OWNER/NAME/FILE.gguf of the Hugging Face hub.   revision: commit, tag or branch there.
    dtype, attention, bos: with which the dequantised weights are loaded and read, as for `kinds.pretrained.Pretrained`.
    Its scores are those of the quantised weights, which results name as the file does (`Q4_1`, say).
    """

    path: str
    dtype: str = "float32"
    revision: str | None = None
    attention: str = "auto"
    bos: str = "auto"

    def __post_init__(self) -> None:
        require_text(self.path, "path of a GGUF file")
        require_choice(self.dtype, DTYPES, "dtype")
        require_choice(self.attention, ATTENTIONS, "attention")
        require_choice(self.bos, BOS, "tokens.bos")

    @property
    def file(self) -> Path:
        """On this machine, fetched from the hub where it is not. Raises ValueError where there is no such file."""
        file = Path(self.path).expanduser()
        if file.is_file():
            return file
        if ON_THE_HUB.fullmatch(self.path):
            from huggingface_hub import hf_hub_download

            owner, name, inside = self.path.split("/", 2)
            try:
                return Path(hf_hub_download(f"{owner}/{name}", inside, revision=self.revision))
            except (OSError, ValueError) as error:
                raise ValueError(
                    f"{self.path!r} is no file here, and the Hugging Face hub gave nothing: {error} Name a file that "
                    "exists, or allow the network (unset HF_HUB_OFFLINE)."
                ) from error
        raise ValueError(f"{self.path!r} is no file here; expected a model in the GGUF format. Name one that exists.")

    @property
    def readable(self) -> str:
        return Path(self.path).stem

    def look(self) -> None:
        if importlib.util.find_spec("gguf") is None:
            raise ValueError(
                f"{self.readable} is a GGUF file, which needs the package gguf. Install it, as with "
                "pip install 'nonmember[real]' or make setup EXTRAS=real."
            )
        with self.file.open("rb") as file:
            if (magic := file.read(4)) != b"GGUF":
                raise ValueError(
                    f"{self.file} must begin with the mark GGUF; got {magic!r}. Name a file in that format, or a "
                    "folder with safetensors."
                )

    def recipe(self) -> dict[str, Any]:
        return {"gguf": self.readable, "dtype": self.dtype, **self._reading}  # what the file holds is known by its key

    def key(self, builder: Builder) -> dict[str, Any]:
        return {**self._dequantized.key(builder), "dtype": self.dtype, **self._reading}

    @property
    def _reading(self) -> dict[str, str]:
        chosen = {"attention": self.attention, "bos": self.bos}
        return {name: value for name, value in chosen.items() if value != "auto"}

    @property
    def _dequantized(self) -> Dequantized:
        return Dequantized(self.file)

    def _as_folder(self, builder: Builder) -> Pretrained:
        self.look()
        folder = str(builder.get(self._dequantized))
        return Pretrained(folder, dtype=self.dtype, attention=self.attention, bos=self.bos)

    def weights(self, builder: Builder) -> LoadedModel:
        return self._as_folder(builder).weights(builder)

    def load_tokenizer(self, builder: Builder) -> Any:
        return self._as_folder(builder).load_tokenizer(builder)


@dataclass(frozen=True)
class PackagedGguf(Gguf):
    """The one GGUF file inside an installed Python package, which is not imported.

    distribution: name of the package.   path: of the file within it.   sha256: of the file; another is refused.
    install: what to do where the package is missing, for the message.
    """

    distribution: str = ""
    sha256: str = ""
    install: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_text(self.distribution, "distribution of a packaged model")

    @property
    def file(self) -> Path:
        try:
            package = importlib.metadata.distribution(self.distribution)
        except importlib.metadata.PackageNotFoundError as error:
            raise ValueError(
                f"{self.readable} is in the Python package {self.distribution}, which is not installed here. "
                f"{self.install}"
            ) from error
        file = Path(str(package.locate_file(self.path)))
        if not file.is_file() or (self.sha256 and digest_file(file) != self.sha256):
            raise ValueError(
                f"The installed package {self.distribution} {package.version} must hold {self.path} as it was "
                f"published (sha256 {self.sha256[:12]}...); it does not. {self.install}"
            )
        return file
