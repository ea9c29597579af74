"""The work that an audit asks for: what is trained, observed, written and asked, with memory and arithmetic."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from nonmember.artifacts import Spec
from nonmember.audits.question import Audit
from nonmember.audits.walk import specs_in
from nonmember.corpora import CorpusSpec, Mixture
from nonmember.corpora.specs import TOKENS_PER_WORD, Bound
from nonmember.endpoints.asked import Asked
from nonmember.endpoints.models import Recorded
from nonmember.feasibility import memory
from nonmember.feasibility.descriptions import hub_datasets, hub_models
from nonmember.feasibility.memory import MemoryUse, TrainerSettings
from nonmember.feasibility.meta import Shape, num_tuned, num_tuned_of_hub, shape_of, shape_of_scratch
from nonmember.generated.rephrased import Written
from nonmember.lookup import InfiniGram
from nonmember.models import Gguf, ModelSpec, Pretrained
from nonmember.models.kinds.scratch import Scratch
from nonmember.observations import Measurement, Reordered, Scored
from nonmember.observations.base import Observation
from nonmember.records.requirements import Requirements
from nonmember.runtime.expectations import FORWARD, TRAINING
from nonmember.training import Trained
from nonmember.training.recipes import AdapterTuning, Distillation, Pretraining

BYTES = {"float32": 4.0, "bfloat16": 2.0, "float16": 2.0, "auto": 4.0}
QUANTIZED = {"8bit": 1.0, "4bit": 0.6}
STORED_BYTES_PER_TOKEN = 20  # of an observation of tokens
AROUND = 128  # tokens of a question beside the texts that it shows: instruction, names, letters
TOKENS_OF_TEXT = 1024  # of a text of which nothing says how long it is
LOOKING_UP = "looking up"


@dataclass(frozen=True)
class Weights:
    """Of a model in memory. num_bytes: as it is loaded."""

    shape: Shape
    num_bytes: float


@dataclass(frozen=True)
class Job:
    kind: str  # training, tuning, distilling, observing, writing, asking or looking up
    model: str
    identity: str  # equal of equal jobs
    tokens: int | None  # most, None where nothing bounds them
    operations: float | None  # floating-point, in parallel over the tokens of a text
    # Memory by settings of the trainer, None for what is asked of a service.
    needs: Callable[[TrainerSettings], MemoryUse] | None = field(default=None, compare=False)
    requests: int | None = None  # to a service, at most
    num_tuned: int | None = None  # of an adapter
    token_by_token: float = 0.0  # further ones, of texts that are written
    # Of asking, None where the number of requests is not known.
    seconds: float | None = field(default=0.0, compare=False)


@dataclass(frozen=True)
class Estimate:
    """Of making one artifact."""

    operations: float | None  # floating-point
    size: float | None  # bytes on disk; both None where the tokens are not known
    needs: Callable[[TrainerSettings], MemoryUse]  # memory by settings of the trainer


def estimate_of(spec: Spec[Any], tokens: int | None) -> Estimate | None:
    """Of a model or an observation that reads so many tokens; None for others, and for a model of unknown size."""
    try:
        match spec:
            case Trained():
                job = _training(spec)
                size: float | None = 4.0 * (job.num_tuned or weights_of(spec.base).shape.num_parameters)
            case Observation() if spec.model.has_weights:
                job = _observing(spec.model, spec, None, type(spec).__name__)
                size = None if tokens is None else float(STORED_BYTES_PER_TOKEN * tokens)
            case _:
                return None
        assert job.needs is not None
        return Estimate(None if tokens is None else _operations_per_token(spec) * tokens, size, job.needs)
    except (Unknown, ValueError):
        return None


def _operations_per_token(spec: Trained | Observation[Any]) -> float:
    if isinstance(spec, Trained):
        teacher = FORWARD * weights_of(spec.teacher).shape.num_parameters if spec.teacher is not None else 0
        return float(TRAINING * weights_of(spec.base).shape.num_parameters + teacher)
    return float(FORWARD * weights_of(spec.model).shape.num_parameters)


class Unknown(ValueError):
    """A model is not described."""


def jobs_of(audit: Audit) -> list[Job]:
    """Each once. Raises Unknown where a model of the hub has no description, and ValueError where an adapter finds no
    module of its model to adapt."""
    jobs = {}
    for spec in specs_in(list(audit.groups.values())):
        for job in _jobs_of(spec):
            jobs[job.identity] = job
    if (look_up := _looking_up(audit)) is not None:
        jobs[look_up.identity] = look_up
    return list(jobs.values())


def searchable(audit: Audit) -> InfiniGram | None:
    """Where an audit of a model with open training data can look its documents up: by default in every plan, and done
    only where it is asked for. None where the truth is given, or nobody has indexed that data."""
    if isinstance(audit.lookup, InfiniGram):
        return audit.lookup
    known = hub_models().get(audit.target.path) if isinstance(audit.target, Pretrained) else None
    found = known is not None and known.infinigram and audit.truth is None and audit.lookup is None
    return InfiniGram(known.infinigram) if known is not None and found and not audit.suspect.is_secret else None


def _looking_up(audit: Audit) -> Job | None:
    if (lookup := searchable(audit)) is None:
        return None
    numbers = [bound_of(group.corpus).documents for group in audit.groups.values()]
    requests = None if None in numbers else lookup.per_document * sum(number or 0 for number in numbers)
    corpora = [group.corpus for group in audit.groups.values()]
    return Job(LOOKING_UP, lookup.readable, _identity(LOOKING_UP, lookup, corpora), None, None, requests=requests)


def _jobs_of(spec: Any) -> Iterator[Job]:
    match spec:
        case Trained():
            yield _training(spec)
        case Written():
            needs = Requirements(None, questions=1, answer_tokens=spec.max_new_tokens)
            yield _answers(spec.model, spec.base, needs, spec.max_tokens, "writing", spec)
        case Asked():
            yield _answers(spec.model, spec.corpus, spec.probe.requirements, TOKENS_OF_TEXT, "asking", spec)
        case Reordered():
            tokens = bound_of(spec.corpus).tokens(spec.window)
            times = (spec.num_orders + 1) * spec.window // spec.stride
            yield _observing(spec.model, spec, None if tokens is None else tokens * times, "orders")
        case Scored():
            observed: Any
            for observed in spec.observations().values():
                tokens = bound_of(observed.corpus).tokens(spec.max_tokens)
                yield _observing(observed.model, observed, tokens, getattr(observed, "view", type(observed).__name__))
        case Measurement():
            limit = getattr(spec, "max_tokens", None)
            yield _observing(spec.model, spec, bound_of(spec.corpus).tokens(limit), type(spec).__name__)


def weights_of(model: ModelSpec) -> Weights:
    """Raises Unknown."""
    match model:
        case Pretrained():
            shape = shape_of(model.path)
            if shape is None:
                raise Unknown(model.path)
            each = QUANTIZED.get(model.quantization) or BYTES[model.dtype]
            return Weights(shape, shape.num_parameters * each)
        case Gguf():  # dequantised when it is loaded
            shape = shape_of(model.path)
            if shape is None:
                raise Unknown(model.readable)
            return Weights(shape, shape.num_parameters * BYTES[model.dtype])
        case Scratch():
            shape = shape_of_scratch(model)
            return Weights(shape, shape.num_parameters * BYTES["float32"])
        case Trained():
            base = weights_of(model.base)
            if model.adapts:
                return Weights(base.shape, base.num_bytes + 4 * _tuned(model))
            return Weights(base.shape, base.shape.num_parameters * BYTES["float32"])
    inner = getattr(model, "base", None) or getattr(model, "model", None)
    if isinstance(inner, ModelSpec):
        return weights_of(inner)
    raise Unknown(model.readable)


def _tuned(model: Trained) -> int:
    assert isinstance(model.training, AdapterTuning)
    base: ModelSpec = model.base
    while isinstance(base, Trained):
        base = base.base
    if isinstance(base, Pretrained | Gguf):
        return num_tuned_of_hub(base.path, model.training.adapter)
    if isinstance(base, Scratch):
        from nonmember.feasibility.meta import from_settings

        settings = {"vocab_size": base.tokenizer.vocab_size, **base.architecture}
        return num_tuned(from_settings(base.model_type, settings), model.training.adapter)
    raise Unknown(base.readable)


def _training(model: Trained) -> Job:
    recipe, base = model.training, weights_of(model.base)
    shape, epochs = base.shape, recipe.optimization.epochs
    if isinstance(recipe, Pretraining):
        num_words, length = words_in(model.corpus), recipe.sequence_length
        tokens = None if num_words is None else int(num_words * TOKENS_PER_WORD) * epochs
        if shape.context is not None and length > shape.context:
            raise ValueError(
                f"{model.base.readable} reads at most {shape.context} tokens, and is trained on sequences of {length}."
            )
    else:
        length, tokens = recipe.max_tokens, bound_of(model.corpus).tokens(recipe.max_tokens)
        if isinstance(recipe, Distillation) and recipe.num_steps is not None:
            tokens = recipe.num_steps * recipe.optimization.batch_size * length
        else:
            tokens = None if tokens is None else tokens * epochs
    teacher = weights_of(model.teacher) if model.teacher is not None else None
    num_tuned, frozen = shape.num_parameters, teacher.num_bytes if teacher else 0.0
    if recipe.adapts:
        num_tuned, frozen = _tuned(model), base.num_bytes
    return Job(
        recipe.work,
        model.readable,
        _identity(recipe.work, model),
        tokens,
        None if tokens is None else _operations_per_token(model) * tokens,
        lambda settings: memory.training(shape, frozen, num_tuned, recipe.optimization.optimizer, length, settings),
        num_tuned=num_tuned if recipe.adapts else None,
    )


def _observing(model: ModelSpec, spec: Any, tokens: int | None, what: str) -> Job:
    identity = _identity("observing", model, spec.corpus, what, getattr(spec, "max_tokens", None))
    if not model.has_weights:
        return _asking(model, identity, tokens, bound_of(spec.corpus).documents)
    weights = weights_of(model)
    operations = None if tokens is None else float(FORWARD * weights.shape.num_parameters * tokens)
    return Job(
        "observing",
        model.readable,
        identity,
        tokens,
        operations,
        lambda settings: memory.observing(weights.shape, weights.num_bytes, settings),
    )


def _asking(model: ModelSpec, identity: str, tokens: int | None, requests: int | None) -> Job:
    if isinstance(model, Recorded):  # asked of nobody
        tokens = requests = 0
    return Job("asking", model.readable, identity, tokens, None, requests=requests)


def _answers(model: ModelSpec, corpus: CorpusSpec, needs: Requirements, limit: int, kind: str, spec: Any) -> Job:
    """limit: tokens of a text, at most."""
    bound = bound_of(corpus)
    requests = None if bound.documents is None else bound.documents * needs.questions
    shown = math.ceil(needs.shown * (Bound(1, bound.words).tokens(limit) or limit)) + AROUND
    tokens = None if requests is None else requests * (shown + needs.answer_tokens)
    identity = _identity(kind, spec)
    if not model.has_weights:
        return _asking(model, identity, tokens, requests)
    weights = weights_of(model)
    each = None if requests is None else float(FORWARD * weights.shape.num_parameters * requests)
    return Job(
        "writing",
        model.readable,
        identity,
        tokens,
        None if each is None else each * shown,
        lambda settings: memory.writing(weights.shape, weights.num_bytes, settings),
        token_by_token=(each or 0.0) * needs.answer_tokens,
    )


def _identity(*parts: object) -> str:
    return hashlib.sha256(repr(_made_of(parts)).encode()).hexdigest()[:16]


def _made_of(part: Any) -> Any:
    """A spec as what it is made of, where a component that is read no times is none (as in the store's keys)."""
    match part:
        case None | str() | int() | float():  # most are, and asking whether one is a mapping is slow
            return part
        case Mixture():
            return [(_made_of(item.corpus), item.exposures) for item in part.components if item.exposures]
        case Mapping():
            return [(key, _made_of(value)) for key, value in part.items()]
        case list() | tuple():
            return [_made_of(item) for item in part]
        case _ if is_dataclass(part) and not isinstance(part, type):
            compared = [item.name for item in fields(part) if item.compare and item.name != "label"]
            return type(part).__name__, [(name, _made_of(getattr(part, name))) for name in compared]
    return part


def bound_of(corpus: CorpusSpec) -> Bound:
    return corpus.bound(_of_the_hub)


def words_in(corpus: CorpusSpec) -> int | None:
    """Most words of all documents together, each as long as it may be."""
    return corpus.most_words(_of_the_hub)


def _of_the_hub(path: str, names: Sequence[str | None]) -> Bound:
    described = hub_datasets().get(path)
    return Bound(None) if described is None else Bound(described.most_documents(*names), described.most_words(*names))
