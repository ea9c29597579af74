"""A quantised model in a GGUF file, as llama.cpp uses: dequantised once, then a model like any other."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
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
    def files(self) -> tuple[Path, ...]:
        """The file on this machine, fetched from the hub where it is not; or the pieces of it, in their order.

        Raises:
            ValueError: there is no such file.
        """
        file = Path(self.path).expanduser()
        if file.is_file():
            return (file,)
        if ON_THE_HUB.fullmatch(self.path):
            from huggingface_hub import hf_hub_download

            owner, name, inside = self.path.split("/", 2)
            try:
                return (Path(hf_hub_download(f"{owner}/{name}", inside, revision=self.revision)),)
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
        first = self.files[0]
        with first.open("rb") as file:
            if (magic := file.read(4)) != b"GGUF":
                raise ValueError(
                    f"{first} must begin with the mark GGUF; got {magic!r}. Name a file in that format, or a "
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
        return Dequantized(self.files, self.readable)

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
