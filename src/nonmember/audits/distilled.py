"""What is checked before a distilled reference is trained.

Tokenizers that do not fit are refused from the tokenizers alone. A reference that is the target leaves nothing worth
training: the result is then `invalid` and says why.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nonmember.artifacts import Builder
from nonmember.artifacts.store import key_hash
from nonmember.audits.question import Audit
from nonmember.corpora import CorpusSpec
from nonmember.methods import TestOutcome
from nonmember.methods.protocols import ComparesTokens, MayBeGated, PlantsControls
from nonmember.models import ModelSpec
from nonmember.models.tokenizing import require_shared_vocabulary
from nonmember.training import Trained
from nonmember.training.recipes import Distillation

UNMEASURED = (
    "The health of the distilled reference was not measured (trainer.measure_health=false) and no gate was applied, so "
    "there is no verdict of non-membership. Measure it, or leave the gates on."
)
DIVERGED = (
    "The distilled reference diverged: its cross-entropy on the documents and its divergence from the target rose. "
    "Lower method.distillation.optimization.learning_rate."
)
LARGEST_RISE = 0.1  # nats per token


def judged(audit: Audit, outcome: TestOutcome, health: Mapping[str, float]) -> TestOutcome:
    """The outcome with what was found before it, and without a verdict that nothing vouches for."""
    reasons = [audit.obstacle] if audit.obstacle else []
    if outcome.verdict == "evidence_of_non_membership":
        reasons += [UNMEASURED] * _is_unmeasured(audit, health) + [DIVERGED] * _has_diverged(health)
    return outcome.made_invalid([*reasons, *outcome.warnings]) if reasons else outcome


def _is_unmeasured(audit: Audit, health: Mapping[str, float]) -> bool:
    """Whether neither gates nor the training looked at the distilled reference."""
    ungated = isinstance(audit.method, MayBeGated) and not audit.method.is_gated
    return ungated and isinstance(audit.models.get("distilled"), Trained) and "kl_after" not in health


def _has_diverged(health: Mapping[str, float]) -> bool:
    """Whether the reference fits the documents and the target worse than before it was trained."""
    rises = [health.get(f"{name}_after", 0.0) - health.get(f"{name}_before", math.inf) for name in ("ce", "kl")]
    return min(rises) > 0 and max(rises) > LARGEST_RISE


def prepare(audit: Audit, builder: Builder) -> Audit:
    """The audit as it is carried out, with what stands in the way of a distilled reference.

    Raises ValueError where a student and its teacher have different tokenizers, or models that the method compares
    token by token.
    """
    _require_same_tokens(audit, builder)
    _require_another_base(audit, builder)
    obstacle = obstacle_of(audit, builder)
    return replace(audit, obstacle=obstacle) if obstacle else audit


def _require_another_base(audit: Audit, builder: Builder) -> None:
    """Before controls are trained. Raises ValueError where their base is the target, by its weights."""
    moved = audit.method.moved_from(audit.roles) if isinstance(audit.method, PlantsControls) else None
    if moved is not None and (weights := _same_weights(moved[0], audit.target, builder)):
        raise ValueError(
            f"The base of the controls is the target: both have the same weights ({weights}). Give the model that the "
            "target was continued from: method.controls.base.path=FOLDER."
        )


def obstacle_of(audit: Audit, builder: Builder) -> str:
    """What makes the audit invalid before anything is made; empty: nothing."""
    if not isinstance(audit.method, MayBeGated) or not audit.method.is_gated:
        return ""
    weights = _same_weights(audit.reference, audit.target, builder)
    if not weights:
        return ""
    return (
        f"The reference is the target: both have the same weights ({weights}). Give a reference that has not read the "
        "documents and is another model."
    )


def _same_weights(item: ModelSpec, other: ModelSpec, builder: Builder) -> str:
    """A mark of the weights if both models have the same, by whatever label and in whatever precision; else empty."""
    keys = [_weights_alone(model.key(builder)) for model in (item, other)]
    return key_hash(keys[0]) if keys[0] == keys[1] else ""


def _weights_alone(key: Mapping[str, Any]) -> dict[str, Any]:
    pretrained = key.get("pretrained")
    if not isinstance(pretrained, Mapping):
        return {name: value for name, value in key.items() if name != "bos"}
    of_reading = ("dtype", "quantization", "bos")
    return {"pretrained": {name: value for name, value in pretrained.items() if name not in of_reading}}


def _require_same_tokens(audit: Audit, builder: Builder) -> None:
    seen: list[tuple[ModelSpec, ModelSpec, CorpusSpec]] = []
    for item in audit.measurements:
        for base, teacher, corpus, max_tokens in _distillations(item.model):
            if (base, teacher, corpus) not in seen:
                seen.append((base, teacher, corpus))
                _require_alike(base, teacher, corpus, max_tokens, builder, "distillation needs")
    method = audit.method
    for model, other in method.alike_tokenized(audit.roles) if isinstance(method, ComparesTokens) else ():
        by = f" by {method.score_name}" if method.score_name else ""
        hint = " Or take a score of each model's own tokens, score@method.score=loss." if by else ""
        try:
            _require_alike(model, other, audit.suspect, method.max_tokens, builder, f"{method.name}{by} needs")
        except ValueError as error:
            raise ValueError(f"{error}{hint}") from None


def _require_alike(
    base: ModelSpec, teacher: ModelSpec, corpus: CorpusSpec, max_tokens: int, builder: Builder, what: str
) -> None:
    share = share_read_alike((base, teacher), corpus, max_tokens, builder)
    require_shared_vocabulary(share, base.readable, teacher.readable, what)


def share_read_alike(models: Sequence[ModelSpec], corpus: CorpusSpec, max_tokens: int, builder: Builder) -> float:
    """Of the first model's tokens of the documents, those of documents that the second encodes alike."""

    def find() -> float:
        from nonmember.models.encoding import encode, read_alike, shared_ids

        tokenizers = [model.load_tokenizer(builder) for model in roots]
        if tokenizers[0] is tokenizers[1]:
            return 1.0
        if tokenizers[0].get_vocab().keys().isdisjoint(tokenizers[1].get_vocab()):
            return 0.0
        texts = [document.text for document in builder.get(corpus).documents]
        ours, theirs = (encode(tokenizer, texts, max_tokens) for tokenizer in tokenizers)
        return read_alike(ours, theirs, shared_ids(*tokenizers)[0])[1]

    roots = [model.root() for model in models]
    key = {"models": [model.key(builder) for model in roots], "corpus": corpus.fingerprint(builder)}
    return float(builder.noted("read alike", {**key, "max_tokens": max_tokens}, find))


def _distillations(model: ModelSpec) -> Iterator[tuple[ModelSpec, ModelSpec, CorpusSpec, int]]:
    """Student before its training, teacher, corpus and limit of every distillation on the way to a model."""
    if isinstance(model, Trained) and model.teacher is not None and isinstance(model.training, Distillation):
        yield model.base, model.teacher, model.corpus, model.training.max_tokens
    for _, parent in model.made_of():
        yield from _distillations(parent)
