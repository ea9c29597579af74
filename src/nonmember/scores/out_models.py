"""Likelihood against models that have not read the texts: LiRA (Carlini et al., 2022), RMIA (Zarifzadeh et al., 2024).

s_M(d) is the mean log-probability per token of document d under model M, T the target, O_1 ... O_k the out-models.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import scipy

from nonmember.checks import Number
from nonmember.records import FloatArray, TokenTable
from nonmember.scores.base import (
    NO_TOKENS,
    DocumentScores,
    Score,
    ScoreInputs,
    in_order_of,
    needed,
    nll,
    scores_with_reasons,
)

Scale = Literal["probability", "z"]

NO_OUT = f"out-models: {NO_TOKENS}"
NO_SPREAD = "the out-models say the same of every document, so that there is no deviation to divide by"


def log_likelihoods(doc_ids: Sequence[str], tables: Sequence[TokenTable]) -> FloatArray:
    """[models, documents] s of each model, in the order of `doc_ids`."""
    return np.array([in_order_of(doc_ids, table, -nll(table)) for table in tables])


def _out_models(inputs: ScoreInputs, score: Score) -> FloatArray:
    """[out-models, documents]."""
    tables = needed(inputs.out_models or None, "models that have not read the texts (out_models)", score)
    return log_likelihoods(inputs.tokens.doc_ids, tables)


def _any_missing(outs: FloatArray) -> npt.NDArray[np.bool_]:
    """[documents]"""
    return np.asarray(np.isnan(outs).any(axis=0))


@dataclass(frozen=True)
class Lira(Score):
    """LiRA offline: (s_T(d) - mean of s_O(d)) / sigma(d), as a probability under the normal distribution.

    With few out-models the deviation of a single document is hardly known, so it is always drawn towards that of all:
    sigma(d)^2 = ((k - 1) var(d) + w v) / (k - 1 + w), where var(d) is the sample variance of the out-models on d, v its
    mean over documents and w `shrinkage`. A single out-model has no variance; sigma is then that of s_T - s_O over the
    documents, the same for all of them. So the score of a document depends on the others in the corpus.

    Attributes:
        shrinkage: As many degrees of freedom have the documents together; 0: each by itself.
        scale: "probability" is the paper's; "z" is the number of deviations, which ranks alike and is not 1 wherever a
            text is more than eight of them above the out-models.

    Raises:
        ValueError: For settings out of range.

    Source: Carlini et al., 2022, section IV (offline); the shrinking is ours (they pool below 64 models).
    """

    shrinkage: Annotated[float, Number("[0, inf)", "It counts degrees of freedom; the usual is 7.")] = 7.0
    scale: Scale = "probability"

    needs_out_models: ClassVar[bool] = True
    depends_on_others = True

    @property
    def name(self) -> str:
        return "lira" if self.scale == "probability" else "lira_z"

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        target, outs = -nll(inputs.tokens), _out_models(inputs, self)
        if not len(target):
            return scores_with_reasons(inputs.tokens, target)
        gain = target - outs.mean(axis=0)
        sigma = self._sigma(gain, outs)
        z = np.divide(gain, sigma, out=np.full(len(gain), np.nan), where=sigma > 0)
        values = scipy.special.ndtr(z) if self.scale == "probability" else z
        undefined = {NO_OUT: _any_missing(outs), NO_SPREAD: ~(sigma > 0)}
        return scores_with_reasons(inputs.tokens, values, undefined, {"lira_at_one": int((values == 1).sum())})

    def _sigma(self, gain: FloatArray, outs: FloatArray) -> FloatArray:
        """[documents]"""
        free = len(outs) - 1
        if free == 0:
            known = gain[~np.isnan(gain)]
            return np.full(len(gain), np.std(np.sort(known), ddof=1) if len(known) > 1 else 0.0)
        variance = outs.var(axis=0, ddof=1)
        known = variance[~np.isnan(variance)]
        pooled = math.fsum(known) / max(1, len(known))
        result: FloatArray = np.sqrt((free * variance + self.shrinkage * pooled) / (free + self.shrinkage))
        return result


@dataclass(frozen=True)
class Rmia(Score):
    """RMIA: the share of unread texts z with LR(d) / LR(z) >= gamma, LR = p_T / mean of p_O, p = exp(s).

    The rank of a document among unread text of its kind. A text above all of these has 1, however far above.

    Attributes:
        gamma: Above 0; the paper's is 1 for ranking.

    Raises:
        ValueError: For others.

    Source: Zarifzadeh et al., 2024, eq. 2 and 3, offline.
    """

    gamma: Annotated[float, Number("(0, inf)", "The paper's is 1.")] = 1.0

    needs_out_models: ClassVar[bool] = True
    needs_population: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return "rmia" if self.gamma == 1 else f"rmia({self.gamma:g})"

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        population = needed(inputs.population, "other unread texts of the same kind", self)
        outs = _out_models(inputs, self)
        own = _log_ratio(-nll(inputs.tokens), outs)
        others = _log_ratio(-nll(population), log_likelihoods(population.doc_ids, inputs.population_out_models))
        if not (others := np.sort(others[~np.isnan(others)])).size:
            raise ValueError(f"The score {self.name} compares with unread texts, and none has two tokens. Give others.")
        below = np.searchsorted(others, own - math.log(self.gamma), side="right") / len(others)
        undefined = {NO_OUT: _any_missing(outs)}
        return scores_with_reasons(inputs.tokens, np.where(np.isnan(own), np.nan, below), undefined)


def _log_ratio(target: FloatArray, outs: FloatArray) -> FloatArray:
    """[documents] log LR. Means of log-probabilities are negative, and their exponentials do not overflow."""
    result: FloatArray = target - (scipy.special.logsumexp(outs, axis=0) - math.log(len(outs)) if outs.size else 0.0)
    return result
