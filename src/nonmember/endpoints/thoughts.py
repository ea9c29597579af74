"""Thoughts that a model writes before its answer, and how they are told from it."""

from __future__ import annotations

import re

STILL_THINKING = (
    "it was cut while it still thought: give it room (request_settings.min_output_tokens), or turn thinking off "
    "(thinking=off)"
)
ENDLESS_THOUGHTS = "its thoughts do not end, and there is no answer behind them"

# How models mark their thoughts where the server leaves them in the text.
_MARK = re.compile(
    r"(?P<open><(?:seed:)?(?:think(?:ing)?|thoughts?|reasoning)\b[^<>/]*>|\[THINK\]|◁think▷|<\|begin_of_thought\|>"
    r"|<\|START_THINKING\|>|<\|channel>(?:thought|analysis)\b)"
    r"|</(?:seed:)?(?:think(?:ing)?|thoughts?|reasoning)\s*>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>"
    r"|<\|END_THINKING\|>|<channel\|>",
    re.IGNORECASE,
)
# gpt-oss: channels, of which `final` is the answer; without its special tokens what they leave behind.
_CHANNEL = re.compile(
    r"<\|channel\|>\s*(\w+).*?<\|message\|>(.*?)(?=<\|(?:end|return|call|start|channel)\|>|$)", re.DOTALL
)
_BARE_CHANNELS = re.compile(r"\s*(?:analysis|commentary).*assistant\s*final", re.DOTALL)


def without_thoughts(text: str, finish_reason: str) -> tuple[str, bool, str]:
    """A text without the thoughts that its model marks as such.

    Thoughts may have begun in the prompt, so all before a mark that ends them belongs to them. An opening mark within
    an answer that is complete is text.

    Returns:
        The answer, whether there were thoughts, and why nothing is left of it (empty where something is).
    """
    if "<|channel|>" in text:
        final = "".join(said for channel, said in _CHANNEL.findall(text) if channel == "final")
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
