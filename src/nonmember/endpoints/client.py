"""Client for a server of OpenAI's protocol: every answer is paid for once and kept.

The `openai` package sends, waits and tries again; here is what it has not: a budget, and the table of answers. What
the table has is not asked again, whichever audit asked it first. One process at a time asks; another that wants the
same answers waits, and finds them.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from nonmember.artifacts.store import Store
from nonmember.checks import Checked, Count, Number
from nonmember.endpoints.reading import EndpointError, Unusable, read_completion, usage
from nonmember.endpoints.service import Sent, Service, with_secrets
from nonmember.endpoints.table import CompletionsTable, now, opened
from nonmember.models.base import last_part
from nonmember.runtime.files import locked
from nonmember.runtime.progress import Stage

if TYPE_CHECKING:
    import openai

log = logging.getLogger(__name__)

FORMAT = 1  # raise it when older tables are to be left alone
TEMPLATE_TOKENS = 64  # more than a chat template puts around a question
MOST_UNUSABLE = 5  # answers in a row that cannot be used: each was paid for, and the next will be no better
FILTERED = ("content_filter", "content_policy_violation", "responsibleaipolicyviolation")
NO_CREDIT = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_balance")
HIDDEN = "***"
DECLINED = {"choices": [{"finish_reason": "content_filter", "message": {"content": ""}}]}

T = TypeVar("T")
Read = Callable[[Sent, Mapping[str, Any], str], T]  # what was sent, the answer and its date; may raise Unusable


@dataclass(frozen=True)
class Limits(Checked):
    concurrency: Annotated[int, Count(1, 10_000)]  # requests under way at once
    timeout: Annotated[float, Number("(0, inf)")]  # seconds for one answer
    max_retries: Annotated[int, Count(0, 1_000)]  # of one request, after 429, 5xx, a timeout or a cut connection
    # max_questions, max_tokens, max_cost: the budget of one process, null for none; it stops before one is passed.
    # A question that is sent again after a failure counts once.
    # Tokens are those sent and received together; what may still come of requests under way is counted in.
    max_questions: Annotated[int | None, Count(1, 2**63 - 1)]
    max_tokens: Annotated[int | None, Count(1, 2**63 - 1)]
    max_cost: Annotated[float | None, Number("[0, inf)")]
    # of a million tokens, in the currency that max_cost is meant in; null: unknown, and then so is the cost
    input_price: Annotated[float | None, Number("[0, inf)")]
    output_price: Annotated[float | None, Number("[0, inf)")]

    fields_called = "asking.{field}"

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.input_price is None) != (self.output_price is None):
            raise ValueError("asking.input_price and asking.output_price go together: give both, or neither.")
        if self.max_cost is not None and self.input_price is None:
            raise ValueError("asking.max_cost needs asking.input_price and asking.output_price, of a million tokens.")

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """None where prices are unknown."""
        if self.input_price is None or self.output_price is None:
            return None
        return (prompt_tokens * self.input_price + completion_tokens * self.output_price) / 1e6


@dataclass
class Spent:
    questions: int = 0  # each once, however often it was sent
    tokens: int = 0  # sent and received
    cost: float = 0.0  # 0 where prices are unknown
    retries: int = 0  # requests beyond the first of a question

    def add(self, other: Spent, times: int = 1) -> None:
        self.questions += times * other.questions
        self.tokens += times * other.tokens
        self.cost += times * other.cost


class Budget:
    """Requests are let through while all that is spent, and the most that those under way can still cost, stays within
    the limits. spent: of the whole process, and counted up here."""

    def __init__(self, limits: Limits, spent: Spent) -> None:
        self._limits, self._spent, self._under_way = limits, spent, Spent()
        self._changed = asyncio.Condition()

    async def reserve(self, most: Spent) -> None:
        """Wait until so much fits; raises EndpointError where it never will."""
        async with self._changed:
            while (passed := self._passed_with(most)) is not None:
                if not self._under_way.questions:
                    raise EndpointError(passed)
                await self._changed.wait()  # those under way may have cost less than they could
            self._under_way.add(most)

    async def settle(self, reserved: Spent, spent: Spent) -> None:
        async with self._changed:
            self._under_way.add(reserved, times=-1)
            self._spent.add(spent)
            self._changed.notify_all()

    def _passed_with(self, most: Spent) -> str | None:
        for name in ("questions", "tokens", "cost"):
            limit, spent = getattr(self._limits, f"max_{name}"), getattr(self._spent, name)
            if limit is not None and spent + getattr(self._under_way, name) + getattr(most, name) > limit + 1e-9:
                return (
                    f"The budget asking.max_{name}={limit} is spent, or could be passed by the next question: "
                    f"{spent:,.6g} are spent."
                )
        return None


@dataclass(frozen=True)
class Refused:
    """In the place of an answer: the server did not accept the request (`status` is that of HTTP), or its answer is of
    no use (0)."""

    reason: str
    status: int = 0


@dataclass
class Session:
    """What one process has spent on endpoints, and found out about them."""

    spent: Spent = field(default_factory=Spent)
    offers: dict[Service, dict[str, Any]] = field(default_factory=dict)  # by endpoint
    refused: dict[str, Refused] = field(default_factory=dict)  # by the key of a request that was not accepted


class EndpointClient:
    """Asks one endpoint.

    num_asked, num_found: answers from the server, and from the table.   served: key -> who answered, by the server's
    word.   notes: what else a reader has to know.
    """

    def __init__(self, endpoint: Service, store: Store, limits: Limits | None, session: Session) -> None:
        self.endpoint, self.session, self.name = endpoint, session, endpoint.label
        self.num_asked = self.num_found = 0
        self.served: dict[str, str] = {}
        self.notes: list[str] = []
        self._store, self._limits = store, limits

    @property
    def folder(self) -> Path:
        endpoint = self.endpoint
        identity = {"url": endpoint.address, "model": endpoint.model, "form": endpoint.form}
        return self._store.growing("completions", last_part(endpoint.model), {"format": FORMAT, "endpoint": identity})

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
        of = {item.key: item for item in wanted}
        values: dict[str, T | Refused] = {}

        def read(sent: Sent, response: Mapping[str, Any], date: str) -> T:
            try:
                value = make(sent, response, date)
            except (LookupError, TypeError, AttributeError, ValueError) as error:
                raise Unusable(f"the answer is not in the protocol's form ({type(error).__name__}: {error})") from None
            if not probing:
                self.served[sent.key] = str(response.get("model") or "")
            return value

        with opened(self.folder) as table, locked(self.folder / ".lock", f"asking {self.name}"):
            for key, response, date in table.find(of):
                values[key] = read(of[key], json.loads(response), date)
            self.num_found += len(values)
            values |= {key: self.session.refused[key] for key in of if key in self.session.refused}
            if missing := [item for key, item in of.items() if key not in values]:
                self._ask(table, missing, read, values, description, probing=probing)
        return [values[item.key] for item in wanted]

    def _ask(
        self,
        table: CompletionsTable,
        missing: Sequence[Sent],
        read: Read[T],
        values: dict[str, T | Refused],
        description: str,
        *,
        probing: bool,
    ) -> None:
        if (limits := self._limits) is None:
            raise ValueError(
                f"{self.name} can only be asked within limits, and none were given (Builder(..., asking=Limits(...)))."
            )
        spent, stage = self.session.spent, Stage(description, len(missing), "questions")
        retries_before = spent.retries

        def receive(sent: Sent, response: Mapping[str, Any] | Refused) -> bool:
            """Whether it is an answer, which is then kept."""
            try:
                if isinstance(response, Refused):
                    raise Unusable(response.reason)
                values[sent.key] = read(sent, response, date := now())
                table.add(_row(sent, response, date, limits))
                self.num_asked += 1
            except Unusable as reason:
                refused = response if isinstance(response, Refused) else Refused(str(reason))
                values[sent.key] = self.session.refused[sent.key] = refused
            note = f"{spent.questions:,} questions, {spent.retries:,} retries, {spent.tokens:,} tokens"
            stage.advance(note=f"{note}, cost {spent.cost:.4g}")
            return not isinstance(values[sent.key], Refused)

        with stage:
            sending = Sending(self.endpoint, limits, spent, receive, probing=probing)
            try:
                _run(sending.send(missing))
            except EndpointError as error:
                kept = f" {len(table):,} answers are kept, and the same command goes on from there."
                raise EndpointError(f"{self.name}: {error}{kept * bool(len(table))}") from None
            finally:
                if retries := spent.retries - retries_before:
                    log.info("%s: requests were sent again %s times (retries).", self.name, f"{retries:,}")
        refused = [item.reason for item in values.values() if isinstance(item, Refused)]
        if refused and not probing:
            of_all = f"{len(refused)} of {len(values)}"
            log.warning("%s: %s requests were not accepted, the first because: %s", self.name, of_all, refused[0])


class Sending:
    """One run of requests. receive: is given each answer, or why there is none.   probing: the server may fail."""

    def __init__(
        self, service: Service, limits: Limits, spent: Spent, receive: Callable[..., bool], *, probing: bool
    ) -> None:
        self._service, self._limits, self._receive, self._probing = service, limits, receive, probing
        self._spent, self._budget = spent, Budget(limits, spent)
        self._ended_by: Exception | None = None
        self._num_answered = self._num_unusable = 0  # the latter since the last that could be used

    async def send(self, requests: Sequence[Sent]) -> None:
        """Raises EndpointError where the run has to end early, when nothing is under way any more."""
        waiting = iter(requests)
        async with self._client() as client, asyncio.TaskGroup() as group:
            for _ in range(min(self._limits.concurrency, len(requests))):
                group.create_task(self._work(client, waiting))
        if self._ended_by is not None:
            raise self._ended_by

    def _client(self) -> openai.AsyncOpenAI:
        import openai

        service, limits = self._service, self._limits
        logging.getLogger("openai").setLevel(logging.WARNING)  # it tells of each retry
        logging.getLogger("httpx2").setLevel(logging.WARNING)  # it tells addresses, and a query may hold a secret
        return openai.AsyncOpenAI(
            api_key=service.secret() or "none",
            base_url=service.address,
            max_retries=min(1, limits.max_retries) if self._probing else limits.max_retries,
            timeout=limits.timeout,
            default_query=with_secrets(service.extra_query),
            # The documents' text is not sent on to another host.
            http_client=openai.DefaultAsyncHttpxClient(
                follow_redirects=False, event_hooks={"request": [self._count_retry]}
            ),
        )

    async def _count_retry(self, request: Any) -> None:
        self._spent.retries += request.headers.get("x-stainless-retry-count", "0") != "0"

    async def _work(self, client: openai.AsyncOpenAI, waiting: Iterator[Sent]) -> None:
        for sent in waiting:
            if self._ended_by is not None:
                return
            try:
                usable = self._receive(sent, await self._answer(client, sent))
                self._num_unusable = 0 if usable else self._num_unusable + 1
                if self._num_unusable >= MOST_UNUSABLE and not self._probing:
                    raise EndpointError(
                        f"the last {MOST_UNUSABLE} answers could not be used, and may have been charged for. Look at "
                        "what the server sends, then start again to continue."
                    )
            except Exception as error:  # whatever it is, the answers under way are waited for and kept
                self._ended_by = self._ended_by or error

    async def _answer(self, client: openai.AsyncOpenAI, sent: Sent) -> Mapping[str, Any] | Refused:
        """A tokenizer that knows every byte makes no more tokens than there are bytes: a request cannot cost more."""
        import httpx2
        import openai

        prompt_tokens, before = len(sent.prompt.encode("utf-8", "surrogatepass")) + TEMPLATE_TOKENS, self._num_answered
        most = spent = self._cost(prompt_tokens, sent.max_new_tokens)
        secret = self._service.secret()
        # What the environment holds for OpenAI goes to no other server.
        headers: dict[str, Any] = dict.fromkeys(self._service.unwanted_headers, openai.Omit())
        headers["Authorization"] = f"Bearer {secret}" if secret else openai.Omit()
        options: Any = {"headers": headers | with_secrets(self._service.extra_headers)}
        await self._budget.reserve(most)
        try:
            response = await client.post(f"/{sent.route}", cast_to=httpx2.Response, body={**sent.body}, options=options)
            answer = json.loads(response.text.replace(secret, HIDDEN) if len(secret) >= 16 else response.text)
            spent = self._cost(*usage(answer)) if any(usage(answer)) else most
            if answer.get("choices") in (None, []):
                raise ValueError(answer.get("error") or answer)
            self._num_answered += 1
            return answer
        except openai.APIStatusError as error:
            spent = Spent(1)
            return self._refused(error, self._num_answered > before)
        except openai.APIConnectionError as error:
            reason = f"no answer from that address ({error.__cause__ or error})"
            if self._num_answered > before:  # others were answered meanwhile
                return Refused(reason)
            raise EndpointError(f"{reason}. Correct `url`.") from None
        except UnicodeEncodeError:
            return Refused("its text is not valid Unicode")
        except (ValueError, AttributeError) as error:  # what is no JSON, or has no answer
            reason = f"an answer in another form than OpenAI's: {str(error)[:200]}"
            if self._probing:
                raise EndpointError(f"{reason}. Give `url` up to and including /v1, and the server's `form`.") from None
            return Refused(reason)
        finally:
            await self._budget.settle(most, spent)

    def _cost(self, prompt_tokens: int, completion_tokens: int) -> Spent:
        cost = self._limits.cost(prompt_tokens, completion_tokens) or 0.0
        return Spent(1, prompt_tokens + completion_tokens, cost)

    def _refused(self, error: openai.APIStatusError, others_were_answered: bool) -> Mapping[str, Any] | Refused:
        """What follows from an HTTP status that no retry helped: whether the run ends, or this request has failed."""
        status, code = error.status_code, str(error.code or error.type or "").lower()
        message = " ".join(str(error.message).split())[:300].replace(self._service.secret() or "\n", HIDDEN)
        if code in FILTERED:
            return DECLINED
        if status == 401:  # whose words may repeat the secret
            raise EndpointError(
                f"the server refuses the secret in {self._service.key_variable} (401). Set a valid key."
            )
        if status == 402 or code in NO_CREDIT:
            raise EndpointError(f"the server reports that the account has no credit left ({status}): {message}")
        if status in (404, 405) and not others_were_answered and not self._probing:
            raise EndpointError(f"there is no such model or route at that address: {message}")
        is_transient = status >= 500 or status in (408, 409, 429)
        if status < 400 or (is_transient and not others_were_answered and not self._probing):
            raise EndpointError(f"no answer, also when asked again: {message}.")
        return Refused(message, status)


def _row(sent: Sent, response: Mapping[str, Any], date: str, limits: Limits) -> dict[str, Any]:
    """An answer as a row of the table."""
    found = read_completion(response, date, needs_logprobs=False)
    tokens = found.prompt_tokens, found.completion_tokens
    read = ("outcome", "text", "finish_reason", "served_model", "date", "prompt_tokens", "completion_tokens")
    return {
        "key": sent.key,
        "request": sent.as_json,
        "response": json.dumps(response),
        "system_fingerprint": str(response.get("system_fingerprint") or ""),
        "cost": limits.cost(*tokens) if any(tokens) else None,
        **{name: getattr(found, name) for name in read},
    }


def _run(coroutine: Coroutine[Any, Any, None]) -> None:
    """To its end, also where a loop is running already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def _are_alike(served: str, asked: str) -> bool:
    """Whether two names may be one model's: with a date behind it, say, or with its owner before it."""
    names = [last_part(name).casefold() for name in (served, asked)]
    return names[0] in names[1] or names[1] in names[0]
