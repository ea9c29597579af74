"""Statistics of audits: arrays (and a generator) in, named results out. Numpy, scipy and scikit-learn only.

one score, members known     roc_auc, tpr_at_fpr, best_balanced_accuracy, roc_points, ranking
PRISM                        difference_of_dependent_correlations, bootstrap_correlation, rank_correlation
paired scores                paired_t_less, paired_t_greater, order_test
two groups of documents      compare_groups, welch_t, mean_difference, shares_greater, dataset_inference,
                             difference_of_rates
embeddings                   kernel_divergence, level_correlation, consistency
canaries                     rank_sum_test, canary_power
text alone                   blind_baseline, blind_guesses, layout_auc
shares                       exact_interval, exact_upper_bound, fisher_greater
several tests                holm
"""

from nonmember.stats.blind import BlindAuc, BlindBaseline, blind_baseline, layout_auc, layout_features
from nonmember.stats.bootstrap import (
    BootstrapCorrelation,
    CorrelationDifference,
    bootstrap_correlation,
    bootstrap_p_value,
    difference_of_dependent_correlations,
    percentile_interval,
)
from nonmember.stats.canaries import CanaryRanks, canary_power, rank_sum_test
from nonmember.stats.classification import (
    Ranking,
    RocPoints,
    best_balanced_accuracy,
    cluster_counts,
    ranking,
    roc_auc,
    roc_points,
    tpr_at_fpr,
)
from nonmember.stats.contamination import Consistency, LevelCorrelation, consistency, level_correlation
from nonmember.stats.correlation import rank_correlation
from nonmember.stats.inference import DatasetInference, TwoSampleT, combine_splits, dataset_inference, two_sample_t_less
from nonmember.stats.kernels import KernelDivergence, kernel_divergence
from nonmember.stats.letter_choice import BlindGuess, Choices, blind_guesses, calibration_offsets
from nonmember.stats.multiplicity import holm
from nonmember.stats.paired import PairedT, order_test, paired_t_greater, paired_t_less
from nonmember.stats.proportions import (
    Hits,
    Interval,
    RateDifference,
    difference_of_rates,
    exact_interval,
    exact_upper_bound,
    fisher_greater,
    shares_greater,
)
from nonmember.stats.two_groups import GroupComparison, MeanDifference, Welch, compare_groups, mean_difference, welch_t

__all__ = [
    "BlindAuc",
    "BlindBaseline",
    "BlindGuess",
    "BootstrapCorrelation",
    "CanaryRanks",
    "Choices",
    "Consistency",
    "CorrelationDifference",
    "DatasetInference",
    "GroupComparison",
    "Hits",
    "Interval",
    "KernelDivergence",
    "LevelCorrelation",
    "MeanDifference",
    "PairedT",
    "Ranking",
    "RateDifference",
    "RocPoints",
    "TwoSampleT",
    "Welch",
    "best_balanced_accuracy",
    "blind_baseline",
    "blind_guesses",
    "bootstrap_correlation",
    "bootstrap_p_value",
    "calibration_offsets",
    "canary_power",
    "cluster_counts",
    "combine_splits",
    "compare_groups",
    "consistency",
    "dataset_inference",
    "difference_of_dependent_correlations",
    "difference_of_rates",
    "exact_interval",
    "exact_upper_bound",
    "fisher_greater",
    "holm",
    "kernel_divergence",
    "layout_auc",
    "layout_features",
    "level_correlation",
    "mean_difference",
    "order_test",
    "paired_t_greater",
    "paired_t_less",
    "percentile_interval",
    "rank_correlation",
    "rank_sum_test",
    "ranking",
    "roc_auc",
    "roc_points",
    "shares_greater",
    "tpr_at_fpr",
    "two_sample_t_less",
    "welch_t",
]
