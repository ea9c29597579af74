"""What DE-COP's recorded answers tell that the paper does not: by author and passage, with fewer questions, where the
length gives nothing away, under rules that are tried on books left out, and of a single book.

Shapes: U books, P passages of a book at most, Q = 24 orders of each; NaN where nothing was asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure as Canvas
from scipy import stats

from nonmember.methods.asked import mean_by
from nonmember.records import FloatArray
from nonmember.reports.core import formats
from nonmember.reports.core.grid import Block, Figure, Numeral, ReportDocument, Section, TableCell, TableRow
from nonmember.reports.declared.sections import read_sections
from nonmember.reports.render.figures import colour, draw, legend_below, log_axis, panels, size_of_panels
from nonmember.results.load import Run
from nonmember.runtime.progress import tracked
from nonmember.stats.classification import best_balanced_accuracy, best_threshold, roc_auc
from nonmember.stats.letter_choice import LETTERS, NONE, WELL_CALIBRATED, Choices
from nonmember.stats.two_groups import welch_t

NAMES = {
    "chatgpt": "ChatGPT",
    "claude_2_1": "Claude 2.1",
    "claude_1_2": "Claude 1.2",
    "llama2_7b": "LLaMA-2-7B",
    "llama2_13b": "LLaMA-2-13B",
    "llama2_70b": "LLaMA-2-70B",
    "mistral_7b": "Mistral-7B",
    "mixtral_8x7b": "Mixtral",
    "gpt3": "GPT-3",
}
WITH_PROBABILITIES = ("chatgpt", "llama2_7b", "llama2_13b", "llama2_70b", "gpt3")
# What the authors added to the letters' probabilities, found by search: with it their calibrated accuracies of all
# books come out. They leave a constant open, here that of a sum of 0: of LLaMA-2-70B with the sign of D turned.
ADDED = {
    "ChatGPT": ("chatgpt", "Chat-GPT", (0.17622, -0.08572, -0.0105, -0.08)),
    "LLaMA-2-70B": ("llama2_70b", "LLaMA-2_70B", (0.1338, -0.26, -0.09, -0.2162)),
    "LLaMA-2-70B, the sign of D turned": ("llama2_70b", "LLaMA-2_70B", (0.1338, -0.26, -0.09, 0.2162)),
}
WORLD = "recorded"
ABOUT = "What nine models answered DE-COP's authors to 131,880 questions about 165 books, GPT-3 about 69 of them."
ORDERS, CHANCE = 24, 0.25
ALL = 99  # more passages than any book has
NUM_PASSAGES, NUM_ORDERS = (1, 2, 4, 8, 16), (1, 2, 4, 8, 16)
TICKS = (30, 100, 300, 800)  # questions about a book
LEVEL = 0.05

BoolArray = npt.NDArray[np.bool_]
Values = Mapping[str, float]  # column -> number


@dataclass(frozen=True, eq=False)
class AnsweredBooks:
    books: Sequence[str]
    label_U: FloatArray  # 1 suspect
    right_UPQ: FloatArray  # 1 for a right answer
    # Whether the original has more characters than its paraphrases; empty where lengths are not at hand.
    longer_UP: FloatArray

    @cached_property
    def accuracy_U(self) -> FloatArray:
        return np.nanmean(self.right_UPQ, axis=(1, 2))

    @cached_property
    def passage_UP(self) -> FloatArray:
        """Share of right answers."""
        return _means(self.right_UPQ)

    @cached_property
    def asked_UPQ(self) -> BoolArray:
        return np.isfinite(self.right_UPQ)

    def groups(self, values_U: FloatArray) -> tuple[FloatArray, FloatArray]:
        return values_U[self.label_U == 1], values_U[self.label_U == 0]

    def auc(self, values_U: FloatArray) -> float:
        known = np.isfinite(values_U)
        return roc_auc(values_U[known], self.label_U[known])


# --------------------------------------------------------------------------------------------- what is computed


def units(answered: AnsweredBooks) -> Values:
    """Welch's p with each question, passage, book and author as one observation."""
    levels = [
        welch_t(*(values[np.isfinite(values)] for values in answered.groups(of)))
        for of in (answered.right_UPQ, answered.passage_UP, answered.accuracy_U)
    ]
    authors = [
        f"{label:.0f} {book.partition('_-_')[2]}" for book, label in zip(answered.books, answered.label_U, strict=True)
    ]
    names, means = mean_by(authors, answered.accuracy_U)
    labels = np.array([float(name[0]) for name in names])
    return {
        "p, questions": levels[0].p_value,
        "p, passages": levels[1].p_value,
        "p, books": levels[2].p_value,
        "p, authors": welch_t(means[labels == 1], means[labels == 0]).p_value,
        "ROC area, books": answered.auc(answered.accuracy_U),
        "ROC area, authors": roc_auc(means, labels),
        "number of authors": len(names),
    }


