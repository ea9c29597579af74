import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from marks import slow
from nonmember.stats.blind import INTERPRETABLE_UP_TO, blind_baseline
from nonmember.stats.classification import roc_auc

VOCABULARY = [a + b + c for a in "bdfgklmnprst" for b in "aeiou" for c in "blmnrst"]


def measure(members, nonmembers, *, seed=0, **settings):
    settings = {"num_folds": 5, "inverse_penalty": 0.1, "num_resamples": 200, "alpha": 0.05, **settings}
    return blind_baseline(members, nonmembers, rng=np.random.default_rng(seed), **settings)


def some_texts(seed, number, *, num_words=40, planted=""):
    """Documents with words of Zipf's frequencies; `planted` at a random place of each."""
    rng = np.random.default_rng(seed)
    frequency = 1 / np.arange(1, len(VOCABULARY) + 1)
    texts = []
    for _ in range(number):
        words = rng.choice(VOCABULARY, size=num_words, p=frequency / frequency.sum()).tolist()
        words.insert(rng.integers(num_words), planted)
        texts.append(" ".join(words))
    return texts


# --- what it sees ---


@pytest.mark.slow
def test_chance_where_nothing_differs() -> None:
    """Standard error of one AUC .05, of the mean over worlds .02."""
    results = [measure(some_texts(2 * seed, 70), some_texts(2 * seed + 1, 70), seed=seed) for seed in range(6)]
    for kind in ("words", "characters"):
        assert np.mean([getattr(item, kind).auc for item in results]) == pytest.approx(0.5, abs=0.05)
    assert all(item.years.auc == 0.5 for item in results)
    assert sum(item.interpretable for item in results) >= 4


@pytest.mark.slow
def test_a_planted_word_is_found() -> None:
    members, nonmembers = some_texts(0, 100, planted="quixotic"), some_texts(1, 100)
    result = measure(members, nonmembers)
    assert result.words.auc > 0.99
    assert result.characters.auc > 0.95
    assert result.years.auc == 0.5
    assert result.words.ci_low > 0.97
    assert not result.interpretable
    assert result.largest_auc == max(result.words.auc, result.characters.auc)
    back = measure(nonmembers, members)
    assert back.words.auc > 0.99  # the classifier learns the side, whichever it is


@pytest.mark.slow
@pytest.mark.parametrize(
    ("year", "seen"), [("2023", True), ("(1987).", True), ("v2023a", True), ("12023", False), ("2100", False)]
)
def test_a_planted_year_is_found(year, seen) -> None:
    result = measure(some_texts(0, 20, planted=year), some_texts(1, 20))
    assert result.years.auc == (1.0 if seen else 0.5)


def test_different_years_are_told_apart() -> None:
    old = [text for year in ("2001", "2002") for text in some_texts(int(year), 15, planted=year)]
    new = [text for year in ("2022", "2023") for text in some_texts(int(year), 15, planted=year)]
    assert measure(old, new).years.auc == 1.0


@pytest.mark.parametrize("reformat", [lambda text: text.replace(" ", "\n", 3), str.title])
def test_a_different_format_is_found_by_characters(reformat) -> None:
    result = measure([reformat(text) for text in some_texts(0, 60)], some_texts(1, 60))
    assert result.characters.auc > 0.95
    assert result.words.auc < 0.7


def test_the_bound_belongs_to_the_interpretable() -> None:
    assert INTERPRETABLE_UP_TO == 0.6
    result = measure(some_texts(0, 20), some_texts(1, 20))
    for auc, interpretable in ((0.6, True), (0.601, False)):
        for item in (result.words, result.characters, result.years):
            object.__setattr__(item, "auc", 0.5)
        for kind in (result.words, result.characters, result.years):
            object.__setattr__(kind, "auc", auc)
            assert result.interpretable == interpretable
            object.__setattr__(kind, "auc", 0.5)


# --- how it is fitted ---


