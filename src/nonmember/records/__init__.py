"""Plain records that cross layers, and their Parquet schemas. Imports neither torch nor Hydra."""

from nonmember.records.answers import Prompt, Question, Template
from nonmember.records.corpus import Corpus, Document
from nonmember.records.documents import Embeddings, FloatArray, OrderTable, VectorArray
from nonmember.records.streams import Stream
from nonmember.records.tokens import TOKEN_SCHEMA, TokenTable

__all__ = [
    "TOKEN_SCHEMA",
    "Corpus",
    "Document",
    "Embeddings",
    "FloatArray",
    "OrderTable",
    "Prompt",
    "Question",
    "Stream",
    "Template",
    "TokenTable",
    "VectorArray",
]
