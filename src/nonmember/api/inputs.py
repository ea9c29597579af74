"""A call from Python: its arguments as overrides, models and texts in memory beside them; quiet, interruptible."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nonmember.artifacts import Builder
from nonmember.artifacts.store import Store
from nonmember.checks import first_few
from nonmember.config.compose import composed, explained
from nonmember.config.runs import builder_of
from nonmember.config.words import literal, override, with_literal_paths
from nonmember.corpora.sources.columns import IDS, is_missing
from nonmember.corpora.sources.conversations import ConversationsInMemory, holds_conversations
from nonmember.corpora.sources.documents import InMemory, digest_of
from nonmember.models.kinds import in_memory
from nonmember.runtime.interruption import interruptible, interruption_of
from nonmember.runtime.naming import label_of_path, path_of
from nonmember.runtime.quiet import quiet

# What sets a text, in the world of one's own and in the others, which have no place for it.
OWN_PLACES = {"documents": "data", "heldout": "data.heldout", "unseen": "data.unseen", "general": "world.general"}
OTHER_PLACES = {**OWN_PLACES, "general": "general"}
Overrides = Sequence[str] | Mapping[str, Any]


@contextmanager
def at_work() -> Iterator[None]:
    """Ctrl-C saves what training has reached and comes out as KeyboardInterrupt, Hydra's errors as ValueError with the
    sentence of the command line. The libraries are quiet meanwhile, and torch computes as it does for a command."""
    with interruptible(ends_process=False), quiet(), explained(), _as_torch_begins():
        try:
            yield
        except (Exception, KeyboardInterrupt, SystemExit) as error:
            if (interruption := interruption_of(error)) is not None:
                raise interruption from None
            raise


@contextmanager
def _as_torch_begins() -> Iterator[None]:
    """Without what the calling program has set for its own arithmetic: numbers would move, and keys not tell it."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        yield
        return
    with ExitStack() as stack:
        for context in (torch.inference_mode(False), torch.enable_grad()):
            stack.enter_context(context)
        if torch.get_default_device().type != "cpu":
            stack.enter_context(torch.device("cpu"))
        for device in filter(torch.is_autocast_enabled, ("cpu", "cuda")):
            stack.enter_context(torch.autocast(device, enabled=False))
        stack.callback(torch.set_default_dtype, torch.get_default_dtype())
        torch.set_default_dtype(torch.float32)
        yield


