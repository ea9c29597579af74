"""Workers of Ray Data that score the parts of a streamed corpus, each with models of its own."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Any

from nonmember.checks import Checked, Count, Number
from nonmember.runtime.interruption import reinstate

SETTINGS = {  # read when Ray is imported
    "RAY_USAGE_STATS_ENABLED": "0",  # else it reports to its makers
    "RAY_worker_niceness": "0",  # as this process; else workers give way to whatever else runs
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # what it will do by default, and warns of
}
NOT_INSTALLED = "engine=ray needs Ray Data (pip install 'nonmember[ray]'). Leave it out, and one process does the work."

Manifest = Mapping[str, Any]


@dataclass(frozen=True)
class OnRay(Checked):
    """A worker that is killed is started again, and its part made anew.

    Attributes:
        address: Of a Ray cluster ("auto": the one that this machine belongs to), all of whose nodes have this package
            and see the folders by the same paths. None: one is started here for as long as the work takes.
        num_workers: Actors, each of which loads the models once.
        num_cpus: Of each, which are also its threads.
        num_gpus: Of each.
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

    def run(self, scorer: Callable[[Any], Manifest], parts: Sequence[Any]) -> Iterator[Manifest]:
        """The manifest of each part when it is made, in any order.   scorer: can be sent to other processes."""
        for variable, value in SETTINGS.items():
            os.environ.setdefault(variable, value)
        import ray
        import ray.data

        own = {"num_cpus": self.num_workers * self.num_cpus, "include_dashboard": False} if not self.address else {}
        ray.init(address=self.address or "local", log_to_driver=False, logging_level="ERROR", **own)
        reinstate()
        try:
            ray.data.DataContext.get_current().enable_progress_bars = False
            logging.getLogger("ray.data").setLevel(logging.ERROR)
            made = ray.data.range(len(parts), override_num_blocks=len(parts)).map(
                Worker,  # a class whose objects are called, as Ray Data wants for actors
                fn_constructor_args=(scorer, list(parts)),
                compute=ray.data.ActorPoolStrategy(size=self.num_workers, max_tasks_in_flight_per_actor=1),
                num_cpus=self.num_cpus,
                num_gpus=self.num_gpus,
            )
            for row in made.iter_rows():
                if row["refused"]:
                    raise ValueError(row["refused"])
                yield json.loads(row["manifest"])
        finally:
            ray.shutdown()


class Worker:
    """In an actor of Ray."""

    def __init__(self, scorer: Callable[[Any], Manifest], parts: Sequence[Any]) -> None:
        self._scorer, self._parts = scorer, parts

    def __call__(self, row: Mapping[str, int]) -> dict[str, str]:
        """row: the place of a part. What is for the user goes home as an answer: Ray would tell it in other words."""
        try:
            return {"manifest": json.dumps(self._scorer(self._parts[row["id"]])), "refused": ""}
        except (ValueError, OSError) as error:
            return {"manifest": "", "refused": str(error)}
