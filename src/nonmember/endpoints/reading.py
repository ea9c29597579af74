"""What a server's answers hold: the text of an answer, apart from the thoughts before it, and log-probabilities; and
what follows where a request is not answered: which errors end a run, which are retried, which concern one request."""

from __future__ import annotations

import contextlib
import email.utils
import json
import math
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, NoReturn
from urllib.parse import urlsplit

from nonmember.corpora.sources.rows import NotOneValueError, unambiguous_json
from nonmember.records.answers import Completion, Outcome
from nonmember.records.tokens import LOG_PROB_FLOOR

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
    message, codes = _server_message(error), codes_of(error)
    reason = f"{status} {message}".strip()
    if 300 <= status < 400:
        raise _redirected(headers.get("location", ""))
    if status in KEY_REFUSED:  # whose words may repeat the secret
        raise EndpointError(
            f"the server refuses the secret in {key_variable} ({status}). Set that environment variable to a valid key "
            f"that may use {model}."
        )
    if status in NO_CREDIT or not codes.isdisjoint(QUOTA_CODES):
        raise EndpointError(f"the server reports that the account has no credit left ({status}): {message}")
    if status in NO_ROUTE and (model in message or not codes.isdisjoint(MODEL_CODES)):
        raise NoSuchRoute(f"the server knows no model {model!r} ({status}). Name one that it has as `model`.")
    if status in NO_ROUTE:
        raise NoSuchRoute(
            f"there is no such route at that address ({reason}). Give `url` up to and including /v1 (of Azure, up to "
            "the deployment's name), and as `form` (chat or completions) a route that the server offers."
        )
    if status in NOT_UNDERSTOOD:
        raise EndpointError(
            f"the server, or a proxy before it, takes no such requests ({reason}). See what it wants beside a JSON "
            "body: headers and a query can be given as `extra_headers` and `extra_query`."
        )
    if status in TRANSIENT or (status >= 500 and status not in NOT_IMPLEMENTED):
        wait = _seconds(headers.get("retry-after-ms"), headers.get("retry-after"))
        if wait is not None and wait > LONGEST_PAUSE:
            raise EndpointError(f"the server accepts no requests for {wait:.0f} seconds ({status}). Run again later.")
        crowded = status in CROWDED
        raise RetryableError(reason, wait=wait, crowded=crowded, broken=status >= 500 and not crowded)
    raise NotAccepted(reason, status)


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
    codes = [item.get(name) for item in (inner, deeper) if isinstance(item, Mapping) for name in ("code", "type")]
    return {code.lower() for code in codes if isinstance(code, str)}


def _server_message(error: Any) -> str:
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


MOST_TOKENS = 10_000_000  # of one request; no model reads or writes as many
LARGEST_SUM, LARGEST_SUM_OF_ANY = 1.001, 1.05  # of probabilities, after rounding; of a probe's, and of any answer's

DECLINED = ("content_filter", "refusal", "safety", "recitation", "prohibited_content", "blocklist", "spii")
BROKEN_OFF = ("error", "abort", "aborted", "cancelled", "canceled")
TEXT_PARTS = (None, "text", "output_text")
THOUGHT_PARTS = ("thinking", "redacted_thinking", "reasoning", "reasoning_content", "thought")
THOUGHT_FIELDS = ("reasoning_content", "reasoning", "thinking", "thinking_blocks", "reasoning_details")

ONLY_THOUGHTS = "it holds thoughts and no answer"
TOOL_CALL = "it calls a tool in place of answering"
NO_CONTENT = "its content is null"
EMPTY_TEXT = "its text is empty"

# The text of an answer ------------------------------------------------------------------------------------------------
STILL_THINKING = (
    "it was cut while it still thought: give it room (request_settings.min_output_tokens), or turn thinking off "
    "(thinking=off)"
)
ENDLESS_THOUGHTS = "its thoughts do not end, and there is no answer behind them"

