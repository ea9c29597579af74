"""What is taken for granted of every model, measured once when it is loaded: it reads from left to right, a text's
log-probabilities do not depend on what is read beside or before it, and they depend on the text.

Shapes: T tokens of a text, V vocabulary.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch
import transformers
from torch import Tensor

from nonmember.artifacts import Builder
from nonmember.models.base import ModelSpec
from nonmember.models.forward import evaluation_mode, full_logits, number_of_embeddings
from nonmember.models.lengths import Lengths, lengths_of
from nonmember.models.reading import position_limit

if TYPE_CHECKING:
    from nonmember.models.loading import LoadedModel

FORMAT = 1  # raise it when models are probed otherwise: they are then probed again
KIND = "probes"  # of the store
SHORT, SHORTEST = (3, 6), 4  # tokens of a text and of the longer one beside it; of the longer one at least
LONGEST = 300  # tokens of the longer one, where the model is so small
OPERATIONS = 1e9  # that a longer text may take; about .05 s
COPIED = 50_000_000  # weights of a model in half precision that is probed in a copy of single precision
DRAWS = 3  # texts; a router of experts may choose otherwise by a rounding, but not for each of them

# Of a log-probability, as a share of the standard deviation over the vocabulary. Roundings move it by 1e-5 at most, in
# half precision by .05; models that read ahead by .005 where their weights are random, else by 1 and more.
TOLERANCE, TOLERANCE_OF_HALF = 1e-3, 0.25
ROUNDING = 1e-5  # nats, where the distribution is almost uniform
ADVICE = "Name a model that was trained to predict the next token"


@dataclass(frozen=True)
class Outcome:
    """difference: largest of a text's log-probabilities alone from those beside another one, nats.   allowed: what it
    could have been.   lengths: tokens of these texts."""

    difference: float
    allowed: float
    lengths: tuple[tuple[int, int], ...]


def require_probed(builder: Builder, spec: ModelSpec, loaded: LoadedModel) -> LoadedModel:
    """The loaded model, which is probed unless that is on record for its key. Raises ValueError as `probe` does."""

    def make(_: object) -> dict[str, Any]:
        try:
            return asdict(probe(loaded.model)) | {
                "num_parameters": loaded.num_parameters,
                "position_limit": position_limit(loaded.model.config),
            }
        except ValueError as error:
            raise ValueError(f"{spec.readable} cannot be used: {error}") from error

    builder.store.get_or_make(KIND, spec.readable, _key(builder, spec), make)
    return loaded


def recorded(builder: Builder, spec: ModelSpec) -> Mapping[str, Any]:
    """What was found when it was probed, `num_parameters` and `position_limit` among it; empty where it was not:
    loading a large model to see them takes minutes."""
    entry = builder.store.find(KIND, spec.readable, _key(builder, spec))
    return {} if entry is None else entry.facts


def _key(builder: Builder, spec: ModelSpec) -> dict[str, Any]:
    return {"format": FORMAT, "transformers": transformers.__version__, "probed": spec.key(builder)}


def probe(model: Any) -> Outcome:
    """Reads random tokens. Raises ValueError, with what was measured, where the model is none that can be scored."""
    lengths = lengths_of(model.config)
    _require_fractions(model)
    with evaluation_mode(model), torch.no_grad(), torch.random.fork_rng(devices=[]):
        # It may read fewer tokens than its configuration says, and not in another precision.
        for reader, most in itertools.product(dict.fromkeys((_in_single_precision(model), model)), (LONGEST, SHORT[1])):
            try:
                texts = _Texts(model, most)
                pairs = list(dict.fromkeys(_pairs(texts.longest, lengths)))
                if reader is not model:
                    _require_distribution(_log_probs(model, lengths, texts.draw(0, SHORT[1]))[0])
                differences = [_differences(reader, lengths, texts, pair) for pair in pairs]
                return Outcome(*max(differences, default=(0.0, 0.0)), tuple(pairs))
            except _CannotReadError as error:
                failed = error
    raise ValueError(f"it cannot read a text of {SHORT[1]} tokens ({failed}). {ADVICE}.") from failed


class _CannotReadError(Exception):
    """Of a forward pass."""


class _Texts:
    """Random tokens of a model's vocabulary, without those that its configuration has a use for."""

    def __init__(self, model: Any, most: int) -> None:
        rows, self._device = number_of_embeddings(model)
        config = model.config.get_text_config()
        used: set[int] = set()
        for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
            ids = getattr(config, name, None)
            used |= {item for item in (ids if isinstance(ids, list) else [ids]) if isinstance(item, int)}
        ordinary = [item for item in range(rows) if item not in used]
        self._ids = torch.tensor(ordinary if len(ordinary) > len(used) else range(rows))
        weights = sum(parameter.numel() for parameter in model.parameters())
        affordable = max(SHORT[1], int(OPERATIONS / (6 * max(1, weights))))
        self.longest = max(SHORTEST, min(most, affordable, position_limit(model.config) or most))

    def draw(self, number: int, length: int) -> Tensor:
        """[T]"""
        generator = torch.Generator().manual_seed(number)
        return self._ids[torch.randint(len(self._ids), (length,), generator=generator)].to(self._device)

    def other_end(self, ids_T: Tensor) -> Tensor:
        """The text with another last token."""
        changed_T = ids_T.clone()
        index = int((self._ids == int(ids_T[-1])).nonzero()[0])
        changed_T[-1] = self._ids[(index + 1) % len(self._ids)]
        return changed_T