@pytest.mark.slow
@pytest.mark.parametrize("clustered", [False, True])
def test_agrees_with_pipelines_fitted_inside_each_fold(clustered) -> None:
    """Nothing is learned from test documents, though terms are counted once for all of them."""
    members = some_texts(0, 60, planted="2001 Word")[:40] + some_texts(1, 20)
    nonmembers = some_texts(2, 50, planted="1999")[:10] + some_texts(3, 40)
    members[3] += " hapax legomenon"
    ids = [number // 4 for number in range(110)]
    given = {"member_clusters": ids[:60], "nonmember_clusters": ids[60:]} if clustered else {}
    result = measure(members, nonmembers, seed=9, inverse_penalty=2.0, **given)

    texts, labels = np.array(members + nonmembers), np.repeat([1, 0], [60, 50])
    splitter = (StratifiedGroupKFold if clustered else StratifiedKFold)(
        5, shuffle=True, random_state=int(np.random.default_rng(9).integers(2**31))
    )
    vectorizers = {
        "words": CountVectorizer(token_pattern=r"\b\w+\b"),
        "characters": CountVectorizer(analyzer="char", ngram_range=(1, 3), lowercase=False),
        "years": CountVectorizer(token_pattern=r"(?<!\d)(?:19|20)\d\d(?!\d)"),
    }
    for kind, vectorizer in vectorizers.items():
        expected = []
        for train, test in splitter.split(texts, labels, *([ids] if clustered else [])):
            model = make_pipeline(
                vectorizer,
                FunctionTransformer(lambda x: x.astype(float).log1p()),
                LogisticRegression(C=2.0, max_iter=1000),
            ).fit(texts[train], labels[train])
            expected.append(roc_auc(model.decision_function(texts[test]), labels[test]))
        got = getattr(result, kind)
        assert got.fold_aucs == pytest.approx(np.array(expected), abs=0.01)  # a pair or two, by the solver's tolerance
        assert got.auc == got.fold_aucs.mean()
        assert 0.5 < got.auc < 1


@pytest.mark.slow
def test_clusters_stay_on_one_side_of_a_fold() -> None:
    """Twenty books, each with words of its own and all in one group: known books give the group away."""
    books = [some_texts(book, 10, planted=" ".join(f"name{book}x{n}" for n in range(6))) for book in range(20)]
    texts = [text for book in books for text in book]
    members, nonmembers = texts[:100], texts[100:]
    leaking = measure(members, nonmembers)
    assert leaking.words.auc > 0.95
    ids = np.repeat(np.arange(20), 10)
    kept = measure(members, nonmembers, member_clusters=ids[:100].tolist(), nonmember_clusters=ids[100:].tolist())
    assert kept.words.auc < 0.7
    assert (kept.num_clusters, leaking.num_clusters) == (20, 200)
    assert kept.words.ci_high - kept.words.ci_low > 2 * (leaking.words.ci_high - leaking.words.ci_low)


def test_one_id_in_both_groups_is_one_cluster() -> None:
    members, nonmembers = some_texts(0, 12), some_texts(1, 12)
    shared = measure(members, nonmembers, member_clusters=range(12), nonmember_clusters=range(12), num_folds=3)
    apart = measure(members, nonmembers, member_clusters=range(12), nonmember_clusters=range(12, 24), num_folds=3)
    assert (shared.num_clusters, apart.num_clusters) == (12, 24)
    plain = measure(members, nonmembers, num_folds=3)
    np.testing.assert_array_equal(apart.words.fold_aucs, plain.words.fold_aucs)


def measure_clusters(sizes, num_folds):
    """sizes: (members, nonmembers) of each cluster. The greedy folds of scikit-learn do not suit all of them."""
    ids = [np.repeat(np.arange(len(sizes)), side).tolist() for side in zip(*sizes, strict=True)]
    clusters = {"member_clusters": ids[0], "nonmember_clusters": ids[1]}
    return measure(some_texts(0, len(ids[0])), some_texts(1, len(ids[1])), num_folds=num_folds, **clusters)


def test_folds_without_one_kind_are_left_out_and_counted() -> None:
    result = measure_clusters([(1, 5), (5, 0), (1, 1), (1, 3)], 3)
    assert result.words.fold_aucs.size == 2
    assert result.words.auc == result.words.fold_aucs.mean()
    assert measure_clusters([(2, 1), (1, 2), (4, 2)], 3).words.fold_aucs.size == 3
    with pytest.raises(ValueError, match="none of 2 folds"):
        measure_clusters([(3, 4), (5, 0), (0, 4)], 2)


# --- the interval ---


def plain_interval(dated, labels, ids, splitter, num_resamples):
    """A loop over resamples of clusters; the year classifier's scores are 1 for dated documents and 0 for others."""
    rng = np.random.default_rng(4)
    groups = [ids] if isinstance(splitter, StratifiedGroupKFold) else []
    splitter.random_state = int(rng.integers(2**31))
    tests = [test for _, test in splitter.split(labels, labels, *groups)]
    aucs = []
    for drawn in rng.integers(ids.max() + 1, size=(num_resamples, ids.max() + 1)):
        counts = np.bincount(drawn, minlength=ids.max() + 1)[ids]
        chosen = [np.repeat(test, counts[test]) for test in tests]
        aucs.append(
            np.mean([roc_auc(dated[item], labels[item]) for item in chosen if np.unique(labels[item]).size == 2])
        )
    return np.quantile(aucs, [0.05, 0.95])


@pytest.mark.slow
@pytest.mark.parametrize("clustered", [slow(False), True])
def test_interval_is_a_plain_bootstrap_over_out_of_fold_scores(clustered) -> None:
    """Of 30 + 30 members the first are dated; clusters of two or four documents, some in both groups."""
    members, nonmembers = some_texts(0, 30, planted="2001") + some_texts(1, 30), some_texts(2, 60)
    ids, folds = np.arange(120), StratifiedKFold(5, shuffle=True)
    given = {}
    if clustered:
        ids, folds = np.arange(120) // 2 * 7 % 40, StratifiedGroupKFold(5, shuffle=True)
        given = {"member_clusters": ids[:60].tolist(), "nonmember_clusters": ids[60:].tolist()}
        ids = np.unique(ids, return_index=True)[1].argsort().argsort()[ids]  # numbered as they come
    result = measure(members, nonmembers, seed=4, num_resamples=500, alpha=0.1, **given)
    dated, labels = np.repeat([1.0, 0.0, 0.0], [30, 30, 60]), np.repeat([1, 0], 60)
    expected = plain_interval(dated, labels, ids, folds, 500)
    assert (result.years.ci_low, result.years.ci_high) == pytest.approx(tuple(expected), abs=1e-12)
    assert result.years.auc == pytest.approx(0.75, abs=0.02 if clustered else 1e-12)


@pytest.mark.slow
def test_folds_without_a_kind_in_a_resample_are_left_out_of_its_mean() -> None:
    members, nonmembers = some_texts(0, 6, planted="2001") + some_texts(1, 2), some_texts(2, 8)
    result = measure(members, nonmembers, seed=4, num_folds=4, num_resamples=500, alpha=0.1)
    dated, labels = np.repeat([1.0, 0.0, 0.0], [6, 2, 8]), np.repeat([1, 0], 8)
    expected = plain_interval(dated, labels, np.arange(16), StratifiedKFold(4, shuffle=True), 500)
    assert (result.years.ci_low, result.years.ci_high) == pytest.approx(tuple(expected), abs=1e-12)


@pytest.mark.slow
def test_deterministic_for_a_seed() -> None:
    texts = some_texts(0, 30), some_texts(1, 30)
    first, again, other = (measure(*texts, seed=seed) for seed in (1, 1, 2))
    for kind in ("words", "characters"):
        item, two, three = (getattr(result, kind) for result in (first, again, other))
        np.testing.assert_array_equal(item.fold_aucs, two.fold_aucs)
        assert (item.ci_low, item.ci_high) == (two.ci_low, two.ci_high)
        assert item.auc != three.auc


# --- what is refused ---


TEN = [f"text number {number}" for number in range(10)]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"members": "one text"}, "`members` to be a list"),
        ({"nonmembers": [*TEN, None]}, "`nonmembers` to be a list"),
        ({"nonmembers": [*TEN, " \n"]}, "`nonmembers`; 1 of 11 are blank, the first at index 10"),
        ({"members": []}, "got 0 of members and 10 of nonmembers"),
        ({"members": TEN[:4]}, "at least 5 documents.*got 4 of members"),
        ({"members": ["!!"] * 10, "nonmembers": ["??"] * 10}, "Expected words"),
        ({"member_clusters": [1] * 10}, "got 10 and None"),
        ({"member_clusters": [1] * 9, "nonmember_clusters": [2] * 10}, "got 9 and 10"),
        ({"member_clusters": [1] * 10, "nonmember_clusters": [*range(2, 12)]}, "got 1 of members and 10"),
        ({"alpha": 1.0}, "alpha=1.0"),
    ],
)
def test_refuses_bad_input(changed, message) -> None:
    with pytest.raises(ValueError, match=message):
        measure(**{"members": TEN, "nonmembers": TEN, **changed})
