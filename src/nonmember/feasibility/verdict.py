"""What stands between a cell and its result: terms, services, devices, and what only the user knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from nonmember.audits.question import Audit
from nonmember.audits.walk import specs_in
from nonmember.checks import MARK
from nonmember.corpora import CorpusSpec, Hub
from nonmember.endpoints import Limits
from nonmember.endpoints.asked import Asked
from nonmember.endpoints.models import Endpoint, MaskedModel
from nonmember.feasibility.descriptions import HUB, HubDataset, HubModel, file_of, hub_datasets, hub_models, services
from nonmember.feasibility.jobs import LOOKING_UP, Job, Unknown, jobs_of, searchable
from nonmember.feasibility.memory import Machine, TrainerSettings, smaller
from nonmember.models import Access, Pretrained
from nonmember.observations import Measurement
from nonmember.reports.core import formats
from nonmember.runtime.naming import path_of

READY, WITH_SETTINGS, TERMS, GPUS, ASKS, UNKNOWN, RETIRED = (
    "ready",
    "ready with settings",
    "needs terms accepted",
    "needs {} GPUs",
    "asks",
    "unknown",
    "retired",
)


@dataclass(frozen=True)
class CheckResult:
    """A cell that was looked at."""

    status: str
    hub: tuple[str, ...]  # models, data sets and services that it needs from elsewhere
    asks: tuple[str, ...] = ()  # what the user must do or supply, in a sentence each
    num_gpus: int | None = None  # of one audit
    gib: float | None = None  # of one device, at the most
    settings: tuple[str, ...] = ()  # of the trainer, that make it fit
    jobs: tuple[Job, ...] = ()  # the work; empty where it is not known
    lacks: tuple[str, ...] = ()  # settings and files without which the number of documents is not known

    @property
    def num_tuned(self) -> int | None:
        return max((job.num_tuned for job in self.jobs if job.num_tuned), default=None)


def check(
    audit: Audit, trainer: TrainerSettings, limits: Limits, machine: Machine, today: date, missing: Sequence[str] = ()
) -> CheckResult:
    """missing: what the configuration leaves to the user, a sentence each."""
    specs = list(specs_in(list(audit.groups.values())))
    retired = list(_retired(specs, today))
    terms = _terms(specs)
    files = list(_files(specs))
    absent = [sentence for sentence, _ in files]
    asks = [*missing, *_consents(specs, audit), *dict.fromkeys(_limits(specs)), *absent]
    unknown, jobs = list(_undescribed(specs)), list[Job]()
    if not unknown:
        try:
            timed = ("asking",) if audit.lookup is None else ("asking", LOOKING_UP)  # else a look-up is only planned
            jobs = [_timed(job, limits, machine) if job.kind in timed else job for job in jobs_of(audit)]
        except Unknown as error:
            unknown = [f"the sizes of {error} are not known: no estimate of memory and time"]
        except ValueError as error:
            asks.append(str(error).rstrip("."))
    asks += [*_keys(specs), *_over(jobs, limits)]
    num_gpus, gib, settings = fitting(jobs, trainer, machine)
    if machine.device == "CPU" and num_gpus is not None and num_gpus > 1:
        gib, num_gpus, settings = num_gpus * (gib or 0.0), None, ()
    if num_gpus is None and jobs:
        needs = f"{gib:.0f} GiB of memory are needed" if gib else "more memory is needed"
        asks.append(
            f"{needs}, and this machine has {machine.gib:.0f}; describe a GPU with --gib and --tflops"
            if machine.device == "CPU"
            else f"no number of devices of {machine.gib:g} GiB holds it; give larger ones"
        )
    sentences = [*retired, *asks, *unknown]
    if terms:
        sentences.append(f"accept the terms of {formats.listed(terms)} on the hub, and set HF_TOKEN")
    if num_gpus is not None and num_gpus > 1:
        sentences.append(_spread(jobs, num_gpus, machine, settings))
    if settings:
        sentences.append(f"add {' '.join(settings)}")
    if (lookup := searchable(audit)) is not None and audit.lookup is None:
        sentences.append(
            f"an exact look-up in {lookup.readable} is planned (column requests); to have it, add truth=infinigram, "
            f"which sends up to {lookup.per_document} sequences of 13 words of each document to {lookup.url}"
        )
    if any(job.seconds for job in jobs):
        sentences.append(_assumed(limits, machine))
    many = (num_gpus or 1) > 1
    status = next(
        name
        for name, holds in (
            (RETIRED, retired),
            (UNKNOWN, unknown),
            (ASKS, asks),
            (GPUS.format(num_gpus), many),
            (TERMS, terms),
            (WITH_SETTINGS, settings),
            (READY, True),
        )
        if holds
    )
    if many and terms and status == GPUS.format(num_gpus):
        status += ", terms accepted"
    lacks, hub = dict.fromkeys(_lacking(specs, [spec for _, spec in files])), hub_names(specs)
    if assumed := [f"{number} documents in {path}" for path in lacks if (number := _assumed_of(path)) is not None]:
        sentences.append(f"tokens and hours assume {formats.listed(assumed)}")
    return CheckResult(status, tuple(hub), tuple(sentences), num_gpus, gib, settings, tuple(jobs), tuple(lacks))


def _timed(job: Job, limits: Limits, machine: Machine) -> Job:
    """With the time that asking takes."""
    if job.requests is None or (limits.tokens_per_minute is not None and job.tokens is None):
        return replace(job, seconds=None)
    return replace(job, seconds=limits.seconds(job.requests, job.tokens or 0, machine.seconds_per_request))


def _assumed(limits: Limits, machine: Machine) -> str:
    rates = {"requests": limits.requests_per_minute, "tokens": limits.tokens_per_minute}
    most = "".join(f", at most {rate:,g} {name} a minute" for name, rate in rates.items() if rate is not None)
    return (
        f"hours of asking assume {machine.seconds_per_request:g} s a request (--seconds-per-request), "
        f"{limits.concurrency} at once (asking.concurrency){most}"
    )


def hub_names(specs: Iterable[Any]) -> list[str]:
    """Models, data sets and services from elsewhere, sorted."""
    names = set()
    for spec in specs:
        match spec:
            case Pretrained() | MaskedModel() | Hub() if not path_of(spec.path).exists():
                names.add(spec.path)
            case Endpoint():
                names.add(spec.model)
    return sorted(names)


def fitting(
    jobs: Sequence[Job], trainer: TrainerSettings, machine: Machine
) -> tuple[int | None, float | None, tuple[str, ...]]:
    """Fewest devices, memory of each at the most in GiB, and the settings it takes."""
    held = [job.needs for job in jobs if job.needs is not None]
    if not held:
        return (0, 0.0, ()) if jobs else (None, None, ())
    best: tuple[int, float, tuple[str, ...]] | None = None
    for settings, overrides in smaller(trainer):
        needs = [need(settings) for need in held]
        numbers = [need.devices(machine) for need in needs]
        if None in numbers:
            continue
        number = max(item for item in numbers if item is not None)
        each = max(need.fixed + need.shared / number for need in needs) / 2**30
        if best is None or number < best[0]:
            best = number, each, overrides
        if number == 1:
            break
    return best or (None, max(need(trainer).total for need in held) / 2**30, ())


def _spread(jobs: Sequence[Job], number: int, machine: Machine, settings: Sequence[str]) -> str:
    over = {job.kind for job in jobs if job.needs and job.needs is not None and _too_large(job, machine)}
    ways = []
    if over & {"training", "distilling"}:
        ways.append(f"trainer=fsdp trainer.make_trainer.devices={number}")
    if "tuning" in over:  # on one device, with the model that is then observed
        ways.append("target.quantization=4bit, with which one of them may hold it")
    elif over & {"observing", "writing"}:
        ways.append("target.device_map=auto (of another role where that model is the large one)")
    return f"with {number} GPUs of {machine.gib:g} GiB: {' and '.join(ways)}"


def _too_large(job: Job, machine: Machine) -> bool:
    least = TrainerSettings(1, 2048, 64, 64, 1024, mixed=True, gradient_checkpointing=True)
    return job.needs is not None and job.needs(least).total > machine.usable


def _retired(specs: Iterable[Any], today: date) -> Iterator[str]:
    for name in sorted({spec.model for spec in specs if isinstance(spec, Endpoint)}):
        service = services().get(name)
        if service is not None and service.is_retired(today):
            instead = f"; take {service.instead} instead" if service.instead else ""
            yield f"{service.provider} has not served {name} since {service.until}{instead}"


def _terms(specs: Iterable[Any]) -> list[str]:
    known = {spec.path: _known(spec) for spec in specs if isinstance(spec, Pretrained | Hub)}
    return sorted(path for path, item in known.items() if item is not None and item.terms == "accept")


def _keys(specs: Iterable[Any]) -> Iterator[str]:
    """Secrets of services that are known; a server of one's own may want none."""
    endpoints = {(spec.model, spec.key_variable) for spec in specs if isinstance(spec, Endpoint)}
    for name, variable in sorted(endpoints):
        service = services().get(name)
        if service is not None and service.provider:
            yield f"set {variable} to a key of {service.provider}"


