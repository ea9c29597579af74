"""The identity of an audit: everything that determines its result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from functools import partial
from typing import Any

from nonmember.artifacts import Builder, Spec
from nonmember.artifacts.store import key_hash
from nonmember.audits.question import Audit, further_corpora, other_corpora
from nonmember.methods import Method
from nonmember.models import ModelSpec
from nonmember.models.tokenizing import read_around
from nonmember.observations import Scored
from nonmember.records.groups import SUSPECT

FORMAT = 2  # raise it when a change of code moves results


def audit_keys(audit: Audit, builder: Builder) -> dict[str, str]:
    """Hashes of what the store calls the models and corpora, by role and group; `audit` is the hash of all of it."""
    keys = {role: key_hash(model.key(builder)) for role, model in audit.models.items()}
    keys |= {role: key_hash(model.key(builder)) for role, model in audit.compared_with().items()}
    for name, group in audit.groups.items():
        keys["corpus" if name == SUSPECT else name] = group.corpus.fingerprint(builder)
        keys |= {other: key_hash(corpus.key(builder)) for other, corpus in other_corpora(group).items()}
        keys |= {f"{name}/{other}": key_hash(item.key(builder)) for other, item in further_corpora(group).items()}
    if tokenizer := next((model for item in audit.measurements for model in item.counted_by()), None):
        keys["tokenizer"] = key_hash(tokenizer.key(builder))
    if general := next((corpus for item in audit.measurements if (corpus := item.general()) is not None), None):
        keys["general"] = general.fingerprint(builder)
    if any(isinstance(item, Scored) and item.scored_text for item in audit.measurements):
        keys["texts"] = "as scored"
    if audit.max_layout_auc is not None and len(audit.groups) > 1:
        keys["max_layout_auc"] = str(audit.max_layout_auc)
    return keys | {"audit": key_hash(identity_of(audit, keys))}


def identity_of(audit: Audit, keys: Mapping[str, str]) -> dict[str, Any]:
    """What the key of an audit is the hash of. keys: of its parts."""
    return {
        "format": FORMAT,
        "parts": dict(keys),
        "method": settings_of_method(audit.method),
        "seed": audit.seed,
        "truth": audit.truth,
    }


def sources(audit: Audit, builder: Builder) -> dict[str, str]:
    """For the result: where the first weights of each role's model were read, if they were."""
    models = {**audit.models, **audit.compared_with()}
    read = {role: model.source(builder) for role, model in models.items()}
    return {role: source for role, source in read.items() if source}


def tokens_read(models: Mapping[str, ModelSpec | None], builder: Builder) -> dict[str, dict[str, str | None]]:
    """For the result: what the tokenizer of each role's model puts around a text. Those with weights alone tell."""
    roots = {role: model.root() for role, model in models.items() if model is not None and model.has_weights}

    def find(root: ModelSpec) -> dict[str, str | None]:
        return read_around(root.load_tokenizer(builder))

    return {role: builder.noted("read around", root.key(builder), partial(find, root)) for role, root in roots.items()}


def settings_of_method(method: Method) -> dict[str, Any]:
    """The method's parameters as plain JSON, with the names of the classes among them."""
    described = {name: _described(value) for name, value in method.settings().items()}
    # As it will be read again, and failing here rather than when the result is written.
    settings: dict[str, Any] = json.loads(json.dumps({"method": method.name, **described}, allow_nan=False))
    return settings


def _described(value: Any) -> Any:
    match value:  # what models and corpora are made of stands in the keys
        case ModelSpec():
            return value.readable
        case Spec():
            return type(value).__name__
        case list() | tuple():
            return [_described(item) for item in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {"kind": type(value).__name__, **asdict(value)}
        case _:
            return value