def with_fewer(answered: AnsweredBooks, passages: int, orders: int, repeats: int, rng: np.random.Generator) -> float:
    """Mean ROC area over draws of so many passages of each book, and orders of each of them."""
    found, asked_UPQ = [], answered.asked_UPQ
    for _ in range(repeats):
        kept_UPQ = _drawn(np.asarray(asked_UPQ.any(axis=2)), passages, rng)[:, :, None] & _drawn(asked_UPQ, orders, rng)
        found.append(answered.auc(np.nanmean(np.where(kept_UPQ, answered.right_UPQ, np.nan), axis=(1, 2))))
    return float(np.mean(found))


def _drawn(known: BoolArray, number: int, rng: np.random.Generator) -> BoolArray:
    """Of what is known along the last axis, so many at random; all where there are no more."""
    keys = np.where(known, rng.random(known.shape), 2.0)
    drawn: BoolArray = known & (keys.argsort(axis=-1).argsort(axis=-1) < number)
    return drawn


def _means(values: FloatArray) -> FloatArray:
    """Along the last axis, of what is known; NaN where nothing is."""
    with np.errstate(invalid="ignore"):
        means: FloatArray = np.nansum(values, axis=-1) / np.isfinite(values).sum(axis=-1)
    return means


def by_length(answered: AnsweredBooks) -> Values:
    """Whether the original is the longest of four: alone, and with DE-COP where it is, where it is not, and where what
    a line on that share explains is taken away."""
    longest_U = np.nanmean(answered.longer_UP, axis=1)
    line = stats.linregress(longest_U, answered.accuracy_U)
    is_longest, is_not = (np.where(answered.longer_UP == value, answered.passage_UP, np.nan) for value in (1, 0))
    first, second = answered.groups(longest_U)
    return {
        "original the longest, suspect": first.mean(),
        "original the longest, clean": second.mean(),
        "ROC area of that share alone": answered.auc(longest_U),
        "ROC area": answered.auc(answered.accuracy_U),
        "where it is the longest": answered.auc(_means(is_longest)),
        "where it is not": answered.auc(_means(is_not)),
        "that share taken away": answered.auc(answered.accuracy_U - line.slope * longest_U),
    }


def left_out(answered: AnsweredBooks) -> Values:
    """Of the best threshold on all books, and of thresholds that are chosen without the book that they are tried on:
    the best one, and the one that 5% of the other clean books lie above."""
    values_U, label_U = answered.accuracy_U, answered.label_U
    called_U, strict_U = np.zeros(len(values_U)), np.zeros(len(values_U))
    for index in range(len(values_U)):
        others = np.arange(len(values_U)) != index
        called_U[index] = values_U[index] >= best_threshold(values_U[others], label_U[others])
        clean = np.sort(values_U[others & (label_U == 0)])[::-1]
        strict_U[index] = values_U[index] > clean[int(LEVEL * len(clean))]
    (found, false), (found_strictly, false_strictly) = (
        [group.mean() for group in answered.groups(called)] for called in (called_U, strict_U)
    )
    return {
        "balanced accuracy, same books": best_balanced_accuracy(values_U, label_U),
        "balanced accuracy, book left out": (1 + found - false) / 2,
        "suspect above": found,
        "clean above": false,
        "suspect above, 5%": found_strictly,
        "clean above, 5%": false_strictly,
    }


