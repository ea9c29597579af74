"""What can come of a request that is not answered: which errors end a run, which are retried, and which concern one
request only."""

from __future__ import annotations

import contextlib
import email.utils
import re
import time
from collections.abc import Mapping
from typing import Any, NoReturn
from urllib.parse import urlsplit

LONGEST_PAUSE = 600.0  # seconds that a server may ask for
LONGEST_WORDS = 300  # characters of a server's own words that are repeated

# HTTP statuses by what follows from them. Others of the 400s concern one request; others of the 500s are transient.
KEY_REFUSED = (401, 498)
NO_CREDIT = (402,)
NOT_PERMITTED = (403,)  # the key, the model, or this very request: the status does not say
NO_ROUTE = (404, 405, 410)
NOT_UNDERSTOOD = (406, 407, 411, 415, 426, 431, 505, 511)  # every request would end so
TRANSIENT = (408, 409, 423, 424, 425, 429, 499)
CROWDED = (429, 503, 529)
NOT_IMPLEMENTED = (501,)
MAY_BE_FILTERED = (400, 403, 422, 451)  # by what the body says

QUOTA_CODES = (
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "quota_exceeded",
    "exceeded_current_quota_error",
    "insufficient_balance",
    "credit_balance_too_low",
)
MODEL_CODES = ("model_not_found", "deploymentnotfound", "not_found_error", "notfounderror", "model_not_available")
FILTER_CODES = ("content_filter", "content_policy_violation", "responsibleaipolicyviolation", "moderation_blocked")


class EndpointError(ValueError):
    """The endpoint cannot be queried any further; the message explains why in one sentence."""


class NoSuchRoute(EndpointError):
    """There is nothing at the address, or not under this route."""


class RetryableError(Exception):
    """A transient error, to be retried. wait: seconds that the server asks for, None where it says nothing.   charged:
    whether the request may have been paid for.   crowded: the server reports overload.   broken: the server failed."""

    def __init__(
        self,
        reason: str,
        *,
        wait: float | None = None,
        charged: bool = False,
        crowded: bool = False,
        broken: bool = False,
    ) -> None:
        super().__init__(reason)
        self.wait = wait
        self.charged = charged
        self.crowded = crowded
        self.broken = broken


class NotAccepted(Exception):
    """The server does not accept this very request; its text is the reason. status: of HTTP."""

    def __init__(self, reason: str, status: int = 0) -> None:
        super().__init__(reason)
        self.status = status


class Unusable(Exception):
    """An answer that does not hold what was asked for. Its text says what is missing."""


def raise_for_status(status: int, headers: Mapping[str, str], error: Any, *, model: str, key_variable: str) -> NoReturn:
    """What an HTTP status other than success means. error: the body, as JSON where it is such, without secrets."""
    words, codes = _words(error), codes_of(error)
    said = f"{status} {words}".strip()
    if 300 <= status < 400:
        raise _redirected(headers.get("location", ""))
    if status in KEY_REFUSED:  # whose words may repeat the secret
        raise EndpointError(
            f"the server refuses the secret in {key_variable} ({status}). Set that environment variable to a valid key "
            f"that may use {model}."
        )
    if status in NO_CREDIT or not codes.isdisjoint(QUOTA_CODES):
        raise EndpointError(f"the server reports that the account has no credit left ({status}): {words}")
    if status in NO_ROUTE and (model in words or not codes.isdisjoint(MODEL_CODES)):
        raise NoSuchRoute(f"the server knows no model {model!r} ({status}). Name one that it has as `model`.")
    if status in NO_ROUTE:
        raise NoSuchRoute(
            f"there is no such route at that address ({said}). Give `url` up to and including /v1 (of Azure, up to the "
            "deployment's name), and as `form` (chat or completions) a route that the server offers."
        )
    if status in NOT_UNDERSTOOD:
        raise EndpointError(
            f"the server, or a proxy before it, takes no such requests ({said}). See what it wants beside a JSON body: "
            "headers and a query can be given as `extra_headers` and `extra_query`."
        )
    if status in TRANSIENT or (status >= 500 and status not in NOT_IMPLEMENTED):
        wait = _seconds(headers.get("retry-after-ms"), headers.get("retry-after"))
        if wait is not None and wait > LONGEST_PAUSE:
            raise EndpointError(f"the server accepts no requests for {wait:.0f} seconds ({status}). Run again later.")
        crowded = status in CROWDED
        raise RetryableError(said, wait=wait, crowded=crowded, broken=status >= 500 and not crowded)
    raise NotAccepted(said, status)


def _redirected(location: str) -> EndpointError:
    try:
        host = urlsplit(location).hostname or "another path of its own"
    except ValueError:
        host = "an address that cannot be read"
    return EndpointError(
        f"the server sends requests on to {host}, and the documents' text was not sent there. Give that address as "
        "`url` if you trust it."
    )


def was_declined(status: int, error: Any) -> bool:
    """Whether a status says that the content was filtered, which is an answer."""
    return status in MAY_BE_FILTERED and not codes_of(error).isdisjoint(FILTER_CODES)


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


def codes_of(error: Any) -> set[str]:
    """By which services tell kinds of errors apart, in small letters: of the error and of the one within it."""
    inner = _inner(error)
    deeper = inner.get("innererror") if isinstance(inner, Mapping) else None
    found = [item.get(name) for item in (inner, deeper) if isinstance(item, Mapping) for name in ("code", "type")]
    return {code.lower() for code in found if isinstance(code, str)}


def _words(error: Any) -> str:
    """The server's own words, on one line and not too many."""
    inner = _inner(error)
    if isinstance(inner, Mapping):
        inner = inner.get("message") or inner.get("detail") or ""
    line = " ".join(str(inner or "").split())
    if is_page(line):
        title = re.search(r"<title[^>]*>(.*?)</title", line, re.IGNORECASE)
        line = f"a web page{f', {title[1].strip()!r}' if title else ''}"
    return line if len(line) <= LONGEST_WORDS else f"{line[:LONGEST_WORDS]} ..."


def is_page(text: str) -> bool:
    """Whether it is a page for a browser."""
    return text.lstrip()[:15].lower().startswith(("<!doctype html", "<html", "<head", "<?xml", "<body"))