def _over(jobs: Iterable[Job], limits: Limits) -> Iterator[str]:
    """What a cell may ask of services beyond the budget of a process, which all of its cells share."""
    asked = [job for job in jobs if job.requests is not None and job.kind != LOOKING_UP]
    requests, tokens = sum(job.requests or 0 for job in asked), sum(job.tokens or 0 for job in asked)
    overrides = [
        f"asking.{name}={number}"
        for name, number, most in (
            ("max_requests", requests, limits.max_requests),
            ("max_tokens", tokens, limits.max_tokens),
        )
        if most is not None and number > most
    ]
    if overrides:
        yield f"allow what it may ask: {' '.join(overrides)} (for each cell of one process)"


def _known(spec: Any) -> HubModel | HubDataset | None:
    """The description of what lies on the hub."""
    if isinstance(spec, Pretrained):
        return hub_models().get(spec.path)
    return hub_datasets().get(spec.path) if isinstance(spec, Hub) else None


def _consents(specs: Iterable[Any], audit: Audit) -> Iterator[str]:
    models = {spec.path: spec for spec in specs if isinstance(spec, Pretrained)}
    for path, model in sorted(models.items()):
        known = hub_models().get(path)
        if known is not None and known.remote_code and not model.trust_remote_code:
            role = "target" if audit.target == model else "reference" if audit.reference == model else "MODEL"
            packages = f", and install {', '.join(known.packages)}" if known.packages else ""
            trust = f"add {role}.trust_remote_code=true"
            yield f"the code of {path} comes with its weights; if you trust it, {trust}{packages}"


