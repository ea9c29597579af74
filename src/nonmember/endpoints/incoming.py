"""Validation of server responses: well-formed JSON of bounded size, with our secrets removed."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from nonmember.endpoints.errors import Unusable, is_page
from nonmember.endpoints.protocol import Sent

MOST_BYTES = 32 * 2**20  # of any response
# Of one: what a token and each of its alternatives take at most, what an echoed byte does, and all that is beside.
BYTES_PER_TOKEN, BYTES_PER_ECHOED, BYTES_BESIDE = 1024, 512, 2**18
SHORTEST_SECRET = 16  # characters; what is shorter may be an ordinary word, and an answer may hold it
HIDDEN = "***"
_SURROGATES = re.compile("[\ud800-\udfff]")

most_bytes: ContextVar[int] = ContextVar("most_bytes", default=MOST_BYTES)  # of the response that a task waits for


def bytes_for(sent: Sent) -> int:
    """The most that the answer to a request may have."""
    tokens = BYTES_PER_TOKEN * sent.max_new_tokens * (1 + sent.num_alternatives)
    echoed = BYTES_PER_ECHOED * len(sent.prompt.encode("utf-8", "surrogatepass")) if sent.echoes else 0
    return min(MOST_BYTES, BYTES_BESIDE + tokens + echoed)


def parsed(text: str, secrets: Sequence[str] = ()) -> tuple[str, Any]:
    """A response as text and as JSON, None where it is none, or nested beyond reason.

    Half characters (lone surrogates), which no file can hold, become U+FFFD. So does `***` for a secret, however its
    characters are written; but only for secrets of SHORTEST_SECRET characters or more: keys of local servers are often
    words (`token`, `1`), and replacing those would change what the model answered.
    """
    secrets = [secret for secret in secrets if len(secret) >= SHORTEST_SECRET]
    try:
        value = json.loads(text)
        sound = without(value, secrets)
        return (text if sound == value else json.dumps(sound)), sound
    except (ValueError, RecursionError):
        return text, None


def without(value: Any, secrets: Sequence[str]) -> Any:
    """The same JSON with all its texts sound and without the secrets. Raises RecursionError."""
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, HIDDEN)
        return _SURROGATES.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {without(name, secrets): without(one, secrets) for name, one in value.items()}
    return [without(one, secrets) for one in value] if isinstance(value, list) else value


def form_of(text: str) -> str:
    """What a response is that is not an answer in the protocol's form."""
    start = text.lstrip()
    if not start:
        return "nothing"
    if is_page(text):
        return "a web page"
    if re.match(r"(?:data|event|id|retry):|: ", start):
        return "a stream of events, which was not asked for"
    if start[0] not in "{[":
        return "text that is no JSON"
    try:
        json.loads(text)
    except RecursionError:
        return "JSON nested beyond reason"
    except ValueError:
        return "JSON that breaks off or is damaged"
    return "other JSON"


async def limit_size(response: Any) -> None:
    """An event hook of the HTTP client: reading stops at `most_bytes`, and compressed responses, which were not asked
    for, are not unpacked. Raises Unusable."""
    most = most_bytes.get()
    length = response.headers.get("content-length", "")
    if response.headers.get("content-encoding", "identity") != "identity" or (length.isdigit() and int(length) > most):
        raise _too_long(most)
    response.stream = _limited(response.stream, most)


def _too_long(most: int) -> Unusable:
    return Unusable(
        f"its answer is compressed, or larger than {most / 2**20:.3g} MiB, for the tokens that were asked for"
    )


def _limited(stream: Any, most: int) -> Any:
    import httpx2

    class Limited(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            num_bytes = 0
            async for part in stream:
                if (num_bytes := num_bytes + len(part)) > most:
                    raise _too_long(most)
                yield part

        async def aclose(self) -> None:
            await stream.aclose()

    return Limited()
