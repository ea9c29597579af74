"""Concurrency, rates, retries and budget of endpoints. None of it changes an answer, so none is part of a key."""

from __future__ import annotations

from dataclasses import dataclass

from nonmember.checks import require_count, require_number

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
