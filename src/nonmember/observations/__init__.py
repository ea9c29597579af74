"""Observations: what models say about corpora, and the measurements that methods ask for."""

from nonmember.observations.base import Measured, Measurement, Observation
from nonmember.observations.documents import Diverged, Embedded
from nonmember.observations.orders import OrderLikelihoods, OrderQuantity, Reordered
from nonmember.observations.scored import Scored, access_of
from nonmember.observations.tokens import AnswerProbabilities, TokenStatistics

__all__ = [
    "AnswerProbabilities",
    "Diverged",
    "Embedded",
    "Measured",
    "Measurement",
    "Observation",
    "OrderLikelihoods",
    "OrderQuantity",
    "Reordered",
    "Scored",
    "TokenStatistics",
    "access_of",
]