def _pairs(longest: int, lengths: Lengths) -> Iterator[tuple[int, int]]:
    """Tokens of a text and of a longer one that may be read beside it: few at first, then on both sides of each switch
    that is in reach."""
    ends = sorted({*lengths.switches, lengths.limit or longest, longest})
    firsts = [SHORT[0], *(end + 1 for end in ends)]
    for first, last in [(SHORT[0], SHORT[1]), *zip(firsts, ends, strict=False)]:
        last = min(last, longest)
        if first < last and lengths.group(first) == lengths.group(last):
            yield first, last


def _log_probs(model: Any, lengths: Lengths, *texts: Tensor) -> Tensor:
    """[number of texts, T, V] of texts padded to the longest."""
    longest = max(map(len, texts))
    padded = torch.stack([torch.nn.functional.pad(ids_T, (0, longest - len(ids_T))) for ids_T in texts])
    lengths.forget(model)
    try:
        return full_logits(model, padded).float().log_softmax(-1)
    except Exception as error:  # whatever the code of a model says
        line = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise _CannotReadError(line.rstrip(".")) from error


def _require_fractions(model: Any) -> None:
    """By a few weights of each matrix, unless they are quantised in a known way."""
    matrices = [
        item for item in model.parameters() if item.dim() >= 2 and item.is_floating_point() and not item.is_meta
    ]
    some = [item.detach()[tuple(slice(32) for _ in item.shape)] for item in matrices]
    if some and not getattr(model, "is_quantized", False) and all(bool((item == item.round()).all()) for item in some):
        raise ValueError(
            "its weights are whole numbers, zeros perhaps, with which all texts get the same score or none that means "
            "anything. They were lost when it was saved or converted: save it again in floating point."
        )


def _require_distribution(log_probs_TV: Tensor) -> None:
    if bool(log_probs_TV.isnan().any()):
        raise ValueError(
            "its logits are no distribution (NaN, +inf, or none finite). If it runs in float16, load it in bfloat16 or "
            "float32; if not, its weights are damaged."
        )
    moved = float((log_probs_TV - log_probs_TV[0]).nan_to_num(0.0).abs().max())
    if moved < ROUNDING:
        what = "every token is equally likely" if _spread(log_probs_TV) < ROUNDING else "one distribution for all"
        raise ValueError(
            f"its log-probabilities do not depend on the text ({what}; they differ by {moved:.1g} nats), so that all "
            "scores would be the same. Its weights are lost: save it again with them."
        )


