"""The least likely tokens of a text: Min-K% (Shi et al., 2024) and Min-K%++ (Zhang et al., 2025)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from nonmember.checks import Number
from nonmember.records import FloatArray, TokenTable
from nonmember.scores.base import (
    DocumentScores,
    Score,
    ScoreInputs,
    document_of_rows,
    mean_per_document,
    scores_with_reasons,
)

Compat = Literal["none", "official"]

SHARES = "[0.001, 1]"  # less than a token in a thousand is the one least likely token at any length that models read

# A standard deviation below this (a one-hot or a uniform distribution) is not divided by.
SIGMA_EPS = 1e-6

_K_IS_ZERO = "compat official: k = int(T K) = 0, the mean of nothing"
_SIGMA_IS_ZERO = "compat official: 0 / 0 where the standard deviation is 0"


def num_smallest(num_tokens: npt.NDArray[np.int64], k: float, compat: Compat) -> npt.NDArray[np.int64]:
    """How many tokens the fraction `k` of each length is: max(1, floor(T k + 1e-9)), none of nothing.

    The official int(T k) gives 0 for short texts and loses one to rounding: int(90 * 0.7) is 62.
    """
    official = np.floor(num_tokens * k).astype(np.int64)
    guarded = np.clip(np.floor(num_tokens * k + 1e-9).astype(np.int64), np.minimum(1, num_tokens), num_tokens)
    result: npt.NDArray[np.int64] = official if compat == "official" else guarded
    return result


def mean_of_smallest(table: TokenTable, values: FloatArray, num_kept: npt.NDArray[np.int64]) -> FloatArray:
    """[documents] mean of the `num_kept` smallest values of each document; NaN for the mean of none."""
    document = document_of_rows(table)
    rank = np.arange(len(document)) - table.offsets[document]
    for part in np.split(ordered := values.copy(), table.offsets[1:]):  # many times as quick as one sort by two keys
        part.sort()
    return mean_per_document(table, ordered, keep=rank < num_kept[document])


@dataclass(frozen=True)
class _MinKFamily(Score):
    k: Annotated[float, Number(SHARES, "It is a share of the tokens; the usual are 0.1 to 1.")]
    compat: Compat = "none"

    def _score(self, table: TokenTable, values: FloatArray, counters: dict[str, int | float]) -> DocumentScores:
        num_kept = num_smallest(table.num_tokens, self.k, self.compat)
        scores = mean_of_smallest(table, values, num_kept)
        undefined = {_K_IS_ZERO: num_kept == 0, _SIGMA_IS_ZERO: np.ones(len(table), dtype=bool)}
        return scores_with_reasons(table, scores, undefined, counters)


@dataclass(frozen=True)
class MinK(_MinKFamily):
    """Mean log-probability of the fraction `k` of least likely tokens. k = 1 is the loss score.

    Attributes:
        k: In [0.001, 1].
        compat: "official" takes k tokens as the published program does (see `num_smallest`); it prints the negative.

    Raises:
        ValueError: For others.

    Source: Shi et al., 2024, eq. 1.
    """

    @property
    def name(self) -> str:
        return f"mink({self.k:g})"

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        return self._score(inputs.tokens, inputs.tokens.log_prob.astype(np.float64), {})


@dataclass(frozen=True)
class MaxK(_MinKFamily):
    """Mean log-probability of the fraction `k` of *most* likely tokens.

    Attributes:
        k: As in `MinK`.
        compat: As in `MinK`.

    Raises:
        ValueError: As `MinK`.

    Source: LLM-DI (Maini et al., 2024); minus the feature it calls k_min_probs, which sorts losses (its k_max_probs is
    minus Min-K%).
    """

    @property
    def name(self) -> str:
        return f"maxk({self.k:g})"

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        flipped = self._score(inputs.tokens, -inputs.tokens.log_prob.astype(np.float64), {})
        return replace(flipped, values=-flipped.values)


@dataclass(frozen=True)
class MinKPlusPlus(_MinKFamily):
    """Mean of the fraction `k` of smallest z_t = (l_t - mu_t) / sigma_t.

    Not bounded above by 0: a token more likely than the average under the model's own distribution has z > 0.
    Where sigma_t < 1e-6, z_t is 0 for |l_t - mu_t| < 1e-6 and (l_t - mu_t) / 1e-6 otherwise, and counted.

    Attributes:
        k: In [0.001, 1].
        compat: "official" takes k as the published program does, and divides by sigma_t whatever it is.

    Raises:
        ValueError: For others.

    Source: Zhang et al., 2025, eq. 3.
    """

    needs_distribution: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return f"minkpp({self.k:g})"

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        table = inputs.tokens
        deviation = table.log_prob.astype(np.float64) - table.mean
        sigma = table.std.astype(np.float64)
        narrow = sigma < SIGMA_EPS
        if self.compat == "official":
            with np.errstate(divide="ignore", invalid="ignore"):
                z = deviation / sigma
        else:
            z = deviation / np.where(narrow, SIGMA_EPS, sigma)
            z[narrow & (np.abs(deviation) < SIGMA_EPS)] = 0.0
        return self._score(table, z, {"sigma_below_eps": int(narrow.sum())})
