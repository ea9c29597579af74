"""Token statistics of documents that stand behind other texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nonmember.artifacts import Builder
from nonmember.artifacts.store import Entry
from nonmember.corpora.specs import CorpusSpec
from nonmember.observations.base import Observation, parts_of, texts_of
from nonmember.records import TokenTable
from nonmember.runtime.compute import MIB

if TYPE_CHECKING:
    from nonmember.models.loading import LoadedModel


@dataclass(frozen=True)
class BehindPrefix(Observation[TokenTable]):
    """One row per token of the first `max_tokens` tokens of each document, behind the first `num_shots` texts of
    `prefix`, or as many of these as the model reads before its longest document: all documents have the same.

    Texts are joined without anything between, as in the authors' program; what a tokenizer puts before a text stands
    once, before the prefix. Texts of the prefix that are documents of the corpus are left out. Raises ValueError where
    no text of it is left or fits.
    """

    prefix: CorpusSpec
    num_shots: int
    max_tokens: int

    suffix = "behind-prefix"

    def settings(self, builder: Builder) -> dict[str, Any]:
        prefix = {"fingerprint": self.prefix.fingerprint(builder), "num_shots": self.num_shots}
        return {"prefix": prefix, "max_tokens": self.max_tokens}

    def observe(self, builder: Builder, loaded: LoadedModel, folder: Path) -> Any:
        from nonmember.models.encoding import encode_pieces
        from nonmember.models.reading import position_limit
        from nonmember.models.tokenizing import naming
        from nonmember.observations.passes.tokens import observe

        documents = builder.get(self.corpus)
        own = set(texts_of(documents))
        shots = [text for text in texts_of(builder.get(self.prefix)) if text not in own][: self.num_shots]
        if not shots:
            raise ValueError("Every text of the prefix is one of the documents. Give other unread texts.")
        with naming([*("of the prefix" for _ in shots), *documents.doc_ids]):
            front, pieces = encode_pieces(loaded.tokenizer, [*shots, *texts_of(documents)])
        texts = [ids[: self.max_tokens] for ids in pieces[len(shots) :]]
        most = position_limit(loaded.model.config)
        kept = shots_that_fit(front, pieces[: len(shots)], max(map(len, texts)), most)
        before = [*front, *chain.from_iterable(kept)]
        whole = [[*before, *ids] if len(ids) > 1 else [] for ids in texts]  # a text of one token has no loss alone
        return observe(
            builder.model_for_trainer(loaded.model), dict(zip(documents.doc_ids, whole, strict=True)),
            folder, builder.compute.trainer, num_context=len(before),
            max_batch_tokens=builder.compute.max_batch_tokens, block_bytes=builder.compute.block_mib * MIB,
            description=f"observing {self.model.readable} behind {len(kept)} texts",
        )  # fmt: skip

    def load(self, builder: Builder, entry: Entry) -> TokenTable:
        return TokenTable.load(parts_of(entry), builder.get(self.corpus).doc_ids)


def shots_that_fit(
    front: Sequence[int], shots: Sequence[Sequence[int]], longest: int, most: int | None
) -> list[Sequence[int]]:
    """The first texts that can be read before the longest document. (The authors reckon with the mean length.)"""
    kept: list[Sequence[int]] = []
    room = float("inf") if most is None else most - longest - len(front)
    for ids in _not_empty(shots):
        if len(ids) > room:
            break
        room -= len(ids)
        kept.append(ids)
    if not kept:
        raise ValueError(
            f"No text of the prefix fits before a document of {longest} tokens: the model reads {most}. Give shorter "
            "unread texts first, or lower max_tokens."
        )
    return kept


def _not_empty(shots: Iterable[Sequence[int]]) -> Iterable[Sequence[int]]:
    return (ids for ids in shots if len(ids))
