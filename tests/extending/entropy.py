"""A kind of observation: what it reads, what determines it, and what of it a method may ask for."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from nonmember.artifacts import Builder
from nonmember.artifacts.store import Entry
from nonmember.models import Access
from nonmember.observations import Measured, Measurement, Observation
from nonmember.observations.base import parts_of
from nonmember.scores import DocumentScores

if TYPE_CHECKING:
    from nonmember.models.loading import LoadedModel


@dataclass(frozen=True)
class Entropies(Observation[DocumentScores], Measurement):
    """Mean entropy of the model's next-token distribution over the tokens of each document, nats."""

    role: str
    max_tokens: int

    suffix = "entropies"

    @property
    def access(self) -> Access:
        return Access.FULL_LOGITS

    def settings(self, builder: Builder) -> Mapping[str, Any]:
        return {"entropies": True, "max_tokens": self.max_tokens}

    def observe(self, builder: Builder, loaded: "LoadedModel", folder: Path) -> dict[str, int]:
        import torch

        from nonmember.models.encoding import encode_corpus

        documents = builder.get(self.corpus)
        values = []
        sequences = encode_corpus(loaded, documents, self.max_tokens)
        with torch.inference_mode():
            for ids in sequences:
                log_probs_TV = loaded.model(input_ids=torch.tensor([ids])).logits[0].float().log_softmax(-1)
                values.append(float(-(log_probs_TV.exp() * log_probs_TV).sum(-1).mean()))
        pq.write_table(pa.table({"doc_id": list(documents.doc_ids), "entropy": values}), folder / "part-0.parquet")
        return {"num_tokens": sum(map(len, sequences))}

    def load(self, builder: Builder, entry: Entry) -> DocumentScores:
        rows = pa.concat_tables([pq.read_table(path) for path in parts_of(entry)]).to_pylist()
        return DocumentScores(tuple(row["doc_id"] for row in rows), np.array([row["entropy"] for row in rows]), {})

    def measure(self, builder: Builder) -> Measured:
        return Measured(builder.get(self))
