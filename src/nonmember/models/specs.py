"""Models by name or by recipe. A recipe says how the weights come about, nested as deep as one likes.

Every field of a spec changes the weights (or, for `dtype`, what they answer); what does not - devices, micro-batches,
memory budgets - lives in `nonmember.compute.Compute`. The key of a spec is made by `nonmember.workshop`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nonmember.corpora import CorpusSpec
from nonmember.training.recipes import AdapterTuning, TrainingRecipe, settings_of

DTYPES = ("float32", "bfloat16", "float16", "auto")
FORMS = ("chat", "completions")
QUANTIZATIONS = ("none", "8bit", "4bit")


@dataclass(frozen=True)
class Pretrained:
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
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, but {self.dtype!r} came.")
        if self.quantization not in QUANTIZATIONS:
            raise ValueError(f"quantization must be one of {', '.join(QUANTIZATIONS)}, but {self.quantization!r} came.")


@dataclass(frozen=True)
class TrainedTokenizer:
    """Byte-level BPE trained on a corpus; `<|endoftext|>` is its only special token."""

    corpus: CorpusSpec
    vocab_size: int


@dataclass(frozen=True)
class Scratch:
    """Random weights of a configuration: `architecture` names a transformers model type and its settings."""

    model_type: str
    architecture: Mapping[str, Any]
    tokenizer: TrainedTokenizer
    seed: int


@dataclass(frozen=True)
class Trained:
    """`base` trained on `corpus` by `training`, with a teacher where the recipe wants one.

    label: how people call it (in tables, run names, progress bars); not part of the key.
    """

    base: ModelSpec
    training: TrainingRecipe
    corpus: CorpusSpec
    seed: int
    teacher: ModelSpec | None = None
    label: str = field(default="", compare=False)

    @property
    def adapts(self) -> bool:
        """Whether it is the base with an adapter, and not weights of its own."""
        return isinstance(self.training, AdapterTuning)


@dataclass(frozen=True)
class Noised:
    """`base` with Gaussian noise on its weights: a model that is damaged on purpose.

    scale: standard deviation of the noise, as a share of that of each weight tensor.
    """

    base: ModelSpec
    scale: float
    seed: int

    def __post_init__(self) -> None:
        if not self.scale > 0:
            raise ValueError(f"scale of the noise must be above 0, but {self.scale!r} came.")


@dataclass(frozen=True)
class Served:
    """`base` behind somebody who answers for it: its log-probabilities with noise on them, or rounded, or both.

    noise: standard deviation in nats, for each token of each answer; the same question gets the same answer.
    decimals: that are left of a log-probability; 0 for whole nats, None for all.

    Whatever reads such a model gets these answers: scores, distillation, divergences. Its hidden states are the base's.
    """

    base: ModelSpec
    noise: float
    decimals: int | None
    seed: int

    def __post_init__(self) -> None:
        if not 0 <= self.noise < float("inf"):
            raise ValueError(f"noise of a served model must be at least 0, but {self.noise!r} came.")
        if not self.noise and self.decimals is None:
            raise ValueError("A served model without noise and with all decimals is the model itself; name that.")


@dataclass(frozen=True)
class Endpoint:
    """A model behind a server of OpenAI's protocol, of which only the answers can be had.

    url: up to and including /v1.   model: as the server calls it.   form: chat or completions, the route that is asked.
    key_variable: the environment variable that holds the secret; it need not be set for a server that wants none.
    """

    url: str
    model: str
    form: str
    key_variable: str

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ValueError(f"form of an endpoint must be one of {', '.join(FORMS)}, but {self.form!r} came.")
        if any(mark in self.url for mark in "@?#"):  # where secrets may stand, which are not repeated here
            raise ValueError(
                "url of an endpoint must have no user, password or query: a secret belongs into the environment "
                "variable that key_variable names."
            )
        if not self.url.startswith(("http://", "https://")):
            raise ValueError(f"url of an endpoint must begin with http:// or https://, but {self.url!r} came.")


@dataclass(frozen=True)
class Recorded:
    """Answers that a model gave elsewhere, in a file that takes its place (`nonmember.asking.recorded`).

    path: of a CSV, JSON Lines or Parquet table.   model: whose answers are read from it.   columns: what the columns
    are called, by the names of that module.
    """

    path: str
    model: str
    columns: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MaskedModel:
    """A masked language model from a folder or the Hugging Face hub: it fills blanks, and is asked nothing else.

    revision: commit, tag or branch on the hub; the commit it stands for goes into the key.
    """

    path: str
    revision: str | None = None


WithWeights = Pretrained | Scratch | Trained | Noised | Served
ModelSpec = WithWeights | Endpoint | Recorded | MaskedModel


def recipe_of(spec: ModelSpec) -> dict[str, Any]:
    """The spec as plain JSON, corpora by their identities. What the workshop's keys say is more exact: hashes of a
    folder's files, precision."""
    match spec:
        case Pretrained() | Endpoint() | Recorded() | MaskedModel():
            return settings_of(spec)
        case Scratch():
            tokenizer = {"corpus": spec.tokenizer.corpus.identity(), "vocab_size": spec.tokenizer.vocab_size}
            architecture = {"model_type": spec.model_type, **spec.architecture}
            return {"architecture": architecture, "tokenizer": tokenizer, "seed": spec.seed}
        case Noised():
            return {"base": recipe_of(spec.base), "noise": spec.scale, "seed": spec.seed}
        case Served():
            served = {"noise": spec.noise, "decimals": spec.decimals, "seed": spec.seed}
            return {"base": recipe_of(spec.base), "served": served}
        case Trained():
            return {
                "base": recipe_of(spec.base),
                "recipe": {"kind": type(spec.training).__name__, **settings_of(spec.training)},
                "corpus": spec.corpus.identity(),
                "teacher": recipe_of(spec.teacher) if spec.teacher else None,
                "seed": spec.seed,
            }


def label_of(spec: ModelSpec) -> str:
    """A short readable name."""
    match spec:
        case Pretrained() | MaskedModel():
            return spec.path.rstrip("/").rsplit("/", 1)[-1]
        case Endpoint() | Recorded():
            return spec.model.rstrip("/").rsplit("/", 1)[-1]
        case Scratch():
            return f"{spec.model_type}-scratch"
        case Noised():
            return f"{label_of(spec.base)}-noised"
        case Served():
            return f"{label_of(spec.base)}-served"
        case Trained():
            return spec.label or f"{label_of(spec.base)}-trained"
