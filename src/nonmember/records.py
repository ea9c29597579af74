"""Everything that crosses a boundary or touches the disk: frozen records and their Parquet schemas.

Imports neither torch, Hydra, Lightning nor W&B: a reader of stored results needs none of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from nonmember.files import write_text_atomically
from nonmember.seals import with_seal, without_seal

RESULT, ERROR, CONFIG = "result.json", "error.json", "config.json"  # in the folder of each audit

FloatArray = npt.NDArray[np.float64]
VectorArray = npt.NDArray[np.float32]  # [documents, width]

TOKEN_SCHEMA = pa.schema(
    [
        ("doc_id", pa.dictionary(pa.int32(), pa.string())),
        ("position", pa.int32()),
        ("token_id", pa.int32()),
        ("log_prob", pa.float32()),
        ("mean", pa.float32()),
        ("std", pa.float32()),
        ("rank", pa.int32()),
    ]
)

ORDER_SCHEMA = pa.schema(
    [
        ("doc_id", pa.dictionary(pa.int32(), pa.string())),
        ("order", pa.int32()),
        ("draws", pa.int32()),
        ("start", pa.int32()),
        ("num_read", pa.int32()),
        ("num_tokens", pa.int32()),
        ("log_prob", pa.float64()),
    ]
)

CORPUS_SCHEMA = pa.schema(
    [("doc_id", pa.string()), ("text", pa.string()), ("cluster_id", pa.string()), ("domain", pa.string())]
)
WORK_SCHEMA = pa.schema([("title", pa.string()), ("author", pa.string())])  # only where a document has one

DIVERGENCE_SCHEMA = pa.schema([("doc_id", pa.string()), ("divergence", pa.float32())])

NO_EMBEDDING = "no embedding: the text has fewer than two tokens"
ZERO_EMBEDDING = "the embedding is zero and has no direction"


def embedding_schema(width: int) -> pa.Schema:
    return pa.schema([("doc_id", pa.string()), ("vector", pa.list_(pa.float32(), width))])


@dataclass(frozen=True, slots=True)
class Document:
    """One text with a stable id.

    `cluster_id` names what it was taken from (book, thread, module): documents of one cluster are not independent.
    `domain` names the kind of text (a library, a Pile subset). `title`, `author`: of the work it is from, or
    the name of what it is about, for methods that ask models by name.
    """

    doc_id: str
    text: str
    cluster_id: str = ""
    domain: str = ""
    title: str = ""
    author: str = ""


@dataclass(frozen=True)
class Corpus:
    """An ordered list of documents with unique ids, and what was left out on the way (reason -> number)."""

    documents: tuple[Document, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for document in self.documents:
            if document.doc_id in seen:
                raise ValueError(
                    f"Document ids must be unique, but {document.doc_id!r} occurs more than once. "
                    "Name another id column, or remove the repeated lines."
                )
            seen.add(document.doc_id)

    def __len__(self) -> int:
        return len(self.documents)

    @property
    def doc_ids(self) -> tuple[str, ...]:
        return tuple(document.doc_id for document in self.documents)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the ordered ids and texts, with titles and authors where there are any: two corpora with equal
        fingerprints are the same data."""
        digest = hashlib.sha256()
        for document in self.documents:
            work = (document.title, document.author) if document.title or document.author else ()
            for part in (document.doc_id, document.text, *work):
                encoded = part.encode("utf-8", "surrogatepass")
                digest.update(len(encoded).to_bytes(8, "little"))
                digest.update(encoded)
        return digest.hexdigest()

    def save(self, path: Path) -> None:
        schema = CORPUS_SCHEMA
        if any(document.title or document.author for document in self.documents):
            schema = pa.schema([*CORPUS_SCHEMA, *WORK_SCHEMA])
        columns = {name: [getattr(document, name) for document in self.documents] for name in schema.names}
        pq.write_table(pa.table(columns, schema=schema), path)

    @classmethod
    def load(cls, path: Path, dropped: Mapping[str, int] | None = None) -> Corpus:
        rows = pq.read_table(path).to_pylist()
        return cls(tuple(Document(**row) for row in rows), dict(dropped or {}))


@dataclass(frozen=True)
class Prompt:
    """What a model is told to do with a text. Putting it to a model, by a chat template or plainly, is for others."""

    instruction: str

    def request(self, text: str) -> str:
        """The text and the cue: all but the instruction."""
        return f"Text: {text}\nResponse:"


@dataclass(frozen=True)
class Template(Prompt):
    """A prompt with a place of its own for the text. template: the request, with {text} where it stands."""

    template: str

    def request(self, text: str) -> str:
        return self.template.replace("{text}", text)


@dataclass(frozen=True)
class Question(Prompt):
    """A prompt that is answered in one word. answers: those whose probabilities are wanted."""

    answers: tuple[str, ...]


