"""A model that the calling program has in memory."""

from __future__ import annotations

import copy
import functools
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import xxhash

from nonmember.artifacts import Builder
from nonmember.artifacts.builder import NotHandedOver
from nonmember.models.base import ModelSpec, require_bos
from nonmember.models.tokenizing import lasting, prepared

if TYPE_CHECKING:
    from nonmember.models.loading import LoadedModel

# Of a configuration or a tokenizer, what moves without the model: where it was loaded from and how it was called last.
NO_CONTENT = ("_name_or_path", "name_or_path", "transformers_version", "torch_dtype", "dtype")


@dataclass(frozen=True)
class InMemory(ModelSpec):
    """A model with its tokenizer, handed to the builder by the program that calls (`provide`).

    content: hash of both (`content_of`).   label: for people.   bos: as of `Pretrained`.

    The model itself is never changed, moved or written to disk: it is read through a second tree of modules over its
    weights, and trained as a copy.
    """

    content: str
    label: str = field(compare=False)
    bos: Annotated[str, require_bos] = "auto"

    @property
    def readable(self) -> str:
        return self.label

    def source(self, builder: Builder) -> str:
        return f"{self.label}@{self.content}"

    def recipe(self) -> dict[str, Any]:
        return {"in_memory": self.content, "bos": self.bos}

    def key(self, builder: Builder) -> dict[str, Any]:
        return self.recipe()

    def provide(self, builder: Builder, model: Any, tokenizer: Any) -> None:
        builder.resource(("in memory", self.content), lambda: (model, tokenizer))

    def build(self, builder: Builder) -> LoadedModel:
        import torch

        from nonmember.models.loading import require_rows

        model, tokenizer = self._handed_over(builder)
        require_rows(tokenizer, model, self.label)
        # Parameters of its own over the same numbers: moving them to a device leaves the caller's where they are.
        own = {
            id(item): torch.nn.Parameter(item.detach(), requires_grad=item.requires_grad) for item in model.parameters()
        }
        return self._loaded(builder, _copied(model, own))

    def weights(self, builder: Builder) -> LoadedModel:
        model = _copied(self._handed_over(builder)[0], {})
        for parameter in model.parameters():  # some of which the caller may have frozen
            parameter.requires_grad_(parameter.is_floating_point())
        return self._loaded(builder, model)

    def _loaded(self, builder: Builder, model: Any) -> LoadedModel:
        from nonmember.models.loading import LoadedModel
        from nonmember.models.probing import require_probed

        return require_probed(builder, self, LoadedModel(model, self.load_tokenizer(builder)))

    def load_tokenizer(self, builder: Builder) -> Any:
        return _ready(self._handed_over(builder)[1], self.content, self.bos, self.label)

    def _handed_over(self, builder: Builder) -> tuple[Any, Any]:
        def missing() -> tuple[Any, Any]:
            raise NotHandedOver(
                f"{self.label} is a model in the memory of another program. Name a folder or a hub name."
            )

        return builder.resource(("in memory", self.content), missing)


@functools.lru_cache(maxsize=4)
def _ready(tokenizer: Any, content: str, bos: str, label: str) -> Any:
    """A copy, made once for calls that follow each other: a large vocabulary takes .4 s."""
    return prepared(copy.deepcopy(tokenizer), bos, label)


def _copied(model: Any, known: dict[int, Any]) -> Any:
    """In evaluation mode. known: what stands for its parts, by their ids; the others are copied."""
    try:
        return copy.deepcopy(model, known).eval()
    except (RuntimeError, TypeError) as error:  # of tensors with a history, locks and the like that it was given
        line = str(error).splitlines()[0]
        raise ValueError(
            f"A {type(model).__name__} in memory is read as a copy, and this one cannot be copied: {line} Take out "
            "what was added to it, or save it with save_pretrained and give the folder."
        ) from error


def content_of(model: Any, tokenizer: Any) -> str:
    """XXH3 (128 bits) of a transformers model's configuration and weights and of its tokenizer, read once.

    Two models with equal weights in one precision are the same one, whatever they were loaded from.
    """
    import torch

    digest = xxhash.xxh3_128()
    _add(digest, type(model).__name__, _json(model.config.to_dict()))
    for name, tensor in sorted(model.state_dict().items()):
        if not hasattr(tensor, "dtype"):
            raise ValueError(
                f"A model in memory is known by its weights, and {name} is no tensor but a {type(tensor).__name__}. "
                "Give the model as it was before it was quantised, or its folder."
            )
        _add(digest, name, str(tensor.dtype), str(tuple(tensor.shape)))
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    _add(digest, type(tokenizer).__name__, _json(_description(tokenizer)))
    return digest.hexdigest()


def _description(tokenizer: Any) -> dict[str, Any]:
    """What determines the ids that it gives."""
    described = {
        "special": {name: str(token) for name, token in tokenizer.special_tokens_map.items()},
        "chat_template": getattr(tokenizer, "chat_template", None),
    }
    if getattr(tokenizer, "backend_tokenizer", None) is not None:
        return described | {"fast": lasting(tokenizer)}
    return described | {"vocabulary": tokenizer.get_vocab(), "settings": tokenizer.init_kwargs}


def _json(values: dict[str, Any]) -> str:
    return json.dumps(_without(values), sort_keys=True, default=str)


def _without(node: Any) -> Any:
    if isinstance(node, dict):
        return {str(name): _without(value) for name, value in node.items() if name not in NO_CONTENT}
    return node


def _add(digest: Any, *parts: str) -> None:
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
