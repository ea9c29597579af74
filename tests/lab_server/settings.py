"""How the server behaves; sent to it as JSON, so a test can change it at any time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Settings:
    """model: the only name it answers to.   key: the secret it wants; empty: none.   seed: of every draw.

    documents: {"text", "read"} of what there is in its world; it has read some of it.
    hit: kind of question -> probability of the right answer for documents [not read, read].
    position_bias: which letter it tends to where it does not know.
    refused, empty, unreadable: shares of the questions that it answers so.

    faults: kind -> share of requests whose first `fault_attempts` attempts meet it: "429", "500", "503" (with
    `retry_after` where given), "400", "cut" (half an answer, not charged), "stall" (`stall` seconds, then the answer).
    latency: seconds of every answer.   quota: answers after which the account is empty.
    logprobs: given, ignored (as if not asked for), or a number: of the answers from which they are missing.
    zero_tokens: how many are written where none are wanted.   shifted: scores of a text stand one token too early, as
    those of llama-cpp-python do for models without a token that begins a text.
    most_alternatives: more are refused.   refuses: fields of a request that are.
    served: [[name, from the so-many-th answer on], ...].   echoes_key: its errors and answers repeat the secret.
    """

    model: str = "lab"
    key: str = ""
    seed: int = 0
    documents: list[dict[str, Any]] = field(default_factory=list)
    hit: dict[str, list[float]] = field(default_factory=dict)
    position_bias: list[float] = field(default_factory=lambda: [0.25] * 4)
    refused: float = 0.0
    empty: float = 0.0
    unreadable: float = 0.0
    faults: dict[str, float] = field(default_factory=dict)
    fault_attempts: int = 1
    retry_after: str | None = None
    stall: float = 0.0
    latency: float = 0.0
    quota: int | None = None
    logprobs: str | float = "given"
    zero_tokens: int = 0
    shifted: bool = False
    most_alternatives: int = 20
    refuses: list[str] = field(default_factory=list)
    served: list[list[Any]] = field(default_factory=list)
    echoes_key: bool = False