@dataclass
class Inputs:
    """The overrides of a command, collected from Python arguments.

    Attributes:
        overrides: As on the command line.
        replaced: Key of the config -> node in its place.
        handing_over: What gives the builder the models and texts that are in memory.
    """

    overrides: list[str]
    replaced: dict[str, Any] = field(default_factory=dict)
    handing_over: list[Callable[[Builder], None]] = field(default_factory=list)

    @classmethod
    def of(cls, overrides: Overrides, settings: Mapping[str, Any]) -> Inputs:
        """The inputs of these overrides and settings.

        Args:
            overrides: "key=value" each, or key -> value.
            settings: key -> value; None is left to the config.
        """
        words = [override(key, value) for key, value in settings.items() if value is not None]
        if isinstance(overrides, Mapping):
            return cls([*(override(*item) for item in overrides.items()), *words])
        return cls([*with_literal_paths(overrides or ()), *words])

    @property
    def in_own_world(self) -> bool:
        return not any(word.startswith("world=") and word != "world=own" for word in self.overrides)

    def default(self, key: str, value: Any) -> None:
        """Where the caller did not say otherwise."""
        if not any(word.lstrip("+").partition("=")[0] == key for word in self.overrides):
            self.overrides.append(override(key, value))

    def composed(self, command: str) -> AbstractContextManager[tuple[Any, Path]]:
        return composed(command, self.overrides, self.replaced)

    def builder_of(self, config: Any, store: Store | None = None) -> Builder:
        """The builder of a composed config, with the models and texts in memory.

        Args:
            store: In place of the config's.

        Raises:
            ValueError: For a trainer that starts further processes: they would run the caller's program again, and
                find no model in its memory.
        """
        builder = builder_of(config, store)
        if not builder.compute.in_one_process:
            raise ValueError(
                "A call from Python runs in one process; got a trainer of several. Use trainer=cpu or trainer=gpu, or "
                "save the model and give its path to the command `nonmember audit` with trainer=ddp or trainer=fsdp."
            )
        for item in self.handing_over:
            item(builder)
        return builder

    def add_model(self, node: str, given: Any, *, argument: str | None = None) -> None:
        """Put a model in its place in the config.

        Args:
            given: Path or name on the hub, settings of one (`path`, `revision`, `dtype` ...; `url` and `model` of
                an endpoint), a config node with its
                `_target_`, or a transformers model with its tokenizer; None is left to the config.
            argument: What the caller calls it, if not as the config does.
        """
        if given is None:
            return
        if isinstance(given, str | os.PathLike):
            given = {"path": os.fspath(given)}
        if isinstance(given, Mapping):
            if "_target_" in given:
                self.replaced[node] = dict(given)
                return
            if "url" in given:
                self.overrides.append(f"model@{node}=endpoint")
            elif not self.in_own_world:
                self.overrides.append(f"model@{node}=pretrained")
            self.overrides += [override(f"{node}.{key}", value) for key, value in given.items()]
            return
        model, tokenizer = _model_and_tokenizer(given, argument or node)
        spec = in_memory.InMemory(in_memory.content_of(model, tokenizer), _name(model))
        values = {"_target_": "nonmember.models.InMemory", **literal(asdict(spec))}
        self.replaced[node] = values | {"bos": "${oc.select:tokens.bos,auto}"}
        self.handing_over.append(lambda builder: spec.provide(builder, model, tokenizer))

    def add_texts(self, name: str, given: Any, *, node: str | None = None) -> None:
        """Put texts in their place in the config.

        Args:
            name: Of `OWN_PLACES`.
            given: Path, list of texts, list of rows, pandas DataFrame or Arrow table; None is left to the config.
            node: Of the config, where the command has another one.
        """
        if given is None:
            return
        node = node or (OWN_PLACES if self.in_own_world else OTHER_PLACES)[name]
        rows = None if isinstance(given, str | os.PathLike) else _rows(given, name)
        in_data = node.partition(".")[0] == "data"
        chat = "data=chat" if in_data else f"data@{node}=base/chat"
        if rows and any(map(holds_conversations, rows)) and chat not in self.overrides:
            self.overrides.append(chat)
        if not self.in_own_world and chat not in self.overrides:
            self.overrides.append("data=documents" if node == "data" else f"+data@{node}=documents")
        if isinstance(given, str | os.PathLike):
            if _is_text(os.fspath(given)):
                raise ValueError(f"{name} must be a list of texts, or a path; got one text. Pass [text].")
            self.overrides.append(override(f"{node}.path", os.fspath(given)))
            return
        if not rows:
            raise ValueError(f"{name} must have at least one text; got none. Pass a list of str.")
        if node == "data" and "data=streamed" in self.overrides:
            raise ValueError(f"{name} must be a path with data=streamed; got texts in memory. Leave data=streamed out.")
        digest = digest_of(rows)
        self.overrides.append(f"{node}.path=null")
        self.default(f"{node}.label", name)
        columns = ("text_field", "id_field", "cluster_field", "title_field", "author_field", "domain")
        kind = ConversationsInMemory if chat in self.overrides else InMemory
        self.replaced[f"{node}.corpus.base.source"] = {
            "_target_": f"nonmember.corpora.{kind.__name__}",
            "digest": digest,
            **{column: f"${{....{column}}}" for column in columns},
        }
        self.handing_over.append(lambda builder: InMemory(digest).provide(builder, rows))


