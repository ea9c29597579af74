"""Client for a server of OpenAI's protocol: every answer is paid for once and kept.

Requests are sent concurrently, within budget and rate limits, with retries. What the table of the endpoint has is not
asked again, whichever audit asked it first. One process at a time asks; another that wants the same answers waits, and
finds them. A row is written as soon as an answer was read, so a process that is killed loses at most the answers that
were under way. Those may have been charged: a server that knows idempotency keys gives them once more for nothing, and
from others they cannot be fetched again.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

from nonmember.artifacts.store import Store
from nonmember.checks import Checked, Count, Number
from nonmember.endpoints.reading import (
    NOT_PERMITTED,
    EndpointError,
    NotAccepted,
    RetryableError,
    Unusable,
    form_of,
    limit_size,
    most_bytes,
    parsed,
    raise_for_status,
    read_completion,
    usage,
    was_declined,
    without,
)
from nonmember.endpoints.service import Sent, Service
from nonmember.endpoints.table import CompletionRow, CompletionsTable, now, opened
from nonmember.models.base import last_part
from nonmember.runtime.files import is_locked, locked
from nonmember.runtime.processes import Waiting, process_rank, run_id
from nonmember.runtime.progress import Stage

if TYPE_CHECKING:
    import openai

FORMAT = 1  # raise it when older tables are to be left alone

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0  # seconds between attempts, doubled each time
TEMPLATE_TOKENS = 64  # more than a chat template puts around a question
BYTES_PER_TOKEN = 4  # roughly, where nothing depends on it
RETRIES_OF_PROBES = 1  # a server that fails at what it does not know shall not be asked for minutes
MOST_UNUSABLE = 5  # answers in a row that cannot be used: each was paid for, and the next will be no better
NO_SECRET = "none"  # which is not sent

T = TypeVar("T")
Read = Callable[[Sent, Mapping[str, Any], str], T]  # what was sent, the answer and its date; may raise Unusable
Received = Callable[[Sent, str, Mapping[str, Any], float | None], None]
DECLINED = {"choices": [{"finish_reason": "content_filter", "message": {"content": ""}}]}
LARGEST_BUDGET = 2**63 - 1
MOST_AT_ONCE = 10_000  # connections; no server takes more
MOST_RETRIES = 1_000


class _Stopped(Exception):
    """Not sent any more, since the run is at its end."""


class Sending:
    """One run of requests.

    receive: is given each answer (request, text and JSON of the response, cost) and keeps it; may raise Unusable.
    refuse: called with each request that the server does not accept, why, and the status of HTTP (0: it is the answer
    that is of no use).   spent: counted up.
    probing: the server may fail at it.
    namespace: in which a request's key is unique; by both together a server that can do so knows that it
    has answered (and charged) before.
    """

    def __init__(
        self,
        service: Service,
        limits: Limits,
        spent: Spent,
        receive: Received,
        refuse: Callable[[Sent, str, int], None],
        *,
        probing: bool,
        namespace: str,
    ) -> None:
        self._service = service
        self._limits = limits
        self._receive = receive
        self._refuse = refuse
        self._probing = probing
        self._namespace = namespace
        self._max_retries = min(limits.max_retries, RETRIES_OF_PROBES) if probing else limits.max_retries
        self._secrets = service.secrets()
        self._headers = _headers(service)
        self._stop = asyncio.Event()
        self._pace = Pace(limits.requests_per_minute, limits.tokens_per_minute, self._stop)
        self._budget = RequestBudget(limits, spent)
        self._ended_by: Exception | None = None
        self._num_answered = 0
        self._num_unusable = 0  # since the last that could be used
        self._most_beyond_bytes = 0  # tokens of a prompt by the server's count, beyond the bytes of its text

    async def send(self, requests: Sequence[Sent]) -> None:
        """Raises EndpointError where the run has to end early, when nothing is under way any more."""
        waiting = iter(requests)
        async with _client(self._service, self._limits) as client, asyncio.TaskGroup() as group:
            for _ in range(min(self._limits.concurrency, len(requests))):
                group.create_task(self._work(client, waiting))
        if self._ended_by is not None:
            raise self._ended_by

    async def _work(self, client: openai.AsyncOpenAI, waiting: Iterator[Sent]) -> None:
        for sent in waiting:
            if self._stop.is_set():
                return
            try:
                text, response, cost = await self._answer(client, sent)
                self._receive(sent, text, response, cost)
                self._num_unusable = 0
            except NotAccepted as reason:
                self._refuse(sent, str(reason), reason.status)
                if reason.status in NOT_PERMITTED:  # a filter may stop one text, and a key that ran out all of them
                    self._count_unusable(str(reason))
            except Unusable as reason:
                self._refuse(sent, str(reason), 0)
                self._count_unusable(str(reason))
            except _Stopped:
                return
            except Exception as error:  # whatever it is, the answers under way are waited for and kept
                self._ended_by = self._ended_by or error
                self._stop.set()
                return

    def _count_unusable(self, reason: str) -> None:
        self._num_unusable += 1
        if self._num_unusable >= MOST_UNUSABLE and not self._probing:
            error = EndpointError(
                f"the last {self._num_unusable} answers could not be used ({reason}), and may have been charged for. "
                "Look at what the server sends, then start again to continue."
            )
            self._ended_by = self._ended_by or error
            self._stop.set()

    async def _answer(self, client: openai.AsyncOpenAI, sent: Sent) -> tuple[str, Mapping[str, Any], float | None]:
        """In as many attempts as it takes and may."""
        num_answered_before, num_failed = self._num_answered, 0
        while True:
            try:
                answer = await self._attempt(client, sent)
            except RetryableError as error:
                num_failed += 1
                if num_failed > (self._limits.max_retries if error.crowded else self._max_retries):
                    raise self._given_up(error, num_failed, self._num_answered > num_answered_before) from None
                if error.wait is not None and error.crowded:
                    self._pace.hold(error.wait)
                await self._pace.rest(_pause(error, num_failed))
            else:
                self._num_answered += 1
                return answer

    def _given_up(self, error: RetryableError, num_failed: int, others_were_answered: bool) -> Exception:
        what = f"no answer in {num_failed} attempts, at last: {error}"
        if (others_were_answered and not error.crowded) or (self._probing and error.broken):
            return NotAccepted(what)  # it is this request that fails
        return EndpointError(f"{what}.")

    async def _attempt(self, client: openai.AsyncOpenAI, sent: Sent) -> tuple[str, Mapping[str, Any], float | None]:
        num_bytes = len(sent.prompt.encode("utf-8", "surrogatepass"))
        expected = num_bytes // BYTES_PER_TOKEN + sent.max_new_tokens
        most = self._most(num_bytes, sent.max_new_tokens)
        await self._pace.turn(expected)
        await self._budget.reserve(most)
        spent = most  # unless more is known: an answer that did not arrive may have been charged for
        try:
            if self._stop.is_set():
                spent = Spent()
                raise _Stopped
            text, response = await self._post(client, sent)
            spent, cost = self._spent(response, most, num_bytes)
            self._pace.correct(spent.tokens - expected)
            return text, response, cost
        except RetryableError as error:
            spent = most if error.charged else Spent(requests=1)
            raise
        except (EndpointError, NotAccepted):
            spent = Spent(requests=1)
            raise
        finally:
            await self._budget.settle(most, spent)

    def _most(self, num_bytes: int, max_new_tokens: int) -> Spent:
        """What a request can cost: a tokenizer that knows every byte makes no more tokens than there are bytes."""
        prompt_tokens = num_bytes + max(TEMPLATE_TOKENS, self._most_beyond_bytes)
        cost = self._limits.cost(prompt_tokens, max_new_tokens) or 0.0
        return Spent(1, prompt_tokens + max_new_tokens, cost)

    def _spent(self, response: Mapping[str, Any], most: Spent, num_bytes: int) -> tuple[Spent, float | None]:
        prompt_tokens, completion_tokens = usage(response)
        if not prompt_tokens:  # the server does not count
            return most, None
        self._most_beyond_bytes = max(self._most_beyond_bytes, prompt_tokens - num_bytes)
        cost = self._limits.cost(prompt_tokens, completion_tokens)
        return Spent(1, prompt_tokens + completion_tokens, cost or 0.0), cost

    async def _post(self, client: openai.AsyncOpenAI, sent: Sent) -> tuple[str, Mapping[str, Any]]:
        """The response as text and as JSON, our secret taken out of it. Raises what `errors` has."""
        import httpx2
        import openai

        most_bytes.set(sent.most_bytes)
        late = f"no answer within {self._limits.timeout:g} seconds (asking.timeout)"
        try:
            async with asyncio.timeout(self._limits.timeout):
                # Past the client's typed methods: they would check and copy every field, and we keep the text.
                headers = {"Idempotency-Key": f"{self._namespace}-{sent.key}", **self._headers}
                options: Any = {"headers": headers}
                raw = await client.post(
                    f"/{sent.route}", cast_to=httpx2.Response, body=dict(sent.body), options=options
                )
        except (TimeoutError, openai.APITimeoutError):
            raise RetryableError(late, charged=True) from None
        except openai.APIStatusError as error:
            body = self._without_secret(error.body)
            if was_declined(error.status_code, body):
                return json.dumps(DECLINED | {"error": body}), DECLINED
            self._raise_for_status(error.status_code, error.response.headers, body)
        except openai.APIConnectionError as error:
            raise self._unconnected(error.__cause__, httpx2) from None
        except UnicodeEncodeError:
            raise NotAccepted("its text is not valid Unicode") from None
        text, response = parsed(raw.content.decode("utf-8-sig", "replace"), self._secrets)
        if not isinstance(response, Mapping) or not self._service.has_answer(response, sent):
            raise self._without_answer(text, response)
        return text, response

    def _raise_for_status(self, status: int, headers: Mapping[str, str], body: Any) -> NoReturn:
        model, variable = self._service.model, self._service.key_variable
        raise_for_status(status, headers, body, model=model, key_variable=variable)

    def _unconnected(self, cause: BaseException | None, httpx2: Any) -> Exception:
        reason = self._hidden(str(cause) or type(cause).__name__)
        if isinstance(cause, httpx2.ConnectError) and not self._num_answered:
            return EndpointError(f"there is no server at that address ({reason}). Start it, or correct `url`.")
        if isinstance(cause, httpx2.UnsupportedProtocol | httpx2.LocalProtocolError):  # whose text may hold the secret
            variable = self._service.key_variable
            return EndpointError(f"nothing can be sent there. Correct `url` or the environment variable {variable}.")
        return RetryableError(f"the connection was cut ({reason})", charged=not isinstance(cause, httpx2.ConnectError))

    def _without_answer(self, text: str, response: Any) -> Exception:
        """Of a response of status 200 without an answer."""
        if isinstance(response, Mapping) and (error := response.get("error")):
            code = error.get("code") if isinstance(error, Mapping) else None
            if type(code) is int and 400 <= code < 600:  # the status of HTTP, said within
                self._raise_for_status(code, {}, response)
            return RetryableError(f"an error in place of an answer: {self._hidden(str(error))[:200]}", charged=True)
        form, protocol = form_of(text), self._service.protocol
        if self._num_answered or not self._probing:  # a probe has been answered before anything else is sent
            self._count_unusable(f"they have another form than {protocol}: {form}")
            return RetryableError(f"an answer in another form than {protocol}: {form}", charged=True)
        return EndpointError(
            f"the server answers in another form than {protocol}: {form}. Give `url` up to and including /v1, and as "
            "`form` (chat or completions) what the server has."
        )

    def _without_secret(self, error: Any) -> Any:
        """Of an error, in which nothing is lost by hiding too much."""
        try:
            return without(error, self._secrets)
        except RecursionError:
            return ""

    def _hidden(self, text: str) -> str:
        return str(without(text, self._secrets))


def _client(service: Service, limits: Limits) -> openai.AsyncOpenAI:
    import httpx2
    import openai

    logging.getLogger("httpx2").setLevel(logging.WARNING)  # it tells addresses, and a query may hold a secret
    pool = httpx2.Limits(max_connections=limits.concurrency, max_keepalive_connections=limits.concurrency)
    try:
        http = openai.DefaultAsyncHttpxClient(
            limits=pool,
            timeout=limits.timeout,
            follow_redirects=False,
            headers={"Accept-Encoding": "identity"},
            event_hooks={"response": [limit_size]},
            verify=_certificates(),
            trust_env=not service.is_local,  # what goes to this machine goes through no proxy
        )
    except (ImportError, OSError, ValueError) as error:
        raise EndpointError(
            f"no connection can be made as the environment wants it ({error}). Correct the proxy in HTTP_PROXY, "
            "HTTPS_PROXY or ALL_PROXY, or the certificates in SSL_CERT_FILE or SSL_CERT_DIR."
        ) from None
    return openai.AsyncOpenAI(
        api_key=service.secret() or NO_SECRET,
        base_url=service.address,
        max_retries=0,
        timeout=limits.timeout,
        http_client=http,
        default_query=service.query(),
    )


def _headers(service: Service) -> dict[str, Any]:
    """Of every request: without a secret none is sent, though the client wants some."""
    import openai

    secret = service.secret()
    headers: dict[str, Any] = {name.lower(): openai.Omit() for name in service.unwanted_headers}
    headers["authorization"] = f"Bearer {secret}" if secret else openai.Omit()
    return headers | {name.lower(): value for name, value in service.headers().items()}


@functools.cache
def _certificates() -> Any:
    """Whom to trust, read once a process: a client is made for each run of requests."""
    import httpx2

    return httpx2.create_ssl_context()


def _pause(error: RetryableError, num_failed: int) -> float:
    """Longer each time, and never in step with the others. What the server asks for is the least."""
    grown = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (num_failed - 1)) * random.uniform(0.5, 1.0)
    return grown if error.wait is None else error.wait + 0.1 * grown


@dataclass(frozen=True)
class Limits(Checked):
    concurrency: Annotated[int, Count(1, MOST_AT_ONCE)]  # requests under way at once
    # requests_per_minute, tokens_per_minute: null for no limit
    requests_per_minute: Annotated[float | None, Number("(0, inf)")]
    tokens_per_minute: Annotated[float | None, Number("(0, inf)")]
    timeout: Annotated[float, Number("(0, inf)")]  # seconds for one answer
    max_retries: Annotated[int, Count(0, MOST_RETRIES)]  # of one request, after 429, 5xx, a timeout or a cut connection
    # max_requests, max_tokens, max_cost: the budget of one process, null for none; it stops before one is passed.
    # Tokens are those sent and received together; what may still come of requests under way is counted in.
    max_requests: Annotated[int | None, Count(1, LARGEST_BUDGET)]
    max_tokens: Annotated[int | None, Count(1, LARGEST_BUDGET)]
    max_cost: Annotated[float | None, Number("[0, inf)")]
    # input_price, output_price: of a million tokens, in the currency that max_cost is meant in; null: unknown, and then
    # so is the cost
    input_price: Annotated[float | None, Number("[0, inf)")]
    output_price: Annotated[float | None, Number("[0, inf)")]

    fields_called = "asking.{field}"

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.input_price is None) != (self.output_price is None):
            raise ValueError("asking.input_price and asking.output_price go together: give both, or neither.")
        if self.max_cost is not None and self.input_price is None:
            raise ValueError(
                "asking.max_cost can only be kept where prices are known: give asking.input_price and "
                "asking.output_price, of a million tokens each."
            )

    def seconds(self, requests: int, tokens: int, each: float) -> float:
        """Of asking, where every request takes `each` and none is repeated; the slowest of the limits decides."""
        at_once = math.ceil(requests / self.concurrency) * each
        of_requests = 60 * requests / self.requests_per_minute if self.requests_per_minute else 0.0
        of_tokens = 60 * tokens / self.tokens_per_minute if self.tokens_per_minute else 0.0
        return max(at_once, of_requests, of_tokens)

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """None where prices are unknown."""
        if self.input_price is None or self.output_price is None:
            return None
        return (prompt_tokens * self.input_price + completion_tokens * self.output_price) / 1e6


class BudgetSpent(EndpointError):
    """The next request could pass the budget."""


@dataclass
class Spent:
    requests: int = 0  # sent, successful or not
    tokens: int = 0  # sent and received
    cost: float = 0.0  # 0 where prices are unknown

    def add(self, other: Spent, times: int = 1) -> None:
        self.requests += times * other.requests
        self.tokens += times * other.tokens
        self.cost += times * other.cost


class RequestBudget:
    """Requests are let through while all that is spent, and the most that those under way can still cost, stays within
    the limits. spent: of the whole process, and counted up here."""

    def __init__(self, limits: Limits, spent: Spent) -> None:
        self._limits = limits
        self._spent = spent
        self._under_way = Spent()
        self._changed = asyncio.Condition()

    async def reserve(self, most: Spent) -> None:
        """Wait until so much fits; raises BudgetSpent where it never will."""
        async with self._changed:
            while (passed := self._passed_with(most)) is not None:
                if not self._under_way.requests:
                    raise BudgetSpent(passed)
                await self._changed.wait()  # those under way may have cost less than they could
            self._under_way.add(most)

    async def settle(self, reserved: Spent, spent: Spent) -> None:
        """Record the usage of a request."""
        async with self._changed:
            self._under_way.add(reserved, times=-1)
            if not self._under_way.requests:
                self._under_way = Spent()  # sums of prices do not come back to zero
            self._spent.add(spent)
            self._changed.notify_all()

    def _passed_with(self, most: Spent) -> str | None:
        limits, spent, under_way = self._limits, self._spent, self._under_way
        number, tokens, cost = limits.max_requests, limits.max_tokens, limits.max_cost
        if number is not None and spent.requests + under_way.requests + most.requests > number:
            return f"The budget of {number:,} requests (asking.max_requests) is spent: {spent.requests:,} were sent."
        if tokens is not None and spent.tokens + under_way.tokens + most.tokens > tokens:
            return (
                f"The budget of {tokens:,} tokens (asking.max_tokens) could be passed by the next request: "
                f"{spent.tokens:,} are spent, and it can take {most.tokens:,}."
            )
        if cost is not None and spent.cost + under_way.cost + most.cost > cost:
            return (
                f"The budget of {cost:g} (asking.max_cost) could be passed by the next request: {spent.cost:.6g} is "
                f"spent, and it can cost {most.cost:.2g}."
            )
        return None


class Pace:
    """Rates: hands out turns, evenly spaced. stop: ends every wait when it is set."""

    def __init__(self, requests_per_minute: float | None, tokens_per_minute: float | None, stop: asyncio.Event) -> None:
        self._seconds_per_request = 60 / requests_per_minute if requests_per_minute else 0.0
        self._seconds_per_token = 60 / tokens_per_minute if tokens_per_minute else 0.0
        self._next_request = self._next_tokens = self._held_until = 0.0
        self._stop = stop

    async def turn(self, tokens: int) -> None:
        """Wait for one's turn with about so many tokens."""
        now = time.monotonic()
        turn = max(now, self._next_request, self._next_tokens)
        self._next_request = turn + self._seconds_per_request
        self._next_tokens = turn + tokens * self._seconds_per_token
        await self.rest(turn - now)
        while (held := self._held_until - time.monotonic()) > 0 and not self._stop.is_set():
            await self.rest(held)

    def correct(self, more_tokens: int) -> None:
        """A request took so many more tokens (or fewer, below 0) than was said for its turn."""
        self._next_tokens += more_tokens * self._seconds_per_token

    def hold(self, seconds: float) -> None:
        """Nobody's turn comes earlier."""
        self._held_until = max(self._held_until, time.monotonic() + seconds)

    async def rest(self, seconds: float) -> None:
        if seconds > 0 and not self._stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), seconds)