def _differences(model: Any, lengths: Lengths, texts: _Texts, pair: tuple[int, int]) -> tuple[float, float]:
    """Largest difference and what is allowed, of the text whose difference is least. Raises ValueError where it is
    more."""
    precise = all(parameter.dtype in (torch.float32, torch.float64) for parameter in model.parameters())
    share = TOLERANCE if precise and not getattr(model, "is_quantized", False) else TOLERANCE_OF_HALF
    differences = []
    for number in range(DRAWS):
        long = texts.draw(number, pair[1])
        changed = texts.other_end(long[: pair[0]])
        alone = _log_probs(model, lengths, changed)[0]
        beside = _log_probs(model, lengths, changed, long)
        _require_distribution(beside[1])
        measured = [_moved(beside[0, : pair[0]], alone), _moved(beside[1, : pair[0] - 1], alone[:-1])]
        if pair[1] > SHORT[1]:  # else too large to be read more often
            whole = _log_probs(model, lengths, texts.other_end(long))[0]
            again = _log_probs(model, lengths, changed)[0]
            measured += [_moved(beside[1, :-1], whole[:-1]), _moved(again, alone)]
        allowed = share * _spread(alone) + ROUNDING
        if max(measured) <= allowed:
            return max(measured), allowed
        if (moved := _moved(_log_probs(model, lengths, changed)[0], alone)) > allowed:
            raise ValueError(
                "the same text gets different log-probabilities when it is read again (they differ by "
                f"{moved:.2g} nats). Something in it is drawn at random, or remembered from text to text: switch that "
                "off (dropout, say)."
            )
        differences.append(max(measured))
    raise ValueError(_reason(model, lengths, texts, pair, min(differences), allowed))


def _reason(
    model: Any, lengths: Lengths, texts: _Texts, pair: tuple[int, int], difference: float, allowed: float
) -> str:
    """Why a text's log-probabilities move, in a sentence."""
    long = texts.draw(0, pair[1])
    alone, ahead = (_log_probs(model, lengths, ids_T)[0] for ids_T in (long, texts.other_end(long)))
    if (moved := _moved(ahead[:-1], alone[:-1])) > allowed:
        return (
            f"it is not causal. A different last token moves the log-probabilities of earlier ones by {moved:.2g} "
            "nats, so "
            f"that each token is known before it is predicted. {ADVICE} from left to right; encoders, embedding models "
            "and masked or prefix language models are none. If it is one, its config.json must say so (is_decoder, "
            "use_bidirectional_attention)."
        )
    return (
        f"a text's log-probabilities depend on what is read beside or before it: those of a text of {pair[0]} tokens "
        f"move by {difference:.2g} nats beside one of {pair[1]}. Its scores would depend on its neighbours. {ADVICE}, "
        "each text by itself: without batch statistics, limited capacities of experts, or a memory."
    )


def _moved(log_probs_TV: Tensor, others_TV: Tensor) -> float:
    """Largest difference; where one of the two is no number, infinity."""
    if not len(log_probs_TV):
        return 0.0
    same = log_probs_TV == others_TV  # -inf too
    difference = (log_probs_TV - others_TV).masked_fill(same, 0.0)
    return float(difference.abs().nan_to_num(torch.inf, torch.inf).max())


def _spread(log_probs_TV: Tensor) -> float:
    """Mean standard deviation over the vocabulary, tokens that are ruled out aside."""
    if bool(log_probs_TV.isfinite().all()):
        return float(log_probs_TV.std(-1, correction=0).mean())
    deviations = [row_V[row_V.isfinite()].std(correction=0) for row_V in log_probs_TV]
    return float(torch.stack(deviations).nan_to_num(0.0).mean())


def _in_single_precision(model: Any) -> Any:
    """A copy, where the model is in half precision and small: by its roundings a small difference cannot be told."""
    parameters = list(model.parameters())
    half = any(parameter.dtype in (torch.float16, torch.bfloat16) for parameter in parameters)
    whole = all(parameter.is_floating_point() and not parameter.is_meta for parameter in parameters)
    small = sum(parameter.numel() for parameter in parameters) <= COPIED
    if half and whole and small and not getattr(model, "is_quantized", False):
        return copy.deepcopy(model).float()
    return model