@dataclass(frozen=True)
class TokenTable:
    """What one model said about every scored token of a corpus.

    Rows of a document are contiguous and in order; document i owns rows `offsets[i]:offsets[i + 1]` (none, for a
    text of fewer than two tokens). Natural logarithms.

    position: index of the token in its text's ids, so the first scored one is 1.   token_id: the token that came.
    log_prob: l_t = log p(x_t | x_<t).   mean, std: of log p under the model's own next-token distribution.
    rank: number of tokens the model found strictly more likely (0 = its first choice).
    """

    doc_ids: tuple[str, ...]
    offsets: npt.NDArray[np.int64]
    position: npt.NDArray[np.int32]
    token_id: npt.NDArray[np.int32]
    log_prob: npt.NDArray[np.float32]
    mean: npt.NDArray[np.float32]
    std: npt.NDArray[np.float32]
    rank: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.doc_ids)

    @property
    def num_tokens(self) -> npt.NDArray[np.int64]:
        """[documents] number of scored tokens."""
        return np.diff(self.offsets)

    def rows(self, index: int) -> slice:
        return slice(int(self.offsets[index]), int(self.offsets[index + 1]))

    @classmethod
    def load(cls, paths: Path | Sequence[Path], doc_ids: Sequence[str]) -> TokenTable:
        """Read the Parquet parts and put the documents into the order of `doc_ids` (a join, never a zip)."""
        paths = [paths] if isinstance(paths, Path) else list(paths)
        table = pa.concat_tables([pq.read_table(path, schema=TOKEN_SCHEMA) for path in paths]).combine_chunks()
        place = {doc_id: index for index, doc_id in enumerate(doc_ids)}
        encoded = table["doc_id"].combine_chunks()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.chunk(0) if encoded.num_chunks else pa.array([], TOKEN_SCHEMA.field("doc_id").type)
        names = encoded.dictionary.to_pylist()
        unknown = [name for name in names if name not in place]
        if unknown:
            raise ValueError(
                f"The observations speak of documents the corpus does not have, first {unknown[0]!r}. "
                "They belong to another corpus; observe this one."
            )
        code = np.array([place[name] for name in names], dtype=np.int64)
        document = code[encoded.indices.to_numpy(zero_copy_only=False)] if len(table) else np.zeros(0, np.int64)
        column = {name: table[name].to_numpy() for name in TOKEN_SCHEMA.names if name != "doc_id"}
        order = np.lexsort((column["position"], document))
        counts = np.bincount(document, minlength=len(doc_ids)) if len(doc_ids) else np.zeros(0, np.int64)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(tuple(doc_ids), offsets, **{name: values[order] for name, values in column.items()})

    def to_arrow(self) -> pa.Table:
        document = np.repeat(np.arange(len(self)), self.num_tokens).astype(np.int32)
        ids = pa.DictionaryArray.from_arrays(pa.array(document), pa.array(list(self.doc_ids), pa.string()))
        columns = [ids] + [pa.array(getattr(self, name)) for name in TOKEN_SCHEMA.names if name != "doc_id"]
        return pa.table(columns, schema=TOKEN_SCHEMA)


@dataclass(frozen=True)
class Embeddings:
    """One vector per document of a corpus, of length 1.

    values: [documents, width] float32.   reasons: why a document has no vector, or one without a direction: its row
    is zero.
    """

    doc_ids: tuple[str, ...]
    values: VectorArray
    reasons: Mapping[str, str]

    @classmethod
    def load(cls, paths: Sequence[Path], doc_ids: Sequence[str]) -> Embeddings:
        """Read the Parquet parts and put the documents into the order of `doc_ids` (a join, never a zip)."""
        place = {doc_id: index for index, doc_id in enumerate(doc_ids)}
        width = pq.read_schema(paths[0]).field("vector").type.list_size
        values_ND = np.zeros((len(doc_ids), width), np.float32)
        found = np.zeros(len(doc_ids), bool)
        for batch in (batch for path in paths for batch in pq.ParquetFile(path).iter_batches()):
            names = batch["doc_id"].to_pylist()
            if unknown := [name for name in names if name not in place]:
                raise ValueError(
                    f"The embeddings speak of documents the corpus does not have, first {unknown[0]!r}. "
                    "They belong to another corpus; embed this one."
                )
            rows = [place[name] for name in names]
            values_ND[rows] = batch["vector"].flatten().to_numpy().reshape(-1, width)
            found[rows] = True
        reasons = {doc_ids[index]: NO_EMBEDDING for index in np.flatnonzero(~found).tolist()}
        zero = found & ~values_ND.any(axis=1)
        reasons |= {doc_ids[index]: ZERO_EMBEDDING for index in np.flatnonzero(zero).tolist()}
        return cls(tuple(doc_ids), values_ND, reasons)