# How models mark their thoughts where the server leaves them in the text.
_TAGS = r"(?:seed:)?(?:think(?:ing)?|thoughts?|reasoning|reflection|scratch_?pad|inner_?monologue|analysis)"
_MARK = re.compile(
    rf"(?P<open>(?:<|&lt;){_TAGS}\b[^<>&/]*(?:>|&gt;)|\[THINK\]|◁think▷|<\|begin_of_thought\|>"
    r"|<\|START_THINKING\|>|<\|channel>(?:thought|analysis)\b)"
    rf"|(?:<|&lt;)/{_TAGS}\s*(?:>|&gt;)|\[/THINK\]|◁/think▷|<\|end_of_thought\|>"
    r"|<\|END_THINKING\|>|<channel\|>",
    re.IGNORECASE,
)
# gpt-oss: channels, of which `final` is the answer; without its special tokens what they leave behind.
_CHANNEL = re.compile(
    r"<\|channel\|>\s*(\w+).*?<\|message\|>(.*?)(?=<\|(?:end|return|call|start|channel)\|>|$)", re.DOTALL
)
_BARE_CHANNELS = re.compile(r"\s*(?:analysis|commentary).*assistant\s*final", re.DOTALL)
SHORTEST_SECRET = 16  # characters; what is shorter may be an ordinary word, and an answer may hold it
HIDDEN = "***"
_SURROGATES = re.compile("[\ud800-\udfff]")

most_bytes: ContextVar[int] = ContextVar("most_bytes")  # of the response that a task waits for


def read_completion(
    response: Mapping[str, Any], date: str, *, needs_logprobs: bool, keep_thoughts: bool = False
) -> Completion:
    """A completion from a server's answer by either route.

    Args:
        response: the answer, as JSON.
        date: when it came.
        needs_logprobs: whether log-probabilities were asked for.
        keep_thoughts: whether thoughts that the server leaves in the text stay in it.

    Raises:
        Unusable: it is not in the protocol's form, the server broke it off, or it lacks log-probabilities.
    """
    choice = _choice(response)
    finish_reason = str(choice.get("finish_reason") or "")
    if choice.get("error") or finish_reason.lower() in BROKEN_OFF:
        raise Unusable(f"the server broke the answer off ({finish_reason or 'error'})")
    message = _message(choice)
    parts = list(_parts(message.get("content")))
    whole = "".join(text for kind, text in parts if kind == "text")
    refusal = str(message.get("refusal") or "") or "".join(text for kind, text in parts if kind == "refusal")
    thought_apart = any(kind == "thought" for kind, _ in parts) or any(message.get(name) for name in THOUGHT_FIELDS)
    text, has_thoughts, missing = (whole, False, "") if keep_thoughts else without_thoughts(whole, finish_reason)
    has_thoughts |= thought_apart or _reasoning_tokens(response) > 0
    refused = bool(refusal) or finish_reason.lower() in DECLINED
    outcome: Outcome = "refused" if refused else "answered" if text.strip() else "empty"
    top_logprobs = _alternatives_of(choice.get("logprobs"), text, has_thoughts) if needs_logprobs else ()
    if needs_logprobs and outcome == "answered" and not top_logprobs:
        raise Unusable("the log-probabilities that were asked for were left out")
    prompt_tokens, completion_tokens = usage(response)
    return Completion(
        text=text,
        outcome=outcome,
        finish_reason=finish_reason,
        served_model=str(response.get("model") or ""),
        date=date,
        top_logprobs=top_logprobs,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        reason={
            "answered": "",
            "refused": refusal or finish_reason,
            "empty": missing or _why_empty(message, parts, finish_reason, has_thoughts),
        }[outcome],
        has_thoughts=has_thoughts,
    )


