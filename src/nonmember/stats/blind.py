"""The blind baseline: how well can two groups of documents be told apart without any model?

What a classifier reads off the text alone (subject, format, date) no membership score may claim for itself.

If layout alone (`layout_auc`) tells the groups apart, one of them went through other preprocessing. A model that read
the one has learnt the layout, and every score moves with it.

Shapes: N documents, B resamples.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy

from nonmember.stats._arrays import BoolArray, FloatArray, IntArray, check_resampling, numbered
from nonmember.stats.bootstrap import percentile_interval
from nonmember.stats.classification import cluster_counts, resampled, roc_auc

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import CountVectorizer

# scikit-learn is imported where it is used: it takes seconds, and every audit loads all methods.

# Above this blind AUC a membership AUC is not interpretable (docs/methods/blind.md): a convention, not a theorem.
INTERPRETABLE_UP_TO = 0.6

_YEARS = [str(year) for year in range(1900, 2100)]
_YEAR_PATTERN = r"(?<!\d)(?:19|20)\d\d(?!\d)"
_MAX_ITERATIONS = 1000  # of L-BFGS; it stops at its own tolerance long before

_Fold = tuple[IntArray, IntArray]


@dataclass(frozen=True, eq=False)
class BlindAuc:
    """What one kind of feature tells.

    Attributes:
        auc: Mean over the folds of the out-of-fold ROC AUC, in [0, 1]; 0.5 is chance, and so is anything below.
        ci_low: Lower end of the percentile interval; see `blind_baseline` for what it leaves out.
        ci_high: Its upper end.
        fold_aucs: [folds] AUC of each fold.
    """

    auc: float
    ci_low: float
    ci_high: float
    fold_aucs: FloatArray


@dataclass(frozen=True, eq=False)
class BlindBaseline:
    """Cross-validated AUC of classifiers that see only text.

    Attributes:
        words: Bag of words.
        characters: Character 1- to 3-grams.
        years: Counts of 1900 ... 2099.
        num_clusters: What the folds and resamples are made of; the number of documents without clusters.
    """

    words: BlindAuc
    characters: BlindAuc
    years: BlindAuc
    num_clusters: int

    @property
    def largest_auc(self) -> float:
        """The best of the three."""
        return max(self.words.auc, self.characters.auc, self.years.auc)

    @property
    def interpretable(self) -> bool:
        """Whether none exceeds `INTERPRETABLE_UP_TO`."""
        return self.largest_auc <= INTERPRETABLE_UP_TO


def blind_baseline(
    members: Sequence[str],
    nonmembers: Sequence[str],
    *,
    num_folds: int,
    inverse_penalty: float,
    num_resamples: int,
    alpha: float,
    rng: np.random.Generator,
    member_clusters: Sequence[Hashable] | None = None,
    nonmember_clusters: Sequence[Hashable] | None = None,
) -> BlindBaseline:
    """Cross-validated ROC AUC between two groups of documents, from bags of words, character n-grams and years.

    The classifiers are logistic regressions with a squared penalty on log(1 + count), fitted inside each fold:
    vocabulary and weights come from its training documents alone. All three share the folds, which are stratified. Not
    TF-IDF, which hides: with a word planted in every member (100 + 100 documents of 40 words) its AUC was .79 to .84
    whatever the penalty, that of counts 1. Counts also see the length of a document, and so do many membership scores.

    The interval resamples documents (or clusters) with replacement, holding folds and classifiers fixed, so it speaks
    of the documents tested and not of the classifiers' luck in training. It is too narrow: at 95% it held one half in
    84% of 500 worlds of 100 + 100 documents without a difference (docs/results/simulations.md). A fold that loses a
    kind of document in a resample is left out of that resample's mean.

    Args:
        members: Raw texts. Members and non-members, or suspect and held-out: the names only say which side is scored
            high.
        nonmembers: Raw texts of the other side.
        num_folds: At least 2.
        inverse_penalty: scikit-learn's C, above 0.
        num_resamples: B.
        alpha: Intervals are of level 1 - alpha.
        rng: Of folds and resamples.
        member_clusters: One id per document (book, thread, article), for both groups or neither. Documents of one
            cluster, in whichever group, are never on both sides of a fold and are drawn together.
        nonmember_clusters: The same for the other group.

    Returns:
        An AUC with its interval for each of the three; the mean over folds, not that of the pooled out-of-fold scores,
        which come from different models with different offsets.

    Raises:
        ValueError: On documents that are blank or not strings, on fewer documents or clusters of a kind than folds, on
            texts without any word, on clusters that do not match the documents, and on settings out of range.

    Source: the blind baselines of Das, Zhang and Tramer, "Blind Baselines Beat Membership Inference Attacks for
    Foundation Models", in their plainest form.

    >>> import numpy as np
    >>> members = [f"written in 2019, part {number}" for number in range(20)]
    >>> others = [f"written in 2024, part {number}" for number in range(20)]
    >>> found = blind_baseline(
    ...     members, others, num_folds=4, inverse_penalty=0.1, num_resamples=50, alpha=0.05,
    ...     rng=np.random.default_rng(0),
    ... )
    >>> found.years.auc
    1.0
    """
    from sklearn.feature_extraction.text import CountVectorizer

    texts = [*members, *nonmembers]
    is_member = np.repeat([True, False], [len(members), len(nonmembers)])
    _check_texts(members=members, nonmembers=nonmembers)
    check_resampling(num_resamples, alpha)
    clusters = _clusters(len(members), len(nonmembers), member_clusters, nonmember_clusters)
    _check_number(is_member, clusters, num_folds)

    folds = [*_folds(is_member, clusters, num_folds, rng)]
    if not folds:
        raise ValueError(
            f"Expected clusters that leave both kinds on both sides of some fold; none of {num_folds} folds has them. "
            "Use fewer folds, or leave out the clusters that hold most of the documents."
        )
    counts_NB = cluster_counts(clusters.tolist(), num_resamples, rng)

    def measure(vectorizer: CountVectorizer) -> BlindAuc:
        features = vectorizer.fit_transform(texts).astype(np.float64).log1p()
        scores = [_out_of_fold(features, is_member, fold, inverse_penalty) for fold in folds]
        tests = [test for _, test in folds]
        aucs = np.array([roc_auc(x, is_member[test]) for x, test in zip(scores, tests, strict=True)])
        aucs_FB = np.array([resampled(x, is_member[t], counts_NB[t])[0] for x, t in zip(scores, tests, strict=True)])
        return BlindAuc(float(aucs.mean()), *percentile_interval(_mean_of_defined(aucs_FB), alpha), aucs)

    return BlindBaseline(
        words=measure(CountVectorizer(token_pattern=r"(?u)\b\w+\b")),
        characters=measure(CountVectorizer(analyzer="char", ngram_range=(1, 3), lowercase=False)),
        years=measure(CountVectorizer(token_pattern=_YEAR_PATTERN, vocabulary=_YEARS)),
        num_clusters=int(clusters.max()) + 1,
    )


def _out_of_fold(
    features: scipy.sparse.csr_matrix, is_member: BoolArray, fold: _Fold, inverse_penalty: float
) -> FloatArray:
    """Scores of the fold's test documents, higher = more member-like.

    features: [N, terms] of all documents. Counting looks at one document at a time, so it may come before the
    split: the weight of a term that no training document has stays exactly 0.
    """
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    train, test = fold
    classifier = LogisticRegression(C=inverse_penalty, max_iter=_MAX_ITERATIONS)
    with threadpool_limits(1):  # several threads wait for one another far longer than they work: 15 s instead of .5
        classifier.fit(features[train], is_member[train])
    return np.asarray(classifier.decision_function(features[test]), dtype=np.float64)


def _folds(is_member: BoolArray, clusters: IntArray, num_folds: int, rng: np.random.Generator) -> Iterator[_Fold]:
    """Training and test documents of each fold in which both sides have both kinds."""
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    seed = int(rng.integers(2**31))
    if clusters.max() + 1 == clusters.size:
        folds = StratifiedKFold(num_folds, shuffle=True, random_state=seed).split(clusters, is_member)
    else:
        splitter = StratifiedGroupKFold(num_folds, shuffle=True, random_state=seed)
        folds = splitter.split(clusters, is_member, groups=clusters)
    for train, test in folds:
        if all(0 < is_member[side].sum() < side.size for side in (train, test)):
            yield train, test


def _mean_of_defined(aucs_FB: FloatArray) -> FloatArray:
    """Mean over folds [B] of what is not NaN; NaN where nothing is."""
    sum_B: FloatArray = np.nansum(aucs_FB, axis=0)
    num_defined_B: FloatArray = np.count_nonzero(~np.isnan(aucs_FB), axis=0).astype(np.float64)
    with np.errstate(invalid="ignore"):
        return sum_B / num_defined_B


def _clusters(
    num_members: int,
    num_nonmembers: int,
    member_clusters: Sequence[Hashable] | None,
    nonmember_clusters: Sequence[Hashable] | None,
) -> IntArray:
    """[N] cluster of each document as a number from 0; each document its own where no clusters are given."""
    if member_clusters is None and nonmember_clusters is None:
        return np.arange(num_members + num_nonmembers)
    lengths = [None if ids is None else len(ids) for ids in (member_clusters, nonmember_clusters)]
    if member_clusters is None or nonmember_clusters is None or lengths != [num_members, num_nonmembers]:
        raise ValueError(
            f"Expected one cluster id for each of {num_members} members and {num_nonmembers} nonmembers, or no ids "
            f"at all; got {lengths[0]} and {lengths[1]}. Give every document an id, its own where it stands alone."
        )
    return numbered([*member_clusters, *nonmember_clusters])


def _check_texts(**groups: Sequence[str]) -> None:
    for name, texts in groups.items():
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"Expected `{name}` to be a list of texts; got something else in it. Pass strings.")
        blank = [index for index, text in enumerate(texts) if not text.strip()]
        if blank:
            raise ValueError(
                f"Expected text in every document of `{name}`; {len(blank)} of {len(texts)} are blank, the first at "
                f"index {blank[0]}. Leave those documents out and count them as excluded."
            )
    if not any(re.search(r"\w", text) for texts in groups.values() for text in texts):
        raise ValueError("Expected words; got documents of marks and blanks only. Check what the texts are.")


def _check_number(is_member: BoolArray, clusters: IntArray, num_folds: int) -> None:
    numbers = [np.unique(clusters[side]).size for side in (is_member, ~is_member)]
    if min(numbers) < num_folds:
        raise ValueError(
            f"Expected at least {num_folds} documents (or clusters of them) of each kind for {num_folds} folds; got "
            f"{numbers[0]} of members and {numbers[1]} of nonmembers. Add documents or use fewer folds."
        )


# Layout alone ---------------------------------------------------------------------------------------------------------


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

    Source: Ours; the gate on layout of docs/gates.md.

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

    Source: Ours; the gate on layout of docs/gates.md.

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