log = logging.getLogger(__name__)

# Keeping what comes ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Refused:
    """In the place of an answer: the server did not accept the request (`status` is that of HTTP), or its answer is of
    no use (0, and where another process was told)."""

    reason: str
    status: int = 0


@dataclass
class Session:
    """What one process has spent on endpoints, and found out about them."""

    spent: Spent = field(default_factory=Spent)
    offers: dict[Service, dict[str, Any]] = field(default_factory=dict)  # by endpoint, what `capabilities` found
    refused: dict[str, Refused] = field(default_factory=dict)  # by the key of a request that was not accepted


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

    def row(self, sent: Sent, text: str, response: Mapping[str, Any], date: str, cost: float | None) -> CompletionRow:
        """An answer as a row of the table. text: the raw response."""
        return row_of(sent, text, response, date, cost)

    def warnings(self) -> list[str]:
        """What a reader has to know of the answers."""
        served = Counter(name for name in self.served.values() if name)
        models = ", ".join(f"{name} ({number:,} answers)" for name, number in served.most_common())
        if len(served) > 1:
            return [f"{self.name} answered as {len(served)} models: {models}.", *self.notes]
        if any(not _are_alike(name, self.endpoint.model) for name in served):
            return [f"{self.name} answered under another name than it was asked by: {models}.", *self.notes]
        return self.notes

    def probe(self, sent: Sent, make: Read[T]) -> T | Refused:
        """What `make` makes of the answer to a request that the server may fail at."""
        (value,) = self.exchange([sent], make, "probing", probing=True)
        return value

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
            if values and not probing:
                log.info(
                    "%s: %d of %d answers are known from before. If another model answers there by now, move %s away.",
                    *(self.name, len(values), len(of), folder),
                )
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
                if process_rank() > 0:  # the first process asks again
                    raise EndpointError(f"{self.name}: a kept answer cannot be read: {reason}. Start again.") from None
                table.damaged.add(key)
                continue
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
        if self._limits is None:
            raise ValueError(
                f"{self.name} can only be asked within limits, and none were given (Builder(..., asking=Limits(...)))."
            )
        limits, spent = self._limits, self.session.spent
        num_refused = 0
        if table.damaged:
            where = f"in the table of {self.folder} are damaged, or cannot be read, and are asked again"
            log.warning("%s: %d answers %s.", self.name, len(table.damaged), where)

        def receive(sent: Sent, text: str, response: Mapping[str, Any], cost: float | None) -> None:
            date = now()
            values[sent.key] = read(sent, response, date)
            table.add(self.row(sent, text, response, date, cost))
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
            of_all, why = f"{num_refused} of {len(missing)}", next(iter(self.refused.values()))
            log.warning("%s: %s requests were not accepted, the first because: %s", self.name, of_all, why)

    def _follow(self, table: CompletionsTable, missing: Mapping[str, Sent]) -> None:
        """In a further process of a distributed run: wait until the first has asked."""
        wait = Waiting(f"the answers of {self.name}", lambda: is_locked(self.folder / ".lock"))
        while waiting := missing.keys() - {key for key, _, _ in table.find(missing)}:
            refused = table.refused(waiting, run_id())
            self.session.refused |= {key: Refused(reason) for key, reason in refused.items()}
            if waiting <= self.session.refused.keys():
                return
            wait.a_moment()


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

    def pass_on(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not isinstance(context.get("exception"), KeyboardInterrupt):
            loop.default_exception_handler(context)

    asyncio.get_running_loop().set_exception_handler(pass_on)
    await coroutine


def _are_alike(served: str, asked: str) -> bool:
    """Whether two names may be one model's: with a date behind it, say, or with its owner before it."""
    names = [last_part(name).casefold() for name in (served, asked)]
    return names[0] in names[1] or names[1] in names[0]


def _without(of: Mapping[str, Sent], values: Mapping[str, object]) -> dict[str, Sent]:
    return {key: sent for key, sent in of.items() if key not in values}


def _so_far(spent: Spent, limits: Limits) -> str:
    cost = "cost unknown" if limits.input_price is None else f"cost {spent.cost:.4g}"
    return f"{spent.requests:,} requests, {spent.tokens:,} tokens, {cost}"


def _kept(table: CompletionsTable) -> str:
    """What an error leaves behind."""
    number = len(table)
    return f"{number:,} answers are kept, and the same command goes on from there." if number else ""


def row_of(sent: Sent, text: str, response: Mapping[str, Any], date: str, cost: float | None) -> CompletionRow:
    """A completion as a row of the table."""
    read = read_completion(response, date, needs_logprobs=False)
    return CompletionRow(
        key=sent.key,
        request=sent.as_json,
        response=text,
        outcome=read.outcome,
        text=read.text,
        finish_reason=read.finish_reason,
        served_model=read.served_model,
        system_fingerprint=str(response.get("system_fingerprint") or ""),
        date=date,
        prompt_tokens=read.prompt_tokens,
        completion_tokens=read.completion_tokens,
        cost=cost,
    )