def _message(choice: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message of a choice; its `text`, on the other route, as the content of one."""
    if (message := choice.get("message")) is None and "text" in choice:
        message = {"content": choice["text"]}
    if not isinstance(message, Mapping):
        raise Unusable("the answer has neither message nor text")
    return message


def _parts(content: Any) -> Iterator[tuple[str, str]]:
    """(kind, text) of each part of a content: text, refusal, thought, or another kind without a text."""
    for part in content if isinstance(content, list) else () if content is None else (content,):
        if isinstance(part, str):
            yield "text", part
            continue
        if not isinstance(part, Mapping):
            raise Unusable("the content is neither a text nor a list of parts")
        kind = part.get("type")
        if kind in THOUGHT_PARTS or part.get("thought") is True:
            yield "thought", ""
        elif kind in TEXT_PARTS or kind == "refusal":
            value = part.get("refusal" if kind == "refusal" else "text")
            value = value.get("value") if isinstance(value, Mapping) else value
            if not isinstance(value, str):
                raise Unusable("a part of the content holds no text")
            yield "refusal" if kind == "refusal" else "text", value
        else:
            yield str(kind), ""


def _why_empty(
    message: Mapping[str, Any], parts: Sequence[tuple[str, str]], finish_reason: str, has_thoughts: bool
) -> str:
    if has_thoughts:
        return STILL_THINKING if finish_reason == "length" else ONLY_THOUGHTS
    if message.get("tool_calls") or message.get("function_call") or any("tool" in kind for kind, _ in parts):
        return TOOL_CALL
    if others := sorted({kind for kind, _ in parts if kind != "text"}):
        return f"its content has parts without text ({', '.join(others)})"
    return EMPTY_TEXT if parts else NO_CONTENT


def _reasoning_tokens(response: Mapping[str, Any]) -> int:
    """Of thoughts that the server keeps to itself."""
    counted = response.get("usage")
    details = counted.get("completion_tokens_details") if isinstance(counted, Mapping) else None
    number = details.get("reasoning_tokens") if isinstance(details, Mapping) else None
    return number if type(number) is int else 0


def check_length(response: Mapping[str, Any], most: int, num_tokens: int) -> None:
    """Raises Unusable for an answer of more than `most` characters, which so many tokens cannot have."""
    number = sum(len(text) for _, text in _parts(_message(_choice(response)).get("content")))
    if number > most:
        raise Unusable(f"the answer has {number:,} characters, and {num_tokens:,} tokens were asked for")


# Log-probabilities ----------------------------------------------------------------------------------------------------


def _alternatives_of(logprobs: Any, text: str, has_thoughts: bool) -> tuple[tuple[tuple[str, float], ...], ...]:
    """Those of the answer alone: where thoughts stand before it, from its first letter on."""
    rows = alternatives(logprobs)
    if not all(are_log_probabilities(row, 1, LARGEST_SUM_OF_ANY) for row in rows):
        raise Unusable("what stands for log-probabilities cannot be such")
    if not (rows and has_thoughts):
        return rows
    tokens = _written_tokens(logprobs)
    begin = "".join(tokens).rfind(text.strip())
    if begin < 0 or len(tokens) != len(rows):
        raise Unusable("the log-probabilities of the answer cannot be told from those of its thoughts")
    return answer_rows(rows, tokens, begin)


def answer_rows(rows: Sequence[Any], tokens: Sequence[str], begin: int) -> tuple[Any, ...]:
    """The rows of the tokens of a text from its character `begin` on."""
    ends = (sum(map(len, tokens[: index + 1])) for index in range(len(tokens)))
    return tuple(row for row, end in zip(rows, ends, strict=True) if end > begin)


def alternatives(logprobs: Any) -> tuple[tuple[tuple[str, float], ...], ...]:
    """Per written token the pairs of text and log-probability, itself among them, the likeliest first; empty where the
    server gave none."""
    if not isinstance(logprobs, Mapping):
        return ()
    rows: list[tuple[tuple[str, float], ...]] = []
    if isinstance(content := logprobs.get("content"), list):  # chat
        for token in content:
            pairs = [(str(item["token"]), float(item["logprob"])) for item in token.get("top_logprobs") or ()]
            rows.append(_ranked(pairs, str(token["token"]), token.get("logprob")))
    elif isinstance(tops := logprobs.get("top_logprobs"), list):  # completions
        tokens = logprobs.get("tokens") or [None] * len(tops)
        chances = logprobs.get("token_logprobs") or [None] * len(tops)
        for top, token, chance in zip(tops, tokens, chances, strict=True):
            pairs = [(str(name), float(value)) for name, value in (top or {}).items()]
            rows.append(_ranked(pairs, token, chance))
    return tuple(rows) if all(rows) else ()


def _written_tokens(logprobs: Mapping[str, Any]) -> list[str]:
    if isinstance(content := logprobs.get("content"), list):
        return [str(token["token"]) for token in content]
    return [str(token) for token in logprobs.get("tokens") or ()]


def _ranked(pairs: list[tuple[str, float]], token: Any, chance: Any) -> tuple[tuple[str, float], ...]:
    if chance is not None and token is not None and all(name != token for name, _ in pairs):
        pairs = [*pairs, (str(token), float(chance))]
    return tuple(sorted(((name, _floored(value)) for name, value in pairs), key=lambda pair: -pair[1]))


def _floored(value: float) -> float:
    """A probability of 0, as servers write it (minus infinity, -9999), is the floor that local models have."""
    return LOG_PROB_FLOOR if value < LOG_PROB_FLOOR else value  # NaN stays


def are_log_probabilities(row: Sequence[tuple[str, float]], least: int, largest_sum: float = LARGEST_SUM) -> bool:
    """Whether the alternatives to a token can be what they are called. least: so many there must be."""
    values = [value for _, value in row]
    return (
        len(values) >= least
        and all(math.isfinite(value) and value <= 1e-6 for value in values)
        and max(values) > LOG_PROB_FLOOR
        and sum(map(math.exp, values)) <= largest_sum
    )


def read_prompt_scores(response: Mapping[str, Any], text: str, num_new_tokens: int) -> list[float]:
    """The log-probability of each token of a text but the first, from an answer that repeats the text. A probability
    of 0 is the floor of local models. Raises Unusable for an answer that does not repeat it, or whose numbers cannot be
    log-probabilities. num_new_tokens: how many were asked for beside it."""
    choice = _choice(response)
    logprobs = choice.get("logprobs")
    if not isinstance(logprobs, Mapping) or not isinstance(values := logprobs.get("token_logprobs"), list):
        raise Unusable("the log-probabilities of the text were left out")
    if not _same_text(str(choice.get("text") or ""), text):
        raise Unusable("the text was not repeated")
    if num_new_tokens > 1 and not response.get("usage"):
        raise Unusable("the tokens that were written were not counted")
    num_new = usage(response)[1] if response.get("usage") else num_new_tokens  # nobody shows an end of text
    if num_new > max(1, num_new_tokens):  # llama-cpp-python takes 0 for as many as it can
        raise Unusable(f"{num_new:,} tokens were written and {num_new_tokens} wanted")
    scores = values[1 : len(values) - num_new]
    if not all(type(value) in (int, float) and value <= 1e-6 for value in scores):  # null, NaN, or above 0
        raise Unusable("not every token of the text has a log-probability")
    floored = [_floored(float(value)) for value in scores]
    if len(set(floored)) == 1 and (len(floored) > 1 or floored[0] == 0):  # as of a server that fills the field
        raise Unusable("every token of the text has the same log-probability")
    return floored


def listed_tokens(response: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Text and log-probability of each token that an answer of the completions route lists; those without a number
    (the first of a text) left out. Empty where it lists none."""
    logprobs = _choice(response).get("logprobs")
    if not isinstance(logprobs, Mapping):
        return []
    tokens, values = (logprobs.get(name) or [] for name in ("tokens", "token_logprobs"))
    pairs = zip(tokens, values, strict=False)
    return [(str(token), _floored(float(value))) for token, value in pairs if value is not None]


def _same_text(answer: str, text: str) -> bool:
    """Up to white space, which some tokenizers do not bring back, and to characters cut in the middle."""
    return "".join(answer.split()).startswith("".join(text.split())[:200])


# The answer as a whole ------------------------------------------------------------------------------------------------


def _choice(response: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = response.get("choices")
    if not isinstance(choices, list) or not choices or not all(isinstance(choice, Mapping) for choice in choices):
        raise Unusable("the answer has no choices")
    # One was asked for; of a server that gives more, in whatever order, the first by its own count.
    first: Mapping[str, Any] = next((choice for choice in choices if choice.get("index") == 0), choices[0])
    return first


def usage(response: Mapping[str, Any]) -> tuple[int, int]:
    """Tokens sent and received, as the server counts them; 0 and 0 where it does not, or not what can be counts.
    Thoughts, which some services count in the total alone (Gemini, Grok), were received too."""
    counted = response.get("usage")
    if not isinstance(counted, Mapping):
        return 0, 0
    prompt, completion = (counted.get(name) or 0 for name in ("prompt_tokens", "completion_tokens"))
    if not all(type(number) is int and 0 <= number <= MOST_TOKENS for number in (prompt, completion)):
        return 0, 0
    total = counted.get("total_tokens")
    if prompt and type(total) is int and prompt + completion < total <= MOST_TOKENS:
        completion = total - prompt
    return prompt, completion


def without_thoughts(text: str, finish_reason: str) -> tuple[str, bool, str]:
    """A text without the thoughts that its model marks as such.

    Thoughts may have begun in the prompt, so all before a mark that ends them belongs to them. An opening mark within
    an answer that is complete is text.

    Returns:
        The answer, whether there were thoughts, and why nothing is left of it (empty where something is).
    """
    if "<|channel|>" in text:
        final = "".join(content for channel, content in _CHANNEL.findall(text) if channel == "final")
        return final.strip(), True, "" if final.strip() else _endless(finish_reason)
    if bare := _BARE_CHANNELS.match(text):
        return text[bare.end() :].strip(), True, ""
    answer: list[str] = []
    start, inside, has_thoughts = 0, False, False
    for mark in _MARK.finditer(text):
        if mark["open"] and not inside:
            answer.append(text[start : mark.start()])
            start, inside = mark.start(), True
        elif not mark["open"]:
            if not inside:
                answer.clear()
            start, inside, has_thoughts = mark.end(), False, True
    if inside and (finish_reason == "length" or not "".join(answer).strip()):
        return "", True, _endless(finish_reason)
    whole = "".join([*answer, text[start:]])
    return (whole.strip(), True, "") if has_thoughts else (text, False, "")


def _endless(finish_reason: str) -> str:
    return STILL_THINKING if finish_reason == "length" else ENDLESS_THOUGHTS


def parsed(text: str, secrets: Sequence[str] = ()) -> tuple[str, Any]:
    """A response as text and as JSON, None where it is none, or nested beyond reason.

    Half characters (lone surrogates), which no file can hold, become U+FFFD. So does `***` for a secret, however its
    characters are written; but only for secrets of SHORTEST_SECRET characters or more: keys of local servers are often
    words (`token`, `1`), and replacing those would change what the model answered.
    """
    secrets = [secret for secret in secrets if len(secret) >= SHORTEST_SECRET]
    try:
        value = unambiguous_json.decode(text)
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
        return {without(name, secrets): without(item, secrets) for name, item in value.items()}
    return [without(item, secrets) for item in value] if isinstance(value, list) else value


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
        return "text that is not JSON"
    try:
        unambiguous_json.decode(text)
    except RecursionError:
        return "JSON nested beyond reason"
    except NotOneValueError as error:
        return f"JSON that {str(error).rstrip('.')}"
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
