"""How an endpoint may be used. None of it changes an answer, so none of it is part of a key."""

from __future__ import annotations

from dataclasses import dataclass, fields

AT_LEAST_ONE = ("concurrency", "max_requests", "max_tokens")
ABOVE_ZERO = ("requests_per_minute", "tokens_per_minute", "timeout")
NOT_BELOW_ZERO = ("max_retries", "max_cost", "input_price", "output_price")
WHOLE = ("concurrency", "max_retries", "max_requests", "max_tokens")
ALWAYS_GIVEN = ("concurrency", "timeout", "max_retries")


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
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            if value is None and name not in ALWAYS_GIVEN:
                continue
            kind: type = int if name in WHOLE else int | float  # type: ignore[assignment]
            right = isinstance(value, kind) and not isinstance(value, bool)
            if not (right and self._in_range(name, value)):
                raise ValueError(f"asking.{name} must be {_wanted(name)}, but {value!r} came.")
        if (self.input_price is None) != (self.output_price is None):
            raise ValueError("asking.input_price and asking.output_price go together: give both, or neither.")
        if self.max_cost is not None and self.input_price is None:
            raise ValueError(
                "asking.max_cost can only be kept where prices are known: give asking.input_price and "
                "asking.output_price, of a million tokens each."
            )

    @staticmethod
    def _in_range(name: str, value: float) -> bool:
        if name in AT_LEAST_ONE:
            return value >= 1
        return value > 0 if name in ABOVE_ZERO else value >= 0

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """None where prices are unknown."""
        if self.input_price is None or self.output_price is None:
            return None
        return (prompt_tokens * self.input_price + completion_tokens * self.output_price) / 1e6


def _wanted(name: str) -> str:
    number = "a whole number" if name in WHOLE else "a number"
    if name in AT_LEAST_ONE:
        wanted = f"{number} of at least 1"
    else:
        wanted = f"{number} above 0" if name in ABOVE_ZERO else f"{number} of at least 0"
    return wanted if name in ALWAYS_GIVEN else f"{wanted} or null"