def _model_and_tokenizer(given: Any, argument: str) -> tuple[Any, Any]:
    if isinstance(given, tuple) and len(given) == 2:
        model, tokenizer = given
    else:
        model, tokenizer = getattr(given, "model", None), getattr(given, "tokenizer", None)
    is_model = all(callable(getattr(model, name, None)) for name in ("state_dict", "get_input_embeddings"))
    if not (is_model and hasattr(model, "config") and callable(tokenizer)):
        raise ValueError(
            f"{argument} must be a path, a name on the Hugging Face hub, or (model, tokenizer) of transformers; got "
            f"{_kind(given)}. Pass {argument}=(model, tokenizer)."
        )
    if hasattr(model, "peft_config"):
        raise ValueError(
            f"{argument} must be a model without an adapter; got {_kind(model)} with one. Pass "
            "model.merge_and_unload(), or the path of the saved adapter."
        )
    if hooked := [name or "the whole" for name, module in model.named_modules() if _has_hooks(module)]:
        raise ValueError(
            f"{argument} must be a model without forward hooks, which may change what it says; got one with hooks at "
            f"{first_few(hooked)}. Remove them (handle.remove())."
        )
    return model, tokenizer


def _has_hooks(module: Any) -> bool:
    """Besides those by which torch and transformers do their own work."""
    hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
    owners = {(getattr(hook, "__module__", None) or "").partition(".")[0] for hook in hooks}
    return bool(owners - {"torch", "transformers"})


def _name(model: Any) -> str:
    path = str(getattr(model, "name_or_path", ""))
    return label_of_path(path) if path else type(model).__name__


def _rows(given: Any, name: str) -> list[Mapping[str, Any]]:
    """A row per document."""
    if hasattr(given, "to_pylist") and hasattr(given, "schema"):  # Arrow
        _require_different(given.schema.names, name)
        return list(given.to_pylist())
    if hasattr(given, "to_frame") and hasattr(given, "index"):  # pandas' Series
        return _with_index([dict(row) for row in _rows(list(given), name)], given.index)
    if hasattr(given, "to_dict") and hasattr(given, "columns") and hasattr(given, "index"):  # pandas
        _require_different(map(str, given.columns), name)
        rows = [{str(key): value for key, value in row.items()} for row in given.to_dict("records")]
        return _with_index(rows, given.index)
    if isinstance(given, Iterable) and not isinstance(given, Mapping | Set):  # a set has no order of its own
        rows = [row.tolist() if hasattr(row, "tolist") else row for row in given]  # of NumPy, as pandas has lists
        if all(isinstance(row, str) or is_missing(row) for row in rows):
            return [{"text": row} for row in rows]
        if all(isinstance(row, list | tuple) and all(isinstance(turn, Mapping) for turn in row) for row in rows):
            return [{"messages": row} for row in rows]  # conversations
        if all(isinstance(row, Mapping) for row in rows):
            return [{str(key): value for key, value in row.items()} for row in rows]
    raise ValueError(
        f"{name} must be a path, a list of texts, a pandas DataFrame or an Arrow table; got {_kind(given)}. Pass a "
        "list of str, or of conversations (lists of messages)."
    )


def _require_different(columns: Iterable[str], name: str) -> None:
    """Of columns of one name a row would have the last alone."""
    if twice := [repr(column) for column, number in Counter(columns).items() if number > 1]:
        raise ValueError(f"{name} must have columns of different names; {first_few(twice)} occurs twice. Rename one.")


def _with_index(rows: list[dict[str, Any]], index: Iterable[Any]) -> list[Mapping[str, Any]]:
    """The rows, named by the index where it is more than their numbers from 0 and no column names them."""
    values = list(index)
    if values == list(range(len(values))) or any(column in row for row in rows[:1] for column in IDS):
        return [*rows]
    names = [None if is_missing(value) else str(value) for value in values]
    return [{IDS[0]: name, **row} for name, row in zip(names, rows, strict=True)]


def _is_text(given: str) -> bool:
    """Whether it can only be meant as a text: words, or lines, and no name of anything that is there."""
    is_path = re.search(r"[/\\*]|\.\w+$", given) is not None
    if "\n" not in given and (is_path or " " not in given.strip()):
        return False
    try:
        return not path_of(given).exists()
    except (OSError, ValueError):  # no name of a file
        return True


def _kind(given: Any) -> str:
    if isinstance(given, list | tuple):
        kinds = ", ".join(dict.fromkeys(type(item).__name__ for item in given)) or "nothing"
        return f"a {type(given).__name__} of {kinds}"
    name = type(given).__name__
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"
