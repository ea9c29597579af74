"""Client for a server of OpenAI's protocol: every answer is paid for once and kept.

What the table of the endpoint has is not asked again, whichever audit asked it first. One process at a time asks;
another that wants the same answers waits, and finds them. A row is written as soon as an answer was read, so a process
that is killed loses at most the answers that were under way. Those may have been charged: a server that knows
idempotency keys gives them once more for nothing, and from others they cannot be fetched again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from nonmember.artifacts.store import Store
from nonmember.endpoints.errors import EndpointError, Unusable
from nonmember.endpoints.reading import parsed, row_of
from nonmember.endpoints.sending import Limits, Sending, Spent
from nonmember.endpoints.service import Sent, Service
from nonmember.endpoints.table import CompletionsTable, now, opened
from nonmember.models.base import last_part
from nonmember.runtime.files import is_locked, locked
from nonmember.runtime.processes import Waiting, process_rank, run_id
from nonmember.runtime.progress import Stage

log = logging.getLogger(__name__)

FORMAT = 1  # raise it when older tables are to be left alone

T = TypeVar("T")
Read = Callable[[Sent, Mapping[str, Any], str], T]  # what was sent, what came and when; may raise Unusable


@dataclass(frozen=True)
class Refused:
    """In the place of an answer: the server did not accept the request (`status` is that of HTTP), or its answer is of
    no use (0, and where another process was told)."""

    reason: str
    status: int = 0


@dataclass
class Session:
    """What one process has spent on endpoints, and found out about them.

    offers: by endpoint, what `capabilities` found.   refused: by the key of a request that was not accepted.
    """

    spent: Spent = field(default_factory=Spent)
    offers: dict[Service, dict[str, Any]] = field(default_factory=dict)
    refused: dict[str, Refused] = field(default_factory=dict)


class EndpointClient:
    """Asks one endpoint.

    num_asked, num_found: answers from the server, and from the table.   served: key -> who answered, by the server's
    word.   refused: key -> why there is no answer.   notes: what else a reader has to know.
    """

    def __init__(self, endpoint: Service, store: Store, limits: Limits | None, session: Session) -> None:
        self.endpoint = endpoint
        self.session = session
        self.num_asked = self.num_found = 0
        self.served: dict[str, str] = {}
        self.refused: dict[str, str] = {}
        self.notes: list[str] = []
        self._store = store
        self._limits = limits

    @property
    def name(self) -> str:
        return self.endpoint.label

    @property
    def folder(self) -> Path:
        endpoint = self.endpoint
        identity = {"url": endpoint.address, "model": endpoint.model, "form": endpoint.form}
        key = {"format": FORMAT, "endpoint": identity}
        return self._store.growing("completions", last_part(endpoint.model), key)

    def table(self) -> AbstractContextManager[CompletionsTable]:
        """The table of completions, opened."""
        return opened(self.folder)

    def warnings(self) -> list[str]:
        """What a reader has to know of the answers."""
        served = Counter(name for name in self.served.values() if name)
        if len(served) < 2:
            return self.notes
        models = ", ".join(f"{name} ({number:,} answers)" for name, number in served.most_common())
        return [f"{self.name} answered as {len(served)} models: {models}.", *self.notes]

    def exchange(
        self, wanted: Sequence[Sent], make: Read[T], description: str, *, probing: bool = False
    ) -> list[T | Refused]:
        """What `make` makes of the answer to each request, in their order; equal requests are asked once.

        Raises EndpointError where the server cannot be asked (any further) or the budget is spent; what came until then
        is in the table.
        """
        run_id()  # before further processes of this run inherit it
        of = {item.key: item for item in wanted}
        values: dict[str, T | Refused] = {}
        folder = self.folder

        def read(sent: Sent, response: Mapping[str, Any], date: str) -> T:
            try:
                value = make(sent, response, date)
            except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
                raise Unusable(f"the answer is not in the protocol's form ({type(error).__name__}: {error})") from None
            if not probing:
                self.served[sent.key] = str(response.get("model") or "")
            return value

        with opened(folder) as table:
            self._collect(table, of, read, values)
            if len(values) < len(of) and process_rank() > 0:
                self._follow(table, _without(of, values))
                self._collect(table, of, read, values)
            elif len(values) < len(of):
                with locked(folder / ".lock", f"asking {self.name}"):
                    self._collect(table, of, read, values)
                    if missing := _without(of, values):
                        self._ask(table, missing, read, values, description, probing=probing)
        return [values[item.key] for item in wanted]

    def _collect(
        self, table: CompletionsTable, of: Mapping[str, Sent], read: Read[T], values: dict[str, T | Refused]
    ) -> None:
        """What is known already of what has no value yet."""
        for key, response, date in table.find(_without(of, values)):
            try:
                values[key] = read(of[key], parsed(response)[1], date)
            except Unusable as reason:
                raise EndpointError(
                    f"{self.name}: an answer in the table of {self.folder} is damaged: {reason}."
                ) from None
            self.num_found += 1
        for key in _without(of, values):
            if key in self.session.refused:
                values[key] = refused = self.session.refused[key]
                self.refused[key] = refused.reason

    def _ask(
        self,
        table: CompletionsTable,
        missing: Mapping[str, Sent],
        read: Read[T],
        values: dict[str, T | Refused],
        description: str,
        *,
        probing: bool,
    ) -> None:
        limits, spent = self._needed_limits(), self.session.spent
        num_refused = 0
        if table.damaged:
            log.warning(
                "%s: %d answers in the table of %s are damaged (checksums do not match) and are asked again.",
                self.name,
                len(table.damaged),
                self.folder,
            )

        def receive(sent: Sent, text: str, response: Mapping[str, Any], cost: float | None) -> None:
            date = now()
            values[sent.key] = read(sent, response, date)
            table.add(row_of(sent, text, response, date, cost))
            self.num_asked += 1
            advance()

        def refuse(sent: Sent, reason: str, status: int) -> None:
            nonlocal num_refused
            num_refused += 1
            table.refuse(sent.key, reason, run_id())
            values[sent.key] = self.session.refused[sent.key] = Refused(reason, status)
            if not probing:
                self.refused[sent.key] = reason
            advance()

        def advance() -> None:
            stage.advance(note=_so_far(spent, limits))

        with Stage(description, len(missing), "questions") as stage:
            try:
                sending = Sending(
                    self.endpoint, limits, spent, receive, refuse, probing=probing, namespace=table.identity
                )
                run(sending.send(list(missing.values())))
            except EndpointError as error:
                raise type(error)(f"{self.name}: {error} {_kept(table)}".strip()) from None
        if not probing:
            log.info("%s: %s answers received, %s.", self.name, f"{self.num_asked:,}", _so_far(spent, limits))
        if num_refused and not probing:
            log.warning(
                "%s: %d of %d requests were not accepted, the first because: %s",
                self.name,
                num_refused,
                len(missing),
                next(iter(self.refused.values())),
            )

    def _follow(self, table: CompletionsTable, missing: Mapping[str, Sent]) -> None:
        """In a further process of a distributed run: wait until the first has asked."""
        wait = Waiting(f"the answers of {self.name}", lambda: is_locked(self.folder / ".lock"))
        while waiting := missing.keys() - {key for key, _, _ in table.find(missing)}:
            refused = table.refused(waiting, run_id())
            self.session.refused |= {key: Refused(reason) for key, reason in refused.items()}
            if waiting <= self.session.refused.keys():
                return
            wait.a_moment()

    def _needed_limits(self) -> Limits:
        if self._limits is None:
            raise ValueError(
                f"{self.name} can only be asked within limits, and none were given (Builder(..., asking=Limits(...)))."
            )
        return self._limits


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """To its end, also where a loop is running already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_watched(coroutine))
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _watched(coroutine)).result()


async def _watched(coroutine: Coroutine[Any, Any, None]) -> None:
    """An interruption strikes the task that happens to run, which nobody waits for any more: asyncio need not tell."""

    def told(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not isinstance(context.get("exception"), KeyboardInterrupt):
            loop.default_exception_handler(context)

    asyncio.get_running_loop().set_exception_handler(told)
    await coroutine


def _without(of: Mapping[str, Sent], values: Mapping[str, object]) -> dict[str, Sent]:
    return {key: sent for key, sent in of.items() if key not in values}


def _so_far(spent: Spent, limits: Limits) -> str:
    cost = "cost unknown" if limits.input_price is None else f"cost {spent.cost:.4g}"
    return f"{spent.requests:,} requests, {spent.tokens:,} tokens, {cost}"


def _kept(table: CompletionsTable) -> str:
    """What an error leaves behind."""
    number = len(table)
    return f"{number:,} answers are kept, and the same command goes on from there." if number else ""
