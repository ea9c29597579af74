"""Validation of server responses: well-formed JSON of bounded size, with our secret removed."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

from nonmember.endpoints.protocol import Unusable

MOST_BYTES = 32 * 2**20  # of one response: ten times what 4,096 tokens with 20 alternatives each take
SHORTEST_SECRET = 16  # characters; what is shorter may be an ordinary word, and an answer may hold it
HIDDEN = "***"
_SURROGATES = re.compile("[\ud800-\udfff]")


def parsed(text: str, secret: str = "") -> tuple[str, Any]:
    """A response as text and as JSON, None where it is none, or nested beyond reason.

    Half characters (lone surrogates), which no file can hold, become U+FFFD. So does `***` for the secret, however its
    characters are written; but only of a secret of SHORTEST_SECRET characters or more: keys of local servers are often
    words (`token`, `1`), and replacing those would change what the model answered.
    """
    secret = secret if len(secret) >= SHORTEST_SECRET else ""
    try:
        value = json.loads(text)
        sound = without(value, secret)
        return (text if sound == value else json.dumps(sound)), sound
    except (ValueError, RecursionError):
        return text, None


def without(value: Any, secret: str) -> Any:
    """The same JSON with all its texts sound and without the secret, which may be empty. Raises RecursionError."""
    if isinstance(value, str):
        hidden = value.replace(secret, HIDDEN) if secret else value
        return _SURROGATES.sub("\ufffd", hidden)
    if isinstance(value, Mapping):
        return {without(name, secret): without(one, secret) for name, one in value.items()}
    return [without(one, secret) for one in value] if isinstance(value, list) else value


async def limit_size(response: Any) -> None:
    """An event hook of the HTTP client: reading stops at MOST_BYTES, and compressed responses, which were not asked
    for, are not unpacked. Raises Unusable."""
    length = response.headers.get("content-length", "")
    if response.headers.get("content-encoding", "identity") != "identity" or (
        length.isdigit() and int(length) > MOST_BYTES
    ):
        raise _too_long()
    response.stream = _limited(response.stream)


def _too_long() -> Unusable:
    return Unusable(f"its answer is compressed, or larger than {MOST_BYTES / 2**20:.0f} MiB")


def _limited(stream: Any) -> Any:
    import httpx2

    class Limited(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            num_bytes = 0
            async for part in stream:
                if (num_bytes := num_bytes + len(part)) > MOST_BYTES:
                    raise _too_long()
                yield part

        async def aclose(self) -> None:
            await stream.aclose()

    return Limited()
