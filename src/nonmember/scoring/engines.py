"""Who scores the parts of a streamed corpus: this process, one after the other, or the workers of Ray."""

from __future__ import annotations

import json
import logging
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Annotated, Any, Literal

from nonmember.checks import Checked, Count, Number
from nonmember.runtime.interruption import reinstate

SECONDS_TO_ANSWER = 10.0
OBJECT_STORE_BYTES = 2**27  # of a cluster of our own: what workers are given and give back are a few numbers
SETTINGS = {  # read when Ray is imported
    "RAY_USAGE_STATS_ENABLED": "0",  # else it reports to its makers
    "RAY_worker_niceness": "0",  # as this process; else workers give way to whatever else runs
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # errors come as exceptions
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # what it will do by default, and warns of
}
NOT_INSTALLED = (
    "engine=ray needs the package ray, which is not installed. Install it with `pip install 'nonmember[ray]'`, in this "
    "repository `.venv/bin/python -m pip install -e '.[ray]'`, or leave engine out: this process then does the work."
)

Manifest = Mapping[str, Any]
DuplicateIds = Literal["refuse", "first"]


class Engine(ABC):
    """Makes parts with a scorer that can be sent to other processes."""

    @abstractmethod
    def run(self, scorer: Callable[[Any], Manifest], parts: Sequence[Any]) -> Generator[Manifest]:
        """The manifest of each part when it is made, in any order."""


@dataclass(frozen=True)
class OwnProcess(Engine):
    """One part after the other."""

    def run(self, scorer: Callable[[Any], Manifest], parts: Sequence[Any]) -> Generator[Manifest]:
        for part in parts:
            yield scorer(part)


@dataclass(frozen=True)
class OnRay(Checked, Engine):
    """Actors of Ray Data, each of which loads the models once. One that is killed is started again, and its part made
    anew.

    address: of a Ray cluster ("auto": the one that this machine belongs to), all of whose nodes have this package and
    see the folders by the same paths; None: one is started on this machine for as long as the work takes.
    num_workers: actors.   num_cpus, num_gpus: of each, which are also its threads.
    """

    address: str | None
    num_workers: Annotated[int, Count(1)]
    num_cpus: Annotated[int, Count(1)]
    num_gpus: Annotated[float, Number("[0, inf)")]

    fields_called = "engine.{field}"

    def __post_init__(self) -> None:
        super().__post_init__()
        if find_spec("ray") is None:
            raise ValueError(NOT_INSTALLED)

    def run(self, scorer: Callable[[Any], Manifest], parts: Sequence[Any]) -> Generator[Manifest]:
        if not parts:
            return
        for variable, value in SETTINGS.items():
            os.environ.setdefault(variable, value)
        import ray
        import ray.data

        self._join(ray)
        reinstate()
        try:
            ray.data.DataContext.get_current().enable_progress_bars = False
            logging.getLogger("ray.data").setLevel(logging.ERROR)
            actors = ray.data.ActorPoolStrategy(size=self.num_workers, max_tasks_in_flight_per_actor=1)
            made = ray.data.range(len(parts), override_num_blocks=len(parts)).map(
                Worker,  # a class whose objects are called, as Ray Data wants for actors
                fn_constructor_args=(scorer, list(parts)),
                compute=actors,
                num_cpus=self.num_cpus,
                num_gpus=self.num_gpus,
            )
            for row in made.iter_rows():
                answer = json.loads(row["answer"])
                if "refused" in answer:
                    raise ValueError(answer["refused"])
                if "disk" in answer:
                    raise OSError(*answer["disk"])
                yield answer["manifest"]
        finally:
            ray.shutdown()

    def _join(self, ray: Any) -> None:
        if self.address is None:
            ray.init(
                address="local",
                num_cpus=self.num_workers * self.num_cpus,
                object_store_memory=OBJECT_STORE_BYTES,
                include_dashboard=False,
                log_to_driver=False,
                logging_level="ERROR",
            )
            return
        try:
            _reach(self.address)
            ray.init(address=self.address, log_to_driver=False, logging_level="ERROR")
        except OSError as error:
            raise ValueError(
                f"No Ray cluster answers at {self.address} ({error}). Correct engine.address; without it a cluster is "
                "started on this machine."
            ) from error


def _reach(address: str) -> None:
    """Raises OSError where nobody listens at HOST:PORT. Ray itself tries for five minutes, then ends the process."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=SECONDS_TO_ANSWER).close()


@dataclass(frozen=True)
class Parts(Checked):
    """How a streamed corpus is scored.

    engine: who does it.   mib: of ids and text in a part, about.   duplicate_ids: of documents with one id none is
    scored (refuse), or the first.
    """

    engine: Engine = field(default_factory=OwnProcess)
    mib: Annotated[int, Count(1)] = 4
    duplicate_ids: DuplicateIds = "refuse"

    fields_called = "parts.{field}"


class Worker:
    """In an actor of Ray. scorer: sent there without its models."""

    def __init__(self, scorer: Callable[[Any], Manifest], parts: Sequence[Any]) -> None:
        self._scorer, self._parts = scorer, parts

    def __call__(self, row: Mapping[str, int]) -> dict[str, str]:
        """row: the place of a part among those to make. What is for the user goes home as an answer, since Ray loses
        what an error was caused by."""
        answer: dict[str, Any]
        try:
            answer = {"manifest": self._scorer(self._parts[row["id"]])}
        except ValueError as error:
            answer = {"refused": str(error)}
        except OSError as error:
            answer = {"disk": [error.errno, error.strerror or str(error), str(error.filename or "")]}
        return {"answer": json.dumps(answer)}