def _files(specs: Iterable[Any]) -> Iterator[tuple[str, CorpusSpec]]:
    """What lies on no hub and not here either: in a sentence, and itself."""
    for spec in specs:
        if isinstance(spec, CorpusSpec) and not isinstance(spec, Hub) and ":" not in str(getattr(spec, "path", "")):
            try:
                spec.validate()
            except ValueError as error:
                # Without where this command was started: the table is for others too.
                yield str(error).replace(f" (relative ones start at {Path.cwd()})", "").rstrip("."), spec


def _lacking(specs: Iterable[Any], absent: Iterable[CorpusSpec]) -> Iterator[str]:
    """The keys of paths that are not given, and the paths of files that are not there."""
    for spec in specs:
        if isinstance(spec, CorpusSpec):
            yield from (path.removeprefix(MARK) for path in _paths(spec) if path.startswith(MARK))
    for spec in absent:
        yield from _paths(spec)


def _assumed_of(path: str) -> int | None:
    """Documents of a file that is not there."""
    described = hub_datasets().get(Path(path).name)
    return None if described is None else described.most_documents()


def _paths(spec: CorpusSpec) -> Sequence[str]:
    paths: str | Sequence[str] = getattr(spec, "path", ())
    return (paths,) if isinstance(paths, str) else paths


def _limits(specs: Iterable[Any]) -> Iterator[str]:
    """What a service does not give, of what is asked of it."""
    for spec in specs:
        if not (isinstance(spec, Measurement) and isinstance(spec.model, Endpoint)):
            continue
        name, known = spec.model.model, services().get(spec.model.model)
        if spec.access >= Access.PROMPT_LOGPROBS:
            yield f"{name} can only be queried, but the method needs more; choose a model whose weights are available"
        most = known.top_logprobs if known is not None else None
        probe: Any = spec.probe if isinstance(spec, Asked) else None
        wanted = probe.top_logprobs if getattr(probe, "reading", "text") == "probabilities" else 0
        wanted = max(wanted, 1 if spec.access == Access.TOP_LOGPROBS else 0)
        if most is not None and wanted > most:
            hint = f"; add method.top_logprobs={most}" if most else "; choose another model"
            yield f"{name} lists {most} alternatives to a token and {wanted} are asked for{hint}"


def _undescribed(specs: Iterable[Any]) -> Iterator[str]:
    for path in sorted({spec.path for spec in specs if isinstance(spec, Pretrained)} - hub_models().keys()):
        if not path_of(path).exists() and ":" not in path:
            yield f"no description of {path}; add {file_of(path)}"
    known = hub_datasets().keys()
    for path in sorted({spec.path for spec in specs if isinstance(spec, Hub)} - known):
        if not path_of(path).exists() and ":" not in path:
            yield f"no description of the data set {path}; add it to {HUB.name}/datasets.yaml"
    hosted = (spec for spec in specs if isinstance(spec, Endpoint) and not spec.is_local)  # nobody retires those here
    for name in sorted({spec.model for spec in hosted} - services().keys()):
        if ":" not in name:
            yield f"no description of {name} behind a service; add it to {HUB.name}/services.yaml"
