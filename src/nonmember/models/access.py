"""Model access levels."""

from __future__ import annotations

from enum import IntEnum


class Access(IntEnum):
    """What a method needs of a model; each level includes the lower ones."""

    TEXT = 0
    TOP_LOGPROBS = 1
    PROMPT_LOGPROBS = 2
    FULL_LOGITS = 3
    WEIGHTS = 4
