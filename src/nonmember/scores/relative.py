"""Likelihood against another: under a reference model, of a changed text, behind unread text, by compressibility."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from nonmember.checks import Count
from nonmember.records import FloatArray, TokenTable
from nonmember.scores.base import (
    NO_TOKENS,
    SMALL_NLL,
    SMALLEST_NLL,
    DocumentScores,
    Score,
    ScoreInputs,
    in_order_of,
    needed,
    nll,
    scores_with_reasons,
)


def _nll_of(side: str, other: TokenTable, tokens: TokenTable) -> tuple[FloatArray, dict[str, npt.NDArray[np.bool_]]]:
    """NLL of the other table in the order of `tokens`, and where it has no scored token, with the reason."""
    values = in_order_of(tokens.doc_ids, other, nll(other))
    return values, {f"{side}: {NO_TOKENS}": np.isnan(values)}


def _nll_ratio(side: str, other: TokenTable, tokens: TokenTable) -> DocumentScores:
    """NLL(other) / NLL(tokens), undefined where the latter is too small to divide by."""
    nll_other, undefined = _nll_of(side, other, tokens)
    nll_target = nll(tokens)
    undefined[SMALL_NLL] = nll_target <= SMALLEST_NLL
    ratio = np.divide(nll_other, nll_target, out=np.full(len(tokens), np.nan), where=nll_target > SMALLEST_NLL)
    return scores_with_reasons(tokens, ratio, undefined)


# Under a reference model ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReferenceDifference(Score):
    """mean log p(target) - mean log p(reference): "calibration" by a smaller model.

    Source: difficulty calibration, Watson et al., 2022.
    """

    needs_reference: ClassVar[bool] = True
    name = "ref_diff"

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        tokens, reference = inputs.tokens, needed(inputs.reference, "a reference model's observations", self)
        nll_reference, undefined = _nll_of("reference", reference, tokens)
        return scores_with_reasons(tokens, nll_reference - nll(tokens), undefined)


@dataclass(frozen=True)
class ReferenceRatio(Score):
    """NLL(reference) / NLL(target).

    Source: Carlini et al., 2021; "Small Ref" of MC-PDD, table VII. The program of DC-PDD inverts it.
    """

    needs_reference: ClassVar[bool] = True
    name = "ref_ratio"

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        reference = needed(inputs.reference, "a reference model's observations", self)
        return _nll_ratio("reference", reference, inputs.tokens)


OTHER_TOKENS = "target and reference cut the text into different tokens"
UNKNOWN_TOKENS = "the tokens of a model behind an endpoint are not known; the score loss does not compare them"


@dataclass(frozen=True)
class Wbc(Score):
    """Window-based comparison of target and reference.

    Of all windows of w tokens the share whose summed loss is lower under the target than under the reference (ties
    count half), mean over widths w in a geometric series.

    Votes instead of a mean: a few tokens of enormous gain decide no more than their own windows. Widths beyond the
    text's length are left out.

    Attributes:
        narrowest: Tokens.
        widest: Tokens.
        num_widths: Of the series, rounded to whole tokens, each once.

    Raises:
        ValueError: For settings out of range.

    Source: Chen et al., 2026 (arXiv 2601.02751).
    """

    narrowest: Annotated[int, Count(1)] = 2
    widest: Annotated[int, Count(1)] = 40
    num_widths: Annotated[int, Count(1, 1000)] = 10

    needs_reference: ClassVar[bool] = True
    compares_tokens: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.widest < self.narrowest:
            raise ValueError(f"widest must be at least narrowest, {self.narrowest} tokens; got {self.widest}.")

    @property
    def name(self) -> str:
        return f"wbc({self.narrowest}-{self.widest})"

    @property
    def widths(self) -> list[int]:
        series = np.geomspace(self.narrowest, self.widest, self.num_widths)
        return sorted({int(width) for width in np.rint(series)})

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        tokens, reference = inputs.tokens, needed(inputs.reference, "a reference model's observations", self)
        row_of = in_order_of(tokens.doc_ids, reference, np.arange(len(reference), dtype=np.float64)).astype(int)
        values, differ, unknown = np.full(len(tokens), np.nan), *np.zeros((2, len(tokens)), dtype=bool)
        for index, other in enumerate(row_of):
            own, theirs = tokens.rows(index), reference.rows(other)
            ids = tokens.token_id[own], reference.token_id[theirs]
            unknown[index] = min((int(item.min()) for item in ids if len(item)), default=0) < 0
            differ[index] = not np.array_equal(*ids)
            if not (differ[index] or unknown[index]):
                gain = tokens.log_prob[own].astype(np.float64) - reference.log_prob[theirs]
                values[index] = self._votes(gain)
        short = f"fewer than {self.narrowest} scored tokens, the narrowest window"
        undefined = {UNKNOWN_TOKENS: unknown, OTHER_TOKENS: differ, short: np.ones(len(tokens), dtype=bool)}
        return scores_with_reasons(tokens, values, undefined)

    def _votes(self, gain: FloatArray) -> float:
        """gain: [tokens] log-probability under the target less that under the reference."""
        total = np.concatenate([[0.0], np.cumsum(gain)])
        sums = [total[width:] - total[:-width] for width in self.widths if width <= len(gain)]
        return float(np.mean([(1 + np.sign(item).mean()) / 2 for item in sums])) if sums else np.nan


# Compressed (Carlini et al., 2021) ------------------------------------------------------------------------------------


def zlib_bytes(text: str) -> int:
    """Length of the whole zlib stream of the UTF-8 text at the default level."""
    return len(zlib.compress(text.encode("utf-8", "surrogatepass")))


@dataclass(frozen=True)
class Zlib(Score):
    """-NLL / compressed bytes.

    The papers write perplexity over zlib; all their code divides log-perplexity, and so does this. NLL is a
    mean while the bytes grow with the text, so the score moves with length: compare texts of equal length.

    Source: Carlini et al., 2021.
    """

    needs_texts: ClassVar[bool] = True
    name = "zlib"

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        texts = needed(inputs.texts, "the texts", self)
        if len(texts) != len(inputs.tokens):
            raise ValueError(
                f"The score zlib needs one text per document, and got {len(texts)} for {len(inputs.tokens)}. "
                "Pass the texts of the observed corpus, in the order of its ids."
            )
        num_bytes = np.array([zlib_bytes(text) for text in texts], dtype=np.float64)
        return scores_with_reasons(inputs.tokens, -nll(inputs.tokens) / num_bytes)


# In lower case (Carlini et al., 2021) ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lowercase(Score):
    """NLL(lowercased text) / NLL(text): a memorised text suffers from a change of case.

    The Min-K% program takes minus the inverse, which ranks the same while both are positive.

    Source: Carlini et al., 2021.
    """

    name = "lowercase"
    views = ("original", "lowercase")

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        return _nll_ratio("lowercased", needed(inputs.other_view, "the lowercased texts observed", self), inputs.tokens)


# Perturbed: features of LLM-DI ----------------------------------------------------------------------------------------


Perturbation = Literal[
    "butter_fingers", "random_deletion", "change_char_case", "whitespace_perturbation", "underscore_trick"
]
Quantity = Literal["ppl_ratio", "ppl_difference", "loss_ratio", "loss_difference"]


@dataclass(frozen=True)
class Perturbed(Score):
    """Text against its perturbed version, in four ways; high where the text itself is the more likely one.

    Attributes:
        perturbation: "butter_fingers", "random_deletion", "change_char_case", "whitespace_perturbation" or
            "underscore_trick".
        quantity: With x the text and x' its perturbed version, "ppl_ratio" is -ppl(x)/ppl(x'), "ppl_difference"
            -(ppl(x) - ppl(x')), "loss_ratio" loss(x')/loss(x), "loss_difference" loss(x') - loss(x).

    Raises:
        ValueError: For others.

    Source: LLM-DI (Maini et al., 2024). The first two quantities are minus its features, which makes no difference to a
    linear model.
    """

    perturbation: Perturbation
    quantity: Quantity

    @property
    def name(self) -> str:
        return f"{self.perturbation}_{self.quantity}"

    @property
    def views(self) -> tuple[str, ...]:
        return ("original", self.perturbation)

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        tokens, other = inputs.tokens, needed(inputs.other_view, "the perturbed texts observed", self)
        loss_perturbed, undefined = _nll_of("perturbed", other, tokens)
        loss = nll(tokens)
        match self.quantity:
            case "ppl_ratio":
                values = -np.exp(loss - loss_perturbed)
            case "ppl_difference":
                values = np.exp(loss_perturbed) - np.exp(loss)
            case "loss_ratio":
                values = np.divide(loss_perturbed, loss, out=np.full(len(loss), np.nan), where=loss > 0)
            case "loss_difference":
                values = loss_perturbed - loss
        return scores_with_reasons(tokens, values, undefined | {"a loss of 0 to divide by": loss <= 0})


# Behind unread text: ReCaLL (Xie et al., 2024) ------------------------------------------------------------------------


@dataclass(frozen=True)
class Recall(Score):
    """NLL(text | prefix) / NLL(text), the prefix being other texts that the model has certainly not read.

    What a model has read loses more by unread text in front of it.

    Attributes:
        num_shots: Texts in the prefix, or as many of these as the model can read before the longest document.

    Raises:
        ValueError: For fewer than 1.

    Source: Xie et al., 2024, eq. 2.
    """

    num_shots: Annotated[int, Count(1, hint="The paper tries 1 to 12.")]

    @property
    def name(self) -> str:
        return f"recall({self.num_shots})"

    @property
    def shots(self) -> int:
        return self.num_shots

    def __call__(self, inputs: ScoreInputs) -> DocumentScores:
        behind = needed(inputs.behind_prefix, "the texts observed behind a prefix", self)
        return _nll_ratio("behind the prefix", behind, inputs.tokens)
