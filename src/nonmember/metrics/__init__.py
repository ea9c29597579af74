"""Scores as `torchmetrics`, for training loops of one's own, and a callback that watches a training.

    from nonmember.metrics import MembershipMonitor, MinKPlusPlus

    metric = MinKPlusPlus(k=0.2)
    metric.update(model(ids).logits, ids, attention_mask)      each batch
    metric.compute()                                           mean over the documents, of all processes

Values are those of `nonmember.scores`, whose functions are called. States are joined over
processes by torchmetrics: documents come in the order of the processes, and those that a sampler repeats to fill its
last batch count as often as they are read.
"""

from nonmember.metrics.monitor import MembershipMonitor
from nonmember.metrics.scores import MinK, MinKPlusPlus, Perplexity

__all__ = ["MembershipMonitor", "MinK", "MinKPlusPlus", "Perplexity"]
