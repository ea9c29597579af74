"""The scores as functions of plain arrays: of one text, or of many of different lengths.

A text is its scored tokens, one number per token: [T] natural logarithms, nats. Several texts are a list of such
arrays, or [documents, T]. One text gives a float, several give [documents] float64; NaN where a score is undefined, as
for a text without scored tokens. Higher = more likely a member. A log-probability below -100, minus infinity too,
counts as -100, as wherever a model is read. Arrays that do not fit raise ValueError.

The log-probabilities of a text under a transformers model:

    logits = model(ids[None]).logits[0, :-1].log_softmax(-1)       # [T, V], of the tokens after the first
    logits = logits.clamp_min(-100)                                # of a masked token 0 * -inf would be NaN
    log_probs = logits.gather(-1, ids[1:, None])[:, 0]             # [T]
    means = (logits.exp() * logits).sum(-1)                        # [T], for Min-K%++
    stds = (logits.exp() * (logits - means[:, None]).square()).sum(-1).sqrt()
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nonmember.records import FloatArray, TokenTable
from nonmember.records.tokens import LOG_PROB_FLOOR, TOKEN_SCHEMA
from nonmember.scores.base import Score, ScoreInputs
from nonmember.scores.frequency import DcPdd
from nonmember.scores.likelihood import Loss, Perplexity
from nonmember.scores.relative import Lowercase, Perturbed, Quantity, Recall, ReferenceDifference, ReferenceRatio, Zlib
from nonmember.scores.tails import MaxK, MinK, MinKPlusPlus

Tokens = npt.ArrayLike | Sequence[npt.ArrayLike]
MOST_ABOVE_ZERO = 1e-6  # of a logarithm, by rounding
NO_LOGARITHMS = ("std", "token_id", "token_ids")


def loss(log_probs: Tokens) -> float | FloatArray:
    """Mean log-probability per token: minus the loss.

    Args:
        log_probs: [T] log p(x_t | x_<t) of a text in nats, or a list of such arrays.

    Returns:
        Nats per token, a float for one text, [documents] for several; NaN for a text without tokens.

    Raises:
        ValueError: For an array of another shape.

    Source: Yeom et al., 2018.

    >>> loss([-1.0, -3.0])
    -2.0
    >>> loss([[-1.0, -3.0], [-0.5]])
    array([-2. , -0.5])
    """
    return _scored(Loss(), log_probs)


def perplexity(log_probs: Tokens) -> float | FloatArray:
    """Minus the perplexity, -exp(-mean log-probability): ranks as `loss` does.

    Args:
        log_probs: As in `loss`.

    Returns:
        -1 or less, in the shape of `loss`.

    Source: a feature of LLM-DI (Maini et al., 2024).

    >>> round(perplexity([-1.0, -3.0]), 3)
    -7.389
    """
    return _scored(Perplexity(), log_probs)


def min_k(log_probs: Tokens, k: float) -> float | FloatArray:
    """Min-K%: mean log-probability of the fraction `k` of least likely tokens.

    Args:
        log_probs: As in `loss`.
        k: In [0.001, 1], of each text; at least one token. 1 gives `loss`.

    Returns:
        Nats per token, in the shape of `loss`.

    Raises:
        ValueError: For another k, and as `loss`.

    Source: Shi et al., 2024, eq. 1; how k is rounded: docs/methods/conventions.md.

    >>> min_k([-1.0, -5.0, -2.0, -4.0], k=0.5)
    -4.5
    """
    return _scored(MinK(k), log_probs)


def max_k(log_probs: Tokens, k: float) -> float | FloatArray:
    """Mean log-probability of the fraction `k` of most likely tokens.

    Args:
        log_probs: As in `min_k`.
        k: As in `min_k`.

    Returns:
        Nats per token, in the shape of `loss`.

    Source: LLM-DI (Maini et al., 2024), whose k_min_probs is minus this.

    >>> max_k([-1.0, -5.0, -2.0, -4.0], k=0.5)
    -1.5
    """
    return _scored(MaxK(k), log_probs)


def min_k_plus_plus(log_probs: Tokens, means: Tokens, stds: Tokens, k: float) -> float | FloatArray:
    """Min-K%++: mean of the fraction `k` of smallest (log_prob - mean) / std.

    Args:
        log_probs: As in `loss`.
        means: [T] mean of log p under the model's own next-token distribution at each place, nats.
        stds: [T] standard deviation of the same, nats; one below 1e-6 is taken for 1e-6.
        k: As in `min_k`.

    Returns:
        Standard deviations, in the shape of `loss`; above 0 where tokens are likelier than the model expects.

    Raises:
        ValueError: For means or stds of other lengths, and as `min_k`.

    Source: Zhang et al., 2025, eq. 3.

    >>> min_k_plus_plus([-1.0, -5.0], means=[-2.0, -2.0], stds=[0.5, 1.5], k=1.0)
    0.0
    """
    return _scored(MinKPlusPlus(k), log_probs, mean=means, std=stds)


def zlib(log_probs: Tokens, texts: str | Sequence[str]) -> float | FloatArray:
    """Mean log-probability over the bytes of the zlib-compressed text.

    Args:
        log_probs: As in `loss`.
        texts: The text itself, or one for each array.

    Returns:
        Nats per token and byte, in the shape of `loss`.

    Raises:
        ValueError: Where there are not as many texts as arrays, and as `loss`.

    Source: Carlini et al., 2021; the logarithm of the perplexity, as in all programs.

    >>> zlib([-2.0], "aaaa") == -2.0 / 12
    True
    """
    return _scored(Zlib(), log_probs, texts=[texts] if isinstance(texts, str) else list(texts))


def lowercase(log_probs: Tokens, lowercased: Tokens) -> float | FloatArray:
    """Loss of the lowercased text over that of the text itself.

    Args:
        log_probs: As in `loss`, of the text.
        lowercased: As in `loss`, of its lowercased version, whose tokens are others.

    Returns:
        A ratio, in the shape of `loss`; NaN where the loss of the text is 1e-8 or less.

    Raises:
        ValueError: Where there are not as many lowercased texts, and as `loss`.

    Source: Carlini et al., 2021.

    >>> lowercase([-1.0, -3.0], lowercased=[-3.0])
    1.5
    """
    return _scored(Lowercase(), log_probs, beside=("other_view", "the other text", lowercased))


def perturbed(log_probs: Tokens, changed: Tokens, quantity: Quantity) -> float | FloatArray:
    """The text against a perturbed version of it, each quantity with the sign that points to members.

    Args:
        log_probs: As in `loss`, of the text x.
        changed: As in `loss`, of its perturbed version x'.
        quantity: "ppl_ratio", -ppl(x) / ppl(x'); "ppl_difference", ppl(x') - ppl(x); "loss_ratio", loss(x') / loss(x);
            or "loss_difference", loss(x') - loss(x).

    Returns:
        The quantity in the shape of `loss`; NaN for a loss of 0 to divide by.

    Raises:
        ValueError: For another quantity, where there are not as many changed texts, and as `loss`.

    Source: features of LLM-DI (Maini et al., 2024).

    >>> perturbed([-1.0], changed=[-3.0], quantity="loss_difference")
    2.0
    """
    return _scored(Perturbed("random_deletion", quantity), log_probs, beside=("other_view", "the other text", changed))


def reference_difference(log_probs: Tokens, reference: Tokens) -> float | FloatArray:
    """Mean log-probability under the target minus that under a reference model.

    Args:
        log_probs: As in `loss`, under the target.
        reference: As in `loss`, under the reference model; the numbers of tokens may differ.

    Returns:
        Nats per token, in the shape of `loss`.

    Raises:
        ValueError: Where there are not as many texts under the reference, and as `loss`.

    Source: difficulty calibration, Watson et al., 2022.

    >>> reference_difference([-1.0, -3.0], reference=[-3.0])
    1.0
    """
    return _scored(ReferenceDifference(), log_probs, beside=("reference", "reference", reference))


def reference_ratio(log_probs: Tokens, reference: Tokens) -> float | FloatArray:
    """Loss under a reference model over that under the target.

    Args:
        log_probs: As in `reference_difference`.
        reference: As in `reference_difference`.

    Returns:
        A ratio, in the shape of `loss`; NaN where the target's loss is 1e-8 or less.

    Source: Carlini et al., 2021; "Small Ref" of MC-PDD, table VII. The program of DC-PDD inverts it.

    >>> reference_ratio([-1.0, -3.0], reference=[-3.0])
    1.5
    """
    return _scored(ReferenceRatio(), log_probs, beside=("reference", "reference", reference))


def recall(log_probs: Tokens, conditional: Tokens) -> float | FloatArray:
    """ReCaLL: loss behind unread text over that of the text alone.

    Args:
        log_probs: As in `loss`.
        conditional: The same behind a prefix of unread texts, the first token among them.

    Returns:
        A ratio, in the shape of `loss`; NaN where the loss of the text alone is 1e-8 or less.

    Raises:
        ValueError: Where there are not as many texts behind a prefix, and as `loss`.

    Source: Xie et al., 2024, eq. 2.

    >>> recall([-1.0, -3.0], conditional=[-2.0, -3.0, -4.0])
    1.5
    """
    return _scored(Recall(1), log_probs, beside=("behind_prefix", "conditional", conditional))


def dc_pdd(log_probs: Tokens, token_ids: Tokens, counts: npt.ArrayLike, a: float) -> float | FloatArray:
    """DC-PDD: mean of min(p log(1/q), a) over the first occurrence of each token id.

    Args:
        log_probs: As in `loss`.
        token_ids: [T] ids of these tokens.
        counts: [V] how often each id occurs in a general corpus (`token_counts`); q is its smoothed frequency, (count +
            1) / (total + V).
        a: Above 0, clips the score of a token; the paper's is 0.01.

    Returns:
        Nats per token in [0, a], in the shape of `loss`.

    Raises:
        ValueError: For another a, an id below 0 or of V or more, ids of other lengths, and as `loss`.

    Source: Zhang et al., 2024, whose program reads the raw counts.

    >>> round(dc_pdd([-0.1, -0.1], token_ids=[1, 0], counts=[9, 0], a=10.0), 3)
    1.128
    """
    lowest = min((int(ids.min()) for ids in _arrays(token_ids, _is_one(log_probs), "token_ids") if ids.size), default=0)
    if lowest < 0:
        raise ValueError(f"Expected token ids of 0 and more; got {lowest}. Leave padding out.")
    return _scored(DcPdd(a), log_probs, counts=np.asarray(counts, dtype=np.int64), token_id=token_ids)


def _scored(
    score: Score,
    log_probs: Tokens,
    *,
    beside: tuple[str, str, Tokens] | None = None,
    texts: Sequence[str] | None = None,
    counts: npt.NDArray[np.int64] | None = None,
    **columns: Tokens,
) -> float | FloatArray:
    """beside: of a second table, its field of `ScoreInputs`, what messages call it, and its log-probabilities."""
    is_one = _is_one(log_probs)
    tokens = _table(log_probs, is_one, "log_probs", **columns)
    more: dict[str, Any] = {}
    if beside is not None:
        field, name, given = beside
        more[field] = _table(given, is_one, name)
        if (number := len(more[field])) != len(tokens):
            raise ValueError(
                f"Expected an array of {name} for each of the {len(tokens)} texts; got {number}. Pass both in the same "
                "order."
            )
    values = score(ScoreInputs(tokens, texts=texts, counts=counts, **more)).values
    return float(values[0]) if is_one else values


def _is_one(tokens: Any) -> bool:
    """Whether these are the numbers of one text."""
    return not any(np.ndim(first) for first in list(tokens)[:1])


def _table(log_probs: Tokens, is_one: bool, name: str, **columns: Tokens) -> TokenTable:
    """Documents named by their number. Numbers keep their precision: a table's own is float32."""
    texts = _arrays(log_probs, is_one, name)
    lengths = [len(text) for text in texts]
    total = sum(lengths)
    values: dict[str, Any] = {column: np.zeros(total, np.int64) for column in TOKEN_SCHEMA.names if column != "doc_id"}
    values["log_prob"] = np.maximum(np.concatenate([*texts, np.zeros(0)]), LOG_PROB_FLOOR)
    for column, given in columns.items():
        parts = _arrays(given, is_one, column)
        if (found := [len(part) for part in parts]) != lengths:
            raise ValueError(
                f"Expected a {column} for every token, {lengths[:5]} of them; got {found[:5]}. Leave the first token, "
                "which is not scored, out of all arrays."
            )
        values[column] = np.concatenate([*parts, np.zeros(0)])
    values["token_id"] = values["token_id"].astype(np.int64)
    offsets = np.cumsum([0, *lengths], dtype=np.int64)
    return TokenTable(tuple(map(str, range(len(texts)))), offsets, **values)


def _arrays(tokens: Any, is_one: bool, name: str) -> list[FloatArray]:
    texts = [np.asarray(text, dtype=np.float64) for text in ([tokens] if is_one else list(tokens))]
    if any(text.ndim != 1 for text in texts):
        raise ValueError(
            f"Expected {name} to hold one number per token, [T] or a list of such arrays; got shape "
            f"{next(text.shape for text in texts if text.ndim != 1)}. Pass one array per text."
        )
    if any(np.isnan(text).any() for text in texts):
        raise ValueError(
            f"Expected a number for every token in {name}; got NaN. Where a token has no probability, 0 times minus "
            "infinity is one: clamp log-probabilities at -100 first."
        )
    if name not in NO_LOGARITHMS and any(text.max(initial=0.0) > MOST_ABOVE_ZERO for text in texts):
        raise ValueError(
            f"Expected {name} to hold logarithms of probabilities, 0 or less; got numbers above 0. Of losses pass the "
            "negative: they would turn every ranking round."
        )
    return texts
