"""Concurrency, rates, retries and budget of endpoints. None of it changes an answer, so none is part of a key."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass

from nonmember.checks import require_count, require_number
from nonmember.endpoints.errors import EndpointError

LARGEST_BUDGET = 2**63 - 1
MOST_AT_ONCE = 10_000  # connections; no server takes more
MOST_RETRIES = 1_000


@dataclass(frozen=True)
class Limits:
    """concurrency: requests under way at once.   requests_per_minute, tokens_per_minute: null for no limit.
    timeout: seconds for one answer.   max_retries: of one request, after 429, 5xx, a timeout or a cut connection.

    max_requests, max_tokens, max_cost: the budget of one process, null for none; it stops before one is passed. Tokens
    are those sent and received together; what may still come of requests under way is counted in.
    input_price, output_price: of a million tokens, in the currency that max_cost is meant in; null: unknown, and then
    so is the cost.
    """

    concurrency: int
    requests_per_minute: float | None
    tokens_per_minute: float | None
    timeout: float
    max_retries: int
    max_requests: int | None
    max_tokens: int | None
    max_cost: float | None
    input_price: float | None
    output_price: float | None

    def __post_init__(self) -> None:
        require_count(self.concurrency, 1, "asking.concurrency", at_most=MOST_AT_ONCE)
        require_count(self.max_retries, 0, "asking.max_retries", at_most=MOST_RETRIES)
        for name in ("max_requests", "max_tokens"):
            require_count(getattr(self, name), 1, f"asking.{name}", at_most=LARGEST_BUDGET, or_null=True)
        require_number(self.timeout, "(0, inf)", "asking.timeout")
        for name in ("requests_per_minute", "tokens_per_minute"):
            require_number(getattr(self, name), "(0, inf)", f"asking.{name}", or_null=True)
        for name in ("max_cost", "input_price", "output_price"):
            require_number(getattr(self, name), "[0, inf)", f"asking.{name}", or_null=True)
        if (self.input_price is None) != (self.output_price is None):
            raise ValueError("asking.input_price and asking.output_price go together: give both, or neither.")
        if self.max_cost is not None and self.input_price is None:
            raise ValueError(
                "asking.max_cost can only be kept where prices are known: give asking.input_price and "
                "asking.output_price, of a million tokens each."
            )

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """None where prices are unknown."""
        if self.input_price is None or self.output_price is None:
            return None
        return (prompt_tokens * self.input_price + completion_tokens * self.output_price) / 1e6


class BudgetSpent(EndpointError):
    """The next request could pass the budget."""


@dataclass
class Spent:
    """requests: sent, successful or not.   tokens: sent and received.   cost: 0 where prices are unknown."""

    requests: int = 0
    tokens: int = 0
    cost: float = 0.0

    def add(self, other: Spent, times: int = 1) -> None:
        self.requests += times * other.requests
        self.tokens += times * other.tokens
        self.cost += times * other.cost


class Budget:
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
        if _passes(limits.max_requests, spent.requests + under_way.requests + most.requests):
            return (
                f"The budget of {limits.max_requests:,} requests (asking.max_requests) is spent: "
                f"{spent.requests:,} were sent."
            )
        if _passes(limits.max_tokens, spent.tokens + under_way.tokens + most.tokens):
            return (
                f"The budget of {limits.max_tokens:,} tokens (asking.max_tokens) could be passed by the next request: "
                f"{spent.tokens:,} are spent, and it can take {most.tokens:,}."
            )
        if _passes(limits.max_cost, spent.cost + under_way.cost + most.cost):
            return (
                f"The budget of {limits.max_cost:g} (asking.max_cost) could be passed by the next request: "
                f"{spent.cost:.6g} is spent, and it can cost {most.cost:.2g}."
            )
        return None


def _passes(limit: float | None, value: float) -> bool:
    return limit is not None and value > limit


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
