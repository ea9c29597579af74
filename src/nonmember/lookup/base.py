"""What every look-up shares: sequences of 13 words, and how many of those of a document a corpus holds."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from nonmember.artifacts import Builder
from nonmember.checks import Checked
from nonmember.records import Corpus, FloatArray

if TYPE_CHECKING:
    import pandas as pd

NGRAM = 13  # words; the length that GPT-3 (Brown et al., 2020, appendix C) and most after it look for
TOO_SHORT = f"fewer than {NGRAM} words"


@dataclass(frozen=True)
class Overlaps:
    """How much of each document a corpus holds.

    Attributes:
        doc_ids: Of the documents.
        num_ngrams: [documents] sequences of 13 words that were looked up.
        num_found: [documents] those of them that the corpus holds.
        reasons: Document id -> why none of it was looked up.
    """

    doc_ids: tuple[str, ...]
    num_ngrams: npt.NDArray[np.int64]
    num_found: npt.NDArray[np.int64]
    reasons: Mapping[str, str]

    @property
    def shares(self) -> FloatArray:
        """[documents] of the sequences those that were found; NaN where none was looked up."""
        result: FloatArray = np.divide(
            self.num_found, self.num_ngrams, out=np.full(len(self.doc_ids), np.nan), where=self.num_ngrams > 0
        )
        return result

    def frame(self) -> pd.DataFrame:
        """A row per document: doc_id, share, found, sequences, and reason, empty where something was looked up."""
        import pandas as pd

        columns = {"doc_id": self.doc_ids, "share": self.shares, "found": self.num_found, "sequences": self.num_ngrams}
        return pd.DataFrame(columns | {"reason": [self.reasons.get(doc_id, "") for doc_id in self.doc_ids]})

    def summary(self) -> dict[str, Any]:
        """Numbers of documents, and the mean of their shares (None where no document was looked up)."""
        known = self.shares[~np.isnan(self.shares)]
        return {
            "num_documents": len(self.doc_ids),
            "num_whole": int((known == 1).sum()),
            "num_partly": int(((known > 0) & (known < 1)).sum()),
            "num_absent": int((known == 0).sum()),
            "mean_share": float(known.mean()) if len(known) else None,
        }


class Lookup(Checked):
    """A corpus in which documents can be looked up. A frozen dataclass of settings."""

    @property
    @abstractmethod
    def readable(self) -> str:
        """Its name, as results show it."""

    @abstractmethod
    def key(self) -> Mapping[str, Any]:
        """What determines the answers, as JSON."""

    @abstractmethod
    def overlaps(self, builder: Builder, documents: Corpus) -> Overlaps:
        """Look every document up."""
