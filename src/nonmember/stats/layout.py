"""Can two groups of texts be told apart by how they are laid out, whatever they say?

If they can, one of them went through other preprocessing. A model that read the one has learnt the layout, and every
score moves with it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from nonmember.stats._arrays import FloatArray
from nonmember.stats.classification import roc_auc

# Shares of characters or yes/no: none grows with the length of a text, and none knows a word.
_PATTERNS = {
    "newline": r"\n",
    "blank_line": r"\n\s*\n",
    "indentation": r"(?m)^[ \t]+(?=\S)",
    "tab": r"\t",
    "double_space": r"(?<=\S)  +(?=\S)",
    "trailing_space": r"(?m)(?<![ \t])[ \t]+$",
    "carriage_return": r"\r",
    "no_break_space": r"[\u00a0\u2007\u202f]",
    "curly_quote": r"[\u2018\u2019\u201c\u201d]",
    "replacement_character": r"\ufffd",
    "markup": r"</?[a-zA-Z][^<>]{0,80}>",
}


def layout_features(texts: Sequence[str]) -> FloatArray:
    """Marks of layout in each text: none grows with its length, and none knows a word.

    Args:
        texts: As they are, white space and all.

    Returns:
        [documents, features], how often each mark occurs per character, whether letters are capitals (more than nine in
        ten) or none, and whether the text begins or ends with white space.

    Source: Ours; the gate on layout of docs/methods/clearance.md.

    >>> layout_features(["a line\\n  and another"]).shape
    (1, 14)
    """
    patterns = [re.compile(pattern) for pattern in _PATTERNS.values()]
    rows = []
    for text in texts:
        letters = sum(map(str.isalpha, text))
        counts = [len(pattern.findall(text)) / max(1, len(text)) for pattern in patterns]
        capitals = sum(map(str.isupper, text)) / max(1, letters)
        rows.append(
            [*counts, float(capitals > 0.9), float(letters > 20 and capitals == 0), float(text != text.strip())]
        )
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(_PATTERNS) + 3)


def layout_auc(texts: Sequence[str], others: Sequence[str], *, num_folds: int, seed: int) -> float:
    """Cross-validated ROC AUC of a boosted classifier on `layout_features`.

    Args:
        texts: The one group.
        others: The other group.
        num_folds: At least 2.
        seed: Of folds and classifier.

    Returns:
        The AUC of the pooled out-of-fold probabilities, in [0, 1]; .5 where there is nothing to tell them apart by.

    Raises:
        ValueError: For fewer texts than folds, and for fewer than 2 folds.

    Source: Ours; the gate on layout of docs/methods/clearance.md.

    >>> layout_auc(["one two"] * 40, ["one\\ntwo"] * 40, num_folds=2, seed=0)
    1.0
    """
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    if min(len(texts), len(others)) < num_folds:
        raise ValueError(
            f"Layouts are compared in {num_folds} folds, but there are only {len(texts)} and {len(others)} texts."
        )
    features = np.concatenate([layout_features(texts), layout_features(others)])
    truth = np.repeat([True, False], [len(texts), len(others)])
    if (features == features[0]).all():
        return 0.5
    folds = StratifiedKFold(num_folds, shuffle=True, random_state=seed)
    classifier = HistGradientBoostingClassifier(max_iter=50, random_state=seed)
    probabilities = cross_val_predict(classifier, features, truth, cv=folds, method="predict_proba")[:, 1]
    return roc_auc(probabilities, truth)
