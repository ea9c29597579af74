"""Membership scores: one number per document. Higher = more likely a member.

Functions take plain arrays (`min_k_plus_plus(log_probs, means, stds, k=0.2)`); classes are the same scores as audits
use them, of token tables. Every score needs only log-probabilities of given texts (of
several models: WBC, LiRA, RMIA), except Min-K%++, which needs the
mean and standard deviation of log p under the model's own distribution, and GradNorm, which needs gradients of the
loss. Pure numpy.
"""

from nonmember.scores.base import DocumentScores, Score, ScoreInputs
from nonmember.scores.frequency import DcPdd, token_counts
from nonmember.scores.functions import (
    dc_pdd,
    loss,
    lowercase,
    max_k,
    min_k,
    min_k_plus_plus,
    neighbourhood,
    perplexity,
    perturbed,
    recall,
    reference_difference,
    reference_ratio,
    zlib,
)
from nonmember.scores.likelihood import AnswerProbability, GradNorm, Loss, Perplexity, TopLoss
from nonmember.scores.out_models import Lira, Rmia
from nonmember.scores.relative import (
    Codec,
    Lowercase,
    Neighbourhood,
    Perturbed,
    Recall,
    ReferenceDifference,
    ReferenceRatio,
    Wbc,
    Zlib,
)
from nonmember.scores.rolling import Rolling
from nonmember.scores.tails import MaxK, MinK, MinKPlusPlus

__all__ = [
    "AnswerProbability",
    "Codec",
    "DcPdd",
    "DocumentScores",
    "GradNorm",
    "Lira",
    "Loss",
    "Lowercase",
    "MaxK",
    "MinK",
    "MinKPlusPlus",
    "Neighbourhood",
    "Perplexity",
    "Perturbed",
    "Recall",
    "ReferenceDifference",
    "ReferenceRatio",
    "Rmia",
    "Rolling",
    "Score",
    "ScoreInputs",
    "TopLoss",
    "Wbc",
    "Zlib",
    "dc_pdd",
    "loss",
    "lowercase",
    "max_k",
    "min_k",
    "min_k_plus_plus",
    "neighbourhood",
    "perplexity",
    "perturbed",
    "recall",
    "reference_difference",
    "reference_ratio",
    "token_counts",
    "zlib",
]
