"""Membership scores: one number per document. Higher = more likely a member.

Functions take plain arrays (`min_k_plus_plus(log_probs, means, stds, k=0.2)`); classes are the same scores as audits
use them, of token tables. Every score needs only log-probabilities of given texts (of several models: WBC, LiRA,
RMIA), except Min-K%++, which needs the mean and standard deviation of log p under the model's own distribution.
Pure numpy.
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
    perplexity,
    perturbed,
    recall,
    reference_difference,
    reference_ratio,
    zlib,
)
from nonmember.scores.likelihood import AnswerProbability, Extraction, LogProbability, Loss, Perplexity, TopLoss
from nonmember.scores.out_models import Lira, Rmia
from nonmember.scores.relative import Lowercase, Perturbed, Recall, ReferenceDifference, ReferenceRatio, Wbc, Zlib
from nonmember.scores.tails import MaxK, MinK, MinKPlusPlus

__all__ = [
    "AnswerProbability",
    "DcPdd",
    "DocumentScores",
    "Extraction",
    "Lira",
    "LogProbability",
    "Loss",
    "Lowercase",
    "MaxK",
    "MinK",
    "MinKPlusPlus",
    "Perplexity",
    "Perturbed",
    "Recall",
    "ReferenceDifference",
    "ReferenceRatio",
    "Rmia",
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
    "perplexity",
    "perturbed",
    "recall",
    "reference_difference",
    "reference_ratio",
    "token_counts",
    "zlib",
]
