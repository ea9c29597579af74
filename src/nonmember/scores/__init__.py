"""Membership scores: token tables in, one number per document out. Higher = more likely a member.

Pure numpy. Every score needs only log-probabilities of given texts, except Min-K%++, which needs the mean and
standard deviation of log p under the model's own distribution.
"""

from nonmember.scores.base import DocumentScores, Score, ScoreInputs
from nonmember.scores.compression import Zlib
from nonmember.scores.dc_pdd import DcPdd, token_counts
from nonmember.scores.loss import Loss
from nonmember.scores.lowercase import Lowercase
from nonmember.scores.min_k import MinK, MinKPlusPlus
from nonmember.scores.reference import ReferenceDifference, ReferenceRatio

__all__ = [
    "DcPdd",
    "DocumentScores",
    "Loss",
    "Lowercase",
    "MinK",
    "MinKPlusPlus",
    "ReferenceDifference",
    "ReferenceRatio",
    "Score",
    "ScoreInputs",
    "Zlib",
    "token_counts",
]
