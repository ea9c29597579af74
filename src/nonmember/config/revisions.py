"""Branches of data sets on the hub: the commit that one stood for when it was first read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from nonmember.artifacts.store import REVISIONS
from nonmember.runtime.files import json_object, locked, write_text_atomically
from nonmember.runtime.naming import path_of

BRANCHES = ("main", "master", "HEAD")
HUB = "nonmember.corpora.Hub"
NOT_READ = "0" * 40  # the commit of a branch that was not read: nothing of the data hangs on it yet

CommitOf = Callable[[str, str], str]


def pin_branches(config: DictConfig, commit_of: CommitOf) -> None:
    """Puts commits in the place of the branches that what is audited or scored is read from, where they are declared:
    results then record the commit. commit_of: path and branch -> commit."""
    declared = list(_declared(config))
    if not declared:
        return
    parts = [name for name in config if name != "world"]  # of which a cell uses a part: that is reached from the others
    used = {(str(node.path), str(node.revision)) for node in _nodes(config, parts) if node.get("_target_") == HUB}
    for node in declared:
        wanted = (str(node.path), str(node.revision))
        if wanted in used and not path_of(node.path).is_dir():
            node.revision = commit_of(*wanted)


def kept_in(store: Path) -> CommitOf:
    """Asks the hub when a branch is first read, and keeps the answer in the store: later runs read the same data.

    Raises ValueError where the hub cannot be asked.
    """

    def commit_of(path: str, branch: str) -> str:
        store.mkdir(parents=True, exist_ok=True)
        with locked(store / f".lock-{REVISIONS}", "asking the hub for a commit"):
            known = json_object(store / REVISIONS) if (store / REVISIONS).is_file() else {}
            name = f"{path}@{branch}"
            if name not in known:
                known[name] = _asked(path, branch)
                write_text_atomically(store / REVISIONS, json.dumps(known, indent=1, sort_keys=True) + "\n")
            return str(known[name])

    return commit_of


def _asked(path: str, branch: str) -> str:
    from huggingface_hub import HfApi

    from nonmember.corpora.sources.hub import hub_errors

    with hub_errors(path, branch):
        commit = HfApi().dataset_info(path, revision=branch).sha
    if not commit:
        raise ValueError(f"The hub names no commit of {path} at {branch}. Give one: revision=COMMIT.")
    return commit


def _declared(node: Any) -> Iterator[DictConfig]:
    """The nodes in which a branch is written, not those that take it from elsewhere."""
    plain = OmegaConf.to_container(node, resolve=False)

    def below(part: Any, keys: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        if isinstance(part, dict) and part.get("revision") in BRANCHES and "path" in part:
            yield keys
        for key, value in part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ():
            yield from below(value, (*keys, key))

    for keys in below(plain, ()):
        found = node
        for key in keys:
            found = found[key]
        if "pretrained" not in str(found.get("_target_", "")).lower():  # models name a branch in their own way
            yield found


def _nodes(config: DictConfig, keys: list[Any]) -> Iterator[DictConfig]:
    """Every mapping that is reached from these keys of a config, interpolations followed; what is missing is passed."""
    waiting: list[tuple[Any, list[Any]]] = [(config, keys)]
    seen: dict[int, Any] = {}
    while waiting:
        node, names = waiting.pop()
        for name in names:
            try:
                child = node[name]
            except OmegaConfBaseException:
                continue
            if isinstance(child, DictConfig | ListConfig) and id(child) not in seen:
                seen[id(child)] = child
                if isinstance(child, DictConfig):
                    yield child
                waiting.append((child, list(child) if isinstance(child, DictConfig) else list(range(len(child)))))
