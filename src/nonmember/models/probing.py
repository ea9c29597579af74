"""What is taken for granted of every model, measured once when it is loaded: its log-probabilities depend on the text,
and on nothing that is read behind it or beside it.

Shapes: T tokens of a text, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nonmember.artifacts import Builder
from nonmember.models.base import ModelSpec
from nonmember.models.reading import position_limit

if TYPE_CHECKING:
    from torch import Tensor

    from nonmember.models.loading import LoadedModel

PROBED = "probed"  # the name of the note
SHORT = (3, 6)  # tokens of a text and of the longer one beside it
# Of a log-probability, as a share of the standard deviation over the vocabulary. Roundings move it by 1e-5 at most, in
# half precision by .05; models that read ahead by 1 and more.
TOLERANCE, TOLERANCE_OF_HALF = 1e-3, 0.25


def require_probed(builder: Builder, spec: ModelSpec, loaded: LoadedModel) -> LoadedModel:
    """The loaded model, which is probed unless that is on record for its key. Raises ValueError as `probe` does."""

    def find() -> dict[str, Any]:
        try:
            moved = probe(loaded.model)
        except ValueError as error:
            raise ValueError(f"{spec.readable} cannot be used: {error}") from error
        limit = position_limit(loaded.model.config)
        return {"difference": moved, "num_parameters": loaded.num_parameters, "position_limit": limit}

    builder.noted(PROBED, spec.key(builder), find)
    return loaded


def recorded(builder: Builder, spec: ModelSpec) -> Mapping[str, Any]:
    """What was found when it was probed, `num_parameters` and `position_limit` among it; empty where it was not:
    loading a large model to see them takes minutes."""
    return builder.noted(PROBED, spec.key(builder)) or {}


def probe(model: Any) -> float:
    """Reads random tokens: by how much a text's log-probabilities move beside a longer one (nats). Raises ValueError,
    with what was measured, where the model is none that can be scored."""
    import torch

    from nonmember.models.forward import evaluation_mode, number_of_embeddings

    number, device = number_of_embeddings(model)
    generator = torch.Generator().manual_seed(0)
    texts = torch.randint(number, (2, SHORT[1]), generator=generator).to(device)
    other_end = texts[:1].clone()
    other_end[0, -1] = (other_end[0, -1] + 1) % number
    with evaluation_mode(model), torch.no_grad():
        try:
            alone, changed, short = (_log_probs(model, ids)[0] for ids in (texts[:1], other_end, texts[1:, : SHORT[0]]))
            beside = _log_probs(model, texts)
        except Exception as error:  # whatever the code of a model says
            raise ValueError(f"it cannot read a text of {SHORT[1]} tokens ({error}).") from error
    if bool(alone.isnan().any()):
        raise ValueError("its logits are no numbers. If it runs in float16, load it in bfloat16 or float32.")
    if float((alone - alone[0]).nan_to_num(0.0).abs().max()) < 1e-5:
        raise ValueError("its log-probabilities do not depend on the text: its weights are lost. Save it again.")
    share = TOLERANCE if model.dtype in (torch.float32, torch.float64) else TOLERANCE_OF_HALF
    allowed = share * float(alone[alone.isfinite()].std()) + 1e-5
    if (ahead := _moved(changed[:-1], alone[:-1])) > allowed:
        raise ValueError(
            f"it is not causal. A different last token moves the log-probabilities of earlier ones by {ahead:.2g} nats"
            ", so that each token is known before it is predicted. Name a model that was trained to predict the next "
            "token; encoders, embedding models and masked or prefix language models are none."
        )
    moved = max(_moved(beside[0], alone), _moved(beside[1, : SHORT[0]], short))
    if moved > allowed:
        raise ValueError(
            f"a text's log-probabilities depend on what is read beside or before it: they move by {moved:.2g} nats. "
            "Something in it is drawn at random (dropout, say), or remembered from text to text."
        )
    return moved


def _log_probs(model: Any, ids: Tensor) -> Tensor:
    from nonmember.models.forward import full_logits

    return full_logits(model, ids).float().log_softmax(-1)


def _moved(log_probs_TV: Tensor, others_TV: Tensor) -> float:
    """Largest difference; where one of the two is no number, infinity."""
    difference = (log_probs_TV - others_TV).masked_fill(log_probs_TV == others_TV, 0.0)
    return float(difference.abs().nan_to_num(float("inf"), float("inf")).max())
