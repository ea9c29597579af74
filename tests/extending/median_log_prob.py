"""A score: one class that turns a token table into a number per document, higher = more likely a member."""

from dataclasses import dataclass

import numpy as np

from nonmember.scores import DocumentScores, Score, ScoreInputs
from nonmember.scores.base import scores_with_reasons


@dataclass(frozen=True)
class MedianLogProb(Score):
    """Median log-probability per token: unlike the mean, a few surprising tokens do not move it."""

    @property
    def name(self) -> str:
        return "median_log_prob"

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        table = inputs.tokens
        log_prob = table.log_prob.astype(np.float64)  # of float32, in which the verifier of bundles does not reckon
        rows = [log_prob[table.rows(index)] for index in range(len(table))]
        values = [np.median(row) if len(row) else np.nan for row in rows]
        return scores_with_reasons(table, np.array(values))
