"""Endpoint errors: which end a run, which are retried, and which concern one request only."""

from __future__ import annotations

import contextlib
import email.utils
import time
from collections.abc import Mapping
from typing import Any, NoReturn

LONGEST_PAUSE = 600.0  # seconds that a server may ask for
LONGEST_WORDS = 300  # characters of a server's own words that are repeated


class EndpointError(ValueError):
    """The endpoint cannot be queried any further; the message explains why in one sentence."""


class NoSuchRoute(EndpointError):
    """There is nothing at the address, or not under this route."""


class RetryableError(Exception):
    """A transient error, to be retried. wait: seconds that the server asks for, None where it says nothing.   charged:
    whether the request may have been paid for.   crowded: the server reports overload.   broken: the server failed."""

    def __init__(
        self, reason: str, *, wait: float | None = None, charged: bool = False, crowded: bool = False,
        broken: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(reason)
        self.wait = wait
        self.charged = charged
        self.crowded = crowded
        self.broken = broken


class NotAccepted(Exception):
    """The server does not accept this very request; its text is the reason."""


def raise_for_status(status: int, headers: Mapping[str, str], error: Any, *, model: str, key_variable: str) -> NoReturn:
    """What an HTTP status other than success means. error: the body, as JSON where it is such."""
    words, code = _words(error), _code(error)
    if status in (401, 403):  # whose words may repeat the secret
        raise EndpointError(
            f"the server refuses the secret in {key_variable} ({status}). Set that environment variable to a valid key "
            f"that may use {model}."
        )
    if status == 402 or code == "insufficient_quota":
        raise EndpointError(f"the server reports that the account has no credit left ({status}): {words}")
    if status in (404, 405) and (model in words or code == "model_not_found"):
        raise NoSuchRoute(f"the server knows no model {model!r} ({status}). Name one that it has as `model`.")
    if status in (404, 405):
        raise NoSuchRoute(
            f"there is no such route at that address ({status} {words}). Give `url` up to and including /v1, and as "
            "`form` (chat or completions) a route that the server offers."
        )
    if status in (408, 429) or status >= 500:
        wait = _seconds(headers.get("retry-after-ms"), headers.get("retry-after"))
        if wait is not None and wait > LONGEST_PAUSE:
            raise EndpointError(f"the server accepts no requests for {wait:.0f} seconds ({status}). Run again later.")
        crowded = status in (429, 503)
        raise RetryableError(
            f"{status} {words}".strip(), wait=wait, crowded=crowded, broken=status >= 500 and not crowded
        )
    raise NotAccepted(f"{status} {words}".strip())


def was_declined(error: Any) -> bool:
    """Whether a 400 says that the content was filtered."""
    return _code(error) in ("content_filter", "content_policy_violation")


def _seconds(milliseconds: str | None, value: str | None) -> float | None:
    """Retry-After, a number of seconds or a date."""
    try:
        if milliseconds is not None:
            return max(0.0, float(milliseconds) / 1000)
        if value is not None:
            return max(0.0, float(value))
    except ValueError:
        with contextlib.suppress(ValueError, OverflowError):
            if value is not None and (date := email.utils.parsedate_tz(value)) is not None:
                return max(0.0, email.utils.mktime_tz(date) - time.time())
    return None


def _inner(error: Any) -> Any:
    return error.get("error", error) if isinstance(error, Mapping) else error


def _code(error: Any) -> str:
    inner = _inner(error)
    return str(inner.get("code") or inner.get("type") or "") if isinstance(inner, Mapping) else ""


def _words(error: Any) -> str:
    """The server's own words, on one line and not too many."""
    inner = _inner(error)
    if isinstance(inner, Mapping):
        inner = inner.get("message") or inner.get("detail") or ""
    line = " ".join(str(inner or "").split())
    return line if len(line) <= LONGEST_WORDS else f"{line[:LONGEST_WORDS]} ..."
