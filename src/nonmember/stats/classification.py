"""How well a score separates members from non-members.

Scores point the member way (higher = more member-like); labels are true for members. A document is called a
member where its score is at least the threshold; thresholds are the scores and one above all of them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from nonmember.stats._arrays import BoolArray, FloatArray, as_scores

FprConvention = Literal["<=", "<"]


class RocPoints(NamedTuple):
    """True- and false-positive rates [thresholds], from calling nobody a member to calling everybody one."""

    tpr: FloatArray
    fpr: FloatArray


def roc_auc(scores: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    """Area under the ROC curve: P(member scores above non-member), a tie counted one half.

    Args:
        scores: [N], higher = more likely a member.
        labels: [N], 1 or true for members.

    Returns:
        The Mann-Whitney statistic over the number of pairs, in [0, 1]; 0.5 is chance, below it the score points the
        wrong way. DE-COP's "AUC" is not this but `best_balanced_accuracy`.

    Raises:
        ValueError: On NaN scores, unequal lengths, labels other than 0 and 1, and if a class is empty.

    Source: Hanley and McNeil, Radiology 143, 1982; docs/methods/conventions.md.

    >>> roc_auc([0.9, 0.4, 0.6, 0.1], [1, 1, 0, 0])
    0.75
    """
    ranks, labels = _ranked(scores, labels)
    num_wins = scipy.stats.mannwhitneyu(ranks[labels], ranks[~labels], method="asymptotic").statistic
    num_members = np.count_nonzero(labels)
    return float(num_wins / (num_members * (labels.size - num_members)))


def tpr_at_fpr(scores: npt.ArrayLike, labels: npt.ArrayLike, fpr: float, convention: FprConvention) -> float:
    """Largest true-positive rate at a threshold whose false-positive rate is within a bound; no interpolation.

    Args:
        scores: [N] as in `roc_auc`.
        labels: [N] as in `roc_auc`.
        fpr: The bound, in [0, 1].
        convention: "<=", of Min-K%++, or "<", of the programs of Min-K%, FSD, DC-PDD and mimir.

    Returns:
        A rate in [0, 1].

    Raises:
        ValueError: As `roc_auc`, for another convention, and if no threshold can meet the bound.

    Source: Min-K%++ (Zhang et al., 2025); docs/methods/conventions.md.

    >>> tpr_at_fpr([0.9, 0.4, 0.6, 0.1], [1, 1, 0, 0], 0.05, "<=")
    0.5
    """
    if convention not in ("<=", "<"):
        raise ValueError(f"Expected the convention '<=' or '<'; got {convention!r}. Name one of them.")
    if not 0 <= fpr <= 1 or (fpr == 0 and convention == "<"):
        raise ValueError(
            f"Expected a false-positive rate in [0, 1], above 0 for '<'; got fpr={fpr} with {convention!r}. "
            "Pass 0.05 for TPR at 5% FPR."
        )
    points = roc_points(scores, labels)
    allowed = points.fpr <= fpr if convention == "<=" else points.fpr < fpr
    return float(points.tpr[allowed].max())


def best_balanced_accuracy(scores: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    """Largest (TPR + 1 - FPR) / 2 over all thresholds.

    Args:
        scores: [N] as in `roc_auc`.
        labels: [N] as in `roc_auc`.

    Returns:
        A share in [0.5, 1]. The threshold is chosen on the very data it is scored on, so this is optimistic; report it
        under this name only.

    Raises:
        ValueError: As `roc_auc`.

    Source: "accuracy" of the programs of Min-K%, FSD and DC-PDD, "AUC" of DE-COP; docs/methods/conventions.md.

    >>> best_balanced_accuracy([0.9, 0.4, 0.6, 0.1], [1, 1, 0, 0])
    0.75
    """
    points = roc_points(scores, labels)
    return float(((points.tpr + 1 - points.fpr) / 2).max())


def roc_points(scores: npt.ArrayLike, labels: npt.ArrayLike) -> RocPoints:
    """The ROC curve, one point per distinct score and the origin. Tied documents change sides together.

    Args:
        scores: [N] as in `roc_auc`.
        labels: [N] as in `roc_auc`.

    Returns:
        True- and false-positive rates, [thresholds] each, ascending.

    Raises:
        ValueError: As `roc_auc`.

    Source: docs/methods/conventions.md; scikit-learn's roc_curve.

    >>> roc_points([0.9, 0.4, 0.6, 0.1], [1, 1, 0, 0]).tpr
    array([0. , 0.5, 0.5, 1. , 1. ])
    """
    from sklearn.metrics import roc_curve  # takes a while to import

    ranks, labels = _ranked(scores, labels)
    fpr, tpr, _ = roc_curve(labels, ranks, drop_intermediate=False)
    return RocPoints(tpr, fpr)


def _ranked(scores: npt.ArrayLike, labels: npt.ArrayLike) -> tuple[FloatArray, BoolArray]:
    """Ranks of the scores, on which alone these curves depend, infinite ones among them; and who is a member."""
    scores, labels = as_scores("scores", scores), np.asarray(labels)
    if labels.shape != scores.shape:
        raise ValueError(
            f"Expected one label per score; got shapes {labels.shape} and {scores.shape}. "
            "Join labels and scores on the document id first."
        )
    if not np.isin(labels, (0, 1)).all():
        raise ValueError(
            "Expected labels 1 or true (member) and 0 or false (non-member); "
            f"got also {np.setdiff1d(labels, (0, 1))[0]}. Recode the labels."
        )
    members = labels.astype(np.bool_)
    if members.all() or not members.any():
        raise ValueError(
            f"Expected members and non-members; got {np.count_nonzero(members)} members among {members.size} "
            "documents. Add the other kind: one kind alone cannot be told apart from anything."
        )
    return scipy.stats.rankdata(scores), members
