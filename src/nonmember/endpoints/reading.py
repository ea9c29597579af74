"""What a server's answer holds: its text, apart from the thoughts before it, and log-probabilities."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from nonmember.records.answers import Completion, Outcome
from nonmember.records.tokens import LOG_PROB_FLOOR

LARGEST_SUM, LARGEST_SUM_OF_ANY = 1.001, 1.05  # of probabilities, after rounding; of a probe's, and of any answer's
DECLINED, BROKEN_OFF = ("content_filter", "refusal", "safety"), ("error", "abort")  # reasons why an answer ends
MOST_TOKENS = 10_000_000  # of one answer
THOUGHT_FIELDS = ("reasoning_content", "reasoning", "thinking")
ONLY_THOUGHTS = "it holds thoughts and no answer"
STILL_THINKING = (
    "it was cut while it still thought: give it room (request_settings.min_output_tokens), or have it not think "
    "(chat_template_kwargs={enable_thinking: false})"
)

# How models mark their thoughts where the server leaves them in the text.
_OPEN = re.compile(r"\s*(?:<think(?:ing)?>|\[THINK\]|<\|channel\|>analysis)", re.IGNORECASE)
_FINAL = r"<\|channel\|>final(?: ?<\|constrain\|>\w+)?<\|message\|>"
_END = re.compile(rf"</think(?:ing)?>|\[/THINK\]|{_FINAL}", re.IGNORECASE)
_RETURN = "<|return|>"


class EndpointError(ValueError):
    """The endpoint cannot be queried any further; the message explains why in one sentence."""


class Unusable(Exception):
    """An answer that does not hold what was asked for. Its text says what is missing."""


def read_completion(
    response: Mapping[str, Any], date: str, *, needs_logprobs: bool, keep_thoughts: bool = False
) -> Completion:
    """A completion from a server's answer by either route. Raises Unusable where it lacks what was asked for.

    Args:
        response: the answer, as JSON.
        date: when it came.
        needs_logprobs: whether log-probabilities were asked for.
        keep_thoughts: whether thoughts that the server leaves in the text stay in it.
    """
    choice = _choice(response)
    finish_reason = str(choice.get("finish_reason") or "")
    if finish_reason in BROKEN_OFF:
        raise Unusable(f"it was broken off (finish_reason {finish_reason})")
    message = choice.get("message") or {"content": choice.get("text")}
    content = message.get("content") or ""
    if isinstance(content, list):  # parts, as some services have them beside thoughts
        content = "".join(part.get("text") or "" for part in content if part.get("type") in (None, "text"))
    text, has_thoughts, missing = (content, False, "") if keep_thoughts else without_thoughts(content, finish_reason)
    details = (response.get("usage") or {}).get("completion_tokens_details") or {}
    has_thoughts |= any(message.get(name) for name in THOUGHT_FIELDS) or bool(details.get("reasoning_tokens"))
    refusal = str(message.get("refusal") or "") or (finish_reason if finish_reason.lower() in DECLINED else "")
    outcome: Outcome = "refused" if refusal else "answered" if text.strip() else "empty"
    top_logprobs = _alternatives_of(choice.get("logprobs"), text, has_thoughts) if needs_logprobs else ()
    if needs_logprobs and outcome == "answered" and not top_logprobs:
        raise Unusable("the log-probabilities that were asked for were left out")
    if outcome == "empty" and not missing:
        cut = STILL_THINKING if finish_reason == "length" else ONLY_THOUGHTS
        missing = cut if has_thoughts else "its text is empty"
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
        reason=refusal or missing,
        has_thoughts=has_thoughts,
    )


def without_thoughts(text: str, finish_reason: str) -> tuple[str, bool, str]:
    """What stands behind a text's thoughts, whether there were any, and why nothing is left (empty where something is).
    Thoughts may have begun in the prompt, so all before the last mark that ends them belongs to them."""
    *before, answer = _END.split(text)
    if _OPEN.match(answer):
        return "", True, STILL_THINKING if finish_reason == "length" else ONLY_THOUGHTS
    if before:
        answer = answer.strip().removesuffix(_RETURN)
        return answer, True, "" if answer else ONLY_THOUGHTS
    return text, False, ""


def usage(response: Mapping[str, Any]) -> tuple[int, int]:
    """Tokens sent and received, as the server counts them; 0 and 0 where it does not, or where its numbers cannot be
    (a negative one would give the budget back). Thoughts, which some services count in the total alone, were received
    too."""
    counted = response.get("usage") or {}
    numbers = [counted.get(f"{name}_tokens") or 0 for name in ("prompt", "completion", "total")]
    if not all(type(number) is int and 0 <= number <= MOST_TOKENS for number in numbers):
        return 0, 0
    prompt, completion, total = numbers
    return prompt, max(completion, total - prompt if prompt else 0)


# Log-probabilities ----------------------------------------------------------------------------------------------------


def _alternatives_of(logprobs: Any, text: str, has_thoughts: bool) -> tuple[tuple[tuple[str, float], ...], ...]:
    """Those of the answer alone: where thoughts stand before it, from its first letter on."""
    rows, tokens = alternatives(logprobs), [token for token, _ in _written(logprobs or {})]
    if not all(are_log_probabilities(row, 1, LARGEST_SUM_OF_ANY) for row in rows):
        raise Unusable("what stands for log-probabilities cannot be such")
    begin = "".join(tokens).rfind(text.strip()) if has_thoughts else 0
    if begin < 0:
        raise Unusable("the log-probabilities of the answer cannot be told from those of its thoughts")
    return answer_rows(rows, tokens, begin)


def answer_rows(rows: Sequence[Any], tokens: Sequence[str], begin: int) -> tuple[Any, ...]:
    """The rows of the tokens of a text from its character `begin` on."""
    ends = (sum(map(len, tokens[: index + 1])) for index in range(len(tokens)))
    return tuple(row for row, end in zip(rows, ends, strict=True) if end > begin) if begin else tuple(rows)


def alternatives(logprobs: Any) -> tuple[tuple[tuple[str, float], ...], ...]:
    """Per written token the pairs of text and log-probability, itself among them, the likeliest first; empty where the
    server gave none."""
    logprobs = logprobs or {}
    if "content" in logprobs:  # chat
        tops = [{top["token"]: top["logprob"] for top in item["top_logprobs"]} for item in logprobs["content"] or ()]
    else:
        tops = [top or {} for top in logprobs.get("top_logprobs") or ()]
    rows = [{token: chance} | top for (token, chance), top in zip(_written(logprobs), tops, strict=True)]
    return tuple(
        tuple(sorted(((plain_token(name), _floored(value)) for name, value in row.items()), key=lambda pair: -pair[1]))
        for row in rows
    )


def _written(logprobs: Mapping[str, Any]) -> list[tuple[str, float]]:
    if "content" in logprobs:
        return [(item["token"], item["logprob"]) for item in logprobs["content"] or ()]
    return list(zip(logprobs.get("tokens") or (), logprobs.get("token_logprobs") or (), strict=True))


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
    """The log-probability of each token of a text but the first, from an answer that repeats the text. Raises Unusable
    for an answer that does not repeat it, or whose numbers cannot be log-probabilities.

    num_new_tokens: how many were asked for beside it.
    """
    choice = _choice(response)
    values = (choice.get("logprobs") or {}).get("token_logprobs")
    if not values:
        raise Unusable("the log-probabilities of the text were left out")
    if not "".join((choice.get("text") or "").split()).startswith("".join(text.split())[:200]):
        raise Unusable("the text was not repeated")
    num_new = usage(response)[1] if response.get("usage") else num_new_tokens  # nobody shows an end of text
    if num_new > max(1, num_new_tokens):  # llama-cpp-python takes 0 for as many as it can
        raise Unusable(f"{num_new:,} tokens were written and {num_new_tokens} wanted")
    tokens = (choice["logprobs"].get("tokens") or [])[: len(values) - num_new]
    if tokens and not _are_of(tokens, text):  # else each score may stand beside another token
        raise Unusable("the tokens that it lists are not those of the text, from its first to its last")
    scores = values[1 : len(values) - num_new]
    if not all(isinstance(value, int | float) and value <= 1e-6 for value in scores):  # null, NaN, or above 0
        raise Unusable("not every token of the text has a log-probability")
    if len(scores) > 1 and len(set(scores)) == 1:  # as of a server that fills the field
        raise Unusable("every token of the text has the same log-probability")
    return [_floored(float(value)) for value in scores]


def _are_of(tokens: Sequence[str], text: str) -> bool:
    """Whether tokens make up a text, blanks, case and what stands around it aside; True where some cannot be read."""
    joined, wanted = (
        "".join(unicodedata.normalize("NFKC", plain_token(item)).casefold().split()) for item in ("".join(tokens), text)
    )
    return wanted in joined or any(mark in joined for mark in ("\N{REPLACEMENT CHARACTER}", "bytes:", "unk"))


def plain_token(token: str) -> str:
    """With blanks and line breaks where some servers and tables have the marks of byte-level BPE and SentencePiece."""
    return token.replace("Ġ", " ").replace("▁", " ").replace("Ċ", "\n")


def listed_tokens(response: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Text and log-probability of each token that an answer of the completions route lists; those without a number
    (the first of a text) left out. Empty where it lists none."""
    pairs = _written(_choice(response).get("logprobs") or {})
    return [(token, _floored(value)) for token, value in pairs if value is not None]


def _choice(response: Mapping[str, Any]) -> Mapping[str, Any]:
    if not response.get("choices"):
        raise Unusable(f"the answer has no choices: {str(response)[:200]}")
    choice: Mapping[str, Any] = response["choices"][0]
    return choice
