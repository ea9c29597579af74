"""Log-likelihoods of each shard of an ordered file, in canonical and in random orders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from nonmember.artifacts import Builder, Spec
from nonmember.artifacts.store import Entry
from nonmember.corpora.transforms.ordered import Sharded, line, random_orders
from nonmember.models.base import ModelSpec
from nonmember.models.tokenizing import naming
from nonmember.observations.base import Measured, Measurement, Observation, parts_of
from nonmember.records import Corpus, Document, OrderTable
from nonmember.records.requirements import Access
from nonmember.scores import DocumentScores

if TYPE_CHECKING:
    from nonmember.models.loading import LoadedModel

OrderQuantity = Literal["canonical", "mean_shuffled", "num_tokens", "num_read"]


@dataclass(frozen=True)
class OrderLikelihoods(Observation[OrderTable]):
    """The log-likelihood of each shard in its own order and in random ones.

    num_orders: random ones, drawn from `seed`.   window: most tokens read at once.   stride: from one window to the
    next.
    """

    corpus: Sharded
    num_orders: int
    window: int
    stride: int
    seed: int

    suffix = "orders"

    def _shards(self, builder: Builder) -> dict[str, tuple[Document, ...]]:
        return self.corpus.shards(builder.get(self.corpus.base))

    def _examples(self, builder: Builder) -> Corpus:
        return Corpus(tuple(item for shard in self._shards(builder).values() for item in shard))

    def content(self, builder: Builder) -> str:
        """Of the examples one by one: where a shard ends is a setting."""
        return self._examples(builder).fingerprint

    def settings(self, builder: Builder) -> dict[str, Any]:
        return {
            "orders": {"shards": self.corpus.num_shards, "number": self.num_orders, "seed": self.seed},
            "windows": {"tokens": self.window, "stride": self.stride},
        }

    def expected_tokens(self, builder: Builder) -> int | None:
        tokens = super().expected_tokens(builder)
        return None if tokens is None else tokens * (1 + self.num_orders)

    def observe(self, builder: Builder, loaded: LoadedModel, folder: Path) -> dict[str, int]:
        from nonmember.models.encoding import encode_pieces
        from nonmember.observations.passes.orders import OrderedShard, observe_orders

        examples = self._examples(builder)
        with naming(examples.doc_ids):
            front, ids = encode_pieces(loaded.tokenizer, [line(item.text) for item in examples.documents])
        ids_of = dict(zip(examples.doc_ids, ids, strict=True))
        shards = {
            name: OrderedShard(
                [ids_of[item.doc_id] for item in shard], random_orders(shard, self.num_orders, self.seed)
            )
            for name, shard in self._shards(builder).items()
        }
        return observe_orders(
            builder.model_for_trainer(loaded.model),
            shards,
            front,
            self.reading(builder, folder, f"reordering for {self.model.readable}"),
            window=self.window,
            stride=self.stride,
        )

    def load(self, builder: Builder, entry: Entry) -> OrderTable:
        return OrderTable.load(parts_of(entry), tuple(self._shards(builder)))


@dataclass(frozen=True)
class Reordered(Measurement):
    """One column of the `OrderTable` of a file, per shard. The other fields are those of `OrderLikelihoods`."""

    role: str
    model: ModelSpec
    corpus: Sharded
    quantity: OrderQuantity
    num_orders: int
    window: int
    stride: int
    seed: int

    @property
    def access(self) -> Access:
        return Access.WEIGHTS  # its tokenizer, to read in windows

    def needs(self) -> Iterable[Spec[Any]]:
        yield self._observation

    @property
    def _observation(self) -> OrderLikelihoods:
        return OrderLikelihoods(self.model, self.corpus, self.num_orders, self.window, self.stride, self.seed)

    def measure(self, builder: Builder) -> Measured:
        table = builder.get(self._observation)
        values = DocumentScores(table.doc_ids, getattr(table, self.quantity), {})
        nll = float(-table.canonical.sum() / table.num_tokens.sum())
        return Measured(values, nll=nll, num_tokens=int(table.num_tokens.sum()))
