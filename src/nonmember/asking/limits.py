"""How an endpoint may be used. None of it changes an answer, so none of it is part of a key."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """concurrency: requests under way at once.   requests_per_minute, tokens_per_minute: null for no limit.
    timeout: seconds for one answer.   max_retries: of one request, after 429, 5xx, a timeout or a cut connection.

    max_requests, max_tokens, max_cost: the budget of one run, null for none; it stops before one is passed. Tokens are
    those sent and received together; what may still come of requests under way is counted in.
    input_price, output_price: of a million tokens, in the currency that max_cost is meant in.
    """

    concurrency: int
    requests_per_minute: float | None
    tokens_per_minute: float | None
    timeout: float
    max_retries: int
    max_requests: int | None
    max_tokens: int | None
    max_cost: float | None
    input_price: float
    output_price: float