def single_books(answered: AnsweredBooks) -> Values:
    """Shares of books that are flagged, at 5%: by a binomial test of the questions against a quarter, by a t-test of
    the passages against a quarter, and by the book's rank among the clean ones (a clean book's among the others)."""
    hits_U = np.nansum(answered.right_UPQ, axis=(1, 2))
    questions_U = stats.binom.sf(hits_U - 1, answered.asked_UPQ.sum(axis=(1, 2)), CHANCE)
    passages_U = stats.ttest_1samp(answered.passage_UP, CHANCE, axis=1, nan_policy="omit", alternative="greater").pvalue
    clean = answered.accuracy_U[answered.label_U == 0]
    above_U = (clean[None, :] >= answered.accuracy_U[:, None]).sum(axis=1)
    rank_U = np.where(answered.label_U == 1, (1 + above_U) / (1 + len(clean)), above_U / len(clean))
    flagged = {
        f"by {name}, {group}": (p_values <= LEVEL).mean()
        for name, p_U in (("questions", questions_U), ("passages", passages_U), ("rank", rank_U))
        for group, p_values in zip(("suspect", "clean"), answered.groups(np.asarray(p_U)), strict=True)
    }
    return {**flagged, "p, the smallest of a rank": 1 / (1 + len(clean))}


