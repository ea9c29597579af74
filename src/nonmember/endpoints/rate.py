"""Rate limiting: requests and tokens per minute, and the server's Retry-After."""

from __future__ import annotations

import asyncio
import contextlib
import time


class Pace:
    """Hands out turns, evenly spaced. stop: ends every wait when it is set."""

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