@dataclass(frozen=True)
class OrderTable:
    """How likely a model found each shard of an ordered file; all of them [shards]. Natural logarithms, summed.

    canonical: log-likelihood in the shard's own order.   mean_shuffled: its mean over random orders.
    num_tokens: scored ones of one order.   num_read: tokens that were read for all orders, some of them twice.

    On disk there is a row per window of each order: `order` 0 is the own one, and `draws` how many of the random orders
    were this one.
    """

    doc_ids: tuple[str, ...]
    canonical: FloatArray
    mean_shuffled: FloatArray
    num_tokens: FloatArray
    num_read: FloatArray

    @classmethod
    def load(cls, paths: Sequence[Path], doc_ids: Sequence[str]) -> OrderTable:
        """Add up the windows in the Parquet parts (by a join, never a zip), shards in the order of `doc_ids`."""
        table = pa.concat_tables([pq.read_table(path, schema=ORDER_SCHEMA) for path in paths])
        place = {doc_id: index for index, doc_id in enumerate(doc_ids)}
        shard = np.array([place[name] for name in table["doc_id"].to_pylist()], np.int64)
        column = {name: table[name].to_numpy() for name in ORDER_SCHEMA.names if name != "doc_id"}
        # In one order, whichever process wrote a row: sums of the same numbers are then the same.
        rows = np.lexsort((column["start"], column["order"], shard))
        shard, column = shard[rows], {name: values[rows] for name, values in column.items()}

        def per_shard(values: npt.NDArray[Any]) -> FloatArray:
            return np.bincount(shard, values, minlength=len(doc_ids)).astype(np.float64)

        own, first, draws, log_prob = column["order"] == 0, column["start"] == 0, column["draws"], column["log_prob"]
        return cls(
            tuple(doc_ids),
            canonical=per_shard(own * log_prob),
            mean_shuffled=per_shard(draws * log_prob) / per_shard(first * draws),
            num_tokens=per_shard(own * column["num_tokens"]),
            num_read=per_shard(column["num_read"]),
        )


@dataclass(frozen=True)
class AuditResult:
    """One audit: everything a reader needs to disagree. Undefined numbers are None. Written once, never edited.

    target, reference, heldout: labels, None where the method uses no such thing.   world: where the text comes from
    (micro, pile, pythia; own for the user's).   sweep, cell: the group of audits it belongs to and what differs in
    it.   data: the plain values of the data config (domain, half ...).
    truth: member, non_member or None where unknown.   num_tokens: scored tokens of the suspect set under the first
    model observed on it.   excluded: document id -> reason.   keys: what the store calls the artifacts used.
    details: the method's further numbers.   seconds: wall time of this run, found or made.
    """

    method: str
    target: str | None
    reference: str | None
    corpus: str
    heldout: str | None
    world: str
    sweep: str
    cell: str
    data: Mapping[str, str | float | bool | None]
    truth: str | None
    num_documents: int
    num_excluded: int
    num_tokens: int | None
    statistic: float | None
    p_value: float | None
    ci_low: float | None
    ci_high: float | None
    alpha: float
    rho_reference_target: float | None
    rho_distilled_target: float | None
    verdict: str
    allowed_claim: str
    warnings: tuple[str, ...]
    seed: int
    score: str
    settings: Mapping[str, object]
    details: Mapping[str, object]
    health: Mapping[str, float]
    capability: Mapping[str, Mapping[str, float]]
    dropped: Mapping[str, int]
    excluded: Mapping[str, str]
    keys: Mapping[str, str]
    versions: Mapping[str, str]
    made: Mapping[str, int]
    seconds: float

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def save(self, path: Path, files: Iterable[Path] = ()) -> None:
        """Write it with a seal. files: those beside `path` that belong to it and are complete (`nonmember.seals`)."""
        sealed = with_seal(asdict(self), files)
        write_text_atomically(path, json.dumps(sealed, indent=1, ensure_ascii=False, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: Path, *, files_too: bool = True) -> AuditResult:
        """Read it. Raises ValueError where it cannot be read, or where its seal says that it or, with `files_too`, a
        file that belongs to it was changed or lost."""
        unreadable = f"{path} is not a result this version can read ({{}}). Move it away and run the audit again."
        try:
            values = dict(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise ValueError(unreadable.format(error)) from error
        values = without_seal(values, path, files_too=files_too)
        try:
            return cls(**(values | {"warnings": tuple(values["warnings"])}))
        except (TypeError, KeyError) as error:
            raise ValueError(unreadable.format(error)) from error


@dataclass(frozen=True)
class Failure:
    """An audit without a result. cell: the name of its folder.   kind: the class of the error."""

    cell: str
    error: str
    kind: str

    @classmethod
    def load(cls, path: Path) -> Failure:
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path} cannot be read ({error}). Remove it, or run that audit again.") from error
