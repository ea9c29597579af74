"""Neighbours of texts by a masked language model (Mattern et al., 2023): a corpus in kind, but it needs a model.

Shapes: T tokens, V vocabulary, D width of the embeddings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nonmember.artifacts import Builder
from nonmember.corpora import CorpusSpec
from nonmember.corpora.views import RandomNeighbours
from nonmember.models.hub import load_tokenizer, pretrained_identity
from nonmember.models.kinds.pretrained import Pretrained
from nonmember.models.reading import room_of_masked
from nonmember.models.tokenizing import around, encoded
from nonmember.records import Corpus, Document, Neighbours
from nonmember.records.neighbours import name_of_neighbour

if TYPE_CHECKING:
    from torch import Tensor

DROPPED = 0.7  # of the embedding of the token to be replaced, so that the model does not just repeat it (section 3.1)
PROPOSED = 6  # words for each token, the token itself among them, as in the paper's program and mimir's
CERTAIN = 0.9  # probability that stands for 1 where the rest is divided by, as in both programs


@dataclass(frozen=True)
class MaskedNeighbours(CorpusSpec):
    """The `number` likeliest versions of each document of `base` with one token replaced by a masked model's proposal.

    A proposal's weight is p(proposal) / (1 - p(token)), both with 70% of the token's embedding dropped out. The
    dropout comes from a hash of the text. Only what the model reads of a text is changed; the rest stays. A document
    for which fewer are found has fewer. (mimir hands the model embeddings to which positions have been added, and adds
    them again; here the model adds them once.)
    """

    base: CorpusSpec
    number: int
    path: str
    revision: str | None = None

    stored: ClassVar[bool] = True

    def identity(self) -> dict[str, Any]:
        model = pretrained_identity(Pretrained(self.path, self.revision))
        return {"kind": "masked neighbours", "base": self.base.identity(), "number": self.number, "model": model}

    def build(self, builder: Builder) -> Corpus:
        base = builder.get(self.base)
        if base.has_conversations:
            raise ValueError(
                "A masked model proposes neighbours of plain documents; these are conversations. Leave filler out: "
                "words of the assistant are then replaced by others of the corpus."
            )
        tokenizer, model = masked_model(self.path, self.revision)
        model.to(builder.compute.device)
        return Corpus(
            tuple(
                Document(name_of_neighbour(document.doc_id, number), text)
                for document in base.documents
                for number, text in enumerate(proposals(tokenizer, model, document.text, self.number))
            )
        )


def neighbours_of(corpus: CorpusSpec, how: Neighbours) -> CorpusSpec:
    """The corpus of all neighbours."""
    if how.filler is None:
        return RandomNeighbours(corpus, how.number, how.share, how.span, how.buffer)
    return MaskedNeighbours(corpus, how.number, how.filler, how.revision)


@lru_cache(maxsize=1)
def masked_model(path: str, revision: str | None) -> tuple[Any, Any]:
    """Tokenizer and model. Raises ValueError where there is no masked model with a tokenizer that gives offsets."""
    from transformers import AutoModelForMaskedLM

    from nonmember.models.loading import transformers_model

    tokenizer = load_tokenizer(Pretrained(path, revision))
    if tokenizer.mask_token_id is None or not tokenizer.is_fast:
        raise ValueError(
            f"{path} has no mask token or no fast tokenizer, so it fills no blanks. Name a masked language model "
            "with a tokenizer.json."
        )
    where = {"revision": revision} if revision else {}
    return tokenizer, transformers_model(AutoModelForMaskedLM, "masked language model", path, where).eval()


def proposals(tokenizer: Any, model: Any, text: str, number: int) -> list[str]:
    """The likeliest `number` texts with one token replaced."""
    ids, spans = _cut(tokenizer, text, room_of_masked(tokenizer, model.config))
    seed = int.from_bytes(hashlib.sha256(f"neighbours\0{text}".encode("utf-8", "surrogatepass")).digest()[:8])
    rng = np.random.default_rng(seed)
    special = set(tokenizer.all_special_ids)
    ranked: list[tuple[float, int, int]] = []
    for index, token in enumerate(ids):
        if token in special:
            continue
        probabilities_V = _at(model, ids, index, rng)
        rest = 1 - (float(probabilities_V[token]) if probabilities_V[token] < 1 else CERTAIN)
        top = probabilities_V.topk(min(PROPOSED, len(probabilities_V)))
        ranked += [
            (value / rest, index, other)
            for value, other in zip(top.values.tolist(), top.indices.tolist(), strict=True)
            if other != token and other not in special
        ]
    ranked.sort(key=lambda item: (-item[0], item[1], item[2]))
    return list(_replaced(tokenizer, text, spans, ranked[:number]))


def _cut(tokenizer: Any, text: str, room: int) -> tuple[list[int], list[tuple[int, int]]]:
    """Ids and places of a text of at most `room` tokens; a masked model has to see its own marks around a cut one
    too."""
    encoding = encoded(tokenizer, [text], return_offsets_mapping=True)
    (ids,), (spans,) = encoding["input_ids"], encoding["offset_mapping"]
    if len(ids) <= room:
        return ids, spans
    _, behind = around(tokenizer) or ((), ())
    num_behind = len(behind)
    kept = [*range(room - num_behind), *range(len(ids) - num_behind, len(ids))]
    return [ids[index] for index in kept], [spans[index] for index in kept]


def _at(model: Any, ids: list[int], index: int, rng: np.random.Generator) -> Tensor:
    """[V] probabilities of what stands in a place, 70% of the embedding there dropped out."""
    import torch

    with torch.inference_mode():
        device = next(model.parameters()).device
        embedded_1TD = model.get_input_embeddings()(torch.tensor([ids], device=device)).clone()
        kept_D = torch.tensor(rng.random(embedded_1TD.shape[-1]) >= DROPPED, device=device)
        embedded_1TD[0, index] *= kept_D / (1 - DROPPED)
        probabilities_V: Tensor = model(inputs_embeds=embedded_1TD).logits[0, index].float().softmax(-1).cpu()
    return probabilities_V


def _replaced(
    tokenizer: Any, text: str, spans: list[tuple[int, int]], proposed: list[tuple[float, int, int]]
) -> Iterator[str]:
    """In place, as mimir does by default: the rest of the text keeps its spelling."""
    for _, index, token in proposed:
        start, end = spans[index]
        yield text[:start] + tokenizer.decode([token]).replace("##", "").strip() + text[end:]
