"""What a method of the literature is to the pipeline: the models it needs, how it scores, how it tests.

A method never trains, downloads or opens a file. It is given scores per role and says what they mean.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, ClassVar, Literal

import numpy as np

from nonmember.corpora import CorpusSpec
from nonmember.models.specs import ModelSpec
from nonmember.records import FloatArray
from nonmember.scores import Score

Verdict = Literal["evidence_of_non_membership", "evidence_of_membership", "inconclusive", "score_only", "invalid"]


class Access(IntEnum):
    """What a model must answer (methods, section 1.1); each level includes the lower ones."""

    TEXT = 0
    TOP_LOGPROBS = 1
    PROMPT_LOGPROBS = 2
    FULL_LOGITS = 3
    WEIGHTS = 4


@dataclass(frozen=True)
class Roles:
    """Who is who in an audit."""

    target: ModelSpec
    reference: ModelSpec
    suspect: CorpusSpec
    seed: int


@dataclass(frozen=True)
class RoleScores:
    """Scores of the documents that every role could score, in one order. values: role -> [documents]."""

    doc_ids: tuple[str, ...]
    values: Mapping[str, FloatArray]


@dataclass(frozen=True)
class TestOutcome:
    """What a method concludes.

    statistic, p_value, ci_low, ci_high: NaN where undefined.   details: further named numbers, shown in the result.
    distribution: resampled statistics, empty where the method has none.
    """

    statistic: float
    p_value: float
    ci_low: float
    ci_high: float
    alpha: float
    verdict: Verdict
    allowed_claim: str
    warnings: Sequence[str] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    distribution: FloatArray = field(default_factory=lambda: np.zeros(0))


class Method(ABC):
    """One file and one YAML per method."""

    name: ClassVar[str]
    target_access: ClassVar[Access]
    min_documents: ClassVar[int]
    score: Score
    alpha: float
    max_tokens: int

    def __post_init__(self) -> None:
        """Settings are refused before anything is trained for them."""
        if not isinstance(self.alpha, int | float) or not 0 < self.alpha < 1:
            raise ValueError(f"alpha must lie between 0 and 1, but {self.alpha!r} came.")
        if not isinstance(self.max_tokens, int) or self.max_tokens < 2:
            raise ValueError(f"max_tokens must be a whole number of at least 2, but {self.max_tokens!r} came.")

    @abstractmethod
    def models(self, roles: Roles) -> dict[str, ModelSpec]:
        """The models to observe, by role; recipes built from the roles are trained by whoever asks."""

    @abstractmethod
    def test(self, scores: RoleScores, rng: np.random.Generator) -> TestOutcome:
        """Decide. Random draws come from `rng` alone."""
