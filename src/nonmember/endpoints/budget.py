"""Request, token and cost budgets of one process, enforced before each request."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from nonmember.endpoints.errors import EndpointError
from nonmember.endpoints.limits import Limits


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