def calibrated(choices: Choices, label_U: FloatArray, halves: int, rng: np.random.Generator) -> Values:
    """Medians over random halves of the clean books: one to calibrate on, the other compared with the suspect books. Of
    the share of its books that are well calibrated also the lowest and the highest."""
    suspect, clean = np.flatnonzero(label_U == 1), np.flatnonzero(label_U == 0)
    mean_UL, before_U = choices.probability_UL(), choices.accuracy_U()
    found = []
    for _ in range(halves):
        half = rng.permutation(clean)
        apart, rest = half[: len(half) // 2], half[len(half) // 2 :]
        offsets_L = 1 / len(LETTERS) - mean_UL[apart].mean(axis=0)
        after_U = choices.calibrated(offsets_L).accuracy_U()
        both, labels = np.concatenate([suspect, rest]), np.repeat([1, 0], [len(suspect), len(rest)])
        found.append(
            {
                "ROC area": roc_auc(before_U[both], labels),
                "calibrated": roc_auc(after_U[both], labels),
                "right, suspect": before_U[suspect].mean(),
                "calibrated, suspect": after_U[suspect].mean(),
                "right, clean": before_U[rest].mean(),
                "calibrated, clean": after_U[rest].mean(),
                "well calibrated": well_calibrated(mean_UL[rest] + offsets_L),
            }
        )
    table = pd.DataFrame(found)
    share = table["well calibrated"]
    return {**table.median(), "lowest": share.min(), "highest": share.max()}


def well_calibrated(mean_UL: FloatArray) -> float:
    low, high = WELL_CALIBRATED
    return float(((mean_UL >= low) & (mean_UL <= high)).all(axis=1).mean())


def with_added(choices: Choices, label_U: FloatArray, recorded_U: FloatArray, added_L: FloatArray) -> Values:
    """Of letters' probabilities to which this was added; recorded_U: the authors' calibrated accuracies."""
    after = choices.calibrated(added_L)
    values_U, is_clean_U = after.accuracy_U(), label_U == 0
    return {
        **{f"added to {letter}": value for letter, value in zip(LETTERS, added_L, strict=True)},
        "number of books with the recorded accuracy": np.isclose(values_U, recorded_U, rtol=0, atol=1e-9).sum(),
        "right, suspect": values_U[~is_clean_U].mean(),
        "right, clean": values_U[is_clean_U].mean(),
        "well calibrated": well_calibrated(after.probability_UL()[is_clean_U]),
    }


# ------------------------------------------------------------------------------------------------- what is read


def answered_by(model: str, answers: pd.DataFrame, lengths: pd.DataFrame | None) -> AnsweredBooks:
    """A passage of which all answers are missing was not asked about; another missing answer is wrong."""
    asked = answers[model].notna().groupby([answers["book"], answers["passage"]]).transform("any")
    rows = answers[asked]
    books = list(dict.fromkeys(rows["book"]))
    index = {book: number for number, book in enumerate(books)}
    right_UPQ = np.full((len(books), int(answers["passage"].max()) + 1, ORDERS), np.nan)
    right_UPQ[rows["book"].map(index), rows["passage"], rows["query"]] = (rows[model] == rows["true_option"]).fillna(
        False
    )
    longer_UP = np.full(right_UPQ.shape[:2] if lengths is not None else (0, 0), np.nan)
    if lengths is not None:
        known = lengths[lengths["book"].isin(books)]
        others = known[[name for name in known if name.startswith("paraphrase_")]].max(axis=1)
        longer_UP[known["book"].map(index), known["passage"]] = known["original"] > others
    label_U = rows.groupby("book", sort=False)["label"].first().to_numpy(dtype=float)
    return AnsweredBooks(books, label_U, right_UPQ, longer_UP)


def choices_of(model: str, answers: pd.DataFrame) -> tuple[Choices, FloatArray]:
    """With the label of each book."""
    rows = answers[answers[model].notna()]
    books = list(dict.fromkeys(rows["book"]))
    letters = {letter: number for number, letter in enumerate(LETTERS)}
    choices = Choices(
        rows["book"].map({book: number for number, book in enumerate(books)}).to_numpy(),
        rows["true_option"].map(letters).to_numpy(),
        rows[model].map(letters).fillna(NONE).to_numpy(dtype=np.int64),
        rows[[f"{model}_p_{letter}" for letter in LETTERS.lower()]].to_numpy(dtype=np.float64),
    )
    return choices, rows.groupby("book", sort=False)["label"].first().to_numpy(dtype=float)


# ----------------------------------------------------------------------------------------------- what is shown


@dataclass(frozen=True)
class DecopBeyond:
    name: str
    title: str
    subtitle: str
    folder: str  # with what `nonmember data decop` writes
    repeats: int  # draws of fewer questions
    halves: int  # of the clean books, to calibrate on
    seed: int  # of both

    methods: ClassVar[tuple[str, ...]] = ()

    def build(self, runs: Sequence[Run]) -> ReportDocument:
        """From the recorded answers alone.

        Raises:
            ValueError: Where they are not there.
        """
        assert not runs
        path = Path(self.folder) / "answers.parquet"
        if not path.is_file():
            raise ValueError(
                f"Expected {path}. Make it with `nonmember data decop --from CHECKOUT`, and set report.folder."
            )
        answers = pd.read_parquet(path)
        file = path.with_name("passage_lengths.parquet")
        lengths = pd.read_parquet(file) if file.is_file() else None
        found = {
            shown: answered_by(name, answers, lengths)
            for name, shown in tracked(NAMES.items(), "reading answers", "models", len(NAMES))
        }
        shown = {
            "units": ((self._table("units", found, units),), ()),
            "fewer": self._fewer(found),
            "length": ((self._table("length", found, by_length),) if lengths is not None else (), ()),
            "calibration": ((self._calibration(answers), added(answers, path.with_name("book_accuracies.csv"))), ()),
            "rules": ((self._table("rules", found, left_out),), ()),
            "one_book": ((self._table("one_book", found, single_books),), ()),
        }
        sections = tuple(
            Section(text.key, text.title, text.lead, *shown[text.key], paper=text.paper, notes=text.notes)
            for text in read_sections(Path(__file__).with_name("beyond.md"))
            if any(shown[text.key])
        )
        return ReportDocument(self.name, self.title, self.subtitle, {"Recorded answers": ABOUT}, sections, marks={})

    def _table(self, key: str, found: Mapping[str, AnsweredBooks], of: Callable[[AnsweredBooks], Values]) -> Block:
        return block(key, {name: of(answered) for name, answered in found.items()})

    def _fewer(self, found: Mapping[str, AnsweredBooks]) -> tuple[tuple[()], tuple[Figure, ...]]:
        rng = np.random.default_rng(self.seed)
        settings = [(number, ORDERS) for number in NUM_PASSAGES] + [(ALL, number) for number in (*NUM_ORDERS, ORDERS)]
        columns = [f"passages: {number}" for number in NUM_PASSAGES]
        columns += [*(f"orders: {number}" for number in NUM_ORDERS), "everything"]
        rows = {
            name: {
                column: with_fewer(answered, *setting, self.repeats, rng)
                for column, setting in zip(columns, settings, strict=True)
            }
            for name, answered in tracked(found.items(), "asking less", "models", len(found))
        }
        passages = float(np.mean([answered.asked_UPQ.any(axis=2).sum(axis=1).mean() for answered in found.values()]))

        def paint(canvas: Canvas) -> None:
            for axis, row in zip(panels(canvas, tuple(rows)), rows.values(), strict=True):
                *values, every = list(row.values())
                fewer = [*values[: len(NUM_PASSAGES)], every], [*values[len(NUM_PASSAGES) :], every]
                lines: dict[str, tuple[Sequence[float], Sequence[float]]] = {
                    "all orders of fewer passages": ([number * ORDERS for number in NUM_PASSAGES], fewer[0]),
                    "fewer orders of all passages": ([number * passages for number in NUM_ORDERS], fewer[1]),
                }
                for index, (label, (x, y)) in enumerate(lines.items()):
                    axis.plot([*x, ORDERS * passages], y, color=colour(index), marker=".", label=label)
                log_axis(axis, TICKS, list(map(str, TICKS)))
                axis.set(ylim=(0.5, 1.01), xlabel="questions about a book", ylabel="ROC area")
            legend_below(canvas, canvas.axes[0])

        table = block("fewer", rows)
        svg, png = draw("fewer-recorded", *size_of_panels(len(rows)), paint)
        return (), (Figure("fewer-recorded", WORLD, "ROC area with fewer questions", FEWER, svg, png, table),)

    def _calibration(self, answers: pd.DataFrame) -> Block:
        rng = np.random.default_rng(self.seed)
        rows = {
            NAMES[name]: calibrated(*choices_of(name, answers), self.halves, rng)
            for name in tracked(WITH_PROBABILITIES, "calibrating", "models", len(WITH_PROBABILITIES))
        }
        return block("calibration", rows)


def added(answers: pd.DataFrame, path: Path) -> Block:
    """path: of the authors' accuracies."""
    theirs = pd.read_csv(path).set_index("Book Name")
    rows = {}
    for name, (model, column, offsets) in ADDED.items():
        books = list(dict.fromkeys(answers.loc[answers[model].notna(), "book"]))
        recorded_U = theirs.loc[books, f"{column}_LogitTuningAcc"].to_numpy()
        rows[name] = with_added(*choices_of(model, answers), recorded_U, np.array(offsets))
    return block("added", rows, "What the authors added to the letters’ probabilities")


FEWER = (
    "ROC area of books against the number of questions about a book, once with all orders of fewer passages and once "
    "with fewer orders of all passages; a panel per model."
)


def block(key: str, rows: Mapping[str, Values], title: str = "Recorded answers") -> Block:
    def cell(column: str, value: float) -> TableCell:
        text = (
            (formats.p_value(value) if value else "< 1e-300") if column.startswith("p, ") else formats.decimals(value)
        )
        return TableCell((Numeral(f"{value:.0f}" if column.startswith("number") else text, float(value), WORLD),))

    made = (TableRow(name, tuple(cell(*item) for item in values.items())) for name, values in rows.items())
    columns = tuple(next(iter(rows.values())))
    return Block(f"{key}-{WORLD}", WORLD, title, "model", columns, tuple(made), ("number",))
